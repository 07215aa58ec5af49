# SPDX-License-Identifier: GPL-2.0
"""The report: one self-contained HTML page, which needs no network."""
from html import escape

from . import chart
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
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; }
figure { margin: 0; flex: 0 1 400px; min-width: 0; }
figcaption { font-weight: 600; }
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
  white-space: nowrap; }
tbody th { font-weight: 400; position: sticky; left: 0; background: Canvas; }
.group, .group th { background: var(--soft); }
.use { background: var(--good); }
.use th { background: linear-gradient(var(--good), var(--good)), Canvas; }
.facts { margin: .25rem 0; }
.sd { opacity: .75; font-size: .85em; }
@media print {
  body { font-size: 11px; max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  td, th { white-space: normal; padding: .1rem .2rem; }
  table { font-size: 9px; }
  caption span { max-width: none; }
  .charts { gap: 2%; }
  figure { flex: 0 1 31%; }
  tr, figure { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; }
}
""" + chart.STYLE

LEGEND = ("Bars: the change from the baseline, with 95% intervals. Blue is "
          "better, orange is worse, both beyond chance; grey may be chance, "
          "or too little to matter.")


def pair_cell(pair):
    """A figure with its spread."""
    value, spread = map(escape, pair)
    if spread:
        value += ' <span class="sd">%s</span>' % spread
    return "<td>%s</td>" % value


def table(name, caption, heads, rows):
    """A table that scrolls by itself.

    A row is (class, heading, pairs), or (None, heading, None) of a group.
    """
    text = ['<div class="scroll" role="region" tabindex="0" aria-label="%s '
            'of %s"><table><caption><span>%s</span></caption><thead><tr>' % (
                escape(heads[0]), escape(name), escape(caption))]
    text += ['<th scope="col">%s</th>' % escape(head) for head in heads[1:]]
    text.append("</tr></thead><tbody>")
    for kind, heading, pairs in rows:
        if pairs is None:
            text.append('<tr class="group"><th scope="rowgroup" colspan="%d">'
                        "%s</th></tr>" % (len(heads) - 1, escape(heading)))
            continue
        text.append('<tr%s><th scope="row">%s</th>%s</tr>' % (
            kind and ' class="%s"' % kind or "", escape(heading),
            "".join(map(pair_cell, pairs))))
    return text + ["</tbody></table></div>"]


def results(cells, suite):
    """The table of means."""
    if not cells:
        return ["<p>No records.</p>"]
    chosen, rows = choose_columns(cells), []
    for key, group in groups(cells, "suite", "profile", "workload").items():
        rows.append((None, group_title(key, cells), None))
        rows += [(None, "%s %s" % (cell["kernel"], cell["policy"]),
                  [figures(stat_of(cell, column), column)
                   for column in chosen]) for cell in group]
    return table(suite, "%s. %s" % (suite, " ".join(notes(cells))),
                 ["Results", "kernel, policy"] +
                 [HEADINGS[column] for column in chosen], rows)


def verdict_rows(verdict):
    """Rows of the verdict's table; the mode to use is marked."""
    used = {(one["profile"], one["workload"]): one["mode"]
            for one in verdict["verdicts"]}
    last = None
    for profile, workload, mode, pairs in verdicts.rows_of(verdict):
        if (profile, workload) != last:
            last = profile, workload
            yield None, "%s, %s" % last, None
        use = used[last] == mode
        yield "use" if use else None, mode + (" (use)" if use else ""), pairs


def charts(verdict):
    """The charts, folded by profile if there are several."""
    text = []
    found = groups([dict(zip(("profile", "metric", "svg"), one))
                    for one in chart.charts(verdict)], "profile")
    for (profile,), some in found.items():
        drawn = ['<div class="charts">'] + [
            "<figure><figcaption>Change of %s</figcaption>%s</figure>" % (
                METRICS[one["metric"]][0], one["svg"])
            for one in some] + ["</div>"]
        text += drawn if len(found) == 1 else [
            "<details open><summary>%s</summary>" % escape(profile), *drawn,
            "</details>"]
    return text


def facts_part(section):
    """What was measured, and when, in a line; what a verdict holds with."""
    facts = [value for _, value in section.get("facts") or [] if value]
    holds = ["This holds with %s." % one for one in section.get("holds") or []]
    return ['<p class="facts">%s</p>' % escape(one)
            for one in [" · ".join(facts)] * bool(facts) + holds]


def verdict_part(section, suite):
    """The verdict: a sentence, the charts, and what both are drawn from."""
    verdict = section.get("verdict")
    if not verdict:
        return facts_part(section)
    heads = ["Verdict", "mode"] + [one[0] for one in METRICS.values()]
    return ['<p class="verdict">%s</p>' % escape(one)
            for one in verdicts.sentences(verdict)] + facts_part(
                section) + charts(verdict) + [
                    '<p class="sd">%s</p>' % LEGEND] + table(
                        suite, verdicts.heading(verdict), heads,
                        verdict_rows(verdict))


def lines_of(value):
    """A section's text, or list of texts, as lines."""
    return "\n".join(value) if isinstance(value, list) else str(value or "")


def pairs(rows):
    """A list of names and what they are; empty ones are left out."""
    return ["<dl>"] + ["<dt>%s</dt><dd>%s</dd>" % (name, escape(value))
                       for name, value in rows if value] + ["</dl>"]


def details_part(section, suite):
    """What few look up: folded, if a verdict says what it comes to."""
    verdict = section.get("verdict")
    text = ["<details%s><summary>Details</summary>" % (
        "" if verdict else " open")]
    text += pairs((name, lines_of(section.get(key))) for name, key in (
        ("What this is", "claim"), ("Command", "command"),
        ("Kernels compared", "kernels")))
    for lines in (verdicts.lines_of(verdict), section.get("details")):
        if lines:
            text.append("<pre>%s</pre>" % escape(lines_of(lines)))
    return text + results(section.get("cells"), suite) + ["</details>"]


def notes_part(section):
    """How to read all this, last."""
    verdict = section.get("verdict")
    return pairs([
        ("Intervals", verdict["method"] if verdict else ""),
        ("Notes", lines_of(section.get("note")))])


def section_part(section, number):
    """A suite: verdict with charts and table, details, notes.

    facts: [(name, text)]; what is missing or empty is left out.
    """
    suite = lines_of(section.get("suite")) or "results"
    return ['<section id="s%d"><h2>%s</h2>' % (number, escape(suite)),
            *verdict_part(section, suite), *details_part(section, suite),
            *notes_part(section), "</section>"]


def html(sections, path, title):
    """Write the page."""
    text = ['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            "<title>%s</title><style>%s</style></head><body><h1>%s</h1>"
            % (escape(title), CSS, escape(title))]
    if len(sections) > 1:
        text += ["<ul>"] + ['<li><a href="#s%d">%s</a></li>' % (
            number, escape(lines_of(section.get("suite")) or "results"))
                            for number, section in enumerate(sections)]
        text.append("</ul>")
    for number, section in enumerate(sections):
        text += section_part(section, number)
    text.append("</body></html>\n")
    # a name of bytes that are no UTF-8 may be part of the command
    write_file(path, "\n".join(text).encode("utf-8", "backslashreplace"))
