# SPDX-License-Identifier: GPL-2.0
"""A configuration that is only compiled, in an output directory of its own:
what each_commit.py builds at every commit, and matrix.py at the last.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess

from scripts.checks import c_style
from scripts import common
from scripts import kernel

# The directories with hooks.
DIRECTORIES = ["block/", "drivers/nvme/host/", "io_uring/"]
# The one file of kernel/sched that knows plugs.
OBJECTS = ["kernel/sched/core.o"]

# Options that the tests do not need, but whose code has hooks.
WIDER = """CONFIG_CGROUPS=y
CONFIG_BLK_CGROUP=y
CONFIG_BLK_WBT=y
CONFIG_BLK_DEV_INTEGRITY=y
"""

# tinyconfig switches off the menu with the tests of lib/.
TESTS = {"KUNIT": "y", "RUNTIME_TESTING_MENU": "y"}


def alone(name):
    """Two runs would pull the tree from under each other's feet."""
    return common.locked(os.path.join(kernel.BUILD, ".lock-" + name),
                         kernel.BuildError("another %s is running" % name))


def git(*args, tree=kernel.TREE):
    """What git prints."""
    done = subprocess.run(["git", "-C", tree, *args], text=True,
                          errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode:
        raise kernel.BuildError("git %s: %s" % (args[0], done.stderr.strip()))
    return done.stdout.strip()


class Series:
    """Commits, and what they change.

    commits: of base..tip; ends: the last ones of each section; files: {path:
    "A" or "M"} of what the tip has and the base has not so.
    """

    def __init__(self, tip):
        self.base = git("rev-parse", "base^{commit}")
        self.tip = git("rev-parse", "--verify", tip + "^{commit}")
        self.commits = git("rev-list", "--reverse", "--first-parent",
                           self.base + ".." + self.tip).split()
        self.ends = {self.tip, *git(
            "for-each-ref", "--format=%(objectname)",
            "refs/tags/section/").split()}
        rows = git("diff", "--no-renames", "--diff-filter=AM", "--name-status",
                   self.base, self.tip).splitlines()
        self.files = dict(reversed(row.split("\t")) for row in rows)

    def options(self):
        """The options that the series adds."""
        return own_options(self.files, lambda path: git(
            "diff", self.base, self.tip, "--", path))


def digest(*parts):
    """A name for what these parts say."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def fragment(options):
    """The text of {name: value}, names without CONFIG_."""
    return "".join("# CONFIG_%s is not set\n" % name if value == "n" else
                   "CONFIG_%s=%s\n" % (name, value)
                   for name, value in options.items())


def own_options(changed, diff):
    """The options that the series adds.

    changed: paths; diff(path): what the series does to a file.
    """
    names = []
    for path in changed:
        if os.path.basename(path).startswith("Kconfig") \
                and not path.startswith("tools/"):
            names += re.findall(r"^\+config (\w+)$", diff(path), re.M)
    return sorted(names)


def own_objects(changed):
    """What the series changes outside of DIRECTORIES, as objects."""
    return sorted(path[:-1] + "o" for path in changed
                  if path.endswith(".c")
                  and not path.startswith(("tools/", *DIRECTORIES)))


class Config:
    """kernel.config and a fragment, built by one compiler in tree/out.

    what: how messages name it; text: the fragment; objects: what to build
    besides DIRECTORIES and OBJECTS; args: for make.
    """

    def __init__(self, what, tree, out, text, objects, cc="gcc", args=()):
        self.what = what
        self.tree = tree
        self.out = out
        self.path = os.path.join(tree, out)
        self.cc = cc
        self.args = list(args)
        self.others = OBJECTS + objects
        self.version = c_style.run([cc, "--version"], cc)[0]
        with open(kernel.CONFIG, encoding="ascii") as config:
            self.text = config.read() + text

    def make(self, *args):
        """Run make here: (what it says, exit status)."""
        return c_style.run(
            kernel.make_command(self.tree, self.out, *self.args, *args,
                                compiler=self.cc), self.what)

    def must(self, *args):
        """The same, for what must not fail."""
        text, code = self.make(*args)
        if code:
            raise kernel.BuildError("make %s failed:\n%s"
                                    % (" ".join(args), text[-2000:]))

    def configure(self, kconfigs, wanted):
        """Take the options, if the text or the files named kconfigs changed.

        Whatever the tree does not have is dropped, but for wanted.
        """
        texts = []
        for name in kconfigs:
            path = os.path.join(self.tree, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as text:
                    texts.append(text.read())
        key = digest(self.text, self.version, texts)
        stamp = os.path.join(self.path, ".configs")
        if os.path.exists(stamp) and open(stamp,
                                          encoding="ascii").read() == key:
            return
        self.merge()
        self.must("olddefconfig")
        have = set(re.findall(r"^config (\w+)$", "\n".join(texts), re.M))
        self.verify({name: value for name, value in wanted.items()
                     if name in have or not texts})
        with open(stamp, "w", encoding="ascii") as out:
            out.write(key)

    def merge(self):
        """.config: tinyconfig, which is the same at all commits, and ours."""
        merged = os.path.join(self.path, ".merged-" + digest(self.text))
        config = os.path.join(self.path, ".config")
        if not os.path.exists(merged):
            os.makedirs(self.path, exist_ok=True)
            ours = os.path.join(self.path, "ours.config")
            with open(ours, "w", encoding="ascii") as out:
                out.write(self.text)
            self.must("tinyconfig")
            kernel.quiet(["sh", self.tree + "/scripts/kconfig/merge_config.sh",
                          "-m", "-O", self.path, config, ours],
                         "merge_config.sh")
            os.replace(config, merged)
        shutil.copyfile(merged, config)

    def verify(self, wanted):
        """Refuse to compile what was not asked for."""
        kernel.check_config(
            os.path.join(self.path, ".config"),
            {"CONFIG_" + name: value for name, value in wanted.items()}, [])

    def targets(self, tests):
        """What there is to build in the tree as it is."""
        names = [name for name in self.others
                 if tests or "/tests/" not in name]
        names = DIRECTORIES + [name[:-1] + "c" for name in names]
        return [name if name.endswith("/") else name[:-1] + "o"
                for name in names
                if os.path.exists(os.path.join(self.tree, name))]

    def built(self):
        """The object files of these that there are."""
        found = [os.path.join(self.path, name) for name in self.others]
        for directory in DIRECTORIES:
            for path, _, names in os.walk(os.path.join(self.path, directory)):
                found += [os.path.join(path, name) for name in names
                          if name.endswith(".o")]
        return [name for name in found
                if os.path.exists(name) and self.has_source(name)]

    def has_source(self, path):
        """Is this object of a file that the tree still has?"""
        source = os.path.join(self.tree, os.path.relpath(path, self.path)[:-1])
        return os.path.exists(source + "c") or os.path.exists(source + "S")

    def wipe(self):
        """Have all of it compiled again."""
        for name in self.built():
            os.unlink(name)

    def symbols(self):
        """({undefined symbol: object}, {defined symbols}) of what was built."""
        return parse_nm(subprocess.run(
            ["nm", "-o", *self.built()], text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout, self.path)


def parse_nm(text, top):
    """({symbol that none defines: object below top}, {symbols defined}) of
    what nm -o says of some objects."""
    wants, defined = {}, set()
    for line in text.splitlines():
        where, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        if kind == "U":
            wants[name] = os.path.relpath(where, top)
        else:
            defined.add(name)
    return {name: where for name, where in wants.items()
            if name not in defined}, defined
