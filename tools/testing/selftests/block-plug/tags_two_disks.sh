#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: two disks that take turns in one plug both get their tags in
# batches, and no more of them than they use.

. "${0%/*}/measure_lib.sh"

# How many tags a plug uses is known to each CPU by itself.
PIN="taskset 1"

# after_two SIZE: once two plugs have shown how many that is, half for each disk
after_two()
{
	plugs "$1" bp0 2 /dev/bp1 &&
	measure bp0 plugs "$1" bp0 $N /dev/bp1 || return
	expect_counts "TAG_BATCHES~($1+63)/64*2*N" TAG_SINGLES~0 "TAGS~$1*N"
}

require root counts plug_load taskset null_blk
plan 3
must null_create bp0
must null_create bp1
for size in 32 64 128; do
	check "$size I/Os per plug" after_two $size
done
finish
