# SPDX-License-Identifier: GPL-2.0
"""What torture.py makes of its arguments, of a guest's lines and of a console."""
import os
import re
import subprocess
import types

import pytest

from lab.torture import races, torture

RULE = "=" * 66
RACE = f"""[    1.000000] {RULE}
[    1.000000] BUG: KCSAN: data-race in %s / %s
[    1.000000]
[    1.000000] write to 0xffff888003a1c0f8 of 4 bytes by task 41 on cpu 1:
[    1.000000]  %s+0x1a/0x40
[    1.000000]  blk_mq_submit_bio+0x2b0/0x9a0
[    1.000000]
job's own line
[    1.000000] read to 0xffff888003a1c0f8 of 4 bytes by interrupt on cpu 0:
[    1.000000]  %s+0x33/0x80
[    1.000000]  caller.isra.0+0x10/0x20
[    1.000000]
[    1.000000] Reported by Kernel Concurrency Sanitizer on:
[    1.000000] CPU: 0 UID: 0 PID: 12 Comm: fio
[    1.000000] {RULE}
"""
HEAD = """a
[    2.000000] WARNING: possible circular locking dependency detected
[    2.000000] sh/1 is trying to acquire lock:
[    2.000000] ff0 (%s
[    2.000000]
[    2.000000] but task is already holding lock:
[    2.000000] ff1 (%s
[    2.000000] Call Trace:
[    2.000000]  <TASK>
[    2.000000]  </TASK>
b"""
CYCLE = HEAD % ("fs_reclaim){+.+.}-{0:0}, at: kmem_cache_alloc_noprof+0x5/0x6",
                "&q->blkcg_mutex){+.+.}-{4:4}, at: blkg_conf_prep+0xb9/0xc00")
CYCLE_OF_IOCOST = HEAD % (
    "&q->rq_qos_mutex){+.+.}-{4:4}, at: ioc_qos_write+0x28c/0x10",
    """&q->q_usage_counter(io)#21){++++}-{0:0}, at: blk_mq_f+0x1/0x2
[    2.000000] -> #1 (fs_reclaim){+.+.}-{0:0}:
[    2.000000]        fs_reclaim_acquire+0xc2/0x110
[    2.000000]        __kmalloc_cache_node_noprof+0x5e/0x5a0
[    2.000000]        blk_iocost_init+0x4b/0x870
[    2.000000]        ioc_cost_model_write+0x582/0x8c0
[    2.000000]        cgroup_file_write+0x193/0x730""")
CYCLE_OF_LEAK = HEAD % (
    "(wq_completion)async){+.+.}-{0:0}, at: process_one_work+0xf11",
    "&q->q_usage_counter(io)#12), at: nvme_start_freeze+0xc7/0x140")
LEAK = """a
[    2.0][   T12] BUG: workqueue leaked atomic, lock or RCU: kworker/u8:3[12]
[    2.0][   T12]      preempt=0x00000000 lock=0->2 RCU=0->0 workfn=async_run
[    2.0][   T12] 2 locks held by kworker/u8:3/12:
[    2.0][   T12]  #0: f0 (&q->q_usage_counter), at: nvme_start_freeze+0x5/0x9
[    2.0][   T12]  #1: f1 (&q->q_usage_counter), at: nvme_start_freeze+0x5/0x9
[    2.0][   T12] CPU: 0 UID: 0 PID: 12 Comm: kworker/u8:3
[    2.0][   T12] Call Trace:
[    2.0][   T12]  <TASK>
[    2.0][   T12]  </TASK>
b"""
OURS = races.Ours(frozenset({"__blk_plug_stat_flush", "caller"}),
                  frozenset({"blk_mq_submit_bio"}))
TITLES = races.Ours(OURS.new - {"caller"}, OURS.changed)


def race(first, second):
    return RACE % (first, second, first.partition(".")[0], second)


def only(console):
    """The one race of a console."""
    (found,), rest = races.split_console(console)
    assert "KCSAN" not in rest
    return found


# --- arguments -------------------------------------------------------------
@pytest.mark.parametrize("text, seconds", (
    ("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200)))
def test_times(text, seconds):
    assert torture.parse_args(["--time", text])[0].seconds == seconds


@pytest.mark.parametrize("text", ("", "0", "10x", "-1", "1.5m", "m"))
def test_bad_times(text, capsys):
    """The message says what is accepted."""
    with pytest.raises(SystemExit):
        torture.parse_args([f"--time={text}"])
    assert "10m" in capsys.readouterr().err


@pytest.mark.parametrize("kind, one", (("mixed", "nvme"), ("mixed", "md_raid5"),
                                       ("neighbours", "iocost")))
def test_kinds_with_parts(kind, one):
    """A kind stands for each of them."""
    assert f"{kind}:{one}" in torture.items([kind])
    assert torture.items([f"{kind}:{one}"]) == [f"{kind}:{one}"]
    assert len(torture.items([kind])) == len(set(torture.parts(kind))) > 5


def test_kinds():
    assert torture.items(["power"]) == ["power"]
    assert set(torture.WEIGHTS) | {"mixed"} <= set(torture.known_kinds())
    assert set(torture.TAP_KINDS) <= set(torture.items([]))


@pytest.mark.parametrize("kind", ("nosuch", "mixed:nosuch", "mixed:nvme:1",
                                  "power:nvme", "neighbours:nvme"))
def test_bad_kinds(kind):
    with pytest.raises(torture.Refused):
        torture.items([kind])


@pytest.mark.parametrize("argv", (
    "--seed x", "--seed -1", "--time 0", "--kernels nosuch", "--kinds nosuch",
    "--round 1", "--modes sometimes", "--round 1 --kinds mixed:nvme"))
def test_refusals(argv, capsys):
    """Nothing is built for them; the exit status is 2."""
    with pytest.raises(SystemExit, match="2"):
        torture.main(argv.split())
    assert "torture: error: " in capsys.readouterr().err


def test_help(capsys):
    """All that can be named, and what each kind is for."""
    with pytest.raises(SystemExit) as end:
        torture.main(["--kinds", "help"])
    said = capsys.readouterr().out
    assert not end.value.code
    for kind in torture.known_kinds():
        assert re.search(f"(?m)^{kind}: [a-zA-Z].{{20}}", said)
    assert "(it does not say)" not in said
    assert "mixed:nvme_two" in said


def test_a_replay_is_of_the_same_processor(monkeypatch):
    monkeypatch.setattr(torture.arch, "IS_ARM64", True)
    assert torture.replay("debug", "power", 1, 9).startswith(
        "make torture ARCH=arm64 KERNELS=debug ")


def test_what_a_replay_names_is_accepted():
    args, wanted = torture.parse_args(
        "--round 123 --kinds mixed:nvme --kernels debug --time 7s".split())
    assert (args.round, args.seconds, wanted) == (123, 7, ["mixed:nvme"])


def test_modes():
    """Those that are named, or none, which stands for all."""
    for said, modes in (("never,adaptive", ["never", "adaptive"]), ("", [])):
        assert torture.parse_args(["--modes", said])[0].modes == modes


def test_tap():
    """The part of make check can be had."""
    args, wanted = torture.parse_args(["--tap"])
    assert (args.kernels, args.seed) == (["patched"], 1)
    assert wanted == list(torture.TAP_KINDS)


# --- what a guest says -----------------------------------------------------
def tally(*lines):
    """What is known after these lines."""
    made = torture.Tally("debug", ["mixed:nvme", "power"])
    for line in lines:
        made.take(line)
    return made


def test_counts():
    """did adds up, but of times; a round that ended was tried."""
    made = tally("round 1 mixed:nvme 77 9", "did flips 3", "did flips 4",
                 "did hog_max_us_never 9", "did hog_max_us_never 5",
                 "end 1 pass 12", "some noise")
    assert made.counters == {"flips": 7, "hog_max_us_never": 9}
    assert (made.tried(), made.untried, made.found) == (1, ["power"], [])


def test_skip_is_not_tried():
    """But it is no longer untried, and says why."""
    made = tally("round 1 power 77 9", "skipped power no mkfs.ext4",
                 "end 1 skip 0")
    assert made.tried() == 0
    assert made.untried == ["mixed:nvme"]
    assert made.skipped == {"power": "no mkfs.ext4"}


def test_found_says_how_to_replay(capsys):
    """The round's own seed, kind and kernel."""
    made = tally("round 4 mixed:nvme 77 30", "found data lost")
    assert made.found[0].text == "data lost"
    assert made.found[0].replay == (
        "make torture KERNELS=debug KINDS=mixed:nvme ROUND=77 T=30s")
    assert "ROUND=77" in capsys.readouterr().out


def test_garbled():
    """A line that cannot be read is not passed over."""
    made = tally("round 1 power 1 9", "did flips many")
    assert "garbled" in made.found[0].text


@pytest.fixture(name="lane")
def fixture_lane(monkeypatch, tmp_path):
    """A Lane whose guests say .lines and come to .result."""
    def run(variant, out, job, on_line, **how):
        given.update(job=job, **how)
        for line in given["lines"]:
            on_line(line)
        return types.SimpleNamespace(**given["result"])

    given = {"lines": [], "result": {"status": "pass", "reason": "exit 0"}}
    monkeypatch.setattr(torture.kit, "files", lambda variant: ())
    monkeypatch.setattr(torture.guest, "run", run)
    args = torture.parse_args(["--kinds", "power,mixed:nvme", "--seed", "1",
                               "--time", "60s", "--out", str(tmp_path)])[0]
    made = torture.Lane("debug", args, ["power", "mixed:nvme"], OURS)
    made.given = given
    return made


@pytest.mark.parametrize("end, found", (
    (["end 1 pass 3"], 0), (["found x", "end 1 fail 3"], 1),
    (["end 1 skip 3"], 0)))
def test_exit(lane, tmp_path, end, found):
    """What was found, or that nothing was tried, is a failure."""
    lane.given["lines"] = ["round 1 power 1 9", *end]
    lane.run_guest(60)
    assert len(lane.tally.found) == found
    assert torture.tell(lane.args, [lane]) == (end != ["end 1 pass 3"])
    assert (tmp_path / "result.json").exists()


def test_tap_tries_each(lane, capsys):
    """With another guest if one dies; what was not tried is a failure."""
    lane.args.tap = True
    lane.given["lines"] = ["round 1 power 77 9", "end 1 pass 3"]
    lane.run(0)
    assert (lane.number, lane.tally.untried) == (2, ["mixed:nvme"])
    with pytest.raises(SystemExit):
        torture.tell_tap(lane.args, [lane])
    assert "not ok 3 each was tried" in capsys.readouterr().out


@pytest.mark.parametrize("reason", ("timeout: mute", "the kernel warned: x"))
def test_a_guest_may_die(lane, reason):
    """That is found. The round that it died in was tried: the next goes on
    behind it."""
    lane.given["lines"] = ["round 1 power 77 9"]
    lane.given["result"] = {"status": "fail", "reason": reason}
    lane.run_guest(60)
    assert [one.text for one in lane.tally.found] == [reason]
    assert lane.tally.rounds["power"] == {"died": 1}
    assert lane.tally.untried == ["mixed:nvme"]


def test_rounds(lane):
    """First what was not tried yet; who has more to do gets more time."""
    lane.tally.untried = ["mixed:nvme"]
    found = lane.rounds()
    assert found == lane.rounds()
    assert found[0][0] == "mixed:nvme"
    assert {item for item, _, _ in found} == set(lane.items)
    assert {(item, seconds) for item, _, seconds in found} == {
        ("mixed:nvme", lane.slice), ("power", 4 * lane.slice)}
    assert len({seed for _, seed, _ in found}) == len(found)
    lane.number += 1                    # the next guest does others
    assert found != lane.rounds()
    lane.args.tap = True                # one of each, and no more
    lane.tally.untried = lane.items
    assert sorted(item for item, _, _ in lane.rounds()) == sorted(lane.items)
    lane.args.round = 77
    assert lane.rounds() == [("power", 77, lane.slice)]


@pytest.mark.parametrize("code, end", (
    (0, "end 1 pass"), (4, "end 1 skip"), (1, "end 1 fail"), (9, "found exit 9"),
    (124, "found still running")))
def test_the_guest_s_part(tmp_path, code, end):
    """torture.sh says how rounds end, and begins none that has no time."""
    (tmp_path / "torture.sh").symlink_to(torture.HERE / "torture.sh")
    kind = tmp_path / "kind.sh"
    kind.write_text(f"#!/bin/sh\necho $* >>{tmp_path}/ran\nexit {code}\n",
                    encoding="ascii")
    kind.chmod(0o755)
    for limit in ("9999999999", "0"):
        done = subprocess.run(
            [tmp_path / "torture.sh", limit, "5"], input="kind:part 7 9\n",
            text=True, check=False, stdout=subprocess.PIPE,
            env={"VERDICT": str(tmp_path / "verdict"), "PATH": os.environ["PATH"]})
        assert (end in done.stdout) == (limit != "0")
        assert done.returncode == (code not in (0, 4) and limit != "0")
    assert (tmp_path / "ran").read_text(encoding="ascii") == "7 9 part\n"


def test_every_kernel_is_judged(lane):
    """Known reports are taken out of each kernel's console; what all others
    say counts."""
    lane.out().mkdir()
    given = lane.settings()
    assert given["warns"](f"{LEAK}\n{CYCLE}") == ""
    assert "BUG: x" in given["warns"](f"{LEAK}\n[    3.0] BUG: x")
    assert "panic_on_warn=1" in given["append"]
    assert given["timeout"] > torture.PATIENCE


# --- whose races are -------------------------------------------------------
def test_races_elsewhere():
    """Neither function is ours; that ours lie deeper does not matter."""
    assert not only(race("a", "b")).is_ours(TITLES)
    deep = race("a", "b").replace(
        "caller.isra.0", "x+0x1/0x2\n[    1.000000]  caller")
    assert not only(deep).is_ours(OURS)


@pytest.mark.parametrize("pair", (
    ("__blk_plug_stat_flush", "b"), ("a", "blk_mq_submit_bio"),
    ("__blk_plug_stat_flush.isra.0", "b")))
def test_either_function_will_do(pair):
    """Whatever the compiler appended."""
    assert only(race(*pair)).is_ours(TITLES)


def test_a_helper_that_a_new_file_calls_is_its_doing():
    assert only(race("a", "b")).is_ours(OURS)


def test_known_races():
    """What the kernel had before is not ours; with another function is."""
    name = "blk_mq_dispatch_rq_list"
    ours = races.Ours(frozenset(), frozenset({name}))
    assert not only(race(name, name)).is_ours(ours)
    assert only(race(name, "b")).is_ours(ours)
    other = race(name, name).replace("of 4 bytes", "of 8 bytes")
    assert only(other).is_ours(ours)


@pytest.mark.parametrize("text, name", (
    (CYCLE, "blkg_conf_prep"), (CYCLE_OF_IOCOST, "ioc_qos_write"),
    (CYCLE_OF_IOCOST, "cgroup_file_write"),
    (CYCLE_OF_LEAK, "process_one_work"), (CYCLE_OF_LEAK, "nvme_start_freeze")))
def test_known_cycle(text, name):
    """What lockdep says of an unpatched kernel goes, up to its stack's end; of
    others, nothing does."""
    assert races.without_known_cycle(text) == "a\nb"
    for other in (text.replace(name, "blk_plug_policy_set"),
                  text.replace("</TASK>", "")):
        assert races.without_known_cycle(other) == other


def test_known_leak():
    """Of one function's locks alone, and of nothing but locks."""
    off = re.sub(r"\] 2 locks held.*\n(.* at: .*\n)+",
                 "] INFO: lockdep is turned off.\n", LEAK)
    assert "turned off" in off
    for text in (LEAK, CYCLE, off):
        assert races.without_known(text) == "a\nb"
    last = LEAK.rindex("nvme_start_freeze")
    for other in (LEAK[:last] + LEAK[last:].replace("nvme", "blk", 1),
                  LEAK.replace("lock=0->2 RCU=0->0", "lock=0->2 RCU=0->1"),
                  LEAK.replace("preempt=0x0", "preempt=0x1")):
        assert races.without_known(other) == other


def test_the_rest_is_kept():
    """Other warnings are judged as ever, the job's lines stay."""
    other = "[    2.000000] WARNING: CPU: 0 at block/blk-mq.c:1\n"
    found, rest = races.split_console(race("a", "b") + other + race("c", "d"))
    assert [one.names for one in found] == [["a", "b"], ["c", "d"]]
    assert "WARNING" in rest
    assert "job's own line" in rest


def test_configuration_is_no_race():
    """KCSAN says at boot how it is configured, naming itself."""
    assert races.split_console(
        "[    0.46] kcsan: strict: use CONFIG_KCSAN_STRICT=y\n") == ([], "")


@pytest.mark.parametrize("line", ("WARNING: possible circular",
                                  "BUG: KASAN: use-after-free in x"))
def test_others_draw_rules_too(line):
    """Their reports are no races, and are not lost."""
    found, rest = races.split_console(
        f"[    1.0] {RULE}\n[    1.0] {line}\n[    1.0] {RULE}\n[    2.0] more")
    assert found == []
    assert f"[    1.0] {line}" in rest.splitlines()


def test_cut_short():
    """A console may end within a report."""
    only(race("a", "b").rsplit("\n", 3)[0])


def test_the_other_side_may_be_unknown():
    console = (f"[    1.0] {RULE}\n[    1.0] BUG: KCSAN: data-race in x\n"
               f"[    1.0] {RULE}\n")
    assert only(console).names == ["x"]


# --- which functions a change touches --------------------------------------
def test_spans():
    """From head to closing brace; declarations are none."""
    text = ("static int one(int a)\n{\n\treturn a;\n}\n"
            "int declared(int a);\nstruct x {\n"
            "\tint y;\n};\n\nvoid two(int a,\n\t int b)\n{\n\tif (a)\n"
            "\t\tb = 1;\n}\n")
    assert races.functions(text) == [("one", 1, 4), ("two", 10, 15)]


def test_changed_lines():
    """Also where lines were only taken away."""
    assert races.changed_lines("@@ -1,2 +3,2 @@ x\n@@ -9 +7,0 @@") == {3, 4, 7}
