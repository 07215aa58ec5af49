# SPDX-License-Identifier: GPL-2.0
"""hazards.rst names tests and functions that exist, and waits.awk fails when it
should."""
import glob
import os
import re
import subprocess
import unittest

from scripts import kernel

TORTURE = os.path.join(kernel.ROOT, "lab/torture")

TREE = kernel.TREE
TITLE = re.compile(r"^(\S.*)\n={4,}\n\n(?=:Hazard:)", re.M)
FIELD = re.compile(r"^:(\w+):((?:.*\n)(?:[ \t].*\n)*)", re.M)
LITERAL = re.compile(r"``([^`]+)``")
FUNCTION = re.compile(r"([\w./-]+\.[ch]):(\w+)")

# Hazards that were found in review: none may get lost.
ROWS = 24


def read(*parts):
    """A file's text."""
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def rows():
    """{title: {field: text}} of hazards.rst."""
    parts = TITLE.split(read(TORTURE, "hazards.rst"))[1:]
    return {title: dict(FIELD.findall(body))
            for title, body in zip(parts[::2], parts[1::2])}


def functions(room, prefix):
    """What a room calls PREFIX_NAME()."""
    return set(re.findall(r"^%s_(\w+)\(\)" % prefix, read(TORTURE, room), re.M))


def kunit_cases():
    """All that suites list."""
    text = "".join(map(read, glob.glob(os.path.join(kernel.ROOT,
                                                    "block/tests/*.c"))))
    return set(re.findall(r"KUNIT_CASE\w*\((\w+)", text))


def exists(test):
    """Whether a test of this name is run by anything."""
    kind, colon, name = test.partition(":")
    if colon:
        room, prefix = {"mixed": ("stacks.sh", "stack"),
                        "disturb": ("disturb.sh", "disturb"),
                        "load": ("loads.sh", "load")}[kind]
        return name in functions(room, prefix)
    if test.startswith("torture/"):
        # torture.py takes what can be run for a kind
        return os.access(os.path.join(TORTURE, "..", test), os.X_OK)
    if test.endswith(".sh"):
        # the Makefile takes all but libraries
        return not test.endswith("lib.sh") and \
            os.path.exists(os.path.join(kernel.SELFTESTS, test))
    return test in kunit_cases()


def defines(source, function):
    """Whether C source defines, not only calls or declares, a function."""
    return bool(re.search(r"^[\w\s*]*\b%s\([^;{}]*\)\s*\{" % function, source,
                          re.M))


class Rows(unittest.TestCase):
    """Each row of the table."""

    def test_number(self):
        """No row is lost, and none is read as part of another."""
        self.assertEqual(len(rows()), ROWS)

    def test_complete(self):
        """A hazard has a rule, evidence, and a test or a reason."""
        for title, fields in rows().items():
            with self.subTest(title):
                self.assertLessEqual({"Hazard", "Rule", "Evidence"},
                                     set(fields))
                self.assertTrue({"Tests", "Reason"} & set(fields))
                self.assertLessEqual(set(fields), {"Hazard", "Rule", "Tests",
                                                   "Evidence", "Reason"})

    def test_tests_exist(self):
        """What a row names as its test is a test that is run."""
        for title, fields in rows().items():
            for test in LITERAL.findall(fields.get("Tests", "")):
                with self.subTest(title, test=test):
                    self.assertTrue(exists(test))

    def test_tests_are_named(self):
        """Tests are named in the way that the check above understands."""
        for title, fields in rows().items():
            text = LITERAL.sub("", fields.get("Tests", ""))
            with self.subTest(title):
                self.assertEqual(text.replace(",", "").split(), [])

    def test_a_missing_test_is_noticed(self):
        """The check itself can fail."""
        for test in ("none.sh", "torture/none.sh", "mixed:none", "load:none",
                     "disturb:none", "blk_plug_policy_test_none"):
            self.assertFalse(exists(test), test)

    @unittest.skipUnless(os.path.isdir(TREE), "no kernel tree: make tree")
    @unittest.skipIf(kernel.KVER != "7.3", "hazards.rst is about Linux 7.3")
    def test_evidence_exists(self):
        """Each function is defined in the file that is named."""
        for title, fields in rows().items():
            found = FUNCTION.findall(fields["Evidence"]
                                     + fields.get("Reason", ""))
            with self.subTest(title):
                self.assertTrue(found)
            for name, function in found:
                with self.subTest(title, function=function):
                    self.assertTrue(defines(read(TREE, name), function))


HEAD = "# entries-in-buffer/entries-written: %s   #P:2\n"
EVENT = "       plug load-%s   [001] d..1.    %s: %s: %s\n"


class Trace:
    """A trace as ftrace prints it, event by event, a millisecond apart."""

    def __init__(self, head="9/9", pid=70):
        self.text = HEAD % head
        self.pid = pid
        self.now = 5.0

    def event(self, name, text):
        """Any event."""
        self.now += 0.001
        self.text += EVENT % (self.pid, "%.6f" % self.now, name, text)
        return self

    def bio(self, name, sector, rwbs="RS"):
        """block_getrq and its like."""
        return self.event(name, "250,0 %s %d + 8 [plug load]" % (rwbs, sector))

    def get(self, *sectors):
        """Requests are allocated."""
        for sector in sectors:
            self.bio("block_getrq", sector)
        return self

    def leave(self, *sectors, name="block_rq_issue"):
        """Requests leave the plug."""
        for sector in sectors:
            self.event(name, "250,0 RS 4096 () %d + 8 none,0,0 [plug load]"
                       % sector)
        return self

    def switch(self, state):
        """The task leaves the CPU."""
        return self.event(
            "sched_switch", "prev_comm=plug load prev_pid=%d prev_prio=120 "
            "prev_state=%s ==> next_comm=swapper/1 next_pid=0 next_prio=120"
            % (self.pid, state))

    def exit(self):
        """The task goes back to user space."""
        return self.event("sys_exit", "NR 426 = 32")

    def judge(self, limit=""):
        """What waits.awk says: [bad], {key: value}"""
        said = subprocess.run(
            ["awk", "-v", "dev=250,0", "-v", "limit=%s" % limit, "-f",
             os.path.join(TORTURE, "waits.awk")], input=self.text, text=True,
            stdout=subprocess.PIPE, check=True).stdout.splitlines()
        words = [line.partition(" ")[::2] for line in said]
        return ([rest for word, rest in words if word == "bad"],
                {word: int(rest) for word, rest in words if word != "bad"})


class Waits(unittest.TestCase):
    """The judge of torture/waits.sh."""

    def good(self, trace, limit=""):
        """Nothing is wrong; what was seen."""
        bad, seen = trace.judge(limit)
        self.assertEqual(bad, [])
        return seen

    def bad(self, trace, text, limit=""):
        """One thing is wrong."""
        bad, _ = trace.judge(limit)
        self.assertEqual(len(bad), 1, bad)
        self.assertIn(text, bad[0])

    def test_good(self):
        """All is sent out before the sleep."""
        seen = self.good(Trace().get(0, 8).leave(0, 8).switch("S").exit())
        self.assertEqual([seen[key] for key in ("waits", "sleeps", "exits")],
                         [2, 1, 1])
        self.assertEqual((seen["first_us"], seen["max_us"]), (2000, 2000))

    def test_sleep(self):
        """A sleep, of whatever kind, with a request held."""
        for state in ("S", "D", "T", "t", "I", "D|K"):
            self.bad(Trace().get(0).switch(state).leave(0), "went to sleep")

    def test_one_of_many(self):
        """One request stays when the others go."""
        self.bad(Trace().get(0, 8, 16).leave(0, 16).switch("S").leave(8),
                 "with 1 requests held")

    def test_same_sector_twice(self):
        """Two requests for one sector are two."""
        self.bad(Trace().get(0, 0).leave(0).switch("S").leave(0), "with 1 ")

    def test_preemption(self):
        """That is no sleep; how much may be held then is the caller's word."""
        for state in ("R", "R+"):
            trace = Trace().get(0, 8).switch(state).leave(0, 8)
            self.assertEqual(self.good(trace)["most"], 2)
            self.good(trace, 2)
            self.bad(trace, "preempted with 2", 1)

    def test_user_space(self):
        """The submission is over, and a request is still held."""
        self.bad(Trace().get(0).exit().leave(0), "returned to user space")

    def test_end(self):
        """A request never leaves."""
        self.bad(Trace().get(0, 8).leave(0), "never sent out 1")

    def test_another_task_is_no_help(self):
        """That somebody else issues at this sector is another request."""
        trace = Trace().get(0)
        trace.pid = 71
        trace.leave(0)
        trace.pid = 70
        self.bad(trace.switch("S").leave(0), "process 70 went to sleep")

    def test_inserted(self):
        """A request in a software queue is not held, nor is one merged."""
        self.good(Trace().get(0).leave(0, name="block_rq_insert").switch("S"))
        self.good(Trace().get(0).leave(0, name="block_rq_merge").switch("S"))

    def test_front_merge(self):
        """A request begins elsewhere when it has grown at its front."""
        self.good(Trace().get(8).bio("block_bio_frontmerge", 0).leave(0)
                  .switch("S"))

    def test_flush(self):
        """A flush does not come to the plug."""
        self.good(Trace().get(0).bio("block_getrq", 64, "FWS").leave(0)
                  .switch("D"))

    def test_lost_events(self):
        """What is not in the trace cannot be judged."""
        self.bad(Trace("9/12").get(0).leave(0), "lost 3 of 12")

    def test_other_disk(self):
        """Only the disk under test counts."""
        trace = Trace()
        trace.text += (Trace().get(0).switch("S").text).replace("250,0",
                                                                "250,1")
        self.assertEqual(self.good(trace)["waits"], 0)
