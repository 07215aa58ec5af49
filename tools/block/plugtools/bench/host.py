# SPDX-License-Identifier: GPL-2.0
"""What decides, beside kernel and policy, how long an I/O takes, and what hides
a gain: for the records, so that two of them can be compared."""
import glob
import gzip
import os
import re

from ..core.system import active, listing, printable, read, rooted

MODES = {"DMA": "strict", "DMA-FQ": "lazy", "identity": "passthrough"}
DEBUG = ["KASAN", "KCSAN", "KMSAN", "PROVE_LOCKING", "DEBUG_LOCK_ALLOC",
         "DEBUG_ATOMIC_SLEEP", "PREEMPT_RT"]
COSTS = DEBUG + ["BLK_CGROUP_IOCOST", "BLK_CGROUP_IOLATENCY",
                 "BLK_INLINE_ENCRYPTION", "BLK_WBT", "FAIL_MAKE_REQUEST",
                 "PREEMPT", "PREEMPT_LAZY", "PREEMPT_NONE"]


def parents(leg):
    """The directories of the disk's device and of what it is behind."""
    path = os.path.realpath(leg.path("device"))
    top = os.path.realpath(rooted("/sys"))
    while path.startswith(top + "/"):
        yield path
        # a controller's class directory links to the device it belongs to
        path = os.path.realpath(path + "/device") if os.path.islink(
            path + "/device") else os.path.dirname(path)


def iommu(leg):
    """How DMA of the disk is mapped: "none" if nothing says that it is."""
    for path in parents(leg):
        mode = read(path + "/iommu_group/type", "")
        if mode:
            return MODES.get(mode, mode)
    return "none"


def interrupts(leg):
    """How many the device has, and on which CPUs they arrive."""
    for path in parents(leg):
        numbers = listing(path + "/msi_irqs")
        if numbers:
            cpus = {read(rooted(f"/proc/irq/{number}/effective_affinity_list"),
                         "?") for number in numbers}
            return f"{len(numbers)} on CPUs {' '.join(sorted(cpus))}"
    return "unknown"


def cpu_model():
    found = re.search(r"^(?:model name|Model)\s*: (.*)",
                      read(rooted("/proc/cpuinfo"), ""), re.M)
    return found[1].strip() if found else os.uname().machine


def mitigations():
    if "mitigations=off" in read(rooted("/proc/cmdline"), "").split():
        return "off"
    paths = glob.glob(rooted("/sys/devices/system/cpu/vulnerabilities/*"))
    return f"{sum('Mitigation' in read(path, '') for path in paths)} in force"


def config():
    """What is set of COSTS, or None if the kernel does not tell."""
    try:
        with gzip.open(rooted("/proc/config.gz"), "rt") as file:
            text = file.read()
    except OSError:
        text = read(rooted(f"/boot/config-{os.uname().release}"), "")
    lines = set(text.splitlines())
    return [name for name in COSTS if f"CONFIG_{name}=y" in lines] \
        if text else None


def setting(leg, name):
    return active(leg.get("queue/" + name, "unknown"))


def of_disk(leg):
    return {"iommu": iommu(leg), "interrupts": interrupts(leg),
            "queues": f"{len(listing(leg.path('mq')))} of "
                      f"{setting(leg, 'nr_requests')}",
            **{name: setting(leg, name) for name in (
                "scheduler", "nomerges", "iostats", "io_poll", "write_cache",
                "wbt_lat_usec")}}


def facts(legs, cpu):
    """{name: text} of the machine and, for each disk, of its own."""
    options = config()
    found = {"CPU": cpu_model(), "mitigations": mitigations(),
             "governor": read(rooted(f"/sys/devices/system/cpu/cpu{cpu}/"
                                     "cpufreq/scaling_governor"), "unknown"),
             "options": "unknown" if options is None else " ".join(options)}
    for leg in legs:
        found.update({f"{leg.name} {name}": text
                      for name, text in of_disk(leg).items()})
    return printable(found)


def alike(found):
    """(fact, text, the disks of which it is true), of facts of disks."""
    names = {}
    for key, text in found.items():
        disk, space, what = key.partition(" ")
        if space:
            names.setdefault((what, text), []).append(disk)
    return [(*key, ", ".join(disks)) for key, disks in names.items()]


def hides(found):
    """What makes a gain small or meaningless, a sentence each."""
    governor = found["governor"]
    if governor == "unknown":
        yield ("the CPU has no frequency governor that can be read, as in "
               "virtual machines")
    elif governor != "performance":
        yield (f"the CPU's governor is {governor}, not performance: its clock "
               "blurs what is measured (cpupower frequency-set -g performance)")
    debug = set(found["options"].split()) & set(DEBUG)
    if debug:
        yield (f"a debug or real-time kernel ({', '.join(sorted(debug))}): "
               "its figures say nothing of another one")
    for what, text, names in alike(found):
        if what == "iommu" and text in ("strict", "lazy"):
            yield (f"{names}: {text} IOMMU: mapping takes some 300 ns"
                   " per I/O and more, of which the series saves nothing; it "
                   "saves 5 to 8 elsewhere (iommu.passthrough=1 does without)")
        if what == "wbt_lat_usec" and text not in ("0", "unknown"):
            yield f"{names}: wbt throttles buffered writes at {text} us"
