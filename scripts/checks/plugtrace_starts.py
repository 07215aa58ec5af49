#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Are the figures of tools/block/plugtrace-perf true?

In a guest, known loads on an NVMe disk must give known figures, and the
doorbells, which it infers, must be those that the emulated controller saw. Its
kernel is unpatched.
"""
import json
import os
import re
import shutil

from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import tap

KERNEL = "base-trace"
PERF = os.path.join(kernel.ROOT, "tools/block/plugtrace-perf")
# load: (arguments of plug_load, figures). In "mixed" reads and writes have
# hardware queues of their own, in "long" a plug asks for 32 tags only.
LOADS = {
    "batches": ("-s 32 -c 32 -d 32 -n 6400", {
        "flushes": 200, "requests": 6400, "tag_batches": 200,
        "batched_tags": 6400, "doorbells": 200, "commands": 6400}),
    "single": ("-s 1 -c 1 -d 1 -n 200", {
        "flushes": 0, "batched_tags": 0, "single_tags": 200, "doorbells": 0,
        "single_commands": 200, "single_doorbells": 200}),
    "plugs_of_one": ("-s 1 -c 1 -d 1 -n 200 --buffered", {
        "flushes": 200, "requests": 200, "doorbells": 200, "commands": 200}),
    "mixed": ("-s 32 -c 32 -d 32 -n 3200 -m 30", {
        "flushes": 100, "requests": 3200, "doorbells": 975}),
    "long": ("-s 128 -c 128 -d 128 -n 12800", {
        "batched_tags": 3200, "single_tags": 9600, "doorbells": 400}),
}

JOB = r"""%s
/plugtrace-perf --json 600 >/tmp/out &
until [ -s /tmp/tmp.*/data ]; do sleep 1; done
kill $!
wait $!
echo "killed, $(wc -l </tmp/out) line of JSON," \
	"$(grep -c plugtrace /sys/kernel/tracing/kprobe_events) probes left" >&3
"""
RUN = """mark {0}.begin
{{
	echo begin {0}
	/plugtrace-perf --json -- /bin/plug_load {1} /dev/nvme0n1 2>&1 </dev/null
	echo exit $?
}} >&3
mark {0}.end
"""


def run():
    """The guest's boot.Result; perf has the libraries that the loader would
    give it."""
    perf = shutil.which("perf")
    found, _ = guest.libraries(perf)
    return guest.run(
        KERNEL, os.path.join(kernel.BUILD, "plugtrace"), JOB % "".join(
            RUN.format(load, args) for load, (args, _) in LOADS.items()),
        files=(f"{PERF}:/plugtrace-perf", f"{perf}:/bin/perf",
               *(f"{path}:{path}" for path in found)), name="trace", mem=1536, timeout=900,
        accel="tcg", trace_doorbells=True, append="nvme.write_queues=1")


def report_run(report, name, text, expected, doorbells):
    """One load; a timer may cut a few submissions in two."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    seen = json.loads(lines[0]) if lines else {}
    report.check("\nexit 0" in text and not seen.get("lost"), f"{name}: exit 0, nothing lost", text)
    for figure, number in expected.items():
        got = seen.get(figure, 0)
        report.check(abs(got - number) <= (4 + number / 100 if number else 0),
                     f"{name}: {figure} {got}", f"not {number}")
    report.check(seen.get("gain") and seen.get("why"),
                 f"{name}: it says whether the load would gain", text)
    got = seen.get("doorbells", 0) + seen.get("single_doorbells", 0)
    report.check(got == doorbells > 0, f"{name}: the controller saw {doorbells} doorbells",
                 f"inferred: {got}")


def report_guest(report):
    """Each load, and the probes that must be gone."""
    result = run()
    if not report.check(result.status == "pass", "guest", f"{result.reason}; see {result.log}"):
        return
    parts = re.split(r"^begin (.*)\n", "\n".join(result.lines), flags=re.M)
    runs = dict(zip(parts[1::2], parts[2::2]))
    for load, (_, expected) in LOADS.items():
        rings = result.between(load + ".begin", load + ".end").values()
        report_run(report, load, runs.get(load, ""), expected, sum(rings))
    report.check("killed, 1 line of JSON, 0 probes left" in parts[-1],
                 "plugtrace-perf tidies up after SIGTERM", parts[-1])


def main():
    common.no_arguments(__doc__)
    report = tap.Report()
    with report.must("guest", *guest.ERRORS):
        kernel.build(KERNEL)
        report_guest(report)
    report.exit()


if __name__ == "__main__":
    main()
