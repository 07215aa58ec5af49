# SPDX-License-Identifier: GPL-2.0
"""bubblewrap around what a job file says: of all files it can write the disk,
and it reaches no other device, and no network."""
import subprocess

# A mount that can only be read does not stop who writes to a device: of these
# there are none but --dev's, and the disk.
WRAP = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        "--unshare-net", "--unshare-ipc", "--die-with-parent"]
SECONDS = 60                    # for bwrap to begin


def works():
    """Whether there is one, and this machine lets it."""
    try:
        return not subprocess.run([*WRAP, "true"], check=False, timeout=SECONDS,
                                  capture_output=True).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


def boxed(command, is_boxed, node=None):
    """A command, which can then write this device and nothing else."""
    return [*WRAP, *(["--dev-bind", node, node] if node else []),
            *command] if is_boxed else command
