# SPDX-License-Identifier: GPL-2.0
"""Can bisect_series.py fail?  Breaks copies of the last commit, each in one
way, and sees that the checks that must find it do, and no other, but for
checkpatch, which dislikes some of the ways in themselves.

The copies are commits that no branch names: git forgets them by itself.
"""
import os
import tempfile
import time

import bisect_series
import kernel

ALL = {"on-gcc", "off-gcc", "on-clang", "off-clang"}


def function(proto, body):
    """A function that W=1 lets pass, but for its body."""
    return "\nstatic %s\n{\n%s}\n" % (
        proto.replace("plug_broken", "__used plug_broken"), body)


def breakages(new, old):
    """(what, file, text to append, checks that must fail): new is compiled
    only with the options on, old always."""
    return [
        ("nothing", new, function("int plug_broken(void)", "\treturn 0;\n"),
         set()),
        ("an unused variable", old,
         function("int plug_broken(void)", "\tint i;\n\n\treturn 0;\n"), ALL),
        ("an error in the address space, which sparse sees", old,
         function("int plug_broken(int __user *p)", "\treturn *p;\n"),
         {"on-gcc", "off-gcc"}),
        ("a parameter that kernel-doc misses", new,
         "\n/**\n * plug_broken() - add\n * @a: one\n *\n * Return: the sum.\n"
         " */" + function("int plug_broken(int a, int b)",
                          "\treturn a + b;\n"), {"doc"}),
        ("what compiles only with the options on", old,
         "\n#ifndef CONFIG_BLK_PLUG_POLICY\nint plug_broken = no_such_name;\n"
         "#endif\n", {"off-gcc", "off-clang"}),
        ("a function that is defined nowhere", new,
         "\nint plug_missing(void);\n" + function(
             "int plug_broken(void)", "\treturn plug_missing();\n"),
         {"on-gcc", "on-clang"}),
        ("a line that checkpatch dislikes", new,
         function("int plug_broken(int i)", "\treturn ( i );\n"), {"patch"}),
        ("a test that coccinelle knows to be idle", new,
         function("void plug_broken(void *p)",
                  "\tif (p)\n\t\tkfree(p);\n"), {"cocci", "patch"}),
        ("a page that is badly marked up", "Documentation/block/index.rst",
         "\nHeading\n==\n\n*open\n", {"html"}),
    ]


def copy(series, path, text):
    """A commit upon the tip with some text appended to a file."""
    git = bisect_series.git
    with tempfile.TemporaryDirectory() as top:
        env = dict(os.environ, GIT_INDEX_FILE=os.path.join(top, "index"),
                   GIT_AUTHOR_NAME="prove", GIT_AUTHOR_EMAIL="prove@invalid",
                   GIT_COMMITTER_NAME="prove",
                   GIT_COMMITTER_EMAIL="prove@invalid")
        broken = os.path.join(top, "broken")
        with open(broken, "w", encoding="utf-8") as out:
            out.write(git("show", "%s:%s" % (series.tip, path)) + "\n" + text)
        git("read-tree", series.tip, env=env)
        blob = git("hash-object", "-w", broken)
        git("update-index", "--cacheinfo", "100644,%s,%s" % (blob, path),
            env=env)
        return git("commit-tree", git("write-tree", env=env), "-p", series.tip,
                   "-m", "block: break a copy",
                   "-m", "This is done to see that it is found out.", env=env)


def checks_of(path, wanted, asked):
    """Which checks are made of a breakage; coccinelle is slow."""
    names = {*bisect_series.CONFIGS, "patch", "doc"}
    if path.startswith("Documentation/"):
        names = {"patch", "html"}
    return [name for name in bisect_series.CHECKS
            if name in names | wanted and name in (asked or [name])]


def try_one(bisect, series, path, text, names):
    """The checks that fail for a copy."""
    sha = copy(series, path, text)
    commit = bisect_series.Commit(sha, len(series.commits) + 1, series.tip)
    commit.last = True
    bisect.commit(commit, names)
    return {name for name, result in commit.results.items()
            if result["status"] == "failed"}


def run(tip, asked):
    """Break, look, tell; the exit status."""
    start = time.monotonic()
    series = bisect_series.Series(tip)
    # the new file of the section with the option, a changed one of the block
    # layer
    new = "block/blk-plug-policy.c"
    if new not in series.files:
        raise kernel.BuildError("--prove wants %s in the series" % new)
    bisect = bisect_series.Bisect(series, False)
    wrong = []
    for what, path, text, wanted in breakages(new, "block/blk-merge.c"):
        print("prove: %s" % what, flush=True)
        names = checks_of(path, wanted, asked)
        wanted = wanted & set(names)
        found = try_one(bisect, series, path, text, names)
        if found | {"patch"} != wanted | {"patch"} or \
                "patch" in wanted - found:
            wrong.append("%s: failed %s, wanted %s" % (
                what, sorted(found), sorted(wanted)))
    print("\n".join("NOT AS WANTED " + line for line in wrong))
    print("prove: %d breakages, %d not as wanted; took %d s"
          % (len(breakages(new, "")) - 1, len(wrong),
             time.monotonic() - start))
    return 1 if wrong else 0
