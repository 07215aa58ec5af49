# SPDX-License-Identifier: GPL-2.0
"""The report: one self-contained HTML page, which needs no network."""
from html import escape

from . import verdict as verdicts
from .intervals import METRICS
from .records import write_file
from .summary import HEADINGS, groups, stat_of
from .tables import choose_columns, figures, group_title, notes

CSS = """
:root { color-scheme: light dark; --soft: #8882; --good: #2a82; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 80rem;
  margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
section { border-top: 1px solid; margin-top: 2rem; }
.verdict { font-size: 1.25rem; font-weight: 600; margin: .75rem 0; }
summary { cursor: pointer; font-weight: 600; margin: 1rem 0 .5rem; }
pre { background: var(--soft); padding: .6rem .8rem; white-space: pre-wrap; }
dt, .group th, .use { font-weight: 600; }
dd { margin: 0 0 .5rem; white-space: pre-line; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .85rem;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption, tbody th { text-align: left; padding: .25rem .45rem; }
caption span { position: sticky; left: .45rem; display: inline-block;
  max-width: calc(100vw - 3rem); }
td, thead th { padding: .25rem .45rem; text-align: right;
  white-space: nowrap; position: relative; }
.drawn { background: linear-gradient(#8888, #8888) bottom / 1px 8px no-repeat; }
td i { position: absolute; bottom: 0; height: 4px; background: #888;
  forced-color-adjust: none; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
td i + i { bottom: 1px; height: 2px; background: CanvasText; opacity: .5; }
.better { background: #0072b2; }
.worse { background: #d55e00; }
tbody th { font-weight: 400; position: sticky; left: 0; z-index: 1;
  background: Canvas; }
.group, .group th { background: var(--soft); }
.use { background: var(--good); }
.use th { background: linear-gradient(var(--good), var(--good)), Canvas; }
.facts { margin: .25rem 0; }
.sd { opacity: .75; font-size: .85em; }
@media print {
  body { font-size: 11px; max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  td, th { white-space: normal; padding: .1rem .2rem 5px; }
  table { font-size: 9px; }
  caption span { max-width: none; }
  tr { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; }
}
@media (prefers-color-scheme: dark) {
  .better { background: #56b4e9; }
  .worse { background: #e69f00; }
}
"""

LEGEND = ("A bar starts at the middle of its cell, which is the baseline; the thin "
          "line is the 95% interval. Each column has a scale of its own, up to "
          "100%. Blue is better, orange is worse, both beyond chance; grey may "
          "be chance, or too little to matter.")
LEAST = 0.05                    # a change that always reaches the edge


def pair_cell(pair, drawn=None):
    value, spread = map(escape, pair)
    if spread:
        value += f' <span class="sd">{spread}</span>'
    if drawn:
        return f'<td class="drawn">{value}{drawn}</td>'
    return f"<td>{value}</td>"


def scale_of(some):
    """The change that reaches the edge: the greatest end of an interval."""
    return min(1, max([LEAST] + [
        abs(end - 1) for one in some
        for end in (one["low"], one["ratio"], one["high"]) if end is not None]))


def bar(kind, ratios, most):
    """From the one ratio to the other; a change of most reaches the edge."""
    left, right = sorted(50 + 50 * max(-1, min(1, (ratio - 1) / most))
                         for ratio in ratios)
    return f'<i class="{kind}" style="left:{left:.1f}%;' \
        f'width:{right - left:.1f}%"></i>'


def comparison_cell(one, most):
    """A comparison in words, and drawn below them."""
    drawn = one and bar(one.get("judgement") or "open", (1, one["ratio"]), most)
    if one and one["low"] is not None:
        drawn += bar("interval", (one["low"], one["high"]), most)
    return pair_cell(verdicts.cell_text(one), drawn)


def table(name, caption, heads, rows):
    """A table that scrolls by itself.

    A row is (class, heading, cells), or (None, heading, None) of a group."""
    yield ('<div class="scroll" role="region" tabindex="0" aria-label="'
           f'{escape(heads[0])} of {escape(name)}"><table><caption><span>'
           f'{escape(caption)}</span></caption><thead><tr>')
    for head in heads[1:]:
        yield f'<th scope="col">{escape(head)}</th>'
    yield "</tr></thead><tbody>"
    for kind, heading, cells in rows:
        if cells is None:
            yield ('<tr class="group"><th scope="rowgroup" colspan="'
                   f'{len(heads) - 1}">{escape(heading)}</th></tr>')
        else:
            marked = f' class="{kind}"' if kind else ""
            yield (f'<tr{marked}><th scope="row">{escape(heading)}</th>'
                   f'{"".join(cells)}</tr>')
    yield "</tbody></table></div>"


def results(cells, suite):
    if not cells:
        return ["<p>No records.</p>"]
    chosen, rows = choose_columns(cells), []
    for key, group in groups(cells, "suite", "profile", "workload").items():
        rows.append((None, group_title(key, cells), None))
        rows += [(None, f"{cell['kernel']} {cell['policy']}",
                  [pair_cell(figures(stat_of(cell, column), column))
                   for column in chosen]) for cell in group]
    return table(suite, f"{suite}. {' '.join(notes(cells))}",
                 ["Results", "kernel, policy"] +
                 [HEADINGS[column] for column in chosen], rows)


def verdict_rows(verdict):
    """Rows of the verdict's table; the mode to use is marked. A column's bars
    have one scale, up to twice the baseline."""
    used = {(one["profile"], one["workload"]): one["mode"]
            for one in verdict["verdicts"]}
    most = {metric: scale_of(some) for (metric,), some in groups(
        verdict["comparisons"], "metric").items()}
    last = None
    for profile, workload, mode, found in verdicts.rows_of(verdict):
        if (profile, workload) != last:
            last = profile, workload
            yield None, f"{profile}, {workload}", None
        use = used[last] == mode
        yield ("use" if use else None, mode + (" (use)" if use else ""),
               [comparison_cell(one, most.get(metric))
                for metric, one in zip(METRICS, found)])


def facts_part(section):
    """What was measured, and when, in a line; what a verdict holds with."""
    facts = [value for _, value in section.get("facts") or [] if value]
    holds = [f"This holds with {one}." for one in section.get("holds") or []]
    return [f'<p class="facts">{escape(one)}</p>'
            for one in [" · ".join(facts)] * bool(facts) + holds]


def verdict_part(section, suite):
    """The verdict: a sentence, and what it is drawn from."""
    verdict = section.get("verdict")
    if not verdict:
        return facts_part(section)
    heads = ["Verdict", "mode"] + [one[0] for one in METRICS.values()]
    return [*(f'<p class="verdict">{escape(one)}</p>'
              for one in verdicts.sentences(verdict)),
            *facts_part(section),
            *table(suite, verdicts.heading(verdict), heads,
                   verdict_rows(verdict)), f'<p class="sd">{LEGEND}</p>']


def lines_of(value):
    """A section's text, or list of texts, as lines."""
    return "\n".join(value) if isinstance(value, list) else str(value or "")


def pairs(rows):
    """A list of names and what they are; empty ones are left out."""
    return ["<dl>", *(f"<dt>{name}</dt><dd>{escape(value)}</dd>"
                      for name, value in rows if value), "</dl>"]


def details_part(section, suite):
    """What few look up: folded, if a verdict says what it comes to."""
    verdict = section.get("verdict")
    text = ["<details>" if verdict else '<details open="">',
            "<summary>Details</summary>"]
    text += pairs((name, lines_of(section.get(key))) for name, key in (
        ("What this is", "claim"), ("Command", "command"),
        ("Kernels compared", "kernels")))
    for lines in (verdicts.lines_of(verdict), section.get("details")):
        if lines:
            text.append(f"<pre>{escape(lines_of(lines))}</pre>")
    if "cells" in section:
        text += results(section["cells"], suite)
    return [*text, "</details>"]


def name_of(section):
    return lines_of(section.get("suite")) or "results"


def section_part(section, number):
    """A suite: verdict with its table, details, and how to read them.

    facts: [(name, text)]; what is missing or empty is left out."""
    suite, verdict = name_of(section), section.get("verdict")
    return [f'<section id="s{number}"><h2>{escape(suite)}</h2>',
            *verdict_part(section, suite), *details_part(section, suite),
            *pairs([("Intervals", verdict["method"] if verdict else ""),
                    ("Notes", lines_of(section.get("note")))]), "</section>"]


def html(sections, path, title):
    # also XML, so that any parser says whether its tags match
    text = ['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width"/>',
            f"<title>{escape(title)}</title><style>{CSS}</style></head><body>"
            f"<h1>{escape(title)}</h1>"]
    if len(sections) > 1:
        text += ["<ul>", *(
            f'<li><a href="#s{number}">{escape(name_of(section))}</a></li>'
            for number, section in enumerate(sections)), "</ul>"]
    for number, section in enumerate(sections):
        text += section_part(section, number)
    text.append("</body></html>\n")
    # a name of bytes that are no UTF-8 may be part of the command
    write_file(path, "\n".join(text).encode("utf-8", "backslashreplace"))
