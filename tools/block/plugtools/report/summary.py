# SPDX-License-Identifier: GPL-2.0
"""Statistics: cells, each the mean and deviation of the runs of one thing."""
import math
import statistics

from .records import CELL, FIELDS, LARGEST, LATENCIES, cell_order, check
from .schema import is_a

HEADINGS = {"iops": "IOPS", "ratio": "ratio", "insns_per_io": "insns/IO",
            "lat_us.mean": "mean us", "lat_us.p50": "p50 us",
            "lat_us.p99": "p99 us", "lat_us.p999": "p99.9 us",
            "cpu_us_per_io": "CPU us/IO", "doorbells_per_io": "doorbells/IO",
            "requests_per_io": "requests/IO", "cpu_busy": "busy"}


def figure(record, metric):
    """What a record says of a metric, or None.

    cpu_us_per_io is the time that the CPU worked for one I/O."""
    if metric == "cpu_us_per_io":
        busy = record.get("cpu_busy")
        return busy / record["iops"] * 1e6 if busy and record["iops"] else None
    field, _, member = metric.partition(".")
    value = record.get(field)
    return (value or {}).get(member) if member else value


def stat(values):
    """Mean, standard deviation (null for one value) and n, or None."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    return {"mean": statistics.fmean(values),
            "sd": statistics.stdev(values) if len(values) > 1 else None,
            "n": len(values)}


def extras(records):
    """Statistics of the further fields that are numbers in some record."""
    values = {}
    for record in records:
        for name, value in record.items():
            if name not in FIELDS and is_a(value, "number") and \
                    abs(value) <= LARGEST:
                values.setdefault(name, []).append(value)
    return {name: stat(values[name]) for name in sorted(values)}


def cell_of(records):
    cell = {name: records[0][name] for name in CELL}
    cell.update(n=len(records), ratio=None, ratio_sd=None, baseline=None,
                extra=extras(records),
                commits=sorted({record["commit"] for record in records}))
    for name in ("iops", "cpu_us_per_io", "insns_per_io", "doorbells_per_io",
                 "requests_per_io", "cpu_busy"):
        cell[name] = stat([figure(record, name) for record in records])
    cell["lat_us"] = {
        name: stat([figure(record, "lat_us." + name) for record in records])
        for name in LATENCIES}
    return cell


def set_ratio(cell, base):
    if not base or not base["iops"]["mean"]:
        return
    cell["baseline"] = f"{base['kernel']} {base['policy']}"
    cell["ratio"] = cell["iops"]["mean"] / base["iops"]["mean"]
    if cell is base and cell["n"] > 1:
        cell["ratio_sd"] = 0.0
    elif cell["n"] > 1 and base["n"] > 1 and cell["iops"]["mean"]:
        cell["ratio_sd"] = cell["ratio"] * math.hypot(*(
            one["iops"]["sd"] / one["iops"]["mean"] for one in (cell, base)))


def groups(items, *names):
    """Items by the values of these fields, in order of first appearance."""
    found = {}
    for item in items:
        found.setdefault(tuple(item[name] for name in names), []).append(item)
    return found


def summarise(records):
    """Cells: statistics over the runs, and the ratio to the baseline.

    The baseline is unpatched always of the same suite, profile and
    workload; where there is none, patched always; `baseline` says which."""
    check(records)
    cells = sorted(map(cell_of, groups(records, *CELL).values()),
                   key=cell_order)
    for group in groups(cells, "suite", "profile", "workload").values():
        always = {cell["kernel"]: cell for cell in group
                  if cell["policy"] == "always"}
        base = always.get("unpatched") or always.get("patched")
        for cell in group:
            set_ratio(cell, base)
    return cells


def is_baseline(cell):
    return cell["baseline"] == f"{cell['kernel']} {cell['policy']}"


def stat_of(cell, column):
    if column == "ratio":
        return None if cell["ratio"] is None else {
            "mean": cell["ratio"], "sd": cell["ratio_sd"], "n": cell["n"]}
    if column.startswith("lat_us."):
        return cell["lat_us"].get(column.partition(".")[2])
    return cell[column] if column in HEADINGS else cell["extra"].get(column)
