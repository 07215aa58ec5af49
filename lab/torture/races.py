# SPDX-License-Identifier: GPL-2.0
"""Whose are the data races that KCSAN reports: the series', or the kernel's?
And what does lockdep find in the unpatched kernel, too?

A race is the series' if it happens in a function that the series adds or
changes, or in something that a function of its new files calls directly. Not if
it is known to be in a line of such a function that the series has left alone."""
import dataclasses
import re

from scripts.kernel import git

STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?")
TITLE = re.compile(r"BUG: KCSAN: (?:data-race|assert: race) in "
                   r"(\S+)(?: / (\S+))?")
FRAME = re.compile(r"^ (\w[\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
ACCESS = re.compile(r"^(?:read|write|assert|race)\b.* (?:to|at|of) ")
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
# A function's head at the start of a line: its name precedes the bracket.
HEAD = re.compile(r"^[A-Za-z_][\w\s*]*?\b(\w+)\(")
# Of which functions, how many bytes, and what they are.
KNOWN = {
    frozenset({"blk_mq_dispatch_rq_list"}): (
        4, "blk_mq_hw_ctx::dispatch_busy, an average that nobody locks"),
    frozenset({"blk_account_io_start", "kthread_is_per_cpu"}): (
        4, "task_struct::flags: its owner sets PF_BLOCK_TS, others read flags"),
    frozenset({"bio_endio", "blk_mq_submit_bio"}): (
        2, "bio::bi_flags of a bio that was split: what is left is marked "
        "BIO_QOS_THROTTLED, and the end of its first part reads BIO_CHAIN"),
    frozenset({"sbitmap_find_bit", "sbitmap_queue_clear"}): (
        8, "sbitmap_word::cleared: who finds no bit looks whether some were "
        "cleared meanwhile"),
}
CYCLE = "WARNING: possible circular locking dependency detected"
# Setting a first limit allocates memory under a mutex that others take, or it
# takes itself, while the queue is frozen, where nothing may be reclaimed:
# blkg_conf_prep() under blkcg_mutex; blk_throtl_init() or blk_iocost_init(),
# called by a write to a cgroup's file, under rq_qos_mutex, which ioc_qos_write()
# takes.
KNOWN_CYCLE = re.compile(
    r"trying to acquire lock:\n.*\(fs_reclaim\).*(?:\n.*){1,3}"
    r"blkcg_mutex\).* blkg_conf_prep\+|"
    r"trying to acquire lock:\n.*rq_qos_mutex\).* ioc_qos_write\+"
    r"(?s:.*)\(fs_reclaim\)(?:.*\n){1,8}.* cgroup_file_write\+|"
    # what KNOWN_LEAK leads to, once such a worker takes up other work
    r"trying to acquire lock:\n.* process_one_work\+.*(?:\n.*){1,3}"
    r"q_usage_counter.* nvme_start_freeze\+")
# 6.12 gives the freeze of NVMe's queues to the worker that suspends or resets
# the disk, though another one ends it; 7.3 says that nobody owns it.
KNOWN_LEAK = re.compile(
    r"^.*BUG: workqueue leaked .*\n.* preempt=0x0+ .* RCU=0->0 .*\n"
    r"(?:.* INFO: lockdep is turned off\.\n|"      # a report has said why
    r".* locks? held by .*\n(?:.* at: nvme_start_freeze\+.*\n)+)"
    r"(?!.* at: )(?s:.*?)</TASK>\n?", re.M)
NO_FUNCTION = {"if", "for", "while", "switch", "return", "sizeof"}


@dataclasses.dataclass(frozen=True)
class Ours:
    """Names of functions: of new files, and changed elsewhere."""

    new: frozenset
    changed: frozenset

    def has(self, name):
        return name in self.new or name in self.changed


@dataclasses.dataclass
class Race:
    """One report: its title's functions, its lines, its stacks of names."""

    title: str
    names: list
    lines: list
    stacks: list

    def is_ours(self, ours):
        """See the top of this file."""
        size, _ = KNOWN.get(frozenset(self.names), (0, ""))
        if any(" of %d bytes " % size in line for line in self.lines):
            return False
        if any(ours.has(name) for name in self.names):
            return True
        return any(name in ours.new for stack in self.stacks
                   for name in stack[:2])


def plain(name):
    """A name without what the compiler appended: f.isra.0 is f."""
    return name.split(".", 1)[0]


def parse_report(lines):
    """The Race that a report's lines, without stamps, tell of; or None."""
    match = next(filter(None, map(TITLE.search, lines)), None)
    if not match:
        return None
    stacks = []
    for line in lines:
        frame = FRAME.match(line)
        if frame and stacks:
            stacks[-1].append(plain(frame[1]))
        elif ACCESS.match(line):
            stacks.append([])
    return Race(match[0], [plain(name) for name in match.groups() if name],
                lines, stacks)


def split_console(console):
    """(races, the console without them): from rule to rule, title within."""
    races, rest, report = [], [], None      # report: lines since a rule

    def end_report():
        race = parse_report([STAMP.sub("", line) for line in report or []])
        if race:
            races.append(race)
        else:
            rest.extend(report or [])       # lockdep draws rules, too
        return race

    for line in console.splitlines():
        text = STAMP.sub("", line)
        if text == line:
            rest.append(line)               # not the kernel's
        elif re.fullmatch(r"={30,}", text.strip()):
            report = None if end_report() else []   # one that ends begins none
        elif report is not None:
            report.append(line)
        elif not text.startswith("kcsan: "):    # how it is configured
            rest.append(line)
    end_report()
    return races, "\n".join(rest)


def without_known_cycle(console):
    """The console without lockdep's report of KNOWN_CYCLE, which is its last:
    it checks no locks from then on, in that guest."""
    before, found, report = console.partition(CYCLE)
    trace, end, after = report.partition("</TASK>")
    if not (found and end and KNOWN_CYCLE.search(trace)):
        return console
    return before.rpartition("\n")[0] + after


def without_known(console):
    """The console without what the unpatched kernel reports of its locks."""
    return KNOWN_LEAK.sub("", without_known_cycle(console))


# --- which functions are the series' ---------------------------------------

def functions(text):
    """[(name, first line, last line)] of a C file, counted from 1."""
    found, head, begin = [], None, 0
    for number, line in enumerate(text.splitlines(), 1):
        match = HEAD.match(line)
        if match and match[1] not in NO_FUNCTION and \
                not line.rstrip().endswith(";"):
            head, begin = match[1], number
        elif line.startswith("}") and head:
            found.append((head, begin, number))
            head = None
    return found


def changed_lines(diff):
    """The numbers of the lines, in the new file, that a diff -U0 touches."""
    lines = set()
    for match in filter(None, map(HUNK.match, diff.splitlines())):
        first, count = int(match[1]), int(match[2] or 1)
        lines.update(range(first, first + max(1, count)))
    return lines


def series_functions(tree, base="base", series="series"):
    """Ours, from the commits of the kernel tree."""
    new, changed = set(), set()
    listing = git("diff", "--name-status", "--no-renames", base, series, "--",
                  "*.c", "*.h", tree=tree)
    for line in listing.splitlines():
        status, name = line.split("\t")
        if status == "D" or name.startswith(
                ("tools/", "lib/tests/", "block/tests/")):
            continue
        spans = functions(git("show", f"{series}:{name}", tree=tree))
        if status == "A":
            new.update(span[0] for span in spans)
            continue
        touched = changed_lines(git("diff", "-U0", base, series, "--", name,
                                    tree=tree))
        changed.update(span[0] for span in spans
                       if any(span[1] <= n <= span[2] for n in touched))
    return Ours(frozenset(new), frozenset(changed))
