#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the dashboard for Grafana, which "make install" installs."""
import json

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WHICH = '{instance=~"$instance",disk=~"$disk"}'
NAMES = "{{instance}} {{disk}}"


def rate(counter, by="instance, disk", which=WHICH):
    """Of what plugstat exports, per second."""
    return (f"sum by ({by}) (rate(plugstat_{counter}_total{which}"
            "[$__rate_interval]))")


def per_controller(counter):
    """The same, of what has no disk."""
    return rate(counter, "instance, controller", '{instance=~"$instance"}')


# title, unit, what it is, query, names of the lines; two in a row
PANELS = (
    ("Mode in force", "short", "No: another mode than the one that is set; the "
     "reason is in parentheses.", "plugstat_mode_in_force" + WHICH,
     NAMES + " {{mode}} ({{reason}})"),
    ("I/Os", "iops", "Completed, by the disk's own statistics.", rate("ios"),
     NAMES),
    ("Response time, mean of five minutes", "s", "Needs the recording rule of "
     "plug-policy.rules.yml. Each mode is a line of its own, so that a "
     "roll-out shows.", "plugstat:response_seconds:mean5m" + WHICH,
     NAMES + " {{mode}}"),
    ("Response time, p99 of these means in an hour", "s", "Minutes that are "
     "worse than others. The kernel has no histogram of single I/Os.",
     f"quantile_over_time(0.99, plugstat:response_seconds:mean5m{WHICH}[1h])",
     NAMES + " {{mode}}"),
    ("Requests per flush", "short", "What a plug sends out at once, mean.",
     rate("flush_requests") + " / " + rate("flushes"), NAMES),
    ("Bios that merged in a plug", "percentunit", "Of those that were compared "
     "with a held request.", rate("merges") + " / " + rate("merges_tried"),
     NAMES),
    ("Why plugs flush", "ops", "Of all disks that are selected.",
     rate("flushes", "reason"), "{{reason}}"),
    ("Tags taken in batches", "percentunit", "", rate("tags_batched") + " / ("
     + rate("tags_batched") + " + " + rate("tags_single") + ")", NAMES),
    ("Commands per doorbell", "short", "NVMe on PCI; all namespaces of a "
     "controller.", per_controller("commands") + " / "
     + per_controller("doorbells"), "{{instance}} {{controller}}"),
    ("Group size of adaptive", "short", "", "plugstat_adaptive_group" + WHICH,
     NAMES + " hctx {{hctx}}"),
)
# what is different about a panel whose values are no and yes
YES_NO = {"type": "state-timeline",
          "options": {"showValue": "never", "rowHeight": 0.8}}
WORDS = {"mappings": [{"type": "value", "options": {
    "0": {"text": "no", "color": "red"},
    "1": {"text": "yes", "color": "green"}}}]}


def panel(number, title, unit, what, query, names):
    """One of them."""
    first = number == 0
    return {
        "id": number + 1, "type": "timeseries", "title": title,
        "description": what, "datasource": SOURCE,
        "gridPos": {"h": 8, "w": 12, "x": number % 2 * 12,
                    "y": number // 2 * 8},
        "fieldConfig": {"defaults": {"unit": unit, **(WORDS if first else {})},
                        "overrides": []},
        "options": {},
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": query,
                     "legendFormat": names}],
        **(YES_NO if first else {})}


def variable(name, label, query):
    """What a user selects."""
    return {"type": "query", "name": name, "label": label,
            "datasource": SOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2,
            "includeAll": True, "multi": True,
            "current": {"selected": True, "text": ["All"],
                        "value": ["$__all"]}, "hide": 0, "sort": 1}


BOARD = {
    "uid": "plug-policy", "title": "Plug policy",
    "description": "What plugs do with the I/O of disks, and which plug policy "
                   "is in force: plugstat(8).",
    "tags": ["linux", "block"], "schemaVersion": 36, "version": 1,
    "editable": True, "graphTooltip": 1, "refresh": "1m",
    "timezone": "browser", "time": {"from": "now-6h", "to": "now"},
    "annotations": {"list": [{
        "name": "Mode changed", "datasource": SOURCE, "enable": True,
        "iconColor": "blue", "hide": False,
        "expr": f"plugstat_policy_info{WHICH} unless "
                f"plugstat_policy_info{WHICH} offset 1m",
        "titleFormat": "{{disk}} of {{instance}}: {{mode}}"}]},
    "templating": {"list": [
        {"type": "datasource", "name": "datasource", "label": "Data source",
         "query": "prometheus", "hide": 0, "current": {}},
        variable("instance", "Host",
                 "label_values(plugstat_policy_info, instance)"),
        variable("disk", "Disk", "label_values(plugstat_policy_info"
                 '{instance=~"$instance"}, disk)')]},
    "panels": [panel(number, *one) for number, one in enumerate(PANELS)],
}

if __name__ == "__main__":
    print(json.dumps(BOARD, indent=1))
