# SPDX-License-Identifier: GPL-2.0
"""The package of the tools: what it holds, as .deb and as .rpm."""
import email.utils
import glob
import gzip
import hashlib
import os
import re
import shutil

from scripts import common
from scripts import kernel

TOOLS = os.path.join(kernel.ROOT, "tools/block")
PACKAGING = os.path.join(TOOLS, "packaging")
AUTHOR = ("plug_policy series", "plug-policy@example.invalid")
NAME = "plug-policy-tools"
MAN = "usr/share/man/man8"
DOCUMENTS = os.path.join(kernel.ROOT, "Documentation/block")
DOC = "usr/share/doc/" + NAME

SUMMARY = "tools for the plug policy of block devices"
DESCRIPTION = """\
Linux collects the I/Os of one submission in a plug. With the series
plug_policy, the file queue/plug_policy in sysfs says, for each disk, how many
a plug holds and which it merges.

plugstat shows what plugs do, also to Prometheus, plugbench compares the
policies of a disk, plugroll tries one under the live load and makes it last,
and plugtrace shows what plugs batch on a kernel without the series. A udev
rule and a line for systemd-tmpfiles are included, as comments, units that are
not enabled, and a profile for TuneD, which nobody has selected: installing
this changes no disk."""

CONTROL = """\
Package: {NAME}
Version: {version}
Architecture: all
Maintainer: {maintainer}
Installed-Size: {size}
Depends: python3
Recommends: fio
Suggests: bpftrace, linux-perf, tuned
Section: admin
Priority: optional
Description: {SUMMARY}
{description}
"""

# what root runs leaves its compiled library
COMPILED = " ".join("/usr/share/%s/plugtools/%s__pycache__" % (NAME, below)
                    for below in ("", "*/"))
# as {TAKE_BACK}: packaging/remove.sh
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ]; then
{TAKE_BACK}
fi
rm -rf {COMPILED}
"""
POSTRM = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then
	rm -rf /var/lib/plug-policy
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
fi
"""

SPEC = """\
Name: {NAME}
Version: {version}
Release: {revision}
Summary: {SUMMARY}
License: GPL-2.0-only
BuildArch: noarch
AutoReqProv: no
Requires: python3
Recommends: fio
Suggests: bpftrace
Suggests: perf
Suggests: tuned

%description
{DESCRIPTION}

%install
cp -a {root}/. %{{buildroot}}

%preun
if [ "$1" = 0 ]; then
{TAKE_BACK}
	rm -rf {COMPILED}
fi

%postun
systemctl daemon-reload 2>/dev/null || :

%files
{directories}
{files}
"""

# Neither the builder's name nor the hour of the build, and nothing compressed
# or compiled once more.
RPM_OPTIONS = [
    "--define='_buildhost build'", "--define='__os_install_post %{nil}'",
    "--define='use_source_date_epoch_as_buildtime 1'",
    "--define='clamp_mtime_to_source_date_epoch 1'"]

# lintian on what is no part of Debian, and on kbuild, which has modules below
# /lib: a link to usr/lib since Debian 13
NOT_OURS = ["initial-upload-closes-no-bugs", "aliased-location"]
# remove.sh is that of "make uninstall", too, where no debhelper is; and what it
# disables is what an administrator enabled by systemctl.
OVERRIDES = NAME + ": maintainer-script-calls-systemctl\n"


def text_of(name):
    """A file of packaging/ without its licence line, for what has a format
    that knows no comments."""
    with open(os.path.join(PACKAGING, name), encoding="utf-8") as file:
        return file.read().partition("\n")[2]


def changelog():
    """(text, version, seconds since 1970 of the last entry)"""
    text = text_of("changelog")
    version = re.match(r"\S+ \((\S+)\)", text)[1]
    date = email.utils.parsedate_to_datetime(
        re.search(r"^ -- .*>  (.*)$", text, re.M)[1])
    return text, version, int(date.timestamp())


def write(root, name, data, mode=0o644):
    """A file below root, packed if that is its name."""
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    with open(path, "wb") as out:
        out.write(data)
    os.chmod(path, mode)


def compress_manual(root):
    """As the policy of Debian wants it; links name what is compressed."""
    for page in glob.glob(os.path.join(root, MAN, "*.8")):
        name = os.path.join(MAN, os.path.basename(page) + ".gz")
        if os.path.islink(page):
            os.symlink(os.readlink(page) + ".gz", os.path.join(root, name))
        else:
            with open(page, "rb") as data:
                write(root, name, data.read())
        os.unlink(page)


def stage(root):
    """All that is installed, by whichever package."""
    shutil.rmtree(root, ignore_errors=True)
    kernel.quiet(["make", "-C", TOOLS, "install", "DESTDIR=" + root,
                  "PREFIX=/usr"], "make install")
    compress_manual(root)
    write(root, DOC + "/copyright", text_of("copyright").encode())
    write(root, DOC + "/changelog.Debian.gz", changelog()[0].encode())


def files(root):
    """What stage() has left, as absolute paths of the machine to be."""
    return sorted(os.path.join("/", os.path.relpath(top, root), name)
                  for top, _, names in os.walk(root) for name in names)


def settle(root, seconds):
    """The same package for the same content: times, and no umask."""
    for top, _, _ in os.walk(root):
        os.chmod(top, 0o755)
    kernel.quiet(["find", root, "-exec", "touch", "-h", "-d",
                  "@%d" % seconds, "{}", "+"], "touch")


def take_back():
    """What is to be done before the files go, for a script of a package."""
    lines = text_of("remove.sh").partition("set -e\n")[2].splitlines()
    return "\n".join("\t" + line for line in lines)


def own_directories(root):
    """Those that no package has which must be there."""
    tops = (os.path.join("/", os.path.relpath(top, root))
            for top, _, _ in os.walk(root))
    return [top for top in sorted(tops)
            if re.search("/plug-policy|/tuned", top)]


def write_control(root):
    """What dpkg wants to know, and lintian."""
    write(root, "usr/share/lintian/overrides/" + NAME, OVERRIDES.encode())
    paths = files(root)
    sums, size = "", 0
    for path in paths:
        if not os.path.islink(root + path):
            with open(root + path, "rb") as file:
                data = file.read()
            sums += "%s  %s\n" % (hashlib.md5(data).hexdigest(), path[1:])
            size += len(data)
    control = CONTROL.format(
        NAME=NAME, SUMMARY=SUMMARY, version=changelog()[1],
        maintainer="%s <%s>" % AUTHOR, size=size // 1024 + len(paths),
        description="\n".join(" " + (line or ".")
                              for line in DESCRIPTION.split("\n")))
    write(root, "DEBIAN/control", control.encode())
    write(root, "DEBIAN/md5sums", sums.encode())
    write(root, "DEBIAN/prerm", PRERM.format(
        TAKE_BACK=take_back(), COMPILED=COMPILED).encode(), 0o755)
    write(root, "DEBIAN/postrm", POSTRM.encode(), 0o755)


def build_deb(root, where):
    """The .deb of what is staged."""
    _, version, seconds = changelog()
    path = os.path.join(where, "%s_%s_all.deb" % (NAME, version))
    write_control(root)
    settle(root, seconds)
    kernel.quiet(["env", "SOURCE_DATE_EPOCH=%d" % seconds, "dpkg-deb",
                  "--root-owner-group", "-Zxz", "-b", root, path], "dpkg-deb")
    return path


def build_rpm(root, where):
    """The .rpm of what is staged."""
    _, whole, seconds = changelog()
    version, _, revision = whole.partition("-")
    settle(root, seconds)
    spec = os.path.join(where, NAME + ".spec")
    with open(spec, "w", encoding="utf-8") as out:
        out.write(SPEC.format(
            NAME=NAME, COMPILED=COMPILED, TAKE_BACK=take_back(),
            SUMMARY=SUMMARY, DESCRIPTION=DESCRIPTION, version=version,
            revision=revision, root=root, files="\n".join(files(root)),
            directories="\n".join("%dir " + path
                                  for path in own_directories(root))))
    command = " ".join([
        "SOURCE_DATE_EPOCH=%d" % seconds, "rpmbuild", "-bb", *RPM_OPTIONS,
        "--define='_topdir %s/o-tools'" % where,
        "--define='_rpmdir %s'" % where,
        "--define='_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}."
        "%%{ARCH}.rpm'", "--nodeps", spec])
    kernel.quiet(["sh", "-c", command], "rpmbuild")
    return os.path.join(where, "%s-%s.noarch.rpm" % (NAME, whole))


def build(form):
    """The package, in build/deb or build/rpm; its path."""
    where = os.path.join(kernel.BUILD, form)
    root = os.path.join(where, "tools-root")
    with common.locked(root + ".lock"):
        stage(root)
        path = (build_deb if form == "deb" else build_rpm)(root, where)
        shutil.rmtree(root)
    return path
