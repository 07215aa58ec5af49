# SPDX-License-Identifier: GPL-2.0
"""The kernel's packages, without a kernel: what they are called."""

import pytest

from scripts import kernel, packages


def test_flavours(tmp_path):
    """A file gives its name; what is none is refused."""
    (tmp_path / "x_My.config").touch()
    assert packages.Flavour(f"{tmp_path}/x_My.config", "deb").local == "-plug-policy-x-my.config"
    with pytest.raises(kernel.BuildError, match="accepted are lean, or"):
        packages.Flavour("fat", "deb")


@pytest.mark.parametrize("text, named", [
    ("# Linux/x86 6.1.158 Kernel Configuration\n", "it is of Linux 6.1,"),
    ("# Linux/x86 7.3.4 Kernel Configuration\n", ""), ("CONFIG_SMP=y\n", "")])
def test_a_configuration_of_another_release_is_named(tmp_path, monkeypatch, text, named):
    monkeypatch.setattr(kernel, "KVER", "7.3")
    (tmp_path / "config").write_text("#\n" + text)
    said = packages.Flavour(f"{tmp_path}/config", "deb").of_another_release()
    assert named in said and bool(said) == bool(named)


def test_collected(tmp_path, monkeypatch):
    """A package takes the place of an older one, and of no other flavour's."""
    monkeypatch.setattr(kernel, "BUILD", str(tmp_path))
    flavour = packages.Flavour("lean", "deb")
    flavour.top.mkdir(parents=True)
    for name in ("linux-image-7.3-lean_1_amd64.deb", "linux-image-7.3-lean-too_1_amd64.deb"):
        (tmp_path / "deb" / name).touch()
    (flavour.top / "linux-image-7.3-lean_2_amd64.deb").touch()
    (flavour.top / "linux-libc-dev_2_amd64.deb").touch()
    kept = [flavour.keep(path) for path in flavour.built()]
    assert kept == [f"{tmp_path}/deb/linux-image-7.3-lean_2_amd64.deb"]
    assert sorted(path.name for path in (tmp_path / "deb").glob("*.deb")) == [
        "linux-image-7.3-lean-too_1_amd64.deb", "linux-image-7.3-lean_2_amd64.deb"]


def test_where_rpmbuild_leaves_them(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel, "BUILD", str(tmp_path))
    flavour = packages.Flavour("lean", "rpm")
    made = flavour.out / "rpmbuild/RPMS/x86_64"
    made.mkdir(parents=True)
    for name in ("kernel-7.3-1.x86_64.rpm", "kernel-headers-7.3-1.x86_64.rpm"):
        (made / name).touch()
    assert flavour.built() == [made / "kernel-7.3-1.x86_64.rpm"]
