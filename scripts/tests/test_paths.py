# SPDX-License-Identifier: GPL-2.0
"""No document, comment or message names a file that is not there, each file for the
kernel is in a mail, and "make help-all" has every verb."""
import glob
import os
import re
import subprocess
from pathlib import Path

from scripts import kernel
from scripts.checks import touches

DOCUMENT = re.compile(r"\.(md|rst|[1-8]|txt)$|^MAINTAINERS$|^Documentation/")
# The kernel has these, too; the last group is ours alone.
OURS = r"lab|patches|tools/block|tools/testing/selftests/block-plug|\.ci"
PLACES = r"block|include|lib|scripts|Documentation|" + OURS
# A letter, or what the shell takes for several
ONE = r"[\w*/]|\{[\w.*,-]+\}|\[\w+\]"
PATH = r"(?<![\w/.$}<>-])((?:%%s)/(?:(?:[.-]|%s)*(?:%s))?)" % (ONE, ONE)
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^]]+\]: (\S+)$", re.M)
NAME = re.compile(r"`([\w.-]+\.(?:py|sh|ini|md|rst))`")
# Mails and figures are made; tests have paths of their own.
TEXTS = {name: Path(kernel.ROOT, name).read_text(encoding="utf-8") for name in touches.files()
         if not name.endswith((".patch", ".json", ".svg")) and "/test" not in name}
DOCUMENTS = {name: text for name, text in TEXTS.items() if DOCUMENT.search(name)}


def braces(path):
    """a{b,c} as the shell would have it."""
    match = re.search(r"\{([^{}]*)\}", path)
    return [one for word in match[1].split(",") for one in braces(
        path[:match.start()] + word + path[match.end():])] if match else [path]


def exists(path, *tops):
    """Does a path, or pattern, name anything below one of these? NAME, KVER is one
    that the reader chooses."""
    return all(any(glob.glob(os.path.join(top, one)) for top in tops)
               for one in braces(re.sub("NAME|KVER", "*", path)))


def anchors(text):
    """What a link into a markdown page can name."""
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")
            for head in heads}


def dead_paths(text, places=PLACES):
    """Paths from the top that lead nowhere; those that can be the kernel's
    count only if its tree is there."""
    has_tree = os.path.isdir(kernel.TREE)
    return [path for path in re.findall(PATH % places, text)
            if (has_tree or re.match(OURS, path))
            and not exists(path, kernel.ROOT, kernel.TREE)]


def dead_links(text, where):
    """Links of a markdown page in a directory, but for those to the world."""
    dead = []
    for target in map("".join, LINK.findall(text)):
        path, _, anchor = target.partition("#")
        file = Path(where, path)
        if re.match(r"\w+:", target):
            continue
        if path and not file.exists():
            dead.append(target)
        elif anchor:
            dead += [target] * (anchor not in anchors(
                file.read_text(encoding="utf-8") if path else text))
    return dead


def test_paths():
    """All those in documents; in programs, those of ours."""
    dead = {name: dead_paths(text, PLACES if name in DOCUMENTS else OURS + "|scripts")
            for name, text in TEXTS.items()}
    assert {name: paths for name, paths in dead.items() if paths} == {}


def test_documents():
    """Links of markdown pages; names of files without their directory."""
    known = set(map(os.path.basename, touches.files()))
    for name, text in DOCUMENTS.items():
        assert set(NAME.findall(text)) <= known, name
        if name.endswith(".md"):
            assert dead_links(text, os.path.dirname(os.path.join(kernel.ROOT, name))) == [], name


def test_each_file_for_the_kernel_is_in_a_mail():
    """No kernel needs the laboratory, the tools for administrators, or figures that age."""
    listed = {word for name in glob.glob("patches/*/series", root_dir=kernel.ROOT)
              for word in TEXTS[name].split()}
    ours = (".ci/", ".github/", "lab/", "patches/", "scripts/", "tools/block/",
            "Documentation/block/plug-measurements.rst")
    assert [name for name in touches.files() if "/" in name
            and not name.startswith(ours) and name not in listed] == []


def test_dead_ones_are_found():
    """The check itself can fail."""
    text = ("see `lab/none/`, lab/bench/*.none, tools/block/{plugstat,none}"
            " and [x](none.md), [y](#none), [README](README.md#none)")
    assert dead_paths(text) == ["lab/none/", "lab/bench/*.none", "tools/block/{plugstat,none}"]
    assert dead_links(text, kernel.ROOT) == ["none.md", "#none", "README.md#none"]
    good = "[x](#a-b-c) lab/bench/, tools/block/{plugstat,plugroll}\n# A `b`: c"
    assert dead_paths(good) + dead_links(good, "/") == []


def test_help():
    """Each verb is in it once, and each that is in it can be made."""
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)", TEXTS["Makefile"], re.M)
    said = subprocess.run(["make", "-s", "-C", kernel.ROOT, "help-all"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    assert sorted(re.findall(r"^  (\S+)", said, re.M)) == sorted(
        set(phony[1].replace("\\", "").split()) - {"help", "help-all"})
    assert max(map(len, said.splitlines())) < 80
