# SPDX-License-Identifier: GPL-2.0
"""What plugroll and plugstat print with --json is as their schemas say."""
import json

import pytest

from fakehost import BUSY, DEBUGFS, Load
from plugtools.report.schema import Schema

TRY = ("try", "never", "nvme0n1", "--for", "1m")


def as_said(program, text, form):
    """JSON that has a form of the program's, and nothing more."""
    schema, found = Schema(program), json.loads(text)
    assert schema.valid(found, schema.part(form)), text
    assert schema.valid(found), text
    assert not schema.valid({**found, "more": 1})


@pytest.fixture
def told(host, roll):
    """What a verb says, in the form that it should have."""
    def call(form, *words, code=0, speed=1.3):
        with Load(host, {"nvme0n1": {"never": speed}}):
            out = roll(*words, "--json").prints(code=code)
        as_said("plugroll", out, form)
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


@pytest.mark.parametrize("words, forms", [
    (["1", "1"], ["interval", "end"]), (["--policy"], ["modes"])])
def test_plugstat(host, stat, words, forms):
    host.policy("nullb0", "adaptive")
    host.put(DEBUGFS + "block/nullb0/hctx1/plug_adaptive",
             "group 4\ntrial 0\nsample_requests 9\nfrom 8")

    def busy():
        host.counters("nullb0", BUSY)
    out = stat("--json", *words, during=busy).prints()
    for text, form in zip(out.splitlines(), forms, strict=True):
        as_said("plugstat", text, form)
