# SPDX-License-Identifier: GPL-2.0
"""What the tests of our programs share; see fakehost.py."""
import pytest

import benchtree
import fakehost
from plugtools.core import disks, journal


@pytest.fixture
def host(tmp_path, monkeypatch):
    """An empty machine; programs find it, and only fakes on its PATH."""
    made = fakehost.Host(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(made.root)
    for module in (disks, journal):
        monkeypatch.setattr(module, "write", made.kernel_write)
    return made


@pytest.fixture
def machine(tmp_path):
    """One with a disk and a fake of fio, for plugbench."""
    return benchtree.Machine(tmp_path)
