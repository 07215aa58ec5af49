# SPDX-License-Identifier: GPL-2.0
"""Disks: their policy, the disks below them, and who uses them.

A bio-based disk (NVMe multipath head, dm, md) has no policy.  It sends its I/O
to disks below it, its legs, and these have one.
"""
import collections
import errno
import os
import re
import stat

from .system import (EnvironmentProblem, UsageProblem, active, listing,
                     names_in, printable, read, rooted, write)

SECTOR = 512
AS_SET = "as set"
GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)
NO_KNOB = ("no disk here has it: the kernel has no CONFIG_BLK_PLUG_POLICY, or "
           "there is no blk-mq disk")
MOST_NAMED = 20                 # disks in a message

# The counters of a disk in sysfs, as iostats.rst names them; times in ms.
Stat = collections.namedtuple(
    "Stat", "reads read_merges read_sectors read_ms writes write_merges "
    "write_sectors write_ms in_flight busy_ms waited_ms")


class Effect(collections.namedtuple("Effect", "mode force why")):
    """mode: what is set, None without the knob; force: what is in force; why:
    AS_SET, or the reason in the kernel's words"""

    def wrong(self):
        """What to tell of it, or None if the mode that is set is in force."""
        if self.force == self.mode:
            return None
        return f"{self.mode} is set, but {self.force} is in force: {self.why}"


def node_name(name):
    """Where the node of a device is that the kernel calls so."""
    return "/dev/" + name.replace("!", "/")


class Disk:
    """A whole disk: its directory in sysfs and its device node.

    The hidden paths of NVMe multipath (nvme0c1n1) have no node: it is "".
    paths is what nvme_paths() returns; who asks for the legs of many disks
    gives it, so that it is not found out for each."""

    def __init__(self, name, node=None, paths=None):
        default = rooted(node_name(name))
        self.name = name
        self.node = (default if os.path.exists(default) else "") \
            if node is None else node
        self.dir = rooted("/sys/block/" + name)
        self.paths = paths
        self.identity = None    # once it has been looked for

    def path(self, attribute):
        return os.path.join(self.dir, attribute)

    def get(self, attribute, default=""):
        return read(self.path(attribute), default)

    def there(self):
        return os.path.isdir(self.dir)

    def gone(self, error):
        """Whether an error of using it means that it has gone."""
        return error.errno in GONE or not self.there()

    def hidden(self):
        """Whether it is a path below a head of NVMe multipath."""
        return re.fullmatch(r"nvme\d+c\d+n\d+", self.name) is not None

    def partitions(self):
        return [name for name in listing(self.dir)
                if os.path.exists(self.path(name + "/partition"))]

    def has_requests(self):
        """Whether it is blk-mq; a disk without is made of others."""
        return os.path.isdir(self.path("mq"))

    def has_knob(self):
        """Whether the kernel has the series, and the disk requests."""
        return os.path.exists(self.path("queue/plug_policy"))

    def policies(self):
        """The policies on offer; without the file, what it calls so."""
        return names_in(self.get("queue/plug_policy", "always"))

    def policy(self):
        return active(self.get("queue/plug_policy"))

    def effect(self):
        """By sysfs, so that anybody may look, also while the kernel is locked
        down."""
        if not self.has_knob():
            return Effect(None, None, None)
        mode = self.policy()
        why = self.get("queue/plug_policy_fallback", "none")
        if mode == "always" or why == "none":
            return Effect(mode, mode, AS_SET)
        return Effect(mode, "always", why)

    def set_policy(self, policy):
        write(self.path("queue/plug_policy"), policy)

    def stat(self):
        fields = read(self.path("stat")).split()
        if len(fields) < len(Stat._fields):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), self.name)
        return Stat(*map(int, fields[:len(Stat._fields)]))

    def completed(self):
        done = self.stat()
        return done.reads + done.writes

    def number(self):
        """Which disk since boot: one that comes back has another one."""
        return self.get("diskseq")

    def size(self):
        size = int(self.get("size", "0") or 0) * SECTOR
        return f"{size / 1e9:.1f} GB"

    def below(self):
        """Whole disks that it sends its I/O to directly, by name."""
        found = [disk_of_partition(slave) or slave
                 for slave in listing(self.path("slaves"))]
        if self.paths is None:
            self.paths = nvme_paths()
        return list(dict.fromkeys(found + self.paths.get(self.name, [])))

    def legs(self):
        """The disks with requests that serve it; itself, if it has."""
        return [one for one in stack_of(self, whole=False).values()
                if one.has_requests()]

    def what(self):
        """What the disk is: "LVM vg-root (dm-0)", "md0 (raid1)"."""
        name, level = printable([self.get("dm/name"), self.get("md/level")])
        if name:
            kind = self.get("dm/uuid").partition("-")[0]
            return "%s %s (%s)" % ("dm" if kind in ("", "DM") else kind, name,
                                   self.name)
        return f"{self.name} ({level})" if level else self.name


def disks():
    """Names of all disks, hidden ones included."""
    return listing(rooted("/sys/block"))


def all_disks():
    paths = nvme_paths()
    return [Disk(name, paths=paths) for name in disks()]


def is_disk(name):
    """Whether a word names one."""
    return name not in ("", ".", "..") and "/" not in name \
        and Disk(name).there()


def nvme_paths():
    """{head of NVMe multipath: names of the paths below it}."""
    found = {}
    for name in disks():
        match = re.fullmatch(r"(nvme\d+)c\d+(n\d+)", name)
        if match:
            found.setdefault(match[1] + match[2], []).append(name)
    return found


def with_knob():
    heads = {path: head for head, paths in nvme_paths().items()
             for path in paths}
    found = [heads.get(name, name) for name in disks()
             if Disk(name).has_knob()]
    found = [node_name(name) if Disk(name).node else name
             for name in dict.fromkeys(found) if is_disk(name)]
    if len(found) > MOST_NAMED:
        found[MOST_NAMED:] = [f"and {len(found) - MOST_NAMED} more"]
    return "disks with plug_policy here: " + (", ".join(found) or "none")


def without_knob(names):
    """What to raise of disks that have no policy: whose fault it is."""
    text = f"{' and '.join(names)} has no plug_policy"
    if any(Disk(name).has_knob() for name in disks()):
        return UsageProblem(f"{text} ({with_knob()})")
    return EnvironmentProblem(f"{text}: {NO_KNOB}")


def disk_of_partition(name):
    """The disk that a partition is on, or None.

    The kernel puts a number behind the disk's name, with a "p" between them
    where that ends in a digit."""
    match = re.fullmatch(r"(.*\d)p\d+|(.*\D)\d+", name)
    disk = match and (match[1] or match[2])
    return disk if disk and os.path.exists(
        rooted(f"/sys/block/{disk}/{name}/partition")) else None


def no_disk(argument, why):
    return UsageProblem(f"{argument or repr('')}: {why}; accepted: a whole "
                        f"disk, as /dev/nvme0n1 ({with_knob()})")


def kernel_name(node, argument):
    """The name that the kernel gives to the device behind a node."""
    if rooted(""):
        return os.path.basename(node)
    mode = os.stat(node)
    if not stat.S_ISBLK(mode.st_mode):
        raise no_disk(argument, "no block device")
    return os.path.basename(os.path.realpath("/sys/dev/block/%d:%d" % (
        os.major(mode.st_rdev), os.minor(mode.st_rdev))))


def find_disk(argument):
    """The disk that the user named: by path, or as the kernel names it.

    A hidden path of NVMe multipath is found, too: see Disk.node."""
    if is_disk(argument):
        return Disk(argument)
    node = os.path.realpath(rooted(argument))
    if not argument.startswith("/dev/") or not os.path.exists(node):
        hidden = os.path.basename(argument)
        if argument == "/dev/" + hidden and is_disk(hidden):
            return Disk(hidden)
        raise no_disk(argument, "no such disk")
    name = kernel_name(node, argument)
    if is_disk(name):
        return Disk(name, node)
    whole = disk_of_partition(name)
    if whole:
        raise UsageProblem(
            f"{argument} is a partition of {whole}, and the policy is the "
            f"whole disk's; accepted: {node_name(whole)}")
    raise no_disk(argument, "no disk")


def find_disks(arguments):
    """Those that the user named, each once."""
    paths, found = nvme_paths(), {}
    for disk in map(find_disk, arguments):
        disk.paths = paths
        found.setdefault(disk.name, disk)
    return list(found.values())


# --- who uses a disk -------------------------------------------------------

def open_exclusively(node):
    """A descriptor that keeps others from mounting it; OSError if taken."""
    return os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)


def signature(number):
    """What udev found on a device, as "zfs_member"; "" if nothing."""
    text = read(rooted("/run/udev/data/b" + number), "") if number else ""
    match = re.search(r"^E:ID_FS_TYPE=(.*)$", text, re.MULTILINE)
    return match.group(1) if match else ""


def mounted():
    """{number as "259:0", or node: what of it is mounted or swapped to}."""
    found = {}
    for line in read(rooted("/proc/self/mountinfo"), "").splitlines():
        fields = line.split()
        # btrfs mounts under a number of its own
        source = line.partition(" - ")[2].split()[1:2]
        if len(fields) > 4:
            for key in {fields[2], *source}:
                found.setdefault(key, []).append("mounted on " + fields[4])
    for line in read(rooted("/proc/swaps"), "").splitlines():
        for node in line.split()[:1]:
            found.setdefault(node, []).append("swap")
    return found


def mounts(name, part, known):
    """What is mounted or swapped to of a device, whose directory in sysfs is
    given, by what mounted() returns."""
    alias = read(os.path.join(part, "dm/name"), "")
    keys = [read(os.path.join(part, "dev"), ""), node_name(name),
            "/dev/mapper/" + alias if alias else ""]
    return list(dict.fromkeys(text for key in filter(None, keys)
                              for text in known.get(key, ())))


def held_by(part, seen, known):
    """Use of a device by those above it that have not been seen; part is its
    directory in sysfs."""
    found = []
    for name in listing(os.path.join(part, "holders")):
        if name not in seen:
            seen.add(name)
            above = Disk(name)
            found.append(f"held by {above.what()}")
            found += mounts(name, above.dir, known) + held_by(above.dir, seen,
                                                              known)
    return found


def held_exclusively(part, node):
    """Whether somebody holds a device exclusively, and who it may be."""
    try:
        os.close(open_exclusively(node))
    except OSError as error:
        if error.errno == errno.EBUSY:
            kind = signature(read(os.path.join(part, "dev"), ""))
            kind = {"zfs_member": "ZFS"}.get(kind, kind)
            return ["held exclusively" + (f" ({kind})" if kind else "")]
        if error.errno not in (errno.EACCES, errno.EPERM):
            return [f"not to be opened: {error.strerror}"]
    return []


def parts_of(disk):
    """(name, directory in sysfs, node) of a disk's partitions and the disk."""
    for name in disk.partitions():
        yield name, disk.path(name), rooted(node_name(name))
    yield disk.name, disk.dir, disk.node


def stack_of(disk, whole=True):
    """A disk and all below it: {name: Disk}; if not the whole, what is below
    disks with requests is left out."""
    stack, todo = {}, [disk]
    while todo:
        one = todo.pop()
        stack[one.name] = one
        if whole or not one.has_requests():
            todo += [Disk(name, paths=disk.paths)
                     for name in reversed(one.below()) if name not in stack]
    return stack


def loose_parts(disk, stack):
    """Devices of a stack that nothing in the stack itself holds."""
    for one in stack.values():
        for name, part, node in parts_of(one):
            serves = set(listing(os.path.join(part, "holders"))) & set(stack)
            if node and not serves and (one is disk or part != one.dir):
                yield name, part, node


def uses(disk):
    """Reasons to believe that somebody uses the disk or a leg of it.

    What of the legs serves the disk itself is not used by others."""
    stack, known = stack_of(disk), mounted()
    found = [f"{name} is {text}" for one in stack.values()
             for name, part, _ in parts_of(one)
             for text in mounts(name, part, known)
             + held_by(part, set(stack), known)]
    for name, part, node in [] if found else loose_parts(disk, stack):
        # who holds a partition holds the disk, too: said once
        found = found or [f"{name} is {text}"
                          for text in held_exclusively(part, node)]
    return list(dict.fromkeys(found))
