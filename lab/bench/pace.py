# SPDX-License-Identifier: GPL-2.0
"""How fast a load will be on a modelled device, about, and rather too fast: so
that what lasts for a number of I/Os lasts for a time, at least."""
import re

# No core does more than that.
CPU = 3e6
# What a core spends on an I/O in flight before it is back, at least.
CPU_US = 0.1


def option(args, name, otherwise):
    found = re.search(rf"(?<!\S){name} (\d+)(k?)", args)
    return int(found[1]) << 10 * len(found[2]) if found else otherwise


def bounds(text):
    """(least, most) of a fixed or uniform distribution."""
    found = [int(number) for number in re.findall(r"\d+", text)]
    return found[0], found[-1]


def latency(profile):
    """(least, most) us of a read, with what a unit takes."""
    low, high = bounds(profile.get("read_latency", "fixed:0"))
    service = bounds(profile.get("service", "fixed:0"))
    return (low + service[0]) / 1000, (high + service[1]) / 1000


def iops(args, profile):
    """I/Os a second of a real machine."""
    waits, size = "-w" in args.split(), option(args, "-b", 4096)
    depth = option(args, "-s", 32) if waits else option(args, "-d", 128)
    low, high = latency(profile)
    wait = (low + high) / 2
    if waits:
        # for the slowest of them
        wait = low + (high - low) * depth / (depth + 1)
    found = [CPU, depth * 1e6 / (wait + depth * CPU_US)]
    if "units" in profile:
        found.append(int(profile["units"]) * 1e6 / latency(profile)[0])
    if "bandwidth_mbs" in profile:
        bytes_per_io = (size + option(args, "--bs2", size)) / 2
        found.append(int(profile["bandwidth_mbs"]) * 1e6 / bytes_per_io)
    return min(found)


def ios(load, profile, ms):
    """I/Os of that many ms."""
    return int(min(CPU, iops(load.args, profile) * load.devices) * ms / 1000)
