# SPDX-License-Identifier: GPL-2.0
"""What kernel.py says while it builds, and what make does in a build from another one."""
import os
import subprocess
from pathlib import Path

import pytest

from scripts import common, kernel

MAKEFILE = """all: out/a.o out/b.o
out/%.o: %.c
	mkdir -p out && cp $< $@ && echo $@ >>made
"""


def make(tree):
    (tree / "made").unlink(missing_ok=True)
    subprocess.run(["make", "-s", "-C", tree], check=True)
    return (tree / "made").read_text().split() if (tree / "made").exists() else []


@pytest.fixture(name="trees")
def two_trees(tmp_path):
    """Two trees of two files, of which one differs; the first is built."""
    found = [tmp_path / "there", tmp_path / "there-too"]     # one name begins the other
    for tree, text in zip(found, ("as there", "as here")):
        tree.mkdir()
        for file, said in (("Makefile", MAKEFILE), ("a.c", "same"), ("b.c", text)):
            (tree / file).write_text(said)
            os.utime(tree / file, (10 ** 9, 10 ** 9))
        if tree == found[0]:
            make(tree)
    return found


def plant(there, here, differing=("b.c", "not-here.c")):
    kernel.plant(there / "out", here / "out", there, here, differing)


@pytest.mark.parametrize("differing, built", [
    (None, ["out/a.o", "out/b.o"]), (("b.c", "not-here.c"), ["out/b.o"]), ((), [])])
def test_what_is_built(trees, differing, built):
    """Without a seed all; else only what differs, as all sources are older. A
    difference that is not told is lost."""
    if differing is not None:
        plant(*trees, differing)
    assert make(trees[1]) == built
    assert (trees[1] / "out/a.o").read_text() == "same"
    assert make(trees[1]) == []


def test_what_a_build_notes(trees):
    """The build's notes name the new tree, other files stay; what kernel.py notes of the
    options is of the other tree; half a copy has another name, and is made again."""
    there, here = trees
    for name in (".a.o.cmd", "a.txt", ".fragments"):
        (there / "out" / name).write_text(f"{there}/a.c {there}-too/b.c")
    (here / "out.partial").mkdir()
    (here / "out.partial/c.o").write_text("half")
    plant(there, here)
    assert (here / "out/.a.o.cmd").read_text() == f"{here}/a.c {there}-too/b.c"
    assert f"{there}/a.c" in (here / "out/a.txt").read_text()
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        ".a.o.cmd", "a.o", "a.txt", "b.o"]
    assert not (here / "out.partial").exists()


def test_a_build_says_how_far_it_is(tmp_path, monkeypatch, capsys):
    """All is logged; of what fails the end is shown."""
    monkeypatch.setattr(common, "SECONDS", 0.3)
    make = "echo make: Entering; echo '  CC      a.o' >&2; echo '  LD      x'; sleep 0.5; exit "
    kernel.make_logged("kernel x", ["sh", "-c", f"{make}0"], tmp_path / "log")
    assert capsys.readouterr().out == "kernel x: 2 steps, LD x, 0 s\n"
    with pytest.raises(kernel.BuildError, match="LD      x\n\nkernel x failed to build, see /"):
        kernel.make_logged("kernel x", ["sh", "-c", f"{make}1"], tmp_path / "log")
    assert (tmp_path / "log").read_text().startswith("make: Entering\n")


@pytest.mark.parametrize("home, where", [("home", "home/plug_policy"), ("file", kernel.CACHE)])
def test_clones_share_what_they_compile(tmp_path, monkeypatch, home, where):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
    assert kernel.environment()["CCACHE_DIR"] == str(tmp_path / where / "ccache")


@pytest.mark.parametrize("source", ["piggy.S", "./configs.c"])
def test_the_compiler_cache_sees_what_incbin_takes(tmp_path, monkeypatch, source):
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    asm = '.incbin "data"' if source.endswith("S") else """asm(".incbin \\"data\\"");"""
    Path(source).write_text(asm + "\n")
    for data in "one", "two":
        Path("data").write_text(data)
        subprocess.run(["sh", kernel.COMPILER, "gcc", "-Wp,-MMD,d", "-c", "-o", "x.o", source],
                       check=True)
        assert data.encode() in Path("x.o").read_bytes()
