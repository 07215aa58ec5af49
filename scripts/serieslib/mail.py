# SPDX-License-Identifier: GPL-2.0
"""export: the series as mails, a directory per section; verify: back again."""

import re
import tempfile
from pathlib import Path

from .build import Builder
from .env import BUILD, PATCHES, ROOT, TREE, remove, shown, step
from .files import load_series
from .git import AUTHOR, Failure, Git, GitError, clean_env, ident_env, run_git, split_ident
from .tree import BASE_REF, MADE, made_series, open_tree


def check_output(out):
    """Only what an export left is ever replaced."""
    for path in out.rglob("*") if out.exists() else ():
        if not path.is_dir() and path.suffix != ".patch":
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


def format_section(git, section, start, ident, out):
    """Mails of branch export/<section>; git takes the cover from the branch."""
    branch = f"export/{section}"
    number = git.env["GIT_CONFIG_COUNT"]
    sender = git.having(**ident_env(ident), **{
        "GIT_CONFIG_COUNT": str(int(number) + 1),
        f"GIT_CONFIG_KEY_{number}": f"branch.{branch}.description",
        f"GIT_CONFIG_VALUE_{number}": cover(section)})
    sender("format-patch", "-q", "-n", "--cover-letter", "--cover-from-description=subject",
           f"--base={BASE_REF}", "--zero-commit", "--full-index", "--no-signature", "-M",
           "-o", out / section, f"{start}..{branch}")


def check_signatures(out):
    for mail in sorted(out.rglob("*.patch")):
        if re.search(rb"^Signed-off-by:", mail.read_bytes(), re.M | re.I):
            raise Failure(f"{mail.name} would carry a Signed-off-by: whoever sends the series "
                          "adds that; remove it from the message")


def export_sections(git, series, commits, ident, out):
    tip = git.ref(BASE_REF)
    for section in series.sections:
        start = tip
        for entry, commit in zip(series.entries, commits):
            tip = signed(commit, ident, git, tip) if entry.section == section else tip
        if tip != start:
            git("update-ref", f"refs/heads/export/{section}", tip)
            format_section(git, section, start, ident, out)


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


def am_section(clone, out, section):
    box = sorted(path for path in (out / section).glob("*.patch")
                 if not path.name.startswith("0000-"))
    if not box:
        raise Failure(f"no mails in {shown(out / section)}; first: make series")
    try:
        clone("am", "-q", "--whitespace=nowarn", *box)
    except GitError as error:
        raise Failure(f"git am of section {section}: {error}") from None
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


def cmd_verify(args):
    git, out = open_tree(), Path(args.out).resolve()
    base, tip = git.ref(BASE_REF), git.ref(MADE)
    series = made_series(git)
    used = [s for s in series.sections if any(e.section == s for e in series.entries)]
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="verify-") as tmp:
        clone = pristine(git, base, tip, Path(tmp) / "linux")
        count = sum(am_section(clone, out, section) for section in used)
        wrong = compare(clone, base, tip)
    if wrong:
        raise Failure("the exported mails do not make the tree: " + "; ".join(wrong))
    step(f"ok: git am of {count} mails makes the tree of the series")
