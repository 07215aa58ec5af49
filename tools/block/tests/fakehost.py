# SPDX-License-Identifier: GPL-2.0
"""A directory that our programs take for the machine: /sys, /proc, debugfs,
/dev and the programs on its PATH."""
import collections
import contextlib
import cProfile
import errno
import fcntl
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import termios
import time
from unittest import mock

from plugtools.core import disks, journal
from plugtools.core.system import SIGNALS, active, names_in, start_time
from plugtools.roll import meter

TOOLS = pathlib.Path(__file__).resolve().parent.parent
MODES = ("always", "never", "seq-small", "adaptive")
DEBUGFS = "sys/kernel/debug/"
KNOB = "sys/block/nvme0n1/queue/plug_policy"
RULES = "etc/udev/rules.d/65-plugroll.rules"
MULTIPATH = [("dm-{}", ("sd{}x0", "sd{}x1")),    # of many()
             ("nvme{}n1", ("nvme{}c0n1", "nvme{}c1n1"))]
SPEED = 20000                   # I/Os per second of a Load on "always"
STAT = "10 2 80 1 20 4 160 2 0 3 4"
# 100 submissions of 32, half of which get no batch, since STAT
BUSY = {"tags_batched": 1600, "tag_batches": 50, "tags_single": 1600,
        "no_batch_depth": 100, "no_batch_busy": 1500, "flushes": 100,
        "flush_requests": 3200, "doorbells": 0}
BUSY_STAT = "3110 20 0 0 120 17 0 0 0 0 0"


class Result(collections.namedtuple("Result", "code out err")):
    """What came of a program."""

    def prints(self, *texts, code=0):
        """Its output, if it ended so, and has these in it."""
        return self.has(self.out, texts, code)

    def fails(self, code, *texts):
        """The same of its messages."""
        return self.has(self.err, texts, code)

    def text(self, code=0):
        """Both, if it ended so."""
        return self.has(self.out + self.err, (), code)

    def has(self, where, texts, code):
        lacking = [text for text in texts if text not in where]
        assert (self.code, lacking) == (code, []), self.out + self.err
        return where


def offer(value, names=MODES):
    """What the kernel shows: "always [never] seq-small adaptive"."""
    return " ".join(f"[{name}]" if name == value else name for name in names)


def run(main, words):
    """Result of main() of a program, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        for number in SIGNALS:
            stack.callback(signal.signal, number, signal.getsignal(number))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
    return Result(code or 0, out.getvalue(), err.getvalue())


def calls(action):
    """How many functions an action calls, which a busy machine does not
    change."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(row.callcount for row in profile.getstats())


def finish(process, seconds=60):
    """Result of a process that must end soon."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Result(process.returncode, out, err)


def stopped(process, *numbers):
    """The same of one that is sent signals."""
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.05)
    return finish(process)


def wait_until(true, what="what was waited for", seconds=60):
    """Until true() is; what it returns."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


class Host:
    """The machine: empty but for what a test puts there."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.bin = self.root / "bin"
        for name in ("bin", "sys/block", "dev", "run", "etc", "var/lib"):
            self.path(name).mkdir(parents=True)
        # of what our programs start, too
        self.environment = {"PLUGTOOLS_ROOT": str(self.root),
                            "PATH": str(self.bin), "TERM": "xterm"}

    # --- files ---------------------------------------------------------------

    def path(self, name):
        return self.root / str(name).lstrip("/")

    def put(self, name, text=""):
        """A file; the end of its last line is added, but not to bytes."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else
                         f"{text}\n".encode("utf-8", "surrogateescape"))
        return path

    def swap(self, name, text):
        """The same, at once: somebody reads it meanwhile."""
        os.replace(self.put(f"{name}.new", text), self.path(name))

    def get(self, name, default=None):
        """What a file holds, in text."""
        try:
            return self.path(name).read_text(
                "utf-8", "surrogateescape").strip()
        except FileNotFoundError:
            if default is None:
                raise
            return default

    def link(self, name, to):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.path(to))

    def remove(self, name):
        path = self.path(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def snapshot(self, *but):
        """{path: what it holds} of every file but programs, locks, and what
        is below these."""
        return {str(path.relative_to(self.root)): path.read_bytes()
                for path in self.root.rglob("*")
                if path.is_file() and path.suffix != ".lock"
                and not any(path.is_relative_to(self.path(name))
                            for name in ("bin", *but))}

    # --- programs ------------------------------------------------------------

    def program(self, name, text):
        # not through a link: a borrowed one is this machine's own
        self.path(f"bin/{name}").unlink(missing_ok=True)
        self.put(f"bin/{name}", text).chmod(0o755)

    def borrow(self, *names):
        for name in names:
            found = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
            (self.bin / name).symlink_to(found)

    def start(self, tool, *words, terminal=None, **options):
        """One of our programs in a process of its own, on a terminal if there
        is one."""
        stdin, out, err = [subprocess.DEVNULL, subprocess.PIPE,
                           subprocess.PIPE] if terminal is None \
            else [terminal] * 3
        options = {"stdin": stdin, "stdout": out, "stderr": err, **options}
        return subprocess.Popen(
            [sys.executable, str(TOOLS / tool), *map(str, words)],
            cwd=self.root, text=True, env={**os.environ, **self.environment},
            start_new_session=terminal is not None, preexec_fn=None
            if terminal is None else lambda: fcntl.ioctl(0, termios.TIOCSCTTY),
            **options)

    def apart(self, tool, *words, **options):
        """Result of one of our programs in a process of its own."""
        with self.start(tool, *words, **options) as process:
            return finish(process)

    @staticmethod
    def check_gone(*pids):
        for pid in pids:
            wait_until(lambda: start_time(pid) is None, f"the end of {pid}")

    # --- disks ---------------------------------------------------------------

    def disk(self, name, mode="always", files=None):
        """A disk with requests and a node.  mode None: without the knob;
        files: {below its directory: text, None for no such file}."""
        where = f"sys/block/{name}/"
        number = len(list(self.path("sys/block").iterdir()))
        knob = mode and {"queue/plug_policy": offer(mode),
                         "queue/plug_policy_fallback": "none"}
        for key, text in {
                "dev": f"259:{number}", "diskseq": "7", "stat": "0 " * 17,
                "wwid": f"eui.{name}", "size": "2097152", "ro": "0",
                "queue/scheduler": "[none] mq-deadline",
                "queue/rotational": "0", "mq/0/cpu_list": "0",
                **(knob or {}), **(files or {})}.items():
            if text is not None:
                self.put(where + key, text)
        if "c" not in name[4:]:         # the path of a head has no node
            self.put(f"dev/{name}", b"")

    def bio_disk(self, name, slaves=(), files=None):
        """A disk made of others (dm, md, a head of NVMe multipath)."""
        self.disk(name, None, files={"mq/0/cpu_list": None, **(files or {})})
        for slave in slaves:
            self.put(f"sys/block/{name}/slaves/{slave}/x")

    def mode(self, name):
        return active(self.get(f"sys/block/{name}/queue/plug_policy"))

    def killed(self, name, mode):
        """What a try leaves that is killed after it has set a mode: its
        journal."""
        left = journal.Journal(name, [name], "plugroll")
        left.set(str(self.path(f"sys/block/{name}/queue/plug_policy")), mode)
        os.close(left.file)
        return left

    def journals(self):
        return [path.name for path in
                self.path("run/plug-policy").glob("*.journal")]

    def head(self, first="always", second="always"):
        self.bio_disk("nvme0n1", files={"wwid": "eui.1"})
        for name, mode in (("nvme0c0n1", first), ("nvme0c1n1", second)):
            self.disk(name, mode, files={"wwid": "eui.1"})

    def counters(self, disk, values, hctx=0):
        self.put(f"{DEBUGFS}block/{disk}/hctx{hctx}/plug_stats",
                 "\n".join(f"{name} {value}" for name, value in values.items()))

    def kernel_write(self, path, value):
        """What core.system.write() does in tests: the kernel takes a value
        that it offers, and shows it in brackets."""
        path = pathlib.Path(path)
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT),
                                    str(path))
        names = names_in(path.read_text("utf-8"))
        if len(names) > 1:
            if value not in names:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL),
                              str(path))
            value = offer(value, names)
        self.swap(path.relative_to(self.root), value)

    def switch(self, disk):
        """Whether plugs of a disk are counted."""
        return self.get(f"{DEBUGFS}block/{disk}/plug_stats_enabled")

    def counted(self, name, mode=None):
        """A disk with two hardware queues whose plugs can be counted, and are
        not."""
        self.disk(name, mode, {"stat": STAT})
        self.put(f"{DEBUGFS}block/{name}/plug_stats_enabled", "0")
        for hctx in range(2):
            self.counters(name, dict.fromkeys(BUSY, 0), hctx)

    def busy(self, disk):
        """What BUSY says has happened to it."""
        self.counters(disk, BUSY)
        self.put(f"sys/block/{disk}/stat", BUSY_STAT)

    def policy(self, disk, mode, fallback="none"):
        """What is set, and why that is not in force."""
        self.put(f"sys/block/{disk}/queue/plug_policy", offer(mode))
        self.put(f"sys/block/{disk}/queue/plug_policy_fallback", fallback)

    def many(self, number, head="dm-{}", paths=("sd{}x0", "sd{}x1")):
        """Heads of multipath with their paths, whose names it returns, in
        place of all disks."""
        self.remove("sys/block")
        self.path("sys/block").mkdir()
        found = []
        for disk in range(number):
            legs = [path.format(disk) for path in paths]
            for leg in legs:
                self.disk(leg, files={"stat": STAT, "wwid": f"naa.{disk}"})
            self.bio_disk(head.format(disk), legs * head.startswith("dm"))
            found += legs
        return found

    def goings(self, disk, before, least=5):
        """The same for each N for which it goes, after before(); yields that
        list."""
        for access in range(100):
            before()
            with self.going(disk, access) as gone:
                yield gone
            if not gone:
                break
        assert least < access < 99

    @contextlib.contextmanager
    def going(self, disk, access):
        """A disk that goes at its N-th access from now on; yields a list that
        says that it has gone."""
        where, gone = str(self.path(f"sys/block/{disk}/")), []
        left = iter(range(access))

        def leaving(access_it):
            def call(path, *args, **options):
                if str(path).startswith(where + "/") and not gone \
                        and next(left, None) is None:
                    gone.append(disk)
                    shutil.rmtree(where)
                return access_it(path, *args, **options)
            return call

        with mock.patch("builtins.open", leaving(open)), \
             mock.patch("os.stat", leaving(os.stat)):
            yield gone


@contextlib.contextmanager
def busy(*what, error=OSError(errno.EBUSY, "Device or resource busy", "it")):
    """Disks that refuse all modes ("nvme0n1") or one ("nvme0n1 always")."""
    accept = disks.write

    def refuse(path, value):
        name = str(path).split("/")[-3]
        if {name, f"{name} {value}"} & set(what):
            raise error
        accept(path, value)

    with mock.patch.object(disks, "write", refuse), \
         mock.patch.object(journal, "write", refuse):
        yield


class Load:
    """I/O on disks, {name: {mode: speed}}; of a head, the modes are those of
    its legs.

    It takes the place of time.monotonic() and time.sleep(): what waits for it
    has waited at once, and sees the same load each time."""

    def __init__(self, host, speeds, legs=()):
        self.host, self.speeds, self.legs = host, speeds, legs
        self.now = 0.0
        self.last = float("inf")        # when it ends
        self.done = dict.fromkeys(speeds, 0.0)
        self.ticks = dict.fromkeys(speeds, 0.0)
        self.patch = mock.patch.object(meter, "time", self)

    def __enter__(self):
        self.patch.start()
        return self

    def __exit__(self, *_):
        self.patch.stop()

    def monotonic(self):
        return self.now

    def speed(self, name):
        """Of a disk, in the mode that it is in."""
        legs = self.legs or (name,)
        return sum(self.speeds[name].get(self.host.mode(leg), 1)
                   for leg in legs) / len(legs)

    def sleep(self, seconds):
        """Count, as the kernel would."""
        self.now += seconds
        if self.now > self.last:
            return
        for name in list(self.speeds):
            self.done[name] += SPEED * self.speed(name) * seconds
            self.ticks[name] += 32 * 1000 * seconds
            self.host.swap(f"sys/block/{name}/stat", "%d 0 0 %d %s" % (
                self.done[name], self.ticks[name], "0 " * 13))
