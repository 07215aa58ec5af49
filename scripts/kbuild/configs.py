# SPDX-License-Identifier: GPL-2.0
"""A configuration that is only compiled, in an output directory of its own:
what each_commit.py builds at every commit, and matrix.py at the last.
"""
import re
import shutil
import subprocess
import time
from pathlib import Path

from scripts import common, kernel
from scripts.kernel import git

# The directories with hooks.
DIRECTORIES = ["block/", "drivers/nvme/host/", "io_uring/"]
# The one file of kernel/sched that knows plugs.
OBJECTS = ["kernel/sched/core.o"]

# Options that the tests do not need, but whose code has hooks.
WIDER = dict.fromkeys(["CGROUPS", "BLK_CGROUP", "BLK_WBT", "BLK_DEV_INTEGRITY"], "y")

# tinyconfig switches off the menu with the tests of lib/.
TESTS = {"KUNIT": "y", "RUNTIME_TESTING_MENU": "y"}


def alone(name):
    """Two runs would pull the tree from under each other's feet."""
    return common.locked(f"{kernel.BUILD}/.lock-{name}",
                         kernel.BuildError(f"another {name} is running"))


def told(report, check, what, find):
    """A result: whether a check finds nothing. What it breaks off with is a finding."""
    start = time.monotonic()
    try:
        found = find()
    except kernel.BuildError as error:
        found = [str(error)]
    return report.check(not found, f"{check}, {time.monotonic() - start:.0f} s: {what}",
                        "\n".join(found))


class Series:
    """Commits, and what they change.

    commits: of base..tip; ends: the last ones of each section; files: {path:
    "A" or "M"} of what the tip has and the base has not so.
    """

    def __init__(self, tip):
        self.base = git("rev-parse", "base^{commit}")
        self.tip = git("rev-parse", "--verify", f"{tip}^{{commit}}")
        self.commits = git("rev-list", "--reverse", "--first-parent",
                           f"{self.base}..{self.tip}").split()
        self.ends = {self.tip, *git("for-each-ref", "--format=%(objectname)",
                                    "refs/tags/section/").split()}
        rows = git("diff", "--no-renames", "--diff-filter=AM", "--name-status",
                   self.base, self.tip).splitlines()
        self.files = dict(reversed(row.split("\t")) for row in rows)

    def options(self):
        """The options that the series adds."""
        return own_options(self.files, lambda path: git(
            "diff", self.base, self.tip, "--", path))


def fragment(options):
    return "".join(f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n"
                   for name, value in options.items())


def kconfigs(changed):
    return [path for path in changed
            if Path(path).name.startswith("Kconfig") and not path.startswith("tools/")]


def own_options(changed, diff):
    """The options that the series adds. diff(path): what it does to a file"""
    return sorted(name for path in kconfigs(changed)
                  for name in re.findall(r"^\+config (\w+)$", diff(path), re.M))


def own_objects(changed):
    return sorted(f"{path[:-1]}o" for path in changed
                  if path.endswith(".c") and not path.startswith(("tools/", *DIRECTORIES)))


class Config:
    """kernel.config and a fragment, built by one compiler in tree/out.

    what: how messages name it; text: the fragment; objects: what to build
    besides DIRECTORIES and OBJECTS; args: for make.
    """

    def __init__(self, what, tree, out, text, objects, cc="gcc", args=()):
        self.what = what
        self.tree = Path(tree)
        self.out = out
        self.path = self.tree / out
        self.cc = cc
        self.args = list(args)
        self.others = OBJECTS + objects
        self.version = kernel.run([cc, "--version"], cc)[0]
        self.text = Path(kernel.CONFIG).read_text(encoding="ascii") + text

    def command(self, *args):
        return kernel.make_command(str(self.tree), self.out, *self.args, *args, compiler=self.cc)

    def make(self, *args):
        return kernel.run(self.command(*args), self.what)

    def configure(self, kconfigs, wanted):
        """Take the options, if the text or the files named kconfigs changed.

        Whatever the tree does not have is dropped, but for wanted.
        """
        texts = [(self.tree / name).read_text(encoding="utf-8") for name in kconfigs
                 if (self.tree / name).exists()]
        key = common.digest(self.text, self.version, texts)
        stamp = self.path / ".configs"
        if kernel.is_stamped(stamp, key):
            return
        self.merge()
        kernel.quiet(self.command("olddefconfig"), "olddefconfig")
        have = set(re.findall(r"^config (\w+)$", "\n".join(texts), re.M))
        # nothing is compiled that was not asked for
        kernel.check_config(self.path / ".config", {
            f"CONFIG_{name}": value for name, value in wanted.items()
            if name in have or not texts}, [])
        stamp.write_text(key, encoding="ascii")

    def merge(self):
        """.config: tinyconfig, which is the same at all commits, and ours."""
        merged = self.path / f".merged-{common.digest(self.text)}"
        config = self.path / ".config"
        if not merged.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            ours = self.path / "ours.config"
            ours.write_text(self.text, encoding="ascii")
            kernel.merge_config(self.command, self.tree, self.path, [ours])
            config.replace(merged)
        shutil.copyfile(merged, config)

    def targets(self, tests):
        """What there is to build in the tree as it is."""
        return [name for name in DIRECTORIES if (self.tree / name).exists()] + [
            name for name in self.others if (tests or "/tests/" not in name)
            and (self.tree / f"{name[:-1]}c").exists()]

    def built(self):
        """The object files of these that there are, and of which the tree still has
        the source."""
        found = [self.path / name for name in self.others if (self.path / name).exists()]
        for directory in DIRECTORIES:
            found += (self.path / directory).rglob("*.o")
        return [path for path in found if any(
            (self.tree / path.relative_to(self.path)).with_suffix(suffix).exists()
            for suffix in (".c", ".S"))]

    def wipe(self):
        for path in self.built():
            path.unlink()

    def symbols(self):
        """({undefined symbol: object}, {defined symbols}) of what was built."""
        return parse_nm(subprocess.run(
            ["nm", "-o", *self.built()], text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout, self.path)


def parse_nm(text, top):
    """({symbol that none defines: object below top}, {symbols defined}) of
    what nm -o says of some objects."""
    wants, defined = {}, set()
    for line in text.splitlines():
        where, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        if kind == "U":
            wants[name] = str(Path(where).relative_to(top))
        else:
            defined.add(name)
    return {name: where for name, where in wants.items() if name not in defined}, defined
