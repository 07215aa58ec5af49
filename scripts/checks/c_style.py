# SPDX-License-Identifier: GPL-2.0
"""What is asked of C that is mailed, wherever it lies: lint.py asks it of the
tip, each_commit.py of all commits."""
import collections
import os
import re

from scripts import kernel

# sparse 0.6.4 does not know this builtin, and kbuild then refuses to run it.
SPARSE = ["C=2", "CF=-D__typeof_unqual__=__typeof__", "W=1"]
# The sender signs off; MAINTAINERS comes with the documentation.
IGNORE = "MISSING_SIGN_OFF,NO_AUTHOR_SIGN_OFF,FILE_PATH_CHANGES"
# The tree has no history to know commits from; programs have no suffix.
IGNORE += ",UNKNOWN_COMMIT_ID,EXECUTE_PERMISSIONS"
# block/Kconfig sources block/Kconfig.plug as it does block/Kconfig.iosched.
IGNORE += ",EMBEDDED_FILENAME"

# What compilers, sparse, objtool and kconfig say: file, place, kind, message.
FINDING = re.compile(r"(?:\.\./)*([^\s:]+):(?:\d+:){0,2} ?"
                     r"((?:fatal error|error|warning): .*)")

# sparse 0.6.4 says so of the MODULE_ lines of every module.
NOISE = "error: bad constant expression"


def findings(text):
    """Warnings and errors in what tools print: {(file, message): how many}.

    Without line numbers, which change with what stands above."""
    found = collections.Counter()
    for line in text.splitlines():
        match = FINDING.match(line)
        if match and NOISE not in line:
            message = re.sub(r"\+0x[0-9a-f]+", "", match[2])
            found[os.path.normpath(match[1]), message] += 1
    return found


def added(found, base):
    """What was found and the base does not have, as lines.

    A header speaks once per file that includes it, and that may be one more."""
    return [": ".join(key) for key, count in sorted(found.items())
            if count > base.get(key, 0) and not (key[0].endswith(".h") and key in base)]


def checkpatch(tree, what, *args):
    """The maintainer's checkpatch on mails or files; (text, is it good)."""
    text, code = kernel.run(["perl", os.path.join(tree, "scripts/checkpatch.pl"),
                             "--strict", "--no-summary", "--show-types", "--ignore",
                             IGNORE, *args], what, cwd=tree)
    return text, code == 0


def kernel_doc(tree, names, cwd):
    """What kernel-doc says of some files; nothing, if all is well."""
    if not names:
        return ""
    text, code = kernel.run([os.path.join(tree, "scripts/kernel-doc"), "-none",
                             "-Wall", *names], "kernel-doc", cwd=cwd)
    return text.strip() or (f"exit {code}" if code else "")
