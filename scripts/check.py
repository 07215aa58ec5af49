# SPDX-License-Identifier: GPL-2.0
"""Every test, in an order that finds the cheap failures first; or those that a
change can break.

A group that has passed is not run again as long as nothing changes that it
depends on: the files that it touches, the packages of this machine, the
variables that touches.py lists, the kernel source."""
import argparse
import collections
import functools
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import groups, tap, touches
from scripts.series import env

OUT = Path(kernel.BUILD, "check")
AT_A_TIME = 2
SESSION = 4 * 3600      # s: no landing's commits took longer
ENDS_WITH_US = ["setpriv", "--pdeathsig", "TERM"]
PACKAGES = ["sh", "scripts/setup.sh", "all", "arm64"]


def help_text(table):
    return "GROUPS, and about how long each takes:\n" + "\n".join(
        f"  {name:14} {group.seconds:3} s  {group.about}"
        for name, group in table.items())


def choose(text, table):
    names = text.replace(",", " ").split()
    if names == ["help"]:
        print(help_text(table))
        sys.exit()
    for name in names:
        if name not in table:
            sys.exit(f"check: no group '{name}'; {help_text(table)}")
    return {name: group for name, group in table.items()
            if not names or name in names}


# --- what a change can break ----------------------------------------------------

def commit(name):
    """Its hash; empty if there is none of that name."""
    return "".join(touches.git("rev-parse", "-q", "--verify", name + "^{commit}"))


def before_landing():
    """The newest commit that is older than what may have landed with HEAD."""
    newest = int(touches.git("log", "-1", "--format=%ct")[0])
    return (touches.git("rev-list", "-1", f"--before={newest - SESSION}", "HEAD")
            or touches.git("rev-list", "--max-parents=0", "HEAD"))[0]


def start(since, quick):
    """(commit, why that one) from which on is asked what has changed: where we
    left what we are to be merged into. A clone of that has nothing newer."""
    if since:
        where = touches.git("merge-base", since, "HEAD")
        if not where:
            sys.exit(f"check: SINCE={since}: accepted: a commit of this history")
        return where[0], f"since {since}"
    for name in "origin/main", "main":
        where = "".join(touches.git("merge-base", name, "HEAD"))
        if where not in ("", commit("HEAD")):
            return where, f"since {name}"
    if not quick:
        return before_landing(), "since the last landing"
    if touches.changed("HEAD"):
        return commit("HEAD"), "not committed"
    return commit("HEAD~1"), "by the last commit"


def narrow(chosen, changed):
    kept = {name: group for name, group in chosen.items()
            if any(path in groups.touches(group) for path in changed)}
    left_out = [name for name in chosen if name not in kept]
    if left_out:
        print("check: left out, as they touch nothing that changed:", *left_out)
    return kept


def unit_tests(changed):
    return [path for path in touches.files()
            if Path(path).match("tests/test_*.py") and any(
                name in touches.Touches([path], groups.read_by(path))
                for name in changed)]


def fill_in(chosen, since, changed, fresh):
    """What commands want to be told; tests are for two groups, side by side."""
    tests = unit_tests(changed)
    values = {"{since}": [since], "{fresh}": ["--fresh"] * fresh,
              "{tests}": tests[::2], "{more tests}": tests[1::2]}
    return {name: group._replace(command=[
        word for part in group.command for word in values.get(part, [part])])
            for name, group in chosen.items()
            if all(values.get(part, [part]) or part == "{fresh}"
                   for part in group.command)}


# --- what is known --------------------------------------------------------------

def key(group):
    """Names what a group's result depends on; None where that is not known."""
    if not touches.machine():
        return None
    tree = env.TOP / ("" if group.kver == env.FIRST else group.kver) / f"linux-{group.kver}"
    return groups.touches(group).key(group.command, group.kver, touches.git(
        "rev-parse", "base^{tree}", top=tree))


def passed(name):
    """The file that has the results of a group that passed, and their key."""
    return OUT / "passed" / (name + ".tap")


def keep(name, lines, known):
    """The results, for a CI to show, and if they are good for the next run."""
    text = tap.document(lines)
    (OUT / (name + ".tap")).write_text(text, encoding="utf-8")
    passed(name).unlink(missing_ok=True)
    if known and not re.search(r"^not ok|# SKIP .*\b(busy|fetch)", text, re.M):
        passed(name).parent.mkdir(exist_ok=True)
        passed(name).write_text(f"{text}# key {known}\n", encoding="utf-8")


def recall(name, group):
    """The lines of results that still hold, or nothing."""
    try:
        *lines, last = passed(name).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return lines if last == f"# key {key(group)}" else []


# --- the run --------------------------------------------------------------------

def prepare(chosen, steps):
    """Run what these groups need of some preparations, which speak for
    themselves; False if one failed."""
    for kver in dict.fromkeys(group.kver for group in chosen.values()):
        needed = {what for group in chosen.values() if group.kver == kver
                  for what in groups.preparation(group)}
        for what in filter(needed.__contains__, steps):
            print(f"== {what}, Linux {kver}", flush=True)
            if subprocess.run(groups.PREPARE[what], cwd=kernel.ROOT,
                              stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, "KVER": kver}).returncode:
                print(f"check: {what} failed, so nothing could be tested")
                return False
    return True


def environment(group):
    """What a group finds."""
    found = {**os.environ, "KVER": group.kver,
             "PYTHONPYCACHEPREFIX": str(env.TOP / "cache/pycache")}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def complete(name, group, text, code):
    """The lines of a group, with a result for what it does not say itself: a
    group that printed no result failed."""
    lines = text.splitlines()
    found = tap.results(lines)
    if name.startswith(groups.PLAIN):
        return ["# " + line for line in lines] + [
            f"{'not ' * bool(code)}ok {group.about}"]
    if not found:
        lines.append("not ok no test ran")
    elif code and not any(status == "fail" for _, status in found):
        lines.append(f"not ok exit {code}")
    return lines


class Runner:
    """Runs groups; one group's output is printed in one piece."""

    def __init__(self, chosen, quiet):
        self.chosen = chosen
        self.quiet = quiet      # of what passes no more than its time
        self.found = []         # (group, name, status)
        self.lock = threading.Lock()
        self.running = []

    def run_group(self, name):
        start, group = time.monotonic(), self.chosen[name]
        before = key(group)
        with subprocess.Popen(
                [*ENDS_WITH_US, *group.command], env=environment(group), text=True,
                cwd=kernel.ROOT, errors="replace", stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            self.running.append(name)
            text = process.stdout.read()
        with self.lock:
            self.running.remove(name)
            lines = complete(name, group, text, process.returncode)
            found = [(name, *one) for one in tap.results(lines)]
            self.found += found
            # a file that was edited meanwhile may not be what was tested
            keep(name, lines, before if before == key(group) else None)
            if not self.quiet or has_failed(found):
                print(f"== {name}")
                print("".join(f"   {line}\n" for line in text.splitlines()))
            print(f"== {name}: {count(found)}, {time.monotonic() - start:.0f} s",
                  flush=True)

    def state(self, _, seconds):
        return f"check: running {' and '.join(self.running) or 'nothing'}, {seconds:.0f} s"

    def run(self):
        guest.together({name: functools.partial(self.run_group, name) for name in self.chosen},
                       self.state, AT_A_TIME)
        return self.found


def has_failed(found):
    return any(status == "fail" for *_, status in found)


def count(found):
    of = collections.Counter(status for *_, status in found)
    return f"{of['pass']} passed, {of['fail']} failed, {of['skip']} skipped"


def check(chosen, believe, quiet):
    """Prepare and run; results, and those that are known: [(group, name,
    status)]."""
    OUT.mkdir(parents=True, exist_ok=True)
    for path in OUT.glob("*.tap"):      # of another run
        path.unlink()
    failed = [("preparation", "", "fail")]
    steps, known = list(groups.PREPARE), []
    if not prepare(chosen, steps[:groups.SOON]):
        return failed, known
    for name, group in list(chosen.items()):
        lines = believe and recall(name, group)
        if lines:
            print(f"== {name}: ok (cached)", flush=True)
            shutil.copy(passed(name), OUT)
            known += [(name, *one) for one in tap.results(lines)]
            del chosen[name]
    if not prepare(chosen, steps[groups.SOON:]):
        return failed, known
    return Runner(chosen, quiet).run(), known


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", default="", metavar="'a b'",
                        help="run only these (default: all), or: help")
    parser.add_argument("--quick", action="store_true",
                        help="two minutes' worth for a change")
    parser.add_argument("--since", default="", metavar="REV",
                        help="only what can break by what changed since")
    parser.add_argument("--cache", choices=["yes", "no"], default="yes",
                        help="believe groups that passed and have not changed")
    return parser.parse_args()


def plan(args):
    chosen = choose(args.groups, groups.QUICK if args.quick else groups.GROUPS)
    since, why = start(args.since, args.quick)
    changed = touches.changed(since)
    print(f"check: {len(changed)} files changed {why}", flush=True)
    if args.since or args.quick:
        chosen = narrow(chosen, changed)
    return fill_in(chosen, since, changed, args.cache == "no")


def main():
    args = parse()
    start = time.monotonic()
    chosen = plan(args)
    if subprocess.run(PACKAGES, cwd=kernel.ROOT, check=False).returncode:
        sys.exit(1)
    found, known = check(chosen, args.cache == "yes", args.quick)
    for group, name, status in found:
        if status == "fail":
            print(f"FAILED {group}: {name}")
    if known:
        print(f"cached (CACHE=no runs them): {count(known)}")
    print(f"took {time.monotonic() - start:.0f} s\n{count(found)}")
    sys.exit(has_failed(found))


if __name__ == "__main__":
    with common.program("check", OSError):
        main()
