# SPDX-License-Identifier: GPL-2.0
"""What the suite "lines" makes of what the plugin and the guest say."""
import pytest

from lab.bench import lines

KERNEL = 0xffffffff81000000
WINDOW = f"window a 100 2500 7\nsite {KERNEL:x} 300 2 1 0 4\n"


@pytest.fixture
def known(tmp_path, monkeypatch):
    """The symbols of a kernel."""
    (tmp_path / "System.map").write_text(
        f"0000000000000010 A absolute\n{KERNEL + 0x100:x} T bio_endio\n"
        f"{KERNEL:x} t submit_bio.isra.0\n{KERNEL + 0xa000:x} D _end\n")
    monkeypatch.setattr(lines.kernel, "output", lambda variant: tmp_path)
    return lines.Symbols("patched")


@pytest.mark.parametrize("text, found", [
    (WINDOW + "end a\n", {"a": lines.Window(
        100, 2500, 7, [(KERNEL, 300, 2, 1, 0, 4)])}),
    # the guest would be stopped before all of it is written
    (WINDOW, {})])
def test_counts(tmp_path, text, found):
    (tmp_path / "counts").write_text(text)
    assert lines.read_counts(tmp_path / "counts") == found


@pytest.mark.parametrize("text, last", [
    ("", ""), ("x" * 300 + "\nend a\n", "end a"),
    ("x\nend a\nend b", "end a"), ("x\nend a\nend b\n", "end b")])
def test_last_line(tmp_path, text, last):
    (tmp_path / "counts").write_text(text)
    assert lines.last_line(tmp_path / "counts") == last


def test_figures_are_per_io(known):
    """Summed over the instructions of all symbols."""
    found = lines.figures(lines.Window(100, 2500, 7, [
        (KERNEL, 300, 200, 100, 50, 10), (KERNEL + 4, 100, 0, 0, 50, 0),
        (8, 1000, 1, 1, 0, 0)]), known)
    wanted = {"insns_per_io": 14, "atomics_per_io": 1, "lines_per_io": 25,
              "contended_per_io": 0.07}
    assert {key: found[key] for key in wanted} == wanted
    assert found["symbols"]["atomics"] == [{
        "symbol": "submit_bio", "insns": 4, "loads": 2, "stores": 1,
        "atomics": 1, "contended": 0.1}]
    assert [row["symbol"] for row in found["symbols"]["insns"]] == [
        "(user space)", "submit_bio"]
    text = lines.text([{**lines.record(lines.Cell(
        "patched", "always", "rand4k-s32", 1, 1), found, "")}])
    assert "1 CPUs, 1 hctxs" in text and "submit_bio" in text


@pytest.mark.parametrize("address, name", [
    (KERNEL + 8, "submit_bio"), (KERNEL + 0x140, "bio_endio"),
    (KERNEL + 0xb000, "(modules)"), (0x400000, "(user space)")])
def test_names_of_code(known, address, name):
    assert known.of(address) == name


def test_every_kernel_and_policy():
    """On each number of CPUs and queues."""
    found = lines.every()
    assert len(found) == len(set(found)) == len(lines.CONFIGS) * len(
        lines.PAIRS) * len(lines.LOADS)


@pytest.mark.parametrize("policy, first, warm", [
    ("always", False, lines.START), ("always", True, lines.LEARN),
    # otherwise always would be counted under its name
    ("adaptive", False, lines.LEARN)])
def test_what_is_not_counted(policy, first, warm):
    cell = lines.Cell("patched", policy, "rand4k-s32", 4, 4)
    name = f"rand4k-s32/{policy}/off/1"
    assert cell.window(first).split() == [
        name, "4", *(str(n // 4) for n in (warm, lines.FILL, lines.IOS)), "32"]
    assert cell.line().startswith(f"PROBE=off lines_cell {name} {policy} 4 -a ")
