# SPDX-License-Identifier: GPL-2.0
"""plugstat: what the kernel counts, as tables and for Prometheus."""
