# SPDX-License-Identifier: GPL-2.0
"""The policy that is in force on a disk, and why another one is set.

sysfs has both, so that anybody may look, also while the kernel is locked down.
"""
import collections

AS_SET = "as set"
UNKNOWN = "unknown"

# mode: what is set, None without the knob; force: what is in force, None
# where a kernel of before the file does not say; why: AS_SET, UNKNOWN, or the
# reason in the kernel's words
Effect = collections.namedtuple("Effect", "mode force why")


def effect(disk):
    if not disk.has_knob():
        return Effect(None, None, None)
    mode = disk.policy()
    why = disk.get("queue/plug_policy_fallback", UNKNOWN)
    if mode == "always" or why == "none":
        return Effect(mode, mode, AS_SET)
    return Effect(mode, None if why == UNKNOWN else "always", why)
