# SPDX-License-Identifier: GPL-2.0
"""Figures in README.md, its picture and the page of measurements: nobody
copies them by hand."""
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

from lab.bench import documents
from lab.bench import lab
from lab.bench import model_figures
from lab.bench import picture
from lab.bench import suites
from plugtools.report import records as files
from scripts.series import env, measured as store

GAINS = {("unpatched", "always"): 1, ("unpatched", "nomerges2"): 1.02,
         ("patched", "always"): 1.01, ("patched", "never"): 0.9,
         ("patched", "seq-small"): 1.02, ("patched", "adaptive"): 1.0302}


def record(suite, profile, run, pair, gain):
    """A run; what its seed does is the same for all cells."""
    return {"suite": suite, "kernel": pair[0], "policy": pair[1],
            "profile": profile, "workload": "rand4k-s32", "run": run,
            "seed": run, "commit": "0123456789ab",
            "iops": 100000 * gain * (1 + run / 10)}


def sample(suite, *profiles, runs=4):
    """Records of a suite."""
    return [record(suite, profile, run, pair, gain * (1 + run % 2 / 1000))
            for profile in profiles for run in range(runs)
            for pair, gain in GAINS.items()]


class Measured(unittest.TestCase):
    """What is kept of "make bench"."""

    def change_of(self, runs, pair=("patched", "adaptive")):
        """Of a cell on one device."""
        found = sample("device", "vm", runs=runs)
        of_cell = {one: [record for record in found
                         if (record["kernel"], record["policy"]) == one]
                   for one in GAINS}
        return model_figures.change(of_cell[pair], of_cell["unpatched", "always"])

    def test_paired(self):
        """Seeds differ by 10%, which says nothing of a mode."""
        one = self.change_of(4)
        self.assertAlmostEqual(one["ratio"], 1.0302, 4)
        self.assertLess(one["ci_high"] - one["ci_low"], 0.01)
        self.assertEqual(one["runs"], 4)

    def test_one_run(self):
        """It says nothing of chance."""
        one = self.change_of(1)
        self.assertIsNone(one["ci_low"])
        self.assertEqual(documents.percent(one), "+3.0%")

    def test_kept(self):
        """Against the unpatched plug, and of modes against "always"."""
        kept = model_figures.keep_suite(suites.SUITES["device"],
                                   sample("device", "vm"), {})
        row = kept["rows"]["vm"]["rand4k-s32"]
        self.assertEqual(len(row), len(GAINS) - 1)
        self.assertAlmostEqual(row["patched always"]["ratio"], 1.01, 4)
        self.assertAlmostEqual(kept["modes"]["vm"]["rand4k-s32"]
                               ["patched adaptive"]["ratio"], 1.02, 4)

    def test_without_baseline(self):
        """There is nothing to compare with."""
        some = [one for one in sample("device", "vm")
                if one["kernel"] == "patched"]
        kept = model_figures.keep_suite(suites.SUITES["device"], some, {})
        self.assertEqual(kept["rows"], {})


class Written(unittest.TestCase):
    """Into copies of the documents."""

    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.top = pathlib.Path(where.name)
        for module, name, value in (
                (model_figures, "FILE", self.top / "models.json"),
                (lab, "OUT", str(self.top)),
                (picture, "PATH", self.top / "picture.svg")):
            self.enterContext(mock.patch.object(module, name, value))
        for name in "README", "PAGE":
            path = self.top / getattr(documents, name).name
            path.write_text(getattr(documents, name).read_text())
            self.enterContext(mock.patch.object(documents, name, path))

    def test_all_at_once(self):
        """From records to documents; once more changes nothing."""
        for suite, profiles in (("device", ("vm", "lockstep")),):
            files.save(str(self.top / (suite + ".json")),
                       sample(suite, *profiles), {})
        said = documents.update()
        self.assertEqual(said[0], "kept of make bench: device")
        self.assertIn("`adaptive` | +3.0% ± ",
                      documents.README.read_text())
        page = documents.PAGE.read_text()
        self.assertIn("**lockstep**", page)
        self.assertRegex(page, r"rand4k-s32 \+2\.0 ±0\.\d +\+1\.0 ±")
        self.assertEqual(documents.update(), [])

    def test_other_kernel(self):
        """Its figures are not shown."""
        with mock.patch.object(env, "BASE", "6.12"):
            line, = documents.update()
        self.assertIn("not filled in", line)

    def test_damaged_records(self):
        """Nothing is written."""
        (self.top / "device.json").write_text("{}")
        with self.assertRaisesRegex(files.ReportError, "device.json"):
            documents.update()
        self.assertFalse(model_figures.FILE.exists())


class Text(unittest.TestCase):
    """Places in documents."""

    def filled(self, text):
        """A page, filled in."""
        with mock.patch.dict(documents.TABLES, readme=lambda: ["new"]):
            return documents.filled(text, pathlib.Path("README.md"))

    def test_only_between(self):
        """The rest is left alone."""
        self.assertEqual(
            self.filled("a\n<!-- make figures: readme -->\nold\n"
                        "<!-- figures: end -->\nb\n"),
            "a\n<!-- make figures: readme -->\nnew\n"
            "<!-- figures: end -->\nb\n")

    def test_refused(self):
        """What could not be filled in is not passed over."""
        with self.assertRaisesRegex(documents.DocumentError, "has no line"):
            self.filled("a\n")
        with self.assertRaisesRegex(documents.DocumentError, "no table 'x'"):
            self.filled("<!-- make figures: x -->\n<!-- figures: end -->\n")

    def test_today(self):
        """What is in the repository was filled in, with its figures."""
        places = []
        for path in documents.README, documents.PAGE:
            text = path.read_text()
            places += [place[1] for place in
                       documents.PLACE.finditer(text)]
            self.assertEqual(documents.filled(text, path), text,
                             "first: make figures FILL=1")
        self.assertEqual(sorted(places), sorted(documents.TABLES))


class Picture(unittest.TestCase):
    """picture.svg."""

    def test_marks(self):
        """One for each mode and device that was measured."""
        kept = {"device": model_figures.keep_suite(
            suites.SUITES["device"], sample("device", "vm", "gen4"), {})}
        drawn = xml.fromstring(picture.svg({}, kept).encode())
        space = "{http://www.w3.org/2000/svg}"
        # and one in the legend
        self.assertEqual(len(list(drawn.iter(space + "circle"))), 3)
        said = [one.text for one in drawn.iter(space + "text")]
        self.assertEqual(said.count("not measured yet"),
                         len(picture.DEVICES) - 2)

    def test_scale(self):
        """It grows for what would be beyond it."""
        one = {"ratio": 0.95, "ci_low": 0.92, "ci_high": 0.98}
        scale = picture.Scale.of([{}, {"adaptive": one}])
        self.assertEqual(scale, picture.Scale(-8, 12))
        self.assertEqual(scale.x(12), picture.RIGHT)
        self.assertEqual(picture.Scale.of([{}]), picture.Scale(-5, 12))

    def test_today(self):
        """It is of the figures of today."""
        self.assertEqual(picture.PATH.read_text(), picture.svg(
            store.load().get(store.WHOLE, {}).get("modes", {}),
            model_figures.known()), "first: make figures FILL=1")
