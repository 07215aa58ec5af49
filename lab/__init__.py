# SPDX-License-Identifier: GPL-2.0
"""The laboratory."""
import scripts  # noqa: F401 pylint: disable=unused-import
