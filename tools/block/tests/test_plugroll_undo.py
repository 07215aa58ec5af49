# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll undo, and of what ends keep and undo half-way."""
import json
import os
import signal
import threading
import unittest
from unittest import mock

import rolltree
from plugtools.core.disks import Disk
from plugtools.core.journal import Journal
from plugtools.core.system import Interrupted
from plugtools.roll import keep, plugroll, rules

RULES = "etc/udev/rules.d/65-plugroll.rules"
KNOB = "sys/block/%s/queue/plug_policy"


class Disks(rolltree.Tree):
    """Three disks, one of them in another mode."""

    def setUp(self):
        super().setUp()
        for name, mode in (("nvme0n1", "never"), ("nvme1n1", "always"),
                           ("nvme2n1", "always")):
            self.disk(name, mode)

    def keep(self, *words):
        """plugroll keep, which must work."""
        code, out, said = self.run_roll("keep", *words)
        self.assertEqual((code, said), (0, ""), out)

    def modes(self):
        """Of the disks."""
        return [self.mode("nvme%dn1" % number) for number in range(3)]


class UndoTest(Disks):
    """All is as it was, or else is not forgotten."""

    def test_each_as_it_was(self):
        """Of a pattern, too."""
        self.keep("adaptive", "--all-nvme")
        code, out, _ = self.run_roll("undo")
        self.assertEqual((code, self.modes()),
                         (0, ["never", "always", "always"]))
        self.assertIn("nvme0n1 is never again", out)

    def test_first_record(self):
        """A disk that is named first, and then all."""
        self.keep("adaptive", "nvme1n1")
        self.keep("seq-small", "--all-nvme")
        self.keep("never", "nvme2n1")
        self.assertEqual(self.run_roll("undo")[0], 0)
        self.assertEqual(self.modes(), ["never", "always", "always"])

    def test_paths(self):
        """Paths of one disk in two modes; one that comes later."""
        self.disk("nvme7n1", mode="", wwid="eui.7")
        for path, mode in (("nvme7c0n1", "always"), ("nvme7c1n1", "never")):
            self.disk(path, mode, wwid="eui.7")
        self.keep("adaptive", "nvme7n1")
        self.disk("nvme7c2n1", "adaptive", wwid="eui.7")
        self.keep("seq-small", "nvme7n1")
        self.assertEqual(self.run_roll("undo")[0], 0)
        self.assertEqual([self.mode("nvme7c%dn1" % path)
                          for path in range(3)], ["always", "never", "always"])

    def test_came_later(self):
        """Nothing is known of it; its kept mode is none from before."""
        self.keep("adaptive", "--all-nvme")
        for name in ("nvme3n1", "nvme4n1"):
            self.disk(name, "adaptive")
        self.keep("never", "nvme4n1")
        out = self.run_roll("undo")[1]
        self.assertEqual((self.mode("nvme3n1"), self.mode("nvme4n1")),
                         ("always", "always"))
        self.assertIn("nvme3n1 is always now; it came after keep", out)

    def test_busy(self):
        """A disk that refuses: the rules go on telling of it alone, and the
        next undo puts it back."""
        self.keep("adaptive", "--all-nvme")
        with rolltree.busy("nvme0n1"):
            code, out, _ = self.run_roll("undo")
        self.assertEqual((code, self.modes()),
                         (1, ["adaptive", "always", "always"]))
        self.assertIn("nvme0n1: Device or resource busy", out)
        self.assertEqual(rules.on_file(), (
            [("adaptive", "wwid", "eui.nvme0n1")],
            [("never", "nvme0n1", "wwid", "eui.nvme0n1")]))
        self.assertEqual(self.run_roll("undo")[0], 0)
        self.assertEqual((self.mode("nvme0n1"), self.read(RULES)),
                         ("never", ""))

    def test_unknown_disk(self):
        """One without an identity is known by its name."""
        self.write("sys/block/nvme0n1/wwid", "")
        self.keep("adaptive", "--all-nvme")
        with rolltree.busy("nvme0n1"):
            self.assertEqual(self.run_roll("undo")[0], 1)
        self.assertIn('KERNEL=="nvme0n1"', self.read(RULES))
        self.assertEqual(self.run_roll("undo")[0], 0)
        self.assertEqual(self.mode("nvme0n1"), "never")

    def test_killed_try(self):
        """What a killed try left, and cannot be put back, is a problem, with
        rules and without."""
        for kept in (False, True):
            if kept:
                self.keep("adaptive", "nvme1n1")
            before = self.mode("nvme1n1")
            journal = Journal("nvme1n1", ["nvme1n1"], "plugroll")
            journal.set(self.path(KNOB % "nvme1n1"), "seq-small")
            os.close(journal.file)
            with rolltree.busy("nvme1n1 " + before):
                code, out, _ = self.run_roll("undo")
            self.assertEqual((code, bool(self.read(RULES))), (1, kept), out)
            self.assertIn("is not put back", out)
            code, out, _ = self.run_roll("undo", "--json")
            self.assertEqual((code, json.loads(out)["problems"]), (0, []))
            self.assertEqual(self.mode("nvme1n1"), "always")
        self.assertEqual(self.run_roll("undo"), (0, "nothing was kept", ""))


class InterruptTest(Disks):
    """A signal at the worst moment."""

    def interrupted(self, what, *words):
        """What is said if one comes while a mode is set."""
        with rolltree.busy(what, error=Interrupted("SIGTERM")):
            code, _, said = self.run_roll(*words)
        self.assertEqual(code, 130)
        return said

    def test_undo(self):
        """The next undo puts back the rest."""
        self.keep("adaptive", "--all-nvme")
        self.assertEqual(self.interrupted("nvme1n1", "undo"), "plugroll: "
                         "interrupted by SIGTERM; the next undo does the rest")
        self.assertEqual(self.modes(), ["never", "adaptive", "adaptive"])
        self.assertNotIn("eui.nvme0n1", self.read(RULES))
        code, out, _ = self.run_roll("undo")
        self.assertEqual((code, self.modes(), self.read(RULES)),
                         (0, ["never", "always", "always"], ""))
        self.assertIn("nvme2n1 is always again", out)

    def test_undo_killed(self):
        """The same if there was no time to write that down."""
        self.keep("adaptive", "--all-nvme")
        with mock.patch.object(keep, "install", return_value=None):
            self.interrupted("nvme1n1", "undo")
        self.assertIn("nvme0n1 is never again", self.run_roll("undo")[1])
        self.assertEqual((self.modes(), self.read(RULES)),
                         (["never", "always", "always"], ""))

    def test_keep(self):
        """All or nothing, of modes and rules."""
        self.keep("never", "nvme2n1")
        before = self.read(RULES)
        for error in (Interrupted("SIGTERM"), KeyboardInterrupt()):
            with rolltree.busy("nvme1n1", error=error), \
                 self.assertRaises(type(error)):
                keep.keep("adaptive", [
                    Disk("nvme0n1"), Disk("nvme1n1")])
            self.assertEqual((self.modes(), self.read(RULES)),
                             (["never", "always", "never"], before))
        self.assertEqual(
            self.interrupted("nvme1n1", "keep", "adaptive", "--all-nvme"),
            "plugroll: interrupted by SIGTERM")

    def test_second_signal(self):
        """One that comes while modes are put back waits until they are."""
        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(
            signal.SIGTERM, plugroll.interrupt))

        def write(path, value):
            if "nvme1n1" in path:
                raise OSError(16, "Device or resource busy", path)
            if value == "never":
                os.kill(os.getpid(), signal.SIGTERM)
            self.kernel_write(path, value)

        with mock.patch("plugtools.core.disks.write", write), \
             self.assertRaises(Interrupted):
            keep.keep("adaptive", [Disk("nvme0n1"), Disk("nvme1n1")])
        self.assertEqual((self.modes()[0], self.read(RULES)), ("never", ""))

    def test_keep_writes(self):
        """While the rules are written."""
        with mock.patch.object(rules, "reload_udev",
                               side_effect=[Interrupted("SIGHUP"), None]):
            self.assertEqual(self.run_roll("keep", "adaptive", "nvme0n1")[0],
                             130)
        self.assertEqual((self.modes()[0], self.read(RULES)), ("never", ""))


class AtOnceTest(Disks):
    """Two of us at once."""

    def keep_during(self, first):
        """Keep a mode on nvme1n1 while something else writes the rules."""
        second = threading.Thread(target=keep.keep, args=(
            "seq-small", [Disk("nvme1n1")]))
        real = keep.install

        def install(rules):
            if not second.ident:
                second.start()
                second.join(.3)         # as far as it gets
            return real(rules)

        with mock.patch.object(keep, "install", install):
            first()
            second.join()
        self.assertIn("eui.nvme1n1", self.read(RULES))

    def test_two_keeps(self):
        """No entry is lost."""
        self.keep_during(lambda: keep.keep("adaptive", [Disk("nvme0n1")]))
        self.assertIn("eui.nvme0n1", self.read(RULES))

    def test_keep_and_undo(self):
        """What is kept after an undo stays."""
        self.keep("adaptive", "nvme0n1")
        self.keep_during(keep.undo)
        self.assertNotIn("eui.nvme0n1", self.read(RULES))

    def test_waits_no_longer(self):
        """Whoever takes too long is told of."""
        with rules.alone(rules.RULES), \
             mock.patch.object(rules, "WAIT_SECONDS", 0):
            code, _, said = self.run_roll("undo")
        self.assertEqual(code, 1)
        self.assertIn("65-plugroll.rules is being worked on by plugroll", said)


if __name__ == "__main__":
    unittest.main()
