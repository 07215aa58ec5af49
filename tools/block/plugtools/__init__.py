# SPDX-License-Identifier: GPL-2.0
"""plugbench, plugstat and plugroll: a folder each, and what they share.

core and report know none of the programs, but for what schemas.py says of their
JSON; bench reads counters with stat.
"""
VERSION = "1.1"
