/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hooks of the plug policy in the I/O path.  The control law is at the top
 * of blk-plug-hold.c.
 *
 * Each hook is an inline test in front of a function: a patched-out branch
 * while all queues are on "always".  Once one is not, the others pay for tests
 * of the plug and of the queue's mode, in lines that the path has loaded.
 */
#ifndef BLK_PLUG_HOLD_H
#define BLK_PLUG_HOLD_H

#include <linux/blk-mq.h>
#include <linux/sizes.h>

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

	/* Most bytes in a group, if all requests are as large as the first. */
	BLK_PLUG_POLICY_GROUP_BYTES	= SZ_128K,
};

#ifdef CONFIG_BLK_PLUG_POLICY

void __blk_plug_policy_first_rq(struct blk_plug *plug, struct request *rq);
void __blk_plug_policy_flush_group(struct blk_plug *plug,
				   const struct request *rq);
bool __blk_plug_policy_issue_now(struct blk_plug *plug, struct request *rq);

/**
 * blk_plug_policy_start - prepare a new plug
 * @plug: plug that is being started
 */
static inline void blk_plug_policy_start(struct blk_plug *plug)
{
	plug->policy = (struct blk_plug_policy){
		.group = BLK_PLUG_POLICY_NO_GROUP,
	};
}

/**
 * blk_plug_policy_first_rq - an empty plug gets a request
 * @plug: the submitter's plug
 * @rq: the request, whose queue and size decide on the group
 *
 * Context: Task context of the submitter; q_usage_counter held.
 */
static inline void blk_plug_policy_first_rq(struct blk_plug *plug,
					    struct request *rq)
{
	if (!blk_plug_policy_on())
		return;
	plug->policy.group = BLK_PLUG_POLICY_NO_GROUP;
	plug->policy.counts = false;
	if (blk_plug_policy_get(rq->q) > BLK_PLUG_POLICY_NEVER)
		__blk_plug_policy_first_rq(plug, rq);
}

/**
 * blk_plug_policy_second_queue - a plug gets a request of a second queue
 * @plug: the submitter's plug
 *
 * From now on it is filled as under "always": one queue's group would push out
 * requests that another queue still wants to merge.
 */
static inline void blk_plug_policy_second_queue(struct blk_plug *plug)
{
	if (blk_plug_policy_on()) {
		plug->policy.group = BLK_PLUG_POLICY_NO_GROUP;
		plug->policy.counts = false;
	}
}

/**
 * blk_plug_policy_flush_group - send out a full group
 * @plug: the submitter's plug
 * @rq: request that comes next, as its bio has not been merged
 *
 * Context: Task context of the submitter.
 */
static inline void blk_plug_policy_flush_group(struct blk_plug *plug,
					       const struct request *rq)
{
	if (blk_plug_policy_on() && plug->rq_count >= plug->policy.group)
		__blk_plug_policy_flush_group(plug, rq);
}

/**
 * blk_plug_policy_issue_now - should a request bypass the plug?
 * @plug: the submitter's plug
 * @rq: new request, which belongs to the caller
 *
 * Context: Task context of the submitter.  May send out requests that @plug
 *	holds, but not @rq.
 * Return: true to issue @rq now, false to add it to @plug.
 */
static inline bool blk_plug_policy_issue_now(struct blk_plug *plug,
					     struct request *rq)
{
	return blk_plug_policy_on() &&
		blk_plug_policy_get(rq->q) == BLK_PLUG_POLICY_NEVER &&
		__blk_plug_policy_issue_now(plug, rq);
}

#else /* CONFIG_BLK_PLUG_POLICY */

static inline void blk_plug_policy_start(struct blk_plug *plug)
{
}

static inline void blk_plug_policy_first_rq(struct blk_plug *plug,
					    struct request *rq)
{
}

static inline void blk_plug_policy_second_queue(struct blk_plug *plug)
{
}

static inline void blk_plug_policy_flush_group(struct blk_plug *plug,
					       const struct request *rq)
{
}

static inline bool blk_plug_policy_issue_now(struct blk_plug *plug,
					     struct request *rq)
{
	return false;
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_HOLD_H */
