# SPDX-License-Identifier: GPL-2.0
"""Test results in TAP: written by our tests, read by the conductor."""
import contextlib
import re
import sys

RESULT = re.compile(r"(not )?ok\b *(\d+)? *-? *([^#]*)(# *(SKIP|TODO)\b *(.*))?",
                    re.I)
FRAME = re.compile(r"K?TAP version |\d+\.\.\d+")


class Report:
    """Prints results as they come; exits with what they came to."""

    def __init__(self):
        self.number = 0
        self.failed = 0
        self.say("TAP version 13")

    @staticmethod
    def say(line):
        print(line, flush=True)

    def _line(self, good, name, rest=""):
        self.number += 1
        self.say(f"{'' if good else 'not '}ok {self.number} {name}{rest}")

    def check(self, good, name, details=""):
        """A result; the details are printed if it is bad."""
        if not good:
            self.failed += 1
            for line in details.splitlines():
                self.say(f"# {line}")
        self._line(good, name)
        return good

    def skip(self, name, reason):
        self._line(True, name, " # SKIP " + reason)

    def take(self, name, status, reason, details=""):
        """A result that parse() has read; the reason is of a skip."""
        if status == "skip":
            self.skip(name, reason)
        else:
            self.check(status == "pass", name, details)

    def guest(self, name, result):
        """What a guest has reported, and how it ended. What it said before a
        result explains that one."""
        found, said = results(result.lines), []
        for line in result.lines:
            one = parse(line)
            if one:
                self.take(f"{name}: {one[0]}", one[1], f"see {result.log}", "\n".join(said))
                said = []
            else:
                said.append(line.removeprefix("# "))
        self.check(result.status == "pass" and found, f"{name}: guest",
                   "\n".join([*said[-20:], f"{result.reason}; see {result.log}"]))

    @contextlib.contextmanager
    def must(self, what, *errors):
        """For a part without which there is nothing to report: its errors end
        the report."""
        try:
            yield
        except errors as error:
            self.check(False, what, str(error))
            self.exit()

    def exit(self):
        """Print the plan; failure if anything failed or nothing ran."""
        self.say(f"1..{self.number}")
        sys.exit(1 if self.failed or not self.number else 0)


def parse(line):
    """(name, "pass"|"fail"|"skip") of a TAP result line, else None.

    Subtests are indented and counted by the line that sums them up."""
    match = RESULT.match(line)
    if not match:
        return None
    name = match[3].strip() or "test " + (match[2] or "?")
    if match[5] and match[5].upper() == "SKIP":
        return name, "skip"
    return name, "fail" if match[1] else "pass"


def results(lines):
    return [result for result in map(parse, lines) if result]


def document(lines):
    """KTAP of lines: results are numbered and planned, and what else there is
    becomes diagnostics."""
    found, number = [], 0
    for line in lines:
        match = RESULT.match(line)
        if match:
            number += 1
            name, status = parse(line)
            found.append(f"{'not ' * (status == 'fail')}ok {number} {name}"
                         + (f" {match[4].strip()}" if match[4] else ""))
        elif line and not FRAME.match(line):
            found.append(line if line.startswith("#") else "# " + line)
    return "\n".join(["KTAP version 1", f"1..{number}", *found, ""])
