# SPDX-License-Identifier: GPL-2.0
"""What runs on the USB stick, on a made-up machine.

A machine that refuses to protect a disk cannot be emulated: there the kernel's word
on what is read-only is made up, too."""
import itertools
import os
import re
import shutil
import threading

import pytest

from plugtools.bench import fio, plan
from plugtools.report import records

from scripts import kernel
from scripts.stick import boot
from scripts.stick.booted import bench, disks, page, report, run, talk


class Machine(disks.Disks):
    """refuses: devices that cannot be set read-only; forgets: those that only
    pretend; calls: what was set, in order; mounts: the options of each mount"""

    def __init__(self, root):
        self.root = root
        for name in ("sys/block", "dev", "mnt", "tmp"):
            (root / name).mkdir(parents=True)
        self.write("stick/id", "plug_policy-1\n")
        super().__init__(str(root))
        self.read_only, self.refuses, self.forgets = set(), set(), set()
        self.calls, self.mounts = [], []

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def disk(self, name, hidden=0, **partitions):
        """A disk with partitions {name: its name in the table}."""
        top = f"sys/block/{name}"
        self.write(f"{top}/hidden", f"{hidden}\n")
        self.write(f"{top}/device/model", "MODEL\n")
        for part, label in partitions.items():
            self.write(f"{top}/{part}/partition", "1\n")
            self.write(f"{top}/{part}/uevent", f"PARTNAME={label}\n")

    def flag(self, name, value=None):
        if value is not None:
            self.calls.append((name, value))
            if value and name in self.refuses:
                raise OSError("refused")
            (self.read_only.add if value else self.read_only.discard)(name)
        return name in self.read_only and name not in self.forgets

    def run(self, program, *args):
        """mount and umount"""
        where = self.root / "mnt"
        if program == "umount":
            shutil.rmtree(where)
            where.mkdir()
            return True
        self.mounts.append(args[-3])
        if "remount" not in args[-3]:
            shutil.copytree(self.root / "content" / os.path.basename(args[-2]), where,
                            dirs_exist_ok=True)
        return True


@pytest.fixture(name="machine")
def make_machine(tmp_path, monkeypatch):
    machine = Machine(tmp_path)
    monkeypatch.setattr(disks, "run", machine.run)
    return machine


@pytest.fixture(name="its")
def make_report(machine):
    return report.Report(machine, talk.Consoles(str(machine.root)), str(machine.root))


# --- disks -------------------------------------------------------------------
def test_protects_all(machine):
    """Every disk, with its partitions, but no hidden path."""
    machine.disk("nvme0n1", nvme0n1p1="root")
    machine.disk("nvme1c1n1", hidden=1)
    machine.disk("sda", sda1="photos")
    machine.protect()
    machine.protect()
    assert machine.read_only == {"nvme0n1", "nvme0n1p1", "sda", "sda1"}
    assert machine.measured == ["nvme0n1"] and not machine.left


def test_leaves_alone(machine, its):
    """It refuses, or forgets, or its partition refuses; and is not asked again. One that
    was protected, and no longer is, is not measured."""
    for number in range(4):
        machine.disk(f"nvme{number}n1", **{f"nvme{number}n1p1": "root"})
    machine.refuses, machine.forgets = {"nvme1n1", "nvme3n1p1"}, {"nvme2n1"}
    machine.protect()
    machine.refuses, machine.forgets = set(), set()
    machine.protect()
    left = dict.fromkeys(["nvme1n1", "nvme2n1", "nvme3n1"], "cannot be set read-only")
    assert machine.measured == ["nvme0n1"] and machine.left == left
    machine.read_only.clear()
    bench.Bench(its, "short").measure("nvme0n1")
    assert machine.left == {**left, "nvme0n1": "is no longer read-only"} and not machine.measured


def test_finds_stick(machine):
    """By its name, never on NVMe; nothing else becomes writable. A late disk is
    protected before that."""
    machine.disk("nvme0n1", nvme0n1p2="plug_policy-1")
    machine.disk("sda", sda2="plug_policy-12")
    machine.disk("sdb", sdb1="plug_policy-boot", sdb2="plug_policy-1")
    machine.write("content/sdb2/plug-policy.id", "plug_policy-1\n")
    assert machine.settled(machine.root / "mnt")
    machine.protect()
    assert (machine.root / "mnt/plug-policy.id").exists() and machine.stick == "sdb"
    assert machine.read_only == {"nvme0n1", "nvme0n1p2", "sda", "sda2", "sdb1"}
    assert machine.calls.index(("nvme0n1", True)) < machine.calls.index(("sdb", False))
    machine.write("sys/class/nvme/nvme0/state", "connecting\n")
    assert not machine.settled(machine.root / "mnt")


@pytest.mark.parametrize("number, options", [
    (2, ["ro"]),                    # another after all
    (1, ["ro", "remount,rw"])])     # one that cannot be written
def test_refuses_a_stick_of_that_name(machine, monkeypatch, number, options):
    machine.disk("sda", sda2="plug_policy-1")
    machine.write("content/sda2/plug-policy.id", f"plug_policy-{number}\n")
    monkeypatch.setattr(disks, "run", lambda *args: machine.run(*args) and not any(
        "remount" in arg for arg in args))
    assert not machine.settled(machine.root / "mnt")
    assert not (machine.root / "mnt/plug-policy.id").exists() and not machine.stick
    assert machine.mounts == [f"{one},{disks.OPTIONS}" for one in options]
    assert machine.read_only == {"sda", "sda2"}
    assert (("sda2", False) in machine.calls) == (number == 1)


# --- talk --------------------------------------------------------------------
@pytest.fixture(name="typist")
def make_typist(machine):
    """(consoles, the file in which somebody types)"""
    keyboard, console = os.openpty()
    (machine.root / "dev/tty9").symlink_to(os.ttyname(console))
    machine.write("sys/class/tty/console/active", "tty9\n")
    yield talk.Consoles(str(machine.root)), keyboard
    os.close(keyboard)
    os.close(console)


def test_forgets_typed_ahead(typist):
    """What was typed before the plan was shown does not answer it."""
    consoles, keyboard = typist
    os.write(keyboard, b"1\n")
    assert consoles.ask(0.2) == ""
    threading.Timer(0.2, os.write, (keyboard, b"\n")).start()
    assert consoles.ask(9) == "enter"


def test_menu(typist, monkeypatch):
    consoles, _ = typist
    answers = ["5", "2", ""]
    monkeypatch.setattr(consoles, "ask", lambda _: answers.pop(0))
    assert consoles.menu(17, 99) == "full" and consoles.menu(17, 99) == "short"
    assert {"That is none of 1, 2 and 3.", "  1  short run: some 17 minutes",
            "  2  full run: some 99 minutes", "Type a number and Enter. Without, 1 is taken after "
            "30 seconds."} <= set(consoles.log)


# --- the report --------------------------------------------------------------
def test_removes_serials(machine, its):
    """What identifies goes, wherever it is; what is no number stays."""
    for name, text in {"nvme/nvme0/serial": "S.1/A*[x]23 \n", "dmi/id/board_serial":
                       "Default string\n", "dmi/id/chassis_serial": "   \n\n",
                       "dmi/id/product_serial": "0\n", "nvme/nvme1/serial": "ABCDEF12        \n",
                       "nvme/nvme2/serial": "ABCDEF12-345\n"}.items():
        machine.write(f"sys/class/{name}", text)
    machine.write("tmp/out/a", "xS.1/A*[x]23y 100 Default string\nABCDEF12-345 ABCDEF12\n")
    its.new_run()
    for _ in range(2):      # each has a directory of its own
        its.begin(its.new_run(), "patched")
    its.begin("run-3", "patched")
    its.fail("xS.1/A*[x]23y")
    assert "FAILED: x(removed)y" in (machine.root / "mnt/run-3/outcome.txt").read_text()
    its.save("a")
    assert (machine.root / "mnt/run-3/2-patched/a").read_text() == (
        "x(removed)y 100 Default string\n(removed) (removed)\n")


def test_checks_settings(machine, its):
    """What plug-policy.conf may say; as Windows writes it, too."""
    machine.write("mnt/plug-policy.conf", "# RUN=x\r\nRUN=short\r\nROUNDS=12\r\nSECONDS=100\n"
                  "RUN=all\nROUNDS=0\nFOO=1\n")
    assert its.settings() == ({"RUN": "short", "ROUNDS": "12"},
                              ["SECONDS=100", "RUN=all", "ROUNDS=0", "FOO=1"])


@pytest.fixture(name="booted")
def make_booted(monkeypatch):
    """What has been booted, in place of it: a list of what was left to do"""
    found = []
    monkeypatch.setattr(run, "boot", lambda its, name, form, todo: found.append(
        ",".join([name, form, *todo])))
    return found


def test_a_run_that_fails_is_reported(machine, its, booted, monkeypatch):
    """Whatever it was, the next kernel has its turn; also without a page."""
    machine.disk("nvme0n1")
    its.new_run()
    monkeypatch.setattr(run, "measure", lambda *_: 1 / 0)
    machine.write("mnt/run-1/1-patched/null.json", "x")
    run.measure_and_go_on(its, "run-1", "short", "unpatched", "patched")
    assert booted == ["run-1,short,patched"]
    assert re.match("""1-unpatched: begins
1-unpatched: FAILED: the run ended with Traceback(.|\n)*\nZeroDivisionError: division by zero

1-unpatched: nvme0n1: MODEL, firmware , 0.0 GB,  x: read
1-unpatched: FAILED: the page: ReportError.*
1-unpatched: The end.""", disks.read(machine.root / "mnt/run-1/outcome.txt"))


@pytest.mark.parametrize("groups, passthrough", [
    ([], []), (["0"], ["unpatched-passthrough", "patched-passthrough"])])
def test_kernels_take_turns(machine, its, booted, monkeypatch, groups, passthrough):
    """Each as often as asked for; one that has been cut short is not begun anew."""
    machine.disk("nvme0n1")
    for name in groups:
        machine.write(f"sys/kernel/iommu_groups/{name}/type", "DMA-FQ")
    machine.write("mnt/plug-policy.conf", "RUN=short\nBOOTS=2\n")
    todo = [its.new_run(), run.choice(its, []), *run.boots(its)]
    assert todo == ["run-1", "short", *2 * ["unpatched", "patched", *passthrough]]
    assert its.cut_short() == "run-1"
    monkeypatch.setattr(run, "measure", lambda *_: True)
    while len(todo) > 2:
        run.measure_and_go_on(its, *todo)
        del todo[2]
        assert booted == [",".join(todo)] * (len(todo) > 2)
        booted.clear()
    begun = re.findall("(.*): begins\n", disks.read(its.run / "outcome.txt"))
    assert begun == [f"{number}-{kind}" for number in (1, 2)
                     for kind in ("unpatched", "patched", *passthrough)] and not its.cut_short()


def test_page(machine, its):
    """Kernels are compared boot by boot, modes by all rounds, with passthrough apart; so
    is nomerges=2 of the unpatched one. Where boots differ in what they say of the host,
    each is named."""
    for number, kernel_, how in itertools.product(
            (1, 2, 3), ("unpatched", "patched"), ("", "-passthrough")):
        machine.write(f"mnt/run-1/{number}-{kernel_}{how}/dmesg.txt", "")
        records.save(f"{machine.root}/mnt/run-1/{number}-{kernel_}{how}/null.json", [dict(
            suite="plugbench", profile="null", workload="seq4k-s32", kernel=kernel_, run=nr,
            policy=policy, commit="c", iops=100 + 10 * (kernel_ == "patched") + nr + gain,
            lat_us={"p99": 9.0}) for policy, gain in (("always", 0), ("nomerges2", 20))
                                                     for nr in (0, 1)],
                     {"host": {"CPU": "Fast", "governor": f"{number} of {kernel_}"}})
    its.finish("run-1")
    sections = list(page.sections(its.run))
    assert sections[0]["details"][:2] == [
        "CPU: Fast", "governor: 1 of patched (1-patched, 1-patched-passthrough)"]
    found = {one["suite"]: one["verdict"] for one in sections}
    for name, base, mode, runs in (("null: kernels", "unpatched always", "always", 3),
                                   ("null: nomerges=2 today", "unpatched always",
                                    "unpatched nomerges2", 6),
                                   ("null: modes", "always", "nomerges2", 6)):
        iops = [one for one in found[name]["comparisons"]
                if (one["metric"], one["mode"]) == ("iops", mode)]
        assert found[name]["baseline"] == base and [
            (one["mode"], one["profile"], one["n"], one["paired"]) for one in iops] == [
                (mode, profile, runs, True) for profile in ("null", "null, iommu.passthrough=1")]
        assert all(one["low"] > 1.09 for one in iops)


# --- what is measured ----------------------------------------------------------
def test_minutes(machine, its):
    """What the menu tells is what plugbench plans, and 45 s for each boot."""
    machine.disk("nvme0n1")
    assert bench.BESIDES == pytest.approx(plan.run_seconds(0, True))
    assert set(bench.FORMS["full"][2].split(",")) == {
        name for name, one in fio.WORKLOADS.items() if not one.write}
    assert {name: len(some) for name, some in boot.POLICIES.items()} == bench.POLICIES
    todo = 3 * ["unpatched", "patched"]
    assert bench.minutes(its, "short", todo) == round(3 * (2 * 7 * 3 * 6.4 + 90) / 60)
    assert bench.minutes(its, "full", todo) == round(3 * (2 * 2 * 7 * 8 * 9.4 + 90) / 60)


def test_ends_what_hangs(its, monkeypatch):
    """A command that is mute is ended, however long it spoke; of others the code is
    told."""
    monkeypatch.setattr(bench, "MUTE", 0.6)
    tried, log = bench.Bench(its, "full"), its.out / "nvme0n1.txt"
    assert tried.run(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done; sleep 60"],
                     log) == "was ended, as it said nothing for 0.6 s"
    assert log.read_text() == "1\n2\n3\n"
    assert tried.run(["sh", "-c", "echo more; echo said; exit 7"], log) == "ended with 7: said"
    assert log.read_text() == "more\nsaid\n" and its.consoles.log[-1] == "said"
    assert tried.run(["echo"], log) == ""


def test_plan(machine, its, monkeypatch):
    """What it says before it begins; each boot begins with another policy. One disk that
    cannot be measured does not stop the others."""
    for name in ("nvme0n1", "nvme1n1"):
        machine.disk(name)
    machine.write("sys/block/nullb0/queue/plug_policy", "[always] never\n")
    machine.write("sys/block/nvme1n1/stat", "1 0 8 0 0 0 0 0 0 0 0 0 0 8 0 0")
    its.begin(its.new_run(), "patched")
    monkeypatch.setattr(its.consoles, "ask", lambda _: "")
    monkeypatch.setattr(bench.Bench, "plugbench", lambda self, name: [
        "sh", "-c", f'[ {name} = nvme0n1 ] && echo "it is in use"; [ {name} = nvme1n1 ]'])
    assert run.measure(its, "short", "patched", ["unpatched", "patched"])
    said = "\n".join(its.consoles.log)
    for text in ("nvme0n1: MODEL, firmware , 0.0 GB,  x\nnvme1n1: ", "Some 6 minutes;\n",
                 "follow take 8,", "Policies: never, nomerges2, always.", "== null", "== nvme1n1"):
        assert text in said, said
    assert its.failed == ["null: plugbench ended with 1: ",
                          "nvme0n1: plugbench ended with 1: it is in use",
                          "nvme1n1: the kernel counts 8 sectors written"]


# --- the test of the whole ------------------------------------------------------
def test_a_boot_that_is_mute_is_ended(tmp_path, monkeypatch):
    """However long it goes on as long as it speaks"""
    (tmp_path / "image").touch()
    monkeypatch.setattr(boot, "MUTE", 1)
    monkeypatch.setattr(boot, "qemu_args", lambda *_: [
        "sh", "-c", "for i in 1 2 3; do echo x; sleep 0.5; done; sleep 60"])
    monkeypatch.setattr(boot.stick, "IMAGE", tmp_path / "image")
    monkeypatch.setattr(boot.stick, "run", lambda *_: None)
    with pytest.raises(kernel.BuildError, match="has said nothing for 1 s"):
        boot.boot(tmp_path, "", [], "bios")
    assert (tmp_path / "console.log").read_text() == 3 * "x\n"
