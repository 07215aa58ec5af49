# SPDX-License-Identifier: GPL-2.0
"""How fast a load will be on a modelled device, about, and rather too fast: so
that what lasts for a number of I/Os lasts for a time, at least."""
import argparse
import re

# No core does more than that.
CPU = 3e6
# What a core spends on an I/O in flight before it is back, at least.
CPU_US = 0.1


def size(text):
    return int(text[:-1]) * 1024 if text[-1] == "k" else int(text)


def shape(args):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-b", type=size, default=4096)
    parser.add_argument("--bs2", type=size, default=0)
    parser.add_argument("-d", type=int, default=128)
    parser.add_argument("-s", type=int, default=32)
    parser.add_argument("-w", action="store_true")
    return parser.parse_known_args(args.split())[0]


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
    load = shape(args)
    depth = load.s if load.w else load.d
    low, high = latency(profile)
    wait = (low + high) / 2
    if load.w:
        # for the slowest of them
        wait = low + (high - low) * depth / (depth + 1)
    found = [CPU, depth * 1e6 / (wait + depth * CPU_US)]
    if "units" in profile:
        found.append(int(profile["units"]) * 1e6 / latency(profile)[0])
    if "bandwidth_mbs" in profile:
        bytes_per_io = (load.b + (load.bs2 or load.b)) / 2
        found.append(int(profile["bandwidth_mbs"]) * 1e6 / bytes_per_io)
    return min(found)


def ios(load, profile, ms):
    """I/Os of that many ms."""
    return int(min(CPU, iops(load.args, profile) * load.devices) * ms / 1000)
