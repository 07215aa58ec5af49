# SPDX-License-Identifier: GPL-2.0
"""What plugroll and plugstat print with --json is as their schemas say, and
plugroll summary reads it."""
import json
import os
from unittest import mock

import pytest

from fakehost import BUSY, DEBUGFS, Load
from plugtools.report.schema import Schema
from plugtools.roll import fleet

EVIL = "x\x1b[31m\nweb2: ok"
ROW = {"disk": "nvme0n1", "set": "always", "in_force": "always", "kept": None,
       "why": None}
TRY = ("try", "never", "nvme0n1", "--for", "1m")


def as_said(program, text, form):
    """JSON that has a form of the program's, and nothing more."""
    schema, found = Schema(program), json.loads(text)
    assert schema.valid(found, schema.part(form)), text
    assert schema.valid(found), text
    assert not schema.valid({**found, "more": 1})
    return found


@pytest.fixture
def told(host, roll):
    """What a verb says, in the form that it should have."""
    def call(form, *words, code=0, speed=1.3):
        with Load(host, {"nvme0n1": {"never": speed}}):
            out = roll(*words, "--json").prints(code=code)
        return as_said("plugroll", out, form)
    return call


@pytest.fixture
def summary(host, roll):
    """plugroll summary of contents of files, in text or as JSON."""
    def call(*contents):
        names = [host.put(f"{number}.json", one if isinstance(one, str) else
                          json.dumps({"version": 2, **one}))
                 for number, one in enumerate(contents)]
        return roll("summary", *names)
    return call


def test_forms(host, told):
    host.head()
    told("list", "list")
    host.remove("sys/block/nvme0n1")
    host.disk("nvme0n1", files={"queue/nomerges": "2"})
    told("list", "list")
    for code, speed, words in (
            (0, 1.3, ()), (3, .7, ()), (5, 1.0, ("--require", "iops=1%")),
            (0, 1.3, ("--keep",)), (0, 1.3, ())):
        told("try", *TRY, *words, code=code, speed=speed)
    host.disk("nvme1n1")
    told("try", "try", "never", "nvme1n1", code=4)
    told("keep", "keep", "adaptive", "--all-nvme")
    told("undo", "undo")


def test_summary(host, roll, told):
    """Four hosts; a head counts as its paths, and a file that is none costs
    the others nothing."""
    names = []
    for host_, mode, words, code in (
            ("web1", "always", ("list",), 0), ("web2", "always", TRY, 3),
            ("web3", "always", TRY, 0), ("web4", "adaptive", ("list",), 0)):
        host.disk("nvme0n1", mode, files={
            "queue/plug_policy_fallback": "elevator" if mode == "adaptive"
            else "none"})
        names.append(host.put(f"{host_}.json", json.dumps(told(
            words[0], *words, speed=.7 if code else 1.3, code=code))))
        host.remove("sys/block/nvme0n1")
    found = told("summary", "summary", *names)
    assert [(one["what"], one["hosts"], one["disks"])
            for one in found["groups"]] == [
        ("not as it should be", 1, 1), ("set: adaptive", 1, 1),
        ("set: always", 1, 1), ("tried never: held", 1, 1),
        ("tried never: tripped", 1, 1)]
    assert [one["host"] for one in found["exceptions"]] == ["web2", "web4"]
    roll("summary", *names).prints(
        "web4: nvme0n1: adaptive is set, but always is in force: elevator",
        "never: iops by ", "% on half of 2")
    for text in ("{", "[]", "3", '{"version": 9}', '{"version": 2}', "",
                 "[" * 100000):
        done = roll("summary", *names, host.put("bad.json", text))
        assert "web4: nvme0n1" in done.out and done.fails(1, "bad.json: ")


TRIED = {"mode": "never", "status": "held", "why": "", "idle": ["nvme1n1"],
         "already": []}


@pytest.mark.parametrize("bad", [
    {"disks": [ROW, {"disk": "nvme1n1"}]},
    *({**TRIED, "mode": mode, "disks": {"nvme0n1": {
        "status": "held", "figures": {"iops": figures}}}}
      for mode, figures in (
          ("never", {"change": "x"}), ("never", {"change": None}),
          ("never", {"change": float("nan")}), ("never", {}), ("never", 1),
          (None, {"change": 0})))])
def test_unusable(summary, bad):
    """Nothing of a file that is wrong somewhere counts."""
    code, out, err = summary(bad, {"disks": [ROW]})
    assert (code, err.count("not what plugroll")) == (1, 1)
    assert out.split()[3:] == ["1", "1", "set:", "always"]


@pytest.mark.parametrize("found", [
    {"disks": [{"disk": EVIL, "set": EVIL, "in_force": "always", "kept": None,
                "why": EVIL}]},
    {"mode": EVIL, "status": "tripped", "why": EVIL, "idle": [], "already": [],
     "disks": {EVIL: {"status": EVIL, "figures": {EVIL: {"change": 0}}}}},
    {"mode": EVIL, "pattern": None, "disks": [EVIL]}])
def test_what_a_terminal_would_obey(summary, found):
    """Is told by escapes, wherever it stands."""
    code, out, err = summary(found)
    assert (code, err) == (0, "")
    assert "x\\x1b[31m\\nweb2: ok" in out
    assert "\x1b" not in out and "\nweb2" not in out
    assert "\x1b" not in summary(json.dumps({"version": EVIL})).err


def test_one_name(host, told):
    """Files of one name, as Ansible fetches them, are of many hosts."""
    names = [host.put(name, json.dumps({"version": 2, "disks": [{
        **ROW, "set": "never", "why": "elevator"}]})) for name in (
            "all/h1/tmp/roll.json", "all/h2/tmp/roll.json", "h3.json")]
    found = told("summary", "summary", *names, names[0])
    assert [one["host"] for one in found["exceptions"]] == [
        "h1/tmp/roll", "h2/tmp/roll", "h3"]
    assert {(one["hosts"], one["disks"]) for one in found["groups"]} == {(3, 3)}


@pytest.mark.parametrize("names, hosts", [
    (["web1", "web1.json"], ["web1", "web1.json"]),
    (["a/web1", "b/web1.json"], ["a/web1", "b/web1"]),
    (["./a.json", "x/../a.json"], ["a"]),
    (["x", "x.json", "x.json.json", "y/x.json"],
     ["x", "x.json.json", "y/x", "x.json"])])
def test_hosts(names, hosts):
    assert sorted(fleet.hosts_of(names).values()) == sorted(hosts)


def test_many_hosts():
    with mock.patch.object(os.path, "commonpath", side_effect=
                           os.path.commonpath) as common:
        fleet.hosts_of(f"h{number}/x.json" for number in range(100))
    assert common.call_count == 1


@pytest.mark.parametrize("words, forms", [
    (["1", "1"], ["interval", "end"]), (["--policy"], ["modes"])])
def test_plugstat(host, stat, words, forms):
    host.policy("nullb0", "adaptive")
    host.put(DEBUGFS + "block/nullb0/hctx1/plug_adaptive",
             "group 4\ntrial 0\nsample_requests 9\nfrom 8")

    def busy():
        host.counters("nullb0", BUSY)
        host.doorbells(3, 77)
    out = stat("--json", *words, during=busy).prints()
    for text, form in zip(out.splitlines(), forms, strict=True):
        as_said("plugstat", text, form)
