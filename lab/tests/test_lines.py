# SPDX-License-Identifier: GPL-2.0
"""What the suite "lines" makes of what the plugin and the guest say."""
import tempfile
import types
import unittest

from lab.bench import lines
from lab.bench import linesmap

KERNEL = 0xffffffff81000000
DIRECT = 0xffff888000000000

PAHOLE = """struct request {
\tstruct request_queue *     q;                    /*     0     8 */
\tunsigned int               flags:2;              /*     8: 0  4 */
\tstruct list_head           queuelist __attribute__((__aligned__(8))); /* 56 16 */
\tunion {
\t\tint                hidden;               /*   72     4 */
\t};                                               /*    72     8 */
\tchar                       name[8];              /*    80     8 */
\tvoid                       (*end_io)(struct request *); /*   128     8 */
\t/* size: 136, cachelines: 3, members: 5 */
};
"""


def known():
    """Symbols without a System.map."""
    found = linesmap.Symbols.__new__(linesmap.Symbols)
    found.addresses = [KERNEL, KERNEL + 0x100, KERNEL + 0x9000, KERNEL + 0x9100,
                       KERNEL + 0xa000]
    found.names = ["submit_bio.isra.0", "bio_endio", "__per_cpu_start",
                   "runqueues", "_end"]
    found.percpu = range(KERNEL + 0x9000, KERNEL + 0xa000)
    return found


def a_map(*said):
    """What lies where."""
    return linesmap.Map(said, known(), "module")


class Counts(unittest.TestCase):
    """The plugin's file."""

    def read(self, text):
        """A file with this text, read."""
        with tempfile.NamedTemporaryFile("w", suffix=".counts") as out:
            out.write(text)
            out.flush()
            return lines.read_counts(out.name)

    def test_window_is_read(self):
        """I/Os, distinct lines, sites and lines of one."""
        found = self.read("window a 100 2500\nsite %x 300 2 1 0 4 0 0\n"
                          "line %x 7 1 0 7\nend a\n" % (KERNEL, DIRECT))
        self.assertEqual((found["a"].ios, found["a"].distinct), (100, 2500))
        self.assertEqual(found["a"].sites, [(KERNEL, 300, 2, 1, 0, 4, 0, 0)])
        self.assertEqual(found["a"].lines, [(DIRECT, 7, 1, 0, 7)])

    def test_one_that_is_not_over_is_not_there(self):
        """The guest would be stopped before all of it is written."""
        self.assertEqual(self.read("window a 100 2500\nsite 1 1 1 1 1 1 1 1\n"),
                         {})

    def test_last_line(self):
        """Only a whole one; the guest is stopped by it."""
        with tempfile.NamedTemporaryFile("w", suffix=".counts") as out:
            self.assertEqual(lines.last_line(out.name + ".not"), "")
            for more, last in (("", ""), ("x" * 300 + "\nend a\n", "end a"),
                               ("end b", "end a"), ("\n", "end b")):
                out.write(more)
                out.flush()
                self.assertEqual(lines.last_line(out.name), last)

    def test_figures_are_per_io(self):
        """Summed over the instructions of all symbols."""
        window = lines.Window(100, 2500, [
            (KERNEL, 300, 200, 100, 50, 4, 2, 10),
            (KERNEL + 4, 100, 0, 0, 50, 0, 0, 0), (8, 1000, 1, 1, 0, 0, 0, 0)],
                              [(DIRECT, 7, 1, 0, 7)])
        found = lines.figures(window, a_map("object request %x 64" % DIRECT))
        self.assertEqual(found["insns_per_io"], 14)
        self.assertEqual(found["atomics_per_io"], 1)
        self.assertEqual(found["lines_per_io"], 25)
        self.assertEqual(found["l1_misses_per_io"], 0.04)
        self.assertEqual(found["contended_per_io"], 0.07)
        self.assertEqual(found["contended_no_tag_per_io"], 0)
        self.assertEqual([row["symbol"] for row in found["symbols"]["atomics"]],
                         ["submit_bio"])
        self.assertEqual([row["struct"] for row in found["structs"]["touches"]],
                         ["request"])


class Names(unittest.TestCase):
    """Of addresses."""

    def test_object_wins_over_its_slab(self):
        """What is known of a queue is said, not only its cache."""
        where = a_map("slab kmalloc-512 %x 4096 512" % DIRECT,
                      "object blk_mq_hw_ctx %x 512" % (DIRECT + 1024))
        self.assertEqual(where.of(DIRECT + 1024 + 64), ("blk_mq_hw_ctx", 1))
        self.assertEqual(where.of(DIRECT + 512 + 128), ("slab kmalloc-512", 2))

    def test_object_that_begins_within_a_line(self):
        """A line that has the beginning of one is its first."""
        where = a_map("object sbitmap_word %x 64" % (DIRECT + 32))
        self.assertEqual(where.of(DIRECT), ("sbitmap_word", 0))

    def test_what_is_no_object(self):
        """Symbols, variables of a CPU, user space, and the rest."""
        where = a_map("percpu %x" % 0x100000)
        self.assertEqual(where.of(KERNEL + 0x140)[0], "bio_endio")
        self.assertEqual(where.of(KERNEL + 0x109140)[0], "percpu runqueues")
        self.assertEqual(where.known.of(KERNEL + 0xb000), "(modules)")
        self.assertEqual(where.of(0x400000)[0], "(user space)")
        self.assertEqual(where.of(DIRECT)[0], "(other)")
        self.assertEqual(where.of(linesmap.VMALLOC.start)[0],
                         "(stacks, vmalloc)")

    def test_fields_of_lines(self):
        """A field that crosses lines is on both; those of unions are not."""
        kernel = types.SimpleNamespace(quiet=lambda *_: PAHOLE)
        saved, linesmap.kernel = linesmap.kernel, kernel
        try:
            found = linesmap.fields("module", "request")
        finally:
            linesmap.kernel = saved
        self.assertEqual(dict(found), {
            0: ["q", "flags", "queuelist"],
            1: ["queuelist", "{}", "name"], 2: ["end_io"]})


class Cells(unittest.TestCase):
    """What is measured."""

    def test_every_kernel_and_policy(self):
        """On each number of CPUs and queues."""
        found = lines.every()
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(len(found), len(lines.CONFIGS) * len(lines.PAIRS) *
                         len(lines.LOADS))

    def test_adaptive_learns_first(self):
        """Otherwise always would be counted under its name."""
        words = [lines.Cell("patched", policy, "rand4k-s32", 4, 4).line(False)
                 .split() for policy in ("always", "adaptive")]
        self.assertEqual([int(line[5]) for line in words],
                         [lines.START // 4, lines.LEARN // 4])
