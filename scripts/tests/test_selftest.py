# SPDX-License-Identifier: GPL-2.0
"""What helps with kselftests: what each is for, where it runs, and what is counted
on two kernels."""
import pytest

from scripts import audit, common, kernel, selftest
from scripts.checks import tap


def test_all_say_what_they_are_for():
    """A name, and a paragraph below it, whose lines are joined."""
    names, texts = (list(selftest.help_text())[start::2] for start in (0, 1))
    assert not [name for name in names if "lib" in name.split("_")]
    assert not [text for text in texts if "(it does not say)" in text]
    assert "knob_values" in names and common.description(
        f"{kernel.SELFTESTS}/knob_values.sh").endswith("to hold them in, has no such file.")


def test_all_run():
    """In a process, or in a guest, or, of those that take NVMe if there is some, in
    both."""
    names = [f"{name}.sh" for name in list(selftest.help_text())[::2]]
    uml, guest, rest = (set(selftest.fit(names, *of)) for of in (
        (True,), (False,), (True, True)))
    assert uml | guest == rest | guest == set(names) and rest < uml
    assert rest & guest == set(selftest.IN_BOTH) and "modes.sh" not in rest
    assert "knob_values.sh" in uml - guest and "modes.sh" in uml & guest
    assert {"verify.sh", "unused_requests.sh"} <= guest - uml


# --- audit.py -------------------------------------------------------------------
SAID = {"base": {"a": ["# count 32 of 0 to 3: singles", "not ok 1 one", "ok 2 two"]},
        "patched": {"a": ["# count 1 of 0 to 3: singles", "# count 6 of 5 to 5: batches",
                          "ok 1 one", "ok 2 two"]}}


def test_counts(monkeypatch, capsys):
    """What is not as expected fails, what the unpatched kernel does not count is none;
    what reproduces a defect must fail there."""
    monkeypatch.setattr(audit, "run", lambda variant, _: SAID[variant])
    monkeypatch.setattr(audit, "doorbells", lambda variant: dict.fromkeys(audit.LOADS, 1))
    audit.compare(tap.Report(), False)
    said = capsys.readouterr().out
    assert "ok 1 a fails on the unpatched kernel\n# a: one\n" in said
    assert "ok 2 a: one: 1 singles, of 0 to 3; 32 on the unpatched" in said
    assert "not ok 3 a: one: 6 batches, of 5 to 5; none on the unpatched" in said
    assert "ok 4 doorbells for 32 I/Os, random reads: 1 base, 1 patched" in said


@pytest.mark.parametrize("news, fails", [
    ((100,), 0), ((800,), 0), ((1340, 110), 0), ((1400,) * 3, 1)])
def test_waits(news, fails):
    """More than chance fails, if it is seen in the sum of all takes."""
    said = iter([{name: {audit.WAITS[0]: [f"# count {nr} of 0 to 9999: I/Os", "ok 1 x"]}
                  for name, nr in (("base", 100), ("patched", new))} for new in news])
    report = tap.Report()
    audit.compare_waits(report, lambda take: next(said))
    assert report.failed == fails and next(said, None) is None
