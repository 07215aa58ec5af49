# SPDX-License-Identifier: GPL-2.0
"""What kernel.py says while it builds."""
from pathlib import Path

import pytest

from scripts import kernel

MAKE = ["make: Entering directory\n", "  CC      block/a.o\n", "  LD      vmlinux.o\n"]


@pytest.fixture(name="build")
def make_build(tmp_path, monkeypatch):
    """A build of a configuration, in a directory that has these files besides
    those that configuring leaves"""
    monkeypatch.setattr(kernel, "CACHE", str(tmp_path / "cache"))

    def build(number, config, *files):
        top = tmp_path / str(number)
        for name in ("include/generated/autoconf.h", *files):
            Path(top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).touch()
        (top / ".config").write_text(config)
        progress = kernel.Progress("kernel x", str(top))
        for line in MAKE:
            progress.step(line)
        return progress
    return build


def test_what_nobody_knows_is_not_said(build):
    assert build(1, "A=y").text(7.9) == "kernel x: 2 steps, LD vmlinux.o, 7 s"


def test_the_same_configuration_takes_as_many_steps(build):
    build(1, "A=y").done()
    assert build(2, "A=y").text(7) == "kernel x: 2 of 2 steps, LD vmlinux.o, 7 s"
    assert "of" not in build(3, "B=y").text(7)


def test_a_build_that_goes_on_knows_nothing(build):
    """And leaves no number that would be too small."""
    build(1, "A=y", "include/generated/bounds.h").done()
    assert "of" not in build(2, "A=y").text(7)
    build(3, "A=y").done()
    assert "of" not in build(4, "A=y", "include/generated/bounds.h").text(7)
