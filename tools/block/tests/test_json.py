#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that what plugroll and plugstat print with --json is as their schemas
say, and that plugroll summary reads it."""
import json
import os
import shutil
import unittest
from unittest import mock

import rolltree
import stattree
from plugtools.report import schema
from plugtools.roll import fleet


def valid(program, value, form=None):
    """Does a value match the program's schema, or a form that it has?"""
    one = schema.Schema(program)
    return one.valid(value, form and one.part(form))


class Roll(rolltree.Tree):
    """plugroll."""

    def told(self, form, *words, code=0, speed=1.3):
        """What a verb says, in the form that it should have."""
        with rolltree.Load(self, "nvme0n1", {"never": speed}):
            got, out, said = self.run_roll(*words, "--json")
        self.assertEqual(got, code, said)
        found = json.loads(out)
        self.assertTrue(valid("plugroll", found, form), out)
        self.assertTrue(valid("plugroll", found), out)
        self.assertFalse(valid("plugroll", {**found, "more": 1}), form)
        return found

    def test_forms(self):
        """Each verb, with what it can say."""
        self.head()
        self.told("list", "list")
        self.disk("nvme0n1", queue__nomerges="2")
        self.told("list", "list")
        for code, speed, words in (
                (0, 1.3, ()), (3, .7, ()),
                (5, 1.0, ("--require", "iops=1%")), (0, 1.3, ("--keep",)),
                (0, 1.3, ())):
            self.told("try", "try", "never", "nvme0n1", "--for", "1m", *words,
                      code=code, speed=speed)
        self.disk("nvme1n1")
        self.told("try", "try", "never", "nvme1n1", code=4)
        self.told("keep", "keep", "adaptive", "--all-nvme")
        self.told("undo", "undo")

    def test_summary(self):
        """Three hosts; a head counts as its paths, and a file that is none
        costs the others nothing."""
        names = []
        for host, mode, words, speed in (
                ("web1", "always", ("list",), 1),
                ("web2", "always", ("try", "never", "nvme0n1", "--for", "1m"),
                 .7),
                ("web3", "always", ("try", "never", "nvme0n1", "--for", "1m"),
                 1.3), ("web4", "adaptive", ("list",), 1)):
            self.disk("nvme0n1", mode,
                      queue__plug_policy_fallback="elevator" if mode ==
                      "adaptive" else "none")
            names.append(self.path(host + ".json"))
            found = self.told(words[0], *words, speed=speed,
                              code=3 if speed == .7 else 0)
            with open(names[-1], "w", encoding="ascii") as file:
                json.dump(found, file)
            self.rmdisk()
        found = self.told("summary", "summary", *names)
        self.assertEqual(
            [(one["what"], one["hosts"], one["disks"])
             for one in found["groups"]],
            [("not as it should be", 1, 1), ("set: adaptive", 1, 1),
             ("set: always", 1, 1), ("tried never: held", 1, 1),
             ("tried never: tripped", 1, 1)])
        self.assertEqual([one["host"] for one in found["exceptions"]],
                         ["web2", "web4"])
        code, out, _ = self.run_roll("summary", *names)
        self.assertEqual(code, 0)
        self.assertIn("web4: nvme0n1: adaptive is set, but always is in force:"
                      " elevator", out)
        self.assertRegex(out, r"never: iops by [+-]\d+\.\d% on half of 2")
        for text in "{", "[]", "3", '{"version": 9}', '{"version": 2}', "":
            self.write("bad.json", text)
            code, out, said = self.run_roll("summary", *names,
                                            self.path("bad.json"))
            self.assertEqual(code, 1)
            self.assertIn("web4: nvme0n1", out)
            self.assertIn("bad.json: ", said)

    def test_unusable(self):
        """Nothing of a file that is wrong somewhere counts."""
        row = {"disk": "nvme0n1", "set": "always", "in_force": "always",
               "kept": None, "why": None}
        self.write("good.json", json.dumps({"version": 2, "disks": [row]}))
        tried = {"version": 2, "mode": "never", "status": "held", "why": "",
                 "idle": ["nvme1n1"], "already": []}
        for bad in ({"disks": [row, {"disk": "nvme1n1"}]}, *(
                dict(tried, mode=mode, disks={"nvme0n1": {
                    "status": "held", "figures": {"iops": figures}}})
                for mode, figures in (
                    ("never", {"change": "x"}), ("never", {"change": None}),
                    ("never", {"change": float("nan")}), ("never", {}),
                    ("never", 1), (None, {"change": 0})))):
            self.write("bad.json", json.dumps({"version": 2, **bad}))
            code, out, said = self.run_roll(
                "summary", self.path("bad.json"), self.path("good.json"))
            self.assertEqual((code, said.count("not what plugroll")), (1, 1))
            self.assertEqual(out.split()[3:], ["1", "1", "set:", "always"])
        self.write("bad.json", "[" * 100000)
        self.assertEqual(self.run_roll("summary", self.path("bad.json"))[0], 1)

    def test_what_a_terminal_would_obey(self):
        """Is told by escapes, wherever it stands."""
        evil = "x\x1b[31m\nweb2: ok"
        for found in (
                {"disks": [{"disk": evil, "set": evil, "in_force": "always",
                            "kept": None, "why": evil}]},
                {"mode": evil, "status": "tripped", "why": evil, "idle": [],
                 "already": [], "disks": {evil: {
                     "status": evil, "figures": {evil: {"change": 0}}}}},
                {"mode": evil, "pattern": None, "disks": [evil]}):
            self.write("x.json", json.dumps({"version": 2, **found}))
            code, out, said = self.run_roll("summary", self.path("x.json"))
            self.assertEqual((code, said), (0, ""))
            self.assertIn("x\\x1b[31m\\nweb2: ok", out)
            self.assertNotIn("\x1b", out)
            self.assertNotIn("\nweb2", out)
        self.write("x.json", json.dumps({"version": evil}))
        self.assertNotIn("\x1b", "".join(map(str, self.run_roll(
            "summary", self.path("x.json")))))

    def test_one_name(self):
        """Files of one name, as Ansible fetches them, are of many hosts."""
        text = json.dumps({"version": 2, "disks": [{
            "disk": "nvme0n1", "set": "never", "in_force": "always",
            "kept": None, "why": "elevator"}]})
        names = ["all/h1/tmp/roll.json", "all/h2/tmp/roll.json", "h3.json"]
        for name in names:
            self.write(name, text)
        found = self.told("summary", "summary", *map(
            self.path, names + names[:1]))
        self.assertEqual([one["host"] for one in found["exceptions"]],
                         ["h1/tmp/roll", "h2/tmp/roll", "h3"])
        self.assertEqual({(one["hosts"], one["disks"])
                          for one in found["groups"]}, {(3, 3)})

    def test_hosts(self):
        """No two files are one host, whatever they are called."""
        for names, hosts in (
                (["web1", "web1.json"], ["web1", "web1.json"]),
                (["a/web1", "b/web1.json"], ["a/web1", "b/web1"]),
                (["./a.json", "x/../a.json"], ["a"]),
                (["x", "x.json", "x.json.json", "y/x.json"],
                 ["x", "x.json.json", "y/x", "x.json"])):
            self.assertEqual(sorted(fleet.hosts_of(names).values()),
                             sorted(hosts))

    def test_many_hosts(self):
        """What they have in common is looked for once."""
        with mock.patch.object(os.path, "commonpath", side_effect=
                               os.path.commonpath) as common:
            fleet.hosts_of("h%d/x.json" % number for number in range(100))
        self.assertEqual(common.call_count, 1)

    def rmdisk(self):
        """None any more."""
        for name in os.listdir(self.path("sys/block")):
            shutil.rmtree(self.path("sys/block/" + name))


class Stat(stattree.Tree):
    """plugstat."""

    def test_forms(self):
        """Of an interval, at the end, and with --policy."""
        self.mode("nullb0", "adaptive")
        self.put(stattree.DEBUGFS + "block/nullb0/hctx1/plug_adaptive",
                 "group 4\ntrial 0\nsample_requests 9\nfrom 8\n")

        def busy():
            self.counters("nullb0", stattree.BUSY)
            self.doorbells(3, 77)
        for words, forms in ((["1", "1"], ["interval", "end"]),
                             (["--policy"], ["modes"])):
            code, out, _ = self.run_tool("--json", *words, during=busy)
            self.assertEqual(code, 0)
            for text, form in zip(out.splitlines(), forms, strict=True):
                found = json.loads(text)
                self.assertTrue(valid("plugstat", found, form), text)
                self.assertTrue(valid("plugstat", found), text)
                self.assertFalse(valid("plugstat", {**found, "more": 1}))


if __name__ == "__main__":
    unittest.main()
