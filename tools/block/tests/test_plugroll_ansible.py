# SPDX-License-Identifier: GPL-2.0
"""Tests of the Ansible role, with a plugroll that only says what it should.
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from faketree import TOOLS

ANSIBLE = os.path.join(TOOLS, "packaging/ansible")
PLAY = [{"hosts": "localhost", "connection": "local", "gather_facts": False,
         "roles": ["plug_policy"]}]
PROGRAM = """#!/bin/sh
echo "$*" >>%(place)s/calls
case $1 in
try)
    [ %(code)d = 1 ] ||
        echo '{"why": "as it was told", "changed": %(changed)s,
               "disks": {"a": {"status": "%(status)s"}}}'
    exit %(code)d ;;
*) echo '{"changed": %(changed)s}' ;;
esac
"""


@unittest.skipUnless(shutil.which("ansible-playbook"),
                     "no ansible-playbook: install ansible-core")
class RoleTest(unittest.TestCase):
    """The role on this host."""

    def play(self, code=0, changed="true", status="held", **variables):
        """(exit code, what plugroll was called with, what Ansible said)"""
        with tempfile.TemporaryDirectory() as place:
            program = os.path.join(place, "plugroll")
            with open(program, "w", encoding="ascii") as file:
                file.write(PROGRAM % {"place": place, "code": code,
                                      "changed": changed, "status": status})
            os.chmod(program, 0o755)
            with open(os.path.join(place, "play.json"), "w",
                      encoding="ascii") as file:
                json.dump(PLAY, file)
            with open(os.path.join(place, "ansible.cfg"), "wb"):
                pass
            said = self.run_play(place, dict(
                variables, plug_policy_command=program,
                plug_policy_poll=1))
            try:
                with open(os.path.join(place, "calls"),
                          encoding="ascii") as file:
                    calls = file.read().splitlines()
            except FileNotFoundError:
                calls = []
            return said.returncode, calls, said.stdout + said.stderr

    @staticmethod
    def run_play(place, variables):
        """ansible-playbook, with nothing of the user's own."""
        return subprocess.run(
            ["ansible-playbook", "-i", "localhost,", "-e",
             json.dumps(variables), os.path.join(place, "play.json")],
            check=False, capture_output=True, text=True, timeout=120, env={
                **os.environ, "HOME": place, "ANSIBLE_ASYNC_DIR": place,
                "ANSIBLE_CONFIG": os.path.join(place, "ansible.cfg"),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_ROLES_PATH": os.path.join(ANSIBLE, "roles")})

    def test_held(self):
        """Tried and kept, at once, so that disks are left alone that were
        not tried; not changed the second time, as it was kept already."""
        for changed, number in (("true", 1), ("false", 0)):
            code, calls, said = self.play(changed=changed)
            self.assertEqual((code, calls), (0, [
                "try adaptive --all-nvme --json --for 10m --guard "
                "p99=10%,iops=-2% --keep"]), said)
            self.assertIn("changed=%d" % number, said)

    def test_tripped(self):
        """The host fails with the reason, and keeps nothing."""
        code, calls, said = self.play(
            3, "false", plug_policy_disks=["nvme0n1"],
            plug_policy_keep_untested=True)
        self.assertEqual((code, len(calls)), (2, 1), said)
        self.assertIn("try adaptive nvme0n1 --json", calls[0])
        self.assertIn("as it was told", said)

    def test_unknown(self):
        """Kept untested only if asked for."""
        self.assertEqual(len(self.play(4, "false")[1]), 1)
        code, calls, said = self.play(4, "false",
                                      plug_policy_keep_untested=True)
        self.assertEqual((code, calls[1:]), (0, [
            "keep adaptive --all-nvme --json"]), said)
        self.assertNotIn("--keep", calls[0])
        self.assertIn("changed=0", said)

    def test_no_gain(self):
        """A gain is asked for; without it nothing is kept, and the host does
        not fail; also if of another disk nothing is known."""
        for result in 5, 4:
            code, calls, said = self.play(
                result, "false", "no gain", plug_policy_require="iops=1%",
                plug_policy_keep_untested=True)
            self.assertEqual((code, len(calls)), (0, 1), said)
            self.assertIn("--require iops=1%", calls[0])

    def test_tried(self):
        """Only tried."""
        code, calls, said = self.play(changed="false",
                                      plug_policy_state="tried")
        self.assertEqual((code, len(calls)), (0, 1), said)
        self.assertNotIn("--keep", calls[0])

    def test_refused(self):
        """What plugroll refuses, without any JSON, fails the host."""
        code, calls, said = self.play(1, "false")
        self.assertEqual((code, len(calls)), (2, 1), said)

    def test_states(self):
        """Taken back; a word that is none."""
        code, calls, said = self.play(plug_policy_state="absent")
        self.assertEqual((code, calls), (0, ["undo --json"]))
        self.assertIn("changed=1", said)
        code, calls, said = self.play(plug_policy_state="gone")
        self.assertEqual((code, calls), (2, []))
        self.assertIn("accepted: kept, tried, absent", said)


ROLLOUT = """#!/bin/sh
echo "begin ${0##*/}" >>%(place)s/calls
n=0     # until so many have begun
until [ "$(grep -c begin %(place)s/calls)" -ge %(together)d ] ||
    [ $((n += 1)) -gt 300 ]; do sleep .2; done
echo "end ${0##*/}" >>%(place)s/calls
case ${0##*/} in %(bad)s) code=3 ;; *) code=0 ;; esac
echo '{"why": "as it was told", "changed": true}'
exit $code
"""


@unittest.skipUnless(shutil.which("ansible-playbook"),
                     "no ansible-playbook: install ansible-core")
class RolloutTest(unittest.TestCase):
    """rollout.yml, on hosts that are this one."""

    def roll_out(self, number, bad, together=1, **variables):
        """(exit code, what was begun and ended on hosts h1, h2, ...); the
        guard of one trips. So many try together."""
        hosts = ["h%d" % (host + 1) for host in range(number)]
        with tempfile.TemporaryDirectory() as place:
            for place_of, host in enumerate(hosts):
                program = os.path.join(place, host)
                with open(program, "w", encoding="ascii") as file:
                    file.write(ROLLOUT % {"place": place, "bad": bad,
                                          "together": together * (
                                              1 + place_of // together)})
                os.chmod(program, 0o755)
            with open(os.path.join(place, "ansible.cfg"), "wb"):
                pass
            variables.update(
                plug_policy_command=place + "/{{ inventory_hostname }}",
                plug_policy_poll=1, ansible_become=False,
                ansible_connection="local")
            done = subprocess.run(
                ["ansible-playbook", "-i", ",".join(hosts) + ",", "--forks",
                 "1", "-e", json.dumps(variables), "rollout.yml"], cwd=ANSIBLE,
                check=False, capture_output=True, text=True, timeout=300, env={
                    **os.environ, "HOME": place, "ANSIBLE_ASYNC_DIR": place,
                    "ANSIBLE_CONFIG": os.path.join(place, "ansible.cfg"),
                    "LC_ALL": "C.UTF-8"})
            with open(os.path.join(place, "calls"), encoding="ascii") as file:
                return done.returncode, file.read().split("\n")[:-1]

    def test_steps(self):
        """1, 5%, 25%: the third step has the bad host, and no other step
        follows."""
        code, calls = self.roll_out(8, "h3")
        self.assertEqual((code, [call for call in calls if "begin" in call]),
                         (2, ["begin h%d" % host for host in (1, 2, 3, 4)]))

    def test_other_steps(self):
        """As many may fail as are said to; and the hosts of a step try at a
        time, with one fork."""
        code, calls = self.roll_out(
            4, "h1", together=2, plug_policy_steps=[2, "100%"],
            plug_policy_max_fail=50)
        self.assertEqual(code, 2)
        self.assertEqual(calls[:2] + calls[4:6], [
            "begin h1", "begin h2", "begin h3", "begin h4"])


if __name__ == "__main__":
    unittest.main()
