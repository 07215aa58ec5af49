# SPDX-License-Identifier: GPL-2.0
"""Figures in README.md and the page of measurements: nobody copies them by
hand."""
import pathlib

import pytest

from lab.bench import documents, lab, model_figures, run, suites
from plugtools.report import records as files
from scripts.series import env, measured as store

GAINS = {("unpatched", "always"): 1, ("unpatched", "nomerges2"): 1.02,
         ("patched", "always"): 1.01, ("patched", "never"): 0.9,
         ("patched", "seq-small"): 1.02, ("patched", "adaptive"): 1.0302}
DEVICE = suites.SUITES["device"]
KEPT_RUN = run.KEPT.read_bytes()


def sample(*profiles, runs=4):
    """Records of the suite device. What a run's seed does, 10%, is the same for
    all cells."""
    return [{"suite": "device", "kernel": kernel, "policy": policy,
             "profile": profile, "workload": "rand4k-s32", "run": run,
             "seed": run, "commit": "0123456789ab",
             "iops": 100000 * gain * (1 + run % 2 / 1000) * (1 + run / 10)}
            for profile in profiles for run in range(runs)
            for (kernel, policy), gain in GAINS.items()]


def kept(*profiles, **more):
    return model_figures.keep_suite(DEVICE, sample(*profiles, **more), {})


# --- what is kept of "make bench" ----------------------------------------------
def test_changes_are_paired():
    """Seeds differ by 10%, which says nothing of a mode."""
    found = kept("vm")
    row = found["rows"]["vm"]["rand4k-s32"]
    one = row["patched adaptive"]
    assert len(row) == len(GAINS) - 1
    assert one["ratio"] == pytest.approx(1.0302, abs=5e-5)
    assert one["ci_high"] - one["ci_low"] < 0.01
    assert one["runs"] == 4
    assert row["patched always"]["ratio"] == pytest.approx(1.01, abs=5e-5)
    assert found["modes"]["vm"]["rand4k-s32"]["patched adaptive"][
        "ratio"] == pytest.approx(1.02, abs=5e-5)


def test_one_run_says_nothing_of_chance():
    one = kept("vm", runs=1)["rows"]["vm"]["rand4k-s32"]["patched adaptive"]
    assert one["ci_low"] is None
    assert documents.percent(one) == "+3.0%"


def test_nothing_to_compare_with():
    some = [one for one in sample("vm") if one["kernel"] == "patched"]
    assert model_figures.keep_suite(DEVICE, some, {})["rows"] == {}


@pytest.mark.parametrize("quiet, last", [
    (True, "Measured on a CPU."),
    (False, "Measured on a CPU. The machine was not quiet.")])
def test_the_clocks_page_names_the_cpu(monkeypatch, quiet, last):
    one = {"ratio": 1.1, "ci_low": 1, "ci_high": 1.2, "quiet": quiet}
    monkeypatch.setattr(store, "load", lambda: {store.WHOLE: {
        "cpu": "a CPU", "rows": {"rand4k-s32": {"patched always": one}}}})
    *_, row, _, blank, said = documents.by_the_clock()
    assert row.split() == ["rand4k-s32", "+10.0", "±10.0"]
    assert (blank, said) == ("", last)


# --- into copies of the documents ----------------------------------------------
@pytest.fixture
def top(tmp_path, monkeypatch):
    monkeypatch.setattr(model_figures, "FILE", tmp_path / "models.json")
    monkeypatch.setattr(lab, "OUT", str(tmp_path))
    monkeypatch.setattr(run, "KEPT", tmp_path / "run.json")
    (tmp_path / "run.json").write_bytes(KEPT_RUN)
    monkeypatch.setattr(run, "PATH", str(tmp_path / "result.json"))
    for name in "README", "PAGE":
        path = getattr(documents, name)
        (tmp_path / path.name).write_text(path.read_text())
        monkeypatch.setattr(documents, name, tmp_path / path.name)
    return tmp_path


def test_from_records_to_documents(top):
    """Once more changes nothing."""
    files.save(str(top / "device.json"), sample("vm", "lockstep"), {})
    assert documents.update()[0] == "kept of make bench: device"
    assert "| +3.0% ± " in documents.README.read_text()
    page = documents.PAGE.read_text()
    assert "**lockstep**" in page
    assert "rand4k-s32 +2.0 ±0." in page
    assert documents.update() == []


def test_another_kernel_fills_in_nothing(top, monkeypatch):
    monkeypatch.setattr(env, "BASE", "6.12")
    line, = documents.update()
    assert "not filled in" in line


def test_damaged_records_write_nothing(top):
    (top / "device.json").write_text("{}")
    with pytest.raises(files.ReportError, match="device.json"):
        documents.update()
    assert not model_figures.FILE.exists()


# --- places --------------------------------------------------------------------
def test_only_what_lies_between_is_replaced(monkeypatch):
    monkeypatch.setitem(documents.TABLES, "readme", lambda: ["new"])
    text = "a\n<!-- make figures: readme -->\n%s\n<!-- figures: end -->\nb\n"
    assert documents.filled(text % "old", pathlib.Path("x.md")) == text % "new"


@pytest.mark.parametrize("text, says", [
    ("a\n", "has no line"),
    ("<!-- make figures: x -->\n<!-- figures: end -->\n", "no table 'x'")])
def test_what_cannot_be_filled_in_is_refused(text, says):
    with pytest.raises(documents.DocumentError, match=says):
        documents.filled(text, pathlib.Path("README.md"))


def test_the_repository_has_the_figures_of_today():
    places = []
    for path in documents.README, documents.PAGE:
        text = path.read_text()
        places += [place[1] for place in documents.PLACE.finditer(text)]
        assert documents.filled(text, path) == text, \
            "first: make figures FILL=1"
    assert sorted(places) == sorted(documents.TABLES)
