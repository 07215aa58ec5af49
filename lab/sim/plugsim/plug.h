/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A plug of one queue: which I/Os become one request, and when requests leave,
 * by the rules of blk_add_rq_to_plug() and of "adaptive" in blk-plug-hold.
 */
#ifndef PLUGSIM_PLUG_H
#define PLUGSIM_PLUG_H

#include <linux/types.h>

/* BLK_MAX_REQUEST_COUNT, BLK_PLUG_FLUSH_SIZE */
#define PLUG_MAX	32
#define PLUG_FLUSH_SIZE	(128 * 1024)

/* Where an I/O is that no other one goes on from. */
#define PLUG_NOWHERE	(1ULL << 63)

/**
 * struct plug - what a submission holds; all zero at its begin
 * @nr:		requests
 * @ios:	I/Os of each
 * @end:	where the newest ends
 * @group:	requests that leave at a time: when the next one comes, which
 *		might have joined one of them
 */
struct plug {
	u32 nr;
	u32 ios[PLUG_MAX];
	u64 end;
	u32 group;
};

/**
 * enum plug_did - what became of an I/O
 * @PLUG_HELD:	it is a request, which waits
 * @PLUG_JOINED: it has joined the newest one
 * @PLUG_FULL:	nothing, what is held must leave first
 */
enum plug_did { PLUG_HELD, PLUG_JOINED, PLUG_FULL };

enum plug_did plug_add(struct plug *plug, u32 group, u64 pos, u32 size,
		       u32 max_size);

static inline void plug_sent(struct plug *plug)
{
	plug->nr = 0;
}

#endif /* PLUGSIM_PLUG_H */
