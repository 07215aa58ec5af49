# SPDX-License-Identifier: GPL-2.0
"""Makes a kernel tree of the series, takes commits back, exports mails.

build/linux-$KVER is a git tree: a base commit (ref `base`), then one commit per
entry of patches/$KVER/series on branch `series`, and a tag section/<name> at
the end of each section."""
import argparse
import signal

from scripts import common
from scripts.series import env
from scripts.series.env import shown
from scripts.series.git import Failure
from scripts.series.mail import cmd_export, cmd_verify
from scripts.series.refresh import cmd_refresh
from scripts.series.tree import cmd_tree


VERBS = {
    "tree": (cmd_tree, f"make {shown(env.TREE)} of the series; $KSRC: a kernel tree of your own, "
             "only read"),
    "refresh": (cmd_refresh, f"bring commits made in {shown(env.TREE)} back"),
    "export": (cmd_export, "write the mails, a directory per section; $FROM: who sends them"),
    "verify": (cmd_verify, "compare git am of the mails with the tree"),
}


def arguments(argv):
    parser = argparse.ArgumentParser("series.py", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (run, text) in VERBS.items():
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
    return parser.parse_args(argv)


def main(argv=None):
    args = arguments(argv)
    with common.program(f"series.py {args.command}", Failure), \
            common.locked(env.BUILD / ".series.lock"), \
            common.clock(lambda seconds: f"series {args.command}: {int(seconds)} s"):
        args.run(args)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    main()
