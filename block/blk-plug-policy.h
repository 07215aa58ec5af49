/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug policy: how long a plug holds requests, chosen per queue.  The top of
 * blk-plug-policy.c says what the modes do.
 *
 * Each hook in the I/O path is an inline test in front of a function: a
 * patched-out branch while all queues are on "always".  Once one is not, the
 * others pay for tests of the plug and of the queue's mode, in lines that the
 * path has loaded.
 */
#ifndef BLK_PLUG_POLICY_H
#define BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/jump_label.h>
#include <linux/sizes.h>

/* The values of queue/plug_policy. */
enum blk_plug_policy_mode {
	BLK_PLUG_POLICY_ALWAYS,		/* hold requests as without a policy */
	BLK_PLUG_POLICY_NEVER,		/* hold none */
	BLK_PLUG_POLICY_SEQ_SMALL,	/* small sequential ones; few others */
	BLK_PLUG_POLICY_ADAPTIVE,	/* as many as the hctx is best with */
	BLK_PLUG_POLICY_NR,
};

/*
 * Requests in a group of "seq-small".  Cuts the wait of the first one to a
 * quarter, and rings an eighth of the doorbells that "never" rings.  Chosen by
 * a model, not measured on a device: in it, 8 is near the best where latency is
 * the limit, and 4 costs twice as much as 8 where the CPU is.
 */
#define BLK_PLUG_POLICY_GROUP		8

/* Most bytes in a group, if all requests are as large as the first. */
#define BLK_PLUG_POLICY_GROUP_BYTES	SZ_128K

/* More than any plug holds. */
#define BLK_PLUG_POLICY_NO_GROUP	U8_MAX

#ifdef CONFIG_BLK_PLUG_POLICY

/* On while any queue is in a mode other than "always"; counts these queues. */
DECLARE_STATIC_KEY_FALSE(blk_plug_policy_key);

void __blk_plug_policy_first_rq(struct blk_plug *plug, struct request *rq);
void __blk_plug_policy_flush_group(struct blk_plug *plug,
				   const struct request *rq);
bool __blk_plug_policy_issue_now(struct blk_plug *plug, struct request *rq);

/*
 * Takes effect when a plug next gets its first request, "never" at once.  May
 * sleep, and takes cpus_read_lock(): the queue must not be frozen, nor the lock
 * of the elevator be held.
 */
void blk_plug_policy_set(struct request_queue *q,
			 enum blk_plug_policy_mode mode);

/* Why a queue does as under "always" in any mode, in one word; or NULL. */
const char *blk_plug_policy_fallback(const struct request_queue *q);

/* As blk_plug_policy_set(); when it unregisters, the disk may be dead. */
void blk_plug_policy_register(struct request_queue *q);
void blk_plug_policy_unregister(struct request_queue *q);

/* queue/plug_policy and queue/plug_policy_fallback */
ssize_t blk_plug_policy_show(struct gendisk *disk, char *page);
ssize_t blk_plug_policy_store(struct gendisk *disk, const char *page,
			      size_t count);
ssize_t blk_plug_policy_fallback_show(struct gendisk *disk, char *page);

/*
 * The hooks test this first, before they follow any pointer: while all queues
 * are on "always", nothing is loaded for the tests that come next.
 */
static inline bool blk_plug_policy_on(void)
{
	return static_branch_unlikely(&blk_plug_policy_key);
}

/* May be out of date at once. */
static inline enum blk_plug_policy_mode
blk_plug_policy_get(const struct request_queue *q)
{
	return READ_ONCE(q->plug_policy);
}

static inline void blk_plug_policy_start(struct blk_plug *plug)
{
	plug->policy = (struct blk_plug_policy){
		.group = BLK_PLUG_POLICY_NO_GROUP,
	};
}

/* An empty plug gets a request, whose queue and size decide on the group. */
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

/*
 * A plug gets a request of a second queue.  From now on it is filled as under
 * "always": one queue's group would push out requests that another queue still
 * wants to merge.
 */
static inline void blk_plug_policy_second_queue(struct blk_plug *plug)
{
	if (blk_plug_policy_on()) {
		plug->policy.group = BLK_PLUG_POLICY_NO_GROUP;
		plug->policy.counts = false;
	}
}

/* @rq comes next, as its bio has not been merged: send out a full group. */
static inline void blk_plug_policy_flush_group(struct blk_plug *plug,
					       const struct request *rq)
{
	if (blk_plug_policy_on() && plug->rq_count >= plug->policy.group)
		__blk_plug_policy_flush_group(plug, rq);
}

/*
 * Should the caller issue @rq, and not add it to the plug?  What the plug holds
 * is sent out then.
 */
static inline bool blk_plug_policy_issue_now(struct blk_plug *plug,
					     struct request *rq)
{
	return blk_plug_policy_on() &&
		blk_plug_policy_get(rq->q) == BLK_PLUG_POLICY_NEVER &&
		__blk_plug_policy_issue_now(plug, rq);
}

#else /* CONFIG_BLK_PLUG_POLICY */

static inline void blk_plug_policy_register(struct request_queue *q) { }
static inline void blk_plug_policy_unregister(struct request_queue *q) { }
static inline void blk_plug_policy_start(struct blk_plug *plug) { }
static inline void blk_plug_policy_first_rq(struct blk_plug *plug,
					    struct request *rq) { }
static inline void blk_plug_policy_second_queue(struct blk_plug *plug) { }
static inline void blk_plug_policy_flush_group(struct blk_plug *plug,
					       const struct request *rq) { }
static inline bool blk_plug_policy_issue_now(struct blk_plug *plug,
					     struct request *rq)
{
	return false;
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_POLICY_H */
