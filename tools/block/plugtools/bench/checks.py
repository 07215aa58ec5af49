# SPDX-License-Identifier: GPL-2.0
"""What plugbench looks at before it changes anything."""
import os
import shutil
import subprocess
import time

from ..core.disks import uses
from ..core.system import (active, names_in, read, refusal, refuse_special,
                           rooted, say)
from ..core.terminal import paint
from .fio import fio_command
from .jobfile import NO_FIO
from .sandbox import boxed

CHECK_SECONDS = 60              # for fio to parse its options
COLOURS = {"warn": "warning", "error": "bad"}


class Checks:
    """What was found: (ok, warn or error; text)."""

    def __init__(self):
        self.found = []

    def add(self, level, text):
        self.found.append((level, text))

    def texts(self, level):
        return [text for one, text in self.found if one == level]

    def show(self, everything):
        for level, text in self.found:
            if everything or level != "ok":
                head = paint(f"{level + ':':<6}", COLOURS.get(level))
                say(f"  {head} {text}")


def legs_of(plan):
    """(leg, which is meant where there are several: "nvme0c1n1: ")."""
    return [(leg, "" if leg is plan.disk else f"{leg.name}: ")
            for leg in plan.legs]


def check_permission(plan, _args, checks):
    """Settings must be writable and the disk readable."""
    wanted = [("write", leg.path("queue/plug_policy" if leg.has_knob()
                                 else "queue/nomerges"), os.O_WRONLY)
              for leg in plan.legs]
    for verb, path, flags in wanted + [("read", plan.disk.node, os.O_RDONLY)]:
        try:
            os.close(os.open(path, flags))
        except OSError as error:
            checks.add("error", f"cannot {verb} {path}: {refusal(error)}")
            return
    checks.add("ok", "permission to read the disk and set its policy")


def check_tools(plan, _args, checks):
    """fio, and io_uring unless only libaio is asked for."""
    if not shutil.which("fio"):
        checks.add("error", NO_FIO)
    engines = {one.engine for one in plan.workloads.values()}
    disabled = read(rooted("/proc/sys/kernel/io_uring_disabled"), "0")
    if "io_uring" in engines and disabled == "2":
        checks.add("error", "io_uring is off: sysctl "
                            "kernel.io_uring_disabled=0, or --workloads "
                            "libaio-rand4k-s32")


def check_jobfile(plan, args, checks):
    if not args.jobfile or not shutil.which("fio"):
        return
    (name, one), = plan.workloads.items()
    command = fio_command(plan, name, 1, 1)
    command.insert(1, "--parse-only")   # behind a job it would come too late
    done = subprocess.run(boxed(command, one.boxed, plan.disk.node),
                          check=False, capture_output=True, text=True,
                          timeout=CHECK_SECONDS)
    if done.returncode:
        text = (done.stderr + done.stdout).strip().splitlines() or ["nothing"]
        checks.add("error", f"fio does not take {args.jobfile}: {text[0]}")


def check_policy(plan, _args, checks):
    """Its state, to be restored."""
    for leg, which in legs_of(plan):
        if leg.has_knob():
            checks.add("ok", f"{which}blk-mq disk with plug_policy: "
                             f"{leg.get('queue/plug_policy')}")
        else:
            checks.add("warn", "this kernel has no plug_policy: what it does "
                               'is called "always"')


def check_scheduler(plan, args, checks):
    """With an elevator every policy does as "always"."""
    for leg, which in legs_of(plan):
        offered = leg.get("queue/scheduler", "none") or "none"
        now = active(offered)
        if now == "none":
            checks.add("ok", f"{which}no I/O scheduler")
        elif args.keep_scheduler:
            checks.add("warn", f"{which}scheduler {now} is kept: with it every "
                               'policy does as "always"')
        elif "none" in names_in(offered):
            checks.add("warn", f"{which}scheduler {now} makes every policy do "
                               'as "always": none during the run, then '
                               f"{now} again")
        else:
            checks.add("error", f"{which}scheduler {now} makes every policy "
                                'do as "always", and none is not on offer '
                                f"({offered}); --keep-scheduler measures "
                                "nevertheless")


def check_queue(plan, _args, checks):
    """iostats and nomerges, which are set for the run."""
    for leg, which in legs_of(plan):
        for name, wanted in (("iostats", "1"), ("nomerges", "0")):
            now = leg.get("queue/" + name)
            if now == wanted:
                checks.add("ok", f"{which}{name} is {wanted}")
                continue
            so = "measured so and with 0" if name == "nomerges" and len(
                plan.merges) > 1 else f"{wanted} during the run"
            checks.add("warn", f"{which}{name} is {now or 'unknown'}: {so}, "
                               f"then {now} again")


def check_governor(plan, _args, checks):
    """A CPU that changes its clock blurs what is measured."""
    now = read(rooted(f"/sys/devices/system/cpu/cpu{plan.cpu}/cpufreq/"
                      "scaling_governor"), "")
    if now == "performance":
        checks.add("ok", f"governor of CPU {plan.cpu} is performance")
    elif now:
        checks.add("warn", f"governor of CPU {plan.cpu} is {now}, not "
                           "performance: cpupower frequency-set -g performance")
    else:
        checks.add("warn", f"CPU {plan.cpu} has no frequency governor that "
                           "can be read, as in virtual machines")


def check_use(plan, args, checks):
    """The load and the settings hit whoever uses the disk."""
    found = uses(plan.disk)
    for text in found:
        if args.write:
            checks.add("error", f"--write refused, nothing was written: {text}")
        elif args.force:
            checks.add("warn", f"{text}: it feels the load and the settings, "
                               "and disturbs the result")
        else:
            checks.add("error", f"{text}, and whoever uses it would feel the "
                                "load; --force measures nevertheless")
    if args.write and plan.disk.get("ro") == "1":
        checks.add("error", "--write refused: the disk is read-only")
    elif not found:
        checks.add("ok", "not mounted, not in use")


def check_idle(plan, _args, checks):
    """I/O of others shows in the count of requests."""
    if checks.texts("error"):
        return
    before = sum(leg.completed() for leg in plan.legs)
    time.sleep(0.3)
    others = sum(leg.completed() for leg in plan.legs) - before
    if others:
        checks.add("warn", f"{others} requests of others in 0.3 s: the result "
                           "will be disturbed")


def check_output(plan, args, checks):
    for path in filter(None, (plan.json, args.html)):
        try:
            refuse_special(path)
            writable = os.access(os.path.dirname(os.path.abspath(path)),
                                 os.W_OK)
        except OSError:
            writable = False
        if not writable:
            checks.add("error", f"cannot write {path}")


def check_null(_plan, _args, checks):
    if os.geteuid() and not rooted(""):
        checks.add("error", "cannot make a disk: run as root")
    else:
        checks.add("ok", "null_blk is loaded for the run, if it is not there, "
                         "and a disk made")


CHECKS = [check_permission, check_tools, check_jobfile, check_policy,
          check_scheduler, check_queue, check_governor, check_use,
          check_output, check_idle]
# of a disk that is yet to be made
EARLY = [check_null, check_tools, check_jobfile, check_governor, check_output]


def run_checks(plan, args):
    checks = Checks()
    for check in CHECKS if plan.disk.there() else EARLY:
        check(plan, args, checks)
    return checks
