# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll keep, undo and apply, on a made-up machine."""
import fnmatch
import json
import os
import re
import shutil
import subprocess
import unittest
from unittest import mock

import rolltree
from plugtools.core.disks import Disk
from plugtools.core.journal import Journal
from plugtools.roll import keep, plugroll, rules

RULES = "etc/udev/rules.d/65-plugroll.rules"
# what udev matches or sets, in which attribute, how, and the value
TERM = re.compile(r'(\w+)(?:\{(.*?)\})?(==|!=|\+?=)"(.*?)"')


class KeepTest(rolltree.Tree):
    """What is written, and set."""

    def setUp(self):
        super().setUp()
        self.disk("nvme0n1", "seq-small")
        self.disk("nvme1n1")

    def keep(self, *words):
        """plugroll keep, which must work."""
        code, out, said = self.run_roll("keep", *words)
        self.assertEqual((code, said), (0, ""), out)
        return out

    def test_disk(self):
        """One disk, known again by its wwid."""
        lines = self.log()
        out = self.keep("adaptive", "/dev/nvme0n1")
        text = self.read(RULES)
        self.assertIn('ATTR{wwid}=="eui.nvme0n1"', text)
        self.assertIn('ATTR{queue/plug_policy}="adaptive"', text)
        self.assertIn(text, out)
        self.assertEqual((self.mode("nvme0n1"), self.mode("nvme1n1")),
                         ("adaptive", "always"))
        self.assertEqual(lines, ["keep adaptive on nvme0n1"])

    def test_twice(self):
        """The second time changes nothing, and says so."""
        self.keep("adaptive", "nvme0n1")
        before = os.stat(self.path(RULES))
        self.assertIn("the rules say so already",
                      self.keep("adaptive", "nvme0n1"))
        self.assertEqual(os.stat(self.path(RULES)).st_ino, before.st_ino)
        code, out, _ = self.run_roll("keep", "adaptive", "nvme0n1", "--json")
        self.assertEqual((code, json.loads(out)["changed"]), (0, False))

    def test_two_disks(self):
        """A second keep adds to the first; undo goes back to the start."""
        self.keep("adaptive", "nvme0n1")
        self.keep("never", "nvme1n1")
        self.keep("never", "nvme0n1")
        self.assertEqual(rules.kept_now(), [
            ("never", "wwid", "eui.nvme1n1"), ("never", "wwid", "eui.nvme0n1")
        ])
        code, out, _ = self.run_roll("undo")
        self.assertEqual((code, self.mode("nvme0n1"), self.mode("nvme1n1")),
                         (0, "seq-small", "always"))
        self.assertIn("nvme0n1 is seq-small again", out)
        self.assertEqual(self.read(RULES), "")
        self.assertEqual(self.run_roll("undo"), (0, "nothing was kept", ""))

    def test_all(self):
        """By a pattern: paths and disks that come later; a disk that is named
        as well has its own mode."""
        self.disk("sda")
        self.keep("never", "nvme1n1")
        self.keep("adaptive", "--all-nvme")
        self.assertEqual([self.mode(name) for name in ("nvme0n1", "sda")],
                         ["adaptive", "always"])
        text = self.read(RULES)
        self.assertLess(text.index('KERNEL=="nvme*"'), text.index("ATTR{ww"))
        rows = json.loads(self.run_roll("list", "--json")[1])["disks"]
        self.assertEqual([row["kept"] for row in rows],
                         ["adaptive", "never", None])

    def test_head(self):
        """A head stands for its paths: one rule, each path set."""
        shutil.rmtree(self.path("sys/block/nvme0n1"))
        self.head()
        self.keep("adaptive", "nvme0n1")
        self.assertEqual(self.read(RULES).count("# keep "), 1)
        self.assertEqual((self.mode("nvme0c0n1"), self.mode("nvme0c1n1")),
                         ("adaptive", "adaptive"))

    def test_twins(self):
        """A serial number that another disk has as well names none; two that
        are both given are kept. Of a WWID, paths share it."""
        for name in "vda", "vdb":
            self.disk(name, wwid="", serial="1234")
        self.disk("vdc", wwid="", serial="1235")
        code, _, said = self.run_roll("keep", "never", "vda")
        self.assertEqual((code, self.read(RULES), self.mode("vda")),
                         (2, "", "always"))
        self.assertIn("vda and vdb have the same serial number, 1234", said)
        self.keep("never", "vdc")
        self.keep("adaptive", "vda", "vdb")
        self.run_roll("undo")
        self.assertEqual(self.mode("vdb"), "always")
        for name in "sda", "sdb":
            self.disk(name, wwid="", device__wwid="naa.5")
        self.keep("never", "sda")

    def test_going(self):
        """A disk that goes meanwhile costs the others nothing, whenever it
        does; the rules are those of a disk that was there, or of none."""
        for words in ("--all-nvme",), ("nvme0n1", "nvme1n1", "nvme2n1"):
            for access in range(100):
                for name in ("nvme0n1", "nvme1n1", "nvme2n1"):
                    shutil.rmtree(self.path("sys/block/" + name),
                                  ignore_errors=True)
                    self.disk(name)
                with self.going("nvme1n1", access) as gone:
                    code, out, said = self.run_roll("keep", "never", *words)
                text, last = (words, access, said), not gone
                if code == 2:       # the user names a disk that is not there
                    self.assertRegex(said, "nvme1n1: no such disk")
                    continue
                self.assertEqual((code, self.mode("nvme0n1"),
                                  self.mode("nvme2n1")),
                                 (0, "never", "never"), text)
                self.assertIn(said, ("", "nvme1n1 has gone"))
                with self.going("nvme2n1", access):
                    code, out, said = self.run_roll("undo")
                self.assertEqual((code, self.mode("nvme0n1"), said),
                                 (0, "always", ""), (text, out))
                self.assertEqual(self.read(RULES), "", text)
                if last:
                    break
            self.assertGreater(access, 5)

    def test_set_by_hand(self):
        """undo leaves a mode that was set after keep."""
        self.keep("adaptive", "nvme0n1")
        self.write("sys/block/nvme0n1/queue/plug_policy",
                   rolltree.offer("never"))
        self.assertIn("nvme0n1 is left at never", self.run_roll("undo")[1])
        self.assertEqual(self.mode("nvme0n1"), "never")

    def test_nothing_by_halves(self):
        """A disk that refuses: no rule is left, and no disk is set."""
        self.keep("never", "nvme1n1")
        before = self.read(RULES)
        with rolltree.busy("nvme1n1"):
            code, _, said = self.run_roll("keep", "adaptive", "nvme0n1",
                                          "nvme1n1")
        self.assertEqual(code, 1)
        self.assertIn("Device or resource busy", said)
        self.assertEqual((self.mode("nvme0n1"), self.read(RULES)),
                         ("seq-small", before))

    def test_unwritable(self):
        """A directory that is none: nothing is set."""
        self.write("etc/udev", "a file")
        code, _, said = self.run_roll("keep", "adaptive", "--all-nvme")
        self.assertEqual((code, self.mode("nvme0n1")), (1, "seq-small"), said)

    def test_not_noted(self):
        """A path that cannot be noted as set is set, and kept."""
        shutil.rmtree(self.path("sys/block/nvme0n1"))
        self.head()
        os.makedirs(self.path(keep.APPLIED))
        lines = self.log()
        self.keep("adaptive", "nvme0n1")
        self.assertEqual(self.mode("nvme0c1n1"), "adaptive")
        self.assertIn("applied: Is a directory", lines[0])

    def test_left_by_a_killed_try(self):
        """Its mode is not taken for the one from before."""
        path = self.path("sys/block/nvme0n1/queue/plug_policy")
        journal = Journal("nvme0n1", ["nvme0n1"], "plugroll")
        journal.set(path, "never")
        os.close(journal.file)
        with rolltree.busy("nvme0n1 seq-small"):
            code, _, said = self.run_roll("keep", "adaptive", "nvme0n1")
        self.assertEqual((code, self.read(RULES)), (1, ""))
        self.assertIn("nvme0n1.journal tells of settings that could not", said)
        self.assertEqual(self.run_roll("keep", "adaptive", "nvme0n1")[0], 0)
        self.run_roll("undo")
        self.assertEqual(self.mode("nvme0n1"), "seq-small")

    def test_chosen(self):
        """Only the disks that are given: "try --keep --all-nvme" gives those
        that it has tried."""
        args = mock.Mock(mode="adaptive", all_nvme=True, json=True)
        legs = {Disk("nvme0n1"): Disk("nvme0n1").legs()}
        found = plugroll.keep_and_tell(args, legs)
        self.assertEqual((found["disks"], found["pattern"]),
                         (["nvme0n1"], None))
        self.assertNotIn("nvme*", self.read(RULES).partition("\n# Paths")[0])
        self.assertEqual(self.mode("nvme1n1"), "always")

    def test_not_ours(self):
        """A file that somebody else has written is left alone."""
        self.write(RULES, "# mine")
        for words in (("keep", "adaptive", "nvme0n1"), ("undo",)):
            code, _, said = self.run_roll(*words)
            self.assertEqual((code, self.read(RULES)), (1, "# mine"))
            self.assertIn("is not plugroll's: move it away", said)

    def test_no_identity(self):
        """A disk that could not be known again."""
        for wwid in ("", "a\x01b"):
            self.write("sys/block/nvme0n1/wwid", wwid)
            code, _, said = self.run_roll("keep", "adaptive", "nvme0n1")
            self.assertEqual((code, self.mode("nvme0n1")), (2, "seq-small"))
            self.assertIn("neither wwid nor serial", said)

    def test_odd_identity(self):
        """What udev would take for a pattern or an end matches itself."""
        self.write("sys/block/nvme0n1/wwid", 't10.ATA  A*[b]"|c was=no')
        self.keep("never", "nvme0n1")
        self.assertIn('=="t10.ATA  A??b???c was?no"', self.read(RULES))
        self.run_roll("undo")
        self.assertEqual(self.mode("nvme0n1"), "seq-small")

    @unittest.skipUnless(shutil.which("udevadm"), "udevadm: install udev")
    def test_verify(self):
        """udevadm finds no fault, with and without systemd."""
        for systemd in (False, True):
            if systemd:
                os.makedirs(self.path("run/systemd/system"))
            self.keep("adaptive", "--all-nvme")
            self.keep("never", "nvme0n1")
            done = subprocess.run(
                ["udevadm", "verify", self.path(RULES)], check=False,
                text=True, capture_output=True, env={"PATH": "/usr/bin"})
            if "Unknown command" in done.stderr:
                self.skipTest("udevadm before systemd 254 has no verify")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_systemd(self):
        """Where there is systemd it waits for paths, not udev."""
        self.keep("adaptive", "nvme0n1")
        self.assertIn('RUN+="/usr/sbin/plugroll apply"', self.read(RULES))
        os.makedirs(self.path("run/systemd/system"))
        with mock.patch("shutil.which", return_value="/usr/bin/systemd-run"):
            self.keep("adaptive", "nvme0n1")
        self.assertIn('RUN+="/usr/bin/systemd-run --quiet --no-block '
                      '--collect /usr/sbin/plugroll apply"', self.read(RULES))


class BootTest(rolltree.Tree):
    """What keep sets, what it says, and what the next boot sets."""

    def setUp(self):
        super().setUp()
        self.head()
        for name in ("nvme1n1", "nvme2n1"):
            self.disk(name)

    def modes(self):
        """Of all disks that have one."""
        return {name: self.mode(name)
                for name in sorted(os.listdir(self.path("sys/block")))
                if self.mode(name)}

    def boot(self):
        """The kernel knows no modes; udev reads the rules for each disk."""
        shutil.rmtree(self.path("run"))
        os.makedirs(self.path("run"))
        for name in self.modes():
            self.write("sys/block/%s/queue/plug_policy" % name,
                       rolltree.offer("always"))
        for name in os.listdir(self.path("sys/block")):
            hidden = "c" in name[4:]
            for line in re.sub(r"\\\n", "", self.read(RULES)).splitlines():
                if not hidden and not line.startswith("#"):
                    self.follow(name, TERM.findall(line))

    def follow(self, name, terms):
        """A rule, for a disk."""
        event = {"ACTION": "add", "SUBSYSTEM": "block", "ENV": "disk",
                 "KERNEL": name}
        for key, attribute, operator, value in terms:
            path = "sys/block/%s/%s" % (name, attribute or value)
            if key == "RUN":
                self.run_roll("apply", "--settle", "0")
            elif operator == "=":
                self.write(path, rolltree.offer(value))
            elif key == "TEST":
                found = os.path.exists(self.path(path))
            else:
                found = fnmatch.fnmatch(event.get(key) or self.read(path),
                                        value)
            if operator in ("==", "!=") and found != (operator == "=="):
                return

    def agree(self, *words):
        """plugroll keep; what it said of disks, and the modes, if they are the
        same after a boot."""
        code, out, said = self.run_roll("keep", *words)
        self.assertEqual((code, said), (0, ""), out)
        now = self.modes()
        self.boot()
        self.assertEqual(self.modes(), now, self.read(RULES))
        return re.findall("^nvme.*", out, re.M), now

    def test_exception_first(self):
        """A disk that has been named is left out, and that is said."""
        self.agree("never", "nvme1n1")
        said, modes = self.agree("adaptive", "--all-nvme")
        self.assertEqual(said, [
            "nvme1n1 is skipped: never is kept for it by name",
            "nvme0c0n1, nvme0c1n1, nvme2n1: adaptive"])
        self.assertEqual(modes, {
            "nvme0c0n1": "adaptive", "nvme0c1n1": "adaptive",
            "nvme1n1": "never", "nvme2n1": "adaptive"})

    def test_exception_last(self):
        """A disk that is named later."""
        self.agree("adaptive", "--all-nvme")
        said, modes = self.agree("never", "nvme0n1")
        self.assertEqual(said, ["nvme0c0n1, nvme0c1n1: never"])
        self.assertEqual((modes["nvme0c1n1"], modes["nvme1n1"]),
                         ("never", "adaptive"))

    def test_other_modes(self):
        """Both ways, in another mode; the same one skips nothing."""
        self.agree("adaptive", "nvme0n1")
        said, modes = self.agree("never", "--all-nvme")
        self.assertEqual((said[-1], modes["nvme0c0n1"]),
                         ("nvme1n1, nvme2n1: never", "adaptive"))
        self.assertEqual(len(self.agree("adaptive", "--all-nvme")[0]), 1)

    def test_json(self):
        """The same for programs; one file, which later events do not use."""
        self.agree("never", "nvme1n1")
        found = json.loads(self.run_roll("keep", "adaptive", "--all-nvme",
                                         "--json")[1])
        self.assertEqual((found["disks"], found["skipped"]), (
            ["nvme0c0n1", "nvme0c1n1", "nvme2n1"], {"nvme1n1": "never"}))
        self.assertEqual([list(found["written"]),
                          os.listdir(self.path("etc"))],
                         [["/" + RULES], ["udev"]])

    def test_refused(self):
        """A disk that refuses, and one that will not go back: the rules tell
        of that one only, now and after a boot."""
        with rolltree.busy("nvme2n1", "nvme1n1 always"):
            code, _, said = self.run_roll("keep", "adaptive", "--all-nvme")
        self.assertEqual(code, 1)
        self.assertIn("nvme1n1 stays at adaptive", said)
        now = self.modes()
        self.assertEqual(now.pop("nvme1n1"), "adaptive")
        self.assertEqual(set(now.values()), {"always"})
        self.boot()
        self.assertEqual(self.modes(), dict(now, nvme1n1="adaptive"))
        self.assertEqual(self.run_roll("undo")[0], 0)
        self.assertEqual(set(self.modes().values()), {"always"})


class ApplyTest(rolltree.Tree):
    """Paths of NVMe multipath that come later."""

    def setUp(self):
        super().setUp()
        self.head()
        self.run_roll("keep", "adaptive", "nvme0n1")

    def apply(self):
        """Once, without waiting."""
        return self.run_roll("apply", "--settle", "0")

    def come(self, name, number="9", wwid="eui.1"):
        """A new path."""
        self.disk(name, diskseq=number, wwid=wwid)

    def test_new_path(self):
        """It is set; paths of other disks are not."""
        self.come("nvme0c2n1")
        self.come("nvme1c3n1", wwid="eui.2")
        lines = self.log()
        self.assertEqual(self.apply(), (0, "", ""))
        self.assertEqual((self.mode("nvme0c2n1"), self.mode("nvme1c3n1")),
                         ("adaptive", "always"))
        self.assertEqual(lines, ["nvme0c2n1 is a new path: adaptive, as kept"])

    def test_set_by_hand(self):
        """A controller's event does not undo what was set by hand."""
        self.come("nvme0c2n1")
        for name in ("nvme0c0n1", "nvme0c2n1"):
            self.write("sys/block/%s/queue/plug_policy" % name,
                       rolltree.offer("never"))
            self.apply()
        self.assertEqual((self.mode("nvme0c0n1"), self.mode("nvme0c2n1")),
                         ("never", "never"))

    def test_back_again(self):
        """A path that was away is a new one."""
        shutil.rmtree(self.path("sys/block/nvme0c1n1"))
        self.come("nvme0c1n1", number="10")
        self.apply()
        self.assertEqual(self.mode("nvme0c1n1"), "adaptive")

    def test_waits(self):
        """The kernel may still be looking for namespaces."""
        end = iter([self.come, lambda name: None])
        with mock.patch("time.sleep",
                        side_effect=lambda _: next(end)("nvme0c2n1")), \
             mock.patch("time.monotonic", side_effect=[0, 1, 2, 11]):
            self.assertEqual(self.run_roll("apply")[0], 0)
        self.assertEqual(self.mode("nvme0c2n1"), "adaptive")

    def test_busy(self):
        """A path that somebody is measuring stays as it is."""
        self.come("nvme0c2n1")
        with keep.locked(["nvme0c2n1"], "plugbench"):
            self.apply()
        self.assertEqual(self.mode("nvme0c2n1"), "always")

    def test_undone(self):
        """An undo that comes first wins."""
        self.come("nvme0c2n1")
        real = keep.locked

        def undo_first(names, program):
            with mock.patch.object(keep, "locked", real):
                self.assertEqual(self.run_roll("undo")[0], 0)
            return real(names, program)

        with mock.patch.object(keep, "locked", undo_first):
            self.apply()
        self.assertEqual(self.mode("nvme0c2n1"), "always")

    def test_nothing_kept(self):
        """Then there is nothing to do."""
        self.run_roll("undo")
        code, _, said = self.apply()
        self.assertEqual(code, 1)
        self.assertIn("nothing is kept", said)


if __name__ == "__main__":
    unittest.main()
