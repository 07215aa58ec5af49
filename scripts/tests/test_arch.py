# SPDX-License-Identifier: GPL-2.0
"""ARCH: what is refused, what kbuild is told, what programs for arm64 link."""
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
    ("ARCH=arm64 bench", "'bench'; accepted: help help-all setup run"),
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
    own = {"ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-",
           f"CC=sh {arm64.COMPILER} aarch64-linux-gnu-gcc"}
    assert arm64.image("patched").endswith("/o-kernel-arm64/arch/arm64/boot/Image")
    assert own | {"O=o-kernel-arm64"} <= set(arm64.variant_command("patched"))
    assert arm64.fragments_of("patched")[-1].endswith("/arm64.config")
    assert arm64.BUILD.endswith("/arm64")
    assert f"CC=sh {arm64.COMPILER} clang-19" in arm64.variant_command("kcsan")
    flavour = packages.Flavour("lean", "deb")
    assert own <= set(flavour.make("x")) and "/arm64/deb/" in str(flavour.out)
    assert all(map(os.path.exists, packages.LEAN))


def test_a_process_is_the_hosts(of):
    """User Mode Linux, whatever the guests have; kbuild must not see ARCH."""
    def told(name):
        found, _ = of(name)
        assert "ARCH" not in found.environment()
        return (found.image(found.UML), found.variant_command(found.UML, "x"),
                found.fragments_of(found.UML))
    assert told("arm64") == told("x86_64")


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_libraries(of, monkeypatch, name):
    """Each once, where this machine has it; what is nowhere is named."""
    arch = of(name)[0].arch
    monkeypatch.setattr(arch, "said_by", lambda *_, **__: (
        "\tvdso.so (0x1)\n\tliba.so => /lib/liba.so (0x2)\n\t/lib/ld.so (0x3)\n"
        "\tlibnone.so => not found\n"))
    found, lacking = arch.libraries("fio", "xfs")
    assert list(map(arch.in_guest, found)) == ["/lib/ld.so", "/lib/liba.so"]
    assert set(lacking) == {"libnone.so"} and found[0] == f"{arch.ROOT}/lib/ld.so"


def test_what_a_program_needs():
    """Of one of this machine: its loader and the C library."""
    names = " ".join(arch.libraries(os.path.realpath(sys.executable))[0])
    assert "libc.so" in names and "/ld-linux" in names
