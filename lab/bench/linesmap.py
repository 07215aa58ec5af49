# SPDX-License-Identifier: GPL-2.0
"""Names for the addresses that the suite "lines" counts."""
import bisect
import collections
import os
import re

from scripts import kernel

USER_END = 1 << 63
# Where 64-bit x86 maps what vmalloc() hands out, stacks among it.
VMALLOC = range(0xffffc90000000000, 0xffffe90000000000)
LINE = 64

# Slab caches whose objects are of one type, whose fields pahole knows.
TYPES = {"io_kiocb": "io_kiocb", "bio": "bio"}


class Symbols:
    """The symbols of a kernel."""

    def __init__(self, variant):
        found = []
        with open(os.path.join(kernel.output(variant), "System.map"),
                  encoding="ascii") as lines:
            for line in lines:
                address, kind, name = line.split()
                if kind not in "aA":
                    found.append((int(address, 16), name))
        found.sort()
        self.addresses = [address for address, _ in found]
        self.names = [name for _, name in found]
        percpu = dict((name, address) for address, name in found)
        self.percpu = range(percpu["__per_cpu_start"], percpu["__per_cpu_end"])

    def of(self, address):
        """The symbol's name, without what a compiler adds to it."""
        if address < USER_END:
            return "(user space)"
        if address >= self.addresses[-1]:
            return "(modules)"
        at = bisect.bisect(self.addresses, address) - 1
        name = self.names[at] if at >= 0 else "?"
        return re.sub(r"\.(isra|part|constprop|cold)\b.*", "", name)

    def has(self, address):
        """Is it within the kernel's image?"""
        return self.addresses[0] <= address < self.addresses[-1]


def fields(module, name):
    """{line of a struct: its fields}, as pahole knows them."""
    found = collections.defaultdict(list)
    text = kernel.quiet(["pahole", "-C", name, module], "pahole")
    for line in text.splitlines():
        line = re.sub(r"\s*__attribute__\(\(.*\)\)", "", line)
        # A field of the struct itself is indented once, and so ends a union.
        match = re.match(r"\t(?:\}|\S.*?\b(\w+)(?:\[\d+\]|:\d+|\)\(.*\))*);"
                         r"\s*/\*\s+(\d+)(?::\s*\d+)?\s+(\d+) \*/", line)
        if match:
            first, size = int(match[2]), int(match[3])
            for at in range(first // LINE, (first + max(size, 1) - 1) // LINE
                            + 1):
                found[at].append(match[1] or "{}")
    return found


class Map:
    """What lies where in a guest's memory, as lines_guest said."""

    def __init__(self, lines, known, module):
        self.known, self.module = known, module
        self.objects, self.percpu, self.fields = [], [], {}
        for line in lines:
            kind, *words = line.split()
            if kind == "percpu":
                self.percpu.append(int(words[0], 16))
                continue
            name, start, size = words[0], int(words[1], 16), int(words[2])
            each = int(words[3]) if kind == "slab" else size
            self.objects.append((start, start + size, kind, name, each))
        # What is part of a slab, and has a better name, comes after it.
        self.objects.sort(key=lambda one: (one[0], -one[1]))
        self.starts = [one[0] for one in self.objects]

    def of(self, address):
        """(name, line within it) of a line's address."""
        at = bisect.bisect(self.starts, address + LINE - 1)
        for start, end, kind, name, each in self.objects[max(0, at - 600):
                                                         at][::-1]:
            if end > address:
                offset = max(0, address - start) % each
                return (name if kind == "object" else
                        "slab " + name), offset // LINE
        return self.symbol(address), 0

    def symbol(self, address):
        """The name of what is no object."""
        if address >= USER_END:
            for offset in self.percpu:
                inside = (address - offset) % (1 << 64)
                if inside in self.known.percpu:
                    return "percpu " + self.known.of(inside + LINE - 1)
            if address in VMALLOC:
                return "(stacks, vmalloc)"
            if not self.known.has(address):
                return "(other)"
        return self.known.of(address)

    def fields_of(self, name, line):
        """The fields that lie on a line of an object, if that is known."""
        kind = TYPES.get(name.replace("slab ", "").partition("-")[0], name)
        if " " in kind or "(" in kind or "->" in kind:
            return ""
        if kind not in self.fields:
            try:
                self.fields[kind] = fields(self.module, kind)
            except kernel.BuildError:
                self.fields[kind] = {}
        return " ".join(self.fields[kind].get(line, []))
