# SPDX-License-Identifier: GPL-2.0
"""The kernels that measure: of any commit, with what is in uml/ on top.

They are built in one work tree of their own, one after the other, so that each
build compiles no more than the last one differs in. What a build is kept for is
the images, by the code that they are of. An image exists several times, each
with its code in another place."""
import glob
import hashlib
import os
import pathlib
import shutil
import tempfile

from lab.bench import lab
from scripts import common, kernel
from scripts.series import measured
from scripts.series.git import Git, GitError

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "uml")
# With what file in it a kernel takes them.
PATCHES = {"uml.patch": "arch/um/Kconfig", "smp.patch": "arch/um/kernel/smp.c"}
FILES = {"alternative.h": "arch/um/include/asm/alternative.h",
         "jump_label.c": "arch/um/kernel/jump_label.c",
         "jump_label.h": "arch/um/include/asm/jump_label.h",
         "percpu.h": "arch/um/include/asm/percpu.h",
         "load.c": "arch/um/kernel/native_load.c"}

TREE = kernel.TREE + "-native"
OUT = "o-native"
FRAGMENTS = [kernel.PROCESS_CONFIG, os.path.join(HERE, "native.config")]
STORE = os.path.join(lab.OUT, "native", "images")
KEPT = 16                       # kernels whose images are not thrown away

# Bytes. Functions are aligned to 16: all four places in a cache line occur, and
# 16 in the sets of a cache. Each image has its functions in an order of its
# own as well: where they come to lie to each other makes 3% here and there, and
# says nothing of the code.
SHIFTS = [n * (256 + 16) for n in range(16)]

SERIES = "refs/heads/series"
SECTION = "refs/tags/section/"
# Where the code of a section is, if it has any that can make a difference here.
CODE = ["block", "fs", "include", "io_uring", "kernel", "lib", "mm",
        "drivers/block"]


# --- what is built -----------------------------------------------------------

def git():
    return Git(kernel.TREE)


def commit_of(git_of, tree, parent):
    """A commit that depends on nothing but what is in it."""
    return git_of.get("commit-tree", tree, "-p", parent, "-m", "native")


def snapshot():
    """A commit of the work tree, with what nobody committed there."""
    with tempfile.TemporaryDirectory() as where:
        index = os.path.join(where, "index")
        shutil.copy(os.path.join(kernel.TREE, ".git/index"), index)
        own = git().having(GIT_INDEX_FILE=index)
        own("add", "-A")
        return commit_of(own, own.get("write-tree"), "HEAD")


def apply(own, name, commit):
    try:
        own("apply", "--cached", os.path.join(HERE, name))
    except GitError as error:
        raise lab.LabError(f"native/{name} does not apply to {commit}:"
                           f"\n{error}") from None


def planted(commit):
    """A commit with native/ on top."""
    with tempfile.TemporaryDirectory() as where:
        own = git().having(GIT_INDEX_FILE=os.path.join(where, "index"))
        own("read-tree", commit)
        for name, needed in PATCHES.items():
            if own("ls-files", needed):
                apply(own, name, commit)
        for name, place in FILES.items():
            blob = own.get("hash-object", "-w", os.path.join(HERE, name))
            own("update-index", "--add", "--cacheinfo",
                f"100644,{blob},{place}")
        return commit_of(own, own.get("write-tree"), commit)


def key_of(commit):
    """A name for what an image is built of: its code and its options."""
    text = "\n".join([*measured.code(git(), commit), str(SHIFTS)]).encode()
    return hashlib.sha256(text + fragments()).hexdigest()[:16]


def sections():
    """{name: commit} of the sections that change code, in order; the last one
    is left out, as its kernel is that of the whole series."""
    found, last = {}, "refs/tags/base"
    names = git()("for-each-ref", "--format=%(refname:lstrip=3)",
                  SECTION).split()
    for name in sorted(names, key=lambda one: int(git().get(
            "rev-list", "--count", SECTION + one))):
        if git()("diff", "--name-only", last, SECTION + name, "--", *CODE):
            found[name] = last = SECTION + name
    if found and key_of(last) == key_of(SERIES):
        found.popitem()
    return found


# --- building ----------------------------------------------------------------

def has_two_cpus():
    """User Mode Linux has one CPU before 6.19."""
    return bool(git()("ls-tree", "refs/tags/base", PATCHES["smp.patch"]))


def make(*args):
    return kernel.make_command(
        TREE, OUT, "ARCH=um",
        "NATIVE_SHIFTS=" + " ".join(map(str, SHIFTS)), *args)


def fragments():
    return b"".join(pathlib.Path(name).read_bytes() for name in FRAGMENTS)


def all_options(path):
    """The fragments over tinyconfig, in a file: what each kernel takes of them
    is another question."""
    digest = hashlib.sha256(fragments()).hexdigest()
    name = os.path.join(path, f".wanted-{digest[:16]}")
    if not os.path.exists(name):
        shutil.copy(kernel.merge_config(make, TREE, path, FRAGMENTS), name)
    return name


def configure():
    """From all options anew: the kernel before may have known fewer."""
    path = os.path.join(TREE, OUT)
    os.makedirs(path, exist_ok=True)
    config = os.path.join(path, ".config")
    shutil.copy(all_options(path), config)
    kernel.quiet(make("olddefconfig"), "olddefconfig")
    # the order of functions, for each image; all other links have none
    pathlib.Path(path, "native.lds").write_text("")
    early = kernel.unknown_options(TREE, FRAGMENTS, "PLUG|SMP")
    kernel.check_config(config, kernel.wanted_options(FRAGMENTS), early)


def keep(key):
    """Store the images; the oldest go."""
    partial = os.path.join(STORE, ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    for shift in SHIFTS:
        os.rename(os.path.join(TREE, OUT, f"native.{shift}"),
                  os.path.join(partial, f"native.{shift}"))
    os.rename(partial, os.path.join(STORE, key))
    for old in sorted(glob.glob(STORE + "/*"), key=os.path.getmtime)[:-KEPT]:
        shutil.rmtree(old)


def build(commit, what):
    source = planted(commit)
    where = os.path.join(STORE, key_of(source))
    with common.locked(os.path.join(kernel.BUILD, ".lock-native")):
        if not os.path.isdir(where):
            kernel.ensure_checkout(TREE, source)
            configure()
            kernel.make_logged(f"kernel native {what}", make("linux"),
                               f"{kernel.BUILD}/kernel-native.log")
            keep(os.path.basename(where))
        os.utime(where)
    return sorted(glob.glob(where + "/native.*"))
