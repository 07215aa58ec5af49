# SPDX-License-Identifier: GPL-2.0
"""Boot a kernel in QEMU, run one job in it, and judge what happened.

The kernel's image tells whether the machine is a PC or an arm64 one.

A kernel that is User Mode Linux is started as the process that it is: much
faster, but without NVMe and with one CPU.

The guest's console goes to OUT/console.log. What the job says to the runner
travels on a second serial port, which exists for this one boot only, so no
verdict can be left over from an earlier one. A boot passes if the job ends
with 0 and the kernel has not warned; a warning, a hang and a missing verdict
are failures, and an exit code of 4 is a skip.

"mark NAME" in the guest waits until this side has counted the doorbell writes
traced so far: two marks are a measurement window without a race."""

import collections
import contextlib
import ctypes
import dataclasses
import fcntl
import os
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from pathlib import Path

from lab.qemu import machines
from lab.qemu.machines import machine_of

# For others than boot(), which takes the one that the kernel needs.
QEMU = machines.PC.program()
KSFT_SKIP = 4
PR_SET_PDEATHSIG = 1
SYS_IO_URING_SETUP = 425
KVM_PROBE_SECONDS = 5
TRACE_EVENT = "pci_nvme_mmio_doorbell_sq"
DOORBELL = re.compile(rb"%s sqid (\d+) " % TRACE_EVENT.encode())
PIPE_BYTES = 1 << 20
SHADOW_ALLOC = "nvme_dbbuf_dma_alloc"
ENTRY_BYTES = 16        # more than ftrace and the CPU keep there
WHOLE = 10              # timeouts a guest may take that goes on and on

# Only what the kernel printed: a line of its own, or after a job's partial
# line. printk.time=1 below makes the stamp certain.
KERNEL_WARNING = re.compile(
    r"\[ *\d+\.\d+\].*?("
    r"WARNING:|BUG:|Oops|Kernel panic|KASAN|KCSAN|UBSAN|KFENCE|"
    r"possible circular locking|possible recursive locking|"
    r"inconsistent lock state|suspicious RCU usage|"
    r"(?:rcu|RCU).*(?:stall|starved)|blocked for more than|soft lockup|"
    r"hard LOCKUP|workqueue lockup|general protection|Call Trace)")

# loglevel=5, since lockdep and WARN() print at KERN_WARNING. no_timer_check, since
# x86 takes its timer for broken, and panics, where the host is very busy.
KERNEL_ARGS = ("printk.time=1 panic=-1 oops=panic quiet loglevel=5 "
               "no_timer_check nvme.poll_queues=1 null_blk.nr_devices=0 brd.rd_nr=0")
# KUnit's tests are not what this boots for.
UML_ARGS = "console=tty0 con0=null,fd:1 con=null kunit.enable=0 seccomp=auto"


class UsageError(Exception):
    """The caller asked for something that cannot be."""


@dataclasses.dataclass
class Guest:
    """One boot. Each disk becomes an NVMe controller of its own."""

    kernel: str
    initramfs: str
    job: str = ""
    out: str = "."
    name: str = "boot"
    files: tuple = ()           # "SRC:DST"
    timeout: float = 120        # seconds without a sign of life, see Patience
    smp: int = 0                # 0: 1 with icount, else 2
    mem: int = 1024             # MiB
    icount: bool = False
    accel: str = "auto"
    append: str = ""
    disks: tuple = ("null:1g",)
    dbcs: str = "off"
    trace_doorbells: bool = False
    devices: tuple = ()         # further arguments of QEMU's
    interactive: bool = False
    warns: object = None        # given the console: the warning that counts
    tcg_thread: str = "single"  # or "multi", see accel_args()
    on_line: object = None      # called with each line as the job writes it


@dataclasses.dataclass
class Mark:
    """The doorbell writes of each I/O queue when the guest passed a point."""

    name: str
    doorbells: dict


@dataclasses.dataclass
class Result:
    """What a boot came to."""

    status: str = "fail"        # pass, skip or fail
    reason: str = ""
    exit_code: int = None
    lines: list = dataclasses.field(default_factory=list)
    marks: list = dataclasses.field(default_factory=list)
    log: str = ""               # the console's

    @property
    def ok(self):
        return self.status != "fail"

    def between(self, first, last):
        """{sqid: doorbell writes} from mark first to mark last."""
        counts = {mark.name: mark.doorbells for mark in self.marks}
        return {sqid: n - counts[first].get(sqid, 0)
                for sqid, n in sorted(counts[last].items())
                if n > counts[first].get(sqid, 0)}


# --- the initramfs ---------------------------------------------------------

def cpio_entry(name, mode, data=b""):
    """One entry of the newc format (see the kernel's
    buffer-format.rst)."""
    path = name.lstrip("/").encode() + b"\0"
    nlink = 2 if mode & 0o040000 else 1
    fields = (0, mode, 0, 0, nlink, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return (head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))


def cpio_parents(path):
    parts = path.strip("/").split("/")[:-1]
    return [cpio_entry("/".join(parts[:n + 1]), 0o040755)
            for n in range(len(parts))]


def cpio_file(src, dst):
    src, dst = Path(src), os.path.normpath(dst)
    return b"".join([*cpio_parents(dst), cpio_entry(
        dst, 0o100000 | src.stat().st_mode & 0o777, src.read_bytes())])


def cpio_tree(src, dst):
    if not os.path.isdir(src):
        return cpio_file(src, dst)
    return b"".join(cpio_file(path, f"{dst}/{path.relative_to(src)}")
                    for path in sorted(Path(src).rglob("*")) if not path.is_dir())


def write_initrd(guest, path):
    """The initramfs with the job and its files behind it: the kernel unpacks
    one archive after the other."""
    shutil.copyfile(guest.initramfs, path)
    with open(path, "ab") as out:
        out.write(bytes(-out.tell() % 4))
        for pair in (*guest.files, *([f"{guest.job}:/job"] if guest.job else [])):
            out.write(cpio_tree(*pair.rpartition(":")[::2]))
        out.write(cpio_entry("TRAILER!!!", 0))


# --- QEMU's arguments ------------------------------------------------------

def quote(value):
    """In QEMU's option syntax a comma is written twice."""
    return str(value).replace(",", ",,")


def has_io_uring():
    """Whether this host lets QEMU use it: data in the page cache is then
    there when the submission returns, so that a run under icount repeats."""
    params = ctypes.create_string_buffer(120)
    ring = ctypes.CDLL(None).syscall(SYS_IO_URING_SETUP, 1, params)
    if ring >= 0:
        os.close(ring)
    return ring >= 0


def drive(spec):
    """The -drive value for one of Guest.disks: null:SIZE or file:PATH[:SIZE]. What is
    not there is made, and is sparse."""
    kind, _, rest = spec.partition(":")
    if kind == "null":
        return f"file.driver=null-co,file.read-zeroes=on,file.size={rest}"
    path, size = re.fullmatch(r"(.*?)(?::(\d+[kmg]))?", rest).groups()
    if size:
        subprocess.run(["truncate", "-s", size, path], check=True)
    elif not os.path.exists(path):
        raise UsageError(f"disk {path}: no such file, and no :SIZE to make it with")
    aio = "io_uring" if has_io_uring() else "threads"
    return f"file.driver=file,file.filename={quote(path)},file.aio={aio}"


def has_dbcs(guest):
    """QEMU before 10.0 always offers shadow doorbells."""
    known = subprocess.run([machine_of(guest.kernel).program(), "-device",
                            "nvme,help"], check=False,
                           capture_output=True, text=True).stdout
    return "dbcs=" in known


def disk_args(guest):
    dbcs = f",dbcs={guest.dbcs}" if guest.disks and has_dbcs(guest) else ""
    args = []
    for n, spec in enumerate(guest.disks):
        args += ["-drive", f"{drive(spec)},format=raw,if=none,id=d{n}",
                 "-device", f"nvme,serial=plug{n},drive=d{n},"
                 f"max_ioqpairs=4{dbcs}"]
    return args


def cpus(guest):
    """With icount more than one take turns, which smp has to ask for."""
    return guest.smp or (1 if guest.icount else 2)


def accel_args(guest, accel):
    """icount's virtual time runs by instructions, so that a run repeats. So
    that it really does, chance and the date are the same in each."""
    if guest.icount:
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
                "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]
    if accel == "kvm":
        return ["-accel", "kvm"]
    # With a thread per CPU, QEMU 7.2 can let a CPU run into a breakpoint of
    # the kernel's text patching that has been taken out again: "Oops: int3".
    return ["-accel", f"tcg,thread={guest.tcg_thread}"]


def console_args(guest, console):
    """To a file, or to the user's terminal with QEMU's escapes (ctrl-a)."""
    if guest.interactive:
        return ["-chardev", "stdio,id=con,mux=on,signal=off",
                "-serial", "chardev:con", "-mon", "con"]
    return ["-chardev", f"file,id=con,path={quote(console)}",
            "-serial", "chardev:con"]


def kernel_args(guest):
    """A warning ends the guest, unless it is to be judged."""
    args = KERNEL_ARGS
    if not guest.warns:
        args += " panic_on_warn=1"
    if guest.interactive:
        args += " block_plug.shell"
    return f"{args} {guest.append}".strip()


def qemu_args(guest, accel, initrd, console, port, trace, gdb):
    """The whole command line; port, trace, gdb are file descriptors."""
    machine = machine_of(guest.kernel)
    args = [machine.program(), "-name", "guest,debug-threads=on",
            "-machine", machine.name, "-cpu", "max",
            "-nodefaults", "-no-user-config",
            "-display", "none", "-nic", "none", "-no-reboot",
            "-smp", str(cpus(guest)), "-m", f"{guest.mem}M",
            *accel_args(guest, accel),
            "-kernel", guest.kernel, "-initrd", initrd,
            "-append", f"console={machine.console} {kernel_args(guest)}",
            *console_args(guest, console),
            "-chardev", f"socket,id=port,fd={port}", *machine.port,
            *disk_args(guest), *guest.devices]
    if trace is not None:
        args += ["-trace", TRACE_EVENT, "-D", f"/dev/fd/{trace}"]
    if gdb is not None:
        args += ["-S", "-chardev", f"socket,id=gdb,fd={gdb}",
                 "-gdb", "chardev:gdb"]
    return args


def is_process(guest):
    """Is the kernel User Mode Linux? All others are no ELF file."""
    with open(guest.kernel, "rb") as image:
        return image.read(4) == b"\x7fELF"


# --- shadow doorbells ------------------------------------------------------

def ask(sock, text):
    """As much of gdb's remote protocol as patching a few bytes takes: the answer
    to a command."""
    data, packet, said = text.encode(), b"", None
    sock.sendall(b"$%s#%02x" % (data, sum(data) & 255))
    while not said:
        more = sock.recv(4096)
        if not more:
            raise ConnectionResetError
        packet += more
        said = re.search(rb"\$([^#]*)#..$", packet)
    sock.sendall(b"+")
    return said[1].decode()


def symbol(system_map, name):
    """A kernel symbol's address, or None."""
    match = re.search(rf"^([0-9a-f]+) \w {name}$", read_text(system_map),
                      re.MULTILINE)
    return int(match[1], 16) if match else None


def find_system_map(guest):
    """Where a build leaves it, seen from arch/*/boot/."""
    return os.path.join(os.path.dirname(os.path.abspath(guest.kernel)), "../../../System.map")


def must_patch(guest):
    """Whether only a patch of the guest keeps shadow doorbells off.

    With them the driver leaves out doorbell writes, and QEMU 7.2 can lose a
    command. QEMU before 10.0 has no switch for them, nor has the kernel."""
    if is_process(guest) or not guest.disks or guest.dbcs == "on" \
            or has_dbcs(guest):
        return False
    if not symbol(find_system_map(guest), SHADOW_ALLOC):
        qemu = machine_of(guest.kernel).program()
        raise UsageError(f"{qemu} cannot switch shadow doorbells off, and "
                         f"{find_system_map(guest)} has no {SHADOW_ALLOC}: "
                         "give dbcs='on', or use QEMU 10")
    return True


def no_shadow_doorbells(sock, system_map, machine):
    """Makes the guest's driver take no memory for shadow doorbells.

    That is what it does when there is none: it goes without. The return goes
    behind what the entry has for ftrace, which is left to it; so it
    is written when the boot CPU comes to kernel_init(), after ftrace is set
    up and before a driver is."""
    stop = f"1,{symbol(system_map, 'kernel_init'):x},1"
    ask(sock, "?")
    ask(sock, "Z" + stop)
    ask(sock, "c")
    ask(sock, "z" + stop)
    entry = symbol(system_map, SHADOW_ALLOC)
    head = bytes.fromhex(ask(sock, f"m{entry:x},{ENTRY_BYTES:x}"))
    entry += machine.past_entry(head)
    done = ask(sock, f"M{entry:x},{len(machine.ret):x}:{machine.ret.hex()}")
    ask(sock, "D")
    if done != "OK":
        raise UsageError(f"the guest's {SHADOW_ALLOC}() cannot be patched: "
                         f"'{done}'")


# --- a running guest -------------------------------------------------------

class Doorbells:
    """Counts QEMU's trace of doorbell writes as it comes through a pipe.

    QEMU flushes its log after every line, and it writes the line before the
    guest's store returns: what is in the pipe when a mark arrives is all that
    the guest did before."""

    def __init__(self):
        self.read_fd, self.write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        fcntl.fcntl(self.read_fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.counts = collections.Counter()
        self.rest = b""

    def drain(self):
        """Counts what is in the pipe; False at its end."""
        while True:
            try:
                data = os.read(self.read_fd, PIPE_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            whole, newline, self.rest = (self.rest + data).rpartition(b"\n")
            self.counts.update(DOORBELL.findall(whole + newline))

    def snapshot(self):
        """{sqid: writes} so far, without the admin queue's."""
        self.drain()
        return {int(sqid): n for sqid, n in self.counts.items()
                if sqid != b"0"}


class Port:
    """The host's end of the verdict port: lines in, acknowledgements out."""

    def __init__(self, result, doorbells, guest):
        self.host, self.guest = socket.socketpair()
        self.host.setblocking(False)
        self.result = result
        self.on_line = guest.on_line
        self.doorbells = doorbells
        self.rest = b""

    def read(self):
        """Takes what has come; False when QEMU has closed the port."""
        while True:
            try:
                data = self.host.recv(1 << 16)
            except BlockingIOError:
                return True
            except ConnectionResetError:
                return False
            if not data:
                return False
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self.take(line.decode(errors="replace"))

    def take(self, line):
        """mark, verdict, or a line for the caller."""
        word, _, rest = line.partition(" ")
        if word == "mark":
            counts = self.doorbells.snapshot() if self.doorbells else {}
            self.result.marks.append(Mark(rest, counts))
            self.host.sendall(f"ack {rest}\n".encode())
        elif line.startswith("verdict exit "):
            self.result.exit_code = int(line.split()[2])
            self.host.sendall(b"ack verdict\n")
        else:
            self.result.lines.append(line)
            if self.on_line:
                self.on_line(line)


def die_with_parent():
    """Even a SIGKILL to the runner leaves no guest behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def threads_of(pid):
    """{thread id: whether it runs the guest's CPU}; QEMU names them."""
    return {int(tid): "CPU" in read_text(f"/proc/{pid}/task/{tid}/comm")
            for tid in os.listdir(f"/proc/{pid}/task")}


def device_first(process):
    """Lets the emulated devices run before the guest, on the same host CPU.

    Otherwise the two race, and a guest that polls executes, and so is charged
    for, as many instructions as the host took for the command. This way the
    device is done when the guest goes on, and a run repeats. Threads that the
    device starts later inherit this. Without the privilege runs repeat less."""
    threads = {}
    while process.poll() is None and not any(threads.values()):
        time.sleep(0.01)
        threads = threads_of(process.pid)
    cpu = {max(os.sched_getaffinity(0))}
    try:
        for tid, is_guest in threads.items():
            if not is_guest:
                os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(1))
        for tid in threads:
            os.sched_setaffinity(tid, cpu)
    except (PermissionError, ProcessLookupError):
        pass


def kill(process):
    """The guest and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def waited_for_cpu(pid):
    """Seconds for which a busy host has kept a process from running: as long
    as that of its threads which waited longest."""
    longest = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        words = read_text(f"/proc/{pid}/task/{tid}/schedstat").split()
        longest = max(longest, int(words[1]) if words[1:] else 0)
    return longest / 1e9


class Patience:
    """Ends when a guest gives no sign of life for its timeout, or goes on for
    WHOLE times as long. Time that it waits for a CPU does not count."""

    def __init__(self, guest, process, log):
        self.limit = float("inf") if guest.interactive else guest.timeout
        self.process, self.log = process, log
        self.size = self.waited = 0
        self.begin = self.heard = self.now()

    def now(self):
        # it, or one of its threads, has ended
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            self.waited = max(self.waited, waited_for_cpu(self.process.pid))
        return time.monotonic() - self.waited

    def is_over(self, spoke):
        now, size = self.now(), os.path.exists(self.log) and \
            os.path.getsize(self.log)
        if spoke or size != self.size:
            self.heard, self.size = now, size
        return (now - self.heard > self.limit
                or now - self.begin > WHOLE * self.limit)


def watch(guest, process, lines, log):
    """Serves the guest until it is gone; False if patience was over."""
    patience, port = Patience(guest, process, log), lines.port
    with selectors.DefaultSelector() as selector:
        selector.register(port.host, selectors.EVENT_READ, port.read)
        if lines.doorbells:
            selector.register(lines.doorbells.read_fd, selectors.EVENT_READ,
                              lines.doorbells.drain)
        while process.poll() is None:
            ready = selector.select(0.5) if selector.get_map() else []
            for key, _ in ready:
                if not key.data():
                    selector.unregister(key.fileobj)
            if patience.is_over(ready):
                return False
            if not selector.get_map():
                time.sleep(0.02)
    port.read()
    return True


@contextlib.contextmanager
def terminal():
    """Puts the user's terminal back as it was."""
    saved = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        yield
    finally:
        if saved:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def start(guest, args, fds, errors):
    """QEMU, as the leader of a session of its own."""
    stdin = None if guest.interactive else subprocess.DEVNULL
    stdout = None if guest.interactive else errors
    return subprocess.Popen(  # pylint: disable=consider-using-with
        args, stdin=stdin, stdout=stdout, stderr=errors, pass_fds=fds,
        start_new_session=True, preexec_fn=die_with_parent)


class Lines:
    """The guest's connections to this side, and who gets which end."""

    def __init__(self, guest, result):
        self.doorbells = Doorbells() if guest.trace_doorbells else None
        self.port = Port(result, self.doorbells, guest)
        self.gdb = socket.socketpair() if must_patch(guest) else None

    def guest_fds(self):
        """port, trace, gdb: those that are not there are None."""
        return (self.port.guest.fileno(),
                self.doorbells and self.doorbells.write_fd,
                self.gdb and self.gdb[1].fileno())

    def started(self, guest):
        """QEMU has its ends by now: close them, so that its end is seen."""
        self.port.guest.close()
        if self.doorbells:
            os.close(self.doorbells.write_fd)
        if self.gdb:
            self.gdb[1].close()
            self.gdb[0].settimeout(guest.timeout)
            no_shadow_doorbells(self.gdb[0], find_system_map(guest),
                                machine_of(guest.kernel))

    def close(self):
        self.port.host.close()
        if self.doorbells:
            os.close(self.doorbells.read_fd)
        if self.gdb:
            self.gdb[0].close()


def serve(guest, process, lines, log):
    """Serves the guest until it is gone; False if patience was over."""
    try:
        if guest.icount:
            device_first(process)
        lines.started(guest)
    except (ConnectionError, BrokenPipeError):
        pass    # QEMU is gone, which watch() will see
    except TimeoutError:
        return False
    return watch(guest, process, lines, log)


def command(guest, accel, result, initrd, fds):
    """(command line, file for what it prints) of QEMU, or of the kernel."""
    if is_process(guest):
        return [guest.kernel, f"mem={guest.mem}M", f"initrd={initrd}",
                f"ssl1=fd:{fds[0]}", *UML_ARGS.split(),
                *kernel_args(guest).split()], result.log
    return (qemu_args(guest, accel, initrd, result.log, *fds),
            out_path(guest, "qemu.log"))


def run_qemu(guest, accel, result, initrd):
    """Returns False on a timeout; raises nothing that leaves QEMU running."""
    lines = Lines(guest, result)
    fds = lines.guest_fds()
    args, printed = command(guest, accel, result, initrd, fds)
    out_path(guest, "qemu.cmd").write_text(shlex.join(args) + "\n", encoding="utf-8")
    with open(printed, "wb") as errors, terminal():
        process = start(guest, args, [fd for fd in fds if fd is not None],
                        errors)
        try:
            in_time = serve(guest, process, lines, result.log)
        finally:
            kill(process)
    lines.close()
    return in_time


# --- the verdict -----------------------------------------------------------

def out_path(guest, name):
    return Path(guest.out, name)


def read_text(path):
    """Nothing, if it is not there."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    except FileNotFoundError:
        return ""


def first_warning(console):
    """The first line by which the kernel says that something is wrong."""
    return next(filter(KERNEL_WARNING.search, console.splitlines()), "").strip()


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "(nothing)"


def judge(guest, result, in_time):
    """Sets status and reason. A warning outranks what followed from it."""
    console = read_text(result.log)
    warning = (guest.warns or first_warning)(console)
    if warning:
        result.reason = f"the kernel warned: {warning}"
    elif not in_time:
        result.reason = (f"timeout: mute for {guest.timeout:g} s, or not done in "
                         f"{WHOLE} times that; the console ends: "
                         f"{last_line(console)}")
    elif result.exit_code is None:
        errors = read_text(out_path(guest, "qemu.log"))
        result.reason = ("no verdict: the guest ended without one; "
                         + (f"QEMU said: {last_line(errors)}" if errors else
                            f"the console ends: {last_line(console)}"))
    elif guest.interactive:
        result.status, result.reason = "pass", "the shell ended"
    elif result.exit_code == KSFT_SKIP:
        result.status, result.reason = "skip", "the job skipped (exit 4)"
    elif result.exit_code:
        result.reason = f"the job failed: exit {result.exit_code}"
    else:
        result.status, result.reason = "pass", "exit 0"


def check(guest):
    for what in ("kernel", "initramfs", "job"):
        path = getattr(guest, what)
        if not os.path.isfile(path) and not (what == "job"
                                             and guest.interactive):
            raise UsageError(f"{what} '{path}': no such file")
    if guest.accel not in ("auto", "tcg", "kvm"):
        raise UsageError(f"accel '{guest.accel}' is none of auto, tcg, kvm")
    if is_process(guest):
        return
    machine = machine_of(guest.kernel)
    if guest.accel == "kvm" and not machine.may_have_kvm():
        raise UsageError(f"accel kvm: this host has no {machine.processor} "
                         "processor; take tcg or auto")
    if not shutil.which(machine.program()):
        raise UsageError(f"{machine.program()} is not installed (Debian: "
                         f"{machine.package})")


def boot_with(guest, accel):
    os.makedirs(guest.out, exist_ok=True)
    result = Result(log=str(out_path(guest, "console.log")))
    initrd = out_path(guest, "initrd.cpio")
    for name in ("console.log", "verdict.log", "qemu.log"):
        out_path(guest, name).unlink(missing_ok=True)
    try:
        write_initrd(guest, initrd)
        in_time = run_qemu(guest, accel, result, str(initrd))
    finally:
        initrd.unlink(missing_ok=True)
    out_path(guest, "verdict.log").write_text(
        "".join(f"{line}\n" for line in result.lines), encoding="utf-8")
    judge(guest, result, in_time)
    return result


def kvm_boots(guest):
    """/dev/kvm can open and then hang: only a guest that ran its job is
    proof. Remembered beside OUT until the host reboots."""
    if not machine_of(guest.kernel).may_have_kvm() \
            or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    session = read_text("/proc/sys/kernel/random/boot_id").strip()
    cache = Path(guest.out).absolute().with_name("kvm-probe")
    cache.parent.mkdir(parents=True, exist_ok=True)
    known = read_text(cache).split()
    if known[:1] == [session]:
        return known[1] == "yes"
    job = cache.with_suffix(".job")
    job.write_text("exit 0\n", encoding="ascii")
    probe = Guest(guest.kernel, guest.initramfs, str(job), f"{cache}.out",
                  timeout=KVM_PROBE_SECONDS, disks=())
    works = boot_with(probe, "kvm").status == "pass"
    job.unlink()
    cache.write_text(f"{session} {'yes' if works else 'no'}\n", encoding="ascii")
    return works


def boot(guest):
    check(guest)
    accel = guest.accel
    if is_process(guest):
        accel = "uml"
    elif guest.icount:
        accel = "tcg"
    elif accel == "auto":
        accel = "kvm" if kvm_boots(guest) else "tcg"
    return boot_with(guest, accel)
