# SPDX-License-Identifier: GPL-2.0
"""A job file of fio's as a workload: fio reads it, and says what it makes of it.

A sandbox decides what its jobs can write; where there is none, no option may
have a value that could be a file's name.  What only concerns fio's own report
is dropped and named.  Refused is what runs programs, or would make one run
differ from the next.
"""
import os
import re
import shutil
import subprocess
import sys

from ..core.system import EnvironmentProblem, UsageProblem, printable
from . import sandbox
from .fio import Part, Workload

READS = ("read", "randread")
MIXES = ("rw", "readwrite", "randrw")
WRITES = ("write", "randwrite") + MIXES
SECONDS = 60                    # for fio to read it
NO_FIO = "fio is not installed (Debian: apt install fio)"

# What is accepted of these, in either case.
VALUES = {
    "ioengine": "io_uring|libaio|sync|psync|pvsync|pvsync2|posixaio",
    "mem": "malloc|shm|shmhuge|mmap",       # what follows a : is a file
    "numjobs": "0*[1-9][0-9]{0,2}|0x0*[1-9a-f][0-9a-f]?",
    "rwmixread": "[0-9]{1,3}", "rwmixwrite": "[0-9]{1,3}", "direct": "1",
    **dict.fromkeys(
        """buffered create_only pre_read unlink unlink_each_loop overwrite
        file_append fill_device verify do_verify verify_only
        experimental_verify trim_percentage""".split(), "0")}
ENGINES = set(VALUES["ioengine"].split("|"))
ACCEPTED = {"numjobs": "numjobs=1 to 999", "rwmixread": "0 to 100",
            "rwmixwrite": "0 to 100"}
# What is accepted of these changes nothing.
OFF = {option for option, pattern in VALUES.items() if pattern in ("0", "1")}
# What is ours to say, or has no part in the load: the file's own is dropped.
OURS = re.compile(r"""
    name | description | filename(_format)? | unique_filename | time_based |
    runtime | timeout | ramp_time | startdelay | loops | thread | new_group |
    group_reporting | (all)?rand(seed|repeat) | use_os_rand | .*_percentiles |
    percentile_list | unified_rw_reporting | significant_figures | unit_base |
    stats | disk_util | disable_.* | gtod_reduce | clocksource | log_.* |
    write_(bw|lat|iops|hist)_log | per_job_logs | (bw|iops)avgtime |
    exitall.* | exit_what | continue_on_error | create_(serialize|fsync) |
    create_on_open | allow_file_create | flow_watermark | fallocate | fadvise_hint |
    file_service_type | nrfiles | openfiles | invalidate | (ss|steadystate).*
    """, re.VERBOSE)
# Jobs that wait for each other: all run at once here.
ORDER = ("stonewall", "wait_for_previous")
REFUSED = """exec_prerun exec_postrun wait_for read_iolog write_iolog profile
    merge_blktrace_file ioscheduler directory opendir lockfile cgroup""".split()
ONLY = "only what shapes the load; this may run programs, use other files, " \
    "or make runs differ"
LISTED = "an option as fio --cmdhelp=all or --enghelp=ENGINE lists it"
# A / that is not between numbers, as it is in 4k/60, 4k/: and 8*($ncpus)/2.
MAYBE_A_FILE = re.compile(r"(?<![0-9a-z)])/|/(?![0-9:$(]|$)|\.\.", re.I)


def problem(text):
    return UsageProblem("--jobfile: " + printable(text))


# --- as fio reads it -------------------------------------------------------

def lines_of(path):
    """(number, line) of a file, but for comments."""
    try:
        # a comment may be Latin-1; a CR alone ends no line of fio's
        with open(path, encoding="utf-8", errors="surrogateescape",
                  newline="\n") as file:
            text = file.read()
    except OSError as error:
        raise problem(f"{path} cannot be read ({error.strerror}); accepted: a "
                      "job file of fio's") from error
    for number, line in enumerate(text.split("\n"), 1):
        # fio ends a line at the first of these, wherever it stands
        line = re.split("[;#]", line, maxsplit=1)[0].strip()
        if line:
            yield number, line


def check_name(name, where):
    """It becomes a word of fio's command line, and is printed."""
    code = sys.getfilesystemencoding()
    if not name.isprintable() or name.encode(code, "ignore").decode(
            code) != name:
        raise problem(f"{where}: [{name}]; accepted: a name that can be "
                      "printed")


def used(line, path, files, is_boxed):
    """A line that fio is to read.  Where nothing keeps it from files, it is
    not even shown what could name one."""
    include = re.fullmatch(r"include\s+(.*)", line)
    if not is_boxed:
        line = os.path.expandvars(line)
    if re.search(r"\s--", line):
        raise problem(f"{path}: {line}; accepted: one option on a line, and no "
                      "' --' in it")
    if not is_boxed:
        if include or MAYBE_A_FILE.search(line):
            raise problem(f"{path}: {line}; accepted: {ONLY}, and bubblewrap "
                          "(bwrap), which would see to files, does not work")
    elif include:               # beside the file, or from here
        name = include[1] if os.path.exists(include[1]) else os.path.join(
            os.path.dirname(path), include[1])
        files.append(name)
        line = "include " + os.path.abspath(name)
    return line


def sections_of(path):
    """[(section, lines)] of a job file."""
    found = []
    for number, line in lines_of(path):
        if line.startswith("["):
            name = line[1:].partition("]")[0]
            check_name(name, f"{path}, line {number}")
            found.append((name, []))
        elif found:
            found[-1][1].append(line)
        else:
            raise problem(f"{path}, line {number}: '{line}' comes before any "
                          "[section]")
    return found


def taken(sections, path, is_boxed):
    """([(section, lines)], files, dropped options); what is not used is left
    out, as it may name variables that are not set."""
    found, files, dropped = [], [path], set()
    for name, lines in sections:
        found.append((name, []))
        for line in lines:
            option = line.partition("=")[0].strip().lower()
            if OURS.fullmatch(option):
                dropped.add(option)
            else:
                found[-1][1].append(used(line, path, files, is_boxed))
    return found, files, dropped


def ask_fio(words, is_boxed, text=""):
    if not shutil.which("fio"):
        raise EnvironmentProblem(NO_FIO)
    return subprocess.run(
        sandbox.boxed(["fio", *words], is_boxed), check=False, input=text,
        capture_output=True, timeout=SECONDS, encoding="utf-8",
        errors="surrogateescape")


def listed(options, engines, is_boxed):
    """The options of jobs that fio tells of, by their own names.  A command
    line may have more: fio's own (--trigger=PROGRAM), and what is short for
    another or its second name, as which no table of ours would know it."""
    told = [ask_fio([word], is_boxed).stdout for word in (
        "--cmdhelp=all", *(f"--enghelp={engine}" for engine in engines))]
    names = set(re.findall(r"^ *([\w-]+) *:", "\n".join(told), re.MULTILINE))
    # its list lacks what it would put below a second name: iomem_align
    return names | {option for option in options - names if re.match(
        f" *{re.escape(option)} *:",
        ask_fio([f"--cmdhelp={option}"], is_boxed).stdout)}


def showcmd(text, path, is_boxed):
    """[(option, value or None)] that fio makes of a job file.  A value with
    " --" in it, as a variable's may be, reads as several options."""
    done = ask_fio(["--showcmd", "-"], is_boxed, text)
    if done.returncode:
        said = done.stderr.partition("\nfio: job")[0].strip()[:200]
        raise problem(f"fio does not take {path}: "
                      f"{'; '.join(said.splitlines())}; accepted: what fio "
                      "takes, and variables that are set")
    for word in re.split(r"\s--(?=[a-z])", done.stdout.rstrip())[1:]:
        option, equals, value = word.partition("=")
        yield option.strip(), value.strip() if equals else None


def is_global(name):
    return name.startswith("global")


def jobs_of(sections, path, is_boxed):
    """[(job, options)], with those of [global] sections before it.

    fio does not say where these begin, and then repeats all so far: so an
    empty job follows each."""
    text, names = "", {}
    for number, (section, lines) in enumerate(sections):
        names[str(number)] = section
        text += "\n".join([
            # to fio any such name is for the jobs that follow
            "[global]" if is_global(section) else f"[{number}]",
            *lines, "" if is_global(section) else "[end]\n"])
    common, found = [], [("end", [])]
    for option, value in showcmd(text, path, is_boxed):
        if option == "name":
            found.append((value, []))
        else:
            found[-1][1].append((option, value))
    jobs = []
    for number, options in found:
        if number == "end":
            common = options or common
        else:
            jobs.append((names.get(number, number), common + options))
    return jobs


# --- what of it is accepted ------------------------------------------------

def kind_of(value):
    """"randread" of "randread:8"; fio's default is to read."""
    return (value or "read").partition(":")[0].lower()


def accepted(option, value, writes):
    """What is accepted in place of an option, or None: it is taken."""
    if option == "rw" and kind_of(value) not in READS + WRITES * writes:
        return ", ".join(READS + WRITES) if writes else \
            f"{', '.join(READS)}, or --write, which DESTROYS the disk's data"
    if option in VALUES:
        if re.fullmatch(VALUES[option], value or "", re.IGNORECASE | re.ASCII):
            return None
        return f"{option}={VALUES[option]}, and {ONLY}" if option in OFF else \
            ACCEPTED.get(option, VALUES[option].replace("|", ", "))
    return ONLY if option in REFUSED else None


def check_option(option, value, writes, known, where):
    """Refuse what would write, leave the disk, or cannot be compared."""
    instead = accepted(option, value, writes) if option in known else LISTED
    if instead:
        said = option if value is None else f"{option}={value}"
        raise problem(f"{where}: {said}; accepted: {instead}")


def reads_of(options):
    """Of 100 I/Os of a job that does both, how many read; else None."""
    if kind_of(dict(options).get("rw")) not in MIXES:
        return None
    reads = 50
    for option, value in options:
        if option == "rwmixread":
            reads = int(value)
        elif option == "rwmixwrite":
            reads = 100 - int(value)
    return reads


def check_order(jobs, path):
    """Of one job nobody would notice."""
    for name, options in jobs[1:]:
        if dict(options).get("stonewall", "0") != "0":
            raise problem(f"{path}, [{name}]: stonewall; accepted: jobs that "
                          "run all at once, or --section with those that are "
                          "to run by themselves")


def is_dropped(option):
    return option in OFF or option in ORDER or OURS.fullmatch(option)


def part_of(name, options):
    words = ["--name=" + name] + [
        f"--{option}" if value is None else f"--{option}={value}"
        for option, value in options if not is_dropped(option)]
    jobs = dict(options).get("numjobs", "1").lower()
    return Part(words, int(jobs, 16 if "x" in jobs else 10), reads_of(options))


def chosen(sections, wanted, path):
    """[(section or None, sections)]: all at once, or each that is wanted with
    what is [global] before it."""
    if wanted is None:
        yield None, sections
        return
    all_names = [name.strip() for name, _ in sections]
    names = [name.strip() for name, _ in sections if not is_global(name)]
    for name in dict.fromkeys(map(str.strip, wanted.split(","))):
        if names.count(name) != 1:
            raise problem(f"--section: {names.count(name)} jobs of {path} are "
                          f"[{name}]; accepted: {', '.join(names)}")
        end = all_names.index(name)
        yield name, [one for one in sections[:end]
                     if is_global(one[0])] + [sections[end]]


def read_jobfile(path, writes, wanted=None):
    """{name: workload} of a job file: one, or one for each section wanted."""
    is_boxed = sandbox.works()
    base = re.sub(r"\.fio$", "", re.sub(r"[^\w.+-]", "_",
                                        os.path.basename(path))) or "job"
    return {base if name is None else f"{base}:{name}": workload(
        sections, path, writes, is_boxed)
            for name, sections in chosen(sections_of(path), wanted, path)}


def workload(sections, path, writes, is_boxed):
    sections, files, dropped = taken(sections, path, is_boxed)
    jobs = jobs_of(sections, path, is_boxed)
    if not jobs:
        raise problem(f"{path} has no job, as [random] and rw=randread")
    engines = {dict(options).get("ioengine", "psync") for _, options in jobs}
    known = listed({option for _, options in jobs for option, _ in options},
                   engines & ENGINES, is_boxed)
    for name, options in jobs:
        for option, value in options:
            check_option(option, value, writes, known, f"{path}, [{name}]")
        dropped |= {option for option, _ in options if is_dropped(option)}
    check_order(jobs, path)
    parts = [part_of(*job) for job in jobs]
    kinds = {kind_of(dict(options).get("rw")) for _, options in jobs}
    count = sum(part.jobs for part in parts)
    text = f"{path}: {count} job{'s'[:count > 1]}, {', '.join(sorted(kinds))}"
    if dropped:
        text += "; not used: " + ", ".join(sorted(dropped))
    return Workload(
        None, None, None, None, "io_uring" if "io_uring" in engines else
        min(engines), False, bool(kinds & set(WRITES)), text, parts, count,
        files, is_boxed)
