#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compiles the last commit in the configurations that nothing else here builds.

W=1 of the directories with hooks and of what else the series changes: no message
that the unpatched tree does not draw in the same configuration, and no symbol
missing that another one defines. PREEMPT_NONE is only for architectures that cannot
preempt at all: hexagon, which clang knows, has 32 bits, and no PCI, thus no NVMe.
"""
import argparse
import functools
import os
import sys
from pathlib import Path

from scripts import common, kernel
from scripts.checks import c_style, tap
from scripts.kbuild.configs import (Config, Series, TESTS, WIDER, alone, fragment,
                                    own_objects, told)

OUT = os.path.join(kernel.BUILD, "matrix")

# What ARCH=hexagon takes from the host, of which nothing here depends on it.
HEXAGON = ("ARCH=hexagon", "LD=ld", "AR=ar", "NM=nm", "OBJCOPY=objcopy")

NO_TRACING = {"FTRACE": "n", "FUNCTION_TRACER": "n", "FUNCTION_PROFILER": "n",
              "DYNAMIC_FTRACE": "n", "BLK_DEV_IO_TRACE": "n",
              "TRACEPOINTS": "n"}
NO_DEBUG_FS = {"DEBUG_FS": "n", "BLK_DEBUG_FS": "n", "BLK_PLUG_STAT": "n",
               "BLK_DEV_IO_TRACE": "n"}


def row(about, cc="gcc", args=(), link=False, **options):
    """The series is on, unless options say otherwise. link: with --link vmlinux is made"""
    return about, {"BLK_PLUG_POLICY": "y", **options}, cc, args, link


ROWS = {
    "on": row("all of the series, no test"),
    "off": row("nothing of the series", link=True, BLK_PLUG_POLICY="n", BLK_PLUG_STAT="n"),
    "clang": row("clang instead of gcc, with tests", "clang-19", **TESTS),
    "tests": row("tests built in", **TESTS),
    "tests-modules": row("tests as modules, where they can be", **{**TESTS, "KUNIT": "m"}),
    "i386": row("32 bit, x86", args=["ARCH=i386"], link=True, **TESTS, **{"64BIT": "n"}),
    "no-blk-debugfs": row("debugfs, but not the block layer's", BLK_DEBUG_FS="n",
                          BLK_PLUG_STAT="n"),
    "no-debugfs": row("no debugfs", **{**NO_TRACING, **NO_DEBUG_FS}),
    "up": row("no SMP", SMP="n", **TESTS),
    "preempt-full": row("PREEMPT, not switchable", PREEMPT="y", PREEMPT_DYNAMIC="n"),
    "preempt-lazy": row("PREEMPT_LAZY, not switchable", PREEMPT_LAZY="y", PREEMPT_DYNAMIC="n"),
    "preempt-none": row("PREEMPT_NONE: hexagon, 32 bit, no NVMe", "clang-19", HEXAGON,
                        PREEMPT_NONE="y", BLK_DEV_NVME="n", **{"64BIT": "n"}),
    "no-iosched": row("no I/O scheduler", MQ_IOSCHED_DEADLINE="n", MQ_IOSCHED_KYBER="n"),
    "no-nvme": row("no NVMe", BLK_DEV_NVME="n"),
    "cgroup": row("cgroups, wbt, integrity", **WIDER),
    "no-tracing": row("no tracepoints", **NO_TRACING),
    "no-modules": row("no modules, tests built in", MODULES="n", **TESTS),
}


class Row:

    def __init__(self, name, series):
        self.name, self.series = name, series
        self.about, self.options, self.cc, self.args, self.link = ROWS[name]
        # another architecture has neither NVMe nor all of the symbols
        self.foreign = self.args == HEXAGON
        self.defined, self.undefined = set(), {}

    def config(self, tree, what):
        options = {**dict.fromkeys(self.series.options(), "y"), "KUNIT": "n", **self.options}
        return Config(f"matrix: {self.name}{what}", tree, f"o-matrix-{self.name}",
                      fragment(options), own_objects(self.series.files), self.cc, self.args)

    def wanted(self, base):
        ours = self.series.options()
        if base:
            return {name: value for name, value in self.options.items() if name not in ours}
        tests = [name for name in ours if name.endswith("_KUNIT_TEST")
                 and self.options.get("KUNIT") == "y"]
        return {**dict.fromkeys(tests, "y"), **self.options}

    def speak(self, tree, what, link):
        """Compile all of it: what is said, and what went wrong."""
        config = self.config(tree, what)
        config.configure([], self.wanted(bool(what)))
        # what is not compiled does not speak
        config.wipe()
        text, code = config.make("-k", "W=1", *config.targets("KUNIT" in self.options),
                                 *["vmlinux"] * link)
        Path(OUT, f"{self.name}{what.strip()}.log").write_text(text, encoding="utf-8")
        if not what:
            self.undefined, self.defined = config.symbols()
        return c_style.findings(text), text[-2000:] if code else ""

    def find(self, link):
        """What is wrong: in the unpatched tree, too, it is looked for if there is
        anything to compare."""
        found, wrong = self.speak(kernel.TREE, "", link)
        if found:
            kernel.ensure_checkout(kernel.BASE, "base")
            base, _ = self.speak(kernel.BASE, " base", False)
            found = c_style.added(found, base)
        return list(found) or ([wrong] if wrong else [])

    def missing(self, rows):
        """Symbols that only other configurations define."""
        if self.foreign:
            return []
        defined = set().union(*(row.defined for row in rows if not row.foreign))
        return [f"{where}: nothing defines {name}"
                for name, where in self.undefined.items() if name in defined]


def run(names, link):
    report, series = tap.Report(), Series("HEAD")
    rows = [Row(name, series) for name in names]
    for row in rows:
        print(f"# {row.name}: {row.about}", flush=True)
        told(report, row.name, row.about, functools.partial(row.find, link and row.link))
    for row in rows:
        lines = row.missing(rows)
        report.check(not lines, f"{row.name} misses no symbol of another", "\n".join(lines))
    report.exit()


def parse(args):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Configurations: " + " ".join(ROWS),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CONFIGURATION",
                        help="compile these only")
    parser.add_argument("--link", action="store_true",
                        help="make vmlinux of off and i386")
    args = parser.parse_args(args)
    for name in set(args.names).difference(ROWS):
        parser.error(f"no configuration '{name}'; there are: {' '.join(ROWS)}")
    return args


def main():
    args = parse(sys.argv[1:])
    os.makedirs(OUT, exist_ok=True)
    with common.program("matrix", kernel.BuildError,
                        advice="; run it again"), alone("matrix"):
        run(args.names or list(ROWS), args.link)


if __name__ == "__main__":
    main()
