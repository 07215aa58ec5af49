# SPDX-License-Identifier: GPL-2.0
"""Where things lie, and how series.py talks."""
import os
import shutil
import time
from pathlib import Path

BASE = os.environ.get("KVER") or "7.3"
FIRST = "7.3"                   # what the series is written for
# In place of its message, if only the hunks of a mail differ
AS_FIRST = f"As for Linux {FIRST}."
ROOT = Path(os.environ.get("PLUG_POLICY_ROOT") or Path(__file__).resolve().parents[2]).resolve()
TOP = Path(os.environ.get("PLUG_POLICY_BUILD") or ROOT / "build").resolve()
# All of another kernel has a place of its own, apart from the downloads.
BUILD = TOP if BASE == FIRST else TOP / BASE
TREE = BUILD / f"linux-{BASE}"
PATCHES = ROOT / "patches" / BASE
TARBALL = TOP / "cache" / f"linux-source-{BASE}.tar.xz"
# In the tree: what each section's mails made on as little as its cover names
STACKS = "refs/stacks/"
OUTPUT = BUILD / f"series-{BASE}"

START = time.time()


def say(text):
    print(text, flush=True)


def step(text):
    say(f"[{int(time.time() - START):4d}s] {text}")


def shown(path):
    """A path as the user would type it."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def remove(path):
    if path.exists():
        shutil.rmtree(path)
