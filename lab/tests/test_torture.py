# SPDX-License-Identifier: GPL-2.0
"""What torture.py makes of its arguments, of a guest's lines and of a console."""
import contextlib
import io
import os
import re
import tempfile
import unittest
from unittest import mock

from lab.torture import races
from lab.torture import torture

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
CYCLE = """a
[    2.000000] WARNING: possible circular locking dependency detected
[    2.000000] sh/1 is trying to acquire lock:
[    2.000000] ff0 (fs_reclaim){+.+.}-{0:0}, at: kmem_cache_alloc_noprof+0x5/0x6
[    2.000000]
[    2.000000] but task is already holding lock:
[    2.000000] ff1 (&q->blkcg_mutex){+.+.}-{4:4}, at: blkg_conf_prep+0xb9/0xc00
[    2.000000] Call Trace:
[    2.000000]  <TASK>
[    2.000000]  </TASK>
b"""
CYCLE_OF_IOCOST = """a
[    2.000000] WARNING: possible circular locking dependency detected
[    2.000000] sh/1 is trying to acquire lock:
[    2.000000] ff0 (&q->rq_qos_mutex){+.+.}-{4:4}, at: ioc_qos_write+0x28c/0x10
[    2.000000]
[    2.000000] but task is already holding lock:
[    2.000000] ff1 (&q->q_usage_counter(io)#21){++++}-{0:0}, at: blk_mq_f+0x1/0x2
[    2.000000] -> #1 (fs_reclaim){+.+.}-{0:0}:
[    2.000000]        fs_reclaim_acquire+0xc2/0x110
[    2.000000]        __kmalloc_cache_node_noprof+0x5e/0x5a0
[    2.000000]        blk_iocost_init+0x4b/0x870
[    2.000000]        ioc_cost_model_write+0x582/0x8c0
[    2.000000]        cgroup_file_write+0x193/0x730
[    2.000000]
[    2.000000] -> #0 (&q->rq_qos_mutex){+.+.}-{4:4}:
[    2.000000]  <TASK>
[    2.000000]  </TASK>
b"""
CYCLE_OF_LEAK = """a
[    2.000000] WARNING: possible circular locking dependency detected
[    2.000000] kworker/u8:11/63 is trying to acquire lock:
[    2.000000] ff0 ((wq_completion)async){+.+.}-{0:0}, at: process_one_work+0xf11
[    2.000000]
[    2.000000] but task is already holding lock:
[    2.000000] ff1 (&q->q_usage_counter(io)#12), at: nvme_start_freeze+0xc7/0x140
[    2.000000]  <TASK>
[    2.000000]  </TASK>
b"""
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
OURS = races.Ours(frozenset({"blk_plug_loop_flush", "caller"}),
                  frozenset({"blk_mq_submit_bio"}))
TITLES = races.Ours(OURS.new - {"caller"}, OURS.changed)


def race(first, second):
    """The console of one report."""
    return RACE % (first, second, first.partition(".")[0], second)


class Arguments(unittest.TestCase):
    """What is refused, and what is taken."""

    def test_times(self):
        """With and without a unit."""
        for text, seconds in (("90", 90), ("90s", 90), ("30m", 1800),
                              ("2h", 7200)):
            self.assertEqual(torture.parse_time(text), seconds)

    def test_bad_times(self):
        """The message says what is accepted."""
        for text in ("", "0", "10x", "-1", "1.5m", "m"):
            with self.assertRaisesRegex(torture.Refused, "10m"):
                torture.parse_time(text)

    def test_kinds(self):
        """A kind with parts stands for each of them."""
        for kind, one in (("mixed", "nvme"), ("neighbours", "iocost")):
            self.assertIn(f"{kind}:{one}", torture.items([kind]))
            self.assertEqual(torture.items([f"{kind}:{one}"]),
                             [f"{kind}:{one}"])
            self.assertEqual(len(torture.items([kind])),
                             len(torture.parts(kind)))
        self.assertEqual(torture.items(["power"]), ["power"])

    def test_bad_kinds(self):
        """Unknown kinds, and unknown parts."""
        for kind in ("nosuch", "mixed:nosuch", "mixed:nvme:1", "power:nvme",
                     "neighbours:nvme"):
            with self.assertRaises(torture.Refused):
                torture.items([kind])

    def test_refusals(self):
        """Nothing is built for them; the exit status is 2."""
        for argv in (["--seed", "x"], ["--seed", "-1"], ["--time", "0"],
                     ["--kernels", "nosuch"], ["--kinds", "nosuch"],
                     ["--round", "1"], ["--modes", "sometimes"],
                     ["--round", "1", "--kinds", "mixed:nvme"]):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(torture.main(argv), 2, argv)
            self.assertIn("torture:", said.getvalue())

    def test_help(self):
        """All that can be named, and what each kind is for."""
        with contextlib.redirect_stdout(io.StringIO()) as said, \
                self.assertRaises(SystemExit) as end:
            torture.main(["--kinds", "help"])
        self.assertFalse(end.exception.code)
        for kind in torture.known_kinds():
            self.assertRegex(said.getvalue(), "(?m)^%s: [a-zA-Z].{20}" % kind)
        self.assertNotIn("(it does not say)", said.getvalue())
        self.assertIn("mixed:nvme_two", said.getvalue())

    def test_arm64(self):
        """A replay is of the same processor."""
        with mock.patch.object(torture.arch, "IS_ARM64", True):
            self.assertTrue(torture.replay("debug", "power", 1, 9).startswith(
                "make torture ARCH=arm64 KERNELS=debug "))

    def test_round(self):
        """What a replay message names is accepted."""
        argv = ["--round", "123", "--kinds", "mixed:nvme", "--kernels",
                "debug", "--time", "7s"]
        args, wanted = torture.parse_args(argv)
        self.assertEqual((args.round, args.seconds, wanted),
                         (123, 7, ["mixed:nvme"]))

    def test_modes(self):
        """Those that are named, or none, which stands for all."""
        for said, modes in (("never,adaptive", ["never", "adaptive"]),
                            ("", [])):
            self.assertEqual(torture.parse_args(["--modes", said])[0].modes,
                             modes)

    def test_tap(self):
        """The part of make check can be had."""
        with contextlib.redirect_stderr(io.StringIO()):
            args, wanted = torture.parse_args(["--tap"])
        self.assertEqual((args.kernels, args.seed), (["patched"], 1))
        self.assertEqual(wanted, list(torture.TAP_KINDS))

    def test_every_part_is_a_shell_function(self):
        """With its own way down, where it needs one."""
        for name in torture.parts("mixed") + torture.parts("neighbours"):
            self.assertRegex(name, r"^[a-z0-9_]+$")


class Lines(unittest.TestCase):
    """What a guest says."""

    def tally(self, *lines):
        """What is known after these lines."""
        tally = torture.Tally("debug", ["mixed:nvme", "power"])
        tally.slice = 9
        tally.log = "some.log"
        with contextlib.redirect_stdout(io.StringIO()) as self.said:
            for line in lines:
                tally.take(line)
        return tally

    def test_counts(self):
        """did adds up; a round that ended was tried."""
        tally = self.tally("round 1 mixed:nvme 77 9", "did flips 3",
                           "did flips 4", "end 1 pass 12", "some noise")
        self.assertEqual(tally.counters, {"flips": 7})
        self.assertEqual(tally.tried(), 1)
        self.assertEqual(tally.untried, ["power"])
        self.assertEqual(tally.found, [])

    def test_skip_is_not_tried(self):
        """But it is no longer untried, and says why."""
        tally = self.tally("round 1 power 77 9", "skipped power no mkfs.ext4",
                           "end 1 skip 0")
        self.assertEqual(tally.tried(), 0)
        self.assertEqual(tally.skipped, {"power": "no mkfs.ext4"})

    def test_found_says_how_to_replay(self):
        """The round's own seed, kind and kernel."""
        tally = self.tally("round 4 mixed:nvme 77 30", "found data lost")
        self.assertEqual(tally.found[0].text, "data lost")
        self.assertEqual(tally.found[0].replay,
                         "make torture KERNELS=debug KINDS=mixed:nvme ROUND=77"
                         " T=30s")
        self.assertIn("ROUND=77", self.said.getvalue())

    def test_a_guest_may_die(self):
        """The round that it died in was tried: the next goes on behind it."""
        tally = self.tally("round 1 power 77 9")
        self.assertTrue(tally.under_way)
        tally.end_round("died")
        self.assertEqual(tally.rounds["power"], {"died": 1})
        self.assertEqual(tally.untried, ["mixed:nvme"])
        self.assertEqual(tally.tried(), 1)

    def test_garbled(self):
        """A line that cannot be read is not passed over."""
        tally = self.tally("round 1 power 1 9", "did flips many")
        self.assertIn("garbled", tally.found[0].text)

    def test_exit(self):
        """What was found, or that nothing was tried, is a failure."""
        class FakeLane:
            """Of one kernel."""
            variant, number = "debug", 1

        with tempfile.TemporaryDirectory() as out:
            args = type("Args", (), {"out": out, "seed": 1, "seconds": 9,
                                     "round": None})
            for lines, code in (
                    (["round 1 power 1 9", "end 1 pass 3"], 0),
                    (["round 1 power 1 9", "end 1 skip 3"], 1),
                    (["round 1 power 1 9", "found x", "end 1 fail 3"], 1)):
                lane = FakeLane()
                lane.tally = self.tally(*lines)
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(torture.tell(args, [lane]), code, lines)
                self.assertTrue(os.path.exists(out + "/result.json"))

    def test_slow_or_stuck(self):
        """At its last round or just after it; long after, it hangs."""
        tally = self.tally("round 1 power 5 30")
        for at, slow in ((30 + torture.PATIENCE, False), (35, True)):
            with mock.patch("time.monotonic", return_value=tally.began + at):
                self.assertEqual(tally.is_just_slow(), slow)
        tally.take("end 1 pass 30")
        for at, slow in ((1, True), (torture.POWER_OFF, False)):
            with mock.patch("time.monotonic", return_value=tally.ended + at):
                self.assertEqual(tally.is_just_slow(), slow)


class Races(unittest.TestCase):
    """Whose they are."""

    def only(self, console):
        """The one race of a console."""
        found, rest = races.split_console(console)
        self.assertEqual(len(found), 1)
        self.assertNotIn("KCSAN", rest)
        return found[0]

    def test_elsewhere(self):
        """Neither function is ours; that ours lie deeper does not matter."""
        self.assertFalse(self.only(race("a", "b")).is_ours(TITLES))
        deep = race("a", "b").replace("caller.isra.0", "x+0x1/0x2\n"
                                      "[    1.000000]  caller")
        self.assertFalse(self.only(deep).is_ours(OURS))

    def test_title(self):
        """Either function will do, whatever the compiler appended."""
        for pair in (("blk_plug_loop_flush", "b"), ("a", "blk_mq_submit_bio"),
                     ("blk_plug_loop_flush.isra.0", "b")):
            self.assertTrue(self.only(race(*pair)).is_ours(TITLES), pair)

    def test_known(self):
        """What the kernel had before is not ours; with another function is."""
        name = "blk_mq_dispatch_rq_list"
        ours = races.Ours(frozenset(), frozenset({name}))
        self.assertFalse(self.only(race(name, name)).is_ours(ours))
        self.assertTrue(self.only(race(name, "b")).is_ours(ours))
        other = race(name, name).replace("of 4 bytes", "of 8 bytes")
        self.assertTrue(self.only(other).is_ours(ours))

    def test_known_cycle(self):
        """What lockdep says of an unpatched kernel goes, up to its stack's
        end; of others, nothing does."""
        for text, name in ((CYCLE, "blkg_conf_prep"),
                           (CYCLE_OF_IOCOST, "ioc_qos_write"),
                           (CYCLE_OF_IOCOST, "cgroup_file_write"),
                           (CYCLE_OF_LEAK, "process_one_work"),
                           (CYCLE_OF_LEAK, "nvme_start_freeze")):
            self.assertEqual(races.without_known_cycle(text), "a\nb")
            other = text.replace(name, "blk_plug_policy_set")
            self.assertEqual(races.without_known_cycle(other), other)
        cut = CYCLE.replace("</TASK>", "")
        self.assertEqual(races.without_known_cycle(cut), cut)

    def test_known_leak(self):
        """Of one function's locks alone, and of nothing but locks."""
        self.assertEqual(races.without_known(LEAK), "a\nb")
        self.assertEqual(races.without_known(CYCLE), "a\nb")
        off = re.sub(r"\] 2 locks held.*\n(.* at: .*\n)+",
                     "] INFO: lockdep is turned off.\n", LEAK)
        self.assertIn("turned off", off)
        self.assertEqual(races.without_known(off), "a\nb")
        last = LEAK.rindex("nvme_start_freeze")
        for other in (LEAK[:last] + LEAK[last:].replace("nvme", "blk", 1),
                      LEAK.replace("lock=0->2 RCU=0->0", "lock=0->2 RCU=0->1"),
                      LEAK.replace("preempt=0x0", "preempt=0x1")):
            self.assertEqual(races.without_known(other), other)

    def test_every_kernel_is_judged(self):
        """Known reports are taken out of each kernel's console."""
        with mock.patch("lab.torture.kit.files", return_value=[]):
            lane = torture.Lane("debug", mock.Mock(seed=1, seconds=60,
                                                   round=None), ["waits"], OURS)
        with tempfile.TemporaryDirectory() as out:
            given = lane.settings(out, 60)
        self.assertEqual(given["warns"](LEAK + "\n" + CYCLE), "")
        self.assertIn("panic_on_warn=1", given["append"])

    def test_direct_caller(self):
        """A helper that a new file calls is the new file's doing."""
        self.assertTrue(self.only(race("a", "b")).is_ours(OURS))

    def test_rest_is_kept(self):
        """Other warnings are judged as ever, the job's lines stay."""
        other = "[    2.000000] WARNING: CPU: 0 at block/blk-mq.c:1\n"
        found, rest = races.split_console(race("a", "b") + other
                                          + race("c", "d"))
        self.assertEqual([one.names for one in found],
                         [["a", "b"], ["c", "d"]])
        self.assertIn("WARNING", rest)
        self.assertIn("job's own line", rest)

    def test_configuration_is_no_race(self):
        """KCSAN says at boot how it is configured, naming itself."""
        _, rest = races.split_console(
            "[    0.46] kcsan: strict: use CONFIG_KCSAN_STRICT=y\n")
        self.assertEqual(rest, "")

    def test_other_reports_stay(self):
        """Lockdep draws rules, too: its lines stay as they are."""
        lines = ["[   12.0] " + 54 * "=", "[   12.0] WARNING: possible circular",
                 "[   12.1] " + 54 * "=", "[   13.0] more"]
        found, rest = races.split_console("\n".join(lines))
        self.assertEqual(found, [])
        self.assertIn(lines[1], rest.splitlines())

    def test_kasan_draws_rules_too(self):
        """Its report is no race, and is not lost."""
        kasan = (f"[    1.0] {RULE}\n[    1.0] BUG: KASAN: use-after-free in x\n"
                 f"[    1.0] {RULE}\n")
        found, rest = races.split_console(kasan)
        self.assertEqual(found, [])
        self.assertIn("KASAN", rest)

    def test_cut_short(self):
        """A console may end within a report."""
        found, _ = races.split_console(race("a", "b").rsplit("\n", 3)[0])
        self.assertEqual(len(found), 1)

    def test_unknown_function(self):
        """The other side of a race may be unknown."""
        console = (f"[    1.0] {RULE}\n[    1.0] BUG: KCSAN: data-race in x\n"
                   f"[    1.0] {RULE}\n")
        self.assertEqual(self.only(console).names, ["x"])


class Functions(unittest.TestCase):
    """Which functions a change touches."""

    TEXT = ("static int one(int a)\n{\n\treturn a;\n}\n"
            "int declared(int a);\nstruct x {\n"
            "\tint y;\n};\n\nvoid two(int a,\n\t int b)\n{\n\tif (a)\n"
            "\t\tb = 1;\n}\n")

    def test_spans(self):
        """From head to closing brace; declarations are none."""
        self.assertEqual(races.functions(self.TEXT),
                         [("one", 1, 4), ("two", 10, 15)])

    def test_changed_lines(self):
        """Also where lines were only taken away."""
        self.assertEqual(races.changed_lines("@@ -1,2 +3,2 @@ x\n@@ -9 +7,0 @@"),
                         {3, 4, 7})
