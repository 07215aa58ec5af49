# SPDX-License-Identifier: GPL-2.0
"""plugbench --compare and what else is made of results: what changed, and is
it worse?"""
import json
import re
import types

import pytest

from reportcases import record, runs
from plugtools.core import system
from plugtools.report import changes, records, results, verdict

pytestmark = pytest.mark.usefixtures("here")
OUT = {"html": None, "verbose": True, "markdown": False}
META = {"note": "NOTE", "claim": "CLAIM", "disk": "nvme0n1",
        "warnings": ["WARNING"]}


def measured(iops=1000, p99=90, count=5, **fields):
    """Runs that scatter by some thousandths."""
    return [record(iops=iops * (1 + (number % 3 - 1) / 500), number=number,
                   lat_us={"mean": 50, "p50": 45, "p999": 200,
                           "p99": p99 * (1 + (number % 2) / 100)}, **fields)
            for number in range(count)]


ONLY_IOPS = [[{name: value for name, value in one.items() if name in (
    "kernel", "policy", "profile", "workload", "suite", "iops", "run",
    "commit")} for one in measured(iops, count=3)] for iops in (1000, 1009)]


def saved(name, found, meta=None):
    records.save(name, found, meta)
    return name


def gate(capsys, old, new, *args):
    status = results.compare(saved("old.json", old), saved("new.json", new),
                             *args)
    return status, capsys.readouterr().out


# --- what is said of a change ----------------------------------------------
def test_better_and_worse():
    """More IOPS are better, more of p99 is worse; p99 has an interval."""
    found = changes.compare(measured(), measured(1100, 99))
    said = {one["metric"]: one for one in found}
    p99 = said["lat_us.p99"]
    assert (said["iops"]["word"], p99["word"]) == ("better", "worse")
    assert p99["ratio"] == pytest.approx(1.1)
    assert 1.05 < p99["low"] < p99["high"] < 1.15
    assert re.search(r"p99 us +90\.36 +99\.40 +\+10\.0% \(\+\d\.\d to "
                     r"\+\d+\.\d\) +worse", changes.text(found))


def test_same():
    """p99 is shown nevertheless, before and after; others are not.  All but
    the ratio and busy are compared, which others imply."""
    found = changes.compare(measured(), measured())
    assert {one["metric"]: one["word"] for one in found} == dict.fromkeys((
        "iops", "insns_per_io", "lat_us.mean", "lat_us.p50", "lat_us.p99",
        "lat_us.p999", "cpu_us_per_io", "doorbells_per_io",
        "requests_per_io"), "same")
    text = changes.text(found)
    assert re.search(r"p99 us +90\.36 +90\.36 .* same", text)
    assert "p50" not in text
    assert "0 of 9 figures differ, 0 of them beyond the chance" in text


@pytest.mark.parametrize("old, new, word", [
    (runs("always", [900, 1100, 1000, 950]),
     runs("always", [1100, 1300, 900, 1050]), "may be chance"),
    # what one comparison proves, one of many does not
    (measured(count=3), measured(1005, count=3), "may be chance"),
    (*ONLY_IOPS, "better"),
    # one run has no interval
    ([record()], [record(iops=1010)], "differs, one run"),
    ([record()], [record(iops=1001)], "same")])
def test_chance(old, new, word):
    said, = [one["word"] for one in changes.compare(old, new)
             if one["metric"] == "iops"]
    assert said == word


def test_came_and_went():
    old = [record(doorbells_per_io=0), record("never")]
    new = [record(insns_per_io=None), record("seq-small")]
    found = changes.compare(old, new)
    assert [one["metric"] for one in found if "ratio" not in one] == [
        "insns_per_io", "doorbells_per_io"]
    assert "from or to nothing" in changes.text(found)
    assert changes.missing(old, new) == [
        "threads: gen4, rand4k-s32, patched never"]


def test_nothing_in_common():
    """Is refused, as it would always pass."""
    with pytest.raises(records.ReportError, match="no cell in common"):
        changes.compare([record()], [record(profile="gen5")])


# --- the exit status -------------------------------------------------------
BLIND = [dict(one, lat_us=None) for one in measured()]
BOTH = [dict(one, profile="gen4, nomerges=" + value)
        for value in "02" for one in measured(900)]


@pytest.mark.parametrize("old, new, status, says", [
    (measured(), measured(), 0, "no regression"),
    (measured(), measured(980), 0, "no regression"),
    (measured(), measured(960), 3, "regression: rand4k-s32 always, IOPS: -4.0"),
    (measured(), measured(p99=94), 3, "p99 us: +4.4%"),
    (measured(), measured(1100, 70), 0, "no regression"),
    (measured(), measured(960, count=1), 4, "cannot be told"),
    (measured(), measured(count=1), 4, "cannot be told"),
    (runs("always", [900, 1100]), runs("always", [850, 950]), 4,
     "cannot be told"),
    # what cannot be compared does not pass; what neither has is not asked for
    (measured(), BLIND, 4, "always, p99 us: 90.36, then -"),
    (BLIND, measured(), 4, "always, p99 us: -, then 90.36"),
    (measured(p99=0), measured(), 4, "always, p99 us: 0, then 90.36"),
    (measured(0), measured(), 4, "always, IOPS: 0, then 9"),
    (measured(0), measured(0), 4, "always, IOPS: 0, then 0"),
    (measured(p99=0), measured(p99=0), 4, "p99 us: 0, then 0"),
    (measured(), measured(0), 3, "regression: rand4k-s32 always, IOPS: "),
    (measured() + [record("never")], measured(), 4, "cannot be told: only in "
     "the old: threads: gen4, rand4k-s32, patched never"),
    (measured(), measured() + [record("never")], 0, "only in the new: threads"),
    (BLIND, BLIND, 0, "no regression"),
    # of a host with 2, the half with 0 is compared with other hosts
    (measured(), BOTH, 3, "only in the new: threads: gen4, nomerges=2"),
    (BOTH, BOTH, 0, "no regression")])
def test_statuses(capsys, old, new, status, says):
    got, out = gate(capsys, old, new, 0.97)
    assert got == status, out
    assert says in out


def test_json(here, capsys):
    """As text, too, where no limit is given."""
    status, out = gate(capsys, measured(), measured(900), None, "c.json")
    assert status == 0 and "worse" in out
    gate(capsys, measured(), measured(900), 0.97, "c.json")
    found = json.loads((here / "c.json").read_text())
    assert (found["status"], found["fail_below"]) == (3, 0.97)
    assert found["comparisons"][0]["word"] == "worse"


def test_measured_differently(capsys):
    """Is told, since the figures then differ by themselves; and by which
    kernels, of which the old one may be unpatched."""
    results.compare(*(saved(name, measured(kernel=kernel), {
        "iops_limit": limit, "scheduler": scheduler, "size": size,
        "legs": legs, "disk": "md0", "kernels": f"7.3.0 {kernel}",
        "host": {"md0 iommu": scheduler}})
        for name, limit, scheduler, size, legs, kernel in (
            ("old.json", 5000, "none", "100.0 GB", ["sda", "sdb"], "unpatched"),
            ("new.json", None, "bfq", "4000.0 GB", ["sda"], "patched"))))
    out = capsys.readouterr().out
    assert "old: 7.3.0 unpatched\nnew: 7.3.0 patched\n" in out
    assert "only in the" not in out
    for text in ("iops_limit 5000, then None", "scheduler none, then bfq",
                 "size 100.0 GB, then 4000.0 GB", "legs sda and sdb, then sda",
                 "md0 iommu none, then bfq"):
        assert "measured differently: " + text in out
    assert "disk md0" not in out
    assert "boots of one kernel differ, too" in out
    # a disk that has another name after a boot
    results.say_settings(*({"legs": [name], "host": {f"{name} iommu": mode}}
                           for name, mode in (("a", "lazy"), ("b", "strict"))))
    assert "differently: the disk's iommu lazy, then strict" in \
        capsys.readouterr().out


@pytest.mark.parametrize("start", ["fio --unified_rw_reporting=1 ", ""])
def test_loads(capsys, start):
    """What fio was told is compared, whatever plugbench says of any."""
    old, new = ({"fio": {"rand4k-s32": words}, "cpu": None} for words in (
        "fio --unified_rw_reporting=1 --bs=4k", start + "--bs=4k"))
    results.check_loads(old, new)
    new["fio"]["rand4k-s32"] = "a 'quote without an end"
    results.check_loads(old, new)
    new["fio"]["rand4k-s32"] = start + "--bs=4k --iodepth=2"
    with pytest.raises(system.UsageProblem, match="loads of rand4k-s32 differ"):
        results.check_loads(old, new)


@pytest.mark.parametrize("text, says", [
    ('{"version": 9, "records": []}', "version is 9"),
    ('{"records": []}', "list of records is empty"), ("x", "is no JSON")])
def test_bad_files(here, text, says):
    (here / "bad.json").write_text(text)
    with pytest.raises(system.UsageProblem, match=says):
        results.old_records("bad.json")


# --- publish and show ------------------------------------------------------
def out(**more):
    return types.SimpleNamespace(**{**OUT, **more})


def test_the_verdict_is_everywhere(here, capsys):
    found = measured() + [dict(one, policy="never") for one in measured(1100)]
    results.publish(found, META, "o.json", out(html="o.html"))
    said, page = capsys.readouterr().out, (here / "o.html").read_text()
    told = json.loads((here / "o.json").read_text())["verdict"]
    with pytest.raises(system.EnvironmentProblem, match="nix/o.json"):
        results.publish(found, META, "nix/o.json", out())
    line = told["verdicts"][0]["text"]
    assert told == json.loads(json.dumps(verdict.of(found)))
    assert line.startswith("use never: IOPS +10.0% (")
    for word in line, "NOTE", "wrote o.json\n", "wrote o.html\n":
        assert word in said
    for word in line, "CLAIM", "WARNING", "Plug policies of nvme0n1":
        assert word in page


def test_show(capsys):
    found = [dict(one, unplugs_per_io=0.25) for one in measured()]
    results.publish(found, META, "o.json", out())
    before = capsys.readouterr().out
    results.show("o.json", out())
    after = capsys.readouterr().out
    assert after == before.replace("wrote o.json\n", "")
    assert "unplugs_per_io" in after and "no verdict" in after


def test_odd_words(here):
    """A name of a file that is no UTF-8 has a page, and no note is one."""
    (here / "o.json").write_text(json.dumps({"records": measured(), "meta": {
        "note": None, "command": "plugbench --json x\udcf6"}}))
    results.show("o.json", out(html="o.html"))
    assert "--json x\\udcf6" in (here / "o.html").read_text()


def test_many_earlier(here):
    for number in range(1, 1001):
        (here / f"o.json.~{number}~").touch()
    (here / "o.json").write_text("text")
    results.keep_earlier("o.json")
    assert (here / "o.json.~1001~").read_text() == "text"
