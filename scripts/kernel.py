#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Configure and build the kernels that the tests boot.

Output directories lie directly below the source trees: kbuild then names all
sources relative to the tree, so that the compiler cache serves the patched and
the unpatched kernel alike.
"""
import argparse
import glob
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time

from scripts import ROOT
from scripts.kbuild import arch
from scripts import common
from scripts.kbuild import seed
from scripts.series import env

KVER = env.BASE
BUILD = arch.BUILD
CACHE = str(env.TOP / "cache")
TREE = str(env.TREE)
BASE = TREE + "-base"
QEMU = os.path.join(ROOT, "lab/qemu")
CONFIG = os.path.join(QEMU, "kernel.config")
DEBUG = os.path.join(QEMU, "debug.config")
KCSAN = os.path.join(QEMU, "kcsan.config")
TORTURE = os.path.join(QEMU, "torture.config")
TRACE = os.path.join(QEMU, "trace.config")
# Last of all: what other fragments want of a PC is not there.
PROCESSOR = [os.path.join(QEMU, "arm64.config")] if arch.IS_ARM64 else []
OFF = os.path.join(BUILD, "off.config")
SELFTESTS = os.path.join(ROOT, "tools/testing/selftests/block-plug")
MODEL = os.path.join(ROOT, "lab/ssd_model")
BASELINES = os.path.join(ROOT, "lab/bench/baselines")

# The sections before the policy.
BATCHING = TREE + "-batching"

# Unpatched, but for what a baseline of the benchmarks takes away.
NOPLUG = TREE + "-noplug"
RFCERA = TREE + "-rfcera"

# A kernel that is a process, User Mode Linux; and what its tests need
PROCESS_CONFIG = os.path.join(QEMU, "process.config")
UMLTEST = os.path.join(QEMU, "uml.config")
KUNITTEST = os.path.join(QEMU, "kunit.config")
KUNIT = [os.path.join(ROOT, "block", name) for name in (
    ".kunitconfig", "tests/plug_policy.kunitconfig")]

# The directories with the hooks, and the users of struct blk_plug outside.
HOOKED = ["block/", "drivers/nvme/host/", "io_uring/", "kernel/sched/"]

BOOTABLE = [os.path.basename(arch.IMAGE), "modules"]

# The kernel that is a process of the host, for tests of what is right.
PROCESS = ["linux"]
UML = "uml-test"

# name: (source tree, output directory, config fragments, targets)
VARIANTS = {
    "patched": (TREE, "o-kernel", [CONFIG], BOOTABLE),
    "debug": (TREE, "o-debug", [CONFIG, TORTURE, DEBUG], BOOTABLE),
    "kcsan": (TREE, "o-kcsan", [CONFIG, TORTURE, KCSAN], BOOTABLE),
    "torture": (TREE, "o-torture", [CONFIG, TORTURE], BOOTABLE),
    "off": (TREE, "o-off", [CONFIG, OFF], HOOKED),
    "trace": (TREE, "o-trace", [CONFIG, TRACE], BOOTABLE),
    "base": (BASE, "o-kernel", [CONFIG], BOOTABLE),
    "base-torture": (BASE, "o-torture", [CONFIG, TORTURE], BOOTABLE),
    "base-trace": (BASE, "o-trace", [CONFIG, TRACE], BOOTABLE),
    "batching": (BATCHING, "o-kernel", [CONFIG], BOOTABLE),
    "batching-off": (BATCHING, "o-off", [CONFIG, OFF], HOOKED),
    "noplug": (NOPLUG, "o-kernel", [CONFIG], BOOTABLE),
    "rfcera": (RFCERA, "o-kernel", [CONFIG], BOOTABLE),
    "kunit": (TREE, "o-kunit", [KUNITTEST, *KUNIT], BOOTABLE[:1]),
    UML: (TREE, "o-umltest", [PROCESS_CONFIG, UMLTEST, *KUNIT], PROCESS),
}

# What a first build starts from, if that is there: few objects differ.
SEEDS = {"base": "patched", "batching": "patched", "off": "patched",
         "base-torture": "torture", "batching-off": "batching"}

# The kernels of single sections: they are few, and take turns in one tree.
SECTIONS = TREE + "-sections"

# variant: the commit of the series that it is built of
COMMITS = dict.fromkeys(["batching", "batching-off"],
                        "refs/tags/section/counters")


def add_stack(name):
    """The kernel of a section on no more than its cover names, which `make
    series` has tried."""
    stacks = quiet(["git", "-C", TREE, "for-each-ref", env.STACKS,
                    "--format=%(refname:lstrip=2)"], "git").split()
    if name not in stacks:
        raise BuildError("no section '%s'; there are: %s"
                         % (name, " ".join(stacks)))
    variant = "stack-" + name
    VARIANTS[variant] = (SECTIONS, "o-" + variant, [CONFIG], BOOTABLE)
    COMMITS[variant] = env.STACKS + name
    SEEDS[variant] = "patched"
    return variant


# Who compiles what gcc does not.
COMPILERS = {"kcsan": "clang-19"}


class BuildError(Exception):
    """A build failed; the message says what and where the log is."""


def selftest_libraries():
    """Paths of what the kselftests source, as their Makefile finds it."""
    return sorted(glob.glob(os.path.join(SELFTESTS, "lib.sh"))
                  + glob.glob(os.path.join(SELFTESTS, "*_lib.sh")))


def output(variant):
    """Directory that a variant is built in."""
    tree, out, _, targets = VARIANTS[variant]
    return os.path.join(tree, out if targets == PROCESS else arch.output(out))


def fragments_of(variant):
    """The configuration fragments of a variant, the last one wins."""
    _, _, fragments, targets = VARIANTS[variant]
    return fragments + (PROCESSOR if targets != PROCESS else [])


def image(variant):
    """The kernel image to boot, or the process to start."""
    is_process = VARIANTS[variant][3] == PROCESS
    return os.path.join(output(variant),
                        "linux" if is_process else arch.IMAGE)


def environment():
    """Environment for make: cached and repeatable."""
    env = dict(os.environ)
    env.pop("MAKEFLAGS", None)
    env.pop("MFLAGS", None)
    env.pop("KSRC", None)
    env.pop("ARCH", None)       # kbuild is told, where it is not x86
    env.update({
        "CCACHE_DIR": os.path.join(CACHE, "ccache"),
        "CCACHE_NOHASHDIR": "1",
        # not CCACHE_DEPEND, though a miss then costs 5% instead of 25%: it does
        # not see .incbin, and puts another kernel into bzImage
        "CCACHE_MAXSIZE": "1G",
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
        "KBUILD_BUILD_USER": "plug_policy",
        "KBUILD_BUILD_HOST": "build",
        "KBUILD_BUILD_VERSION": "1",
        "LC_ALL": "C",
    })
    return env


def make_command(tree, out, *args, compiler="gcc"):
    """The make command line for an output directory below a tree."""
    jobs = "-j%d" % (os.cpu_count() or 1)
    return ["make", "-C", tree, "O=" + out, "CC=ccache " + compiler, jobs,
            *args]


def variant_command(variant, *args):
    """The make command line for a variant."""
    tree, _, _, targets = VARIANTS[variant]
    gcc = "gcc"
    if targets == PROCESS:
        args = ("ARCH=um", *args)
    else:
        args = (*arch.MAKE, *args)
        gcc = arch.CROSS + gcc
    return make_command(tree, os.path.basename(output(variant)), *args,
                        compiler=COMPILERS.get(variant, gcc))


def quiet(command, what):
    """Run a short command, show its output only if it fails."""
    done = subprocess.run(command, env=environment(), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise BuildError("%s failed:\n%s" % (what, done.stdout[-3000:]))
    return done.stdout


def ensure_checkout(tree, what):
    """Check a commit out beside the patched source; returns it."""
    head = quiet(["git", "-C", TREE, "rev-parse", what], "git").strip()
    name = os.path.basename(tree)
    if os.path.isdir(tree):
        is_head = quiet(["git", "-C", tree, "rev-parse", "HEAD"], "git").strip()
        if is_head != head:
            quiet(["git", "-C", tree, "checkout", "-q", "-f", "--detach", head],
                  "checkout of " + name)
        return head
    print("%s: checking out" % name, flush=True)
    quiet(["git", "-C", TREE, "worktree", "prune"], "git worktree")
    quiet(["git", "-C", TREE, "worktree", "add", "-q", "--detach", tree, head],
          "checkout of " + name)
    return head


def ensure_baseline(tree):
    """An unpatched tree with the one patch of its name applied."""
    head = ensure_checkout(tree, "base")
    patch = os.path.join(BASELINES, tree.rsplit("-", 1)[1] + ".patch")
    with open(patch, "rb") as text:
        wanted = "%s %s" % (head, hashlib.sha256(text.read()).hexdigest())
    stamp = os.path.join(tree, "o-baseline")
    if os.path.exists(stamp) and open(stamp, encoding="ascii").read() == wanted:
        return
    quiet(["git", "-C", tree, "checkout", "-q", "-f", "--detach", head],
          "checkout of the base commit")
    quiet(["git", "-C", tree, "apply", patch], "git apply " + patch)
    with open(stamp, "w", encoding="ascii") as out:
        out.write(wanted)


def ensure_tree(variant):
    """The source of a variant; those of several share it."""
    tree = VARIANTS[variant][0]
    with common.locked(str(env.BUILD / (".lock-" + os.path.basename(tree)))):
        if tree == BASE:
            ensure_checkout(tree, "base")
        elif variant in COMMITS:
            ensure_checkout(tree, COMMITS[variant])
        elif tree != TREE:
            ensure_baseline(tree)


def wanted_options(fragments):
    """The options that fragments set, the last one wins: {name: value}."""
    options = {}
    for fragment in fragments:
        with open(fragment, encoding="ascii") as lines:
            for line in lines:
                match = re.match(r"(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set",
                                 line)
                if match:
                    options[match[1] or match[3]] = match[2] or "n"
    return options


def check_config(path, options, known_missing):
    """Refuse to build a kernel that silently lacks what was asked for."""
    with open(path, encoding="utf-8") as lines:
        have = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", lines.read(), re.M))
    lost = [name for name, value in options.items()
            if have.get(name, "n") != value and name not in known_missing]
    if lost:
        raise BuildError("options that this kernel does not take: "
                         + " ".join(sorted(lost)))


def configure(variant):
    """tinyconfig plus the fragments, if they changed since the last time."""
    tree, fragments = VARIANTS[variant][0], fragments_of(variant)
    path = output(variant)
    os.makedirs(path, exist_ok=True)
    text = b"".join(open(name, "rb").read() for name in fragments)
    digest = hashlib.sha256(text).hexdigest()
    stamp = os.path.join(path, ".fragments")
    if os.path.exists(stamp) and open(stamp, encoding="ascii").read() == digest:
        return
    print("%s: configuring" % variant, flush=True)
    quiet(variant_command(variant, "tinyconfig"), "tinyconfig")
    quiet(["sh", os.path.join(tree, "scripts/kconfig/merge_config.sh"), "-m",
           "-O", path, os.path.join(path, ".config"), *fragments],
          "merge_config.sh")
    quiet(variant_command(variant, "olddefconfig"), "olddefconfig")
    lacks = []
    if tree != TREE:
        lacks.append("CONFIG_BLK_PLUG_POLICY")
        if tree != BATCHING:
            lacks += [name for name in wanted_options([*fragments, *KUNIT])
                      if "PLUG" in name or "KUNIT_TEST" in name]
    check_config(os.path.join(path, ".config"), wanted_options(fragments),
                 lacks)
    with open(stamp, "w", encoding="ascii") as out_file:
        out_file.write(digest)


class Progress:
    """What is being built, and how far it is.

    How many steps there are is known where this configuration, that is the
    .config in path, was built from nothing before.
    """

    def __init__(self, what, path):
        self.what = what
        with open(os.path.join(path, ".config"), "rb") as config:
            key = hashlib.sha256(config.read()).hexdigest()
        self.kept = os.path.join(CACHE, "steps", key[:16])
        # autoconf.h is there once it is configured, this once it is being built
        self.is_whole = not os.path.exists(
            os.path.join(path, "include/generated/bounds.h"))
        self.total = self.known() if self.is_whole else None
        self.steps = 0
        self.doing = "make"
        self.start = time.monotonic()

    def known(self):
        """How many steps the last build from nothing took."""
        try:
            with open(self.kept, encoding="ascii") as steps:
                return int(steps.read())
        except (OSError, ValueError):
            return None

    def step(self, line):
        """Count one line of make's, if it is a step."""
        if common.STEP.match(line):
            self.steps += 1
            self.doing = " ".join(line.split())

    def text(self, seconds):
        """For the clock."""
        of = " of %d" % self.total if self.total else ""
        return "%s: %d%s steps, %s, %d s" % (self.what, self.steps, of,
                                             self.doing, seconds)

    def done(self):
        """The build succeeded: remember it, say how long it took, if that was
        long enough to matter."""
        if self.is_whole:
            os.makedirs(os.path.dirname(self.kept), exist_ok=True)
            with open(self.kept, "w", encoding="ascii") as out:
                out.write("%d\n" % self.steps)
        seconds = time.monotonic() - self.start
        if seconds >= 5:
            print("%s: built in %d s" % (self.what, seconds), flush=True)


def run_make(command, log_name, progress):
    """Run make, log all it prints, feed the progress; its exit status."""
    with open(log_name, "w", encoding="utf-8") as log, \
            common.clock(progress.text):
        return common.run(
            command, lambda line: (log.write(line), progress.step(line)),
            env=environment())


def differing(tree, other):
    """Files in which two source trees differ, what nobody committed as well."""
    head = quiet(["git", "-C", tree, "rev-parse", "HEAD"], "git").strip()
    return {name for where in (tree, other) for name in quiet(
        ["git", "-C", where, "diff", "--name-only", head], "git").splitlines()}


def plant_seed(variant):
    """Start a first build from that of a tree which differs in few files."""
    tree, _, _, targets = VARIANTS[variant]
    near = SEEDS.get(variant)
    if not near or os.path.exists(output(variant)) \
            or not os.path.exists(image(near)):
        return
    build(near)
    with common.locked(os.path.join(BUILD, ".lock-" + near)):
        print("kernel %s: from %s" % (variant, near), flush=True)
        seed.plant(VARIANTS[near][0], tree,
                   [os.path.basename(output(name)) for name in (near, variant)],
                   differing(tree, VARIANTS[near][0]))
    if targets == HOOKED:       # which must hold their own objects, and no more
        for name in HOOKED:
            shutil.rmtree(os.path.join(output(variant), name))


def build(variant):
    """Build one variant, if need be; returns its output directory."""
    # two tests that want the same kernel must not build it twice at once
    with common.locked(os.path.join(BUILD, ".lock-" + variant)):
        return build_locked(variant)


def build_locked(variant):
    """The build itself."""
    tree, _, _, targets = VARIANTS[variant]
    if OFF in VARIANTS[variant][2]:
        with open(OFF, "w", encoding="ascii") as fragment:
            fragment.write("# CONFIG_BLK_PLUG_POLICY is not set\n"
                           "# CONFIG_BLK_PLUG_STAT is not set\n")
    ensure_tree(variant)
    plant_seed(variant)
    configure(variant)
    path = output(variant)
    log = os.path.join(BUILD, "kernel-%s.log" % variant)
    progress = Progress("kernel " + variant, path)
    if run_make(variant_command(variant, *targets), log, progress):
        with open(log, encoding="utf-8") as text:
            tail = text.read()[-3000:]
        raise BuildError("%s\nkernel %s failed to build, see %s"
                         % (tail, variant, log))
    progress.done()
    return path


def module_source(source, where):
    """A directory of links to the sources of a module: make's argument that
    builds it there. Kernels before 6.13 do not know MO= for that."""
    for path in (glob.glob(source + "/**/*.[ch]", recursive=True)
                 + [source + "/Makefile"]):
        link = os.path.join(where, os.path.relpath(path, source))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.exists(link):
            if os.path.lexists(link):   # the source was elsewhere
                os.unlink(link)
            os.symlink(path, link)
    return "M=" + where


def model(variant):
    """Build the model SSD for a kernel built already; the .ko files, in the
    order to load them."""
    where = os.path.join(output(variant), "model")
    with common.locked(os.path.join(BUILD, ".lock-model")):
        quiet(variant_command(variant, module_source(MODEL, where), "modules"),
              "ssd_model for the %s kernel" % variant)
    return [os.path.join(output(variant), "lib/kunit/kunit.ko")] + [
        os.path.join(where, name + ".ko")
        for name in ("ssd_model", "ssd_model_kunit")]


def xfs(variant):
    """Build XFS as a module, for a kernel built already, none of which has it:
    it would be a quarter of each.  The path of the .ko file."""
    where = os.path.join(output(variant), "xfs")
    with common.locked(os.path.join(BUILD, ".lock-xfs")), common.clock(
            lambda seconds: "XFS for the %s kernel, %d s" % (variant, seconds)):
        source = os.path.join(VARIANTS[variant][0], "fs/xfs")
        quiet(variant_command(variant, module_source(source, where),
                              "CONFIG_XFS_FS=m", "modules"),
              "XFS for the %s kernel" % variant)
    return os.path.join(where, "xfs.ko")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("variant", nargs="+", choices=sorted(VARIANTS))
    with common.program("kernel.py", BuildError,
                        advice="; run it again to go on"):
        for variant in parser.parse_args().variant:
            build(variant)


# Whoever imports this starts compilers and guests: end them, too.
signal.signal(signal.SIGTERM, signal.default_int_handler)

if __name__ == "__main__":
    main()
