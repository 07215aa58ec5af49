# SPDX-License-Identifier: GPL-2.0
"""Text tables of cells."""
import math

from .summary import HEADINGS, groups, stat_of


def decimals(value, column=None):
    """Digits after the point: four that count, and all before it."""
    if column == "ratio":
        return 3
    if column == "cpu_busy":
        return 2
    if not value:
        return 0
    return min(6, max(0, 3 - math.floor(math.log10(abs(value)))))


def figures(one, column=None):
    """A statistic as two texts: the value, and the spread if n > 1."""
    if one is None:
        return "-", ""
    places = decimals(one["mean"], column)
    return f"{one['mean']:.{places}f}", \
        f"±{one['sd']:.{places}f}" if one["sd"] else ""


def choose_columns(cells, columns=None):
    """Columns that have data; wanted ones may be further fields."""
    return [column for column in columns or HEADINGS
            if any(stat_of(cell, column) for cell in cells)]


def group_title(key, cells):
    """Heading of a workload's rows; names the suite if there are several."""
    suite, profile, workload = key
    several = len({cell["suite"] for cell in cells}) > 1
    return f"{suite}: " * several + f"{profile}, {workload}"


def spread_note(cells):
    """What ± means, if there is one."""
    runs = sorted({cell["n"] for cell in cells})
    if runs[-1] == 1:
        return "One run each."
    many = " to ".join(map(str, dict.fromkeys([runs[0], runs[-1]])))
    return f"Means of {many} runs, ± one standard deviation."


def notes(cells):
    said = []
    names = sorted({cell["baseline"] for cell in cells} - {None})
    if names:
        said.append(f"Ratio: IOPS to {' or '.join(names)}.")
    if "patched always" in names:
        said.append("Patched always is the baseline where there is no "
                    "unpatched kernel.")
    if any(cell["ratio"] is None for cell in cells):
        said.append("No ratio where always was not measured.")
    said.append(spread_note(cells))
    mixed = sum(len(cell["commits"]) > 1 for cell in cells)
    if mixed:
        said.append(f"{mixed} of {len(cells)} rows average several commits.")
    return said


def aligned(rows):
    """Lines of rows of cells; a cell is text, or a (value, spread) pair."""
    pairs = [[cell if isinstance(cell, tuple) else (cell, "")
              for cell in row] for row in rows]
    widths = [[max(len(cell[part]) for cell in column) for part in (0, 1)]
              for column in zip(*pairs)]
    for row in pairs:
        yield "  ".join(
            value.ljust(left) if number < 2 else
            (value.rjust(left) + " " * bool(right) + spread.ljust(right))
            for number, ((value, spread), (left, right))
            in enumerate(zip(row, widths))).rstrip()


def body(cells, columns=None):
    """One row per kernel and policy, grouped by workload."""
    chosen = choose_columns(cells, columns)
    rows = [["kernel", "policy"] +
            [HEADINGS.get(column, column) for column in chosen]]
    rows += [[cell["kernel"], cell["policy"]] +
             [figures(stat_of(cell, column), column) for column in chosen]
             for cell in cells]
    lines = aligned(rows)
    text = ["  " + next(lines)]
    for key, group in groups(cells, "suite", "profile", "workload").items():
        text += ["", group_title(key, cells)]
        text += ["  " + next(lines) for _ in group]
    return "\n".join(text)


def table(cells, columns=None):
    return "\n".join([body(cells, columns), "", *notes(cells)]) if cells \
        else "no records"
