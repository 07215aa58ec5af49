/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug policy: how long a plug holds requests, chosen per queue.  The top of
 * blk-plug-policy.c says what the modes do.
 *
 * Each hook in the I/O path is a patched-out branch while all queues are on
 * "always".  Once one is not, the others pay for tests of the plug and of the
 * queue's mode, in lines that the path has loaded.
 */
#ifndef BLK_PLUG_POLICY_H
#define BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>

struct seq_file;

/* The values of queue/plug_policy. */
enum blk_plug_policy_mode {
	BLK_PLUG_POLICY_ALWAYS,		/* hold requests as without a policy */
	BLK_PLUG_POLICY_NEVER,		/* hold none */
	BLK_PLUG_POLICY_SEQ_SMALL,	/* small sequential ones; few others */
	BLK_PLUG_POLICY_ADAPTIVE,	/* as many as the hctx is best with */
	BLK_PLUG_POLICY_NR,
};

/* More than any plug holds. */
#define BLK_PLUG_POLICY_NO_GROUP	U8_MAX

/* On while any queue is in a mode other than "always"; counts these queues. */
DECLARE_STATIC_KEY_FALSE(blk_plug_policy_key);

void __blk_plug_policy_first_rq(struct blk_plug *plug, struct request *rq);
void __blk_plug_policy_flush_group(struct blk_plug *plug,
				   const struct request *rq);
bool __blk_plug_policy_issue_now(struct blk_plug *plug, struct request *rq);
void __blk_plug_policy_count_flush(const struct blk_plug *plug);

/* Both take cpus_read_lock(); at unregistration the disk may be dead. */
void blk_plug_policy_register(struct request_queue *q);
void blk_plug_policy_unregister(struct request_queue *q);

/* A hardware queue comes, and has its CPUs mapped, not only once. */
void blk_plug_policy_alloc_hctx(struct blk_mq_hw_ctx *hctx, gfp_t gfp);
void blk_plug_policy_map_hctx(struct blk_mq_hw_ctx *hctx);

/* queue/plug_policy*; hctx<N>/plug_adaptive in debugfs */
ssize_t blk_plug_policy_show(struct gendisk *disk, char *page);
ssize_t blk_plug_policy_store(struct gendisk *disk, const char *page,
			      size_t count);
ssize_t blk_plug_policy_fallback_show(struct gendisk *disk, char *page);
int blk_plug_adaptive_show(void *data, struct seq_file *m);
ssize_t blk_plug_adaptive_write(void *data, const char __user *buf,
				size_t count, loff_t *ppos);

/* Tested before any pointer is followed. */
static inline bool blk_plug_policy_on(void)
{
	return IS_ENABLED(CONFIG_BLK_PLUG_POLICY) &&
		static_branch_unlikely(&blk_plug_policy_key);
}

static inline enum blk_plug_policy_mode
blk_plug_policy_get(const struct request_queue *q)
{
#ifdef CONFIG_BLK_PLUG_POLICY
	return READ_ONCE(q->plug_policy);
#endif
	return BLK_PLUG_POLICY_ALWAYS;
}

/* A plug has a new first request, or one of a second hardware queue. */
static inline void blk_plug_policy_no_group(struct blk_plug *plug)
{
	plug->policy.group = BLK_PLUG_POLICY_NO_GROUP;
	plug->policy.counts = false;
}

/* An empty plug gets a request, whose queue and size decide on the group. */
static inline void blk_plug_policy_first_rq(struct blk_plug *plug,
					    struct request *rq)
{
	if (!blk_plug_policy_on())
		return;
	blk_plug_policy_no_group(plug);
	if (blk_plug_policy_get(rq->q) > BLK_PLUG_POLICY_NEVER)
		__blk_plug_policy_first_rq(plug, rq);
}

/* A plug is about to send out what it holds. */
static inline void blk_plug_policy_count_flush(const struct blk_plug *plug)
{
	if (blk_plug_policy_on() && plug->policy.counts)
		__blk_plug_policy_count_flush(plug);
}

/*
 * @rq comes next, as its bio has not been merged: send out a full group.  That
 * is of one hardware queue, and so is what it counts.  False: @rq is a bio's
 * and not to be held but issued; what was held of its queue has been sent out.
 */
static inline bool blk_plug_policy_hold(struct blk_plug *plug,
					struct request *rq)
{
	if (!blk_plug_policy_on())
		return true;
	if (blk_plug_policy_get(rq->q) == BLK_PLUG_POLICY_NEVER &&
	    __blk_plug_policy_issue_now(plug, rq))
		return false;
	if (!plug->rq_count)
		return true;
	if (plug->mq_list.tail->mq_hctx != rq->mq_hctx) {
		/* so many count, whether they have left in groups or not */
		blk_plug_policy_count_flush(plug);
		blk_plug_policy_no_group(plug);
		plug->policy.mixed = true;
	} else if (plug->rq_count >= plug->policy.group) {
		__blk_plug_policy_flush_group(plug, rq);
	}
	return true;
}

/* May a plug be flushed by size?  Under "adaptive" not: it learns by groups. */
static inline bool blk_plug_policy_flush_large(const struct blk_plug *plug)
{
	return !blk_plug_policy_on() || !plug->policy.counts;
}

#endif /* BLK_PLUG_POLICY_H */
