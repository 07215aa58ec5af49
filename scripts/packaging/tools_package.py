# SPDX-License-Identifier: GPL-2.0
"""The package of the tools, which tools/block/Makefile builds."""
import glob
import os

from scripts import common
from scripts import kernel

TOOLS = os.path.join(kernel.ROOT, "tools/block")
PACKAGING = os.path.join(TOOLS, "packaging")
AUTHOR = ("plug_policy series", "plug-policy@example.invalid")
NAME = "plug-policy-tools"
DOCUMENTS = os.path.join(kernel.ROOT, "Documentation/block")

# Neither the builder's name nor the hour of the build, and nothing compressed
# or compiled once more.
RPM_OPTIONS = [
    "--define='_buildhost build'", "--define='__os_install_post %{nil}'",
    "--define='use_source_date_epoch_as_buildtime 1'",
    "--define='clamp_mtime_to_source_date_epoch 1'"]

# lintian on what is no part of Debian, and on kbuild, which has modules below
# /lib: a link to usr/lib since Debian 13
NOT_OURS = ["initial-upload-closes-no-bugs", "aliased-location"]


def build(form):
    """The package, in build/deb or build/rpm; its path."""
    where = os.path.join(kernel.BUILD, form)
    os.makedirs(where, exist_ok=True)
    with common.locked(os.path.join(where, "tools.lock")):
        kernel.quiet(["make", "-C", TOOLS, form, "OUT=" + where],
                     "make -C tools/block " + form)
        return glob.glob(os.path.join(where, f"{NAME}[-_]*.{form}"))[0]
