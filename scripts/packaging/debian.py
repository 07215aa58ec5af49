# SPDX-License-Identifier: GPL-2.0
"""What Debian has of the kernel besides its source: fetched by apt, so that
signatures are checked, with sources and state of its own."""
import glob
import lzma
import os
import re
import subprocess

from scripts.kbuild import arch
from scripts import common
from scripts import kernel
from scripts.series.env import BASE, PATCHES

STATE = os.path.join(kernel.CACHE, arch.output("apt-packages-" + BASE))
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = os.environ.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian"
SECURITY = os.environ.get("DEBIAN_SECURITY") or \
    "http://security.debian.org/debian-security"


HELPER = "/usr/lib/apt/apt-helper"


def named(name):
    """What patches/<version>/source says of the kernel's source."""
    with open(PATCHES / "source", encoding="ascii") as text:
        return re.search(r'^%s="?([^"\n]*)' % name, text.read(), re.M)[1]


def write_sources(path):
    """One of apt's files."""
    with open(path, "w", encoding="ascii") as out:
        for suite in named("suites").split():
            out.write("Types: deb\nURIs: %s\nSuites: %s\n"
                      "Components: main\nSigned-By: %s\n\n" % (
                          SECURITY if suite.endswith("-security") else MIRROR,
                          suite, KEYRING))


def apt(*args, program="apt-get"):
    """Run apt-get where STATE is. Its own user cannot write below a home."""
    options = {
        "Dir::Etc::sourcelist": STATE + "/src.sources",
        "Dir::Etc::sourceparts": "-", "Dir::State": STATE,
        "Dir::State::Lists": STATE + "/lists",
        "Dir::State::status": "/dev/null", "Dir::Cache": STATE,
        "APT::Architecture": arch.DEBIAN, "APT::Architectures": arch.DEBIAN,
        "APT::Sandbox::User": "root", "Acquire::Languages": "none",
        "Acquire::AllowInsecureRepositories": "false",
        "Acquire::Retries": "3"}
    lines = []
    what = os.path.basename(program) + " " + " ".join(args)
    with common.clock(lambda seconds: "%s: %d s" % (what, seconds)):
        code = common.run([program, *("-o%s=%s" % option for option
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


def from_pool(name, sha256):
    """The pinned version of a package, where it stays for longer than in a
    suite; its path."""
    deb = "%s_%s_%s.deb" % (name, named("pinned"), arch.DEBIAN)
    failed = []
    for pool in MIRROR + "/pool", SECURITY + "/pool/updates":
        try:
            apt("download-file", "%s/main/l/linux/%s" % (pool, deb),
                os.path.join(STATE, deb), "SHA256:" + sha256, program=HELPER)
            return os.path.join(STATE, deb)
        except kernel.BuildError as error:
            failed.append(str(error))
    raise kernel.BuildError("\n".join(failed))


def config_package():
    """Debian's configurations: a suite's, else the pinned ones."""
    name = "linux-config-" + BASE
    try:
        return fetch(name + "_*.deb", "download", name)
    except kernel.BuildError as error:
        print("%s\ntaking %s %s from the pool" % (error, name,
                                                 named("pinned")))
    return from_pool(name, named("config_sha256_" + arch.DEBIAN))


def cloud_config(member, path):
    """Writes a configuration of Debian's, one of package linux-config."""
    kept = os.path.join(kernel.CACHE,
                        "%s-%s" % (BASE, os.path.basename(member)))
    if not os.path.exists(kept):
        tar = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", config_package()], check=True,
            stdout=subprocess.PIPE).stdout
        found = subprocess.run(["tar", "-xO", "./" + member], check=True,
                               input=tar, stdout=subprocess.PIPE).stdout
        with open(kept + ".new", "wb") as out:
            out.write(found)
        os.replace(kept + ".new", kept)
    with lzma.open(kept) as packed, open(path, "wb") as out:
        out.write(packed.read())
