# SPDX-License-Identifier: GPL-2.0
"""git for the series: plumbing on one repository, and the import of a kernel
tree as its base commit.

Nothing here depends on the user's configuration or on the time of day, so the
same input gives the same hashes everywhere."""
import os
import re
import subprocess
from pathlib import Path

AUTHOR = "plug_policy series <plug-policy@example.invalid>"
DATE = "Thu, 1 Jan 2026 00:00:00 +0000"

# What a tree's own settings could otherwise change, and what git has from places
# besides the user's file, which clean_env() leaves out
CONFIG = {
    "core.excludesFile": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "format.signOff": "false",
    "gc.auto": "0",
    # The user's tree may belong to someone else; it is only read.
    "safe.directory": "*",
}


class Failure(Exception):
    """What was wrong, in words for the user."""


class GitError(Failure):
    """git failed; what it said."""


def decode(data):
    return data.decode("utf-8", "surrogateescape")


def encode(text):
    return text.encode("utf-8", "surrogateescape")


def split_ident(ident):
    match = re.fullmatch(r"\s*([^<>\n]*[^<>\s])\s*<([^<>\s]+@[^<>\s]+)>\s*", ident)
    if not match:
        raise Failure(f"not an author: '{ident}'; wanted: Name <mail@host>")
    return match.groups()


def ident_env(ident=AUTHOR):
    name, mail = split_ident(ident)
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", mail), ("DATE", DATE))}


def clean_env():
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", LC_ALL="C",
               GIT_LITERAL_PATHSPECS="1", GIT_OPTIONAL_LOCKS="0", GIT_PAGER="cat",
               GIT_CONFIG_COUNT=str(len(CONFIG)), **ident_env())
    for i, (key, value) in enumerate(CONFIG.items()):
        env[f"GIT_CONFIG_KEY_{i}"] = key
        env[f"GIT_CONFIG_VALUE_{i}"] = value
    return env


def run_git(args, env, cwd=None, stdin="", fine=(0,)):
    done = subprocess.run(["git", *map(str, args)], input=encode(stdin), cwd=cwd, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in fine:
        said = decode(done.stderr or done.stdout).strip()
        raise GitError(said or f"git {args[0]} failed ({done.returncode})")
    return decode(done.stdout)


def nul_list(text):
    return [name for name in text.split("\0") if name]


def nul_text(names):
    return "".join(f"{name}\0" for name in names)


class Git:
    """git in the work tree at `top`."""

    def __init__(self, top, **env):
        self.top = Path(top)
        self.dir = self.top / ".git"
        self.extra = env
        self.env = {**clean_env(), "GIT_DIR": str(self.dir), "GIT_WORK_TREE": str(top), **env}

    def __call__(self, *args, stdin=""):
        return run_git(args, self.env, self.env["GIT_WORK_TREE"], stdin)

    def having(self, **env):
        return Git(self.top, **{**self.extra, **env})

    def get(self, *args, stdin=""):
        return self(*args, stdin=stdin).strip()

    def ref(self, name):
        """The object a full name stands for, or None."""
        try:
            return self.get("rev-parse", "--verify", "--quiet", name)
        except GitError:
            return None

    def tree_of(self, commit):
        return self.get("rev-parse", f"{commit}^{{tree}}")

    def commits(self, old, new):
        return self.get("rev-list", "--reverse", f"{old}..{new}").split()

    def message(self, commit):
        """(subject, body)"""
        subject, _, body = self("show", "-s", "--format=%s%x00%b", commit).partition("\0")
        return subject, body.strip("\n")

    def commit(self, tree, message, parent=None, ident=AUTHOR):
        parents = ["-p", parent] if parent else []
        maker = self.having(**ident_env(ident))
        return maker.get("commit-tree", tree, *parents, stdin=message.rstrip("\n") + "\n")

    def files(self, commit, paths):
        """{path: (mode, blob)} of those paths which the commit has."""
        rows = nul_list(self("ls-tree", "-r", "-z", commit, "--", *sorted(paths))) if paths else ()
        found = {path: tuple(meta.split()[::2])
                 for meta, path in (row.split("\t", 1) for row in rows)}
        return {path: found[path] for path in paths if path in found}

    def add(self, files):
        """{path: (mode, blob)} to the index"""
        rows = (f"{mode} {blob}\t{path}" for path, (mode, blob) in files.items())
        self("update-index", "-z", "--index-info", stdin=nul_text(rows))

    def changed(self, old, new):
        return nul_list(self("diff-tree", "-r", "-z", "--no-renames", "--name-only", old, new))

    def refs(self, *prefixes):
        return self.get("for-each-ref", "--format=%(refname)", *prefixes).split()


def new_repository(top, branch):
    run_git(["init", "-q", "-b", branch, top], clean_env())
    return Git(top)


# --- kernel source -----------------------------------------------------------

def check_version(tree, wanted):
    """Of a kernel tree, as its Makefile has it: '7.3.4', if that is a '7.3'."""
    try:
        text = (Path(tree) / "Makefile").read_text(errors="replace")
    except OSError as error:
        raise Failure(f"{tree} is no kernel source tree: {error.strerror}: Makefile") from error
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)",
                             text, re.M))
    if not fields.get("VERSION") or not fields.get("PATCHLEVEL"):
        raise Failure(f"{tree} is no kernel source tree: its Makefile names no VERSION")
    found = f"{fields['VERSION']}.{fields['PATCHLEVEL']}"
    if found != wanted:
        raise Failure(f"{tree} is Linux {found}, wanted is {wanted}")
    sublevel = fields.get("SUBLEVEL", "0")
    return found + (f".{sublevel}" if sublevel not in ("", "0") else "") \
        + fields.get("EXTRAVERSION", "")


# Debian's package adds "/*" to the kernel's .gitignore and drops what excepts
# dot-files that belong to the kernel. In a tree that is to be worked in, git add
# would then take no new file.
DEBIAN_IGNORE = re.compile(r"(\n#)?\n# Debian packaging: ignore everything.*\Z", re.S)
DOT_FILES = (".clang-format", ".clippy.toml", ".cocciconfig", ".editorconfig",
             ".get_maintainer.ignore", ".gitattributes", ".gitignore", ".kunitconfig",
             ".mailmap", ".pylintrc", ".renames.txt", ".rustfmt.toml", ".yamllint")


def write_tree(git):
    """Of the index, with the kernel's own .gitignore in it."""
    if git("ls-files", "--", ".gitignore"):
        text = git("cat-file", "blob", ":.gitignore")
        if DEBIAN_IGNORE.search(text):
            kept = "".join(f"!{name}\n" for name in DOT_FILES)
            blob = git.get("hash-object", "-w", "--stdin",
                           stdin=DEBIAN_IGNORE.sub("\n\n" + kept, text))
            git("update-index", "--cacheinfo", f"100644,{blob},.gitignore")
    return git.get("write-tree")


def import_user_tree(git, ksrc):
    """The user's tree as a tree object, without what a build has left in it; ksrc is
    only read. The index is kept, so that only changed files are read the next time."""
    index = str(git.dir / "plug-policy" / "ksrc-index")
    git = git.having(GIT_WORK_TREE=str(ksrc), GIT_INDEX_FILE=index)
    if not (ksrc / ".git").exists():
        # what kbuild, too, takes for a tree that is not clean
        if (ksrc / ".config").exists() or (ksrc / "include/config").exists():
            raise Failure(f"{ksrc} has been built in, and without git nobody can tell what is "
                          "source: make mrproper there, or take a clean copy")
        return import_directory(git, ksrc)
    listed = run_git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                     clean_env(), ksrc)
    names = [name for name in dict.fromkeys(nul_list(listed))
             if os.path.islink(ksrc / name) or os.path.isfile(ksrc / name)]
    gone = set(nul_list(git("ls-files", "-z"))).difference(names)
    git("update-index", "-z", "--force-remove", "--stdin", stdin=nul_text(sorted(gone)))
    git("update-index", "-z", "--add", "--replace", "--stdin", stdin=nul_text(names))
    return write_tree(git)


def import_directory(git, where):
    """All of a pristine directory; its .gitignore rules are not asked."""
    git = git.having(GIT_WORK_TREE=str(where))
    git("add", "-A", "-f", ".")
    return write_tree(git)
