# SPDX-License-Identifier: GPL-2.0
"""The Ansible role and rollout.yml, with a plugroll that only says what it
should."""
import json
import os
import shutil
import subprocess

import pytest

from fakehost import TOOLS

ANSIBLE = TOOLS / "packaging/ansible"
PLAY = [{"hosts": "localhost", "connection": "local", "gather_facts": False,
         "roles": ["plug_policy"]}]
PROGRAM = """#!/bin/sh
echo "$*" >>{place}/calls
case $1 in
try)
    [ {code} = 1 ] ||
        echo '{{"why": "as it was told", "changed": {changed},
               "disks": {{"a": {{"status": "{status}"}}}}}}'
    exit {code} ;;
*) echo '{{"changed": {changed}}}' ;;
esac
"""
ROLLOUT = """#!/bin/sh
echo "begin ${{0##*/}}" >>{place}/calls
n=0     # until so many have begun
until [ "$(grep -c begin {place}/calls)" -ge {together} ] ||
    [ $((n += 1)) -gt 300 ]; do sleep .2; done
echo "end ${{0##*/}}" >>{place}/calls
case ${{0##*/}} in {bad}) code=3 ;; *) code=0 ;; esac
echo '{{"why": "as it was told", "changed": true}}'
exit $code
"""

pytestmark = pytest.mark.skipif(
    not shutil.which("ansible-playbook"),
    reason="no ansible-playbook: install ansible-core")


def ansible(place, *words, cwd=None, **variables):
    """(exit code, what plugroll was called with, what Ansible said), with
    nothing of the user's own."""
    (place / "ansible.cfg").touch()
    done = subprocess.run(
        ["ansible-playbook", "-e", json.dumps(
            {**variables, "plug_policy_poll": 1}), *words], cwd=cwd,
        check=False, capture_output=True, text=True, env={
            **os.environ, "HOME": str(place), "ANSIBLE_ASYNC_DIR": str(place),
            "ANSIBLE_CONFIG": str(place / "ansible.cfg"),
            "LC_ALL": "C.UTF-8", "ANSIBLE_ROLES_PATH": str(ANSIBLE / "roles")})
    calls = place / "calls"
    return (done.returncode,
            calls.read_text().splitlines() if calls.exists() else [],
            done.stdout + done.stderr)


@pytest.fixture
def play(tmp_path):
    def call(code=0, changed="true", status="held", **variables):
        program = tmp_path / "plugroll"
        program.write_text(PROGRAM.format(place=tmp_path, code=code,
                                          changed=changed, status=status))
        program.chmod(0o755)
        (tmp_path / "play.json").write_text(json.dumps(PLAY))
        return ansible(tmp_path, "-i", "localhost,", tmp_path / "play.json",
                       plug_policy_command=str(program), **variables)
    return call


@pytest.mark.parametrize("changed, number", [("true", 1), ("false", 0)])
def test_held(play, changed, number):
    """Tried and kept, at once, so that disks are left alone that were not
    tried; not changed the second time, as it was kept already."""
    code, calls, said = play(changed=changed)
    assert (code, calls) == (0, ["try adaptive --all-nvme --json --for 10m "
                                 "--guard p99=10%,iops=-2% --keep"]), said
    assert f"changed={number}" in said


def test_tripped(play):
    """The host fails with the reason, and keeps nothing."""
    code, calls, said = play(3, "false", plug_policy_disks=["nvme0n1"],
                             plug_policy_keep_untested=True)
    assert (code, len(calls)) == (2, 1), said
    assert "try adaptive nvme0n1 --json" in calls[0]
    assert "as it was told" in said


@pytest.mark.parametrize("untested, calls", [
    (False, []), (True, ["keep adaptive --all-nvme --json"])])
def test_unknown(play, untested, calls):
    """Kept untested only if asked for."""
    code, called, said = play(4, "false", plug_policy_keep_untested=untested)
    assert called[1:] == calls
    if untested:
        assert code == 0, said
        assert "--keep" not in called[0]
        assert "changed=0" in said


@pytest.mark.parametrize("result", [5, 4])
def test_no_gain(play, result):
    """A gain is asked for; without it nothing is kept, and the host does not
    fail; also if of another disk nothing is known."""
    code, calls, said = play(result, "false", "no gain",
                             plug_policy_require="iops=1%",
                             plug_policy_keep_untested=True)
    assert (code, len(calls)) == (0, 1), said
    assert "--require iops=1%" in calls[0]


def test_tried(play):
    code, calls, said = play(changed="false", plug_policy_state="tried")
    assert (code, len(calls)) == (0, 1), said
    assert "--keep" not in calls[0]


def test_refused(play):
    """What plugroll refuses, without any JSON, fails the host."""
    code, calls, said = play(1, "false")
    assert (code, len(calls)) == (2, 1), said


@pytest.mark.parametrize("state, code, calls, told", [
    ("absent", 0, ["undo --json"], "changed=1"),
    ("gone", 2, [], "accepted: kept, tried, absent")])
def test_states(play, state, code, calls, told):
    """Taken back; a word that is none."""
    found = play(plug_policy_state=state)
    assert found[:2] == (code, calls)
    assert told in found[2]


@pytest.mark.parametrize("number, bad, together, variables, begun", [
    # 1, 5%, 25%: the third step has the bad host, and no other step follows
    (8, "h3", 1, {}, ["h1", "h2", "h3", "h4"]),
    # as many may fail as are said to; and the hosts of a step try at a time,
    # with one fork
    (4, "h1", 2, {"plug_policy_steps": [2, "100%"],
                  "plug_policy_max_fail": 50}, ["h1", "h2", "h3", "h4"])])
def test_rollout(tmp_path, number, bad, together, variables, begun):
    """On hosts that are this one, one of which has a guard that trips."""
    hosts = [f"h{host + 1}" for host in range(number)]
    for place, host in enumerate(hosts):
        program = tmp_path / host
        program.write_text(ROLLOUT.format(
            place=tmp_path, bad=bad,
            together=together * (1 + place // together)))
        program.chmod(0o755)
    code, calls, _ = ansible(
        tmp_path, "-i", ",".join(hosts) + ",", "--forks", "1", "rollout.yml",
        cwd=ANSIBLE, ansible_become=False, ansible_connection="local",
        plug_policy_command=f"{tmp_path}/{{{{ inventory_hostname }}}}",
        **variables)
    assert code == 2
    assert [call for call in calls if "begin" in call] == [
        f"begin {host}" for host in begun]
    if together == 2:
        assert calls[:2] + calls[4:6] == [f"begin {host}" for host in begun]
