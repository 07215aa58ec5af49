# SPDX-License-Identifier: GPL-2.0
"""What each_commit.py and matrix.py conclude from what tools print."""
import contextlib
import io
import json
import os
import tempfile
import time
import unittest
from unittest import mock

from scripts.checks import c_style
from scripts import common
from scripts.kbuild import configs
from scripts import each_commit
from scripts import kernel
from scripts import matrix

GCC = """  CC      block/blk-mq.o
../block/blk-mq.c: In function 'f':
../block/blk-mq.c:12:6: warning: unused variable 'i' [-Wunused-variable]
   12 | int i;
../include/linux/blkdev.h:7:1: error: expected ';' before 'int'
block/blk-mq.o: warning: objtool: f+0x1f: unreachable instruction
block/Kconfig:3:warning: ignored
../block/blk-mq.c:9:1: note: declared here
../x.c:1:1: fatal error: no.h: No such file or directory
drivers/nvme/host/pci.c:1:1: error: bad constant expression
make[3]: *** [../scripts/Makefile.build:289: block/blk-mq.o] Error 1
"""


class Findings(unittest.TestCase):
    """c_style.findings() and c_style.added()"""

    def test_each_kind(self):
        """All that is a finding, without its line, and nothing else."""
        self.assertEqual(dict(c_style.findings(GCC)), {
            ("block/blk-mq.c",
             "warning: unused variable 'i' [-Wunused-variable]"): 1,
            ("include/linux/blkdev.h", "error: expected ';' before 'int'"): 1,
            ("block/blk-mq.o",
             "warning: objtool: f: unreachable instruction"): 1,
            ("block/Kconfig", "warning: ignored"): 1,
            ("x.c", "fatal error: no.h: No such file or directory"): 1})

    def test_line_moved(self):
        """The same message at another line is not new."""
        old = c_style.findings("a.c:1:2: warning: w\n")
        self.assertEqual(c_style.added(
            c_style.findings("../a.c:9:2: warning: w\n"), old), [])

    def test_one_more(self):
        """A second one in a file of C is new; a header's is read again."""
        two = "a.%s:1:2: warning: w\na.%s:5:2: warning: w\n"
        for suffix, expected in (("c", ["a.c: warning: w"]), ("h", [])):
            found = c_style.findings(two % (suffix, suffix))
            base = {("a." + suffix, "warning: w"): 1}
            self.assertEqual(c_style.added(found, base), expected)

    def test_first_in_header(self):
        """What a header of the base does not say is new."""
        found = c_style.findings("a.h:1:2: warning: w\n")
        self.assertEqual(c_style.added(found, {}), ["a.h: warning: w"])

    def test_without_numbers(self):
        """Places in the text do not count either."""
        for line, expected in (
                ("b.c:1:2-3: WARNING: x at line 12",
                 "b.c: WARNING: x at line N"),
                ("Warning: b.c:33 no 'p' of 2", "Warning: b.c no 'p' of 2")):
            self.assertEqual(each_commit.without_numbers(line), expected)


class Run(unittest.TestCase):
    """c_style.run()"""

    def test_result(self):
        """Text of both streams, and the status."""
        self.assertEqual(c_style.run(["sh", "-c", "echo a; echo b >&2; exit 3"],
                                    "x"), ("a\nb\n", 3))

    def test_interrupted(self):
        """An exception while it runs ends all that it started."""
        with tempfile.TemporaryDirectory() as top:
            late = os.path.join(top, "late")
            with self.assertRaises(KeyboardInterrupt):
                common.run(["sh", "-c", "(sleep 1; echo > %s) & echo a; wait"
                            % late], mock.Mock(side_effect=KeyboardInterrupt))
            time.sleep(1.5)
            self.assertFalse(os.path.exists(late))


class Symbols(unittest.TestCase):
    """configs.parse_nm()"""

    def test_undefined(self):
        """Only what none of the objects defines."""
        text = ("/o/a.o:0000000000000000 T here\n/o/a.o:         U there\n"
                "/o/a.o:         U nowhere\n/o/b.o:0000000000000010 t there\n")
        self.assertEqual(configs.parse_nm(text, "/o"),
                         ({"nowhere": "a.o"}, {"here", "there"}))


class Options(unittest.TestCase):
    """What the series adds."""

    def test_options(self):
        """Those of Kconfig files, without tools/."""
        diff = "+config A\n config B\n-config C\n+\tconfig D\n"
        self.assertEqual(configs.own_options(
            ["block/Kconfig.plug", "tools/x/Kconfig", "block/x.c"],
            lambda path: diff if path.startswith("block") else "+config Z\n"),
                         ["A"])

    def test_objects(self):
        """C outside the directories and outside tools/."""
        self.assertEqual(configs.own_objects(
            ["fs/aio.c", "block/x.c", "lib/a.h", "tools/b.c"]), ["fs/aio.o"])

    def test_fragment(self):
        """As merge_config.sh reads it."""
        self.assertEqual(configs.fragment({"A": "n", "B": "m"}),
                         "# CONFIG_A is not set\nCONFIG_B=m\n")


class Fakes:
    """A series of commits that git does not know."""

    base, tip, commits = "base", "two", ["one", "two"]
    ends = {"two"}
    files = {"block/a.c": "M", "block/new.c": "A", "tools/b.c": "A",
             "Documentation/c.rst": "A"}

    @staticmethod
    def options():
        """None."""
        return []


class Checking(unittest.TestCase):
    """What is asked, what is remembered of it, and what is not."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.rows = ["100644 blob 1\tblock", "100644 blob 2\tDocumentation"]
        for name, value in (
                ("PROVEN", os.path.join(top.name, "proven.json")),
                ("RESULT", os.path.join(top.name, "result.json")),
                ("git", lambda *args: "\n".join(self.rows))):
            what = mock.patch.object(each_commit, name, value)
            what.start()
            self.addCleanup(what.stop)

    def run_one(self, find, fresh=False):
        """What comes of a check."""
        with contextlib.redirect_stdout(io.StringIO()):
            return each_commit.run(Fakes, [("one", "doc", "key", find)],
                                   fresh)[0]["found"]

    def test_passed_is_remembered(self):
        """By the next run, too, unless that wants to know it anew."""
        never = mock.Mock(side_effect=AssertionError)
        self.assertEqual(self.run_one(lambda: []), [])
        self.assertEqual(self.run_one(never), [])
        self.assertEqual(self.run_one(lambda: ["bad"], fresh=True), ["bad"])

    def test_failed_is_not_remembered(self):
        """Neither for what was found, nor for what could not be asked."""
        self.assertEqual(self.run_one(lambda: ["bad"]), ["bad"])
        self.assertEqual(self.run_one(mock.Mock(
            side_effect=kernel.BuildError("no make"))), ["no make"])
        self.assertEqual(self.run_one(lambda: []), [])

    def test_interrupted(self):
        """What had passed until then is kept, and the result is not whole."""
        checks = [("one", "doc", "first", lambda: []),
                  ("one", "html", "second", mock.Mock(
                      side_effect=KeyboardInterrupt))]
        with contextlib.redirect_stdout(io.StringIO()), \
                self.assertRaises(KeyboardInterrupt):
            each_commit.run(Fakes, checks, False)
        self.assertEqual(each_commit.known(), {"first": "doc: "
                                               + "\n".join(self.rows)})
        with open(each_commit.RESULT, encoding="utf-8") as text:
            self.assertFalse(json.load(text)["complete"])

    def test_key(self):
        """Compilers do not read the documentation; all read the rest."""
        def keys():
            return [each_commit.key(Fakes, "one", name)
                    for name in ("on-gcc", "html")]

        build, pages = keys()
        self.rows[1] = "100644 blob 3\tDocumentation"
        self.assertEqual(keys()[0], build)
        self.assertNotEqual(keys()[1], pages)
        self.rows[0] = "100644 blob 4\tblock"
        self.assertNotEqual(keys()[0], build)

    def test_plan(self):
        """gcc builds each commit, clang the last of a section."""
        compilers = {name: mock.Mock(cc=cc, text="", version="")
                     for name, (cc, _) in each_commit.CONFIGS.items()}
        with mock.patch.object(each_commit, "Compiler",
                               lambda name, _: compilers[name]):
            asked = [one[:2] for one in each_commit.plan(Fakes, None)]
            some = [one[:2] for one in each_commit.plan(Fakes, ["html"])]
        self.assertEqual(asked, [
            ("one", "on-gcc"), ("one", "off-gcc"), ("two", "on-gcc"),
            ("two", "off-gcc"), ("two", "on-clang"), ("two", "off-clang"),
            ("two", "doc"), ("two", "cocci"), ("two", "html")])
        self.assertEqual(some, [("two", "html")])

    def test_beyond_base(self):
        """Only what the base's files do not say as often, and of C alone."""
        said = {"block/a.c block/new.c": ["a.c:3: x", "a.c:4: x", "a.c:5: y"],
                "block/a.c": ["a.c:9: x"]}
        with mock.patch.object(each_commit, "go"):
            self.assertEqual(each_commit.beyond_base(
                lambda names: said[" ".join(names)], Fakes),
                             ["a.c: x", "a.c: y"])

    def test_conclusion(self):
        """A failure is named, and is the exit status; so is no check."""
        good = {"commit": "1" * 40, "subject": "s", "check": "doc",
                "found": [], "seconds": 1}
        for results, code, text in (
                ([good], 0, "1 checks passed, 0 failed"),
                ([good, {**good, "found": ["x"]}], 1, "FAILED 111111111111 s"),
                ([], 1, "0 checks passed")):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(each_commit.conclude(results), code)
            self.assertIn(text, said.getvalue())


class Matrix(unittest.TestCase):
    """matrix.py"""

    def test_unknown_name(self):
        """Refused, and all names told."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            matrix.parse(["offf"])
        self.assertIn("no configuration 'offf'; there are: on off",
                      said.getvalue())

    def test_missing(self):
        """What another configuration defines must not be missing here."""
        rows = []
        for name in ("on", "off", "preempt-none"):
            row = matrix.Row(name, None)
            row.undefined = {"ours": "block/a.o", "memcpy": "block/a.o"}
            rows.append(row)
        self.assertEqual(rows[1].missing(rows), [])
        rows[0].defined = {"ours"}
        self.assertEqual(rows[1].missing(rows),
                         ["block/a.o: nothing defines ours"])
        self.assertEqual(rows[2].missing(rows), [])

    def test_linked(self):
        """There is such a row."""
        self.assertLessEqual({*matrix.LINKED, *matrix.FOREIGN},
                             set(matrix.ROWS))
