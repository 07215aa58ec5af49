# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# What is written to the stick, and what is not: serial numbers. Sourced after
# disks.sh and talk.sh.
#
# OUT is a directory in memory where all files are made; RUN the directory on
# the stick that they are then copied to, without what identifies the machine.

OUT=${ROOT-}/tmp/out
STICK=${ROOT-}/mnt
RUN=$(cat "$STATE/run" 2>/dev/null)

# fail WHAT: noted for the report; the run goes on with what else there is
fail()
{
	echo "$*" >>"$STATE/failed"
	say "FAILED: $*"
}

# setting NAME [DEFAULT]: what plug-policy.conf says
setting()
{
	found=$(tr -d '\r' 2>/dev/null <"$STICK/plug-policy.conf" |
		sed -n "s/^$1=//p" | tail -n 1)
	echo "${found:-${2-}}"
}

# check_settings: prints what is wrong in plug-policy.conf
check_settings()
{
	tr -d '\r' 2>/dev/null <"$STICK/plug-policy.conf" |
		while IFS= read -r line; do
			case $line in
			"" | "#"*) ;;
			RUN=menu | RUN=short | RUN=full | RUN=shell | RUN=off) ;;
			ROUNDS=[1-9] | ROUNDS=[1-9][0-9]) ;;
			SECONDS=[1-9] | SECONDS=[1-9][0-9]) ;;
			WORKLOADS=?*) ;;
			*) echo "$line" ;;
			esac
		done
}

# identifiers: numbers that tell this machine and its parts from others
identifiers()
{
	cat "$SYS"/class/nvme/nvme*/serial "$SYS"/class/dmi/id/*serial \
		"$SYS"/class/dmi/id/product_uuid "$SYS"/class/dmi/id/*asset_tag \
		"$SYS"/block/*/wwid "$SYS"/block/*/uuid "$SYS"/block/*/nguid \
		"$SYS"/block/*/eui "$SYS"/block/*/device/serial \
		"$SYS"/block/*/device/wwid "$SYS"/bus/usb/devices/[0-9]*/serial
} 2>/dev/null

# removals: a sed script that takes them out. What is short, or means "none", is
# no such number, and may be part of another word. The longest first: a short one
# may be the beginning of another.
removals()
{
	identifiers | sed 's/^ *//; s/ *$//' | sort -u |
		awk '{ print length, $0 }' | sort -rn |
	while read -r _ number; do
		case $number in
		"" | ? | ?? | ??? | ???? | ????? | *[Nn]one* | *[Dd]efault* | \
			*[Ff]illed* | *[Ss]pecified* | *[Uu]nknown*) continue ;;
		esac
		printf '%s\n' "$number" | sed 's/[][\/.*^$]/\\&/g;
			s/.*/s\/&\/(removed)\/g/'
	done
}

# save NAME...: files of OUT to the stick, at once. dmesg is taken now.
save()
{
	[ -n "$RUN" ] || return
	for name; do
		if [ "$name" = dmesg ]; then
			name=dmesg.txt
			dmesg >"$OUT/$name"
		fi
		[ -e "$OUT/$name" ] || continue
		sed -f "$STATE/removals" "$OUT/$name" >"$RUN/$name.new" &&
			mv "$RUN/$name.new" "$RUN/$name" ||
			echo "$name: cannot be written to the stick" >>"$STATE/failed"
	done
	sync
}

# new_run: the next directory that is free
new_run()
{
	number=1
	while [ -e "$STICK/run-$number" ]; do
		number=$((number + 1))
	done
	mkdir -p "$OUT" "$STICK/run-$number" || return 1
	RUN=$STICK/run-$number
	echo "$RUN" >"$STATE/run"
	removals >"$STATE/removals"
}

# values PATTERN...: files of sysfs, each a line "name: value"
values()
{
	for file; do
		[ -r "$file" ] || continue
		value=$(tr '\n' ' ' <"$file" 2>/dev/null) &&
			echo "$file: $value" | sed "s,^$SYS/,,"
	done
}

# count FILE...: of a pattern; itself, if nothing matches it
count()
{
	[ -e "$1" ] && echo $# || echo 0
}

# describe_disk NAME: model and size in a line
describe_disk()
{
	echo "$1: $(sed 's/ *$//' "$SYS/block/$1/device/model")," \
		"firmware $(sed 's/ *$//' "$SYS/block/$1/device/firmware_rev")," \
		"$(awk '{ printf "%.1f GB", $1 * 512 / 1e9 }' \
			"$SYS/block/$1/size")"
} 2>/dev/null

describe_cpus()
{
	grep -c '^processor' /proc/cpuinfo | sed 's/^/CPUs: /'
	grep -m 5 -E '^(vendor_id|cpu family|model|model name|microcode)' \
		/proc/cpuinfo | tr -d '\t'
	grep MemTotal /proc/meminfo
	values "$SYS"/devices/system/cpu/smt/active \
		"$SYS"/devices/system/node/node*/cpulist \
		"$SYS"/devices/system/cpu/cpu0/cpufreq/scaling_driver \
		"$SYS"/devices/system/cpu/cpu0/cpufreq/scaling_governor \
		"$SYS"/devices/system/cpu/cpuidle/current_driver \
		"$SYS"/devices/system/clocksource/clocksource0/current_clocksource \
		"$SYS"/devices/system/cpu/vulnerabilities/*
}

# describe_nvme NAME: how it is attached and set, how hot it is, and that it was
# not written to
describe_nvme()
{
	describe_disk "$1"
	values "$SYS/block/$1/device"/address \
		"$SYS/block/$1/device/device"/current_link_* \
		"$SYS/block/$1/device"/hwmon*/temp1_input \
		"$SYS/block/$1/queue"/logical_block_size \
		"$SYS/block/$1/queue"/io_poll "$SYS/block/$1/queue"/scheduler \
		"$SYS/block/$1/queue"/nomerges "$SYS/block/$1/queue"/plug_policy
	echo "hardware queues: $(count "$SYS/block/$1/mq"/*)"
	echo "read-only: $(is_read_only "$1" && echo yes || echo no)"
	echo "sectors written since power-on: $(sectors_written "$1")"
}

# describe: the machine, with no serial numbers asked for
describe()
{
	uname -a
	cat /proc/cmdline
	values "$SYS"/class/dmi/id/sys_vendor "$SYS"/class/dmi/id/product_name \
		"$SYS"/class/dmi/id/board_name "$SYS"/class/dmi/id/bios_version \
		"$SYS"/class/dmi/id/bios_date
	describe_cpus
	echo "IOMMU groups: $(count "$SYS"/kernel/iommu_groups/*)"
	for disk in $(nvme_disks); do
		echo
		describe_nvme "$disk"
	done
} 2>/dev/null

# outcome: what went wrong, or that nothing did
outcome()
{
	if [ -s "$STATE/failed" ]; then
		sed 's/^/FAILED: /' "$STATE/failed"
	else
		echo "Nothing failed."
	fi
	[ ! -s "$STATE/left" ] || sed 's/^/Left alone: /' "$STATE/left"
}

# plain_report: if python cannot
plain_report()
{
	echo "<!DOCTYPE html><title>plug policies on this machine</title><pre>"
	cat "$OUT"/*.txt |
		sed 's/&/\&amp;/g; s/</\&lt;/g'
	echo "</pre>"
}

# write_report: all that is not yet on the stick
write_report()
{
	describe >"$OUT/machine.txt"
	outcome >"$OUT/outcome.txt"
	if ! python3 /stick/report.py "$OUT" 2>"$OUT/report.err"; then
		fail "report.py: $(tail -n 1 "$OUT/report.err")"
		outcome >"$OUT/outcome.txt"
		plain_report >"$OUT/report.html"
	fi
	cp "$STATE/log.txt" "$OUT/log.txt"
	save machine.txt outcome.txt report.html log.txt dmesg
}
