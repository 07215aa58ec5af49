# SPDX-License-Identifier: GPL-2.0
"""hazards.rst names tests and functions that exist, and waits.awk fails when it
should."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from lab.torture import torture
from scripts import kernel

TORTURE = torture.HERE
TITLE = re.compile(r"^(\S.*)\n={4,}\n\n(?=:Hazard:)", re.M)
FIELD = re.compile(r"^:(\w+):((?:.*\n)(?:[ \t].*\n)*)", re.M)
LITERAL = re.compile(r"``([^`]+)``")
FUNCTION = re.compile(r"([\w./-]+\.[ch]):(\w+)")
LABELS = {"mixed": "stacks.sh", "disturb": "disturb.sh", "load": "loads.sh"}

# Hazards that were found in review: none may get lost.
ROWS = 24


def rows():
    """{title: {field: text}} of hazards.rst."""
    parts = TITLE.split((TORTURE / "hazards.rst").read_text(encoding="utf-8"))[1:]
    return {title: dict(FIELD.findall(body))
            for title, body in zip(parts[::2], parts[1::2])}


ALL = [pytest.param(fields, id=title) for title, fields in rows().items()]


def exists(test):
    """Whether a test of this name is run by anything."""
    kind, colon, name = test.partition(":")
    if colon:
        text = (TORTURE / LABELS[kind]).read_text(encoding="utf-8")
        return bool(re.search(rf"^\t{name}\)", text, re.M))
    if test.startswith("torture/"):
        # torture.py takes what can be run for a kind
        return os.access(TORTURE.parent / test, os.X_OK)
    if test.endswith(".sh"):
        # the Makefile takes all but libraries
        return not test.endswith("lib.sh") and \
            (Path(kernel.SELFTESTS) / test).exists()
    return any(re.search(rf"KUNIT_CASE\w*\({test}\b", path.read_text(encoding="utf-8"))
               for path in Path(kernel.ROOT).glob("block/tests/*.c"))


def defines(source, function):
    """Whether C source defines, not only calls or declares, a function."""
    return bool(re.search(rf"^[\w\s*]*\b{function}\([^;{{}}]*\)\s*\{{", source,
                          re.M))


def test_no_row_is_lost():
    """None is read as part of another, either."""
    assert len(ALL) == ROWS


@pytest.mark.parametrize("fields", ALL)
def test_row(fields):
    """A hazard has a rule, evidence, and tests that are run, or a reason."""
    assert {"Hazard", "Rule", "Evidence"} <= set(fields)
    assert {"Tests", "Reason"} & set(fields)
    assert set(fields) <= {"Hazard", "Rule", "Tests", "Evidence", "Reason"}
    tests = fields.get("Tests", "")
    assert [test for test in LITERAL.findall(tests) if not exists(test)] == []
    assert LITERAL.sub("", tests).replace(",", "").split() == []


@pytest.mark.parametrize("test", (
    "none.sh", "torture/none.sh", "torture/stacks.sh", "mixed:none", "load:none",
    "disturb:none", "blk_plug_policy_test_none"))
def test_a_missing_test_is_noticed(test):
    """The check itself can fail."""
    assert not exists(test)


@pytest.mark.skipif(not os.path.isdir(kernel.TREE), reason="no kernel tree: make tree")
@pytest.mark.skipif(kernel.KVER != "7.3", reason="hazards.rst is about Linux 7.3")
@pytest.mark.parametrize("fields", ALL)
def test_evidence_exists(fields):
    """Each function is defined in the file that is named."""
    found = FUNCTION.findall(fields["Evidence"] + fields.get("Reason", ""))
    assert found
    for name, function in found:
        source = (Path(kernel.TREE) / name).read_text(encoding="utf-8")
        assert defines(source, function), function


# --- waits.awk -------------------------------------------------------------
class Trace:
    """A trace as ftrace prints it, event by event, a millisecond apart."""

    def __init__(self, head="9/9", pid=70):
        self.text = f"# entries-in-buffer/entries-written: {head}   #P:2\n"
        self.pid = pid
        self.now = 5.0

    def event(self, name, text):
        self.now += 0.001
        self.text += (f"       plug load-{self.pid}   [001] d..1.    "
                      f"{self.now:.6f}: {name}: {text}\n")
        return self

    def bio(self, name, sector, rwbs="RS"):
        """block_getrq and its like."""
        return self.event(name, f"250,0 {rwbs} {sector} + 8 [plug load]")

    def get(self, *sectors):
        for sector in sectors:
            self.bio("block_getrq", sector)
        return self

    def leave(self, *sectors, name="block_rq_issue"):
        for sector in sectors:
            self.event(name, f"250,0 RS 4096 () {sector} + 8 none,0,0 [plug load]")
        return self

    def switch(self, state):
        """The task leaves the CPU."""
        return self.event(
            "sched_switch", f"prev_comm=plug load prev_pid={self.pid} "
            f"prev_prio=120 prev_state={state} ==> next_comm=swapper/1 "
            "next_pid=0 next_prio=120")

    def exit(self):
        """The task goes back to user space."""
        return self.event("sys_exit", "NR 426 = 32")

    def by(self, pid):
        self.pid = pid
        return self

    def judge(self, limit=""):
        """What waits.awk says: [bad], {key: value}"""
        said = subprocess.run(
            ["awk", "-v", "dev=250,0", "-v", f"limit={limit}", "-f",
             str(TORTURE / "waits.awk")], input=self.text, text=True,
            stdout=subprocess.PIPE, check=True).stdout.splitlines()
        words = [line.partition(" ")[::2] for line in said]
        return ([rest for word, rest in words if word == "bad"],
                {word: int(rest) for word, rest in words if word != "bad"})


def test_good():
    """All is sent out before the sleep."""
    bad, seen = Trace().get(0, 8).leave(0, 8).switch("S").exit().judge()
    assert bad == []
    assert [seen[key] for key in ("waits", "sleeps", "exits", "first_us",
                                  "max_us")] == [2, 1, 1, 2000, 2000]


@pytest.mark.parametrize("trace, limit, text", (
    *((Trace().get(0).switch(state).leave(0), "", "went to sleep")
      for state in ("S", "D", "T", "t", "I", "D|K")),
    # one request stays when the others go
    (Trace().get(0, 8, 16).leave(0, 16).switch("S").leave(8), "",
     "with 1 requests held"),
    # two requests for one sector are two
    (Trace().get(0, 0).leave(0).switch("S").leave(0), "", "with 1 "),
    *((Trace().get(0, 8).switch(state).leave(0, 8), 1, "preempted with 2")
      for state in ("R", "R+")),
    (Trace().get(0).exit().leave(0), "", "returned to user space"),
    (Trace().get(0, 8).leave(0), "", "never sent out 1"),
    # that somebody else issues at this sector is another request
    (Trace().get(0).by(71).leave(0).by(70).switch("S").leave(0), "",
     "process 70 went to sleep"),
    # what is not in the trace cannot be judged
    (Trace("9/12").get(0).leave(0), "", "lost 3 of 12")))
def test_one_thing_is_wrong(trace, limit, text):
    (bad,), _ = trace.judge(limit)
    assert text in bad


@pytest.mark.parametrize("trace, limit, key, value", (
    # a preemption is no sleep; how much may be held then is the caller's word
    (Trace().get(0, 8).switch("R").leave(0, 8), "", "most", 2),
    (Trace().get(0, 8).switch("R+").leave(0, 8), 2, "most", 2),
    # a request in a software queue is not held, nor is one merged
    (Trace().get(0).leave(0, name="block_rq_insert").switch("S"), "", "waits", 1),
    (Trace().get(0).leave(0, name="block_rq_merge").switch("S"), "", "waits", 1),
    # a request begins elsewhere when it has grown at its front
    (Trace().get(8).bio("block_bio_frontmerge", 0).leave(0).switch("S"), "",
     "waits", 1),
    # a flush does not come to the plug
    (Trace().get(0).bio("block_getrq", 64, "FWS").leave(0).switch("D"), "",
     "waits", 1)))
def test_nothing_is_wrong(trace, limit, key, value):
    bad, seen = trace.judge(limit)
    assert (bad, seen[key]) == ([], value)


def test_other_disk():
    """Only the disk under test counts."""
    trace = Trace().get(0).switch("S")
    trace.text = trace.text.replace("250,0", "250,1")
    bad, seen = trace.judge()
    assert (bad, seen["waits"]) == ([], 0)
