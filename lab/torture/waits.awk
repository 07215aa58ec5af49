# SPDX-License-Identifier: GPL-2.0
#
# Is a request held while its submitter is not going to send it out?
#
#     awk -v dev=MAJOR,MINOR [-v limit=N] -f waits.awk TRACE
#
# TRACE is a text of ftrace with block_getrq, block_rq_insert, block_rq_issue,
# block_rq_merge, block_bio_frontmerge, sched_switch and sys_exit, from before
# the first I/O until after the last. A request counts as held from block_getrq
# until its submitter inserts or issues it, or it is merged away. It is wrong
# - that a submitter sleeps, or returns to user space, with a request held
# - that one is preempted with more than N held (if a limit is given)
# - that a request is still held at the end.
# A flush (PREFLUSH) never comes to the plug, so it is left out.
#
# Prints "bad WHY" for what is wrong and "KEY VALUE" for what was seen:
# waits	 requests followed until they left
# sleeps, exits, preempts  times that a submitter slept, left the kernel, was
#	 preempted; stops: sleeps because of SIGSTOP
# held	 preemptions with a request held; most: the most held at one of these
# max_us, mean_us	how long a request was held
# first_us	how long the first one was

function bad(why)
{
	# a checker that reports all is not read
	if (++bads <= 10)
		print "bad " when " " why
}

function hold(pid, sector, start,    k)
{
	k = pid " " sector
	begun[k, ++newest[k]] = start
	nr[pid]++
}

# Did pid hold a request at this sector? Sets Start to since when.
function release(pid, sector,    k)
{
	k = pid " " sector
	if (oldest[k] == newest[k])
		return 0
	Start = begun[k, ++oldest[k]]
	delete begun[k, oldest[k]]
	nr[pid]--
	return 1
}

function left(pid, sector,    us)
{
	if (!release(pid, sector))
		return
	us = (when - Start) * 1000000
	if (!waits++)
		first_us = us
	sum_us += us
	if (us > max_us)
		max_us = us
}

function switched(text,    pid, state)
{
	if (!match(text, / prev_pid=[0-9]+ /))
		return
	pid = substr(text, RSTART + 10, RLENGTH - 11)
	if (!(pid in nr))
		return
	match(text, / prev_state=[^ ]+ /)
	state = substr(text, RSTART + 12, RLENGTH - 13)
	if (state ~ /^R/) {
		preempts++
		if (nr[pid])
			held++
		if (nr[pid] > most)
			most = nr[pid]
		if (limit && nr[pid] > limit)
			bad("process " pid " was preempted with " nr[pid] \
			    " requests held, " limit " are allowed")
		return
	}
	sleeps++
	if (state ~ /^[Tt]/)
		stops++
	if (nr[pid])
		bad("process " pid " went to sleep (" state ") with " nr[pid] \
		    " requests held")
}

function exited(pid)
{
	if (!(pid in nr))
		return
	exits++
	if (nr[pid])
		bad("process " pid " returned to user space with " nr[pid] \
		    " requests held")
}

# block_getrq and block_bio_*: DEV RWBS SECTOR + NR [COMM]; block_rq_*:
# DEV RWBS BYTES (CMD) SECTOR + NR PRIO [COMM]
function block(pid, event, text,    f)
{
	split(text, f, " ")
	if (f[1] != dev)
		return
	if (event == "block_getrq") {
		if (f[2] !~ /^F/)
			hold(pid, f[3], when)
	} else if (event == "block_bio_frontmerge") {
		if (release(pid, f[3] + f[5]))
			hold(pid, f[3], Start)
	} else {
		left(pid, f[5])
	}
}

/^# entries-in-buffer\/entries-written:/ {
	split($3, counts, "/")
	if (counts[1] + 0 != counts[2] + 0)
		bad("the trace lost " counts[2] - counts[1] " of " counts[2] \
		    " events")
}

/LOST [0-9]+ EVENTS/ {
	bad("the trace lost events")
}

# COMM-PID [CPU] FLAGS TIME: EVENT: TEXT, where COMM may be anything
match($0, /-[0-9]+ +\[[0-9]+\] /) {
	rest = substr($0, RSTART + RLENGTH)
	pid = substr($0, RSTART + 1)
	sub(/ .*/, "", pid)
	if (!match(rest, /[0-9]+\.[0-9]+: [a-z_]+: /))
		next
	text = substr(rest, RSTART + RLENGTH)
	split(substr(rest, RSTART, RLENGTH), words, ": ")
	when = words[1]
	if (words[2] ~ /^block_/)
		block(pid, words[2], text)
	else if (words[2] == "sched_switch")
		switched(" " text)
	else if (words[2] == "sys_exit")
		exited(pid)
}

END {
	for (pid in nr) {
		if (nr[pid])
			bad("process " pid " never sent out " nr[pid] \
			    " requests")
	}
	if (bads > 10)
		print "bad and " bads - 10 " more"
	printf "waits %d\nsleeps %d\nstops %d\nexits %d\n", waits, sleeps, stops, exits
	printf "preempts %d\nheld %d\nmost %d\n", preempts, held, most
	printf "first_us %.0f\nmax_us %.0f\nmean_us %.0f\n", first_us, max_us,
	       waits ? sum_us / waits : 0
}
