# SPDX-License-Identifier: GPL-2.0
"""What plugbench, plugstat and plugroll share."""
VERSION = "1.0"
