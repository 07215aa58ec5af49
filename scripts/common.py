# SPDX-License-Identifier: GPL-2.0
"""What many scripts do: say every ten seconds how far they are, run a command
that ends with them, keep others out, write a file as a whole, end in words."""
import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SECONDS = 10                    # from one word to the next

# What kbuild prints of what it does.
STEP = re.compile(r"  [A-Z]+ ")


def heed_signals():
    """As at a terminal, also where a shell has started us in the background:
    tests interrupt what they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def clock(text):
    """Says every ten seconds text(seconds so far), as long as it lasts."""
    start, ended = time.monotonic(), threading.Event()

    def tick():
        while not ended.wait(SECONDS):
            print(text(time.monotonic() - start), flush=True)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def how_far(what, done, total, things, seconds):
    """A word for the clock: how much is done, and how long it will go on."""
    left = f"{seconds * (total - done) / done:.0f} s" if done else "?"
    return f"{what}: {done} of {total} {things}, {seconds:.0f} s, about {left} left"


def run(command, take, stdin=subprocess.DEVNULL, **more):
    """Run a command to its end, in a process group of its own that ends with
    us, and hand on the lines that it prints; its exit status."""
    with subprocess.Popen(
            command, text=True, errors="replace", stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, **more) as process:
        try:
            for line in process.stdout:
                take(line)
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise


@contextlib.contextmanager
def locked(path, busy=None):
    """Waits until nobody else holds this lock, or raises busy."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise busy from None
        yield


def write_json(path, value):
    """All of the file or nothing."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
        out.write("\n")
    os.replace(path + ".new", path)


def digest(*parts):
    """A name for what these parts say."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def description(path):
    """What the head of a shell script says that it is for: one paragraph."""
    found = re.search(r"^# Description: (.*(?:\n# .+)*)", Path(path).read_text("utf-8"), re.M)
    return found[1].replace("\n# ", " ") if found else "(it does not say)"


def no_arguments(about):
    """For a program that takes none, but says what it does (--help)."""
    argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawTextHelpFormatter).parse_args()


@contextlib.contextmanager
def program(name, *errors, advice=""):
    """Ends a program in one line for errors that are no fault of its own."""
    try:
        yield
    except errors as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted{advice}")
