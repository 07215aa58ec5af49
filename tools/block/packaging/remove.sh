#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Takes back what the tools have set going on this machine, while they are still
# there: "make uninstall" runs it, and so do the packages when they are removed,
# which no failure may prevent.
set -e
systemctl disable --now plugstat-textfile.timer plugstat-counting.service \
	2>/dev/null || :
systemctl stop plugstat-textfile.service 2>/dev/null || :
rm -f /var/lib/prometheus/node-exporter/plugstat.prom || :
plugroll undo || :
