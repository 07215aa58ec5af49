# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll keep, undo and apply, on a made-up machine."""
import json
import os
import shutil
import subprocess
import unittest
from unittest import mock

import rolltree
from plugtools import rollkeep, rollrules

RULES = "etc/udev/rules.d/65-plugroll.rules"
TMPFILES = "etc/tmpfiles.d/plugroll.conf"


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
        self.assertEqual(self.read(TMPFILES), "")
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
        self.assertEqual(rollrules.kept_now(), [
            ("never", "wwid", "eui.nvme1n1", "always"),
            ("never", "wwid", "eui.nvme0n1", "seq-small")])
        code, out, _ = self.run_roll("undo")
        self.assertEqual((code, self.mode("nvme0n1"), self.mode("nvme1n1")),
                         (0, "seq-small", "always"))
        self.assertIn("nvme0n1 is seq-small again", out)
        self.assertEqual((self.read(RULES), self.read(TMPFILES)), ("", ""))
        self.assertEqual(self.run_roll("undo"), (0, "nothing was kept", ""))

    def test_all(self):
        """By a pattern: paths and disks that come later, at boot without
        udev; a disk that is named as well has its own mode."""
        self.disk("sda")
        self.keep("never", "nvme1n1")
        self.keep("adaptive", "--all-nvme")
        self.assertIn("w- /sys/block/nvme*/queue/plug_policy - - - - adaptive",
                      self.read(TMPFILES))
        self.assertEqual([self.mode(name) for name in ("nvme0n1", "sda")],
                         ["adaptive", "always"])
        text = self.read(RULES)
        self.assertLess(text.index('KERNEL=="nvme*"'), text.index("eui.nvme1"))
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
        was = self.kernel_write

        def refuse(path, value):
            if "nvme1n1" in path:
                raise OSError(16, "Device or resource busy", path)
            was(path, value)

        with mock.patch("plugtools.disks.write", refuse):
            code, _, said = self.run_roll("keep", "adaptive", "nvme0n1",
                                          "nvme1n1")
        self.assertEqual(code, 1)
        self.assertIn("Device or resource busy", said)
        self.assertEqual((self.mode("nvme0n1"), self.read(RULES)),
                         ("seq-small", before))

    def test_unwritable(self):
        """A directory that is none: nothing is set, either file goes."""
        self.write("etc/tmpfiles.d", "a file")
        code, _, said = self.run_roll("keep", "adaptive", "--all-nvme")
        self.assertEqual((code, self.mode("nvme0n1")), (1, "seq-small"), said)
        self.assertEqual(self.read(RULES), "")

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
        with rollkeep.locked(["nvme0c2n1"], "plugbench"):
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
