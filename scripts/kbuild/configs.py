# SPDX-License-Identifier: GPL-2.0
"""The configurations that each_commit.py compiles, and what it compiles of a series."""
import collections
import re
import shutil
import subprocess
from pathlib import Path

from scripts import common, kernel
from scripts.kernel import git

DIRECTORIES = [name for name in kernel.HOOKED if name.endswith("/")]
OBJECTS = [name for name in kernel.HOOKED if name not in DIRECTORIES]

# Options that the tests do not need, but whose code has hooks.
WIDER = dict.fromkeys(["CGROUPS", "BLK_CGROUP", "BLK_WBT", "BLK_DEV_INTEGRITY"], "y")

# tinyconfig switches off the menu with the tests of lib/.
TESTS = {"KUNIT": "y", "RUNTIME_TESTING_MENU": "y"}

CLANG = "clang-19"
# What ARCH=hexagon takes from the host, of which nothing here depends on it.
HEXAGON = ("ARCH=hexagon", "LD=ld", "AR=ar", "NM=nm", "OBJCOPY=objcopy")

NO_TRACING = {"FTRACE": "n", "FUNCTION_TRACER": "n", "FUNCTION_PROFILER": "n",
              "DYNAMIC_FTRACE": "n", "BLK_DEV_IO_TRACE": "n", "TRACEPOINTS": "n"}
NO_DEBUG_FS = {"DEBUG_FS": "n", "BLK_DEBUG_FS": "n", "BLK_PLUG_STAT": "n",
               "BLK_DEV_IO_TRACE": "n"}

# Where: at each commit, the last ones of sections, the last of all
EACH, ENDS, LAST = range(3)
Kind = collections.namedtuple("Kind", "where options compiler args", defaults=("gcc", ()))
OFF = {"BLK_PLUG_POLICY": "n", **WIDER}    # and with it all of the series

CONFIGS = {
    "on-gcc": Kind(EACH, {**TESTS, **WIDER}),
    "off-gcc": Kind(EACH, OFF),
    "on-clang": Kind(ENDS, {**TESTS, **WIDER}, CLANG),
    "off-clang": Kind(ENDS, OFF, CLANG),
    "i386": Kind(LAST, {**TESTS, "64BIT": "n"}, args=["ARCH=i386"]),
    "no-blk-debugfs": Kind(LAST, {"BLK_DEBUG_FS": "n", "BLK_PLUG_STAT": "n"}),
    "no-debugfs": Kind(LAST, {**NO_TRACING, **NO_DEBUG_FS}),
    "up": Kind(LAST, {**TESTS, "SMP": "n"}),
    "preempt-full": Kind(LAST, {"PREEMPT": "y", "PREEMPT_DYNAMIC": "n"}),
    # PREEMPT_NONE is for what cannot preempt at all; this has no PCI, thus no NVMe
    "hexagon": Kind(LAST, {"PREEMPT_NONE": "y", "BLK_DEV_NVME": "n", "64BIT": "n"}, CLANG,
                    HEXAGON),
    "no-iosched": Kind(LAST, {"MQ_IOSCHED_DEADLINE": "n", "MQ_IOSCHED_KYBER": "n"}),
    "no-nvme": Kind(LAST, {"BLK_DEV_NVME": "n"}),
    "no-tracing": Kind(LAST, NO_TRACING),
    "no-modules": Kind(LAST, {**TESTS, "MODULES": "n"}),
}


class Series:
    """Commits, and what they change.

    commits: of base..tip; ends: the last ones of each section; files: {path:
    "A" or "M"} of what the tip has and the base has not so."""

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
    """kernel.config and options of a row of CONFIGS, built in a directory of its own in
    the tree."""

    def __init__(self, name, tree, series):
        self.kind, self.series = CONFIGS[name], series
        self.what, self.tree, self.out = f"each-commit: {name}", Path(tree), f"o-{name}"
        self.path = self.tree / self.out
        self.others = OBJECTS + own_objects(series.files)
        self.kconfigs = kconfigs(series.files)
        self.version = kernel.run([self.kind.compiler, "--version"], self.kind.compiler)[0]
        self.tests = self.kind.options.get("KUNIT") == "y"
        on = self.kind.options.get("BLK_PLUG_POLICY", "y")
        self.ours = series.options()
        self.options = {**{option: on for option in self.ours
                           if self.tests or not option.endswith("_KUNIT_TEST")},
                        "KUNIT": "n", **self.kind.options}
        self.text = Path(kernel.CONFIG).read_text(encoding="ascii") + fragment(self.options)

    def command(self, *args):
        return kernel.make_command(str(self.tree), self.out, *self.kind.args, *args,
                                   compiler=self.kind.compiler)

    def make(self, *args):
        return kernel.run(self.command(*args), self.what)

    def configure(self):
        """Take the options, if they or Kconfig files of the series changed; without
        those of the series that the tree does not have yet."""
        texts = [(self.tree / name).read_text(encoding="utf-8") for name in self.kconfigs
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
            f"CONFIG_{name}": value for name, value in self.options.items()
            if name in have or name not in self.ours}, [])
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

    def targets(self):
        """What there is to build in the tree as it is."""
        return [name for name in DIRECTORIES if (self.tree / name).exists()] + [
            name for name in self.others if (self.tests or "/tests/" not in name)
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

    def undefined(self):
        """{undefined symbol: object} of what was built"""
        return parse_nm(subprocess.run(
            ["nm", "-o", *self.built()], text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout, self.path)


def parse_nm(text, top):
    """{symbol that none defines: object below top} of what nm -o says of some objects."""
    wants, defined = {}, set()
    for line in text.splitlines():
        where, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        if kind == "U":
            wants[name] = str(Path(where).relative_to(top))
        else:
            defined.add(name)
    return {name: where for name, where in wants.items() if name not in defined}
