# SPDX-License-Identifier: GPL-2.0
"""What all guests boot from, and the harness that boots them."""
import contextlib
import os
import sys

import kernel

sys.path.insert(0, kernel.QEMU)
import boot  # noqa: E402,F401 pylint: disable=wrong-import-position


class GuestError(kernel.BuildError):
    """The guest could not do its work; the message says why."""


@contextlib.contextmanager
def interruptible():
    """For a wait for guests that threads have booted: an interrupt ends this
    process at once, with which the guests die, instead of waiting for them."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr, flush=True)
        os._exit(130)


def initramfs():
    """Build the initramfs if its inputs changed; returns its path."""
    path = os.path.join(kernel.BUILD, "guest/initramfs.cpio")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kernel.quiet(["sh", os.path.join(kernel.QEMU, "initramfs.sh"), path],
                 "initramfs")
    return path
