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
  1  short run: some {} minutes
  2  full run: some {} minutes
  3  power off

Type a number and Enter. Without, 1 is taken after 30 seconds."""
CHOICES = {"": "short", "enter": "short", "1": "short", "2": "full", "3": "off"}


class Consoles:
    """log: all that was said"""

    def __init__(self, root=""):
        self.ttys = [Path(f"{root}/dev/{name}")
                     for name in read(f"{root}/sys/class/tty/console/active").split()]
        self.log = []

    def say(self, text):
        self.log += text.split("\n")
        for tty in self.ttys:
            with contextlib.suppress(OSError):
                tty.write_text(f"{text}\n", encoding="utf-8", errors="replace")

    def ask(self, seconds):
        """What is typed from now on, on any console; nothing if nothing is in time."""
        end = time.monotonic() + seconds
        with contextlib.ExitStack() as stack:
            files = []
            for tty in self.ttys:
                with contextlib.suppress(OSError, termios.error):
                    files.append(os.open(tty, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
                    stack.callback(os.close, files[-1])
                    termios.tcflush(files[-1], termios.TCIFLUSH)
            while True:
                ready, _, _ = select.select(files, [], [], max(0, end - time.monotonic()))
                if not ready:
                    return ""
                with contextlib.suppress(OSError):
                    line = os.read(ready[0], 1024)
                    if line:
                        return line.decode(errors="replace").split("\n")[0].strip() or "enter"
                files.remove(ready[0])      # nobody is there

    def menu(self, *minutes):
        """short, full or off; short if nobody answers. minutes: of short and full"""
        while True:
            self.say(MENU.format(*minutes))
            chosen = CHOICES.get(self.ask(30))
            if chosen:
                return chosen
            self.say("That is none of 1, 2 and 3.")
