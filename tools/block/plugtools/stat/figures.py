# SPDX-License-Identifier: GPL-2.0
"""What the counters of plugs say: pure functions, which read no file."""
import collections

NO_BATCH = ("shared", "depth", "busy", "scheduler")
QUESTIONS = {"tags": "32 tags at once?", "doorbell": "32 per doorbell?"}
FULL = 31.0                     # a mean from which on "32 at once" is true
MOST = 0.9                      # a share that counts as "yes"
LITTLE = 0.1                    # ... and one that counts as "no"


def delta(old, new):
    """What was counted between; None if a counter went back: it is another
    disk of that name, or a reset one, and no difference is a figure."""
    diff = {name: value - old.get(name, 0) for name, value in new.items()}
    return None if min(diff.values(), default=0) < 0 else diff


def ratio(part, whole):
    return part / whole if whole and part is not None else None


def figures(diff):
    n = collections.Counter(diff)       # 0 for what is not there
    return {
        "requests": n["stat_ios"],
        "requests_per_s": ratio(n["stat_ios"], n["time"]) or 0.0,
        "merged": ratio(n["stat_merges"], n["stat_merges"] + n["stat_ios"]),
        "requests_per_flush": ratio(n["flush_requests"], n["flushes"]),
        "tags_in_batches": ratio(n["tags_batched"],
                                 n["tags_batched"] + n["tags_single"]),
        "tags_per_batch": ratio(n["tags_batched"], n["tag_batches"]),
        "no_batch": {why: n["no_batch_" + why] for why in NO_BATCH
                     if n["no_batch_" + why]},
        "commands_per_doorbell": ratio(n["stat_ios"], n["doorbells"])}


def learnt(text):
    """What plug_adaptive of a hardware queue says, and what follows; nothing
    if it learns nothing."""
    fields = dict(line.split(None, 1) for line in text.splitlines()
                  if len(line.split()) > 1)
    found = {name: int(value) if value.isdigit() else value
             for name, value in fields.items()}
    if not found:
        return {}
    get = found.get
    found["requests_per_s"] = ratio(get("sample_requests", 0) * 1e9,
                                    get("sample_ns"))
    found["requests_per_flush"] = ratio(get("sample_requests", 0),
                                        get("sample_flushes"))
    return found


def busy(found):
    """{number: what it says} of the hardware queues that have had I/O."""
    return {number: queue for number, queue in found["hctx"].items()
            if queue.get("sample_requests") or queue.get("pinned")}


def show(value, form="%.1f", scale=1):
    return "-" if value is None else form % (value * scale)


def verdict(value, share):
    if value is None or share is None or share < LITTLE:
        return "no"
    return "yes" if value >= FULL and share >= MOST else "partly"


def tags_answer(fig):
    text = "%s: %s tags per batch, %s%% of all tags come in batches" % (
        verdict(fig["tags_per_batch"], fig["tags_in_batches"]),
        show(fig["tags_per_batch"]), show(fig["tags_in_batches"], "%.0f", 100))
    why = sorted(fig["no_batch"], key=fig["no_batch"].get, reverse=True)
    if why:
        text += "; batches refused: " + ", ".join(
            f"{name} ({fig['no_batch'][name]})" for name in why)
    return text


def doorbell_answer(fig):
    mean = fig["commands_per_doorbell"]
    if mean is None:
        return "unknown: the driver does not count doorbells; " \
            f"{show(fig['requests_per_flush'])} requests per flush of a plug"
    said = "no" if mean < 2 else "yes" if mean >= FULL else "partly"
    return f"{said}: {show(mean)} commands per doorbell"


def answers(fig):
    if not fig["requests"]:
        return {name: "no I/O was seen" for name in QUESTIONS}
    return {"tags": tags_answer(fig), "doorbell": doorbell_answer(fig)}
