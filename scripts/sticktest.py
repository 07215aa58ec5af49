#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The USB stick: its shell functions on a made-up machine, and the image booted
as by firmware, beside two NVMe disks that must be the same afterwards.

A machine that refuses to protect a disk cannot be emulated: there a blockdev
that refuses takes the place of the real one.
"""
import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import traceback

import common
import guest
import kernel
import stick
import tap

FIRMWARE = "/usr/share/OVMF/OVMF_CODE_4M.fd"
VARIABLES = "/usr/share/OVMF/OVMF_VARS_4M.fd"
POLICIES = {"always", "never", "seq-small", "adaptive", "nomerges2"}
DISK_BYTES = 32 << 20
SERIAL = "SECRET-%s-%d"
# The kernel tests the timer by the processor's clock, which goes on while QEMU
# waits for a processor.
LATE_TIMER = "IO-APIC + timer doesn't work"
TIMEOUT = 900                   # of a boot; it takes three minutes
MENU = "Type a number"

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


# --- shell functions -------------------------------------------------------

def protects_all(machine):
    """Every disk, with its partitions, but no hidden path."""
    machine.disk("nvme0n1", nvme0n1p1="root")
    machine.disk("nvme1c1n1", hidden=1)
    machine.disk("sda", sda1="photos")
    machine.shell("protect; protect")
    assert machine.is_read_only("nvme0n1", "nvme0n1p1", "sda", "sda1")
    assert machine.read("state/read-only") == "nvme0n1\n"
    assert not machine.read("state/left")


def leaves_alone(machine):
    """A disk that refuses, one that forgets, one whose partition refuses."""
    for number in range(4):
        machine.disk("nvme%dn1" % number, **{"nvme%dn1p1" % number: "root"})
    machine.write("refuses", "nvme1n1\nnvme3n1p1\n")
    machine.write("forgets", "nvme2n1\n")
    machine.shell("protect; rm $ROOT/refuses $ROOT/forgets; protect")
    assert machine.read("state/read-only") == "nvme0n1\n"
    assert machine.read("state/left").splitlines() == [
        "nvme%d" % number + "n1: cannot be set read-only"
        for number in (1, 2, 3)]


def asks_again(machine):
    """A disk that was protected, and no longer is, is not measured."""
    machine.disk("nvme0n1")
    code, _ = machine.shell("plugbench() { echo >$ROOT/measured; }; protect; "
                         "echo 0 >$ROOT/ro/nvme0n1; measure nvme0n1")
    assert not code and not machine.read("measured")
    assert machine.read("state/left") == "nvme0n1: is no longer read-only\n"


def finds_stick(machine):
    """By its name, and only outside NVMe; nothing else becomes writable."""
    machine.disk("nvme0n1", nvme0n1p2="plug_policy-1")
    machine.disk("sda", sda2="plug_policy-12")
    machine.disk("sdb", sdb1="plug_policy-boot", sdb2="plug_policy-1")
    machine.write("content/sdb2/plug-policy.id", "plug_policy-1\n")
    code, _ = machine.shell("protect; mount_stick $ROOT/mnt && protect")
    assert not code and machine.read("mnt/plug-policy.id")
    assert machine.read("state/stick") == "sdb\n"
    assert machine.is_read_only("nvme0n1", "nvme0n1p2", "sda", "sda2", "sdb1")
    assert not machine.is_read_only("sdb") and not machine.is_read_only("sdb2")


def refuses_other_stick(machine):
    """One that has the name, but is another after all."""
    machine.disk("sda", sda2="plug_policy-1")
    machine.write("content/sda2/plug-policy.id", "plug_policy-2\n")
    code, _ = machine.shell("protect; mount_stick $ROOT/mnt")
    assert code and not machine.read("mnt/plug-policy.id")
    assert machine.is_read_only("sda", "sda2")
    assert not machine.read("state/stick")


def removes_serials(machine):
    """What identifies goes, wherever it stands; what is no number stays."""
    machine.write("sys/class/nvme/nvme0/serial", "S.1/A*[x]23 \n")
    machine.write("sys/class/dmi/id/board_serial", "Default string\n")
    machine.write("sys/class/dmi/id/chassis_serial", "   \n\n")
    machine.write("sys/class/dmi/id/product_serial", "0\n")
    machine.write("tmp/out/a", "xS.1/A*[x]23y 100 Default string\n")
    machine.shell("new_run; save a")
    assert machine.read("mnt/run-1/a") == "x(removed)y 100 Default string\n"


def keeps_reports(machine):
    """Each run has a directory of its own."""
    machine.shell("new_run")
    machine.shell("new_run")
    assert sorted(os.listdir(machine.root + "/mnt")) == ["run-1", "run-2"]


def checks_settings(machine):
    """What plug-policy.conf may say; as Windows writes it, too."""
    machine.write("mnt/plug-policy.conf", "# RUN=x\r\nRUN=short\r\nROUNDS=12"
                  "\r\nSECONDS=100\nRUN=all\nROUNDS=0\nFOO=1\n")
    _, text = machine.shell("check_settings; setting ROUNDS; setting NONE x")
    assert text == "SECONDS=100\nRUN=all\nROUNDS=0\nFOO=1\n0\nx\n", text


def fits_ten_minutes(machine):
    """The short run, for up to two disks and the one in memory."""
    for number, form in ((1, "3 2"), (2, "3 2"), (3, "2 2"), (9, "2 1")):
        _, text = machine.shell("short_form %d" % number)
        assert text == form + "\n", text


def ends_what_hangs(machine):
    """A command that takes too long is ended, and its code is told."""
    code, _ = machine.shell("within 2 sleep 60")
    assert code == 124
    code, _ = machine.shell("within 20 sh -c 'exit 7'")
    assert code == 7


def notes_writes(machine):
    """If the kernel counts a write, it is a failure."""
    machine.write("sys/block/nvme0n1/stat", "1 0 8 0 0 0 0 0 0 0 0 0 0 8 0 0")
    machine.shell("note_end nvme0n1 0 9")
    assert "8 sectors written" in machine.read("state/failed")


FUNCTIONS = [protects_all, leaves_alone, asks_again, finds_stick,
             refuses_other_stick, removes_serials, keeps_reports,
             checks_settings, fits_ten_minutes, ends_what_hangs, notes_writes]


def try_function(report, test):
    """One of them."""
    with tempfile.TemporaryDirectory(dir=stick.OUT) as root:
        try:
            test(Machine(root))
            report.check(True, test.__name__)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            where = traceback.extract_tb(error.__traceback__)[1]
            report.check(False, test.__name__, "line %d: %s\n%s" % (
                where.lineno, where.line, error))


# --- booted ----------------------------------------------------------------

def mtools(command, image, *words):
    """A command of mtools on the second partition, as anybody may read it."""
    where = "%s@@%d" % (image, second_partition(image))
    return kernel.quiet([stick.program(command), "-i", where, *words], command)


def second_partition(image):
    """Where it begins, as its table says."""
    told = kernel.quiet([stick.program("sfdisk"), "--json", image], "sfdisk")
    table = json.loads(told)["partitiontable"]
    return table["partitions"][1]["start"] * stick.SECTOR


def make_disks(out):
    """Two disks of random data: {path: checksum}."""
    disks = {}
    for number in range(2):
        data = os.urandom(DISK_BYTES)
        path = os.path.join(out, "nvme%d.img" % number)
        with open(path, "wb") as file:
            file.write(data)
        disks[path] = hashlib.sha256(data).hexdigest()
    return disks


def checksum(path):
    """Of a disk, after the boot."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def qemu_args(out, image, disks):
    """A PC with UEFI, a screen, and the serial line on stdin and stdout."""
    drive = "if=none,format=raw,id=%s,file=%s"
    # On one CPU: tcg of one thread leaves out the barrier between a shadow
    # doorbell and the read of its event index, and the thread that emulates
    # NVMe then misses a doorbell.
    cpu = str(min(os.sched_getaffinity(0)))
    args = ["taskset", "-c", cpu, guest.boot.QEMU, "-machine", "q35",
            "-cpu", "max", "-accel", "tcg,thread=single", "-smp", "2",
            "-m", "1024", "-nodefaults", "-no-user-config", "-display",
            "none", "-nic", "none", "-no-reboot", "-device", "VGA",
            "-chardev", "stdio,id=con,signal=off", "-serial", "chardev:con",
            "-drive", "if=pflash,format=raw,readonly=on,file=" + FIRMWARE,
            "-drive", "if=pflash,format=raw,file=%s/variables" % out,
            "-device", "qemu-xhci", "-drive", drive % ("stick", image),
            "-device", "usb-storage,drive=stick,bootindex=0,serial="
            + SERIAL % ("stick", 0)]
    for number, path in enumerate(disks):
        name = "nvme%d" % number
        args += ["-drive", drive % (name, path), "-device",
                 "nvme,drive=%s,serial=%s" % (name, SERIAL % (name, number))]
    return args


class Panic(kernel.BuildError):
    """The kernel has stopped; the message is its last words."""


class Console:
    """What the stick prints; it is answered as by somebody at the keyboard.

    Logged, and the last line told to the clock.
    """

    def __init__(self, log, answers):
        self.log, self.answers = log, answers
        self.keyboard, self.keys = os.pipe()
        self.last = "firmware"

    def take(self, line):
        """A line."""
        self.log.write(line)
        self.log.flush()
        self.last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[^ -~]", "", line)[:50] \
            or self.last
        if "Kernel panic" in line:
            raise Panic(line.strip())
        for text in [text for text in self.answers if text in line]:
            os.write(self.keys, self.answers.pop(text).encode())

    def close(self):
        """After QEMU."""
        os.close(self.keyboard)
        os.close(self.keys)


def boot(out, conf, answers, disks):
    """Boot a copy of the image with a plug-policy.conf; (copy, exit code)."""
    try:
        return boot_once(out, conf, dict(answers), disks)
    except Panic as error:
        if LATE_TIMER not in str(error):
            raise
    print("# the host was too busy for the emulated timer: once more")
    return boot_once(out, conf, dict(answers), disks)


def boot_once(out, conf, answers, disks):
    """The same, whatever comes of it."""
    image = os.path.join(out, "stick.img")
    shutil.copyfile(stick.IMAGE, image)
    shutil.copyfile(VARIABLES, out + "/variables")
    guest.boot.write_text(out + "/plug-policy.conf", conf)
    mtools("mcopy", image, "-o", out + "/plug-policy.conf", "::")
    args = ["timeout", "-k", "5", str(TIMEOUT), *qemu_args(out, image, disks)]
    with open(out + "/console.log", "w", encoding="utf-8") as log:
        console = Console(log, answers)
        try:
            with common.clock(lambda seconds: "# boot, %d s: %s" % (
                    seconds, console.last)):
                code = common.run(args, console.take, stdin=console.keyboard)
        finally:
            console.close()
    return image, code


def fetch_report(image, out):
    """{name: text} of run-1 on the stick."""
    where = os.path.join(out, "run-1")
    shutil.rmtree(where, ignore_errors=True)
    mtools("mcopy", image, "-s", "::run-1", out)
    return {os.path.basename(path): guest.boot.read_text(path)
            for path in glob.glob(where + "/*")}


def is_clean(image, out):
    """Whether the file system with the reports is in order."""
    path = os.path.join(out, "partition")
    with open(image, "rb") as whole, open(path, "wb") as part:
        whole.seek(second_partition(image))
        part.write(whole.read(stick.SMALLEST))
    done = subprocess.run([stick.program("fsck.vfat"), "-n", path],
                          check=False, capture_output=True)
    os.unlink(path)
    return done.returncode == 0


def records_of(files, name):
    """(policy, workload) and perf's counts of the results of a disk."""
    records = json.loads(files.get(name + ".json", "{}")).get("records", [])
    return ({(one["policy"], one["workload"]) for one in records},
            [one["unplugs_per_io"] for one in records])


def check_results(report, files, workload):
    """Each mode, on each disk and on the one in memory."""
    wanted = {(policy, workload) for policy in POLICIES}
    for name in ("null", "nvme0n1", "nvme1n1"):
        found, unplugs = records_of(files, name)
        report.check(found == wanted, "%s: every mode, and nomerges=2" % name,
                     "%s\n%s" % (found, files.get(name + ".txt")))
        report.check(unplugs and None not in unplugs, "%s: perf counts" % name,
                     str(unplugs))
    page = files.get("report.html", "")
    missing = [word for word in (*POLICIES, "null", "nvme0n1", "nvme1n1",
                                 "QEMU NVMe Ctrl", "Nothing failed", workload)
               if word not in page]
    report.check(not missing, "report.html has it all", str(missing))


def check_machine(report, files):
    """What the stick says of the machine and of itself."""
    dmesg = files.get("dmesg.txt", "")
    report.check("Linux version" in dmesg and
                 not guest.boot.first_warning(dmesg),
                 "dmesg without warnings", guest.boot.first_warning(dmesg))
    report.check("colour frame buffer" in dmesg, "a screen", dmesg[-2000:])
    machine = files.get("machine.txt", "")
    report.check(machine.count("read-only: yes") == 2 and
                 machine.count("sectors written since power-on: 0") == 2,
                 "both disks read-only, no sector written", machine)
    report.check(machine.count("plug_policy: [always]") == 2,
                 "policies are put back", machine)
    secrets = [name for name, text in files.items() if "SECRET" in text]
    report.check(not secrets, "no serial numbers", str(secrets))


def run_and_read(report, out, name, conf, answers):
    """One boot and its report; checks what holds of each boot."""
    out = os.path.join(out, name)
    os.makedirs(out, exist_ok=True)
    disks = make_disks(out)
    with report.must(name + ": a report", *guest.ERRORS):
        image, code = boot(out, conf, answers, disks)
        report.check(code == 0, name + ": switches itself off",
                     "exit code %d; see %s/console.log" % (code, out))
        changed = [path for path, was in disks.items()
                   if checksum(path) != was]
        report.check(not changed, name + ": disks are as before",
                     "changed: %s" % changed)
        files = fetch_report(image, out)
        report.check(is_clean(image, out), name + ": file system is clean")
    for path in (image, *disks):
        os.unlink(path)
    return files


def measures(report, out):
    """A run as by somebody who chooses it from the menu."""
    files = run_and_read(report, out, "menu", "ROUNDS=1\nSECONDS=1\n"
                         "WORKLOADS=rand4k-s32\n", {MENU: "1\n"})
    check_results(report, files, "rand4k-s32")
    check_machine(report, files)


def fails(report, out):
    """A run that cannot measure anything still writes what went wrong."""
    files = run_and_read(report, out, "failure",
                         "RUN=short\nWORKLOADS=rand4k\n", {})
    page = files.get("report.html", "")
    report.check("FAILED: null_blk: plugbench: --workloads" in page and
                 "Left alone: nvme0n1: plugbench: --workloads" in page,
                 "failure: the report says what failed",
                 files.get("outcome.txt", "no outcome.txt"))
    report.check("Linux version" in files.get("dmesg.txt", ""),
                 "failure: dmesg is there")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true",
                        help="only the shell functions, without the image")
    only_functions = parser.parse_args().functions
    report = tap.Report()
    os.makedirs(stick.OUT, exist_ok=True)
    for test in FUNCTIONS:
        try_function(report, test)
    if not only_functions:
        with report.must("the image", *guest.ERRORS):
            stick.build(stick.IMAGE)
        out = os.path.join(stick.OUT, "test")
        measures(report, out)
        fails(report, out)
    report.exit()


if __name__ == "__main__":
    with common.program("sticktest.py", OSError):
        main()
