# SPDX-License-Identifier: GPL-2.0
"""What is written to the stick, and what is not: serial numbers.

Each boot of a run has a directory there. Files are made in one in memory, and then
copied without what identifies the machine."""
import contextlib
import os
import re
import subprocess
from pathlib import Path

from .disks import read

# What plug-policy.conf may say
SETTINGS = {"RUN": "menu|short|full|off", "BOOTS": "[1-9]", "ROUNDS": "[1-9][0-9]?",
            "SECONDS": "[1-9][0-9]?", "WORKLOADS": ".+"}

# Numbers that tell this machine and its parts from others, below /sys
IDENTIFIERS = ("class/nvme/nvme*/serial", "class/dmi/id/*serial", "class/dmi/id/product_uuid",
               "class/dmi/id/*asset_tag", *(f"block/*/{name}" for name in (
                   "wwid", "uuid", "nguid", "eui", "device/serial", "device/wwid")),
               "bus/usb/devices/[0-9]*/serial")
# What means "none" is no such number, nor what is short, and perhaps a part of
# another word.
NO_NUMBER = re.compile("[Nn]one|[Dd]efault|[Ff]illed|[Ss]pecified|[Uu]nknown|^.{0,4}$")
END = "The end."


class Report:
    """out: the directory in memory; run: that on the stick, once there is one; where:
    of this boot; round: which boot of its kind this is."""

    def __init__(self, disks, consoles, root=""):
        self.disks, self.consoles = disks, consoles
        self.out, self.stick = Path(f"{root}/tmp/out"), Path(f"{root}/mnt")
        self.run = self.where = None
        self.round, self.failed, self.numbers = 1, [], []
        self.out.mkdir(parents=True, exist_ok=True)

    def fail(self, what):
        """Noted for the report; the run goes on with what else there is."""
        self.failed.append(what)
        self.note(f"FAILED: {what}")

    def note(self, text):
        """Said, and at once in outcome.txt of the run, whatever comes next"""
        self.consoles.say(text)
        with contextlib.suppress(OSError), open(self.run / "outcome.txt", "a",
                                                encoding="utf-8") as out:
            out.write(self.nameless(f"{self.where.name}: {text}\n"))
        os.sync()

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
        """The name of the next directory that is free"""
        number = 1
        while (self.stick / f"run-{number}").exists():
            number += 1
        self.run = self.where = self.stick / f"run-{number}"
        self.run.mkdir()
        return self.run.name

    def cut_short(self):
        """The name of a run that has not come to its end"""
        return next((path.name for path in sorted(self.stick.glob("run-*"))
                     if not read(path / "outcome.txt").endswith(END)), None)

    def begin(self, run, kind):
        """A boot of a run"""
        self.run = self.stick / run
        self.round = len(list(self.run.glob(f"[1-9]-{kind}"))) + 1
        self.where = self.run / f"{self.round}-{kind}"
        numbers = {read(path) for name in IDENTIFIERS for path in self.disks.sys.glob(name)}
        # The longest first: a short one may be the beginning of another.
        self.numbers = sorted((one for one in numbers if not NO_NUMBER.search(one)),
                              key=len, reverse=True)
        self.where.mkdir()
        self.note("begins")

    def nameless(self, text):
        for number in self.numbers:
            text = text.replace(number, "(removed)")
        return text

    def save(self, *names):
        """Files of this boot to the stick, at once, and dmesg.txt as it is now"""
        (self.out / "dmesg.txt").write_bytes(subprocess.run(
            ["dmesg"], check=False, stdout=subprocess.PIPE).stdout)
        for path in filter(Path.exists, map(self.out.joinpath, (*names, "dmesg.txt"))):
            new = self.where / f"{path.name}.new"
            try:
                new.write_text(f"{self.nameless(read(path))}\n", encoding="utf-8")
                new.replace(self.where / path.name)
            except OSError:
                self.fail(f"{path.name}: cannot be written to the stick")
        os.sync()

    def finish(self, run):
        """The page of all boots, and what is said at the end"""
        self.run = self.stick / run
        self.where = self.where or self.run
        try:
            # pylint: disable=import-outside-toplevel # a defect there must not cost us all
            from . import page
            page.write(self.run)
        except Exception as error:  # pylint: disable=broad-except # whatever it is, we go on
            self.fail(f"the page: {error!r}")
        self.note(END)
        self.consoles.say(f"What there is to report is on the stick: {run}/report.html\n"
                          + read(self.run / "outcome.txt"))
