# SPDX-License-Identifier: GPL-2.0
"""plugstats share the kernel's switches and put them back; and the screen of
--top, with a terminal of its own."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios

import pytest

from fakehost import finish, stopped, wait_until
from plugtools.stat import top

ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.fixture
def levels(host):
    return lambda: host.switch("nullb0") + host.switch("nvme0n1")


@pytest.mark.parametrize("disks, on", [(["nullb0"], "10"), ([], "11")])
def test_on_and_back(stat, levels, disks, on):
    """Also on an error."""
    seen = []
    stat("-c", "1", *disks, during=lambda: seen.append(levels()))
    assert (seen, levels()) == ([on], "00")
    with pytest.raises(ZeroDivisionError):
        stat(*disks, during=lambda: 1 / 0)
    assert levels() == "00"


@pytest.fixture
def watching(host, stat):
    """Starts a plugstat that watches, in a process of its own."""
    started = []

    def start(*disks):
        child = host.start("plugstat", "-i", "0.1", *disks)
        started.append(child)
        # the header is printed with the first interval: by then it watches
        assert "req/s" in child.stdout.readline()
        return child
    yield start
    for child in started:
        child.kill()
        child.communicate()


def end(child, number=signal.SIGINT):
    done = stopped(child, number)
    assert done.err == ""
    return done.prints()


@pytest.mark.parametrize("number", ENDS)
def test_signals(watching, levels, number):
    child = watching("nullb0")
    assert levels() == "10"
    assert "32 per doorbell?" in end(child, number)
    assert levels() == "00"


@pytest.mark.parametrize("first, second", [(0, 1), (1, 0)])
def test_the_last_one_switches_off(watching, levels, first, second):
    both = [watching("nullb0"), watching("nullb0", "nvme0n1")]
    end(both[first])
    assert levels()[0] == "1"
    end(both[second])
    assert levels() == "00"


@pytest.mark.parametrize("other_watches", [True, False])
def test_a_killed_one_is_no_holder(watching, stat, levels, other_watches):
    """Another one puts back what it left: who watches already, or the next."""
    killed = watching("nullb0")
    other = watching("nullb0") if other_watches else None
    killed.kill()
    killed.wait()
    assert levels() == "10"
    if other:
        end(other)
    else:
        stat("nullb0", "1", "1")
    assert levels() == "00"


def test_many_at_once(host, stat, levels):
    children = [host.start("plugstat", "nullb0", "0.01", "1",
                           stdout=subprocess.DEVNULL) for _ in range(8)]
    assert [finish(child).code for child in children] == [0] * 8
    assert levels() == "00"


# --- --counting: on and off beyond the end of the run ------------------------

@pytest.fixture
def keep(stat):
    def call(*words):
        assert stat("--counting", *words) == (0, "", "")
    return call


def test_counting(stat, keep, levels):
    """Of all disks and of one."""
    keep("on")
    stat("nullb0", "1", "1")
    assert levels() == "11"
    keep("off", "nvme0n1")
    assert levels() == "10"
    keep("off")
    assert levels() == "00"


def test_counting_waits_for_who_still_watches(stat, keep, levels):
    seen = []

    def off():
        keep("off")
        seen.append(levels())

    keep("on")
    stat("nullb0", "1", "1", during=off)
    assert seen == ["10"]
    assert levels() == "00"
    stat("nullb0", "1", "1", during=lambda: keep("on"))
    assert levels() == "11"


# --- --top -------------------------------------------------------------------

ENTER, LEAVE, SHOW = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


class Screen:
    def __init__(self, host):
        self.host, self.seen, self.child = host, b"", None
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)

    def start(self, *words, rows=24, columns=120, term="xterm"):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        self.host.environment["TERM"] = term
        self.child = self.host.start("plugstat", "--top", "0.1", *words,
                                     terminal=self.slave,
                                     stderr=subprocess.PIPE)

    def wait_for(self, text):
        """Until the screen has been sent a text."""
        def found():
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
            return text in self.seen
        wait_until(found, text)

    def ends(self):
        """The terminal is as before, and counting is off."""
        done = finish(self.child)
        assert (done.code, done.err) == (0, "")
        self.wait_for(LEAVE)
        assert SHOW in self.seen
        assert termios.tcgetattr(self.slave) == self.before
        assert self.host.switch("nullb0") == "0"

    def close(self):
        if self.child:
            self.child.kill()
            self.child.communicate()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def screen(host, stat):
    made = Screen(host)
    yield made
    made.close()


def test_busiest_disk_first():
    old = {"a": {"time": 0}, "b": {"time": 0}, "c": {"time": 0}}
    new = {"a": {"time": 1, "stat_ios": 5}, "c": {"time": 1},
           "b": {"time": 1, "stat_ios": 9}}
    assert [text.split()[0] for text in top.rows_of(old, new)] == [
        "b", "a", "c"]


def test_screen(host, screen):
    host.policy("nvme0n1", "never", "elevator")
    screen.start()
    screen.wait_for(b"Disk")
    screen.wait_for(b"elevator")
    assert ENTER in screen.seen
    assert host.switch("nullb0") == "1"
    screen.seen = b""
    host.busy("nvme0n1")
    screen.wait_for(b"finish")
    os.write(screen.master, b"q")
    screen.ends()


@pytest.mark.parametrize("number", ENDS)
def test_signal_ends_the_screen(screen, number):
    screen.start("nullb0")
    screen.wait_for(b"nullb0")
    screen.child.send_signal(number)
    screen.ends()


@pytest.mark.parametrize("size", [{}, {"rows": 2, "columns": 10}])
def test_count_ends_the_screen(screen, size):
    """Also a small one."""
    screen.start("2", "nullb0", **size)
    screen.wait_for(b"Disk")
    screen.ends()


@pytest.mark.parametrize("term", ["vt220", "vt100"])
def test_no_colours(screen, term):
    screen.start("1", "nullb0", term=term)
    done = finish(screen.child)
    assert (done.code, done.err) == (0, "")
    screen.wait_for(b"Disk")


@pytest.mark.parametrize("term, says", [
    ("no-such-terminal", ""), ("dumb", "its cursor")])
def test_unfit_terminal(host, screen, term, says):
    screen.start("nullb0", term=term)
    finish(screen.child).fails(1, "cannot use this terminal", says)
    assert host.switch("nullb0") == "0"


def test_no_terminal(stat):
    stat("--top", "nullb0").fails(2, "--top needs a terminal")
