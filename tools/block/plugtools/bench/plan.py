# SPDX-License-Identifier: GPL-2.0
"""What plugbench will do, and how long that takes; nothing is done here."""
import collections
import itertools
import os

from ..core.system import UsageProblem, duration, read, rooted, say
from .fio import WORKLOADS
from .jobfile import read_jobfile

BASELINE = "nomerges2"
WARM_SECONDS = 1                # of the run before, in which "adaptive" learns
COUNT_SECONDS = 1               # of the run that counts unplugs
OVERHEAD_SECONDS = 0.8          # of starting and ending fio
ROUNDS_WANTED = 3               # a budget shortens runs before it cuts these

# workloads: {name: Workload}; iops, budget: limits or None; merges: one or two
# Merges
Plan = collections.namedtuple(
    "Plan", "disk legs policies workloads cpu repeat runtime polled json "
    "iops budget counting bound merges")

# The nomerges to measure with: its name, and {leg: value}.
Merges = collections.namedtuple("Merges", "name values")


def chosen(text, offered, what):
    """Names of a comma-separated list; each must be on offer, and once."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in offered:
            raise UsageProblem(f"--{what}: '{name}' is none of: "
                               + ", ".join(offered))
    return list(dict.fromkeys(names))


def workload_names(args):
    readers = [name for name, one in WORKLOADS.items() if not one.write]
    if args.workloads is None:
        return list(WORKLOADS) if args.write else readers
    names = chosen(args.workloads, WORKLOADS, "workloads")
    for name in names:
        if WORKLOADS[name].write and not args.write:
            raise UsageProblem(f"--workloads: {name} writes to the disk, which "
                               "needs --write; accepted without: "
                               + ", ".join(readers))
    return names


def choose_workloads(args):
    """{name: workload} to run; those that write need --write."""
    file = "/dev/stdin" if args.jobfile == "-" else args.jobfile
    found = read_jobfile(file, args.write, args.section) if file else {
        name: WORKLOADS[name] for name in workload_names(args)}
    if args.write and not any(one.write for one in found.values()):
        raise UsageProblem("--write is given, but nothing that is to run "
                           "writes; leave --write out")
    return found


def choose_policies(args, legs):
    """The policies to compare: those that every leg offers."""
    offered = [name for name in legs[0].policies()
               if all(name in leg.policies() for leg in legs)] + [BASELINE]
    if args.policies is None:
        return offered
    return chosen(args.policies, offered, "policies")


def choose_merges(legs, policies):
    """With nomerges=0; before that as the host has it, if it never merges:
    what it would gain there is another question."""
    found = {leg.name: leg.get("queue/nomerges", "0") for leg in legs}
    zero = Merges("0", dict.fromkeys(found, "0"))
    if "2" not in found.values() or policies == [BASELINE]:
        return [zero]
    return [Merges("/".join(sorted(set(found.values()))), found), zero]


def round_of(policies, merges, number=0):
    """(policy, Merges) of a round; "nomerges2" is "always" as the host is."""
    return [(policy, one) for one in merges
            for policy in rotated(policies, number)
            if policy != BASELINE or one is merges[-1]]


def free_name(disk):
    """Where the result goes: no earlier one's place."""
    for number in itertools.count(1):
        path = f"./plugbench-{disk.name.replace('!', '-')}" \
            f"{f'-{number}' * (number > 1)}.json"
        if not os.path.lexists(path):
            return path


def cpu_list(text):
    """"0-2,4" as a set."""
    cpus = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def local_cpus(disk):
    """The CPUs of the disk's NUMA node, or none if not known."""
    for attribute in ("device/numa_node", "device/device/numa_node"):
        node = disk.get(attribute)
        if node.isdigit():
            return cpu_list(read(rooted(
                f"/sys/devices/system/node/node{node}/cpulist"), ""))
    return set()


def choose_cpu(args, disk):
    """Near the disk, and off CPU 0's core, which has the odd jobs."""
    allowed = os.sched_getaffinity(0)
    if args.cpu is not None:
        if args.cpu not in allowed:
            raise UsageProblem(
                f"--cpu: {args.cpu} is none of the CPUs that this process may "
                f"use: {','.join(map(str, sorted(allowed)))}")
        return args.cpu
    core = cpu_list(read(rooted("/sys/devices/system/cpu/cpu0/topology/"
                                "thread_siblings_list"), "0"))
    near = (local_cpus(disk) & allowed) or allowed
    return min((near - core - {0}) or (near - {0}) or near)


def run_seconds(runtime, counting):
    extra = COUNT_SECONDS + OVERHEAD_SECONDS if counting else 0
    return WARM_SECONDS + runtime + 2 * OVERHEAD_SECONDS + extra


def fit(args, cells, counting):
    """(rounds, seconds of a run) within the budget, near what was asked."""
    if not args.budget:
        return args.repeat, args.runtime
    # the longest that may fit
    most = args.budget // (cells * min(args.repeat, ROUNDS_WANTED)) or 1
    for runtime in range(min(args.runtime, most), 0, -1):
        took = cells * run_seconds(runtime, counting)
        rounds = min(int(args.budget / took), args.repeat)
        if rounds >= min(args.repeat, ROUNDS_WANTED):
            return rounds, runtime
    if not rounds:
        raise UsageProblem(f"--budget: one round takes {duration(took)}; "
                           "accepted: a longer time, or fewer --policies and "
                           "--workloads")
    return rounds, 1


def polls(disk):
    """Whether to poll.  Through dm or a head of multipath, polled I/O of a
    process that is killed waits until the driver gives it up."""
    return disk.has_requests() and disk.get("queue/io_poll") == "1"


def check_iops(args, workloads):
    """Each job must be given one, and one of either kind if it does both."""
    for one in workloads if args.iops else ():
        both = any(part.reads is not None for part in one.parts or ()) or (
            one.write and not one.parts)
        if args.iops < one.jobs * (1 + both):
            raise UsageProblem(f"--iops: {args.iops} for {one.jobs} jobs; "
                               f"accepted: {1 + both} or more for each")


def make_plan(args, disk, counting):
    """All that is to be done, of which nothing has been done yet."""
    legs = disk.legs()
    policies, workloads = choose_policies(args, legs), args.loads
    merges = choose_merges(legs, policies)
    rounds, runtime = fit(args, len(round_of(policies, merges))
                          * len(workloads), counting)
    check_iops(args, workloads.values())
    return Plan(disk, legs, policies, workloads, choose_cpu(args, legs[0]),
                rounds, runtime, polls(disk),
                args.json or free_name(disk), args.iops, args.budget, counting,
                args.cpu is not None or not args.jobfile, merges)


def rotated(names, number):
    """The order in a round: each name comes first in turn."""
    shift = number % len(names)
    return names[shift:] + names[:shift]


def schedule(plan):
    return [(number, name, *one) for number in range(plan.repeat)
            for name in plan.workloads
            for one in round_of(plan.policies, plan.merges, number)]


def print_plan(plan, args):
    """What will be done, how long it takes, and what keeps it in bounds."""
    on = f"on CPU {plan.cpu}" if plan.bound else "on any CPU"
    how = "polled" if plan.polled else "with interrupts"
    say(f"plan: {plan.disk.node} {on}, {how}")
    if plan.legs != [plan.disk]:
        say(f"  settings:  of {', '.join(leg.name for leg in plan.legs)}")
    say(f"  policies:  {', '.join(plan.policies)}")
    if len(plan.merges) > 1:
        say(f"  nomerges:  {plan.merges[0].name}, as this host has it, and 0")
    for name, one in plan.workloads.items():
        text = one.text if plan.polled else one.text.replace(", polled", "")
        say(f"  workload:  {name:<18} {text}")
    runs = len(schedule(plan))
    say(f"  {plan.repeat} rounds of {len(plan.workloads)} workloads x "
        f"{len(plan.policies)} policies, {plan.runtime} s each after "
        f"{WARM_SECONDS} s to warm up:\n  {runs} runs, some "
        f"{duration(runs * run_seconds(plan.runtime, plan.counting))}")
    if plan.iops:
        say(f"  at most {plan.iops} I/Os per second: compare latency and CPU, "
            "not IOPS")
    if plan.budget:
        say(f"  at most {duration(plan.budget)}, then it ends with the rounds "
            "that are done")
    if (plan.repeat, plan.runtime) != (args.repeat, args.runtime):
        say(f"  for that, {plan.repeat} of {args.repeat} rounds, and runs of "
            f"{plan.runtime} s instead of {args.runtime} s")
    for number in range(min(plan.repeat, len(plan.policies)) * args.verbose):
        say(f"  order in round {number + 1}: "
            + ", ".join(rotated(plan.policies, number)))
