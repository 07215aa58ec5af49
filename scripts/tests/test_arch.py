# SPDX-License-Identifier: GPL-2.0
"""ARCH: what is refused, what kbuild is told, what programs for arm64 link."""
import glob
import importlib
import os
import subprocess
import sys

import pytest

import scripts.packages
from scripts import kernel
from scripts.kbuild import arch


def make(*args):
    """(exit status, what make says that it would do, or why not)"""
    env = {name: value for name, value in os.environ.items()
           if name not in ("ARCH", "MAKEFLAGS", "MFLAGS")}
    done = subprocess.run(["make", "-n", "-C", kernel.ROOT, *args], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("args, words", [
    ("ARCH=mips run", "accepted: x86_64, arm64"),
    ("ARCH= run", "accepted: x86_64, arm64"),
    ("ARCH=arm64 bench", "'bench'; accepted: help setup run"),
    ("ARCH=arm64 selftest UML=1", "leave one out")])
def test_refusals(args, words):
    """Each names what is accepted, or what to leave out, before anything is
    installed."""
    code, said = make(*args.split())
    assert code == 2 and words in said and "setup.sh" not in said


def test_a_cross_compiler_is_wanted_of_few():
    assert "setup.sh all arm64\n" in make("ARCH=arm64", "run")[1]
    assert "arm64" not in make("run")[1]


@pytest.fixture(name="of")
def with_arch(monkeypatch):
    """(kernel.py, packages.py) as they are with an ARCH, beside those that other
    tests know"""
    def of(name):
        monkeypatch.setenv("ARCH", name)
        for package, module in ((scripts.kbuild, "arch"), (scripts, "kernel"),
                                (scripts, "packages")):
            monkeypatch.delattr(package, module)
            monkeypatch.delitem(sys.modules, f"{package.__name__}.{module}")
        return [importlib.import_module(f"scripts.{one}") for one in ("kernel", "packages")]
    return of


def test_arm64(of):
    """Its own output, logs, compiler, packages; its fragment is the last."""
    arm64, packages = of("arm64")
    own = {"ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-", "CC=ccache aarch64-linux-gnu-gcc"}
    assert arm64.image("patched").endswith("/o-kernel-arm64/arch/arm64/boot/Image")
    assert own | {"O=o-kernel-arm64"} <= set(arm64.variant_command("patched"))
    assert arm64.fragments_of("patched")[-1].endswith("/arm64.config")
    assert arm64.BUILD.endswith("/arm64")
    assert "CC=ccache clang-19" in arm64.variant_command("kcsan")
    flavour = packages.Flavour("lean", "deb")
    assert own <= set(flavour.make("x")) and "/arm64/deb/" in str(flavour.out)
    assert packages.CLOUD.endswith("config.arm64_none_cloud-arm64.xz")
    assert all(map(os.path.exists, packages.LEAN))


def test_a_process_is_the_hosts(of):
    """User Mode Linux, whatever the guests have; kbuild must not see ARCH."""
    def told(name):
        found, _ = of(name)
        assert "ARCH" not in found.environment()
        return (found.image(found.UML), found.variant_command(found.UML, "x"),
                found.fragments_of(found.UML))
    assert told("arm64") == told("x86_64")


NEEDS = {"fio": ["/lib/ld.so", "liba.so"], "liba.so": ["libdeep.so"],
         "libdeep.so": ["liba.so", "libnone.so"]}


def test_libraries(monkeypatch):
    """Each once, also from below; what is nowhere is named."""
    def found(pattern, **_):
        name = os.path.basename(pattern)
        return [] if name == "libnone.so" else [f"/root/{name}"]

    monkeypatch.setattr(arch, "needed", lambda path: NEEDS.get(os.path.basename(path), []))
    monkeypatch.setattr(glob, "glob", found)
    assert arch.cross_libraries(["/root/fio"]) == (
        ["/root/ld.so", "/root/liba.so", "/root/libdeep.so"], ["libnone.so"])


def test_what_a_program_needs():
    """Of one of this machine: its loader and the C library."""
    names = arch.needed(os.path.realpath(sys.executable))
    assert any("libc.so" in name for name in names), names
    assert any(name[0] == "/" for name in names), names
