# SPDX-License-Identifier: GPL-2.0
"""Files of /sys and /proc, words and tables for people, what can go wrong."""
import argparse
import errno
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

# What ends a program in order.
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


class UsageProblem(Exception):
    """What was asked for cannot be; the text says what is accepted."""


class EnvironmentProblem(Exception):
    """This machine or disk does not allow it; the text says why."""


class Interrupted(Exception):
    """A signal asked for the end; the text is its name."""


COLOURS = {"good": "32", "warning": "33", "bad": "31"}
# Why output could not be written, for run() to tell.
LOST = []


def lose(error, file):
    """Print there no more; that nobody reads any longer is no error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, file.fileno())
    os.close(null)
    if not isinstance(error, BrokenPipeError):
        LOST.append(error.strerror)


def say(text="", file=None, end="\n"):
    """Print at once; what cannot be printed does not stop a measurement."""
    file = file or sys.stdout
    try:
        print(text, end=end, file=file, flush=True)
    except OSError as error:
        lose(error, file)


def paint(text, kind, file=None):
    """Text in the colour of a kind, or of None; on a terminal that has
    colours, unless NO_COLOR forbids them."""
    file = file or sys.stdout
    if kind is None or os.environ.get("NO_COLOR") or not file.isatty() \
            or os.environ.get("TERM", "dumb") == "dumb":
        return text
    return f"\033[{COLOURS[kind]}m{text}\033[m"


def columns(rows):
    """Lines of cells, each column as wide as it must be."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def printable(value, kept=""):
    """JSON of another's, with escapes for what a terminal would obey; but for
    the characters that are kept."""
    if isinstance(value, str):
        return "".join(
            char if char.isprintable() or char in kept else
            char.encode("unicode_escape").decode("ascii") for char in value)
    if isinstance(value, list):
        return [printable(one, kept) for one in value]
    if isinstance(value, dict):
        return {printable(name): printable(one, kept)
                for name, one in value.items()}
    return value


def run(program, main):
    """main()'s exit code; 1 in place of 0 if output was lost, which is told.

    A name that the terminal cannot show is shown by escapes."""
    code = 0
    # a file for each disk that is locked or counted: thousands on a SAN
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for stream in sys.stdout, sys.stderr:
        # through a buffer, as argparse does not mind that its text is lost
        stream.reconfigure(errors="backslashreplace", write_through=False)
    try:
        try:
            code = main()
        except SystemExit as end:           # of --help, or of a wrong option
            code = end.code
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        lose(error, sys.stdout)
    if LOST:
        say(f"{program}: output is lost: {LOST[0]}", sys.stderr)
    return code or int(bool(LOST))


def interruptible():
    """Signals raise Interrupted, but for those that the shell has us ignore,
    as nohup does."""
    def interrupt(number, _frame):
        raise Interrupted(signal.Signals(number).name)
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def outcome(work, *words):
    """(exit code, what to say of it or None) of a program's work."""
    try:
        return work(*words), None
    except UsageProblem as problem:
        return 2, str(problem)
    except (EnvironmentProblem, subprocess.TimeoutExpired) as problem:
        return 1, str(problem)
    except OSError as problem:
        return 1, f"{problem.filename or 'error'}: {refusal(problem)}"
    except Interrupted as problem:
        return 130, f"interrupted by {problem}"


def rooted(path):
    """A path of the machine, or of the tree that tests put in its place."""
    return os.environ.get("PLUGTOOLS_ROOT", "") + path


def read(path, default=None):
    """What a file of sysfs holds; default, if given, where it cannot."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        if default is None:
            raise
        return default


def write(path, value):
    """Write a setting; an error of the kernel's names the file."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        error.filename = error.filename or path
        raise


def refusal(error):
    """What an OSError says; who is not root hears that root may."""
    denied = isinstance(error, PermissionError) and os.geteuid() != 0
    return error.strerror + (": run as root" if denied else "")


def can_hold(path):
    """Whether files can go into a directory, which may have to be made."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return os.path.isdir(path) and os.access(path, os.W_OK)


def refuse_special(path):
    """Of a device, a pipe or a directory a file must not take the place."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EEXIST, "not a regular file", path)


def followed(path):
    """What a path leads to, but for a link that another user has put there: who
    opens a file is kept from following one, who renames is not."""
    if os.path.islink(path) and os.lstat(path).st_uid not in (
            0, os.geteuid()):
        raise OSError(errno.EPERM, "a link of another user", path)
    return os.path.realpath(path)


def replace_file(path, data, mode=None, sync=True):
    """Put bytes in a file's place: a reader sees either, and on failure
    nothing is left behind.  Without a mode, the umask decides."""
    path = followed(path)
    refuse_special(path)
    # of a name that ends by chance: node_exporter takes all that is *.prom
    handle, temporary = tempfile.mkstemp(
        dir=os.path.dirname(path), prefix="." + os.path.basename(path) + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def listing(path):
    """Names in a directory, none if it is not there."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def matching(pattern, accepted, value=int, least=0, most=float("inf")):
    """What makes a value of a word of the command line, or refuses it."""
    def one(text):
        found = value(text) if re.fullmatch(pattern, text) else None
        if found is None or value != str and not least <= found <= most:
            raise argparse.ArgumentTypeError(f"'{text}'; accepted: {accepted}")
        return found
    return one


def seconds(text):
    """Of "90", "90s", "10m", "2h"."""
    return int(text.rstrip("smh")) * {"m": 60, "h": 3600}.get(text[-1], 1)


def active(text):
    """The value in force of "[always] never"; else the text itself."""
    match = re.search(r"\[(.*?)\]", text)
    return match.group(1) if match else text


def names_in(text):
    """The names on offer in "[always] never"."""
    return text.replace("[", "").replace("]", "").split()


def per(count, of, digits=6):
    """A ratio, or None where there is nothing to divide, or a counter went
    back."""
    return None if count is None or count < 0 or not of else round(
        count / of, digits)


def duration(seconds):
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{round(seconds / 60)} min"


def start_time(pid):
    """When a process started, in ticks since boot; None if it has ended.

    With its number, this tells a process from a later one of that number."""
    # not rooted: processes are always this machine's
    fields = read(f"/proc/{pid}/stat", "").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" \
        else None
