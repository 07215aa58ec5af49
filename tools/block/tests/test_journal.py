#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools.journal: locks, journals, and what recover() does."""
import glob
import json
import os
import subprocess
import sys
import time
import unittest
from unittest import mock

import faketree
from plugtools.bench import children
from plugtools.core import journal, system

KNOB = "sys/block/nvme0n1/queue/plug_policy"


class Case(faketree.Tree):
    """A tree with a disk, and a journal that nothing is in yet."""

    def setUp(self):
        super().setUp()
        self.put(KNOB, "[always] never")
        self.put("sys/block/nvme0n1/diskseq", "7")
        self.knob = self.path(KNOB)
        self.file = self.path("run/plug-policy/nvme0n1.journal")
        self.told = []

    def setting(self):
        """The policy in force."""
        return system.active(system.read(self.knob))

    @staticmethod
    def journal():
        """One of the disk."""
        return journal.Journal("nvme0n1", ["nvme0n1"], "plugroll")

    def killed(self, value="never"):
        """A journal whose program was killed after it set a policy."""
        found = self.journal()
        found.set(self.knob, value)
        os.close(found.file)

    def recover(self, good=True):
        """What recover() tells."""
        self.assertEqual(journal.recover(self.told.append), good)
        return "\n".join(self.told)


class Write(Case):
    """What is in the file, and when."""

    def test_before_the_change(self):
        """On disk, with how it was, when the setting is written."""
        synced, seen = [], []

        def write(path, value):
            with open(self.file, encoding="ascii") as file:
                seen.append((json.loads(file.readlines()[-1]), list(synced)))
            system.write(path, value)
        with mock.patch.object(journal, "write", write), \
             mock.patch.object(os, "fsync", synced.append):
            entry = self.journal()
            entry.set(self.knob, "never")
        self.assertEqual(seen[0][0], {"path": self.knob, "before": "always",
                                      "to": "never"})
        self.assertEqual(seen[0][1][-1], entry.file)
        self.assertEqual(self.setting(), "never")

    def test_nothing_changed(self):
        """No file without a change."""
        entry = self.journal()
        entry.set(self.knob, "always")
        self.assertFalse(os.path.exists(self.file))
        self.assertEqual(entry.put_back(), [])

    def test_full(self):
        """A /run that takes a part of a line gets none, and nothing changes.
        """
        entry = self.journal()
        entry.set(self.knob, "never")
        before = system.read(self.file)
        whole = os.pwrite

        def part(file, data, where):
            return whole(file, data[:len(data) // 2], where)
        with mock.patch.object(os, "pwrite", part), \
             self.assertRaises(OSError) as caught:
            entry.set(self.knob, "seq-small")
        self.assertIn("/run/plug-policy", str(caught.exception))
        self.assertEqual(system.read(self.file), before)
        self.assertEqual(self.setting(), "never")
        self.assertEqual(entry.put_back(), [])
        self.assertEqual(self.setting(), "always")

    def test_full_when_a_program_starts(self):
        """It does not, as nobody would end it after us."""
        with children.Stop() as stop, \
             children.Runner(stop, self.journal()) as runner, \
             mock.patch.object(journal, "append", side_effect=OSError(28)), \
             self.assertRaisesRegex(system.EnvironmentProblem, "sleep .*full"):
            runner.run(["sleep", "9"], 5)

    def test_whole_from_the_first(self):
        """Another program never finds a journal without the disks' locks."""
        seen = []

        def sync(_file):
            seen.extend(map(system.read, glob.glob(
                self.path("run/plug-policy/*.journal"))))
        with mock.patch.object(os, "fsync", sync):
            self.journal().begin()
        self.assertEqual({json.loads(text.splitlines()[0])["program"]
                          for text in seen}, {"plugroll"})
        self.assertEqual(os.listdir(self.path("run/plug-policy")),
                         ["nvme0n1.journal"])

    def test_put_back(self):
        """As before the first change; then the file goes."""
        entry = self.journal()
        for value in ("never", "always", "seq-small"):
            entry.set(self.knob, value)
        self.assertEqual(entry.put_back(), [])
        self.assertEqual(self.setting(), "always")
        self.assertFalse(os.path.exists(self.file))

    def test_refused(self):
        """A kernel that takes something else."""
        with mock.patch.object(journal, "write", lambda path, value: None), \
             self.assertRaisesRegex(system.EnvironmentProblem,
                                    "wrote never, but it is always"):
            self.journal().set(self.knob, "never")

    def test_not_put_back(self):
        """The journal stays, nobody else starts one, and words say so."""
        entry = self.journal()
        entry.set(self.knob, "never")
        os.unlink(self.knob)
        os.mkdir(self.knob)
        problems = entry.put_back()
        self.assertRegex(problems[0], "not put back .*; it was: always")
        with self.assertRaisesRegex(system.EnvironmentProblem, "--restore"):
            self.journal().note(disk="x")
        self.assertIn("it was: always", self.recover(good=False))
        self.assertTrue(os.path.exists(self.file))


class Recover(Case):
    """What killed programs left."""

    def test_setting(self):
        """Put back, and said, once."""
        self.killed()
        text = self.recover()
        self.assertIn("plugroll (process %d) was killed" % os.getpid(), text)
        self.assertIn("plug_policy is always again", text)
        self.assertEqual(self.setting(), "always")
        self.told.clear()
        self.assertEqual(self.recover(), "")

    def test_killed_before_the_change(self):
        """There is nothing to put back."""
        self.killed()
        self.put(KNOB, "[always] never")
        self.assertNotIn("again", self.recover())

    def test_cut_short(self):
        """The entry that was being written tells of no change."""
        self.killed()
        with open(self.file, "a", encoding="ascii") as file:
            file.write('{"path": "%s", "bef' % self.knob)
        self.recover()
        self.assertEqual(self.setting(), "always")

    def test_unreadable(self):
        """What may tell of more stays, and is no reason to end."""
        head = json.dumps(self.journal().head)
        change = json.dumps({"path": self.knob, "before": "always",
                             "to": "never"})
        for lines in ([], ["\0\0"], ["[]"], ["7", change], [head, "[" * 100000,
                      change], [head, change, '{"path": 7}'],
                      [head.replace('["nvme0n1"]', "null"), change],
                      [head.replace('"nvme0n1"', "[]"), change]):
            self.told.clear()
            self.put(KNOB, "always [never]")
            self.put("run/plug-policy/nvme0n1.journal",
                     "".join(line + "\n" for line in lines))
            self.assertIn("cannot be read", self.recover(good=False))
            self.assertTrue(os.path.exists(self.file))
            self.assertEqual(self.setting(),
                             "always" if change in lines else "never")
            os.unlink(self.file)

    def test_later_version(self):
        """One whose entries hold more; and its lock is heeded, as is that of
        one whose head cannot be read."""
        entry = self.journal()
        entry.head["new"] = 1
        entry.set(self.knob, "never")
        os.close(entry.file)
        for data in None, "{\n":
            with journal.locked(["nvme0n1"], "plugbench"):
                self.assertEqual(self.recover(), "")
            self.assertEqual(self.setting(), "never")
            if data is None:
                self.assertIn("always again", self.recover())
                self.told.clear()
                self.put(KNOB, "always [never]")
                self.put("run/plug-policy/nvme0n1.journal", "{\n")

    def test_not_ours_to_read(self):
        """It is not said to hold what cannot be read."""
        self.killed()
        with mock.patch("builtins.open", side_effect=PermissionError(
                13, "Permission denied", self.file)), \
                self.assertRaises(PermissionError):
            journal.recover(self.told.append)
        self.assertEqual(self.told, [])

    def test_module_in_use(self):
        """One that stays is not said to be gone."""
        self.put("sys/module/null_blk/refcnt", "1")
        for status, words in ((1, "is still there"), (0, "was removed")):
            self.told.clear()
            self.journal().note(module="null_blk")
            with mock.patch.object(subprocess, "run") as run:
                run.return_value.returncode = status
                self.assertIn(words, self.recover(good=not status))
            if status:
                os.unlink(self.file)

    def test_changed_since(self):
        """What somebody has set meanwhile is theirs."""
        self.killed()
        self.put(KNOB, "adaptive")
        self.assertIn("left at adaptive", self.recover())
        self.assertEqual(self.setting(), "adaptive")
        self.assertFalse(os.path.exists(self.file))

    def test_remembered(self):
        """What another setting changes is put back, whatever it is."""
        entry = self.journal()
        entry.remember(self.knob)
        self.put(KNOB, "adaptive")
        self.assertEqual(entry.put_back(), [])
        self.assertEqual(self.setting(), "always")

    def test_other_disk(self):
        """A disk that came meanwhile has only the name."""
        self.killed()
        self.put("sys/block/nvme0n1/diskseq", "8")
        self.assertIn("has gone", self.recover())
        self.assertEqual(self.setting(), "never")

    def test_at_work(self):
        """Who holds the lock is not dead."""
        self.killed()
        with journal.locked(["nvme0n1"], "plugbench"):
            self.assertEqual(self.recover(), "")
        self.assertEqual(self.setting(), "never")

    def test_process(self):
        """Only if it is still the same."""
        for late, dies in ((1, False), (0, True)):
            entry = self.journal()
            with subprocess.Popen(["sleep", "60"],
                                  start_new_session=True) as process:
                entry.note(process=process.pid, start=late
                           + system.start_time(process.pid))
                os.close(entry.file)
                text = self.recover()
                self.assertEqual("process %d was ended" % process.pid in text,
                                 dies)
                self.assertEqual(system.start_time(process.pid) is None, dies)
                process.kill()


    def test_deaf_process(self):
        """SIGTERM comes first; SIGKILL for who does not listen."""
        ready = self.path("ready")
        code = ("import signal, time; signal.signal(15, lambda *_: open(%r, "
                "'w').close()); open(%r, 'w').close(); time.sleep(60)"
                % (self.path("told"), ready))
        with subprocess.Popen([sys.executable, "-c", code],
                              start_new_session=True) as process, \
             mock.patch.object(journal, "END_SECONDS", 1):
            while not os.path.exists(ready):
                time.sleep(0.02)
            good, _ = journal.end_process(process.pid,
                                          system.start_time(process.pid))
            self.assertTrue(good)
            self.assertTrue(os.path.exists(self.path("told")))
            self.assertEqual(process.wait(), -9)


class Guard(unittest.TestCase):
    """Who puts back what a killed program has set."""

    def test_own_session(self):
        """Once it is there, what kills the program's group misses it."""
        begin = os.setsid

        def slowly():
            time.sleep(.3)
            begin()

        with mock.patch("os.setsid", slowly):
            guard = journal.Guard(lambda: None)
        session = os.getsid(guard.pid)
        guard.close()
        self.assertEqual(session, guard.pid)


class Lock(Case):
    """One program at a time."""

    def test_held(self):
        """By whom is said, and of several disks none is kept."""
        with journal.locked(["md0", "nvme0n1"], "plugbench"):
            with self.assertRaisesRegex(
                    journal.Held, r"nvme0n1 .* plugbench \(process %d\)"
                    % os.getpid()), journal.locked(["a", "nvme0n1"], "x"):
                pass
            with journal.locked(["a"], "y"):
                pass
        with journal.locked(["nvme0n1"], "z"):
            pass

    def test_successor(self):
        """Who puts back for a killed holder, and has its lock, is waited for.
        """
        with journal.locked(["nvme0n1"], "x"):
            self.put("run/plug-policy/nvme0n1.lock", "x (process 4194305)\n")
            begun = time.monotonic()
            with mock.patch.object(journal, "END_SECONDS", 0.3), \
                 self.assertRaises(journal.Held), \
                 journal.locked(["nvme0n1"], "y"):
                pass
            self.assertGreater(time.monotonic() - begun, 0.3)
            self.put("run/plug-policy/nvme0n1.lock",
                     "x (process %d)\n" % os.getpid())
            begun = time.monotonic()
            with self.assertRaises(journal.Held), \
                 journal.locked(["nvme0n1"], "y"):
                pass
            self.assertLess(time.monotonic() - begun, journal.END_SECONDS)

    def test_dies_with_its_holder(self):
        """However it ends."""
        code = ("import os, sys; sys.path.insert(0, %r)\n"
                "from plugtools.core.journal import lock\n"
                "lock('nvme0n1', 'x'); os.kill(os.getpid(), 9)"
                % faketree.TOOLS)
        done = subprocess.run([sys.executable, "-c", code], check=False)
        self.assertEqual(done.returncode, -9)
        with journal.locked(["nvme0n1"], "x"):
            pass


if __name__ == "__main__":
    unittest.main()
