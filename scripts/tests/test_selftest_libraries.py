# SPDX-License-Identifier: GPL-2.0
"""No mail brings a kselftest whose library only a later one brings: each section is
applied on no more than its cover names. Of functions that nobody has sourced, a test
itself hears from the shell, when it runs."""
import os
import re
from pathlib import Path

import pytest

from scripts import kernel
from scripts.series.files import parse_series

PATCHES = Path(kernel.ROOT, "patches")
SUITE = os.path.relpath(kernel.SELFTESTS, kernel.ROOT)
SERIES = list(PATCHES.glob("[0-9]*"))
SCRIPTS = {path.name: path.read_text(encoding="utf-8")
           for path in Path(kernel.SELFTESTS).glob("*.sh")}


def sourced(text):
    """The libraries that a file names, in order."""
    return re.findall(r'^\. "\$\{0%/\*\}/(\w+\.sh)"$', text, re.M)


def late(where, texts):
    """Which scripts of a series source what is not there yet: what neither their
    section nor one that it is applied on, as its cover says, has brought."""
    there = {}
    for entry in parse_series((where / "series").read_text()).entries:
        names = {os.path.basename(path) for path in entry.files
                 if os.path.dirname(path) == SUITE}
        there.setdefault(entry.section, set()).update(names)
        cover = (where / f"{entry.section}.cover").read_text()
        below = re.search(r"^Applies on: (.*)$", cover, re.M)[1].split(", ")
        known = set().union(*(there.get(name, ()) for name in (entry.section, *below)))
        yield from (f"{entry.name}: {name} comes without {other}"
                    for name in sorted(names.intersection(texts))
                    for other in sourced(texts[name]) if other not in known)


def test_libraries():
    """lib.sh's head names all, and each script sources one, or more."""
    libraries = list(map(os.path.basename, kernel.selftest_libraries()))
    assert sorted(["lib.sh", *re.findall(r"^# (\w+\.sh)\t", SCRIPTS["lib.sh"], re.M)]) == libraries
    for name, text in SCRIPTS.items():
        assert name == "lib.sh" or sourced(text), name
        assert set(sourced(text)) <= set(libraries), name


@pytest.mark.parametrize("where", SERIES)
def test_mails(where):
    """No mail comes before what it sources; one that did would be found."""
    assert list(late(where, SCRIPTS)) == []
    texts = {**SCRIPTS, "kyber_iostats.sh": '. "${0%/*}/policy_lib.sh"'}
    found = "\n".join(late(where, texts))
    assert re.fullmatch(r".*: kyber_iostats\.sh comes without policy_lib\.sh", found)
