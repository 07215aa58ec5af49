# SPDX-License-Identifier: GPL-2.0
"""Configure and build the kernels that the tests boot.

Output directories lie directly below the source trees: kbuild then names all
sources relative to the tree, so that the compiler cache serves the patched and
the unpatched kernel alike.
"""
import argparse
import functools
import glob
import os
import re
import shutil
import signal
import time
from pathlib import Path

from scripts import ROOT, common
from scripts.kbuild import arch
from scripts.series import env

KVER = env.BASE
BUILD = arch.BUILD
CACHE = str(env.TOP / "cache")
COMPILER = f"{ROOT}/scripts/kbuild/cc.sh"     # runs the one it is told
TREE = str(env.TREE)
BASE = f"{TREE}-base"
# The sections before the policy
BATCHING = f"{TREE}-batching"
# The kernels of single sections: they are few, and take turns in one tree.
SECTIONS = f"{TREE}-sections"
SELFTESTS = f"{ROOT}/tools/testing/selftests/block-plug"
MODEL = f"{ROOT}/lab/ssd_model"
BASELINES = f"{ROOT}/lab/bench/baselines"
QEMU = f"{ROOT}/lab/qemu"


def fragment(name):
    return f"{QEMU}/{name}.config"


CONFIG, TORTURE = map(fragment, ("kernel", "torture"))
# Last of all: what other fragments want of a PC is not there.
PROCESSOR = [fragment("arm64")] if arch.IS_ARM64 else []
OFF = f"{BUILD}/off.config"
# A kernel that is a process, User Mode Linux
PROCESS_CONFIG = fragment("process")
KUNIT = [f"{ROOT}/block/{name}" for name in (".kunitconfig", "tests/plug_policy.kunitconfig")]

# The directories with the hooks, and who else knows plugs.
HOOKED = ["block/", "drivers/nvme/host/", "io_uring/io_uring.o", "io_uring/rw.o",
          "kernel/sched/core.o"]
HOOKED_IN = sorted({os.path.dirname(name) for name in HOOKED})
# To be compared: gcc looks for functions that have the same code, and leaves these in
# an order that is not stable.
COMPARED = [*HOOKED, "KCFLAGS=-fno-ipa-icf"]
BOOTABLE = [os.path.basename(arch.IMAGE), "modules"]
# The kernel that is a process of the host, for tests of what is right.
PROCESS = ["linux"]
UML = "uml-test"

# name: (source tree, output directory, config fragments, targets); noplug and
# rfcera are unpatched, but for what a baseline of the benchmarks takes away.
VARIANTS = {
    "patched": (TREE, "o-kernel", [CONFIG], BOOTABLE),
    "debug": (TREE, "o-debug", [CONFIG, TORTURE, fragment("debug")], BOOTABLE),
    "kcsan": (TREE, "o-kcsan", [CONFIG, TORTURE, fragment("kcsan")], BOOTABLE),
    "torture": (TREE, "o-torture", [CONFIG, TORTURE], BOOTABLE),
    "off": (TREE, "o-off", [CONFIG, OFF], COMPARED),
    "hooks": (TREE, "o-hooks", [CONFIG], HOOKED),
    "base": (BASE, "o-kernel", [CONFIG], BOOTABLE),
    "base-torture": (BASE, "o-torture", [CONFIG, TORTURE], BOOTABLE),
    "batching": (BATCHING, "o-kernel", [CONFIG], BOOTABLE),
    "batching-off": (BATCHING, "o-off", [CONFIG, OFF], COMPARED),
    "noplug": (f"{TREE}-noplug", "o-kernel", [CONFIG], BOOTABLE),
    "rfcera": (f"{TREE}-rfcera", "o-kernel", [CONFIG], BOOTABLE),
    "kunit": (TREE, "o-kunit", [fragment("kunit"), *KUNIT], ["Image.gz"]),   # arm64
    UML: (TREE, "o-umltest", [PROCESS_CONFIG, fragment("uml"), *KUNIT], PROCESS),
}

# What a first build starts from, if that is there: few objects differ.
SEEDS = {"base": "patched", "batching": "patched", "off": "patched",
         "base-torture": "torture", "batching-off": "batching"}

# variant: the commit of the series that it is built of
COMMITS = dict.fromkeys(["batching", "batching-off"], "refs/tags/section/counters")

# Who compiles what gcc does not.
COMPILERS = {"kcsan": "clang-19"}


class BuildError(Exception):
    """A build failed; the message says what and where the log is."""


def add_stack(name):
    """The kernel of a section on no more than its cover names, which `make
    series` has tried."""
    stacks = git("for-each-ref", env.STACKS, "--format=%(refname:lstrip=2)").split()
    if name not in stacks:
        raise BuildError(f"no section '{name}'; there are: {' '.join(stacks)}")
    variant = f"stack-{name}"
    VARIANTS[variant] = (SECTIONS, f"o-{variant}", [CONFIG], BOOTABLE)
    COMMITS[variant] = env.STACKS + name
    SEEDS[variant] = "patched"
    return variant


def selftest_libraries():
    """Paths of what the kselftests source, as their Makefile finds it."""
    return sorted(glob.glob(f"{SELFTESTS}/lib.sh") + glob.glob(f"{SELFTESTS}/*_lib.sh"))


def output(variant):
    tree, out, _, targets = VARIANTS[variant]
    return os.path.join(tree, out if targets == PROCESS else arch.output(out))


def fragments_of(variant):
    """The configuration fragments of a variant, the last one wins."""
    _, _, fragments, targets = VARIANTS[variant]
    return fragments + (PROCESSOR if targets != PROCESS else [])


def image(variant):
    is_process = VARIANTS[variant][3] == PROCESS
    return os.path.join(output(variant), "linux" if is_process else arch.IMAGE)


def compiler_cache():
    """One for all clones of a user; without a home, one of this clone."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "plug_policy")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(CACHE)
    return str(home / "ccache")


def environment():
    """Environment for make: cached and repeatable. Debian's python3 is first, which has
    what checkpatch and sphinx want."""
    # kbuild is told the processor, where it is not x86
    kept = {name: value for name, value in os.environ.items()
            if name not in ("MAKEFLAGS", "MFLAGS", "KSRC", "ARCH")}
    return {
        **kept,
        "CCACHE_DIR": compiler_cache(),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_MAXSIZE": "1G",
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
        "KBUILD_BUILD_USER": "plug_policy",
        "KBUILD_BUILD_HOST": "build",
        "KBUILD_BUILD_VERSION": "1",
        "LC_ALL": "C",
        "PATH": f"/usr/bin:{os.environ['PATH']}",
    }


def make_command(tree, out, *args, compiler="gcc"):
    return ["make", "-C", tree, f"O={out}", f"CC=sh {COMPILER} {compiler}",
            f"-j{os.cpu_count() or 1}", *args]


def variant_command(variant, *args):
    tree, _, _, targets = VARIANTS[variant]
    own = ["ARCH=um"] if targets == PROCESS else arch.MAKE
    gcc = "gcc" if targets == PROCESS else f"{arch.CROSS}gcc"
    return make_command(tree, os.path.basename(output(variant)), *own, *args,
                        compiler=COMPILERS.get(variant, gcc))


def run(command, what, log=None, **how):
    """Run a command to its end, and say how far it is: (all that it prints, its exit
    status). log: a file that gets it line by line"""
    lines, steps = [], []

    def take(line):
        lines.append(line)
        if log:
            log.write(line)
        if common.STEP.match(line):
            steps.append(" ".join(line.split()))

    def state(seconds):
        done = f"{len(steps)} steps, {steps[-1]}, " if steps else ""
        return f"{what}: {done}{int(seconds)} s"

    with common.clock(state):
        code = common.run(command, take, **{"env": environment(), **how})
    return "".join(lines), code


def quiet(command, what, **how):
    """The same for what must not fail; its output is shown only if it does."""
    text, code = run(command, what, **how)
    if code:
        raise BuildError(f"{what} failed:\n{text[-3000:]}")
    return text


def git(*args, tree=TREE):
    return quiet(["git", "-C", tree, *args], f"git {args[0]}").strip()


# Nothing that is built beside the patched tree needs these: half of the source.
UNBUILT = ("drivers/gpu", "drivers/net", "drivers/media", "sound")


def ensure_checkout(tree, what):
    """Check a commit out beside the patched source; returns it. Untouched files keep
    their time for make."""
    head = git("rev-parse", what)
    if not os.path.isdir(tree):
        print(f"{os.path.basename(tree)}: checking out", flush=True)
        git("worktree", "prune")
        git("worktree", "add", "-q", "--no-checkout", "--detach", tree, head)
        git("sparse-checkout", "set", "--no-cone", "/*",
            *(f"!/{folder}/**/*.[ch]" for folder in UNBUILT), tree=tree)
        git("checkout", "-q", "--detach", head, tree=tree)
        # older than what was built of another tree, which it may start from
        quiet(["find", tree, "-type", "f", "-exec", "touch", "-d", "@1000000000", "{}", "+"],
              "touch")
        git("update-index", "-q", "--refresh", tree=tree)
    elif git("rev-parse", "HEAD", tree=tree) != head:
        git("checkout", "-q", "-f", "--detach", head, tree=tree)
    return head


def is_stamped(path, wanted):
    return os.path.exists(path) and Path(path).read_text(encoding="ascii") == wanted


def ensure_baseline(tree):
    """An unpatched tree with the one patch of its name applied."""
    head = ensure_checkout(tree, "base")
    patch = Path(BASELINES, f"{tree.rsplit('-', 1)[1]}.patch")
    wanted = common.digest(head, patch.read_text(encoding="utf-8"))
    stamp = Path(tree, "o-baseline")
    if is_stamped(stamp, wanted):
        return
    git("checkout", "-q", "-f", "--detach", head, tree=tree)
    git("apply", str(patch), tree=tree)
    stamp.write_text(wanted, encoding="ascii")


def ensure_tree(variant):
    """The source of a variant; those of several share it."""
    tree = VARIANTS[variant][0]
    with common.locked(str(env.BUILD / f".lock-{os.path.basename(tree)}")):
        if tree == BASE:
            ensure_checkout(tree, "base")
        elif variant in COMMITS:
            ensure_checkout(tree, COMMITS[variant])
        elif tree != TREE:
            ensure_baseline(tree)


def wanted_options(fragments):
    """The options that fragments set, the last one wins: {name: value}."""
    options = {}
    for name in fragments:
        for match in re.finditer(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)",
                                 Path(name).read_text(encoding="ascii"), re.M):
            options[match[1] or match[3]] = match[2] or "n"
    return options


def unknown_options(tree, fragments, names):
    """Those options with such names, of block/ or UML, that a kernel is too early for."""
    text = "".join(path.read_text() for where in ("block", "arch/um")
                   for path in Path(tree, where).glob("Kconfig*"))
    return [name for name in wanted_options(fragments) if re.search(names, name)
            and f"config {name.removeprefix('CONFIG_')}\n" not in text]


def check_config(path, options, known_missing):
    """Refuse to build a kernel that silently lacks what was asked for."""
    have = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", Path(path).read_text(encoding="utf-8"), re.M))
    lost = [name for name, value in options.items()
            if have.get(name, "n") != value and name not in known_missing]
    if lost:
        raise BuildError(f"options that this kernel does not take: {' '.join(sorted(lost))}")


def merge_config(make, tree, out, fragments, start="tinyconfig"):
    """.config of out: what a target of make makes of it, if any, and fragments; its
    path. What this kernel does not have is dropped by olddefconfig, not yet."""
    config = f"{out}/.config"
    if start:
        quiet(make(start), start)
    quiet(["sh", f"{tree}/scripts/kconfig/merge_config.sh", "-m", "-O", str(out), config,
           *map(str, fragments)], "merge_config.sh")
    return config


def configure(variant):
    """tinyconfig plus the fragments, if they changed since the last time."""
    tree, fragments = VARIANTS[variant][0], fragments_of(variant)
    path = output(variant)
    os.makedirs(path, exist_ok=True)
    wanted = common.digest(*(Path(name).read_text(encoding="ascii") for name in fragments))
    stamp = Path(path, ".fragments")
    if is_stamped(stamp, wanted):
        return
    print(f"{variant}: configuring", flush=True)
    config = merge_config(functools.partial(variant_command, variant), tree, path, fragments)
    quiet(variant_command(variant, "olddefconfig"), "olddefconfig")
    lacks = []
    if tree != TREE:
        lacks.append("CONFIG_BLK_PLUG_POLICY")
        if tree != BATCHING:
            lacks += [name for name in wanted_options([*fragments, *KUNIT])
                      if "PLUG" in name or "KUNIT_TEST" in name]
    if variant == UML:
        lacks += unknown_options(tree, fragments, "SMP")
    check_config(config, wanted_options(fragments), lacks)
    stamp.write_text(wanted, encoding="ascii")


def make_logged(what, command, log_name):
    """The same for a make: all that it prints is in a log, and its end is shown if it
    fails."""
    start = time.monotonic()
    with open(log_name, "w", encoding="utf-8") as log:
        text, failed = run(command, what, log)
    if failed:
        raise BuildError(f"{text[-3000:]}\n{what} failed to build, see {log_name}")
    seconds = time.monotonic() - start
    if seconds >= 5:
        print(f"{what}: built in {int(seconds)} s", flush=True)


def differing(tree, other):
    """Files in which two source trees differ, what nobody committed as well."""
    head = git("rev-parse", "HEAD", tree=tree)
    return {name for where in (tree, other)
            for name in git("diff", "--name-only", head, tree=where).splitlines()}


# What make builds notes its own sources by absolute path.
PLANT = """set -e
rm -rf "$2.partial"
cp -a "$1" "$2.partial"
rm -f "$2.partial/.fragments"
grep -rlZF --include='*.cmd' --include='*.d' "$3/" "$2.partial" |
	xargs -0r sed -i "s:$3/:$4/:g"
mv "$2.partial" "$2"
cd "$4"
shift 4
for name; do [ ! -e "$name" ] || touch "$name"; done
"""


def plant(out, new_out, tree, new_tree, differing):
    """Start a build from that of a tree which differs in few files: by their dates kbuild
    itself sees what that changes."""
    quiet(["sh", "-c", PLANT, "sh", out, new_out, tree, new_tree, *differing], "cp")


def plant_seed(variant):
    """The same for a first build of a variant, if what it starts from is there."""
    tree, _, _, targets = VARIANTS[variant]
    near = SEEDS.get(variant)
    if not near or os.path.exists(output(variant)) or not os.path.exists(image(near)):
        return
    build(near)
    with common.locked(f"{BUILD}/.lock-{near}"):
        print(f"kernel {variant}: from {near}", flush=True)
        there = VARIANTS[near][0]
        plant(output(near), output(variant), there, tree, differing(tree, there))
    if targets == COMPARED:     # which must hold their own objects, and no more
        for name in HOOKED_IN:
            shutil.rmtree(os.path.join(output(variant), name))


def build(variant):
    fragments, targets = VARIANTS[variant][2:]
    path = output(variant)
    # two tests that want the same kernel must not build it twice at once
    with common.locked(f"{BUILD}/.lock-{variant}"):
        if OFF in fragments:
            Path(OFF).write_text("# CONFIG_BLK_PLUG_POLICY is not set\n"
                                 "# CONFIG_BLK_PLUG_STAT is not set\n", encoding="ascii")
        ensure_tree(variant)
        plant_seed(variant)
        configure(variant)
        make_logged(f"kernel {variant}", variant_command(variant, *targets),
                    f"{BUILD}/kernel-{variant}.log")
    return path


def module_source(source, where):
    """A directory of links to the sources of a module: make's argument that
    builds it there. Kernels before 6.13 do not know MO= for that."""
    for path in glob.glob(f"{source}/**/*.[ch]", recursive=True) + [f"{source}/Makefile"]:
        link = Path(where, os.path.relpath(path, source))
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.unlink(missing_ok=True)    # the source was elsewhere
            link.symlink_to(path)
    return f"M={where}"


def module(variant, name, source, *options):
    """Build a module for a kernel built already; the path of the .ko file."""
    where = f"{output(variant)}/{name}"
    with common.locked(f"{BUILD}/.lock-{name}"):
        quiet(variant_command(variant, module_source(source, where), *options, "modules"),
              f"{name} for the {variant} kernel")
    return f"{where}/{name}.ko"


def model(variant):
    """The model SSD, the .ko files."""
    return [module(variant, "ssd_model", MODEL)]


def xfs(variant):
    """None of the kernels has it: it would be a quarter of each."""
    return module(variant, "xfs", f"{VARIANTS[variant][0]}/fs/xfs", "CONFIG_XFS_FS=m")


def main():
    parser = argparse.ArgumentParser("kernel.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("variant", nargs="+", choices=sorted(VARIANTS))
    with common.program("kernel.py", BuildError, advice="; run it again to go on"):
        for variant in parser.parse_args().variant:
            build(variant)


# Whoever imports this starts compilers and guests: end them, too.
signal.signal(signal.SIGTERM, signal.default_int_handler)

if __name__ == "__main__":
    main()
