# SPDX-License-Identifier: GPL-2.0
"""plugstat --top: a screen that is drawn anew each interval."""
import contextlib
import curses
import time

from ..core.disks import Disk
from ..core.system import EnvironmentProblem
from .figures import delta, figures
from .output import HEADER, WIDTHS, cells_of, line, now
from .source import adaptive, sample_all

QUIT = (ord("q"), ord("Q"))


def wider(cells, extra):
    """A line of the table, with the policy behind the disk's name."""
    return line([cells[0], *extra, *cells[1:]], (WIDTHS[0], 9, 9) + WIDTHS[1:])


def force_of(name):
    """(set, in force) as cells: what is set, and yes or why not."""
    mode, force, why = Disk(name).effect()
    if not mode:
        return "-", "-"
    return mode, "yes" if force == mode else why


def rows_of(old, new):
    """The lines of the table, the busiest disk first."""
    figs = {name: figures(delta(old[name], new[name]))
            for name in new if name in old}
    order = sorted(figs, key=lambda name: -figs[name]["requests_per_s"])
    return [wider(cells_of(name, figs[name], adaptive(name)), force_of(name))
            for name in order]


def draw(screen, lines):
    height, width = screen.getmaxyx()
    screen.erase()
    for number, text in enumerate(lines[:height]):
        # the last column of the last line cannot be written
        screen.addnstr(number, 0, text, width - 1,
                       curses.A_REVERSE if number == 1 else 0)
    screen.refresh()


def wait(screen, seconds):
    """Whether to go on after a time: not if the user has typed q."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return True
        # signals are seen when it returns, so it must not wait for long
        screen.timeout(int(min(left, 0.2) * 1000) + 1)
        if screen.getch() in QUIT:
            return False


def loop(screen, names, interval, count):
    """Until q, a signal, or the count is reached."""
    if not curses.tigetstr("cup"):
        raise curses.error("it cannot place its cursor")
    with contextlib.suppress(curses.error):
        curses.use_default_colors()         # not every terminal has colours
    with contextlib.suppress(curses.error):
        curses.curs_set(0)                  # or can hide its cursor
    last, done = sample_all(names), 0
    title = wider(HEADER, ("set", "in-force"))
    draw(screen, ["plugstat: the first interval ..."])
    while names and wait(screen, interval):
        new = sample_all(names)
        draw(screen, ["plugstat  %s  every %g s, q ends it"
                      % (now(), interval), title] + rows_of(last, new))
        last = new
        done += 1
        if done == count:
            break
    if not names:
        raise EnvironmentProblem("no disk is left")


def run(names, interval, count):
    """The terminal is as before afterwards, whatever happens."""
    try:
        curses.wrapper(loop, names, interval, count)
    except curses.error as error:
        raise EnvironmentProblem(
            f"--top cannot use this terminal (TERM): {error}") from error
