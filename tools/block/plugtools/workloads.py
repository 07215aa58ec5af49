# SPDX-License-Identifier: GPL-2.0
"""What plugbench can measure: its own workloads, and a job file of fio's."""
import collections
import os
import re

from .system import UsageProblem

# options: what a job file's jobs say, as words of fio's command line.
Workload = collections.namedtuple(
    "Workload", "rw bs depth batch engine polled write text options jobs",
    defaults=(None, 1))


def workload(access, bs, depth, batch, engine="io_uring", polled=True,
             write=False):
    """A workload with the line that --help shows."""
    text = "%s %s, depth %d, by %d%s" % (access, bs, depth, batch,
                                         ", polled" if polled else "")
    return Workload(access, bs, depth, batch, engine, polled, write, text)


WORKLOADS = {
    "rand4k-s32": workload("randread", "4k", 128, 32),
    "rand4k-s128": workload("randread", "4k", 128, 128),
    "seq4k-s32": workload("read", "4k", 128, 32),
    "seq128k-s32": workload("read", "128k", 128, 32),
    "rand4k-qd1": workload("randread", "4k", 1, 1),
    "rand4k-qd32-wait": workload("randread", "4k", 32, 32),
    "rand4k-qd4": workload("randread", "4k", 4, 4, polled=False),
    "libaio-rand4k-s32": workload("randread", "4k", 128, 32, "libaio", False),
    "mix70-s32": workload("randrw", "4k", 128, 32, write=True),
}

READS = ("read", "randread")
WRITES = ("write", "randwrite", "rw", "readwrite", "randrw")
ENGINES = ("io_uring", "libaio", "sync", "psync", "pvsync", "pvsync2",
           "posixaio")
# What shapes the load and neither runs programs nor touches other files.
SHAPE = set("""
    rw readwrite bs blocksize bsrange blocksize_range bssplit bs_unaligned
    bs_is_seq_rand blockalign ba iodepth iodepth_batch iodepth_batch_submit
    iodepth_batch_complete iodepth_batch_complete_min
    iodepth_batch_complete_max iodepth_low serialize_overlap numjobs
    rwmixread rwmixwrite percentage_random random_distribution
    random_generator norandommap softrandommap offset offset_increment
    offset_align size io_size io_limit number_ios rate rate_min rate_iops
    rate_iops_min rate_process rate_cycle rate_ignore_thinktime thinktime
    thinktime_spin thinktime_blocks thinktime_blocks_type thinktime_iotime
    rw_sequencer registerfiles fixedbufs hipri hipri_percentage nonvectored
    force_async sqthread_poll sqthread_poll_cpu uncached nowait fsync
    fdatasync sync zero_buffers refill_buffers scramble_buffers iomem mem
    cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy prio
    prioclass cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit nice
    description ioengine""".split())
# These need no value; any other would take the next word for its own.
FLAGS = set("""norandommap zero_buffers refill_buffers bs_unaligned fixedbufs
    registerfiles hipri""".split())
# What is ours to say; the file's own word is dropped.
OURS = set("""
    name filename direct time_based runtime timeout ramp_time startdelay thread
    randseed randrepeat allrandrepeat group_reporting stonewall
    lat_percentiles clat_percentiles percentile_list unified_rw_reporting
    new_group loops""".split())


def job_sections(text, path):
    """[(section, [(option, value or None)])] of a job file."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        head = re.fullmatch(r"\[(.+)\]", line)
        if head:
            found.append((head.group(1).strip(), []))
            continue
        if not found:
            raise UsageProblem("--jobfile: %s, line %d: '%s' comes before "
                               "any [section]" % (path, number, line))
        option, equals, value = line.partition("=")
        found[-1][1].append((option.strip().lower(),
                             value.strip() if equals else None))
    return found


def check_option(option, value, writes, where):
    """Refuse what would write, leave the disk, or cannot be compared."""
    def refuse(accepted):
        word = option if value is None else "%s=%s" % (option, value)
        raise UsageProblem("--jobfile: %s: %s; accepted: %s" % (
            where, word, accepted))
    kind = (value or "").partition(":")[0].lower()
    if option in ("rw", "readwrite") and kind not in READS + WRITES:
        refuse(", ".join(READS + WRITES))
    if option in ("rw", "readwrite") and kind in WRITES and not writes:
        refuse("%s, or --write, which DESTROYS the disk's data"
               % ", ".join(READS))
    if option == "ioengine" and kind not in ENGINES:
        refuse(", ".join(ENGINES))
    if not value and option in SHAPE - FLAGS:
        refuse(option + "= and a value")
    if option == "direct" and value != "1":
        refuse("direct=1, since the page cache has no part in a policy")
    if option == "numjobs" and not re.fullmatch("[1-9][0-9]{0,2}",
                                                value or ""):
        refuse("numjobs=1 to 999")
    if option not in SHAPE | OURS:
        refuse("only what shapes the load; this may run programs, use other "
               "files, or make runs differ")


def words_of(section, options):
    """A section as words of fio's command line."""
    return ["--name=" + section] + [
        "--" + option + ("" if value is None else "=" + value)
        for option, value in options if option not in OURS]


def job_workload(sections, path):
    """Checked sections of a job file as a workload."""
    words, jobs, common = {"global": []}, 0, {}
    engines, kinds, dropped = set(), set(), set()
    for section, options in sections:
        known = dict(common, **dict(options))
        dropped |= {option for option, _ in options if option in OURS}
        if section == "global":
            common = known
            words["global"] += words_of(section, options)[1:]
            continue
        words[len(words)] = words_of(section, options)
        jobs += int(known.get("numjobs") or 1)
        engines.add(known.get("ioengine") or "psync")
        kinds |= {(known.get(option) or "read").partition(":")[0].lower()
                  for option in ("rw", "readwrite") if option in known}
    if not jobs:
        raise UsageProblem("--jobfile: %s has no job, as [random] and "
                           "rw=randread" % path)
    text = "%s: %d job%s, %s" % (path, jobs, "s"[:jobs > 1], ", ".join(
        sorted(kinds or {"read"})))
    if dropped:
        text += "; not used: " + ", ".join(sorted(dropped))
    return Workload(
        None, None, None, None, "io_uring" if "io_uring" in engines else
        min(engines), False, bool(kinds & set(WRITES)), text, words, jobs)


def read_jobfile(path, writes):
    """(name, workload) of a job file."""
    try:
        with open(path, encoding="utf-8") as file:
            sections = job_sections(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem("--jobfile: %s cannot be read (%s); accepted: a "
                           "job file of fio's" % (path, getattr(
                               error, "strerror", error))) from error
    for section, options in sections:
        for option, value in options:
            check_option(option, value, writes, "%s, [%s]" % (path, section))
    name = re.sub(r"[^\w.+-]", "_", os.path.basename(path))
    return re.sub(r"\.fio$", "", name) or "job", job_workload(sections, path)
