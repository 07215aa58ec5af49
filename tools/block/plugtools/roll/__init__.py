# SPDX-License-Identifier: GPL-2.0
"""plugroll: try a mode, and make it last."""
