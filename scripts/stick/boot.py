# SPDX-License-Identifier: GPL-2.0
"""The USB stick, booted by UEFI and by BIOS, beside two NVMe disks, which must be the
same afterwards."""
import json
import os
import re
import shutil
import signal
import subprocess

from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import tap
from scripts.stick import image as stick

# name: QEMU's arguments, and what the kernel says of the screen
FIRMWARE = {"uefi": ("-bios /usr/share/ovmf/OVMF.fd", "colour frame buffer"),
            "bios": ("-bios bios-256k.bin -device intel-iommu", "colour VGA+")}
POLICIES = {"unpatched": {"always", "nomerges2"},
            "patched": {"always", "never", "seq-small", "adaptive", "nomerges2"}}
DISK_BYTES = 32 << 20
DATA = -stick.SMALLEST - stick.END      # where the partition with reports begins
MUTE = 300                      # seconds without a line
MENU = "Type a number"


def qemu_args(image, disks, firmware):
    """A PC with a screen, and the serial line on stdin and stdout. It ends if it is
    reset."""
    # On one CPU: tcg of one thread leaves out the barrier between a shadow
    # doorbell and the read of its event index, and the thread that emulates
    # NVMe then misses a doorbell.
    args = ["taskset", "-c", str(min(os.sched_getaffinity(0))), guest.boot.QEMU,
            *"-machine q35 -cpu max -accel tcg,thread=single -smp 2 -m 1024 -nodefaults "
            "-no-user-config -display none -nic none -no-reboot -device VGA -chardev "
            "stdio,id=con,signal=off -serial chardev:con".split(),
            *FIRMWARE[firmware][0].split(), "-device", "qemu-xhci"]
    for number, (name, path, device) in enumerate((
            ("stick", image, "usb-storage,bootindex=0"), *(
                (f"nvme{number}", path, "nvme") for number, path in enumerate(disks)))):
        args += ["-drive", f"if=none,format=raw,id={name},file={path}",
                 "-device", f"{device},drive={name},serial=SECRET-{name}-{number}"]
    return args


def end_mute(_signal, _frame):
    raise kernel.BuildError(f"the stick has said nothing for {MUTE} s")


def boot(out, conf, disks, firmware):
    """Boot a copy of the image with a plug-policy.conf; (copy, exit code)."""
    image = out / "stick.img"
    shutil.copyfile(stick.IMAGE, image)
    (out / "plug-policy.conf").write_text(conf, encoding="ascii")
    stick.run("mcopy", "-o", "-i", f"{image}@@{image.stat().st_size + DATA}",
              out / "plug-policy.conf", "::")
    signal.signal(signal.SIGALRM, end_mute)
    signal.alarm(MUTE)
    with open(out / "console.log", "w", encoding="utf-8", buffering=1) as log:
        try:
            return image, converse(qemu_args(image, disks, firmware), log)
        finally:
            signal.alarm(0)


def converse(args, log):
    """The exit code of QEMU. What the stick prints is logged, the last line told to the
    clock, and its menu answered as by somebody at the keyboard."""
    keyboard, keys = os.pipe()
    last = "firmware"

    def take(line):
        nonlocal last
        signal.alarm(MUTE)
        log.write(line)
        last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[^ -~]", "", line)[:50] or last
        if MENU in line:
            os.write(keys, b"1\n")

    with open(keyboard, "rb") as stdin, open(keys, "wb"), \
            common.clock(lambda seconds: f"# boot, {int(seconds)} s: {last}"):
        return common.run(args, take, stdin=stdin)


def read_stick(image, out):
    """({path in it: text} of run-1, whether the file system is in order)"""
    partition, where = out / "partition", out / "run-1"
    with open(image, "rb") as whole:
        whole.seek(DATA, os.SEEK_END)
        partition.write_bytes(whole.read(stick.SMALLEST))
    shutil.rmtree(where, ignore_errors=True)
    stick.run("mcopy", "-s", "-i", partition, "::run-1", out)
    done = subprocess.run([stick.program("fsck.vfat"), "-n", partition], check=False,
                          capture_output=True)
    partition.unlink()
    return {str(path.relative_to(where)): guest.boot.read_text(path)
            for path in where.rglob("*.*")}, not done.returncode


def check_boot(report, files, step, workload):
    """Each mode, on each disk and on the one in memory, mapped as asked for"""
    kernel_, _, passthrough = step[2:].partition("-")
    names = [name for name in files if re.fullmatch(f"{step}/.*json", name)]
    report.check(len(names) == 3, f"{step}: three disks", str(sorted(files)))
    for name in names:
        result = json.loads(files[name])
        found = {(one["kernel"], one["policy"], one["workload"]) for one in result["records"]}
        report.check(found == {(kernel_, policy, workload) for policy in POLICIES[kernel_]},
                     f"{name}: every mode, and nomerges=2", str(found))
        unplugs = [one["unplugs_per_io"] for one in result["records"]]
        report.check(None not in unplugs, f"{name}: perf counts", str(unplugs))
        maps = [text for what, text in result["meta"]["host"].items() if what.endswith(" iommu")]
        report.check(("passthrough" in maps) == (bool(passthrough) and "null" not in name),
                     f"{name}: passthrough", str(maps))
        said = files[name.replace(".json", ".txt")]
        report.check("settings are as before" in said, f"{name}: policies are put back", said)


def check_run(report, files, steps, firmware, workload):
    """What the boots say of themselves, and the page of them all"""
    for step in steps:
        check_boot(report, files, step, workload)
        dmesg = files.get(f"{step}/dmesg.txt", "")
        warning = guest.boot.first_warning(dmesg)
        report.check("Linux version" in dmesg and not warning, f"{step}: no warnings", warning)
        report.check(FIRMWARE[firmware][1] in dmesg, f"{step}: a screen", dmesg[-2000:])
    page = files.get("report.html", "")
    missing = [word for word in (
        *POLICIES["patched"], *(f"{step}: Nothing failed." for step in steps), "null: kernels",
        "null: modes", "QEMU NVMe Ctrl", workload, "unpatched always") if word not in page]
    report.check(not missing, f"{firmware}: report.html has it all", str(missing))
    secrets = [name for name, text in files.items() if "SECRET" in text]
    report.check(not secrets, f"{firmware}: no serial numbers", str(secrets))


def run_and_read(report, name, conf, firmware="uefi"):
    """What a run leaves, and which boots it had; checks what holds of each run."""
    out = stick.OUT / "test" / name
    out.mkdir(parents=True, exist_ok=True)
    disks = {out / f"nvme{number}.img": os.urandom(DISK_BYTES) for number in range(2)}
    for path, data in disks.items():
        path.write_bytes(data)
    with report.must(f"{name}: a report", *guest.ERRORS):
        image, code = boot(out, conf, disks, firmware)
        report.check(code == 0, f"{name}: switches itself off",
                     f"exit code {code}; see {out}/console.log")
        changed = [path.name for path, data in disks.items() if path.read_bytes() != data]
        report.check(not changed, f"{name}: disks are as before", f"changed: {changed}")
        files, is_clean = read_stick(image, out)
        report.check(is_clean, f"{name}: file system is clean")
    for path in (image, *disks):
        path.unlink()
    return files, re.findall("^(.*): begins$", files["outcome.txt"], re.M)


def measures(report, firmware, boots, kinds):
    """A run as by somebody who chooses it from the menu"""
    workload = "rand4k-s32"
    conf = f"ROUNDS=1\nSECONDS=1\nBOOTS={boots}\nWORKLOADS={workload}\n"
    files, steps = run_and_read(report, firmware, conf, firmware)
    report.check(steps == [f"{number + 1}-{kind}" for number in range(boots) for kind in kinds],
                 f"{firmware}: kernels take turns", str(steps))
    check_run(report, files, steps, firmware, workload)


def fails(report):
    """A run that cannot measure anything still writes what went wrong, and ends."""
    files, steps = run_and_read(report, "failure", "RUN=short\nWORKLOADS=rand4k\n")
    missing = [name for name in ("null", "nvme0n1", "nvme1n1") if f"FAILED: {name}: plugbench "
               "ended with 2: plugbench: --workloads" not in files.get("report.html", "")]
    report.check(not missing and steps == ["1-unpatched"] and "1-unpatched/dmesg.txt" in files,
                 "failure: the report says what failed", files["outcome.txt"])


def main():
    common.no_arguments(__doc__)
    report = tap.Report()
    stick.OUT.mkdir(parents=True, exist_ok=True)
    with report.must("the image", *guest.ERRORS):
        stick.build(stick.IMAGE)
    kinds = ["unpatched", "patched"]
    measures(report, "uefi", 3, kinds)
    measures(report, "bios", 1, [*kinds, *(f"{kind}-passthrough" for kind in kinds)])
    fails(report)
    report.exit()


if __name__ == "__main__":
    with common.program("stick.boot", OSError):
        main()
