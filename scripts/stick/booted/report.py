# SPDX-License-Identifier: GPL-2.0
"""What is written to the stick, and what is not: serial numbers.

All files are made in a directory in memory, and then copied to one on the stick
without what identifies the machine.
"""
import html
import os
import re
import subprocess
from pathlib import Path

from .disks import read

CLAIM = ("The plug policies, and nomerges=2, compared on this machine by the "
         "plug_policy stick. Disks were only read.")

# What plug-policy.conf may say
SETTINGS = {"RUN": "menu|short|full|off", "ROUNDS": "[1-9][0-9]?",
            "SECONDS": "[1-9][0-9]?", "WORKLOADS": ".+"}

# Numbers that tell this machine and its parts from others, below /sys
IDENTIFIERS = ("class/nvme/nvme*/serial", "class/dmi/id/*serial", "class/dmi/id/product_uuid",
               "class/dmi/id/*asset_tag", *(f"block/*/{name}" for name in (
                   "wwid", "uuid", "nguid", "eui", "device/serial", "device/wwid")),
               "bus/usb/devices/[0-9]*/serial")
# What means "none" is no such number, nor what is short, and perhaps a part of
# another word.
NO_NUMBER = re.compile("[Nn]one|[Dd]efault|[Ff]illed|[Ss]pecified|[Uu]nknown|^.{0,4}$")

CPUS = ("devices/system/cpu/smt/active", "devices/system/node/node*/cpulist",
        *(f"devices/system/cpu/{name}" for name in (
            "cpu0/cpufreq/scaling_driver", "cpu0/cpufreq/scaling_governor",
            "cpuidle/current_driver", "vulnerabilities/*")),
        "devices/system/clocksource/clocksource0/current_clocksource")
MACHINE = tuple(f"class/dmi/id/{name}" for name in (
    "sys_vendor", "product_name", "board_name", "bios_version", "bios_date"))
# How a disk is attached and set, and how hot it is
DISK = ("device/address", "device/device/current_link_*", "device/hwmon*/temp1_input",
        *(f"queue/{name}" for name in ("logical_block_size", "io_poll", "scheduler",
                                       "nomerges", "plug_policy")))


class Report:
    """out: the directory in memory; where: that on the stick, once there is one."""

    def __init__(self, disks, consoles, root=""):
        self.disks, self.consoles = disks, consoles
        self.out, self.stick = Path(f"{root}/tmp/out"), Path(f"{root}/mnt")
        self.where, self.failed, self.numbers = None, [], []

    def fail(self, what):
        """Noted for the report; the run goes on with what else there is."""
        self.failed.append(what)
        self.consoles.say(f"FAILED: {what}")

    def settings(self):
        """{name: value} of plug-policy.conf, and what in it is not understood"""
        found, wrong = {}, []
        for line in read(self.stick / "plug-policy.conf").splitlines():
            name, _, value = line.partition("=")
            if re.fullmatch(SETTINGS.get(name, "(?!)"), value):
                found[name] = value
            elif line and not line.startswith("#"):
                wrong.append(line)
        return found, wrong

    def new_run(self):
        """The next directory that is free; OSError if there can be none."""
        number = 1
        while (self.stick / f"run-{number}").exists():
            number += 1
        self.out.mkdir(parents=True, exist_ok=True)
        where = self.stick / f"run-{number}"
        where.mkdir()
        self.where = where
        numbers = {read(path) for name in IDENTIFIERS for path in self.disks.sys.glob(name)}
        # The longest first: a short one may be the beginning of another.
        self.numbers = sorted((one for one in numbers if not NO_NUMBER.search(one)),
                              key=len, reverse=True)

    def save(self, *names):
        """Files to the stick, at once; dmesg.txt as it is now."""
        for name in names if self.where else ():
            if name == "dmesg.txt":
                (self.out / name).write_bytes(subprocess.run(
                    ["dmesg"], check=False, stdout=subprocess.PIPE).stdout)
            if not (self.out / name).exists():
                continue
            text = (self.out / name).read_text(encoding="utf-8", errors="replace")
            for number in self.numbers:
                text = text.replace(number, "(removed)")
            try:
                (self.where / f"{name}.new").write_text(text, encoding="utf-8")
                (self.where / f"{name}.new").replace(self.where / name)
            except OSError:
                self.failed.append(f"{name}: cannot be written to the stick")
        os.sync()

    # --- the machine ----------------------------------------------------------

    def values(self, top, patterns):
        """A line "name: value" of each file of sysfs"""
        return [f"{path.relative_to(self.disks.sys)}: {' '.join(read(path).split())}"
                for name in patterns for path in sorted(top.glob(name)) if path.is_file()]

    def describe_disk(self, disk):
        top = self.disks.sys / "block" / disk
        size = int(read(top / "size") or 0) * 512 / 1e9
        return (f"{disk}: {read(top / 'device/model')}, "
                f"firmware {read(top / 'device/firmware_rev')}, {size:.1f} GB")

    def describe_nvme(self, disk):
        top = self.disks.sys / "block" / disk
        return ["", self.describe_disk(disk), *self.values(top, DISK),
                f"hardware queues: {len(list(top.glob('mq/*')))}",
                f"read-only: {'yes' if self.disks.is_read_only(disk) else 'no'}",
                f"sectors written since power-on: {self.disks.sectors_written(disk)}"]

    def describe(self):
        """The machine, with no serial numbers asked for: machine.txt"""
        cpus = read("/proc/cpuinfo")
        first = re.findall(r"^(?:vendor_id|cpu family|model|model name|microcode)\s*:.*",
                           cpus, re.M)[:5]
        lines = [" ".join(os.uname()), read("/proc/cmdline"),
                 *self.values(self.disks.sys, MACHINE),
                 f"CPUs: {len(re.findall('^processor', cpus, re.M))}",
                 *(line.replace("\t", "") for line in first),
                 *re.findall("^MemTotal.*", read("/proc/meminfo"), re.M),
                 *self.values(self.disks.sys, CPUS),
                 f"IOMMU groups: {len(list(self.disks.sys.glob('kernel/iommu_groups/*')))}"]
        for disk in self.disks.nvme():
            lines += self.describe_nvme(disk)
        (self.out / "machine.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")

    # --- the page -------------------------------------------------------------

    def outcome(self):
        """What went wrong, or that nothing did: outcome.txt"""
        lines = [f"FAILED: {what}" for what in self.failed] or ["Nothing failed."]
        lines += [f"Left alone: {disk}: {why}" for disk, why in self.disks.left.items()]
        text = "\n".join([*lines, ""])
        (self.out / "outcome.txt").write_text(text, encoding="utf-8")
        return text

    def page(self):
        # pylint: disable=import-outside-toplevel # a defect there must not cost us all
        from plugtools.report import page, verdict
        from plugtools.report.records import load
        from plugtools.report.results import section_of
        from plugtools.report.summary import summarise
        sections = [{"suite": "This machine", "claim": CLAIM,
                     "details": f"{self.outcome()}\n{read(self.out / 'machine.txt')}"}]
        for path in sorted(self.out.glob("*.json")):
            records, meta = load(str(path))
            sections.append(dict(section_of(summarise(records), verdict.of(records), meta),
                                 suite=path.stem))
        page.html(sections, str(self.out / "report.html"), "Plug policies on this machine")

    def write(self):
        """All that is not yet on the stick"""
        self.describe()
        try:
            self.page()
        except Exception as error:  # pylint: disable=broad-except # whatever it is, we go on
            self.fail(f"the page: {error!r}")
            self.outcome()
            texts = [read(path) for path in sorted(self.out.glob("*.txt"))]
            (self.out / "report.html").write_text(
                "<!DOCTYPE html><title>plug policies on this machine</title><pre>"
                + html.escape("\n".join(texts)) + "</pre>", encoding="utf-8")
        (self.out / "log.txt").write_text("\n".join([*self.consoles.log, ""]), encoding="utf-8")
        self.save("machine.txt", "outcome.txt", "report.html", "log.txt", "dmesg.txt")
