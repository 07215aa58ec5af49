# SPDX-License-Identifier: GPL-2.0
"""The laboratory's tests in guests: the model SSD, and plugbench and plugroll on a
disk.

The model runs once with a clock that follows instructions, where timing can
be tested to the nanosecond, and once with two CPUs on the unpatched kernel,
which must take the module as well. The programs run as on a real machine, on the
NVMe disk that QEMU emulates."""
import argparse
import functools
import glob
import os
import re
from pathlib import Path

from lab.qemu import guest
from scripts import kernel
from scripts.checks import tap

OUT = os.path.join(kernel.BUILD, "laboratory")
PYTHON = os.environ.get("PYTHON") or "/usr/bin/python3"
# What a command-line tool does not need of python's library: tests, GUI,
# installers, and extensions that need large libraries.
NO_SOURCE = re.compile(r"/(tests?|idlelib|tkinter|turtledemo|ensurepip|venv|"
                       r"lib2to3|distutils|pydoc_data|asyncio|site-packages|"
                       r"dist-packages|config-[^/]*)/")
NO_OBJECT = re.compile(r"/((_ssl|_hashlib|_sqlite3|_tkinter|readline|_dbm|_gdbm|"
                       r"nis)\.|_curses|_codecs_|_test|[^/]*xx)[^/]*$")
TOOLS = os.path.join(kernel.ROOT, "tools/block")


def model_files(variant):
    return guest.into("/modules", *kernel.model(variant)) + guest.into(
        "", os.path.join(kernel.MODEL, "test.sh"), guest.TAP)


def python_files():
    """A python3 that works, for a guest. Compiled files stay behind, since the
    archive's times would make them stale."""
    program, library, extensions = kernel.quiet(
        [PYTHON, "-c", "import os, sys, sysconfig as s; print("
         "os.path.realpath(sys.executable), s.get_path('stdlib'), "
         "s.get_config_var('DESTSHARED'))"], PYTHON).split()
    sources = [path for path in glob.glob(f"{library}/**/*.py", recursive=True)
               if not (NO_SOURCE.search(path[len(library):]) or os.path.islink(path))]
    objects = [path for path in glob.glob(f"{extensions}/*.so") if not NO_OBJECT.search(path)]
    # Not at its own path, too: for the library it knows where it was built for.
    return [f"{program}:/bin/python3", *(f"{path}:{path}" for path in (
        *sources, *objects, *guest.libraries(program, *objects)[0]))]


def program_files(program, test):
    """A program of tools/block, and what tests it."""
    return lambda _variant: (*python_files(), *guest.into(
        "", f"{TOOLS}/{program}", f"{TOOLS}/plugtools", f"{kernel.ROOT}/{test}", guest.TAP))


def disk():
    path = Path(OUT, "disk.img")
    path.unlink(missing_ok=True)
    return f"file:{path}:256m"


EXACT = {"icount": True, "smp": 1, "disks": ()}
TWO_CPUS = {"accel": "tcg", "smp": 2, "disks": ()}

# name: (kernel, job, files for a kernel, settings of the guest)
RUNS = {
    "model, exact time": ("patched", "EXACT_TIME=1 sh /test.sh >&3",
                          model_files, EXACT),
    "model, unpatched": ("base", "sh /test.sh >&3", model_files, TWO_CPUS),
    "plugbench": ("patched", "python3 /plugbench_guest.py >&3",
                  program_files("plugbench", "lab/bench/plugbench_guest.py"),
                  {"accel": "tcg", "smp": 2}),
    "plugroll": ("patched", "sh /plugroll_guest.sh >&3",
                 program_files("plugroll", "lab/bench/plugroll_guest.sh"),
                 {"accel": "tcg", "disks": ("null:1g",), "timeout": 900}),
}


def boot_one(name, variant, command, files, how):
    return guest.run(
        variant, f"{OUT}/{re.sub(', | ', '-', name)}", command + "\n",
        files=files(variant), name=name, mem=1536,
        **{"disks": (disk(),), "timeout": 600, **how})      # of silence


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", action="append", choices=RUNS, help="may be repeated")
    runs = {name: RUNS[name] for name in parser.parse_args().only or RUNS}
    report = tap.Report()
    with report.must("kernels for the guests", *guest.ERRORS):
        for variant in dict.fromkeys(run[0] for run in runs.values()):
            kernel.build(variant)
        found = guest.together({name: functools.partial(boot_one, name, *run)
                                for name, run in runs.items()})
    for name, result in found.items():
        report.guest(name, result)
    report.exit()


if __name__ == "__main__":
    main()
