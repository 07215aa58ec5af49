# SPDX-License-Identifier: GPL-2.0
"""Our tests in the form of blktests: exports them as mails, tries them in guests.

patches/blktests/ has the tests, each with the message of its mail, and in "series"
their order. Mails go to build/series-blktests/, and apply to any blktests: they only
add files. With a checkout, the tests have the next free numbers there.

BLKTESTS=<checkout>: they are run by its own check script, on an emulated NVMe disk
and on null_blk. On the patched kernel all must pass, on the unpatched one all must
fail."""
import os
import shutil
from pathlib import Path

from lab.bench import lab
from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import tap
from scripts.series.blktests_mails import commit_all, export, load
from scripts.series.env import BUILD, remove, step
from scripts.series.files import write_file
from scripts.series.git import AUTHOR, Failure, new_repository


OUT = BUILD / "series-blktests"
GUEST = BUILD / "blktests"
URL = "https://github.com/osandov/blktests"

# What blktests runs that busybox has not, or has not as blktests wants it.
PROGRAMS = """awk bash blockdev column comm date dd diff dmesg find findmnt getopt
    grep mkfs.ext4 mktemp mountpoint realpath sed sort stat sync xargs""".split()

# There is no udev in the guest to wait for, and there are no modules.
STUBS = {"udevadm": "exit 0", "modprobe": "exit 1"}

SECONDS = 120                   # for one test

# What check is to say of a test, by kernel; a skip is neither.
WANTED = {"patched": "passed", "base": "failed"}
JOB = Path(kernel.ROOT, "scripts/series/blktests_guest.sh")


def find_checkout(name):
    """The checkout, which is only read."""
    path = Path(name).resolve()
    for part in ("check", "common/null_blk", "tests/block/rc"):
        if not (path / part).is_file():
            raise Failure(f"BLKTESTS={name} is no checkout of blktests: it has no {part}; "
                          f"wanted is what git clone {URL} makes")
    return path


def apply(checkout, box, top):
    shutil.copytree(checkout, top, symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "results"))
    git = new_repository(top, "tests")
    git("update-ref", "HEAD", commit_all(git, "blktests", None, AUTHOR))
    git("am", "-q", *box)
    step(f"git am of {len(box)} mails on {checkout}")


def guest_files(top):
    """SRC:DST of blktests and what it runs."""
    files = [f"{top / part}:/blktests/{part}" for part in ("check", "common", "tests", "src")]
    for name, text in STUBS.items():
        write_file(GUEST / name, f"#!/bin/sh\n{text}\n".encode(), "100755")
        files.append(f"{GUEST / name}:/bin/{name}")
    for program in PROGRAMS:
        files += lab.with_libraries(program)
    return tuple(dict.fromkeys(files))


def try_kernel(report, variant, wanted, tests, top):
    """Each test is a result, and that the guest saw no warning, hang or crash."""
    kernel.build(variant)
    disk, seen = GUEST / "disk.img", []
    disk.unlink(missing_ok=True)
    with common.clock(lambda seconds: common.how_far(
            f"# blktests, {variant}", len(seen), len(tests), "tests", seconds)):
        result = guest.run(
            variant, str(GUEST / variant), f"sh /{JOB.name} {wanted} {SECONDS} "
            f"{' '.join(tests)} >&3\n", files=(*guest_files(top), *guest.into("", JOB, guest.TAP)),
            name="blktests", disks=(f"file:{disk}:256m",), timeout=2 * SECONDS,
            append="brd.rd_nr=1", accel=os.environ.get("ACCEL") or "auto",
            on_line=lambda line: seen.append(line) if tap.parse(line) else None)
    report.guest(variant, result)


def try_mails(mails, checkout, box):
    report, top = tap.Report(), GUEST / "tree"
    remove(top)
    apply(checkout, box, top)
    text, code = kernel.run(["shellcheck", "-x", "-e", "SC2119", "-f", "gcc",
                             *(mail.path for mail in mails)], "shellcheck", cwd=top)
    report.check(not code, "shellcheck, as blktests' make check has it", text)
    tests = [f"{mail.path[len('tests/'):]}:{mail.name}" for mail in mails if mail.is_test]
    for variant, wanted in WANTED.items():
        try_kernel(report, variant, wanted, tests, top)
    report.exit()


def main():
    common.no_arguments(__doc__)
    name = os.environ.get("BLKTESTS")
    with common.program("blktests.py", Failure, lab.LabError, *guest.ERRORS), \
            common.locked(BUILD / ".blktests.lock", Failure("another one is running")):
        checkout = find_checkout(name) if name else None
        mails = load(checkout)
        box = export(mails, OUT, os.environ.get("FROM") or AUTHOR)
        if checkout:
            try_mails(mails, checkout, box)


if __name__ == "__main__":
    main()
