# SPDX-License-Identifier: GPL-2.0
"""What runs on the USB stick, on a made-up machine.

A machine that refuses to protect a disk cannot be emulated: there the kernel's word
on what is read-only is made up, too.
"""
import os
import shutil
import sys

import pytest

from plugtools.bench.plan import run_seconds

from scripts import kernel
from scripts.stick import boot
from scripts.stick.booted import bench, disks, report, run, talk


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
    consoles.drain()
    assert consoles.ask(0.2) == ""
    os.write(keyboard, b"\n")
    assert consoles.ask(9) == "enter"


def test_menu(typist, monkeypatch):
    consoles, _ = typist
    answers = ["5", "2", ""]
    monkeypatch.setattr(consoles, "ask", lambda _: answers.pop(0))
    assert consoles.menu(30) == "full" and consoles.menu(30) == "short"
    assert "That is none of 1, 2 and 3." in consoles.log
    assert "Type a number and Enter. Without, 1 is taken after 30 seconds." in consoles.log


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
    its.new_run()       # which has a directory of its own
    its.save("a", "none")
    assert (machine.root / "mnt/run-2/a").read_text() == (
        "x(removed)y 100 Default string\n(removed) (removed)\n")


def test_checks_settings(machine, its):
    """What plug-policy.conf may say; as Windows writes it, too."""
    machine.write("mnt/plug-policy.conf", "# RUN=x\r\nRUN=short\r\nROUNDS=12\r\nSECONDS=100\n"
                  "RUN=all\nROUNDS=0\nFOO=1\n")
    assert its.settings() == ({"RUN": "short", "ROUNDS": "12"},
                              ["SECONDS=100", "RUN=all", "ROUNDS=0", "FOO=1"])


def test_a_run_that_fails_is_reported(machine, its, monkeypatch):
    """Whatever it was; and a page that cannot be made is made plain."""
    machine.disk("nvme0n1")
    machine.protect()
    monkeypatch.setattr(run, "run", lambda *_: 1 / 0)
    monkeypatch.setattr(its, "page", lambda: 1 / 0)
    run.run_and_report(its, "short")
    page = (machine.root / "mnt/run-1/report.html").read_text()
    assert "FAILED: the run ended with ZeroDivisionError" in page
    assert "FAILED: the page: ZeroDivisionError" in page and "read-only: yes" in page
    assert (machine.root / "mnt/run-1/dmesg.txt").exists()


# --- what is measured ----------------------------------------------------------

@pytest.mark.parametrize("number", range(9))
def test_fits_ten_minutes(number):
    """The short run, for two disks and the one in memory; 3 minutes more for each above"""
    rounds, seconds, workloads = bench.choose("short", number)
    runs = rounds * len(boot.POLICIES) * len(workloads.split(","))
    minutes = runs * run_seconds(seconds, True) / 60
    assert (1 + number) * minutes < 10 + 3.3 * max(0, number - 2)


def test_ends_what_hangs(machine, its, monkeypatch):
    """A command that is mute is ended, however long it spoke; of others the code is
    told."""
    its.new_run()
    monkeypatch.setattr(bench, "MUTE", 0.6)
    tried, log = bench.Bench(its, "full"), its.out / "nvme0n1.txt"
    assert tried.run(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done; sleep 60"],
                     log) is None
    assert log.read_text() == "1\n2\n3\n"
    assert tried.run(["sh", "-c", "echo said; exit 7"], log) == 7
    assert log.read_text() == "said\n" and its.consoles.log[-1] == "said"
    tried.note_end("nvme0n1", 7)
    tried.note_end("nvme0n1", None)
    machine.write("sys/block/nvme0n1/stat", "1 0 8 0 0 0 0 0 0 0 0 0 0 8 0 0")
    tried.note_end("nvme0n1", 0)
    tried.note_end("null", 0)
    assert its.failed == [
        "nvme0n1: plugbench ended with 7: said", "nvme0n1: ended, as it said nothing for 0.6 s",
        "nvme0n1: the kernel counts 8 sectors written"]


FAKE = """import sys
if "/dev/nvme1n1" in sys.argv:
    sys.exit("plugbench: is in use")
print("  policies:  always, never\\n  2 rounds of 1\\n  15 runs, some 1 min")
"""


def test_plan(machine, its, monkeypatch):
    """Who can be measured, for how long, and why others are left alone"""
    for name in ("nvme0n1", "nvme1n1"):
        machine.disk(name)
    machine.protect()
    its.new_run()
    machine.write("plugbench", FAKE)
    tried = bench.Bench(its, "short")
    whole = tried.plugbench
    monkeypatch.setattr(tried, "plugbench", lambda *args: [
        sys.executable, str(machine.root / "plugbench"), *whole(*args)[2:]])
    tried.plan()
    tried.show_plan()
    assert tried.plans == dict.fromkeys(["null", "nvme0n1"], "15 runs, some 1 min")
    assert machine.left == {"nvme1n1": "plugbench: is in use"}
    said = "\n".join(its.consoles.log)
    for line in ("  nvme0n1: MODEL, firmware , 0.0 GB: 15 runs, some 1 min\n",
                 "Left alone: nvme1n1: plugbench: is", "Policies:  always, never\n2 rounds of 1\n",
                 "with perf: 15 runs, some 1 min\n", "The report goes to run-1 on the stick."):
        assert line in said, said


# --- the test of the whole ------------------------------------------------------

def test_a_boot_that_is_mute_is_ended(tmp_path, monkeypatch):
    """However long it goes on as long as it speaks"""
    (tmp_path / "image").touch()
    for name, value in {"mcopy": lambda *_: None, "MUTE": 1, "VARIABLES": tmp_path / "image",
                        "qemu_args": lambda *_: [
                            "sh", "-c", "for i in 1 2 3; do echo x; sleep 0.5; done; sleep 60"]
                        }.items():
        monkeypatch.setattr(boot, name, value)
    monkeypatch.setattr(boot.stick, "IMAGE", tmp_path / "image")
    with pytest.raises(kernel.BuildError, match="has said nothing for 1 s"):
        boot.boot(tmp_path, "", {}, [])
    assert (tmp_path / "console.log").read_text() == 3 * "x\n"
