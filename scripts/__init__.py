# SPDX-License-Identifier: GPL-2.0
"""The project's programs: each starts as `python3 -m scripts.<name>`, in the
root of the repository; what such a program starts finds the packages as well."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "tools", "block"))   # plugtools
os.environ["PYTHONPATH"] = ROOT
