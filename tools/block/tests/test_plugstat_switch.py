# SPDX-License-Identifier: GPL-2.0
"""plugstats share the kernel's switches and put them back."""
import signal
import subprocess

import pytest

from fakehost import DEBUGFS, finish, stopped
from plugtools.core.system import SIGNALS
from plugtools.stat.switch import Switch


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


def test_back_to_what_it_is_now(host, stat, levels):
    """Not to what it was when an earlier one came."""
    stat("nullb0", "1", "1")
    host.put(f"{DEBUGFS}block/nullb0/plug_stats_enabled", "1")
    stat("nullb0", "1", "1")
    assert levels() == "10"


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


@pytest.mark.parametrize("number", SIGNALS)
def test_signals(watching, levels, number):
    child = watching("nullb0")
    assert levels() == "10"
    assert "32 per doorbell?" in end(child, number)
    assert levels() == "00"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_the_end_changes_nothing(stat, levels, monkeypatch, number):
    put_back = Switch.put_back
    monkeypatch.setattr(Switch, "put_back", lambda one: (
        signal.raise_signal(number), put_back(one)))
    assert stat("-c", "1").code == 0
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
