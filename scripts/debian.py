# SPDX-License-Identifier: GPL-2.0
"""What Debian has of the kernel besides its source: fetched by apt, so that
signatures are checked, with sources and state of its own."""
import glob
import lzma
import os
import re
import subprocess

import common
import kernel
from serieslib.env import BASE, PATCHES

STATE = os.path.join(kernel.CACHE, "apt-packages-" + BASE)
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = os.environ.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian"
SECURITY = os.environ.get("DEBIAN_SECURITY") or \
    "http://security.debian.org/debian-security"


def suites():
    """Of Debian, that have this kernel."""
    with open(PATCHES / "source", encoding="ascii") as text:
        return re.search(r'^suites="(.*)"', text.read(), re.M)[1].split()


def write_sources(path):
    """One of apt's files."""
    with open(path, "w", encoding="ascii") as out:
        for suite in suites():
            out.write("Types: deb\nURIs: %s\nSuites: %s\n"
                      "Components: main\nSigned-By: %s\n\n" % (
                          SECURITY if suite.endswith("-security") else MIRROR,
                          suite, KEYRING))


def apt(*args):
    """Run apt-get where STATE is. Its own user cannot write below a home."""
    options = {
        "Dir::Etc::sourcelist": STATE + "/src.sources",
        "Dir::Etc::sourceparts": "-", "Dir::State": STATE,
        "Dir::State::Lists": STATE + "/lists",
        "Dir::State::status": "/dev/null", "Dir::Cache": STATE,
        "APT::Sandbox::User": "root", "Acquire::Languages": "none",
        "Acquire::AllowInsecureRepositories": "false",
        "Acquire::Retries": "3"}
    lines = []
    what = "apt-get " + " ".join(args)
    with common.clock(lambda seconds: "%s: %d s" % (what, seconds)):
        code = common.run(["apt-get", *("-o%s=%s" % option for option
                                        in options.items()), *args],
                          lines.append, cwd=STATE)
    if code:
        raise kernel.BuildError("%s failed:\n%s" % (what, "".join(lines)))


def fetch(what, *args):
    """Have apt-get download; the one file that it left named so."""
    os.makedirs(STATE + "/lists/partial", exist_ok=True)
    os.makedirs(STATE + "/archives/partial", exist_ok=True)
    write_sources(STATE + "/src.sources")
    with common.locked(STATE + ".lock"):
        apt("--error-on=any", "update")
        for old in glob.glob(os.path.join(STATE, what)):
            os.unlink(old)
        apt(*args)
    return glob.glob(os.path.join(STATE, what))[0]


def cloud_config(member, path):
    """Writes a configuration of Debian's, one of package linux-config."""
    kept = os.path.join(kernel.CACHE,
                        "%s-%s" % (BASE, os.path.basename(member)))
    if not os.path.exists(kept):
        name = "linux-config-" + BASE
        deb = fetch(name + "_*.deb", "download", name)
        tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], check=True,
                             stdout=subprocess.PIPE).stdout
        found = subprocess.run(["tar", "-xO", "./" + member], check=True,
                               input=tar, stdout=subprocess.PIPE).stdout
        with open(kept + ".new", "wb") as out:
            out.write(found)
        os.replace(kept + ".new", kept)
    with lzma.open(kept) as packed, open(path, "wb") as out:
        out.write(packed.read())
