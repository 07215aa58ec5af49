/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hooks of the plug policy in the I/O path.  The control law is at the top
 * of blk-plug-hold.c.
 *
 * Each is one of the inline gates below: a patched-out branch while all queues
 * are on "always".  Once one is not, the others pay for a test of the plug or
 * of q->queue_flags, in cache lines that the path has already loaded.
 */
#ifndef BLK_PLUG_HOLD_H
#define BLK_PLUG_HOLD_H

#include <linux/blk-mq.h>
#include <linux/sizes.h>

#include "blk-plug-loop.h"
#include "blk-plug-policy.h"

enum {
	/*
	 * Requests in a group of "seq-small".  Cuts the wait of the first one
	 * to a quarter, and rings an eighth of the doorbells that "never"
	 * rings.  Chosen by a model, not measured on a device: in it, 8 is near
	 * the best where latency is the limit, and 4 costs twice as much as 8
	 * where the CPU is.
	 */
	BLK_PLUG_POLICY_GROUP		= 8,

	/* Most bytes in a group, if all requests are as large as the newest. */
	BLK_PLUG_POLICY_GROUP_BYTES	= SZ_128K,

	/* Requests up to this size leave in full groups. */
	BLK_PLUG_POLICY_FULL_GROUP_BYTES =
		BLK_PLUG_POLICY_GROUP_BYTES / BLK_PLUG_POLICY_GROUP,
};

/* A group size that never fills: hold for as long as without a policy. */
#define BLK_PLUG_POLICY_NO_GROUP	UINT_MAX

/*
 * The bits of blk_plug::policy, by which "adaptive" fills the plug: 0 if
 * another mode does.  An empty plug keeps no more than RANDOM.
 */
enum {
	/* group size; all bits: as many as "always" holds */
	BLK_PLUG_POLICY_SIZE		= 0x3f,
	/* holds requests of several queues, some of which may be counted */
	BLK_PLUG_POLICY_MIXED		= 0x40,
	/* no merges have been found lately */
	BLK_PLUG_POLICY_RANDOM		= 0x80,
};

#ifdef CONFIG_BLK_PLUG_POLICY

/**
 * blk_plug_policy_group_size - how many requests make a group
 * @mode: the queue's mode
 * @bytes: size of the newest request, in bytes
 * @sequential: the newest request continues the one before it, and might have
 *	been merged with it
 *
 * Context: Any.  Pure.
 * Return: the number of held requests, the newest included, at which they are
 *	sent out, 1 or more; %BLK_PLUG_POLICY_NO_GROUP to hold them for as long
 *	as without a policy.
 */
unsigned int blk_plug_policy_group_size(enum blk_plug_policy_mode mode,
					unsigned int bytes, bool sequential);

bool __blk_plug_policy_may_merge(struct request_queue *q, struct bio *bio);
bool __blk_plug_policy_holds(struct blk_plug *plug, struct request *rq);
bool __blk_plug_policy_add(struct blk_plug *plug, struct request *rq);
bool blk_plug_policy_fills(struct blk_plug *plug, const struct request *rq);
void __blk_plug_policy_make_room(struct blk_plug *plug);
void __blk_plug_policy_many_merged(struct blk_plug *plug);
void __blk_plug_policy_flushed(struct blk_plug *plug);

/**
 * blk_plug_policy_start - prepare a new plug
 * @plug: plug that is being started
 */
static inline void blk_plug_policy_start(struct blk_plug *plug)
{
	plug->nr_merged = 0;
	plug->nr_sent = 0;
	plug->policy = 0;
}

/* Do sectors @from to @to begin where @prev ends, or end where it begins? */
static inline bool blk_plug_policy_adjoins(const struct request *prev,
					   sector_t from, sector_t to)
{
	return blk_rq_pos(prev) + blk_rq_sectors(prev) == from ||
		blk_rq_pos(prev) == to;
}

/*
 * Under "adaptive": is a lookup for a merge not worth its cost?  It is not if
 * the plug was bound while no merges were found.  Inline, since this answers
 * for most bios.
 */
static inline bool blk_plug_policy_unrelated(const struct blk_plug *plug,
					     const struct request_queue *q,
					     const struct bio *bio)
{
	if (!plug || !(plug->policy & BLK_PLUG_POLICY_RANDOM) ||
	    (bio_op(bio) != REQ_OP_READ && bio_op(bio) != REQ_OP_WRITE))
		return false;
	/* the plug may have been bound to another queue */
	if (READ_ONCE(q->elevator))
		return false;
	return plug->rq_count ||
		blk_plug_policy_fallback(q) == BLK_PLUG_POLICY_AS_SET;
}

/**
 * blk_plug_policy_mix - a plug gets a request of a second queue
 * @plug: the submitter's plug
 *
 * From now on it is filled, and bios merge into it, as under "always".
 */
static inline void blk_plug_policy_mix(struct blk_plug *plug)
{
	if (blk_plug_policy_on())
		plug->policy = BLK_PLUG_POLICY_MIXED | BLK_PLUG_POLICY_SIZE;
}

/**
 * blk_plug_policy_may_merge - should a bio look for a request to join?
 * @q: the bio's queue, on which merging is not switched off (nomerges)
 * @plug: the submitter's plug, or %NULL
 * @bio: new bio that could be merged
 *
 * Context: Task context of the submitter; q->q_usage_counter held.
 * Return: false if the lookup is not worth its cost.
 */
static inline bool blk_plug_policy_may_merge(struct request_queue *q,
					     const struct blk_plug *plug,
					     struct bio *bio)
{
	unsigned long flags;

	if (!blk_plug_policy_on())
		return true;
	flags = READ_ONCE(q->queue_flags) & BLK_PLUG_POLICY_FLAGS;
	if (flags & BIT(QUEUE_FLAG_PLUG_ADAPTIVE))
		return !blk_plug_policy_unrelated(plug, q, bio);
	return !flags || __blk_plug_policy_may_merge(q, bio);
}

/**
 * blk_plug_policy_merged - a bio has joined a request
 * @plug: the submitter's plug, or %NULL
 *
 * Counts it for "adaptive", up to the next flush of the plug.
 */
static inline void blk_plug_policy_merged(struct blk_plug *plug)
{
	if (blk_plug_loop_on() && plug && plug->policy &&
	    ++plug->nr_merged == U8_MAX)
		__blk_plug_policy_many_merged(plug);
}

/**
 * blk_plug_policy_holds - does a request go to the plug, or straight out?
 * @plug: the submitter's plug
 * @rq: new request, which belongs to the caller
 *
 * Context: Task context of the submitter.  May send out requests that @plug
 *	holds, but not @rq.
 * Return: true to add @rq to @plug, false to issue it now.
 */
static inline bool blk_plug_policy_holds(struct blk_plug *plug,
					 struct request *rq)
{
	return !blk_plug_policy_on() ||
		!test_bit(QUEUE_FLAG_PLUG_NEVER, &rq->q->queue_flags) ||
		__blk_plug_policy_holds(plug, rq);
}

/*
 * Most requests are neither the first nor the last of a group.  Find that out
 * without a call: under "adaptive", whose plug knows its group ...
 */
static inline bool blk_plug_policy_within(const struct blk_plug *plug)
{
	return plug->rq_count + 1 < (plug->policy & BLK_PLUG_POLICY_SIZE);
}

/* ... and under the other modes. */
static inline bool blk_plug_policy_may_fill(const struct blk_plug *plug,
					    const struct request *rq)
{
	return plug->rq_count >= BLK_PLUG_POLICY_GROUP - 1 ||
		blk_rq_bytes(rq) > BLK_PLUG_POLICY_FULL_GROUP_BYTES ||
		blk_plug_policy_get(rq->q) != BLK_PLUG_POLICY_SEQ_SMALL;
}

/**
 * blk_plug_policy_make_room - a bio has joined no request and brings its own
 * @plug: the submitter's plug
 *
 * Under "adaptive", while merges are found, a full group waits for this, since
 * the bio might have joined its newest request.  Now send the group out.
 *
 * Context: Task context of the submitter.
 */
static inline void blk_plug_policy_make_room(struct blk_plug *plug)
{
	/* with MIXED or RANDOM set, it is larger than what any plug holds */
	if (blk_plug_policy_on() && plug->policy &&
	    plug->rq_count >= plug->policy)
		__blk_plug_policy_make_room(plug);
}

/**
 * blk_plug_policy_flushed - a plug sends out what it holds
 * @plug: plug, which still holds it
 *
 * Counts it for the hardware queues that are on "adaptive".  The next request
 * binds the plug anew.
 *
 * Context: Task context of the submitter.
 */
static inline void blk_plug_policy_flushed(struct blk_plug *plug)
{
	if (blk_plug_policy_on())
		__blk_plug_policy_flushed(plug);
}

/**
 * blk_plug_policy_add - add a request to a plug, and send out a full group
 * @plug: the submitter's plug, whose multiple_queues and has_elevator take @rq
 *	into account already
 * @rq: new request
 *
 * The plug's cached requests, callbacks and nesting are left alone.
 *
 * Context: Task context of the submitter.
 * Return: true if @rq was added; it may have been sent out, so do not touch it
 *	any more.  false if the caller has to add it.
 */
static inline bool blk_plug_policy_add(struct blk_plug *plug,
				       struct request *rq)
{
	return blk_plug_policy_on() && !blk_plug_policy_within(plug) &&
		blk_plug_policy_active(rq->q) &&
		blk_plug_policy_may_fill(plug, rq) &&
		__blk_plug_policy_add(plug, rq);
}

#else /* CONFIG_BLK_PLUG_POLICY */

static inline void blk_plug_policy_start(struct blk_plug *plug)
{
}

static inline bool blk_plug_policy_may_merge(struct request_queue *q,
					     const struct blk_plug *plug,
					     struct bio *bio)
{
	return true;
}

static inline bool blk_plug_policy_holds(struct blk_plug *plug,
					 struct request *rq)
{
	return true;
}

static inline void blk_plug_policy_mix(struct blk_plug *plug)
{
}

static inline void blk_plug_policy_merged(struct blk_plug *plug)
{
}

static inline void blk_plug_policy_make_room(struct blk_plug *plug)
{
}

static inline void blk_plug_policy_flushed(struct blk_plug *plug)
{
}

static inline bool blk_plug_policy_add(struct blk_plug *plug,
				       struct request *rq)
{
	return false;
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_HOLD_H */
