# SPDX-License-Identifier: GPL-2.0
"""export: the series as mails, a directory and an mbox per section; verify: back
again, each section on as little as its cover says that it needs."""
import os
import re
import tempfile
from pathlib import Path

from . import env, measured
from .build import Builder
from .env import STACKS, remove, shown, step
from .files import load_series, parse_series
from .git import AUTHOR, Failure, GitError, ident_env, new_repository
from .tree import BASE_REF, MADE, open_tree


def signed(commit_id, ident, git, parent):
    """The commit once more, as the person who sends it."""
    subject, body = measured.fill_message(git, commit_id)
    return git.commit(git.tree_of(commit_id), f"{subject}\n\n{body}".strip(), parent, ident)


def cover(section):
    file = env.PATCHES / f"{section}.cover"
    try:
        text = file.read_text().strip()
    except OSError:
        raise Failure(f"{shown(file)} is missing: the cover letter, its first line the "
                      "subject") from None
    subject, _, body = text.partition("\n")
    return f"{subject}\n\n{body.strip(chr(10))}\n"


# Begins the subject of a cover whose mails ask for comments
RFC = "[RFC] "


def applies_on(section, sections):
    """(the sections that this one is applied on, as its cover says; where those of its
    mails end that do not even need each other)"""
    pristine = f"Linux {env.BASE}"
    alone = f"{pristine}, each mail alone"
    ends = {pristine: 0, alone: None, f"{alone} but the last": -1}
    found = re.findall(r"^Applies on: (.*)$", cover(section), re.M)
    if len(found) != 1:
        raise Failure(f"{section}.cover: wanted is one line 'Applies on: <section>, ...' or "
                      + " or ".join(f"'Applies on: {one}'" for one in ends))
    if found[0] in ends:
        return [], ends[found[0]]
    names, earlier = found[0].split(", "), sections[:sections.index(section)]
    for name in names:
        if name not in earlier:
            raise Failure(f"{section}.cover: applies on '{name}', which is no earlier section; "
                          f"there are: {', '.join(earlier)}")
    return [name for name in earlier if name in names], 0


def format_mails(git, start, branch, text, ident, out, *options):
    """Mails of a branch; git takes the cover from its description."""
    git.having(**ident_env(ident))(
        "-c", f"branch.{branch}.description={text}", "format-patch", "-q", "-n",
        "--cover-letter", "--cover-from-description=subject", "--zero-commit", "--full-index",
        "--no-signature", *options, "-o", out, f"{start}..{branch}")


def format_section(git, section, start, ident, out):
    text = measured.fill(section, cover(section))
    format_mails(git, start, f"export/{section}", text.removeprefix(RFC), ident, out / section,
                 f"--base={BASE_REF}", "-M", *["--rfc"] * text.startswith(RFC))
    box = [mail.read_bytes() for mail in mails_of(out, section)]
    (out / f"{section}.mbox").write_bytes(b"".join(box))


def put_in_place(new, out):
    """Mails, for those that were there before, unless one is signed."""
    for mail in sorted(new.rglob("*.patch")):
        if re.search(rb"^Signed-off-by:", mail.read_bytes(), re.M | re.I):
            raise Failure(f"{mail.name} would carry a Signed-off-by: whoever sends the series "
                          "adds that; remove it from the message")
    remove(out)
    new.rename(out)
    step(f"{shown(out)}: {len(list(out.rglob('*.patch')))} mails")


# A time, and what it is the difference of, as somebody typed it: it ages.
TYPED = re.compile(r"\d ns (less|more|per I/O)")


def export_sections(git, series, commits, ident, out):
    for subject, body in map(git.message, commits):
        if found := TYPED.search(body):
            raise Failure(f"the message of '{subject}' has a figure that was typed, "
                          f"'{found[0]}': have a line '@figures LOAD...' instead")
    tip, sections = git.ref(BASE_REF), list(series.sections)
    for section in sections:
        applies_on(section, sections)  # complains of a cover that does not say
        start = tip
        for entry, commit in zip(series.entries, commits):
            tip = signed(commit, ident, git, tip) if entry.section == section else tip
        if tip != start:
            git("update-ref", f"refs/heads/export/{section}", tip)
            format_section(git, section, start, ident, out)


def current_commits(git):
    """The commits of the series, which the tree must have."""
    series = load_series(git)
    base = git.ref(BASE_REF)
    commits = Builder(git, base).commits(series.entries)
    if [base, *commits][-1] != git.ref(MADE):
        raise Failure(f"{shown(env.TREE)} is older than the series; first: make tree")
    return series, commits


def cmd_export(_args):
    git, out, ident = open_tree(), env.OUTPUT, os.environ.get("FROM") or AUTHOR
    series, commits = current_commits(git)
    try:
        with tempfile.TemporaryDirectory(dir=env.BUILD, prefix="export-") as new:
            new = Path(new, "mails")
            export_sections(git, series, commits, ident, new)
            put_in_place(new, out)
    finally:
        for ref in git.refs("refs/heads/export/"):
            git("update-ref", "-d", ref)


# --- on other trees ----------------------------------------------------------

def fill(clone, files):
    """A commit of these files alone, checked out: git am writes the index anew for
    each mail, and that of all of the kernel's files takes it a second."""
    clone.add(files)
    commit = clone.commit(clone.get("write-tree"), "what the series touches")
    clone("reset", "-q", "--hard", commit)
    return commit


def mails_of(out, section):
    box = sorted(path for path in (out / section).glob("*.patch")
                 if not path.name.startswith("0000-"))
    if not box:
        raise Failure(f"no mails in {shown(out / section)}; first: make series")
    return box


def refused(clone, box):
    """The first mail that does not apply, and git's reason, or None."""
    for mail in box:
        try:
            clone("am", "-q", "--whitespace=nowarn", mail)
        except GitError as error:
            clone("am", "--abort")
            lines = [line for line in str(error).splitlines() if line.startswith("error: ")]
            return f"{mail.parent.name}/{mail.name}: {'; '.join(lines) or error}"
    return None


def stacks(out, sections):
    """[(what, mails)]: each section on what its cover says."""
    found = []
    for section in sections:
        below, end = applies_on(section, sections)
        box = mails_of(out, section)
        found.append((section, [mail for name in below for mail in mails_of(out, name)] + box))
        found += [(f"{section}/{mail.name} alone", [mail]) for mail in box[:end]]
    return found


def try_stacks(clone, start, tried):
    """(what, why git am refuses it or None) of each, with the clone as it then is."""
    made = {(): start}                  # {mails: the commit that they make}
    for what, box in tried:
        known = max((mails for mails in made if tuple(box[:len(mails)]) == mails), key=len)
        clone("reset", "-q", "--hard", made[known])
        why = refused(clone, box[len(known):])
        if not why:
            made[tuple(box)] = clone.ref("HEAD")
        yield what, why


def compare(git, clone, start, tip, paths):
    """What the mails do not carry as the tree has it."""
    mailed, made = clone.files("HEAD", paths), git.files(tip, paths)
    wrong = [f"{path} differs" for path in paths if mailed.get(path) != made.get(path)]
    said, meant = clone.commits(start, "HEAD"), git.commits(BASE_REF, tip)
    if len(said) != len(meant):
        wrong.append(f"{len(said)} mails for {len(meant)} patches")
    for one, other in zip(said, meant):
        if clone.message(one) != measured.fill_message(git, other):
            wrong.append(f"the message of '{git.message(other)[0]}' differs")
    return wrong


def publish_stack(git, section, files, paths):
    """A commit of all of the kernel with the section, for who builds it."""
    git = git.having(GIT_INDEX_FILE=str(git.dir / "plug-policy" / "index"))
    git("read-tree", BASE_REF)
    git.add({path: files.get(path, ("0", "0" * 40)) for path in paths})
    commit = git.commit(git.get("write-tree"), f"section {section}", git.ref(BASE_REF))
    git("update-ref", f"{STACKS}{section}", commit)


def cmd_verify(_args):
    git, out = open_tree(), env.OUTPUT
    tip, series = git.ref(MADE), parse_series((env.PATCHES / "series").read_text())
    sections = [s for s in series.sections if any(e.section == s for e in series.entries)]
    paths = git.changed(BASE_REF, tip)
    for ref in git.refs(STACKS):
        git("update-ref", "-d", ref)
    with tempfile.TemporaryDirectory(dir=env.BUILD, prefix="verify-") as tmp:
        # What it makes is the tree's: of that, stacks are published.
        clone = new_repository(Path(tmp) / "linux", "mails").having(
            GIT_OBJECT_DIRECTORY=str(git.dir / "objects"))
        start = fill(clone, git.files(BASE_REF, paths))
        tried = stacks(out, sections)
        for what, why in try_stacks(clone, start, tried):
            if why:
                raise Failure(f"git am of {what} on what its cover says: {why}")
            if what in sections:
                publish_stack(git, what, clone.files("HEAD", paths), paths)
        clone("reset", "-q", "--hard", start)
        box = [mail for section in sections for mail in mails_of(out, section)]
        why = refused(clone, box)
        if why:
            raise Failure(f"git am of all: {why}")
        wrong = compare(git, clone, start, tip, paths)
    if wrong:
        raise Failure("the exported mails do not make the tree: " + "; ".join(wrong))
    step(f"ok: git am of {len(box)} mails makes the tree of the series; each section applies on "
         f"what its cover says ({len(tried)} stacks)")
