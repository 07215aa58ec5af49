# SPDX-License-Identifier: GPL-2.0
"""Importing this puts every room that has Python modules on Python's path.

So a module is imported by its name wherever it lies, and no two may share one
(tests/test_rooms.py). A program that does not lie in scripts/ finds this file by a line
of its own; unit tests have unittests.py, which runs them, find it.
"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = [os.path.join(ROOT, *room.split("/")) for room in (
    "scripts", "scripts/check", "scripts/kernel", "scripts/packages",
    "lab/bench", "lab/native", "lab/qemu", "lab/sim", "lab/torture",
    "tools/block")]
sys.path[:0] = ROOMS
