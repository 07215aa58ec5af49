# SPDX-License-Identifier: GPL-2.0
"""export: the series as mails, a directory and an mbox per section; verify: back
again, each section on as little as its cover says that it needs."""

import re
import tempfile
from pathlib import Path

from . import measured
from .build import Builder
from .env import BASE, BUILD, PATCHES, ROOT, STACKS, TREE, remove, say, shown, step
from .files import load_series
from .git import (AUTHOR, Failure, Git, GitError, clean_env, ident_env, kernel_version, run_git,
                  split_ident)
from .tree import BASE_REF, MADE, made_series, open_tree


def check_output(out):
    """Only what an export left is ever replaced."""
    for path in out.rglob("*") if out.exists() else ():
        if not path.is_dir() and path.suffix not in (".patch", ".mbox"):
            raise Failure(f"{out} holds {path.name}, which is no export; choose another --out")


def signed(commit_id, ident, git, parent):
    """The commit once more, as the person who sends it."""
    subject, body = git.message(commit_id)
    return git.commit(git.tree_of(commit_id), f"{subject}\n\n{body}".strip(), parent, ident)


def cover(section):
    file = PATCHES / f"{section}.cover"
    try:
        text = file.read_text().strip()
    except OSError:
        raise Failure(f"{shown(file)} is missing: the cover letter, its first line the "
                      "subject") from None
    subject, _, body = text.partition("\n")
    return f"{subject}\n\n{body.strip(chr(10))}\n"


# Begins the subject of a cover whose mails ask for comments
RFC = "[RFC] "

# What a cover says of a section that needs no other one, and of one whose mails
# need not even each other.
PRISTINE = f"Linux {BASE}"
EACH_ALONE = f"{PRISTINE}, each mail alone"


def applies_on(section):
    """What the cover of a section says that it is applied on."""
    found = re.findall(r"^Applies on: (.*)$", cover(section), re.M)
    if len(found) != 1:
        raise Failure(f"{section}.cover: wanted is one line 'Applies on: <section>, ...', "
                      f"'Applies on: {PRISTINE}' or 'Applies on: {EACH_ALONE}'")
    return found[0]


def needs(section, sections):
    """The sections that this one is applied on."""
    said = applies_on(section)
    if said in (PRISTINE, EACH_ALONE):
        return []
    names = [name.strip() for name in said.split(",")]
    earlier = sections[:sections.index(section)]
    unknown = [name for name in names if name not in earlier]
    if unknown:
        raise Failure(f"{section}.cover: applies on '{unknown[0]}', which is no earlier section; "
                      f"there are: {', '.join(earlier)}")
    return [name for name in earlier if name in names]


def write_mbox(out, section):
    """All mails of a section but for the cover, as git am takes them."""
    box = [mail.read_bytes() for mail in mails_of(out, section)]
    (out / f"{section}.mbox").write_bytes(b"".join(box))


def format_section(git, section, start, ident, out):
    """Mails of branch export/<section>; git takes the cover from the branch."""
    branch, text = f"export/{section}", measured.fill(section, cover(section))
    number = git.env["GIT_CONFIG_COUNT"]
    sender = git.having(**ident_env(ident), **{
        "GIT_CONFIG_COUNT": str(int(number) + 1),
        f"GIT_CONFIG_KEY_{number}": f"branch.{branch}.description",
        f"GIT_CONFIG_VALUE_{number}": text.removeprefix(RFC)})
    sender("format-patch", "-q", "-n", "--cover-letter", "--cover-from-description=subject",
           f"--base={BASE_REF}", "--zero-commit", "--full-index", "--no-signature", "-M",
           *["--rfc"] * text.startswith(RFC), "-o", out / section, f"{start}..{branch}")


def check_signatures(out):
    for mail in sorted(out.rglob("*.patch")):
        if re.search(rb"^Signed-off-by:", mail.read_bytes(), re.M | re.I):
            raise Failure(f"{mail.name} would carry a Signed-off-by: whoever sends the series "
                          "adds that; remove it from the message")


def export_sections(git, series, commits, ident, out):
    tip = git.ref(BASE_REF)
    for section in series.sections:
        needs(section, series.sections)  # complains of a cover that does not say
        start = tip
        for entry, commit in zip(series.entries, commits):
            tip = signed(commit, ident, git, tip) if entry.section == section else tip
        if tip != start:
            git("update-ref", f"refs/heads/export/{section}", tip)
            format_section(git, section, start, ident, out)
            write_mbox(out, section)


def current_commits(git):
    """The commits of the series, which the tree must have."""
    series = load_series(git, ROOT, PATCHES)
    base = git.ref(BASE_REF)
    commits = Builder(git, base).commits(series.entries)
    if (commits[-1] if commits else base) != git.ref(MADE):
        raise Failure(f"{shown(TREE)} is older than the series; first: make tree")
    return series, commits


def cmd_export(args):
    git, out, ident = open_tree(), Path(args.out).resolve(), args.sender or AUTHOR
    split_ident(ident)
    check_output(out)
    series, commits = current_commits(git)
    new = out.with_name(out.name + ".new")
    remove(new)
    new.mkdir(parents=True)
    try:
        export_sections(git, series, commits, ident, new)
        check_signatures(new)
        remove(out)
        new.rename(out)
    finally:
        remove(new)
        for ref in git.refs("refs/heads/export/"):
            git("update-ref", "-d", ref)
    step(f"{shown(out)}: {len(list(out.rglob('*.patch')))} mails")


# --- verify ------------------------------------------------------------------

def pristine(git, base, tip, where):
    """A repository at the base with only those files that the series touches."""
    run_git(["clone", "-q", "--shared", "--no-checkout", git.top, where], clean_env())
    clone = Git(where)
    paths = [re.sub(r"([\\*?\[])", r"\\\1", path) for path in git.changed(base, tip)]
    (clone.dir / "info" / "sparse-checkout").write_text("".join(f"/{path}\n" for path in paths))
    clone("config", "core.sparseCheckout", "true")
    clone("update-ref", "--no-deref", "HEAD", base)
    clone("read-tree", "-m", "-u", base)
    return clone


def mails_of(out, section):
    box = sorted(path for path in (out / section).glob("*.patch")
                 if not path.name.startswith("0000-"))
    if not box:
        raise Failure(f"no mails in {shown(out / section)}; first: make series")
    return box


def am(clone, box, what):
    try:
        clone("am", "-q", "--whitespace=nowarn", *box)
    except GitError as error:
        raise Failure(f"git am of {what}: {error}") from None
    return len(box)


def compare(clone, base, tip):
    """What the mails do not carry as the tree has it."""
    wrong = [f"{path} differs" for path in clone.changed("HEAD", tip)]
    mailed, made = clone.commits(base, "HEAD"), clone.commits(base, tip)
    if len(mailed) != len(made):
        wrong.append(f"{len(mailed)} mails for {len(made)} patches")
    for one, other in zip(mailed, made):
        if clone.message(one) != clone.message(other):
            wrong.append(f"the message of '{clone.message(other)[0]}' differs")
    return wrong


def stacks(out, sections):
    """[(what, mails)]: each section on what its cover says."""
    found = []
    for section in sections:
        below = needs(section, sections)
        box = mails_of(out, section)
        found.append((section, [mail for name in below for mail in mails_of(out, name)] + box))
        if applies_on(section) == EACH_ALONE:
            found += [(f"{section}/{mail.name} alone", [mail]) for mail in box]
    return found


def take_up(clone, made, box):
    """Be where the longest stack ended that begins a stack of mails; those left.
    made: {mails: the commit that they make}"""
    known = max((mails for mails in made if tuple(box[:len(mails)]) == mails), key=len)
    clone("reset", "-q", "--hard", made[known])
    return box[len(known):]


def used_sections(series):
    return [s for s in series.sections if any(e.section == s for e in series.entries)]


def cmd_verify(args):
    git, out = open_tree(), Path(args.out).resolve()
    base, tip = git.ref(BASE_REF), git.ref(MADE)
    sections = used_sections(made_series(git))
    for ref in git.refs(STACKS):
        git("update-ref", "-d", ref)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="verify-") as tmp:
        clone = pristine(git, base, tip, Path(tmp) / "linux")
        tried, made = stacks(out, sections), {(): base}
        for what, box in tried:
            am(clone, take_up(clone, made, box), f"{what} on what its cover says")
            made[tuple(box)] = clone.ref("HEAD")
            if what in sections:
                clone("push", "-q", "-f", git.top, f"HEAD:{STACKS}{what}")
        clone("reset", "-q", "--hard", base)
        count = sum(am(clone, mails_of(out, section), section) for section in sections)
        wrong = compare(clone, base, tip)
    if wrong:
        raise Failure("the exported mails do not make the tree: " + "; ".join(wrong))
    step(f"ok: git am of {count} mails makes the tree of the series; each section applies on what "
         f"its cover says ({len(tried)} stacks)")


# --- on another tree ---------------------------------------------------------

def foreign(git, paths, onto, where):
    """A repository of those files of another tree that the series touches."""
    where.mkdir()
    run_git(["init", "-q", where], clean_env())
    clone = Git(where)
    for path in paths:
        if (onto / path).is_file():
            (where / path).parent.mkdir(parents=True, exist_ok=True)
            (where / path).write_bytes((onto / path).read_bytes())
    clone("add", "-A", "-f")
    clone("update-ref", "HEAD", clone.commit(clone.get("write-tree"), f"files of {onto}"))
    return clone


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


def cmd_onto(args):
    """Says which stacks another tree takes; the failures are the result."""
    git, out, onto = open_tree(), Path(args.out).resolve(), Path(args.onto).resolve()
    _, full = kernel_version(onto)
    paths = git.changed(git.ref(BASE_REF), git.ref(MADE))
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="onto-") as tmp:
        clone = foreign(git, paths, onto, Path(tmp) / "linux")
        made, bad = {(): clone.ref("HEAD")}, 0
        for what, box in stacks(out, used_sections(made_series(git))):
            why = refused(clone, take_up(clone, made, box))
            say(f"{'no' if why else 'ok'}  {what}" + (f": {why}" if why else ""))
            if why:
                bad += 1
            else:
                made[tuple(box)] = clone.ref("HEAD")
    if bad:
        raise Failure(f"{bad} stacks do not apply to Linux {full} in {onto}")
    step(f"ok: all apply to Linux {full} in {onto}")
