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
    text = code(text).replace("\\\n", " ")
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
        named = sourced(text)
        there = {name}.union(*(brought(texts, other) for other in named))
        if name in libraries:
            there.add(ALWAYS)
        elif named[:1] != [ALWAYS]:
            yield "%s does not source %s first" % (name, ALWAYS)
        words = used(text)
        for word in sorted(words.intersection(owner)):
            if owner[word] not in there:
                yield "%s: %s is in %s" % (name, word, owner[word])
        for other in named:
            if other not in libraries:
                yield "%s: there is no %s" % (name, other)
            elif other != ALWAYS and not words & defined(texts[other]):
                yield "%s uses nothing of %s" % (name, other)


def library_names():
    """Of the suite's."""
    return [os.path.basename(path) for path in kernel.selftest_libraries()]


def scripts():
    """{name: text} of the suite's."""
    return {path.name: path.read_text(encoding="utf-8")
            for path in Path(kernel.SELFTESTS).glob("*.sh")}


def below(where, section):
    """The sections that one is applied on, as its cover says."""
    said = re.search(r"^Applies on: (.*)$", (where / f"{section}.cover").read_text(), re.M)[1]
    return [name.strip() for name in said.split(",")]


def late(where, texts):
    """Which scripts of a series source what is not there yet."""
    there = {}
    for entry in parse_series((where / "series").read_text()).entries:
        names = {os.path.basename(path) for path in entry.files
                 if os.path.dirname(path) == SUITE}
        there.setdefault(entry.section, set()).update(names)
        known = there[entry.section].union(
            *(there.get(name, ()) for name in below(where, entry.section)))
        for name in sorted(names.intersection(texts)):
            for other in sourced(texts[name]):
                if other not in known:
                    yield "%s: %s comes without %s" % (entry.name, name, other)


SERIES = list(PATCHES.glob("[0-9]*"))


def test_complete():
    """What a script uses it has sourced, and nothing for nothing."""
    assert list(faults(scripts(), library_names())) == []


def test_skeleton():
    """Nor does a test that new_test.sh has begun."""
    text = Path(kernel.ROOT, "scripts/new_test.sh").read_text(encoding="ascii")
    texts = {**scripts(), "new.sh": text.split("END")[1]}
    assert "require " in texts["new.sh"]
    assert list(faults(texts, library_names())) == []


def test_listed():
    """lib.sh's head names all."""
    text = scripts()[ALWAYS]
    assert sorted([ALWAYS, *re.findall(r"^# (\w+\.sh)\t", text, re.M)]) == library_names()


@pytest.mark.parametrize("where", SERIES)
def test_mails(where):
    """No mail comes before what it sources."""
    assert list(late(where, scripts())) == []


LIBRARIES = {"lib.sh": "check()\n{\n\ttrue\n}\n",
             "a_lib.sh": "go()\n{\n\tcheck\n}\nLONG=1\n",
             "b_lib.sh": '. "${0%/*}/a_lib.sh"\nrun()\n{\n\tgo\n}\n'}
SOURCE = '. "${0%%/*}/%s"\n'


@pytest.mark.parametrize("test, wrong", [
    ("check\n", None), ("go\n", "go is in a_lib.sh"), ("echo $LONG\n", "LONG is in a_lib.sh"),
    ('# go\ncheck "go"\n', None), (SOURCE % "a_lib.sh" + "check\n", "uses nothing of a_lib.sh"),
    (SOURCE % "b_lib.sh" + "run\ngo\n", None),
    (SOURCE % "c_lib.sh" + "check\n", "there is no c_lib.sh")])
def test_faults_are_found(test, wrong):
    """The check itself can fail."""
    found = list(faults({**LIBRARIES, "t.sh": SOURCE % "lib.sh" + test}, LIBRARIES))
    assert len(found) == (wrong is not None), found
    assert not wrong or wrong in found[0]


def test_order_is_found():
    assert "first" in list(faults({**LIBRARIES, "t.sh": "check\n"}, LIBRARIES))[0]


@pytest.mark.parametrize("where", SERIES)
def test_late_ones_are_found(where):
    texts = {**scripts(), "kyber_iostats.sh": '. "${0%/*}/policy_lib.sh"'}
    found = list(late(where, texts))
    assert len(found) == 1
    assert "kyber_iostats.sh comes without policy_lib.sh" in found[0]
