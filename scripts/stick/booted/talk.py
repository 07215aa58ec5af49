# SPDX-License-Identifier: GPL-2.0
"""What the user sees and types, on each console that the kernel has."""
import contextlib
import os
import select
import termios
import time
from pathlib import Path

from .disks import read

MENU = """
  1  short run: 10 minutes; 3 more for each disk above two
  2  full run: half an hour for each disk, and half an hour more
  3  power off

Type a number and Enter. Without, 1 is taken after {} seconds."""
CHOICES = {"": "short", "enter": "short", "1": "short", "2": "full", "3": "off"}


class Consoles:
    """log: all that was said"""

    def __init__(self, root=""):
        self.ttys = [Path(f"{root}/dev/{name}")
                     for name in read(f"{root}/sys/class/tty/console/active").split()]
        self.log = []

    def say(self, text):
        for line in text.split("\n"):
            self.log.append(line)
            for tty in self.ttys:
                with contextlib.suppress(OSError):
                    tty.write_text(f"{line}\n", encoding="utf-8", errors="replace")

    @contextlib.contextmanager
    def opened(self):
        with contextlib.ExitStack() as stack:
            files = []
            for tty in self.ttys:
                with contextlib.suppress(OSError):
                    files.append(os.open(tty, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
                    stack.callback(os.close, files[-1])
            yield files

    def drain(self):
        """Forgets what was typed ahead, on any console."""
        with self.opened() as files:
            for file in files:
                with contextlib.suppress(termios.error):
                    termios.tcflush(file, termios.TCIFLUSH)

    def ask(self, seconds):
        """What was typed first, on any console; nothing if nothing was in time."""
        end = time.monotonic() + seconds
        with self.opened() as files:
            while True:
                ready, _, _ = select.select(files, [], [], max(0, end - time.monotonic()))
                if not ready:
                    return ""
                try:
                    line = os.read(ready[0], 1024)
                except OSError:
                    line = b""
                if line:
                    return line.decode(errors="replace").split("\n")[0].strip() or "enter"
                files.remove(ready[0])      # nobody is there

    def menu(self, seconds):
        """short, full or off; short if nobody answers"""
        while True:
            self.say(MENU.format(seconds))
            chosen = CHOICES.get(self.ask(seconds))
            if chosen:
                return chosen
            self.say("That is none of 1, 2 and 3.")
