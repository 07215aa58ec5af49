# SPDX-License-Identifier: GPL-2.0
"""What kernel.py says while it builds."""
import pytest

from scripts import common, kernel


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
