# SPDX-License-Identifier: GPL-2.0
"""What bisect_series.py and matrix.py conclude from what tools print."""
import contextlib
import io
import os
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import bisect_series
import checks
import common
import configs
import kernel
import matrix

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
    """checks.findings() and checks.added()"""

    def test_each_kind(self):
        """All that is a finding, without its line, and nothing else."""
        self.assertEqual(dict(checks.findings(GCC)), {
            ("block/blk-mq.c",
             "warning: unused variable 'i' [-Wunused-variable]"): 1,
            ("include/linux/blkdev.h", "error: expected ';' before 'int'"): 1,
            ("block/blk-mq.o",
             "warning: objtool: f: unreachable instruction"): 1,
            ("block/Kconfig", "warning: ignored"): 1,
            ("x.c", "fatal error: no.h: No such file or directory"): 1})

    def test_line_moved(self):
        """The same message at another line is not new."""
        old = checks.findings("a.c:1:2: warning: w\n")
        self.assertEqual(checks.added(
            checks.findings("../a.c:9:2: warning: w\n"), old), [])

    def test_one_more(self):
        """A second one in a file of C is new; a header's is read again."""
        two = "a.%s:1:2: warning: w\na.%s:5:2: warning: w\n"
        for suffix, expected in (("c", ["a.c: warning: w"]), ("h", [])):
            found = checks.findings(two % (suffix, suffix))
            base = {("a." + suffix, "warning: w"): 1}
            self.assertEqual(checks.added(found, base), expected)

    def test_first_in_header(self):
        """What a header of the base does not say is new."""
        found = checks.findings("a.h:1:2: warning: w\n")
        self.assertEqual(checks.added(found, {}), ["a.h: warning: w"])

    def test_new_lines(self):
        """Lines are counted, too."""
        self.assertEqual(bisect_series.new_lines(["a", "b", "a"], ["a"]),
                         ["b", "a"])

    def test_without_numbers(self):
        """Places in the text do not count either."""
        for line, expected in (
                ("b.c:1:2-3: WARNING: x at line 12",
                 "b.c: WARNING: x at line N"),
                ("Warning: b.c:33 no 'p' of 2", "Warning: b.c no 'p' of 2")):
            self.assertEqual(bisect_series.without_numbers(line), expected)


class Run(unittest.TestCase):
    """checks.run()"""

    def test_result(self):
        """Text of both streams, and the status."""
        self.assertEqual(checks.run(["sh", "-c", "echo a; echo b >&2; exit 3"],
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
        """Those of Kconfig files, without choices and without tools/."""
        diff = ("+config A\n config B\n-config C\n+config A_DEFAULT_X\n"
                "+\tconfig D\n")
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


def fake_commit(number, files=(), last=False):
    """A commit that git does not know."""
    with mock.patch.object(bisect_series, "git", return_value="subject"), \
            mock.patch.object(bisect_series, "changes",
                              return_value=dict.fromkeys(files, "M")):
        commit = bisect_series.Commit("%040x" % (number + 0xabcd000), number,
                                      "parent")
    commit.last = last
    return commit


def fake_series(count):
    """A series of such commits."""
    series = bisect_series.Series.__new__(bisect_series.Series)
    series.commits = [fake_commit(i + 1) for i in range(count)]
    series.base = series.tip = "0"
    return series


class Selection(unittest.TestCase):
    """--from and --only"""

    def numbers(self, only, start):
        """What is selected of five."""
        return [c.number for c in fake_series(5).select(only, start)]

    def test_select(self):
        """By number and by name."""
        self.assertEqual(self.numbers(None, None), [1, 2, 3, 4, 5])
        self.assertEqual(self.numbers(None, "4"), [4, 5])
        self.assertEqual(self.numbers(["5", "2"], None), [2, 5])
        self.assertEqual(self.numbers(["%040x" % 0xabcd003], None), [3])

    def test_refused(self):
        """What is not there is named, with what is accepted."""
        for name in ("0", "6", "abc", "ffffffff", ""):
            with self.assertRaisesRegex(kernel.BuildError, "from 1 to 5"):
                fake_series(5).find(name)


class Checking(unittest.TestCase):
    """Bisect.check(): what is remembered, and what is not."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        for what in (mock.patch.object(bisect_series, "OUT", top.name),
                     mock.patch.object(bisect_series, "Compiler"),
                     mock.patch.object(bisect_series, "RESULT",
                                       os.path.join(top.name, "r.json")),
                     mock.patch.object(bisect_series.Bisect, "patch_key",
                                       lambda self, commit: "key")):
            what.start()
            self.addCleanup(what.stop)

    def status(self, found, fresh=False):
        """The status of a check that finds this."""
        bisect = bisect_series.Bisect(fake_series(1), fresh)
        with mock.patch.object(bisect_series.Bisect, "patch",
                               side_effect=found):
            return bisect.check(bisect.series.commits[0], "patch")["status"]

    def test_passed_is_remembered(self):
        """By the next run, too, unless that wants to know it anew."""
        self.assertEqual(self.status([[]]), "ok")
        self.assertEqual(self.status(AssertionError), "proven earlier")
        self.assertEqual(self.status([["bad"]], fresh=True), "failed")

    def test_failed_is_not_remembered(self):
        """Neither for what was found, nor for what could not be asked."""
        self.assertEqual(self.status([["bad"]]), "failed")
        self.assertEqual(self.status(kernel.BuildError("no make")), "failed")
        self.assertEqual(self.status([[]]), "ok")

    def test_conclusion(self):
        """A failure is named, and is the exit status; no commit is one."""
        bisect = bisect_series.Bisect(fake_series(2), False)
        one, two = bisect.series.commits
        one.results["patch"] = {"status": "ok", "seconds": 1, "found": []}
        two.results["doc"] = {"status": "failed", "seconds": 1, "found": ["x"]}
        for commits, code, text in (([one], 0, "1 checks passed"),
                                    ([one, two], 1, "FAILED 2"),
                                    ([], 1, "0 of 2 commits")):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(bisect_series.conclude(bisect, commits), code)
            self.assertIn(text, said.getvalue())

    def test_applies(self):
        """Pages are made where sections end, C is read where there is C."""
        bisect = bisect_series.Bisect(fake_series(1), False)
        c = fake_commit(1, ["block/a.c"])
        text = fake_commit(2, ["Documentation/a.rst", "tools/a.c"])
        with mock.patch.object(bisect_series.Commit, "has",
                               return_value=False):
            end = fake_commit(3, last=True)
            expected = {("doc", c): True, ("doc", text): False,
                        ("cocci", text): False, ("html", text): False,
                        ("html", end): True, ("patch", text): True,
                        ("on-gcc", text): True, ("model", text): False}
            for (name, commit), wanted in expected.items():
                self.assertEqual(bisect.applies(commit, name), wanted, name)


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


if __name__ == "__main__":
    unittest.main()
