# SPDX-License-Identifier: GPL-2.0
"""plugbench: plan, checks, and the measurement itself."""
