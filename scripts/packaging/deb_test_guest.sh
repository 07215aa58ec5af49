#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The part of deb_test.py in the guest: started by systemd, on Debian 13 with the
# packages installed. Results go to boot.py's port, as TAP.
#
# Beside it: before, the list of files before the packages were installed;
# packages, their names; release, the kernel's; list.sh, which makes a list.
set -u

here=${0%/*}
port=/dev/ttyS1
pages="plugstat plugbench plugroll plugtrace plugtrace-perf"
document=/usr/share/doc/plug-policy-tools/plug-policy.rst
rule=/run/udev/rules.d/60-plug-policy.rules
policy=/sys/block/nvme0n1/queue/plug_policy
counted=/sys/kernel/debug/block/nvme0n1/plug_stats_enabled
textfile=/var/lib/prometheus/node-exporter/plugstat.prom

# ok NAME COMMAND...: a result; what the command says, if it failed
ok() {
	name=$1
	shift
	if said=$("$@" 2>&1); then
		echo "ok $name" >&3
	else
		printf '%s\n' "$said" | sed 's/^/# /' >&3
		echo "not ok $name" >&3
	fi
}

is_our_kernel() {
	uname -r
	[ "$(uname -r)" = "$(cat "$here/release")" ]
}

systemd_is_well() {
	cat /proc/1/comm
	failed=$(systemctl --failed --no-legend --plain)
	echo "$failed"
	[ "$(cat /proc/1/comm)" = systemd ] && [ -z "$failed" ]
}

# Of each disk, of NVMe and of virtio
is_always() {
	grep . /sys/block/*/queue/plug_policy
	for disk in nvme0n1 vda; do
		grep -q '^\[always\]' /sys/block/$disk/queue/plug_policy || return
	done
}

takes_modes() {
	for mode in never seq-small adaptive always; do
		echo $mode >$policy && grep -qF "[$mode]" $policy || return
	done
}

counts() {
	dd if=/dev/nvme0n1 of=/dev/null bs=1M iflag=direct &
	plugstat -c 3 nvme0n1
	status=$?
	kill $!
	return $status
}

plugstat_counts() {
	found=$(counts) || return
	echo "$found"
	echo "$found" | grep -q '^nvme0n1 .*[0-9]' &&
		echo "$found" | grep -q '^nvme0n1: 32 per doorbell?'
}

# soon COMMAND...: it succeeds within a time that is long even here
soon() {
	for _ in $(seq 120); do
		"$@" && return
		sleep 1
	done
	return 1
}

counting_is() {
	[ "$(cat $counted)" = "$1" ]
}

# exported METRIC: the file for Prometheus has it, of the disk
exported() {
	grep -q "^plugstat_$1{disk=\"nvme0n1\"" $textfile
}

# Nothing is counted for the timer; whoever wants that asks for it. Both are
# left enabled.
timer_exports() {
	mkdir -p ${textfile%/*} && echo >$textfile || return
	systemctl enable --now plugstat-textfile.timer &&
		soon exported mode_in_force
	cat $textfile
	counting_is 0 && ! exported flush_requests_total || return
	systemctl enable --now plugstat-counting.service &&
		soon exported flush_requests_total && counting_is 1
}

# Their library is compiled by whoever runs it as root.
tools_run() {
	unset PYTHONDONTWRITEBYTECODE
	plugbench --help && plugtrace-perf --help && plugroll list &&
		ls /usr/share/plug-policy-tools/plugtools/__pycache__
}

pages_show() {
	for page in $pages; do
		man "$page" | grep -q 'SEE ALSO' || {
			echo "$page"
			return 1
		}
	done
}

is_adaptive() {
	udevadm settle
	grep . $policy
	grep -qF '[adaptive]' $policy
}

rule_works() {
	mkdir -p ${rule%/*}
	sed -n '/^\tACTION==/,/^$/s/^\t//p' $document >$rule
	udevadm verify $rule && udevadm control --reload &&
		udevadm trigger --action=add /sys/block/nvme0n1 && is_adaptive
}

# It is left kept, too.
mode_is_kept() {
	echo always >$policy
	plugroll keep adaptive nvme0n1 && is_adaptive
}

# is_undone: what was left enabled and kept is so no more
is_undone() {
	grep . $policy $counted
	grep -qF '[always]' $policy && counting_is 0 && ! [ -e $textfile ] &&
		rm -r /var/lib/prometheus
}

purge() {
	# shellcheck disable=SC2046 # a word per package
	dpkg --purge $(cat "$here/packages")
}

# What a running system writes by itself is left out of the lists: see list.sh.
nothing_left() {
	sh "$here/list.sh" / >"$here/after"
	diff "$here/before" "$here/after"
}

stty -F $port raw -echo 115200
exec 3>$port
ok "the kernel of the package runs" is_our_kernel
ok "systemd is well on it" systemd_is_well
ok "each disk has the file, and is on always" is_always
ok "the file takes each mode" takes_modes
ok "plugstat counts" plugstat_counts
ok "the timer writes the counters for Prometheus" timer_exports
ok "the other tools start" tools_run
ok "the manual has the pages" pages_show
ok "the document's rule for udev works" rule_works
ok "a mode is kept" mode_is_kept
ok "the files are those of the packages" dpkg --verify
ok "the packages can be removed" purge
ok "what was kept and enabled is so no more" is_undone
ok "nothing is left of them" nothing_left
echo "verdict exit 0" >&3
# systemd, told so on the kernel's command line, switches the guest off
