#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes a kernel tree of the series, takes commits back, exports mails.

build/linux-$KVER is a git tree: a base commit (ref `base`), then one commit per
entry of patches/$KVER/series on branch `series`, and a tag section/<name> at
the end of each section.
"""

import argparse
import os
import signal
import sys

from scripts.common import clock, locked
from scripts.series import env
from scripts.series.env import shown
from scripts.series.git import Failure, encode
from scripts.series.mail import cmd_export, cmd_onto, cmd_verify
from scripts.series.refresh import cmd_refresh
from scripts.series.tree import cmd_tree


def arguments(argv):
    parser = argparse.ArgumentParser("series.py", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, run, text):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    out = dict(metavar="DIR", default=env.OUTPUT, help="where the mails lie (default: %(default)s)")
    command("tree", cmd_tree, f"make {shown(env.TREE)} of the series").add_argument(
        "--ksrc", metavar="DIR", default=os.environ.get("KSRC"),
        help="a kernel tree of your own, only read (default: $KSRC)")
    command("refresh", cmd_refresh, f"bring commits made in {shown(env.TREE)} back")
    export = command("export", cmd_export, "write the mails, a directory per section")
    export.add_argument("--from", dest="sender", metavar="'NAME <MAIL>'",
                        default=os.environ.get("FROM"),
                        help="who sends them (default: $FROM, else a placeholder)")
    export.add_argument("--out", **out)
    command("verify", cmd_verify, "compare git am of the mails with the tree"
            ).add_argument("--out", **out)
    onto = command("onto", cmd_onto, "try the mails on another kernel tree, which is only read")
    onto.add_argument("onto", metavar="DIR")
    onto.add_argument("--out", **out)
    return parser.parse_args(argv)


def stop(_signal, _frame):
    raise KeyboardInterrupt


def main(argv=None):
    args = arguments(argv)
    try:
        with locked(env.BUILD / ".series.lock"), \
                clock(lambda seconds: f"series {args.command}: {int(seconds)} s"):
            args.run(args)
    except Failure as error:
        print(encode(f"series.py {args.command}: {error}").decode("utf-8", "replace"),
              file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"series.py {args.command}: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    sys.exit(main())
