# SPDX-License-Identifier: GPL-2.0
"""patches/blktests/ as mails for blktests: they only add files, and so apply to any
version of it."""
import collections
import re
import tempfile
from pathlib import Path

from .env import BUILD, ROOT
from .files import write_file
from .git import new_repository
from .mail import format_mails, put_in_place

TESTS = ROOT / "patches/blktests"

# The last test of a group in blktests as of 2025, where no checkout is given.
LAST = {"block": 39}

# name: of its files in TESTS; path: of the test or helper in blktests
Mail = collections.namedtuple("Mail", "name path is_test")


def last_number(group, checkout):
    """The number that the next test of a group comes after."""
    if not checkout:
        return LAST[group]
    return max((int(path.name) for path in (checkout / "tests" / group).glob("[0-9]*[0-9]")),
               default=0)


def load(checkout):
    """The mails, in order."""
    numbers, mails = {}, []
    for line in (TESTS / "series").read_text(encoding="ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        name, where = line.split()
        if "/" in where:
            mails.append(Mail(name, where, False))
            continue
        numbers[where] = numbers.get(where, last_number(where, checkout)) + 1
        mails.append(Mail(name, f"tests/{where}/{numbers[where]:03d}", True))
    return mails


def parts(name):
    """(message, what it needs and is for, code, output) of a file of TESTS"""
    text = (TESTS / name).read_text(encoding="utf-8").partition("\n")[2]  # SPDX
    head, code, *output = text.split("%%\n")
    text, _, words = head.partition("\nDescription: ")
    return text.strip() + "\n", f"Description: {words}", code, "".join(output)


def fields(words, key):
    return [line.partition(": ")[2] for line in words.splitlines()
            if line.startswith(f"{key}: ")]


def test_text(mail):
    """A test, as all are in blktests."""
    text, words, code, _ = parts(mail.name)
    functions, function, body = re.split(r"^(test\w*):\n", code, flags=re.M)
    null_blk = [] if function == "test_device" else ["_have_null_blk && _have_configfs"]
    needs = "\n\t".join([*null_blk, "_have_fio_io_uring", *fields(words, "Needs")])
    why = "\n".join(f"# {line}".rstrip() for line in text.splitlines()[2:])
    return f"""#!/bin/bash
# SPDX-License-Identifier: GPL-3.0+
#
{why}

. tests/block/rc
. common/plug

DESCRIPTION="{fields(words, "Description")[0]}"
QUICK=1

requires() {{
\t{needs}
}}

{functions}{function}() {{
\techo "Running ${{TEST_NAME}}"

\t_plug_init
{body}
\techo "Test complete"
}}
"""


def add_files(top, mail):
    """The files of a mail, as blktests has them."""
    if not mail.is_test:
        write_file(top / mail.path, parts(mail.name)[2].encode())
        return
    write_file(top / mail.path, test_text(mail).encode(), "100755")
    write_file(top / f"{mail.path}.out", "\n".join(
        [f"Running {mail.path[len('tests/'):]}",
         *(line for line in parts(mail.name)[3].splitlines() if not line.startswith("#")),
         "Test complete", ""]).encode())


def commit_all(git, text, parent, ident):
    git("add", "-A", "-f")
    return git.commit(git.get("write-tree"), text, parent, ident)


def make_mails(top, mails, ident, out):
    """A commit for each mail, on nothing, and the mails that git makes of these."""
    git = new_repository(top, "tests")
    start = tip = commit_all(git, "nothing", None, ident)
    for mail in mails:
        add_files(top, mail)
        tip = commit_all(git, parts(mail.name)[0], tip, ident)
    git("update-ref", "refs/heads/tests", tip)
    format_mails(git, start, "tests", (TESTS / "blktests.cover").read_text(encoding="utf-8"), ident,
                 out, "--subject-prefix=PATCH blktests")


def export(mails, out, ident):
    """Writes the mails; returns those to be applied."""
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="blktests-") as tmp:
        new = Path(tmp) / "mails"
        make_mails(Path(tmp) / "tree", mails, ident, new)
        put_in_place(new, out)
    return sorted(out.glob("*.patch"))[1:]
