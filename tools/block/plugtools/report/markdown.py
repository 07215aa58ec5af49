# SPDX-License-Identifier: GPL-2.0
"""A verdict as Markdown, for a mail or an issue."""
from . import verdict as verdicts
from .intervals import METRICS


def plain(text):
    """Text in which nothing is special to Markdown's tables."""
    return " ".join(str(text).replace("|", "\\|").split())


def table(heads, rows):
    """Lines of a table; what is not a name stands to the right."""
    yield "| %s |" % " | ".join(heads)
    yield "|%s|" % "|".join(["---"] * 2 + ["--:"] * (len(heads) - 2))
    for row in rows:
        yield "| %s |" % " | ".join(map(plain, row))


def text(verdict, facts, holds):
    """Sentences, table and what was measured; facts: [(name, text)]."""
    if not verdict:
        return "No verdict: nothing to compare with."
    lines = ["**%s**" % plain(one) for one in verdicts.sentences(verdict)]
    lines += ["This holds with %s." % plain(one) for one in holds]
    named = verdicts.told_apart(verdict)
    rows = [(workload + (", " + profile) * named, mode,
             *(" ".join(pair) for pair in texts))
            for profile, workload, mode, texts in verdicts.rows_of(verdict)]
    lines += ["", *table(["workload", "mode"] + [
        one[0] for one in METRICS.values()], rows), "",
              verdicts.heading(verdict), ""]
    lines += ["- %s: %s" % (name, plain(value))
              for name, value in facts if value]
    return "\n".join(lines)
