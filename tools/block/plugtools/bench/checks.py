# SPDX-License-Identifier: GPL-2.0
"""What plugbench looks at before it changes anything."""
import os
import re
import shutil
import subprocess
import time

from ..core.disks import uses
from ..core.system import (active, names_in, paint, printable, read, refusal,
                           refuse_special, rooted, say)
from . import host
from .fio import fio_command
from .jobfile import NO_FIO
from .sandbox import boxed

CHECK_SECONDS = 60              # for fio to parse its options
LEAST_FIO = (3, 16)             # Ubuntu 20.04's, the oldest that was tried
COLOURS = {"warn": "warning", "error": "bad"}


def texts(found, level):
    return [text for one, text in found if one == level]


def show(found, everything):
    for level, text in found:
        if everything or level != "ok":
            head = paint(f"{level + ':':<6}", COLOURS.get(level))
            say(f"  {head} {text}")


# Each check yields what it finds: ("ok", "warn" or "error"; text).

def legs_of(plan):
    """(leg, which is meant where there are several: "nvme0c1n1: ")."""
    return [(leg, "" if leg is plan.disk else f"{leg.name}: ")
            for leg in plan.legs]


def check_permission(plan, _args):
    """Settings must be writable and the disk readable."""
    wanted = [("write", leg.path("queue/plug_policy" if leg.has_knob()
                                 else "queue/nomerges"), os.O_WRONLY)
              for leg in plan.legs]
    for verb, path, flags in wanted + [("read", plan.disk.node, os.O_RDONLY)]:
        try:
            os.close(os.open(path, flags))
        except OSError as error:
            yield "error", f"cannot {verb} {path}: {refusal(error)}"
            return
    yield "ok", "permission to read the disk and set its policy"


def fio_version():
    """(3, 33), or what is newer than all if it does not say."""
    done = subprocess.run(["fio", "--version"], check=False,
                          capture_output=True, text=True,
                          timeout=CHECK_SECONDS)
    found = re.match(r"fio-(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else (999, 0)


def check_tools(plan, _args):
    """fio, and io_uring unless only libaio is asked for."""
    if not shutil.which("fio"):
        yield "error", NO_FIO
    elif (version := fio_version()) < LEAST_FIO:
        yield "error", ("fio is {}.{}; accepted: {}.{} or later".format(
            *version, *LEAST_FIO))
    engines = {one.engine for one in plan.workloads.values()}
    disabled = read(rooted("/proc/sys/kernel/io_uring_disabled"), "0")
    if "io_uring" in engines and disabled == "2":
        yield "error", ("io_uring is off: sysctl kernel.io_uring_disabled=0, "
                        "or --workloads libaio-rand4k-s32")


def check_jobfile(plan, args):
    if not args.jobfile or not shutil.which("fio"):
        return
    for name, one in plan.workloads.items():
        command = fio_command(plan, name, 1, 1)
        command.insert(1, "--parse-only")   # behind a job it comes too late
        done = subprocess.run(boxed(command, one.boxed, plan.disk.node),
                              check=False, capture_output=True, text=True,
                              timeout=CHECK_SECONDS)
        if done.returncode:
            text = (done.stderr + done.stdout).strip() or "nothing"
            yield "error", (f"fio does not take {args.jobfile}: "
                            f"{printable(text.splitlines()[0])}")


def check_policy(plan, _args):
    """Its state, to be restored."""
    for leg, which in legs_of(plan):
        if leg.has_knob():
            yield "ok", (f"{which}blk-mq disk with plug_policy: "
                         f"{leg.get('queue/plug_policy')}")
        else:
            yield "warn", ("this kernel has no plug_policy: what it does is "
                           'called "unpatched always"; compare it with '
                           "another kernel by --compare")


def check_scheduler(plan, args):
    """With an elevator every policy does as "always"."""
    for leg, which in legs_of(plan):
        offered = leg.get("queue/scheduler", "none") or "none"
        now = active(offered)
        if now == "none":
            yield "ok", f"{which}no I/O scheduler"
        elif args.keep_scheduler:
            yield "warn", (f"{which}scheduler {now} is kept: with it every "
                           'policy does as "always"')
        elif "none" in names_in(offered):
            yield "warn", (f"{which}scheduler {now} makes every policy do as "
                           '"always": none during the run, then '
                           f"{now} again")
        else:
            yield "error", (f"{which}scheduler {now} makes every policy do as "
                            '"always", and none is not on offer '
                            f"({offered}); --keep-scheduler measures "
                            "nevertheless")


def check_queue(plan, _args):
    """iostats and nomerges, which are set for the run."""
    for leg, which in legs_of(plan):
        for name, wanted in (("iostats", "1"), ("nomerges", "0")):
            now = leg.get("queue/" + name)
            if now == wanted:
                yield "ok", f"{which}{name} is {wanted}"
                continue
            so = "measured so and with 0" if name == "nomerges" and len(
                plan.merges) > 1 else f"{wanted} during the run"
            yield "warn", (f"{which}{name} is {now or 'unknown'}: {so}, then "
                           f"{now} again")


def check_host(plan, _args):
    """What hides a gain."""
    for text in host.hides(host.facts(plan.legs, plan.cpu)):
        yield "warn", text


def check_use(plan, args):
    """The load and the settings hit whoever uses the disk."""
    found = uses(plan.disk)
    for text in found:
        if args.write:
            yield "error", f"--write refused, nothing was written: {text}"
        elif args.force:
            yield "warn", (f"{text}: it feels the load and the settings, and "
                           "disturbs the result")
        else:
            yield "error", (f"{text}, and whoever uses it would feel the load; "
                            "--force measures nevertheless")
    if args.write and plan.disk.get("ro") == "1":
        yield "error", "--write refused: the disk is read-only"
    elif not found:
        yield "ok", "not mounted, not in use"


def check_output(plan, args):
    for path in filter(None, (plan.json, args.html)):
        try:
            refuse_special(path)
            writable = os.access(os.path.dirname(os.path.abspath(path)),
                                 os.W_OK)
        except OSError:
            writable = False
        if not writable:
            yield "error", f"cannot write {path}"


def check_idle(plan, _args):
    """I/O of others shows in the count of requests."""
    before = sum(leg.completed() for leg in plan.legs)
    time.sleep(0.3)
    others = sum(leg.completed() for leg in plan.legs) - before
    if others:
        yield "warn", (f"{others} requests of others in 0.3 s: the result will "
                       "be disturbed")


CHECKS = [check_permission, check_tools, check_jobfile, check_policy,
          check_scheduler, check_queue, check_host, check_use, check_output]


def run_checks(plan, args):
    found = [one for check in CHECKS for one in check(plan, args)]
    if not texts(found, "error"):
        found += check_idle(plan, args)
    return found
