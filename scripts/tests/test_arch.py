# SPDX-License-Identifier: GPL-2.0
"""ARCH: what is refused, what kbuild is told, what programs for arm64 link; and
what kunit.py makes of a guest's results."""
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

from scripts.kbuild import arch
from scripts import kernel
from scripts import kunit


def make(*args):
    """(exit status, what make says that it would do, or why not)"""
    env = {name: value for name, value in os.environ.items()
           if name not in ("ARCH", "MAKEFLAGS", "MFLAGS")}
    done = subprocess.run(["make", "-n", "-C", kernel.ROOT, *args],
                          env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


class Makefile(unittest.TestCase):
    """Refused before anything is installed"""

    def test_refusals(self):
        """Each names what is accepted, or what to leave out."""
        for args, words in (
                (["ARCH=mips", "run"], "accepted: x86_64, arm64"),
                (["ARCH=", "run"], "accepted: x86_64, arm64"),
                (["ARCH=arm64", "bench"], "'bench'; accepted: help setup run"),
                (["ARCH=arm64", "selftest", "UML=1"], "leave one out")):
            code, said = make(*args)
            self.assertEqual(code, 2, args)
            self.assertIn(words, said)
            self.assertNotIn("setup.sh", said)

    def test_packages(self):
        """A cross compiler is not wanted of who stays with his processor."""
        self.assertIn("setup.sh all arm64\n", make("ARCH=arm64", "run")[1])
        self.assertIn("setup.sh all arm64\n", make("check")[1])
        self.assertNotIn("arm64", make("run")[1])


PRINT = """import json, sys
from scripts import kernel
from scripts import packages
flavour = packages.Flavour("lean", "deb")
print(json.dumps({
    "deb": {"make": flavour.make("x"), "out": flavour.out,
            "fragments": packages.LEAN, "cloud": packages.CLOUD},
    "env": kernel.environment().get("ARCH"), "build": kernel.BUILD,
    **{name: {"image": kernel.image(name),
              "make": kernel.variant_command(name, "x"),
              "fragments": kernel.fragments_of(name)}
       for name in ("patched", "kcsan", kernel.UML)}}))
"""


def told(**env):
    """What kernel.py says with these variables."""
    return json.loads(subprocess.run(
        [sys.executable, "-c", PRINT], env={**os.environ, **env}, check=True,
        stdout=subprocess.PIPE).stdout)


class Kbuild(unittest.TestCase):
    """kernel.py"""

    def test_arm64(self):
        """Its own output, logs, compiler; its fragment is the last."""
        said = told(ARCH="arm64")
        patched = said["patched"]
        self.assertTrue(patched["image"].endswith(
            "/o-kernel-arm64/arch/arm64/boot/Image"), patched)
        for word in ("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-",
                     "CC=ccache aarch64-linux-gnu-gcc", "O=o-kernel-arm64"):
            self.assertIn(word, patched["make"])
        self.assertEqual(os.path.basename(patched["fragments"][-1]),
                         "arm64.config")
        self.assertTrue(said["build"].endswith("/arm64"))
        self.assertIn("CC=ccache clang-19", said["kcsan"]["make"])

    def test_packages(self):
        """make deb: its compiler, a directory and configurations of its own."""
        deb = told(ARCH="arm64")["deb"]
        for word in ("ARCH=arm64", "CC=ccache aarch64-linux-gnu-gcc"):
            self.assertIn(word, deb["make"])
        self.assertIn("/arm64/deb/", deb["out"])
        self.assertTrue(deb["cloud"].endswith("/config.arm64_none_cloud-arm64.xz"))
        for name in ("arm64", "x86_64"):
            for path in told(ARCH=name)["deb"]["fragments"]:
                self.assertTrue(os.path.exists(path), path)

    def test_process_is_the_hosts(self):
        """User Mode Linux, whatever the guests have."""
        self.assertEqual(told(ARCH="arm64")["uml-test"],
                         told(ARCH="x86_64")["uml-test"])

    def test_x86_64(self):
        """As it was before there was ARCH; kbuild must not see it."""
        said = told(ARCH="x86_64")
        self.assertIsNone(said["env"])
        self.assertTrue(said["patched"]["image"].endswith(
            "/o-kernel/arch/x86/boot/bzImage"))
        self.assertNotIn("ARCH", "".join(said["patched"]["make"]))


class Libraries(unittest.TestCase):
    """cross_libraries()"""

    NEEDS = {"fio": ["/lib/ld.so", "liba.so"], "liba.so": ["libdeep.so"],
             "libdeep.so": ["liba.so", "libnone.so"]}

    def test_closure(self):
        """Each once, also from below; what is nowhere is named."""
        def found(pattern, **_):
            name = os.path.basename(pattern)
            return [] if name == "libnone.so" else ["/root/" + name]

        with mock.patch.object(arch, "needed", lambda path: self.NEEDS.get(
                os.path.basename(path), [])), \
                mock.patch("glob.glob", found):
            self.assertEqual(
                arch.cross_libraries(["/root/fio"]),
                (["/root/ld.so", "/root/liba.so", "/root/libdeep.so"],
                 ["libnone.so"]))

    def test_needed(self):
        """Of a program of this machine: its loader and the C library."""
        names = arch.needed(sys.executable)
        self.assertTrue([name for name in names if "libc.so" in name], names)
        self.assertTrue([name for name in names if name[0] == "/"], names)


RESULTS = """KTAP version 1
1..1
    KTAP version 1
    # Subtest: one
    1..1
        KTAP version 1
        # Subtest: rows
        ok 1 row
    ok 1 rows
ok 1 one
KTAP version 1
1..1
    KTAP version 1
    # Subtest: two
    1..1
    ok 1 case
ok 1 two
"""


class Kunit(unittest.TestCase):
    """kunit.py, in a guest"""

    def test_all_ended(self):
        """Rows do not count as suites."""
        self.assertEqual(kunit.unfinished(RESULTS), [])

    def test_failed(self):
        """The suite's own line says it."""
        text = RESULTS.replace("ok 1 one", "not ok 1 one")
        self.assertEqual(kunit.unfinished(text), ["not ok 1 one"])

    def test_cut(self):
        """At the end, or in the middle."""
        self.assertEqual(kunit.unfinished(RESULTS.replace("ok 1 two", "")),
                         ["no end of two"])
        self.assertEqual(kunit.unfinished(RESULTS.replace("ok 1 one", "")),
                         ["no end of one"])


if __name__ == "__main__":
    unittest.main()
