# SPDX-License-Identifier: GPL-2.0
"""python3 -m plugtools.manual PROGRAM: what its --help says of each option, as
a manual page has it."""
import sys
import textwrap

from .bench import plugbench
from .stat import plugstat

PARSERS = {"plugbench": plugbench.make_parser, "plugstat": plugstat.parser_of}


def plain(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def value_of(option):
    if option.choices:
        return " {" + " | ".join(option.choices) + "}"
    return f" \\fI{option.metavar}\\fR" if option.metavar else ""


def options(parser):
    """Lines of roff."""
    for one in parser._actions:     # argparse has no public list of them
        if one.option_strings:
            names = ", ".join(f"\\fB{plain(name)}\\fR"
                              for name in one.option_strings)
            yield ".TP\n" + names + value_of(one)
            yield textwrap.fill(
                plain(f"{one.help[0].upper()}{one.help[1:]}."), 78,
                break_on_hyphens=False)


if __name__ == "__main__":
    print("\n".join(options(PARSERS[sys.argv[1]]())))
