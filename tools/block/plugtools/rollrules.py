# SPDX-License-Identifier: GPL-2.0
"""What keeps a mode over a reboot and hotplug: a udev rule and tmpfiles.d.

udev sees every disk but the hidden paths of NVMe multipath.  These come with
their head or with a controller, whose events make udev run "plugroll apply".
"""
import collections
import fnmatch
import os
import re
import shutil
import subprocess
import sys

from .records import write_file
from .system import EnvironmentProblem, UsageProblem, read, rooted

RULES = "/etc/udev/rules.d/65-plugroll.rules"
TMPFILES = "/etc/tmpfiles.d/plugroll.conf"
ALL_NVME = "nvme*"
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
LINE = "w- /sys/block/%s/queue/plug_policy - - - - %s\n"
IDENTITIES = ("wwid", "device/wwid", "serial", "device/serial")
KEPT = re.compile(r"^# keep (\S+) (\S+?)=(.*) was=(\S+)$", re.M)

# key: "name", or which file in sysfs identifies the disk
Kept = collections.namedtuple("Kept", "mode key value was")


def identity(disk):
    """(file in sysfs, what it holds) by which a disk is known again."""
    for key in IDENTITIES:
        value = disk.get(key)
        if value and value.isprintable():
            return key, value
    raise UsageProblem("%s has neither wwid nor serial, so it cannot be known "
                       "again after a reboot; accepted: disks that have one, "
                       "or --all-nvme" % disk.name)


def matches(kept, disk):
    """Whether a disk is meant."""
    if kept.key == "name":
        return fnmatch.fnmatch(disk.name, kept.value)
    return disk.get(kept.key) == kept.value


def kept_now():
    """What has been kept; later ones win."""
    text = read(rooted(RULES), "")
    if text and not text.startswith(HEAD[:HEAD.index("which")]):
        raise EnvironmentProblem("%s is not plugroll's: move it away" % RULES)
    return [Kept(*found) for found in KEPT.findall(text)]


def mode_for(disk, kept):
    """The mode that a disk is to have, or None."""
    found = [one.mode for one in kept if matches(one, disk)]
    return found[-1] if found else None


def merge(kept, added):
    """Both; an older entry for the same disk goes, but not what was before it.

    Patterns come first: what names a disk wins.
    """
    before = {one[1:3]: one.was for one in kept}
    keys = {one[1:3] for one in added}
    found = [one for one in kept if one[1:3] not in keys] + [
        one._replace(was=before.get(one[1:3], one.was)) for one in added]
    return sorted(found, key=lambda one: one.key != "name")


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


def rules_text(kept):
    """The udev rules."""
    text = HEAD
    for one in kept:
        text += "\n# keep %s %s=%s was=%s\n" % one + RULE % (
            condition(one), one.mode)
    return text + PATHS % {"run": apply_command()}


def tmpfiles_text(kept):
    """Lines for what a pattern reaches at boot, without any program."""
    lines = "".join(LINE % (one.value, one.mode) for one in kept
                    if one.key == "name")
    return HEAD + lines if lines else ""


def texts(kept):
    """{file: what it is to hold, "" for no file}"""
    return {RULES: rules_text(kept) if kept else "",
            TMPFILES: tmpfiles_text(kept)}


def put(path, text):
    """Replace or remove a file; whether that changed anything."""
    path = rooted(path)
    if read(path, "") == text.strip():
        return False
    if not text:
        os.unlink(path)
        return True
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_file(path, text.encode())
    return True


def install(wanted):
    """Write the files, all or none; those that changed."""
    before = {path: read(rooted(path), "") for path in wanted}
    try:
        changed = [path for path, text in wanted.items() if put(path, text)]
    except Exception:
        for path, text in before.items():
            put(path, text + "\n" if text else "")
        raise
    if changed:
        reload_udev()
    return changed


def reload_udev():
    """udevd notices new rules by itself; this makes it sure."""
    if not rooted("") and shutil.which("udevadm"):
        subprocess.run(["udevadm", "control", "--reload"], check=False,
                       stderr=subprocess.DEVNULL)


def new_entries(mode, chosen, all_nvme):
    """What keep is to add."""
    if all_nvme:
        before = collections.Counter(disk.policy() for disk in chosen)
        was = before.most_common(1)[0][0] if before else "always"
        return [Kept(mode, "name", ALL_NVME, was)]
    found = {}
    for disk in chosen:
        found.setdefault(identity(disk), disk.policy())
    return [Kept(mode, *key, was) for key, was in found.items()]
