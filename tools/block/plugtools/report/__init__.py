# SPDX-License-Identifier: GPL-2.0
"""What records of measurements say: tables, verdict, page; of any bench."""
