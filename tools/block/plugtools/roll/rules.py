# SPDX-License-Identifier: GPL-2.0
"""What keeps a mode over a reboot and hotplug: udev rules.

udev sees every disk but the hidden paths of NVMe multipath.  These come with
their head or with a controller, whose events make udev run "plugroll apply".
At boot it is told of all disks once more, of those in the initrd as well.
"""
import collections
import fnmatch
import os
import re
import shutil
import subprocess
import sys

from ..core.disks import Disk
from ..core.journal import locked
from ..core.system import (EnvironmentProblem, UsageProblem, listing, read,
                           rooted)
from ..report.records import write_file

RULES = "/etc/udev/rules.d/65-plugroll.rules"
ALL_NVME = "nvme*"
LATER = "always"                # what undo sets on disks that came after keep
WAIT_SECONDS = 10               # for another plugroll to be done with a file
HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# Written by "plugroll keep", which reads it again: edit it with that, or copy
# it to another name.  "plugroll undo" removes it.
"""
RULE = """\
ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", \\
  TEST=="queue/plug_policy", %s, \\
  ATTR{queue/plug_policy}="%s"
"""
PATHS = """
# Paths of NVMe multipath have no event.  They come with a head, or shortly
# after a controller has connected.
ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="nvme*", \\
  TEST!="mq", RUN+="%(run)s"
ACTION=="change", SUBSYSTEM=="nvme", ENV{NVME_EVENT}=="connected", \\
  RUN+="%(run)s"
"""
IDENTITIES = ("wwid", "device/wwid", "serial", "device/serial")
KEPT = re.compile(r"^# keep (\S+) (\S+?)=(.*)$", re.M)
WAS = re.compile(r"^# was (\S+) (\S+) (\S+?)=(.*)$", re.M)

# key: "name", or which file in sysfs identifies the disk
Kept = collections.namedtuple("Kept", "mode key value")
# Before anything was kept; name: of which of the paths that have an identity
Was = collections.namedtuple("Was", "mode name key value")
# What the file holds: lists of these
Rules = collections.namedtuple("Rules", "kept was")


def alone(path):
    """Hold the lock of a file to be read, changed, written; wait for it."""
    return locked([os.path.basename(path)], "plugroll", WAIT_SECONDS)


def identity(disk):
    """(file in sysfs, what it holds) by which a disk is known again."""
    for key in () if disk.identity else IDENTITIES:
        value = disk.get(key)
        if value and value.isprintable():
            disk.identity = key, value
            break
    if disk.identity:
        return disk.identity
    raise UsageProblem(f"{disk.name} has neither wwid nor serial, so it "
                       "cannot be known again after a reboot; accepted: "
                       "disks that have one, or --all-nvme")


def check_alone(disks):
    """Refuse a disk that has another one's serial number: the rule would be for
    both.  Of paths to one disk, the WWID is rightly the same."""
    known = {identity(disk): disk.name for disk in disks}
    known = {one: name for one, name in known.items()
             if one[0].endswith("serial")}
    chosen = {disk.name for disk in disks}
    for other in map(Disk, listing(rooted("/sys/block")) if known else ()):
        for key in {key for key, _ in known} if other.has_knob() else ():
            value = other.get(key)
            if (key, value) in known and other.name not in chosen:
                raise UsageProblem(
                    f"{known[key, value]} and {other.name} have the same "
                    f"serial number, {value}, and no WWID, so they cannot be "
                    "told apart after a reboot; accepted: both, or --all-nvme")


def known_by(disk):
    """The same; the name, if there is nothing better."""
    try:
        return identity(disk)
    except UsageProblem:
        return "name", disk.name


def entries_of(disk, entries):
    """Those that are about a disk, each of whose files is read once."""
    known = {key: disk.get(key) for key in {one.key for one in entries}}
    return [one for one in entries if (
        fnmatch.fnmatch(disk.name, one.value) if one.key == "name" else
        known[one.key] == one.value)]


def on_file():
    """The Rules that are written down."""
    text = read(rooted(RULES), "")
    if text and not text.startswith(HEAD[:HEAD.index("which")]):
        raise EnvironmentProblem(f"{RULES} is not plugroll's: move it away")
    return Rules([Kept(*found) for found in KEPT.findall(text)],
                 [Was(*found) for found in WAS.findall(text)])


def mode_for(disk, kept):
    """The mode that a disk is to have, or None; later ones win."""
    found = entries_of(disk, kept)
    return found[-1].mode if found else None


def recorded(disk, rules):
    """The mode that is on file as the one from before, or None."""
    found = {one.name: one.mode for one in entries_of(disk, rules.was)}
    # a path that came later was as the first one
    return found.get(disk.name, next(iter(found.values()), None))


def mode_before(disk, rules):
    """The mode from before anything was kept for a disk."""
    return recorded(disk, rules) or (
        LATER if mode_for(disk, rules.kept) else disk.policy())


def merge(rules, more):
    """Both; the newer mode for the same disk, but the older one from before.

    Patterns come first: what names a disk wins."""
    keys = {one[1:] for one in more.kept}
    known = {one[2:] for one in rules.was}
    kept = [one for one in rules.kept if one[1:] not in keys] + more.kept
    return Rules(sorted(kept, key=lambda one: one.key != "name"),
                 rules.was + [one for one in more.was if one[2:] not in known])


def add(rules, mode, legs, all_nvme):
    """The same that keep a mode, too: on some disks, or on all NVMe disks."""
    new = [Kept(mode, "name", ALL_NVME)] if all_nvme else list(
        dict.fromkeys(Kept(mode, *identity(leg)) for leg in legs))
    kept = merge(rules, Rules(new, [])).kept
    return merge(rules, Rules(kept, [
        Was(before, leg.name, *known_by(leg)) for leg, before in (
            (leg, mode_before(leg, rules)) for leg in legs
            if mode_for(leg, kept) == mode) if before]))


def only(rules, disks):
    """What they say of some disks, each by itself."""
    return Rules(
        list(dict.fromkeys(Kept(mode_for(disk, rules.kept), *known_by(disk))
                           for disk in disks)),
        [Was(mode_before(disk, rules), disk.name, *known_by(disk))
         for disk in disks])


def pattern(value):
    """A value as udev matches it: what it could misread is any character."""
    return re.sub(r"[^A-Za-z0-9 ._:+/-]", "?", value)


def condition(kept):
    if kept.key == "name":
        return f'KERNEL=="{kept.value}"'
    return f'ATTR{{{kept.key}}}=="{pattern(kept.value)}"'


def apply_command():
    """What udev is to run.

    It waits for paths, which a rule may not do for long: systemd runs it
    instead, where there is systemd."""
    program = [os.path.realpath(sys.argv[0]), "apply"]
    runner = shutil.which("systemd-run")
    if runner and os.path.isdir(rooted("/run/systemd/system")):
        program = [runner, "--quiet", "--no-block", "--collect", *program]
    if any(re.search(r"[\s\"'$%]", word) for word in program):
        raise EnvironmentProblem(f"{program[-2]}: udev cannot run a program "
                                 "of this name; install it elsewhere")
    return " ".join(program)


def text_of(rules):
    if not rules.kept:
        return ""
    text = HEAD + "".join("# was %s %s %s=%s\n" % one for one in rules.was)
    for one in rules.kept:
        text += "\n# keep %s %s=%s\n" % one + RULE % (condition(one), one.mode)
    return text + PATHS % {"run": apply_command()}


def install(rules):
    """Write or remove the file: what it holds now, None if it did before."""
    text, path = text_of(rules), rooted(RULES)
    if read(path, "") == text.strip():
        return None
    if text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, text.encode())
    else:
        os.unlink(path)
    reload_udev()
    return text


def reload_udev():
    if not rooted("") and shutil.which("udevadm"):
        subprocess.run(["udevadm", "control", "--reload"], check=False,
                       stderr=subprocess.DEVNULL)
