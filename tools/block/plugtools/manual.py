# SPDX-License-Identifier: GPL-2.0
"""python3 -m plugtools.manual PROGRAM: what its --help says of each option, as
a manual page has it."""
import importlib
import sys
import textwrap


def plain(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def value_of(option):
    if option.choices:
        return " {" + " | ".join(f"\\fB{one}\\fR" for one in option.choices) + "}"
    return f" \\fI{option.metavar}\\fR" if option.metavar else ""


def options_of(parser):
    """(names, option), those of verbs once."""
    found = {}
    for one in parser._actions:     # argparse has no public list of them
        if one.option_strings:
            found[", ".join(one.option_strings)] = one
        elif one.dest == "verb":
            for verb in one.choices.values():
                found.update(options_of(verb))
    return found.items()


def options(parser):
    """Lines of roff."""
    for names, one in options_of(parser):
        yield f".TP\n\\fB{plain(names)}\\fR{value_of(one)}"
        text = one.help.replace("%%", "%")
        yield textwrap.fill(plain(f"{text[0].upper()}{text[1:]}."), 78,
                            break_on_hyphens=False)


if __name__ == "__main__":
    NAME = sys.argv[1]
    PROGRAM = importlib.import_module(f"plugtools.{NAME[len('plug'):]}.{NAME}")
    print("\n".join(options(PROGRAM.make_parser())))
