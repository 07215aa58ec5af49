# SPDX-License-Identifier: GPL-2.0
"""A job file of fio's as a workload: read as fio reads it, but for what could
do more than load the disk.

What is accepted is listed here, by option and value, after fio(1): it shapes
the load, and can neither write, nor run a program, nor touch another file.
What only concerns fio's own report is dropped and named.  All else is refused:
an option of a later fio, too, until somebody has read what it does.
"""
import ast
import fractions
import operator
import os
import re

from ..core.system import UsageProblem, printable
from .workloads import Part, Workload

READS = ("read", "randread")
MIXES = ("rw", "readwrite", "randrw")
WRITES = ("write", "randwrite") + MIXES
ENGINES = ("io_uring", "libaio", "sync", "psync", "pvsync", "pvsync2",
           "posixaio")
DEEPEST = 8                     # files that include each other

# Patterns of values.  What fio reads as numbers cannot be the name of a file.
# Each can match in one way only: of several, all are tried before a refusal.
# So a sign or % that may be part of what separates is nothing else.
NUMBER = r"(0x[0-9a-f]+([g-z][a-z]{0,4})?|" \
    r"(?!0x[0-9a-f])[0-9]+(\.[0-9]+)?[a-z]{0,5})"
NUMBERS = r",*[-+]?{0}%?([-,:/ ]+\+?{0}%?)*[-,:/]*|" \
    r"\([( ]*[-+]?{0}([-+*/%^ ()]+{0})*%?[) ]*\)[a-z]{{0,5}}".format(NUMBER)
SHARE = r"\.?[0-9][0-9.]*[a-z]{0,5}%?"
DIGITS = r"[0-9]{1,3}"
SWITCH = r"[01]?"               # of an option that may stand alone
LIST = r"[0-9][-0-9,:]*"        # of CPUs or nodes

ALIASES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange",
           "ba": "blockalign", "mem": "iomem", "mem_align": "iomem_align",
           "io_limit": "io_size", "wait_for_previous": "stonewall",
           "iodepth_batch_submit": "iodepth_batch"}


def table(*rows):
    """{option: pattern of its values} of (options, pattern)."""
    return {name: pattern for names, pattern in rows
            for name in names.split()}


ALLOWED = table(
    ("""bs bsrange bssplit blockalign iodepth iodepth_batch
     iodepth_batch_complete iodepth_batch_complete_min
     iodepth_batch_complete_max iodepth_low percentage_random offset
     offset_increment offset_align size io_size number_ios rate rate_min
     rate_iops rate_iops_min rate_cycle thinktime thinktime_spin
     thinktime_blocks thinktime_iotime cpumask zonesize zonerange zoneskip
     latency_target latency_window latency_percentile hipri_percentage
     force_async fsync fdatasync cmdprio_percentage cmdprio_class cmdprio
     cmdprio_bssplit prio prioclass nice buffer_compress_percentage
     buffer_compress_chunk dedupe_percentage iomem_align""", NUMBERS),
    ("numjobs", r"0*[1-9][0-9]{0,2}|0x0*[1-9a-f][0-9a-f]?"),
    ("rwmixread rwmixwrite", DIGITS),
    ("""serialize_overlap bs_is_seq_rand softrandommap rate_ignore_thinktime
     nonvectored uncached nowait scramble_buffers
     latency_run end_fsync fsync_on_close""", "[01]"),
    ("""norandommap zero_buffers bs_unaligned fixedbufs registerfiles hipri
     sqthread_poll userspace_reap refill_buffers""", SWITCH),
    ("sync", "0|none|1|sync|dsync"),
    ("rw", r"(%s)(:[-0-9a-z]+)?" % "|".join(READS + WRITES)),
    ("ioengine", "|".join(ENGINES)),
    ("iomem", "malloc|shm|shmhuge|mmap"),
    ("random_distribution",
     r"[a-z_]+(:,*{0}([-,:/]+{0})*[-,:/]*)?".format(SHARE)),
    ("random_generator", "tausworthe|lfsr|tausworthe64"),
    ("rw_sequencer", "sequential|identical"),
    ("rate_process", "linear|poisson"),
    ("thinktime_blocks_type", "complete|issue"),
    ("io_submit_mode", "inline|offload"),
    ("zonemode", "none|strided"),
    ("cpus_allowed numa_cpu_nodes sqthread_poll_cpu", LIST),
    ("cpus_allowed_policy", "shared|split"),
    ("numa_mem_policy", r"(default|local|prefer|bind|interleave)(:[-0-9,]+)?"),
    ("kb_base", "1000|1024"),
    ("direct", "1"),
    ("""buffered create_only pre_read unlink unlink_each_loop overwrite
     file_append fill_device verify do_verify verify_only experimental_verify
     trim_percentage""",
     "0"))

# What is ours to say, or has no part in the load: the file's own is dropped.
OURS = set("""
    name description filename time_based runtime timeout
    ramp_time startdelay loops thread stonewall new_group
    group_reporting randseed randrepeat allrandrepeat use_os_rand
    lat_percentiles clat_percentiles slat_percentiles percentile_list
    unified_rw_reporting significant_figures unit_base stats disk_util
    disable_lat disable_clat disable_slat disable_bw_measurement gtod_reduce
    clocksource log_avg_msec log_hist_msec log_hist_coarseness log_max_value
    log_entries log_prio log_offset log_unix_epoch per_job_logs bwavgtime
    iopsavgtime
    exitall exitall_on_error exit_what continue_on_error create_serialize
    create_fsync create_on_open allow_file_create fallocate fadvise_hint
    file_service_type nrfiles openfiles invalidate filename_format
    unique_filename steadystate steadystate_duration steadystate_ramp_time ss
    ss_dur ss_ramp""".split())
# Dropped as well, as what is accepted of them changes nothing.
OFF = {option for option, pattern in ALLOWED.items() if pattern in ("0", "1")}
# A limit of ours takes their place.
RATES = ("rate", "rate_min", "rate_iops", "rate_iops_min", "rate_process")

SUMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
        ast.Div: lambda one, other: int(fractions.Fraction(one, other))}

SHAPES = ("only what shapes the load; this may run programs, use other "
          "files, or make runs differ")
ACCEPTED = {
    NUMBERS: "numbers", DIGITS: "0 to 100", SWITCH: "nothing, 0 or 1",
    LIST: "numbers, as 0-3,8"}


def problem(text):
    """What is wrong with a job file."""
    return UsageProblem("--jobfile: " + printable(text))


# --- as fio reads it -------------------------------------------------------

def without_comment(line):
    """fio ends a line at the first of these, wherever it stands."""
    return re.split("[;#]", line, maxsplit=1)[0].strip()


def lines_of(path, where):
    """(number, line) of a file, but for comments."""
    try:
        # a comment may be Latin-1; a CR alone ends no line of fio's
        with open(path, encoding="utf-8", errors="surrogateescape",
                  newline="\n") as file:
            text = file.read()
    except OSError as error:
        raise problem("%s cannot be read (%s); accepted: a job file of fio's"
                      % (where, error.strerror)) from error
    if text.startswith("\ufeff"):
        raise problem(where + " starts with a byte order mark, which fio does "
                      "not take; accepted: UTF-8 without one")
    for number, line in enumerate(text.split("\n"), 1):
        line = without_comment(line)
        if line:
            yield number, line


def result(node):
    """Of a sum that Python has parsed, as bc(1) has it: of whole numbers."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -result(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in SUMS:
        return SUMS[type(node.op)](result(node.left), result(node.right))
    raise ValueError("no sum")


def calculated(value, said):
    """fio has bc(1) calculate such a value, but on no command line."""
    try:
        if not re.fullmatch("[0-9()+*/ -]{1,100}", value):
            raise ValueError("no sum")
        # a 0 in front means nothing to bc
        return str(result(ast.parse(re.sub(r"\b0+(?=[0-9])", "", value.strip()),
                                    mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError) as error:
        raise problem(said + "; accepted: whole numbers with + - * / and "
                      "( ), as 2*$ncpus") from error


def substituted(text, where):
    """With what fio would put in: variables, and words about the machine."""
    said = "%s: %s" % (where, text)

    def variable(match):
        if match[1] not in os.environ:
            raise problem(said + "; accepted: a variable that is set")
        return os.environ[match[1]]
    text = re.sub(r"\$\{(\w+)\}", variable, text)
    page = os.sysconf("SC_PAGE_SIZE")
    words = {"$pagesize": page, "$ncpus": os.cpu_count(),
             "$mb_memory": os.sysconf("SC_PHYS_PAGES") * page >> 20}
    known = re.sub(r"\$(pagesize|ncpus|mb_memory)",
                   lambda match: str(words[match[0]]), text)
    option, equals, value = known.partition("=")
    if known == text or not re.search("[-+*/]", value):
        return known
    return option + equals + calculated(value, said)


def included(line, path, section, files, depth):
    """The options of "include FILE": beside the file, or from here; it is
    added to files."""
    where = "%s, [%s]: %s; accepted: " % (path, section, line)
    name = line[len("include"):].strip()
    if not os.path.exists(name):
        name = os.path.join(os.path.dirname(path), name)
    if not os.path.isfile(name):
        raise problem(where + "a file with options and no [section]")
    if depth == DEEPEST:
        raise problem(where + "no more than %d that include each other"
                      % DEEPEST)
    files.append(name)
    for number, inner in lines_of(name, name):
        if inner.startswith("["):
            raise problem("%s, line %d: %s; accepted: no [section] in a file "
                          "that is included" % (name, number, inner))
        yield from options_of(inner, name, section, files, depth + 1)


def options_of(line, path, section, files, depth=0):
    """[(option, value or None)] of a line: one, or those of a file."""
    if re.match(r"include\s", line):
        yield from included(line, path, section, files, depth)
        return
    option, equals, value = substituted(
        line, "%s, [%s]" % (path, section)).partition("=")
    option = option.strip().lower()
    yield option, value.strip() if equals else None


def check_name(name, where):
    """It becomes a word of fio's command line, and is printed."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise problem("%s: [%s]; accepted: a name that this locale's %s has"
                      % (where, name, error.encoding)) from error
    if not name.isprintable():
        raise problem("%s: [%s]; accepted: a name that can be printed"
                      % (where, name))


def job_sections(path):
    """([(section, [(option, value or None)])], files) of a job file, in its
    order."""
    found, files = [], [path]
    for number, line in lines_of(path, path):
        if line.startswith("["):
            name = line[1:].partition("]")[0]
            check_name(name, "%s, line %d" % (path, number))
            found.append((name, []))
        elif found:
            found[-1][1].extend(options_of(line, path, found[-1][0], files))
        else:
            raise problem("%s, line %d: '%s' comes before any [section]"
                          % (path, number, line))
    return found, files


def is_global(section):
    """Whether it is for the jobs that follow; to fio any such name is."""
    return section.startswith("global")


# --- what of it is accepted ------------------------------------------------

def accepted(option, writes):
    """What an option accepts, in words."""
    pattern = ALLOWED.get(option)
    if option == "rw":
        return ", ".join(READS + WRITES) if writes else \
            "%s, or --write, which DESTROYS the disk's data" % ", ".join(READS)
    if option in OFF:
        return "%s=%s, and %s" % (option, pattern, SHAPES)
    if option == "numjobs":
        return "numjobs=1 to 999"
    return ACCEPTED.get(pattern) or re.sub(
        r"\(:.*|[()]", "", pattern).replace("|", ", ").replace(
            "[a-z_]+", "a word, and numbers")


def check_option(option, value, writes, where):
    """Refuse what would write, leave the disk, or cannot be compared."""
    written, option = option, ALIASES.get(option, option)

    def refuse(said):
        word = written if value is None else "%s=%s" % (written, value)
        raise problem("%s: %s; accepted: %s" % (where, word, said))
    if option in OURS - OFF:
        return
    if option not in ALLOWED:
        refuse(SHAPES)
    pattern = ALLOWED[option]
    if value is None and pattern != SWITCH:
        refuse(option + "= and a value")
    if not re.fullmatch(pattern, value or "", re.IGNORECASE | re.ASCII):
        refuse(accepted(option, writes))
    if option == "rw" and not writes and kind_of(value) in WRITES:
        refuse(accepted(option, writes))


def kind_of(value):
    """"randread" of "randread:8"; fio's default is to read."""
    return (value or "read").partition(":")[0].lower()


def whole_number(text):
    """Of digits as fio reads them: a 0 in front is not octal."""
    return int(text, 16 if "x" in text.lower() else 10)


def reads_of(options):
    """Of 100 I/Os of a job that does both, how many read; else None."""
    known = dict(options)
    if kind_of(known.get("rw")) not in MIXES:
        return None
    reads = 50
    for option, value in options:
        if option == "rwmixread":
            reads = int(value)
        elif option == "rwmixwrite":
            reads = 100 - int(value)
    return reads


def check_order(jobs, path):
    """All jobs run at once here."""
    late = [name for name, options in jobs[1:]
            if dict(options).get("stonewall", "0") != "0"]
    if late:
        raise problem(
            "%s, [%s]: stonewall; accepted: jobs that run all at once; make "
            "a file of each that is to run by itself" % (path, late[0]))


def words_of(section, options):
    """A section as words of fio's command line; the engine comes first, as
    fio knows its options only then."""
    options = sorted((one for one in options if one[0] not in OURS | OFF),
                     key=lambda one: one[0] != "ioengine")
    return ["--name=" + section] + [
        "--" + option + ("" if value is None else "=" + value)
        for option, value in options]


def job_workload(sections, files):
    """Checked sections of a job file, the first of files, as a workload."""
    path = files[0]
    parts, jobs, common = [], [], []
    for section, options in sections:
        if is_global(section):
            common = common + options
            parts.append(Part(words_of("global", options), 0, None))
            continue
        jobs.append((section, common + options))
        known = dict(jobs[-1][1])
        parts.append(Part(words_of(section, options),
                          whole_number(known.get("numjobs", "1")),
                          reads_of(jobs[-1][1])))
    if not jobs:
        raise problem("%s has no job, as [random] and rw=randread" % path)
    check_order(jobs, path)
    known = [dict(options) for _, options in jobs]
    kinds = {kind_of(one.get("rw")) for one in known}
    engines = {one.get("ioengine", "psync") for one in known}
    count = sum(part.jobs for part in parts)
    text = "%s: %d job%s, %s" % (path, count, "s"[:count > 1],
                                 ", ".join(sorted(kinds)))
    dropped = {option for one in known for option in one
               if option in OURS | OFF}
    if dropped:
        text += "; not used: " + ", ".join(sorted(dropped))
    return Workload(
        None, None, None, None, "io_uring" if "io_uring" in engines else
        min(engines), False, bool(kinds & set(WRITES)), text, parts, count,
        files)


def read_jobfile(path, writes):
    """(name, workload) of a job file."""
    sections, files = job_sections(path)
    for section, options in sections:
        for option, value in options:
            check_option(option, value, writes, "%s, [%s]" % (path, section))
    sections = [(section, [(ALIASES.get(option, option), value)
                           for option, value in options])
                for section, options in sections]
    name = re.sub(r"[^\w.+-]", "_", os.path.basename(path))
    return re.sub(r"\.fio$", "", name) or "job", job_workload(sections, files)
