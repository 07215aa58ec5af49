# SPDX-License-Identifier: GPL-2.0
"""What the tests of our programs share; see fakehost.py."""
import json
import os
import sys
import tempfile

import pytest

import benchtree
import fakehost
from plugtools.core import disks, journal
from plugtools.report.schema import Schema
from plugtools.roll import keep, plugroll, trial
from plugtools.stat import plugstat


def as_said(program, words, done):
    """What came of a program; its JSON has a form of its schema's, and nothing
    more."""
    texts = done.out.splitlines() if program == "plugstat" else [done.out]
    for text in filter(None, texts if "--json" in words else []):
        schema, found = Schema(program), json.loads(text)
        assert schema.valid(found), text
        assert not schema.valid({**found, "more": 1})
    return done


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def hosts():
    """Where machines lie: in memory, if programs may be run there."""
    memory = "/dev/shm"
    fit = os.access(memory, os.W_OK) and \
        not os.statvfs(memory).f_flag & os.ST_NOEXEC
    with tempfile.TemporaryDirectory(
            prefix="plugtools-", dir=memory if fit else None) as place:
        yield place


@pytest.fixture
def enter(hosts, monkeypatch):
    """Makes a machine, which programs find, and only fakes on its PATH."""
    def call(kind):
        made = kind(tempfile.mkdtemp(dir=hosts))
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.chdir(made.root)
        return made
    return call


@pytest.fixture
def host(enter, monkeypatch):
    """An empty one."""
    made = enter(fakehost.Host)
    for module in (disks, journal):
        monkeypatch.setattr(module, "write", made.kernel_write)
    return made


@pytest.fixture
def machine(enter):
    """One with a disk and a fake of fio, for plugbench."""
    return enter(benchtree.Machine)


@pytest.fixture
def stat(host, monkeypatch):
    """plugstat in this process, on two disks that can be counted; "during"
    happens while it sleeps."""
    host.counted("nvme0n1")
    host.counted("nullb0")

    def call(*words, during=lambda: None):
        with monkeypatch.context() as patch:
            patch.setattr(plugstat.time, "sleep", lambda _: during())
            return as_said("plugstat", words,
                           fakehost.run(plugstat.main, words))
    return call


@pytest.fixture
def roll(host, monkeypatch):
    """plugroll in this process; its Result has no end of the last line."""
    monkeypatch.setattr(sys, "argv", ["/usr/sbin/plugroll"])

    def call(*words):
        code, out, err = fakehost.run(plugroll.main, words)
        return as_said("plugroll", words, fakehost.Result(
            code, out.rstrip("\n"), err.rstrip("\n")))
    return call


@pytest.fixture
def logged(monkeypatch):
    """What plugroll sends to the system's log."""
    lines = []
    for module in trial, keep, plugroll:
        monkeypatch.setattr(module, "log", lines.append)
    return lines
