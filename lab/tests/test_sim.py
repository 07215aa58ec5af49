# SPDX-License-Identifier: GPL-2.0
"""The simulator, and the media that it shares with ssd_model, against
arithmetic; and what is made of its runs."""
import pathlib
import subprocess

import pytest

from lab.bench import profiles, rfc
from lab.sim import ablate, opens, sim, simconfigs, simreport, simrun
from scripts import kernel

ENGINE = []
SINGLE = "group=1 depth=1 batch=1 complete=1 "
WAIT = "depth=32 batch=32 complete=32 "


@pytest.fixture(autouse=True, scope="module")
def engine():
    if not pathlib.Path(kernel.TREE, "tools/include").is_dir():
        pytest.skip("no kernel tree: make tree")
    simrun.build()
    with simrun.Engine() as one:
        ENGINE[:] = [one]
        yield one


def run(line):
    return ENGINE[0].run("warm_ios=4000 ios=16000 " + line)


def outcome(line):
    """That of its last phase."""
    return run(line)["phases"][-1]


def near(expected, part=0.001):
    return pytest.approx(expected, rel=part)


# --- what a pencil gives -----------------------------------------------------
@pytest.mark.parametrize("line, iops, part", [
    # A core does one thing after the other.
    (SINGLE + "read_latency=fixed:10000 submit=300 reap=200 doorbell=100",
     1e9 / 10600, 0.001),
    # The last group's commands are the last to return.
    *((WAIT + f"group={group} read_latency=fixed:100000 submit=300 reap=100",
       32e9 / (32 * 300 + 32 / group * 50 + 100000 + group * 100), 0.001)
      for group in (8, 32)),
    # A group shares a doorbell.
    *((f"group={group} doorbell=800", 1e9 / (400 + 800 / group), 0.001)
      for group in simrun.GROUPS),
    # The device's own rate, however many queues; a mean, however many units.
    *((f"group=8 hctxs={hctxs} units=64 service=fixed:600000", 64e9 / 6e5, 0.01)
      for hctxs in (1, 5)),
    ("group=8 units=5 service=uniform:5000-15000", 5e9 / 1e4, 0.01),
    # Without units, cores do not disturb each other.
    ("group=8 hctxs=8 tasks=2", 16e9 / (400 + 50 / 8), 0.01),
    # The device is away a quarter of the time.
    ("group=8 units=1 service=fixed:10000 stall=250000 stall_every=1000000",
     0.75e5, 0.01),
    (SINGLE + "submit=0 reap=0 doorbell=0 read_latency=fixed:10000 "
     "stall=500000 stall_every=1000000", 0.5e5, 0.01),
    # A core is taken away a tenth of the time; its speed varies.
    ("group=8 steal=1000000 steal_every=9000000 ios=4000000",
     0.9e9 / (400 + 50 / 8), 0.02),
    ("group=8 jitter=50", 1e9 / (400 + 50 / 8), 0.01),
    # The link carries I/Os, in however many commands they come; thirds of a ns
    # add up; the media works meanwhile.
    *((f"group={group} seq=100 bandwidth_mbs=1000 read_latency=fixed:9000",
       1e9 / 4096, 0.001) for group in (1, 32)),
    ("group=32 submit=9 reap=0 doorbell=0 size=1024 bandwidth_mbs=3000",
     3e9 / 1024, 0.0001),
    (SINGLE + "submit=0 reap=0 doorbell=0 read_latency=fixed:2000 "
     "bandwidth_mbs=4096", 1e9 / 2000, 0.001),
    (SINGLE + "submit=0 reap=0 doorbell=0 units=1 service=fixed:1000 "
     "read_latency=fixed:300 time_scale=250", 1e9 / 3250, 0.001),
    (SINGLE + "submit=0 reap=0 doorbell=0 bandwidth_mbs=1 time_scale=250 "
     "size=512", 1e9 / 512 / 2500, 0.001),
    # An interrupt costs the core that takes it.
    *((SINGLE + f"read_latency=fixed:10000 irq=700 wake=300 irq_core={core}",
       1e9 / (10000 + 250 + 50 + 150 + 1000), 0.001) for core in (1, 2)),
    # The rate is what arrives.
    *(("arrive=100000 batch=4 complete=1 read_latency=fixed:20000 group=32 "
       f"poisson={poisson}", 4e4, 0.03) for poisson in (0, 1)),
    # A quarter of the time nothing is submitted.
    ("group=8 time=40000000 ios=10000000 burst=3000000 pause=1000000",
     0.75e9 / (400 + 50 / 8), 0.01),
])
def test_rate(line, iops, part):
    assert outcome(line)["iops"] == near(iops, part)


@pytest.mark.parametrize("text, mean", [
    ("uniform:500000-1500000", 1e6), ("table:0=1000,50=2000,100=10000", 3750),
    ("table:0=0,99.9=10000,100=20000", 5010),
    *((str(times), times.mean()) for times in (
        simconfigs.uniform(1e5, 0.5), simconfigs.lognormal(1e6, 0.5),
        simconfigs.uniform(1e5, 0.2).mixed(0.1, 11),
        simconfigs.lognormal(1e6, 0.9).mixed(0.3, 3)))])
def test_distributions(text, mean):
    """Their means, one command at a time."""
    got = outcome(SINGLE + f"submit=0 reap=0 doorbell=0 read_latency={text}")
    assert got["mean"] == near(mean, 0.02)


def splitmix64(seed, number):
    mask, step = 2**64 - 1, 0x9e3779b97f4a7c15
    z = (seed + number * step) & mask
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & mask
    z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
    return z ^ z >> 31


def test_draws():
    """Each command's latency is a function of seed and number; the first
    completes before it is measured."""
    assert splitmix64(0, 1) == 0xe220a8397b1dcdaf     # as published
    got = run(SINGLE + "submit=0 reap=0 doorbell=0 warm=0 ios=8 seed=7 "
              "read_latency=uniform:0-4294967295")
    count, = got["ios"]
    draws = [splitmix64(splitmix64(7, 1), 3 * number + 1) >> 32
             for number in range(1, count + 1)]
    assert count >= 8
    assert got["all"]["ns"] == sum(round(draw * (1 - 2**-32))
                                   for draw in draws)


def test_queueing():
    """Mean waits of M/D/1, as Pollaczek and Khinchine say, and of M/D/4, solved
    numerically, at half and at four fifths of what is possible."""
    for units, gap, wait in ((1, 20000, 5000), (1, 12500, 20000),
                             (4, 5000, 496.5), (4, 3125, 3860.9)):
        got = outcome("group=1 depth=4096 batch=1 complete=1 submit=0 reap=0 "
                      f"doorbell=0 poisson=1 arrive={gap} units={units} "
                      "service=fixed:10000 ios=100000")
        assert got["mean"] - 10000 == near(wait, 0.1)


def test_other_core():
    line = "group=32 irq=700 single=1 irq_core="
    assert outcome(line + "2")["iops"] > 1.2 * outcome(line + "1")["iops"]


def test_phases():
    """Each has its own figures; phases that alternate: all is their mean."""
    load = "depth={0} batch={0} complete={0} read_latency=fixed:{1} "
    loads = [load.format(*words) for words in ((1, 100000), (1, 20000),
                                               (2, 20000))]
    rates = [outcome("group=8 " + one)["iops"] for one in loads]
    got = run("group=8 warm=0 cycles=5 time=50000000 ios=10000000 " +
              "then ".join(loads))
    assert got["all"]["ns"] == near(5 * 3 * 50000000, 0.02)
    assert got["all"]["iops"] == near(sum(rates) / 3, 0.01)
    for phase, rate in zip(got["phases"], rates):
        assert phase["iops"] == near(rate, 0.01)


@pytest.mark.parametrize("words, ms", [
    ("", (50, 200)), ("warm=120000000", (50, 120)),
    ("warm=20000000", (20, 20)), ("warm=0", (0, 0)),
    ("warm_ios=7000", (50, 70)), ("warm_ios=3000", (30, 30))])
def test_beginnings(words, ms):
    """The first 50 and 200 ms, of which the measured part has nothing, or as
    much of them as there is before it."""
    got = outcome(SINGLE + "read_latency=fixed:9600 doorbell=0 ios=1000 "
                  f"warm_ios=1000000 {words}")
    for name, length in zip(simrun.BEGINNINGS, ms):
        assert got[name]["ios"] == pytest.approx(100 * length, abs=2)
        if length:
            assert got[name]["iops"] == near(1e5)
            assert got[name]["p99"] == near(10000, 0.01)
    assert got["ns"] == near(1002 * 10000, 0.002)


def test_latencies():
    """Each I/O takes 10 us and one comes every 9: the more have come, the
    longer the last one waits."""
    got = run(SINGLE + "arrive=9000 read_latency=fixed:9600 doorbell=0 "
              "warm_ios=1000000 ios=4000")
    phase = got["phases"][0]
    assert phase["first50"]["p99"] == near(0.99 * 5000 * 1000, 0.01)
    assert phase["first200"]["p99"] == near(0.99 * 20000 * 1000, 0.01)
    for part in (phase, got["all"]):
        assert part["mean"] == near(102000 * 1000)
        assert part["ns"] == near(4000 * 10000)
    # an idle link is as fast at any time
    got = outcome(SINGLE + "arrive=99000 bandwidth_mbs=1000 submit=0 doorbell=0 "
                  "reap=0")
    assert got["mean"] == pytest.approx(4096, abs=1)
    # its own turn is in an I/O's latency: groups of 32 of 64
    got = outcome("group=32 arrive=1000000 depth=64 batch=64 complete=1 "
                  "submit=1000 doorbell=0 reap=0 read_latency=fixed:10000")
    assert got["mean"] == pytest.approx(64 * 1000 + 5000, abs=10)


def test_mixed_loads():
    """Queues take the loads in turn."""
    got = run("group=1 hctxs=3 read_latency=fixed:100000 warm=0 time=100000000 "
              "ios=10000000 depth=8 batch=1 complete=1 also depth=2")
    first, second, third = got["ios"]
    assert first == near(third, 0.01)
    assert first == near(4 * second, 0.03)


@pytest.mark.parametrize("words, requests, doorbells", [
    *((f"group={group} seq=100", 1 / 32, 1 / 32) for group in (1, 8, 32)),
    ("group=32 seq=0", 1, 1 / 32), ("group=8 seq=0", 1, 1 / 8),
    # 31 I/Os of 4 KiB fit in 127 KiB, and the last one does not
    ("group=32 seq=100 max_size=130048", 2 / 32, 1 / 32),
    # 128 KiB are held until the next request comes
    ("group=32 seq=100 depth=64 batch=64 max_size=131072", 2 / 64, 2 / 64),
    # of two streams, every other one goes on
    ("group=32 seq=100 streams=2 ios=100000", (1 + 31 / 2) / 32, 1 / 32),
    # a submission of any size up to 32
    ("group=32 seq=0 ragged=1 ios=100000", 1, 1 / 16.5)])
def test_merges(words, requests, doorbells):
    got = outcome("doorbell=80 submit=300 join=200 reap=150 reap_join=100 " +
                  words)
    assert got["requests"] == near(requests, 0.02)
    assert got["doorbells"] == near(doorbells, 0.02)
    if "max_size" not in words and "ragged" not in words:
        ns = requests * 450 + (1 - requests) * 300 + doorbells * 80
        assert got["iops"] == near(1e9 / ns, 0.01)


# --- one description of a device for both models -----------------------------
@pytest.mark.parametrize("name, words, iops, part", [
    # what ssd_model was fitted to, by an event model of 0.4 us per I/O
    *((name, "group=32", rfc.TABLES[name, "rand4k-s32"][0], 0.03)
      for name in ("gen4", "gen5")),
    *((name, "group=32 size=131072 seq=0 max_size=131072",
       rfc.TABLES[name, "seq128k-s32"][0], 0.01) for name in ("gen4", "gen5")),
    ("saturated", "group=32", 64e9 / 60000, 0.01),
    ("lockstep", WAIT + "group=32", 32e9 / (32 * 250 + 50 + 104850 + 150),
     0.01),
    ("vm", SINGLE, 1e9 / (60000 + 400 + 2000), 0.01),
    ("optane", "group=32", 7e9 / 4096, 0.01),
    ("null", "group=1", 1e9 / 400, 0.01)])
def test_profiles(name, words, iops, part):
    """profiles.ini describes plugsim's devices, too."""
    device = simrun.device(profiles.load()[name])
    assert outcome(f"{device} {words}")["iops"] == near(iops, part)


# --- what the command line says ----------------------------------------------
LONG = ",".join(f"{n}={n}" for n in range(16)) + ",100=1"


@pytest.mark.parametrize("line, text", [
    ("depth=0", "1 to 65536"), ("depth=x", "1 to"), ("units=65537", "0 to 65536"),
    ("nothing=1", "--help"), ("depth=4", "batch"), ("ios", "key=value"),
    ("hctxs=65", "1 to 64"), ("ragged=2", "0 to 1"), ("streams=9", "1 to 8"),
    ("seq=101", "0 to 100"), ("burst=0", "1 to"),
    ("size=8192 max_size=4096", "below size"), ("cycles=0", "1 to 10000"),
    ("stall=5", "stall_every"), ("steal=5", "steal_every"),
    ("also depth=8", "batch is above"), (4 * "also ", "up to 4 loads"),
    (8 * "then ", "up to 8 phases"),
    *((f"read_latency={text}", "accepted: fixed:NS") for text in (
        "", "0", "fixed", "fixed:", "fixed:-1", "fixed:+1", "fixed:1x",
        "fixed:0x10", "fixed:10000000001", "fixed:18446744073709551617",
        "Fixed:1", "uniform:", "uniform:1", "uniform:1-", "uniform:2-1",
        "uniform:1-2-3", "table:", "table:0=1", "table:100=1",
        "table:0=1,50=2", "table:10=1,100=2", "table:0=1,50=2,50=3,100=4",
        "table:0=1,60=2,50=3,100=4", "table:0=2,100=1", "table:0=1,100=2,",
        "table:,0=1,100=2", "table:0=1,101=2", "table:0=1,100.1=2",
        "table:0=1,5.=2,100=3", "table:0=1,.5=2,100=3", "table:0,100",
        "table:0=1,50.00000001=2,100=3", "table:0=,100=1", f"table:{LONG}"))])
def test_refused(line, text):
    """What can not be simulated is said, with what is accepted."""
    done = subprocess.run([simrun.PROGRAM], input=line + "\n", text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


@pytest.mark.parametrize("words", (["--configs", "0"], ["--seed", "x"],
                                   ["--bogus"]))
def test_command_line(words, capsys):
    with pytest.raises(SystemExit) as ended:
        sim.main(words)
    assert ended.value.code == 2
    assert "sim: error" in capsys.readouterr().err


def test_only(capsys):
    """A configuration with every group."""
    sim.main(["--only", "11"])
    out = capsys.readouterr().out
    assert "adaptive, ends at" in out and "plugsim 'seed=2 " in out


# --- the controller's runs ---------------------------------------------------
def test_deterministic():
    """The same words, the same figures, whatever ran before."""
    line = "read_latency=uniform:5000-9000 jitter=5 seed=5"
    first = run(line)
    run("read_latency=uniform:5000-9000 seed=4")
    assert run(line) == first
    assert run(line.replace("seed=5", "seed=6"))["phases"] != first["phases"]


def test_replay(engine):
    """A record can be had again: by its number, and by its line."""
    config = simconfigs.generate(1, 11)
    record = simrun.judge_one(engine, config)
    assert simrun.judge_one(engine, simconfigs.generate(1, 11)) == record
    got = engine.run(record["line"])
    assert got["final_group"] == record["final"]
    assert got["all"]["iops"] == record["iops"]


GEN4 = "read_latency=uniform:62522-145886 ios=60000 warm_ios=40000"


def test_trace():
    """A line per sample, in order of time and without a gap; a flush sends
    out one request to 32."""
    text = subprocess.run([simrun.PROGRAM, "--trace", GEN4], text=True,
                          check=True, stdout=subprocess.PIPE).stdout
    samples = [[float(word) for word in row.split("\t")[1:]]
               for row in text.splitlines() if row.startswith("sample")]
    assert len(samples) > 3
    assert all(one[0] < other[0] for one, other in zip(samples, samples[1:]))
    assert sum(one[5] for one in samples) == samples[-1][0]
    assert all(1 <= one[2] <= 32 and one[7] <= one[6] <= 32 * one[7]
               for one in samples)


def test_table_matches():
    """Each text is there once, in the controller that is mailed."""
    source = ablate.CONTROLLER.read_text("ascii")
    for name in ablate.RULES:
        assert ablate.substituted(source, name) != source
    for wrong in (source.replace("MAX_OUTLIERS", "ODD"), source + source):
        with pytest.raises(simrun.SimError, match="another load"):
            ablate.substituted(wrong, "another load")


def test_knocked_out(engine):
    """Without its steps the controller never leaves 32."""
    load = GEN4 + " depth=256"
    assert engine.run(load)["changes"] > 0
    source = ablate.CONTROLLER.read_text("ascii")
    for name in "quarter", "half":
        source = ablate.substituted(source, name)
    with simrun.Engine(ablate.engine_of("no steps", source)) as other:
        assert other.run(load)["changes"] == 0


def test_worth():
    """Pairs: what is common to both sides is no error."""
    records = [{"class": "one queue", "streams": part > 0.5, "values": {
        None: part, "same": part, "rule": part + 0.01 * (part > 0.1)}}
               for part in (0.0, 0.2, 0.4, 0.6)]
    assert ablate.worth(records, "same") == (0, 0, 0)
    mean, error, differ = ablate.worth(records, "rule")
    assert (mean, error, differ) == (near(0.75), near(0.25), 3)
    assert [len(ablate.of_column(records, column))
            for column in ablate.COLUMNS] == [4, 3, 1, 4, 0, 0, 0, 0]
    found = ablate.figures(records, ["same", "rule"])
    assert ablate.harmless(found) == ["same"]
    assert "+0.750 +- 0.250*" in ablate.table(found)


# --- the configurations, and what is made of the figures ---------------------
def test_configurations():
    """They are the same each time, and of every kind; bursts are measured
    whole."""
    some = [simconfigs.generate(2, index) for index in range(300)]
    for index, config in enumerate(some):
        assert config == simconfigs.generate(2, index)
        assert config.in_flight() <= simconfigs.MOST_IN_FLIGHT
        lengths = config.lengths(True)
        assert lengths["warm"] == (0 if config.period else 10**9)
        for one in (load for phase in config.phases for load in phase.loads):
            assert one["complete"] <= one["batch"] <= one["depth"]
        if "pause" in one and not config.period:
            assert lengths["time"] % (one["burst"] + one["pause"]) == 0
            assert lengths["time"] <= simconfigs.MAX_NS
    assert {one.of_class() for one in some} == set(simconfigs.CLASSES)
    assert {"sequential", "bursts", "submissions of any size",
            "queues with mixed loads"} <= {
                trait for one in some for trait in one.traits()}
    periods = [one.period for one in some if one.period]
    assert 10**7 <= min(periods) < max(periods) / 20 <= 10**9 / 20
    # plugsim takes them all; a phase that does not begin takes no time
    for config in some:
        run(config.line(8, 1) + " ios=1 warm=0 warm_ios=0 time=1 cycles=1")


def test_opens(engine):
    """Loads that are compared with always: the same each time, of every shape;
    a device may be the bench's own. A ramp rises or falls."""
    some = [opens.generate(2, index) for index in range(80)]
    assert some == [opens.generate(2, index) for index in range(80)]
    assert {one.kind for one in some} == {*opens.SHAPES, *opens.CHANGING}
    for config in some:
        loads = [phase.loads[0] for phase in config.phases]
        opened = config.kind in opens.SHAPES
        assert opened == all(one.get("arrive", 0) > 0 for one in loads)
        if config.kind == "ramp":
            gaps = [one["arrive"] for one in loads]
            assert gaps in (sorted(gaps), sorted(gaps)[::-1])
        run(config.line(32, 1) + " ios=1 warm=0 warm_ios=0 time=1 cycles=1")
    commit = next(one for one in some if one.kind == "commits").phases[0]
    assert 96 <= commit.loads[0]["batch"] <= 512
    assert commit.loads[0]["arrive"] >= 5 * opens.MS
    assert 1000 <= commit.words["doorbell"] <= 3000
    assert opens.times("uniform:10-20", 2).mean() == 30
    assert opens.times("fixed:10", 2).mean() == 20
    record = opens.judge(engine, some[1])
    assert record == opens.judge(engine, some[1])
    assert record["iops"] == near(1, 0.01)


def test_against_always(capsys):
    """Means and the worst: of IOPS the least, of the others the most."""
    records = [{"shape": "commits", "latency": 1.5, "p99": 3.0, "iops": 0.75,
                "doorbells": 4.0},
               {"shape": "ramp", "latency": 0.5, "p99": 1.0, "iops": 1.25,
                "doorbells": 1.0}]
    found = simreport.against_always(records)
    assert found["open"]["all"] == {
        "n": 2, "latency": [1, 1.5], "p99": [2, 3], "doorbells": [2.5, 4],
        "iops": [1, 0.75], "slower_by_1%": 0.5}
    assert found["open"]["ramp"]["n"] == 1 and found["changing"] == {}
    assert "3.000" in capsys.readouterr().out


def test_groups():
    """Groups that can not differ are not run."""
    config = simconfigs.Configuration(
        0, "closed", {}, (simconfigs.Phase({}, ({"batch": 4},)),))
    assert simrun.groups_of(config) == [1, 2, 32]
    assert [simconfigs.range_class(value, (1, 4, 16))
            for value in (1, 2, 4, 16, 17)] == [
                "1", "2 to 4", "2 to 4", "5 to 16", "17 and more"]


def test_shares():
    """What a submitter has, as a ratio to always."""
    for own, always, least, largest in (
            ([50, 150], [200, 200], 0.5, 1.5), ([10, 30], [100, 300], 1, 1)):
        assert simrun.shares([(32, {0: {"ios": own}, 32: {"ios": always}})]) \
            == {"least": least, "largest": largest}


def result(iops, begun=(100, 100), ios=5000):
    first = {name: {"iops": rate, "ios": ios, "p99": 1}
             for name, rate in zip(simrun.BEGINNINGS, begun)}
    part = {"iops": iops, "late": iops, "mean": 1, "p99": 1, "doorbells": 1,
            "requests": 1}
    return {"all": part, "phases": [{**part, **first}], "final_group": 8,
            "ios": [1, 1]}


def test_figures(capsys):
    """Beginnings are compared with always and with the best, and are in no
    other figure; those of few I/Os are none. All is in the report."""
    config = simconfigs.Configuration(0, "closed", {"hctxs": 1, "tasks": 2}, ())
    runs = {0: result(110, (80, 95)), 32: result(100), 8: result(110, (125, 125))}
    got = simrun.figures(config, [(8, runs)])
    for key, value in (("first50", 0.36), ("first50_to_always", 0.8),
                       ("first200", 0.24), ("first200_to_always", 0.95),
                       ("regret", 0), ("late", 0), ("always", 1 / 11)):
        assert got[key] == pytest.approx(value)
    few = simrun.figures(config, [(8, {**runs, 32: result(100, ios=1999)})])
    assert "first50" not in few and "first50_to_always" not in few
    got.update(kind="closed", index=5, traits=["polled"], **{
        "class": "several submitters", "first_regret": 0.125,
        "first_always": 0.25, "doorbells": 3.0, "doorbells_always": 2.0})
    still = {**got, "always": 0.001}
    opened = {**got, "kind": "open", "p99": 1.25, "first50_p99": 2.5}
    found = simreport.report([got, still, opened], 3)
    assert found["regret"]["adaptive"]["mean"] == 0.125
    out = capsys.readouterr().out
    for text in ("12.50%", "first 50 ms", "0.8000", "0.9500", "1.2500", "2.5000",
                 "nothing to gain", "--seed 3 --only 5", "share of a submitter", "MISSED"):
        assert text in out


def test_best_is_chosen_by_others():
    """A seed that is lucky for a group does not measure it."""
    judge = simrun.Judge(None, simconfigs.Configuration(
        0, "closed", {}, (simconfigs.Phase({}, ({"batch": 2},)),)))
    found = iter([8, 20, 10] + 3 * [8, 9, 10])
    judge.run = lambda groups, *_: {group: result(next(found))
                                    for group in groups}
    rounds = judge.look_again()
    assert [best for best, _ in rounds] == [32, 1, 1, 1]
    assert simrun.regret(rounds, 0, "all.iops") == pytest.approx(1 - 32 / 37)


def test_summary():
    got = simreport.summary(list(range(1, 101)))
    assert (got["n"], got["mean"], got["p50"], got["worst"]) == (
        100, 50.5, 51, 100)
    assert not simreport.summary([])


@pytest.mark.parametrize("part, worst", [(0.01, 1.0), (0.5, 3.0)])
def test_worst(part, worst):
    """Of what should be large it is the least."""
    table = simreport.ratio_table("", {"a": [1.0, 2.0, 3.0]}, part)
    assert table[1][-1] == worst


def test_interrupted():
    """After Ctrl-C, what is done stays, and nothing is waited for that has not
    begun; with nothing done, there is nothing to report."""
    def judge_until(last):
        def judge(index):
            if index == last:
                raise KeyboardInterrupt
            return index
        return lambda enter: judge
    found = simrun.all_of(judge_until(3), range(1000), 1, "sim")
    assert found[:3] == [0, 1, 2] and 3 not in found
    with pytest.raises(KeyboardInterrupt):
        simrun.all_of(judge_until(0), range(1), 1, "sim")


def test_best_of():
    """The faster; of two that are equal the larger, which saves doorbells."""
    speeds = {1: 5, 8: 9, 32: 9, simrun.ADAPTIVE: 99}
    assert simrun.best_of([{group: {"all": {"iops": iops}}
                            for group, iops in speeds.items()}]) == 32
