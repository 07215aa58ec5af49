/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What power_load and replay_log agree upon.
 *
 * Each of POWER_WRITERS tasks has a directory with slots. A step brings a slot
 * to its next version: mark "b,WRITER,SLOT,VERSION,COUNT", the writes, what
 * makes them permanent, mark "d,WRITER,SLOT,VERSION,COUNT". So after a power
 * failure a slot is at the version of its last "d", or of its last "b".
 *
 * Slots, the same in each writer's directory:
 *	0..	r<n>: replaced as a whole, by fsync and rename
 *	8..	u<n>: there at odd versions, unlinked at even ones
 *	16	a: grows by a record with each version
 *	17..	the blocks of d, overwritten in place in spans of COUNT
 */
#ifndef POWER_LOAD_H
#define POWER_LOAD_H

enum {
	POWER_WRITERS	= 4,
	POWER_REPLACED	= 0,
	POWER_UNLINKED	= 8,
	POWER_APPENDED	= 16,
	POWER_BLOCKS	= 17,
	POWER_NR_BLOCKS	= 64,
	POWER_SLOTS	= POWER_BLOCKS + POWER_NR_BLOCKS,
};

/* The mark behind mkfs and the directories: from here on slots count. */
#define POWER_BEGIN "power-begin"

struct power_slot {
	unsigned int done, begun;
};

#endif
