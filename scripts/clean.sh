#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Remove what was built.  Downloads and the compiler cache stay: they cost
# minutes, and "rm -rf build" removes them, too.
set -e
cd "$(dirname "$0")/.."
[ -d build ] || exit 0
find build -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +
