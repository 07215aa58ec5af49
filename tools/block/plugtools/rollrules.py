# SPDX-License-Identifier: GPL-2.0
"""What keeps a mode over a reboot and hotplug: udev rules.

udev sees every disk but the hidden paths of NVMe multipath.  These come with
their head or with a controller, whose events make udev run "plugroll apply".
At boot it is told of all disks once more, of those in the initrd as well.
"""
import collections
import contextlib
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import time

from .journal import Held, locked
from .records import write_file
from .system import EnvironmentProblem, UsageProblem, read, rooted

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
# What the file holds, two lists
Rules = collections.namedtuple("Rules", "kept was")


@contextlib.contextmanager
def alone(path):
    """Hold the lock of a file that is read, changed and written; wait for it.
    """
    end = time.monotonic() + WAIT_SECONDS
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked([os.path.basename(path)],
                                           "plugroll"))
                break
            except Held:
                if time.monotonic() > end:
                    raise
            time.sleep(0.05)
        yield


def identity(disk):
    """(file in sysfs, what it holds) by which a disk is known again."""
    for key in IDENTITIES:
        value = disk.get(key)
        if value and value.isprintable():
            return key, value
    raise UsageProblem("%s has neither wwid nor serial, so it cannot be known "
                       "again after a reboot; accepted: disks that have one, "
                       "or --all-nvme" % disk.name)


def known_by(disk):
    """The same; the name, if there is nothing better."""
    try:
        return identity(disk)
    except UsageProblem:
        return "name", disk.name


def matches(one, disk):
    """Whether a disk is meant."""
    if one.key == "name":
        return fnmatch.fnmatch(disk.name, one.value)
    return disk.get(one.key) == one.value


def on_file():
    """The Rules that are written down."""
    text = read(rooted(RULES), "")
    if text and not text.startswith(HEAD[:HEAD.index("which")]):
        raise EnvironmentProblem("%s is not plugroll's: move it away" % RULES)
    return Rules([Kept(*found) for found in KEPT.findall(text)],
                 [Was(*found) for found in WAS.findall(text)])


def kept_now():
    """What has been kept; later ones win."""
    return on_file().kept


def mode_for(disk, kept):
    """The mode that a disk is to have, or None."""
    found = [one.mode for one in kept if matches(one, disk)]
    return found[-1] if found else None


def recorded(disk, rules):
    """The mode that is on file as the one from before, or None."""
    found = {one.name: one.mode for one in rules.was if matches(one, disk)}
    # a path that came later was as the first one
    return found.get(disk.name, next(iter(found.values()), None))


def mode_before(disk, rules):
    """The mode from before anything was kept for a disk."""
    return recorded(disk, rules) or (
        LATER if mode_for(disk, rules.kept) else disk.policy())


def merge(rules, more):
    """Both; the newer mode for the same disk, but the older one from before.

    Patterns come first: what names a disk wins.
    """
    keys = {one[1:] for one in more.kept}
    known = {one[2:] for one in rules.was}
    kept = [one for one in rules.kept if one[1:] not in keys] + more.kept
    return Rules(sorted(kept, key=lambda one: one.key != "name"), rules.was + [
        one for one in more.was if one[2:] not in known])


def add(rules, mode, legs, all_nvme):
    """The same that keep a mode, too: on some disks, or on all NVMe disks."""
    new = [Kept(mode, "name", ALL_NVME)] if all_nvme else list(
        dict.fromkeys(Kept(mode, *identity(leg)) for leg in legs))
    kept = merge(rules, Rules(new, [])).kept
    return merge(rules, Rules(kept, [
        Was(mode_before(leg, rules), leg.name, *known_by(leg))
        for leg in legs if mode_for(leg, kept) == mode]))


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
    """How udev knows the disk."""
    if kept.key == "name":
        return 'KERNEL=="%s"' % kept.value
    return 'ATTR{%s}=="%s"' % (kept.key, pattern(kept.value))


def apply_command():
    """What udev is to run.

    It waits for paths, which a rule may not do for long: systemd runs it
    instead, where there is systemd.
    """
    program = [os.path.realpath(sys.argv[0]), "apply"]
    runner = shutil.which("systemd-run")
    if runner and os.path.isdir(rooted("/run/systemd/system")):
        program = [runner, "--quiet", "--no-block", "--collect", *program]
    if any(re.search(r"[\s\"'$%]", word) for word in program):
        raise EnvironmentProblem("%s: udev cannot run a program of this name; "
                                 "install it elsewhere" % program[-2])
    return " ".join(program)


def text_of(rules):
    """The file; "" for none."""
    if not rules.kept:
        return ""
    text = HEAD + "".join("# was %s %s %s=%s\n" % one for one in rules.was)
    for one in rules.kept:
        text += "\n# keep %s %s=%s\n" % one + RULE % (
            condition(one), one.mode)
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
    """udevd notices new rules by itself; this makes it sure."""
    if not rooted("") and shutil.which("udevadm"):
        subprocess.run(["udevadm", "control", "--reload"], check=False,
                       stderr=subprocess.DEVNULL)
