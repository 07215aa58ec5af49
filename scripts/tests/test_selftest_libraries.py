# SPDX-License-Identifier: GPL-2.0
"""The kselftests source the libraries that they use, and no others; no mail
brings a test whose library only a later one brings."""
import os
import re
from pathlib import Path

import pytest

from scripts import kernel
from scripts.series.files import parse_series

PATCHES = Path(kernel.ROOT, "patches")
SUITE = os.path.relpath(kernel.SELFTESTS, kernel.ROOT)
ALWAYS = "lib.sh"


def code(text):
    """Without comments, and without strings that nothing expands in."""
    return re.sub(r'"[^"\n]*"', lambda m: m[0] if "$" in m[0] else '""',
                  re.sub(r"^\s*#.*$", "", text, flags=re.M))


def defined(text):
    """Functions, and the variables that are set outside of these."""
    return set(re.findall(r"^(\w+)\(\)$", text, re.M)
               + re.findall(r"^([A-Z_]+)=", text, re.M))


def used(text):
    """Words that may be somebody else's functions or variables."""
    text = code(text)
    # ${WORD-}: that may be nobody's
    words = set(re.findall(r"\w+", re.sub(r"\$\{\w+-", "", text)))
    for line in re.findall(r"^\s*require (.*)", text, re.M):
        words.update("need_" + what for what in line.split())
    own = set(re.findall(r"\b([A-Z_]+)=", text))
    for line in re.findall(r"\blocal (.*)", text):
        own.update(re.findall(r"\w+", line))
    return words - own - defined(text)


def sourced(text):
    """The libraries that a file names, in order."""
    return re.findall(r'^\. "\$\{0%/\*\}/(\w+\.sh)"$', text, re.M)


def brought(texts, name):
    """A library, and all that it sources."""
    found = {name}
    for other in sourced(texts.get(name, "")):
        found |= brought(texts, other)
    return found


def faults(texts, libraries):
    """What is wrong with scripts, {name: text}."""
    owner = {word: name for name in libraries for word in defined(texts[name])}
    for name, text in sorted(texts.items()):
        named, words = sourced(text), used(text)
        there = {name, ALWAYS}.union(*(brought(texts, other) for other in named))
        yield from (f"{name}: {word} is in {owner[word]}" for word in sorted(words & owner.keys())
                    if owner[word] not in there)
        yield from (f"{name} uses nothing of {other}" for other in named
                    if other != ALWAYS and not words & defined(texts.get(other, "")))
        if name not in libraries and named[:1] != [ALWAYS]:
            yield f"{name} does not source {ALWAYS} first"


LIBRARIES = list(map(os.path.basename, kernel.selftest_libraries()))
SERIES = list(PATCHES.glob("[0-9]*"))
SCRIPTS = {path.name: path.read_text(encoding="utf-8")
           for path in Path(kernel.SELFTESTS).glob("*.sh")}


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


def test_complete():
    """What a script uses it has sourced, and nothing for nothing; nor does a test that
    new_test.sh has begun. lib.sh's head names all."""
    new = Path(kernel.ROOT, "scripts/new_test.sh").read_text(encoding="ascii").split("END")[1]
    assert "require " in new
    assert list(faults({**SCRIPTS, "new.sh": new}, LIBRARIES)) == []
    assert sorted([ALWAYS, *re.findall(r"^# (\w+\.sh)\t", SCRIPTS[ALWAYS], re.M)]) == LIBRARIES


@pytest.mark.parametrize("where", SERIES)
def test_mails(where):
    """No mail comes before what it sources; one that did would be found."""
    assert list(late(where, SCRIPTS)) == []
    texts = {**SCRIPTS, "kyber_iostats.sh": '. "${0%/*}/policy_lib.sh"'}
    found = "\n".join(late(where, texts))
    assert re.fullmatch(r".*: kyber_iostats\.sh comes without policy_lib\.sh", found)


MADE_UP = {"lib.sh": "check()\n{\n\ttrue\n}\n",
           "a_lib.sh": "go()\n{\n\tcheck\n}\nLONG=1\n",
           "b_lib.sh": '. "${0%/*}/a_lib.sh"\nrun()\n{\n\tgo\n}\n'}
SOURCE = '. "${0%%/*}/%s"\n'
FIRST = SOURCE % "lib.sh"


@pytest.mark.parametrize("test, wrong", [
    (FIRST + "check\n", []), (FIRST + '# go\ncheck "go"\n', []),
    (FIRST + SOURCE % "b_lib.sh" + "run\ngo\n", []),
    (FIRST + "go\n", ["t.sh: go is in a_lib.sh"]),
    (FIRST + "echo $LONG\n", ["t.sh: LONG is in a_lib.sh"]),
    (FIRST + SOURCE % "a_lib.sh" + "check\n", ["t.sh uses nothing of a_lib.sh"]),
    (FIRST + SOURCE % "c_lib.sh" + "check\n", ["t.sh uses nothing of c_lib.sh"]),
    ("check\n", ["t.sh does not source lib.sh first"])])
def test_faults_are_found(test, wrong):
    assert list(faults({**MADE_UP, "t.sh": test}, MADE_UP)) == wrong
