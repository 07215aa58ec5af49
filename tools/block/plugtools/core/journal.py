# SPDX-License-Identifier: GPL-2.0
"""What a program changed on a disk, on file, and who may change it.

A journal is a file below /run/plug-policy: JSON, one entry a line.  Each entry
is on disk before the change that it tells of, so that whatever kills the
program, recover() puts all back.  Use:

    recover(say)                                # what killed programs left
    with locked(["md0", "nvme0n1"], "plugroll"):
        journal = Journal("md0", ["md0", "nvme0n1"], "plugroll")
        try:
            journal.set(disk.path("queue/plug_policy"), "never")
        finally:
            problems = journal.put_back()

A setting that is neither as it was nor as the journal says it was set has been
changed by somebody else since, and is left alone.
"""
import contextlib
import errno
import fcntl
import json
import os
import re
import signal
import tempfile
import time

from .disks import Disk
from .system import (SIGNALS, EnvironmentProblem, active, listing, read,
                     rooted, start_time, write)

END_SECONDS = 5                 # for a killed process to be gone
# The entries of a journal, the first of which is the first one here; those of a
# later version may hold more.
MAYBE = (str, type(None))
FORMS = ({"program": str, "pid": int, "locks": list},
         {"disk": str, "number": MAYBE},
         {"path": str, "before": str, "to": MAYBE},
         {"process": int, "start": (int, type(None))})


class Held(EnvironmentProblem):
    """Another program is at work on the disk."""


class NotPutBack(EnvironmentProblem):
    """A journal is there."""

    def __init__(self, path):
        super().__init__(
            f"{path} tells of settings that could not be put back: see "
            "plugbench --restore; to forget them, remove it")


def directory():
    path = rooted("/run/plug-policy")
    os.makedirs(path, 0o755, exist_ok=True)
    return path


# --- locks -----------------------------------------------------------------

def try_lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def lock(name, program, wait=0):
    """A descriptor that holds the lock of a disk, or of what others have for
    no longer than we wait.

    The file is never removed: who waits for a removed one waits in vain."""
    file = os.open(os.path.join(directory(), name.replace("/", "!") + ".lock"),
                   os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    begun = time.monotonic()
    while not try_lock(file):
        who = os.pread(file, 200, 0).decode(errors="replace").strip()
        pid = re.search(r"process (\d+)", who)
        # the child of one that was killed is still putting things back
        dead = pid and start_time(int(pid.group(1))) is None
        if time.monotonic() - begun > (END_SECONDS if dead else wait):
            os.close(file)
            raise Held(f"{name} is being worked on by "
                       f"{who or 'another program'}; nothing was changed")
        time.sleep(0.05)
    with contextlib.suppress(OSError):      # a full /run: only words are lost
        os.ftruncate(file, 0)
        os.write(file, b"%s (process %d)\n" % (program.encode(), os.getpid()))
    return file


@contextlib.contextmanager
def locked(names, program, wait=0):
    """Hold the locks of some disks; Held says who has one."""
    with contextlib.ExitStack() as stack:
        # in order, so that of two that want the same one gets all
        for name in sorted(set(names)):
            stack.callback(os.close, lock(name, program, wait))
        yield


# --- the file --------------------------------------------------------------

def append(file, entries):
    """Lines for entries, on disk before this returns; none on failure: of a
    line that is cut short, a full /run would make one with the next."""
    data = b"".join(json.dumps(one).encode() + b"\n" for one in entries)
    size = os.fstat(file).st_size
    try:
        if os.pwrite(file, data, size) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
    except OSError as error:
        os.ftruncate(file, size)
        error.filename = rooted("/run/plug-policy")
        raise


def create(path, entries):
    """A journal with its first entries, open: who finds one finds them."""
    file, temporary = tempfile.mkstemp(dir=directory(), prefix=".")
    try:
        append(file, entries)
        os.link(temporary, path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except BaseException:
        os.close(file)
        raise
    finally:
        os.unlink(temporary)
    return file


class Journal:
    """What was changed, and how it was before; no file without a change."""

    def __init__(self, name, locks, program):
        self.path = os.path.join(rooted("/run/plug-policy"),
                                 name.replace("/", "!") + ".journal")
        self.entries = []
        self.file = None
        self.done = []          # what put_back() did
        self.head = {"program": program, "pid": os.getpid(),
                     "locks": sorted(set(locks))}

    def note(self, **entry):
        """An entry, on disk before this returns."""
        self.begin()
        append(self.file, [entry])
        self.entries.append(entry)

    def begin(self):
        """Have the file; one there tells of what could not be put back."""
        if self.file is not None:
            return
        first = [self.head] + [{"disk": name, "number": Disk(name).number()}
                               for name in self.head["locks"]]
        try:
            self.file = create(self.path, first)
        except FileExistsError as error:
            raise NotPutBack(self.path) from error
        self.entries += first

    def remember(self, path):
        """Restore this one, too: another setting may change it."""
        self.know(path, active(read(path)), None)

    def know(self, path, before, value):
        """Note a change to come, once; value None: to whatever."""
        if not any((one.get("path"), one.get("to")) == (path, value)
                   for one in self.entries):
            self.note(path=path, before=before, to=value)

    def set(self, path, value):
        """Change a setting, and see that it took."""
        before = active(read(path))
        if before == value:
            return
        self.know(path, before, value)
        write(path, value)
        now = active(read(path))
        if now != value:
            raise EnvironmentProblem(f"{path}: wrote {value}, but it is {now}")

    def process(self):
        """This process is to be ended, with its group, which it leads."""
        self.note(process=os.getpid(), start=start_time(os.getpid()))

    def put_back(self):
        """Put back all; what could not be.  Else the file goes."""
        self.done, problems = restore(self.entries)
        if self.file is not None:
            os.close(self.file)
            if not problems:
                os.unlink(self.path)
        self.entries, self.file = [], None
        return problems

    def inherit(self, tell):
        """For a child: put back what its killed parent left."""
        if os.path.exists(self.path):
            recover_one(self.path, tell)


# --- putting back ----------------------------------------------------------

def same_disk(path, numbers):
    """Whether a setting is still that of the disk that the journal means."""
    match = re.match(re.escape(rooted("/sys/block/")) + "([^/]+)/", path)
    if not match:
        return os.path.exists(path)
    disk = Disk(match.group(1))
    return disk.there() and \
        disk.number() == numbers.get(disk.name, disk.number())


def restore_setting(path, changes):
    """Put back a setting: (good, text), or None if there is nothing to do."""
    before, now = changes[0]["before"], active(read(path))
    ours = {one["to"] for one in changes}
    if now == before:
        return None
    if None not in ours and now not in ours:
        return True, f"{path} is left at {now}, which somebody else has " \
            f"set; it was {before}"
    write(path, before)
    if active(read(path)) != before:
        return False, f"{path} stays at {active(read(path))}; it was {before}"
    return True, f"{path} is {before} again"


def end_process(pid, start):
    """End a group if its leader is still the process that was meant.

    SIGTERM first: polled I/O of an fio that is killed waits for a timeout."""
    if start is None or start_time(pid) != start:
        return None
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            if start_time(pid) != start:
                return True, f"process {pid} was ended"
            time.sleep(0.05)
    return False, f"process {pid} does not end"


def undo(changes, numbers):
    """Put back one thing, whose changes are given, oldest first."""
    path = changes[0].get("path")
    try:
        if not path:
            return end_process(changes[0]["process"], changes[0]["start"])
        if not same_disk(path, numbers):
            return True, f"{path} has gone, and its disk with it"
        return restore_setting(path, changes)
    except OSError as error:
        return False, f"{path} is not put back ({error.strerror}); it was: " \
            f"{changes[0]['before']}"


def restore(entries):
    """Put back, last changed first, but end processes before: (what was done,
    what could not be), as texts."""
    numbers = {one["disk"]: one["number"] for one in entries if "disk" in one}
    things = {}
    for one in entries:
        if "path" in one or "process" in one:
            things.setdefault(one.get("path", one.get("process")),
                              []).append(one)
    order = sorted(reversed(list(things.values())),
                   key=lambda changes: "process" not in changes[0])
    told = [one for one in (undo(changes, numbers) for changes in order)
            if one]
    return ([text for good, text in told if good],
            [text for good, text in told if not good])


# --- what killed programs left ---------------------------------------------

def journals():
    """The paths of those that are there."""
    place = rooted("/run/plug-policy")
    return [os.path.join(place, name) for name in listing(place)
            if name.endswith(".journal")]


def entry_of(line):
    """The entry that a line holds, or None."""
    try:
        one = json.loads(line)
    except (ValueError, RecursionError):
        return None
    good = isinstance(one, dict) and any(
        set(form) <= set(one) and
        all(isinstance(one[key], kind) for key, kind in form.items())
        for form in FORMS) and all(
            isinstance(name, str) for name in one.get("locks", []))
    return one if good else None


def read_journal(path):
    """(its entries, whether there is more that cannot be read); a last line
    that was cut short tells of no change."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            *lines, last = file.read().split("\n")
    except FileNotFoundError:
        return [], False
    found = [entry_of(line) for line in lines]
    more = not found or None in found or "locks" not in found[0]
    return [one for one in [*found, entry_of(last)] if one], more


def locks_of(path):
    """The disks that a journal is about, which is called as one of them."""
    head = (read_journal(path)[0] or [{}])[0]
    return head.get("locks") or [os.path.basename(path)[:-len(".journal")]]


def recover_one(path, tell):
    """Put back what a journal tells of; its disks are locked.  True if all
    could be."""
    entries, more = read_journal(path)
    head = entries[0] if entries else {}
    tell("%s (process %s) was killed; putting back what it left:"
         % (head.get("program", "a program"), head.get("pid", "unknown")))
    done, problems = restore(entries)
    if more:
        problems.append(f"{path}: there is more that cannot be read; look at "
                        "the settings, then remove it")
    for text in done + problems:
        tell("  " + text)
    if problems:
        return False
    os.unlink(path)
    return True


def recover(tell, program="plugbench"):
    """Put back what killed programs left: True if all could be.  What was
    done, and each problem, is told.  Programs at work are left alone."""
    good = True
    for path in journals():
        with contextlib.suppress(Held), locked(locks_of(path), program):
            # its owner may have ended well meanwhile
            if os.path.exists(path):
                good = recover_one(path, tell) and good
    return good


class Guard:
    """A child that calls killed() if this process is killed.

    It reads a pipe, which ends when we do; PR_SET_PDEATHSIG would not reach
    what a program of ours starts.  It has our locks: nobody comes between."""

    def __init__(self, killed):
        end, self.pipe = os.pipe()
        ready, on_guard = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.pipe)
            os.close(ready)
            stand_guard(end, on_guard, killed)
        os.close(end)
        os.close(on_guard)
        os.read(ready, 1)       # until then, what kills our group kills it, too
        os.close(ready)

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            os.write(self.pipe, b"dismissed")
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


def stand_guard(pipe, on_guard, killed):
    """The child's life; on_guard ends once it has begun."""
    try:
        os.setsid()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        os.close(on_guard)
        if not os.read(pipe, 1):
            killed()
    finally:
        os._exit(0)  # pylint: disable=protected-access
