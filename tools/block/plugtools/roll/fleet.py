# SPDX-License-Identifier: GPL-2.0
"""plugroll summary: what --json said on many hosts, in one view.

A host is called as its file is, without .json, and, where several files have
one name, with the directories in which these differ.  What "list", "try" and
"keep" print is told apart by its keys.
"""
import collections
import json
import os
import statistics
import sys

from ..core.system import EnvironmentProblem, printable, say
from ..core.terminal import columns, paint
from ..report.records import LARGEST
from .disklist import wrong

FORMATS = (1, 2)                # of print_json()
HEADER = ["hosts", "disks", "what"]
KINDS = {"tripped": "bad", "no gain": "warning", "unknown": "warning"}


def load(path):
    """What a file holds; why it cannot be used, as an EnvironmentProblem."""
    try:
        with open(path, encoding="utf-8") as file:
            found = printable(json.load(file))
        if found["version"] not in FORMATS:
            raise EnvironmentProblem("%s: of version %s; accepted: %s" % (
                path, found["version"], ", ".join(map(str, FORMATS))))
        return found
    except OSError as error:
        raise EnvironmentProblem(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EnvironmentProblem(f"{path}: not what plugroll "
                                 "--json prints") from error


def hosts_of(paths):
    """{path: host}, each file once."""
    paths = dict.fromkeys(map(os.path.abspath, paths))
    alike, found = collections.defaultdict(dict), {}
    for path in paths:
        stem = path.removesuffix(".json")
        if stem in paths:       # both are given, and are two hosts
            stem = path
        alike[os.path.basename(stem)][path] = stem
    for stems in alike.values():
        top = os.path.commonpath(map(os.path.dirname, stems))
        for path, stem in stems.items():
            found[path] = os.path.relpath(stem, top)
    return found


class Fleet:
    def __init__(self):
        self.groups = collections.defaultdict(dict)     # {what: {host: disks}}
        self.changes = collections.defaultdict(list)    # {(mode, metric): ..}
        self.exceptions = []                            # (host, disk, why)

    def count(self, what, host, disks=1):
        hosts = self.groups[what]
        hosts[host] = hosts.get(host, 0) + disks

    def take(self, other):
        for what, hosts in other.groups.items():
            for host, disks in hosts.items():
                self.count(what, host, disks)
        for key, values in other.changes.items():
            self.changes[key] += values
        self.exceptions += other.exceptions

    def add(self, host, found):
        if "status" in found:
            self.add_try(host, found)
        elif "pattern" in found:
            self.count("kept: " + found["mode"], host, len(found["disks"]))
        else:
            self.add_list(host, found["disks"])

    def add_list(self, host, rows):
        """Of "list"; a head, whose legs are listed, too, is left out."""
        for row in rows:
            if row["set"] is None:
                continue
            self.count("set: " + row["set"], host)
            why = wrong(row)
            if why:
                self.count("not as it should be", host)
                self.exceptions.append((host, row["disk"], why))

    def add_try(self, host, found):
        mode = found["mode"]
        for name, one in found["disks"].items():
            self.count("tried " + mode + ": " + one["status"], host)
            for metric, figures in one["figures"].items():
                if not -1 <= figures["change"] <= LARGEST:      # or NaN
                    raise TypeError(figures["change"])
                self.changes[mode, metric].append(figures["change"])
            if one["status"] not in ("held", "unknown"):
                self.exceptions.append((host, name, found["why"]))
        for group in "idle", "already":
            if found[group]:
                self.count(f"tried {mode}: {group}", host, len(found[group]))

    def result(self, unusable):
        return {
            "groups": [{"what": what, "hosts": len(hosts),
                        "disks": sum(hosts.values())}
                       for what, hosts in sorted(self.groups.items())],
            "changes": [{"mode": mode, "metric": metric, "disks": len(values),
                         "median": statistics.median(values),
                         "least": min(values), "most": max(values)}
                        for (mode, metric), values in
                        sorted(self.changes.items())],
            "exceptions": [dict(zip(("host", "disk", "why"), one))
                           for one in self.exceptions],
            "unusable": unusable}


def summary_of(paths):
    fleet, unusable = Fleet(), []
    for path, host in hosts_of(paths).items():
        one = Fleet()           # of which nothing counts if it fails midway
        try:
            one.add(host, load(path))
            fleet.take(one)
        except EnvironmentProblem as error:
            unusable.append(str(error))
        except (KeyError, TypeError, AttributeError):
            unusable.append(f"{path}: not what plugroll list, try or keep "
                            "prints with --json")
    return fleet.result(unusable)


def print_summary(found):
    rows = [HEADER] + [[str(one["hosts"]), str(one["disks"]), one["what"]]
                       for one in found["groups"]]
    for text, row in zip(columns(rows), rows):
        say(paint(text, KINDS.get(row[2].rpartition(": ")[2])))
    for one in found["changes"]:
        say(f"{one['mode']}: {one['metric']} by {100 * one['median']:+.1f}% "
            f"on half of {one['disks']} disks or more; "
            f"{100 * one['least']:+.1f} to {100 * one['most']:+.1f}%")
    for one in found["exceptions"]:
        say(paint("%(host)s: %(disk)s: %(why)s" % one, "bad"))
    for text in found["unusable"]:
        say("plugroll: " + text, sys.stderr)
