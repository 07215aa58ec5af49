# SPDX-License-Identifier: GPL-2.0
"""bubblewrap around what a job file says: of all files it can write the disk,
and it reaches no other device, no network, and no process outside.  A socket
that has a name it could still open: no option that is accepted does."""
import subprocess

# A mount that can only be read does not stop who writes to a device: of these
# there are none but --dev's, and the disk.  Nor does it stop root, to whom
# /proc/PID/root of a process outside is the whole machine's, and who mounts
# anew; /proc/sys is root's to write even without capabilities.
WRAP = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        "--remount-ro", "/proc", "--unshare-pid", "--unshare-net",
        "--unshare-ipc", "--new-session", "--die-with-parent",
        "--cap-drop", "ALL",
        # a disk or a file of another user's; fixed buffers; a job's priority
        "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_IPC_LOCK",
        "--cap-add", "CAP_SYS_NICE"]
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
