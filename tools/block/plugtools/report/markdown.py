# SPDX-License-Identifier: GPL-2.0
"""A verdict as Markdown, for a mail or an issue."""
from . import verdict as verdicts
from .intervals import METRICS


def plain(text):
    """Text in which nothing is special to Markdown's tables."""
    return " ".join(str(text).replace("|", "\\|").split())


def table(heads, rows):
    """Lines of a table; what is not a name stands to the right."""
    yield f"| {' | '.join(heads)} |"
    yield f"|---|---{'|--:' * (len(heads) - 2)}|"
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"


def text(verdict, facts, holds):
    """Sentences, table and what was measured; facts: [(name, text)]."""
    if not verdict:
        return "No verdict: nothing to compare with."
    lines = [f"**{plain(one)}**" for one in verdicts.sentences(verdict)]
    lines += [f"This holds with {plain(one)}." for one in holds]
    named = verdicts.told_apart(verdict)
    rows = [(workload + (", " + profile) * named, mode,
             *(" ".join(verdicts.cell_text(one)) for one in found))
            for profile, workload, mode, found in verdicts.rows_of(verdict)]
    lines += ["", *table(["workload", "mode"] + [
        one[0] for one in METRICS.values()], rows), "",
              verdicts.heading(verdict), ""]
    return "\n".join(lines + [f"- {name}: {plain(value)}"
                              for name, value in facts if value])
