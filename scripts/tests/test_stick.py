# SPDX-License-Identifier: GPL-2.0
"""The USB stick's shell functions, on a made-up machine.

A machine that refuses to protect a disk cannot be emulated: there a blockdev
that refuses takes the place of the real one.
"""
import functools
import os
import subprocess
import tempfile
import unittest

from lab.qemu import guest
from scripts.stick import image as stick

# What stands in for programs that change the machine. ROOT/refuses names the
# devices that cannot be set read-only, ROOT/forgets those that only pretend.
FAKES = {
    "blockdev": """\
name=${2##*/}
case $1 in
--setro)
    grep -qsx "$name" "$ROOT/refuses" && exit 1
    echo 1 >"$ROOT/ro/$name" ;;
--setrw) echo 0 >"$ROOT/ro/$name" ;;
--getro)
    grep -qsx "$name" "$ROOT/forgets" && { echo 0; exit; }
    cat "$ROOT/ro/$name" ;;
esac
""",
    "mount": """\
for dir; do part=$last last=$dir; done
echo "$*" >>"$ROOT/mounts"
case $* in *remount*) exit ;; esac
cp "$ROOT/content/${part##*/}/"* "$dir"
""",
    "umount": "rm -f \"$1\"/*\n",
}


class Machine:
    """A directory that the stick's shell functions take for the machine."""

    def __init__(self, root):
        self.root = root
        for name in ("sys/block", "dev", "state", "stick", "mnt", "ro", "bin",
                     "sys/class/dmi/id", "tmp/out"):
            os.makedirs(os.path.join(root, name))
        self.write("stick/id", "plug_policy-1\n")
        for name, text in FAKES.items():
            self.write("bin/" + name, text)

    def write(self, name, text):
        """A file of the machine's."""
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        guest.boot.write_text(path, text)

    def read(self, name):
        """The same, or nothing."""
        return guest.boot.read_text(os.path.join(self.root, name))

    def disk(self, name, hidden=0, **partitions):
        """A disk with partitions {name: its name in the table}."""
        where = "sys/block/%s/" % name
        self.write(where + "hidden", "%d\n" % hidden)
        self.write(where + "device/model", "MODEL\n")
        for part, label in partitions.items():
            self.write(where + part + "/partition", "1\n")
            self.write(where + part + "/uevent", "PARTNAME=%s\n" % label)
        for one in (name, *partitions):
            self.write("ro/" + one, "0\n")

    def shell(self, code):
        """Run the stick's functions; (exit code, output)."""
        sources = "".join(". %s/%s.sh\n" % (stick.HERE, name) for name in (
            "disks", "talk", "report", "bench"))
        # Functions, since busybox prefers its own programs to those in PATH.
        sources += "".join("%s() { sh $ROOT/bin/%s \"$@\"; }\n" % (name, name)
                           for name in FAKES)
        done = subprocess.run(
            ["busybox", "sh", "-c", sources + code], check=False, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=self.root, timeout=60, env={
                "ROOT": self.root, "STATE": self.root + "/state",
                "PATH": os.environ["PATH"]})
        return done.returncode, done.stdout

    def is_read_only(self, *names):
        """Whether all of these are."""
        return all(self.read("ro/" + name) == "1\n" for name in names)


def made_up(test):
    """Give a test a machine."""
    @functools.wraps(test)
    def run(self):
        with tempfile.TemporaryDirectory() as root:
            test(self, Machine(root))
    return run


class Functions(unittest.TestCase):
    """What they do to its disks, and what they say."""

    @made_up
    def test_protects_all(self, machine):
        """Every disk, with its partitions, but no hidden path."""
        machine.disk("nvme0n1", nvme0n1p1="root")
        machine.disk("nvme1c1n1", hidden=1)
        machine.disk("sda", sda1="photos")
        machine.shell("protect; protect")
        assert machine.is_read_only("nvme0n1", "nvme0n1p1", "sda", "sda1")
        assert machine.read("state/read-only") == "nvme0n1\n"
        assert not machine.read("state/left")

    @made_up
    def test_leaves_alone(self, machine):
        """It refuses, or forgets, or its partition refuses."""
        for number in range(4):
            name = "nvme%dn1" % number
            machine.disk(name, **{name + "p1": "root"})
        machine.write("refuses", "nvme1n1\nnvme3n1p1\n")
        machine.write("forgets", "nvme2n1\n")
        machine.shell("protect; rm $ROOT/refuses $ROOT/forgets; protect")
        assert machine.read("state/read-only") == "nvme0n1\n"
        assert machine.read("state/left").splitlines() == [
            "nvme%d" % number + "n1: cannot be set read-only"
            for number in (1, 2, 3)]

    @made_up
    def test_asks_again(self, machine):
        """A disk that was protected, and no longer is, is not measured."""
        machine.disk("nvme0n1")
        code, _ = machine.shell(
            "plugbench() { echo >$ROOT/measured; }; protect; "
            "echo 0 >$ROOT/ro/nvme0n1; measure nvme0n1")
        assert not code and not machine.read("measured")
        assert machine.read("state/left") == (
            "nvme0n1: is no longer read-only\n")

    @made_up
    def test_finds_stick(self, machine):
        """By its name, never on NVMe; nothing else becomes writable."""
        machine.disk("nvme0n1", nvme0n1p2="plug_policy-1")
        machine.disk("sda", sda2="plug_policy-12")
        machine.disk("sdb", sdb1="plug_policy-boot", sdb2="plug_policy-1")
        machine.write("content/sdb2/plug-policy.id", "plug_policy-1\n")
        code, _ = machine.shell("protect; mount_stick $ROOT/mnt && protect")
        assert not code and machine.read("mnt/plug-policy.id")
        assert machine.read("state/stick") == "sdb\n"
        assert machine.is_read_only("nvme0n1", "nvme0n1p2", "sda", "sda2",
                                    "sdb1")
        assert not machine.is_read_only("sdb")
        assert not machine.is_read_only("sdb2")

    @made_up
    def test_refuses_other_stick(self, machine):
        """One that has the name, but is another after all."""
        machine.disk("sda", sda2="plug_policy-1")
        machine.write("content/sda2/plug-policy.id", "plug_policy-2\n")
        code, _ = machine.shell("protect; mount_stick $ROOT/mnt")
        assert code and not machine.read("mnt/plug-policy.id")
        assert machine.is_read_only("sda", "sda2")
        assert not machine.read("state/stick")
        assert " ro," in machine.read("mounts")
        assert ",rw," not in machine.read("mounts"), "another stick was writable"

    @made_up
    def test_protects_first(self, machine):
        """A late disk is protected before the stick is writable."""
        machine.disk("nvme0n1")
        machine.disk("sdb", sdb2="plug_policy-1")
        machine.write("content/sdb2/plug-policy.id", "plug_policy-1\n")
        machine.shell("STICK=$ROOT/mnt; blockdev() { "
                      "echo $* >>$ROOT/calls; "
                      "sh $ROOT/bin/blockdev \"$@\"; }; settled")
        calls = machine.read("calls").splitlines()
        late = calls.index("--setro %s/dev/nvme0n1" % machine.root)
        assert late < calls.index("--setrw %s/dev/sdb" % machine.root), calls

    @made_up
    def test_forgets_typed_ahead(self, machine):
        """What was typed before the plan was shown does not answer it."""
        machine.shell("mkfifo dev/tty9; exec 3<>dev/tty9; echo 1 >&3; "
                      "CONSOLES=tty9; drain; ask 2 >answer")
        assert not machine.read("answer"), machine.read("answer")

    @made_up
    def test_removes_serials(self, machine):
        """What identifies goes, wherever it is; what is no number stays."""
        machine.write("sys/class/nvme/nvme0/serial", "S.1/A*[x]23 \n")
        machine.write("sys/class/dmi/id/board_serial", "Default string\n")
        machine.write("sys/class/dmi/id/chassis_serial", "   \n\n")
        machine.write("sys/class/dmi/id/product_serial", "0\n")
        machine.write("sys/class/nvme/nvme1/serial", "ABCDEF12            \n")
        machine.write("sys/class/nvme/nvme2/serial", "ABCDEF12-345\n")
        machine.write("tmp/out/a", "xS.1/A*[x]23y 100 Default string\n"
                      "ABCDEF12-345 ABCDEF12\n")
        machine.shell("new_run; save a")
        assert machine.read("mnt/run-1/a") == (
            "x(removed)y 100 Default string\n(removed) (removed)\n")

    @made_up
    def test_keeps_reports(self, machine):
        """Each run has a directory of its own."""
        machine.shell("new_run")
        machine.shell("new_run")
        assert sorted(os.listdir(machine.root + "/mnt")) == ["run-1", "run-2"]

    @made_up
    def test_checks_settings(self, machine):
        """What plug-policy.conf may say; as Windows writes it, too."""
        machine.write("mnt/plug-policy.conf", "# RUN=x\r\nRUN=short\r\n"
                      "ROUNDS=12\r\nSECONDS=100\nRUN=all\nROUNDS=0\nFOO=1\n")
        _, text = machine.shell(
            "check_settings; setting ROUNDS; setting NONE x")
        assert text == "SECONDS=100\nRUN=all\nROUNDS=0\nFOO=1\n0\nx\n", text

    @made_up
    def test_fits_ten_minutes(self, machine):
        """The short run, for up to two disks and the one in memory."""
        for number, form in ((1, "3 2"), (2, "3 2"), (3, "2 2"), (9, "2 1")):
            _, text = machine.shell("short_form %d" % number)
            assert text == form + "\n", text

    @made_up
    def test_ends_what_hangs(self, machine):
        """A command that takes too long is ended, and its code is told."""
        code, _ = machine.shell("within 2 sleep 60")
        assert code == 124
        code, _ = machine.shell("within 20 sh -c 'exit 7'")
        assert code == 7

    @made_up
    def test_notes_writes(self, machine):
        """If the kernel counts a write, it is a failure."""
        machine.write("sys/block/nvme0n1/stat",
                      "1 0 8 0 0 0 0 0 0 0 0 0 0 8 0 0")
        machine.shell("note_end nvme0n1 0 9")
        assert "8 sectors written" in machine.read("state/failed")
