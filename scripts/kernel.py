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

import common
import seed
from serieslib import env

KVER = env.BASE
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = str(env.BUILD)
CACHE = str(env.TOP / "cache")
TREE = str(env.TREE)
BASE = TREE + "-base"
QEMU = os.path.join(ROOT, "tools/testing/selftests/block-plug/qemu")
CONFIG = os.path.join(QEMU, "kernel.config")
DEBUG = os.path.join(QEMU, "debug.config")
KCSAN = os.path.join(QEMU, "kcsan.config")
TORTURE = os.path.join(QEMU, "torture.config")
TRACE = os.path.join(QEMU, "trace.config")
OFF = os.path.join(BUILD, "off.config")
SELFTESTS = os.path.dirname(QEMU)
MODEL = os.path.join(SELFTESTS, "ssd_model")
BASELINES = os.path.join(SELFTESTS, "bench/baselines")
NATIVE = os.path.join(SELFTESTS, "bench/native.config")

# The sections before the policy.
BATCHING = TREE + "-batching"

# Unpatched, but for what a baseline of the benchmarks takes away.
NOPLUG = TREE + "-noplug"
RFCERA = TREE + "-rfcera"
DELAY = TREE + "-delay"

# Options that tests under User Mode Linux need
UMLTEST = os.path.join(QEMU, "uml.config")
KUNIT = [os.path.join(ROOT, "block", name) for name in (
    ".kunitconfig", "tests/plug_policy.kunitconfig")]

# The directories with the hooks, and the users of struct blk_plug outside.
HOOKED = ["block/", "drivers/nvme/host/", "io_uring/", "kernel/sched/"]

BOOTABLE = ["bzImage", "modules"]

# A process of the host: User Mode Linux. The one for tests of what is right.
PROCESS = ["linux"]
UML = "uml-test"

# name: (source tree, output directory, config fragments, targets)
VARIANTS = {
    "patched": (TREE, "o-kernel", [CONFIG], BOOTABLE),
    "debug": (TREE, "o-debug", [CONFIG, TORTURE, DEBUG], BOOTABLE),
    "kcsan": (TREE, "o-kcsan", [CONFIG, TORTURE, KCSAN], BOOTABLE),
    "off": (TREE, "o-off", [CONFIG, OFF], HOOKED),
    "trace": (TREE, "o-trace", [CONFIG, TRACE], BOOTABLE),
    "base": (BASE, "o-kernel", [CONFIG], BOOTABLE),
    "base-trace": (BASE, "o-trace", [CONFIG, TRACE], BOOTABLE),
    "batching": (BATCHING, "o-kernel", [CONFIG], BOOTABLE),
    "batching-off": (BATCHING, "o-off", [CONFIG, OFF], HOOKED),
    "noplug": (NOPLUG, "o-kernel", [CONFIG], BOOTABLE),
    "rfcera": (RFCERA, "o-kernel", [CONFIG], BOOTABLE),
    "uml": (TREE, "o-uml", [NATIVE], PROCESS),
    "uml-base": (BASE, "o-uml", [NATIVE], PROCESS),
    "uml-batching": (BATCHING, "o-uml", [NATIVE, OFF], PROCESS),
    "uml-delay": (DELAY, "o-umltest", [NATIVE, UMLTEST, *KUNIT], PROCESS),
    UML: (TREE, "o-umltest", [NATIVE, UMLTEST, *KUNIT], PROCESS),
}

# What a first build starts from, if that is there: few objects differ.
SEEDS = {"base": "patched", "batching": "patched", "off": "patched",
         "batching-off": "batching", "uml-delay": UML}

# The kernels at the ends of sections, which make figures compares: they are few,
# and take turns in one tree.
SECTIONS = TREE + "-sections"

# variant: the commit of the series that it is built of
COMMITS = dict.fromkeys(["batching", "batching-off", "uml-batching"],
                        "refs/tags/section/counters")


def add_section(name):
    """Variants of the kernel at the end of a section; the bootable one."""
    variant = "at-" + name
    VARIANTS[variant] = (SECTIONS, "o-kernel-" + name, [CONFIG], BOOTABLE)
    VARIANTS["uml-" + variant] = (SECTIONS, "o-uml-" + name, [NATIVE], PROCESS)
    COMMITS[variant] = COMMITS["uml-" + variant] = "refs/tags/section/" + name
    return variant


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

# Printed steps of a first build, for the estimate; later ones remember.
FIRST_BUILD_STEPS = 1750
FIRST_PROCESS_STEPS = 800


class BuildError(Exception):
    """A build failed; the message says what and where the log is."""


def output(variant):
    """Directory that a variant is built in."""
    tree, out, _, _ = VARIANTS[variant]
    return os.path.join(tree, out)


def image(variant):
    """The kernel image to boot, or the process to start."""
    is_process = VARIANTS[variant][3] == PROCESS
    return os.path.join(output(variant),
                        "linux" if is_process else "arch/x86/boot/bzImage")


def environment():
    """Environment for make: cached and repeatable."""
    env = dict(os.environ)
    env.pop("MAKEFLAGS", None)
    env.pop("MFLAGS", None)
    env.pop("KSRC", None)
    env.update({
        "CCACHE_DIR": os.path.join(CACHE, "ccache"),
        "CCACHE_NOHASHDIR": "1",
        # a miss then costs 5% instead of 25%
        "CCACHE_DEPEND": "1",
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
    tree, out, _, targets = VARIANTS[variant]
    if targets == PROCESS:
        args = ("ARCH=um", *args)
    return make_command(tree, out, *args,
                        compiler=COMPILERS.get(variant, "gcc"))


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
    with common.locked(os.path.join(BUILD, ".lock-" + os.path.basename(tree))):
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
    tree, _, fragments, _ = VARIANTS[variant]
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
    """What is being built, and how far it is."""

    def __init__(self, what, expected):
        self.what = what
        self.expected = expected
        self.steps = 0
        self.doing = "make"
        self.start = time.monotonic()

    def step(self, line):
        """Count one line of make's, if it is a step."""
        if common.STEP.match(line):
            self.steps += 1
            self.doing = " ".join(line.split())

    def text(self, seconds):
        """For the clock."""
        share = min(99, 100 * self.steps // max(1, self.expected))
        return "%s: %3d%% %s, %d s" % (self.what, share, self.doing, seconds)

    def done(self):
        """Say how long it took, if it took long enough to matter."""
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


def expected_steps(path, targets=None):
    """How many steps the last full build took."""
    try:
        with open(os.path.join(path, ".steps"), encoding="ascii") as steps:
            return int(steps.read())
    except (OSError, ValueError):
        return (FIRST_PROCESS_STEPS if targets == PROCESS
                else FIRST_BUILD_STEPS)


def remember_steps(path, steps):
    """Keep the number of steps, if this was more than a rebuild."""
    if steps > 1000:
        with open(os.path.join(path, ".steps"), "w", encoding="ascii") as out:
            out.write(str(steps))


def differing(tree, other):
    """Files in which two source trees differ, what nobody committed as well."""
    head = quiet(["git", "-C", tree, "rev-parse", "HEAD"], "git").strip()
    return {name for where in (tree, other) for name in quiet(
        ["git", "-C", where, "diff", "--name-only", head], "git").splitlines()}


def plant_seed(variant):
    """Start a first build from that of a tree which differs in few files."""
    tree, out, _, targets = VARIANTS[variant]
    near = SEEDS.get(variant)
    if not near or os.path.exists(output(variant)) \
            or not os.path.exists(image(near)):
        return
    build(near)
    with common.locked(os.path.join(BUILD, ".lock-" + near)):
        print("kernel %s: from %s" % (variant, near), flush=True)
        seed.plant(VARIANTS[near][0], tree, (VARIANTS[near][1], out),
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
    progress = Progress("kernel " + variant, expected_steps(path, targets))
    if run_make(variant_command(variant, *targets), log, progress):
        with open(log, encoding="utf-8") as text:
            tail = text.read()[-3000:]
        raise BuildError("%s\nkernel %s failed to build, see %s"
                         % (tail, variant, log))
    remember_steps(path, progress.steps)
    progress.done()
    return path


def module_source(source, where):
    """A directory of links to the sources of a module: make's argument that
    builds it there. Kernels before 6.13 do not know MO= for that."""
    os.makedirs(where, exist_ok=True)
    for path in glob.glob(source + "/*.[ch]") + [source + "/Makefile"]:
        link = os.path.join(where, os.path.basename(path))
        if not os.path.lexists(link):
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
