# SPDX-License-Identifier: GPL-2.0
"""What all the tools use: disks, settings and their journal, the system."""
