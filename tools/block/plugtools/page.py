# SPDX-License-Identifier: GPL-2.0
"""The report: one self-contained HTML page, which needs no network."""
import base64
import os
from html import escape

from . import verdict as verdicts
from .intervals import METRICS
from .records import ReportError, write_file
from .summary import HEADINGS, groups, stat_of
from .tables import choose_columns, figures, group_title, notes

CSS = """
:root { color-scheme: light dark; --soft: #8882; --good: #2a82; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 80rem;
  margin: 0 auto; padding: 1rem; }
section { border-top: 1px solid; margin-top: 2rem; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; }
dt, .group th, .use { font-weight: 600; }
dd { margin: 0; white-space: pre-line; }
.scroll { overflow: auto; max-height: 85vh; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .85rem;
  font-variant-numeric: tabular-nums; }
caption, tbody th { text-align: left; padding: .25rem .45rem; }
td, thead th { padding: .25rem .45rem; text-align: right;
  white-space: nowrap; }
thead { position: sticky; top: 0; background: Canvas; }
tbody th { font-weight: 400; }
.group { background: var(--soft); }
.use { background: var(--good); }
.sd { opacity: .75; font-size: .85em; }
img { max-width: 100%; background: #fff; }
"""
CAPTIONS = {
    "ratio": "Change of IOPS of each policy, in percent, from the baseline; "
             "error bars are one standard deviation.",
    "latency": "Latency in microseconds: mean and percentiles, on a "
               "logarithmic axis."}
TYPES = {".svg": "svg+xml", ".png": "png"}


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
            'of %s"><table><caption>%s</caption><thead><tr>' % (
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


def verdict_part(verdict, suite):
    """The verdict: its lines, and what they are drawn from."""
    if not verdict:
        return []
    heads = ["Verdict", "mode"] + [one[0] for one in METRICS.values()]
    return ["<h3>Verdict</h3>", "<pre>%s</pre>" % escape("\n".join(
        verdicts.lines_of(verdict)))] + table(
            suite, "%s %s" % (verdicts.heading(verdict), verdict["method"]),
            heads, verdict_rows(verdict))


def picture(path, suite):
    """A plot with its caption."""
    stem, suffix = os.path.splitext(path)
    caption = CAPTIONS.get(stem.rpartition("-")[2], os.path.basename(stem))
    try:
        with open(path, "rb") as file:
            data = base64.b64encode(file.read()).decode("ascii")
    except OSError as error:
        raise ReportError("%s: %s" % (path, error.strerror)) from error
    return ('<figure><img alt="%s" src="data:image/%s;base64,%s"><figcaption>'
            "%s</figcaption></figure>" % (
                escape("%s: %s The table of this section has the figures." % (
                    suite, caption)), TYPES[suffix], data, escape(caption)))


def pictures(paths, suite):
    """The plots of a section; of those in both formats, the SVG."""
    paths = [os.fspath(path) for path in paths]
    found = [picture(path, suite) for path in paths
             if path.endswith(".svg") or path[:-4] + ".svg" not in paths]
    return ["<h3>Plots</h3>"] * bool(found) + found


def lines_of(value):
    """A section's text, or list of texts, as lines."""
    return "\n".join(value) if isinstance(value, list) else str(value or "")


def section_part(section, number):
    """A suite: claim, command, kernels, units, verdict, table, plots."""
    suite = lines_of(section.get("suite")) or "results"
    text = ['<section id="s%d"><h2>%s</h2>' % (number, escape(suite)),
            "<p>%s</p><dl>" % escape(lines_of(section.get("claim")))]
    for name, heading in (("command", "Command"),
                          ("kernels", "Kernels compared"),
                          ("note", "Units")):
        value = escape(lines_of(section.get(name)))
        if value:
            text.append("<dt>%s</dt><dd>%s</dd>" % (heading, value))
    text += ["</dl>"] + verdict_part(section.get("verdict"), suite)
    text.append("<h3>Results</h3>")
    if section.get("details"):
        text.append('<pre tabindex="0">%s</pre>'
                    % escape(lines_of(section["details"])))
    text += results(section.get("cells"), suite)
    return text + pictures(section.get("plots") or [], suite) + ["</section>"]


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
    write_file(path, "\n".join(text).encode("utf-8"))
