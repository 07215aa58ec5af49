# SPDX-License-Identifier: GPL-2.0
"""Where plugstat's figures come from: the disks, and their counters."""
import collections
import contextlib
import errno
import glob
import os
import sys
import time

from ..core.disks import Disk, nvme_paths
from ..core.system import EnvironmentProblem, active, read, rooted
from .figures import learnt

GONE = (errno.ENOENT, errno.ENODEV, errno.EIO, errno.ENXIO)


def debugfs(path=""):
    return rooted("/sys/kernel/debug" + path)


def switch_of(name):
    return debugfs(f"/block/{name}/plug_stats_enabled")


def denied(path):
    """Why we may not use a file, and what helps."""
    if os.geteuid():
        return f"no permission for {path}: run as root"
    state = active(read(rooted("/sys/kernel/security/lockdown"), "none"))
    if state != "none":
        return (f"the kernel is locked down ({state}), which forbids {path} "
                'to root as well; "plugstat --policy" works all the same')
    return (f"no permission for {path}, not even as root: a container or a "
            "security module forbids it")


def explain(error):
    """What an OSError means, in a sentence that helps."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return denied(error.filename)
    return f"{error.filename}: {error.strerror}"


def counted_disks():
    """Names of all disks that can be counted, or why there are none."""
    try:
        os.listdir(debugfs())
        names = os.listdir(debugfs("/block"))
    except FileNotFoundError as error:
        raise EnvironmentProblem(
            f"no {error.filename}: mount -t debugfs none /sys/kernel/debug, "
            "or set CONFIG_BLK_DEBUG_FS") from error
    except OSError as error:
        raise EnvironmentProblem(explain(error)) from error
    found = [name for name in names if os.path.exists(switch_of(name))]
    if not found:
        raise EnvironmentProblem(
            f"no plug_stats_enabled under {debugfs('/block')}: the kernel has "
            "no CONFIG_BLK_PLUG_STAT, or no blk-mq disk")
    return sorted(found)


def legs_of(wanted, known=()):
    """Names of the disks whose plugs serve those that are named, each once:
    the disk itself, if it is known to, or its legs."""
    paths, found = nvme_paths(), []
    for name in wanted:
        legs = [] if name in known else [
            leg.name for leg in Disk(name, paths=paths).legs()]
        found += legs or [name]
    return list(dict.fromkeys(found))


def choose(wanted):
    """The disks to show; a multipath head, dm or md stands for its legs."""
    known = counted_disks()
    found = legs_of(wanted, set(known))
    for name in set(found).difference(known):
        raise EnvironmentProblem(f"{name}: its plugs cannot be counted (not "
                                 "blk-mq)")
    return found or known


def plug_stats(disk):
    """What the kernel has counted of it, the sum over its hardware queues."""
    total = collections.Counter()
    paths = glob.glob(debugfs(f"/block/{glob.escape(disk)}/hctx*/plug_stats"))
    if not paths:
        raise OSError(errno.ENODEV, "no hardware queue", disk)
    for path in paths:
        for line in read(path).splitlines():
            name, value = line.split()
            total[name] += int(value)
    return total


def sample(name):
    """All counters of a disk, the sum over its hardware queues."""
    total = {"time": time.monotonic(), **plug_stats(name)}
    done = Disk(name).stat()
    total["stat_ios"] = done.reads + done.writes
    total["stat_merges"] = done.read_merges + done.write_merges
    return total


def each(names, action):
    """{name: what came of an action} of the disks that are there; others leave
    the list."""
    found = {}
    for name in names:
        try:
            found[name] = action(name)
        except OSError as error:
            if error.errno not in GONE:
                raise EnvironmentProblem(explain(error)) from error
            print(f"plugstat: {name}: the disk is gone", file=sys.stderr)
    names[:] = found
    return found


def sample_all(names):
    return each(names, sample)


def adaptive(name):
    """What "adaptive" does with a disk, or None if it is on another mode."""
    now = Disk(name).effect()
    if now.mode != "adaptive":
        return None
    queues = {}
    for path in glob.glob(debugfs("/block/%s/hctx*/plug_adaptive"
                                  % glob.escape(name))):
        with contextlib.suppress(OSError):
            queues[int(path.split("/")[-2][4:])] = learnt(read(path))
    return {"not_in_force": now.why if now.force == "always" else None,
            "hctx": dict(sorted(queues.items()))}
