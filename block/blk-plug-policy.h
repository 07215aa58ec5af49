/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug policy: how long a plug holds requests, and which bios look for a merge
 * in it, chosen per queue.  The control law is at the top of blk-plug-policy.c.
 *
 * Every hook in the I/O path is one of the inline gates below: a patched-out
 * branch while all queues are on "always", one test of q->queue_flags (in a
 * cache line that the path has already loaded) for a queue on "always" once
 * another one is not.
 */
#ifndef BLK_PLUG_POLICY_H
#define BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/jump_label.h>
#include <linux/sizes.h>

#include "blk-plug-loop.h"

struct seq_file;

/**
 * enum blk_plug_policy_mode - the values of queue/plug_policy
 * @BLK_PLUG_POLICY_ALWAYS:	hold and merge as without a policy
 * @BLK_PLUG_POLICY_NEVER:	no merge in the plug, no hold
 * @BLK_PLUG_POLICY_SEQ_SMALL:	merge and hold small sequential requests only,
 *				send the others out in groups
 * @BLK_PLUG_POLICY_ADAPTIVE:	merge while merges are found, send out groups of
 *				the size that the hardware queue has found to
 *				be best
 * @BLK_PLUG_POLICY_NR:		number of modes
 */
enum blk_plug_policy_mode {
	BLK_PLUG_POLICY_ALWAYS,
	BLK_PLUG_POLICY_NEVER,
	BLK_PLUG_POLICY_SEQ_SMALL,
	BLK_PLUG_POLICY_ADAPTIVE,
	BLK_PLUG_POLICY_NR,
};

/**
 * enum blk_plug_policy_why - why a queue does not do what its mode says
 * @BLK_PLUG_POLICY_AS_SET:	it does
 * @BLK_PLUG_POLICY_ELEVATOR:	the hold is what feeds the elevator's merges
 * @BLK_PLUG_POLICY_BLOCKING:	->queue_rq() may sleep, so it must not be called
 *				from the middle of a submission
 * @BLK_PLUG_POLICY_NO_QUEUE_RQS: the driver takes no groups
 */
enum blk_plug_policy_why {
	BLK_PLUG_POLICY_AS_SET,
	BLK_PLUG_POLICY_ELEVATOR,
	BLK_PLUG_POLICY_BLOCKING,
	BLK_PLUG_POLICY_NO_QUEUE_RQS,
};

enum {
	/*
	 * Requests in a group of "seq-small".  Shortens the wait of the first
	 * one to a quarter, for an eighth of the doorbells that "never" rings.
	 * Chosen by a model, not measured on a device: it has 8 near the best
	 * where latency is the limit, and 4 cost twice as much as 8 where the
	 * CPU is.
	 */
	BLK_PLUG_POLICY_GROUP		= 8,

	/* A group is not larger than this if all are as large as the newest. */
	BLK_PLUG_POLICY_GROUP_BYTES	= SZ_128K,

	/* Up to this size of a request the number is what counts. */
	BLK_PLUG_POLICY_FULL_GROUP_BYTES =
		BLK_PLUG_POLICY_GROUP_BYTES / BLK_PLUG_POLICY_GROUP,
};

/* A group size that never fills: hold for as long as without a policy. */
#define BLK_PLUG_POLICY_NO_GROUP	UINT_MAX

/*
 * The bits of blk_plug::policy, by which "adaptive" fills the plug: 0 if it is
 * empty, or if another mode does.
 */
enum {
	/* requests that leave at a time; all bits: as many as "always" holds */
	BLK_PLUG_POLICY_SIZE		= 0x3f,
	/* it has requests of several queues, some of which may be counted */
	BLK_PLUG_POLICY_MIXED		= 0x40,
	/* no merges have been found lately */
	BLK_PLUG_POLICY_RANDOM		= 0x80,
};

#ifdef CONFIG_BLK_PLUG_POLICY

DECLARE_STATIC_KEY_FALSE(blk_plug_policy_key);

#define BLK_PLUG_POLICY_FLAGS \
	(BIT(QUEUE_FLAG_PLUG_NEVER) | BIT(QUEUE_FLAG_PLUG_SEQ_SMALL) |	\
	 BIT(QUEUE_FLAG_PLUG_ADAPTIVE))

extern const char *const blk_plug_policy_names[BLK_PLUG_POLICY_NR];

/**
 * blk_plug_policy_parse - find the mode that a text names
 * @text: NUL-terminated, one trailing newline is ignored
 *
 * Context: Any.
 * Return: the &enum blk_plug_policy_mode, or -EINVAL unless @text is exactly
 *	one of the names.
 */
int blk_plug_policy_parse(const char *text);

/**
 * blk_plug_policy_set - set the mode of a queue
 * @q: blk-mq queue whose disk is registered
 * @mode: what to set
 *
 * Takes effect with the next bio.  Requests that a plug holds at that moment
 * leave with the next flush.  The queue is not frozen.
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock(), so neither a
 *	frozen queue nor q->elevator_lock may be held.  For
 *	%BLK_PLUG_POLICY_ADAPTIVE q->tag_set->update_nr_hwq_lock must be.
 * Return: 0, or -ENOMEM, with nothing changed.
 */
int blk_plug_policy_set(struct request_queue *q,
			enum blk_plug_policy_mode mode);

/**
 * blk_plug_policy_fallback - why a queue does as under "always"
 * @q: blk-mq queue
 *
 * Context: Any.
 * Return: %BLK_PLUG_POLICY_AS_SET if it follows the mode.
 */
enum blk_plug_policy_why
blk_plug_policy_fallback(const struct request_queue *q);

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

/**
 * blk_plug_policy_register - give a new disk's queue the configured default
 * @q: blk-mq queue whose disk is being registered
 *
 * Only a queue whose driver set %BLK_FEAT_CHEAP_SUBMIT gets it: elsewhere a
 * default that rings more doorbells could do harm.
 *
 * Context: Process context, may sleep.  As for blk_plug_policy_set().
 */
void blk_plug_policy_register(struct request_queue *q);

/**
 * blk_plug_policy_unregister - forget the mode of a disk that is going away
 * @q: queue whose sysfs attributes are gone already
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock(), but for a queue
 *	on "always".  The queue may be draining, since its disk is dead.
 */
void blk_plug_policy_unregister(struct request_queue *q);

bool __blk_plug_policy_may_merge(struct request_queue *q, struct bio *bio);
bool __blk_plug_policy_holds(struct blk_plug *plug, struct request *rq);
bool __blk_plug_policy_add(struct blk_plug *plug, struct request *rq);
bool blk_plug_policy_fills(struct blk_plug *plug, const struct request *rq);

/* queue/plug_policy and the hctx's debugfs file, in blk-plug-sysfs.c */
ssize_t blk_plug_policy_show(struct gendisk *disk, char *page);
ssize_t blk_plug_policy_store(struct gendisk *disk, const char *page,
			      size_t count);
int blk_plug_policy_debugfs_show(void *data, struct seq_file *m);

void __blk_plug_policy_make_room(struct blk_plug *plug);
void __blk_plug_policy_many_merged(struct blk_plug *plug);
void __blk_plug_policy_flushed(struct blk_plug *plug);

/*
 * The gates test this first, and follow no pointer before: what they load for
 * the next test would be loaded on "always", too.
 */
static inline bool blk_plug_policy_on(void)
{
	return static_branch_unlikely(&blk_plug_policy_key);
}

/**
 * blk_plug_policy_get - the mode that a queue is set to
 * @q: any request queue
 *
 * Context: Any.  The answer may be out of date at once.
 * Return: the mode; %BLK_PLUG_POLICY_ALWAYS in the middle of a switch, when no
 *	flag is set or two are.
 */
static inline enum blk_plug_policy_mode
blk_plug_policy_get(const struct request_queue *q)
{
	switch (READ_ONCE(q->queue_flags) & BLK_PLUG_POLICY_FLAGS) {
	case BIT(QUEUE_FLAG_PLUG_NEVER):
		return BLK_PLUG_POLICY_NEVER;
	case BIT(QUEUE_FLAG_PLUG_SEQ_SMALL):
		return BLK_PLUG_POLICY_SEQ_SMALL;
	case BIT(QUEUE_FLAG_PLUG_ADAPTIVE):
		return BLK_PLUG_POLICY_ADAPTIVE;
	default:
		return BLK_PLUG_POLICY_ALWAYS;
	}
}

static inline bool blk_plug_policy_active(const struct request_queue *q)
{
	return READ_ONCE(q->queue_flags) & BLK_PLUG_POLICY_FLAGS;
}

/**
 * blk_plug_policy_start - prepare a new plug
 * @plug: plug that is being started
 */
static inline void blk_plug_policy_start(struct blk_plug *plug)
{
	plug->nr_merged = 0;
	plug->policy = 0;
}

/* Do the sectors from @from to @to begin or end where @prev ends or begins? */
static inline bool blk_plug_policy_adjoins(const struct request *prev,
					   sector_t from, sector_t to)
{
	return blk_rq_pos(prev) + blk_rq_sectors(prev) == from ||
		blk_rq_pos(prev) == to;
}

/*
 * Under "adaptive": is a lookup for a merge not worth its cost?  It is not in a
 * plug that has been filled while no merges were found.  The answer comes
 * without a call, since it is what most bios get.
 */
static inline bool blk_plug_policy_unrelated(const struct blk_plug *plug,
					     const struct request_queue *q,
					     const struct bio *bio)
{
	if (!plug || !(plug->policy & BLK_PLUG_POLICY_RANDOM) ||
	    (bio_op(bio) != REQ_OP_READ && bio_op(bio) != REQ_OP_WRITE))
		return false;
	/* what the plug holds, or has held, may be another queue's */
	if (READ_ONCE(q->elevator))
		return false;
	return plug->rq_count ||
		blk_plug_policy_fallback(q) == BLK_PLUG_POLICY_AS_SET;
}

/**
 * blk_plug_policy_mix - a plug gets a request of a second queue
 * @plug: the submitter's plug
 *
 * From now on it is filled, and merged into, as under "always".
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
 * Counts it, for "adaptive", until the plug is flushed.
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
 * blk_plug_policy_make_room - a request comes that has joined none
 * @plug: the submitter's plug
 *
 * Under "adaptive", while merges are found, a full group waits for that, since
 * its newest request might have been joined.  Then it is sent out.
 *
 * Context: Task context of the submitter.
 */
static inline void blk_plug_policy_make_room(struct blk_plug *plug)
{
	/* the other bits are larger than what any plug holds */
	if (blk_plug_policy_on() && plug->policy &&
	    plug->rq_count >= plug->policy)
		__blk_plug_policy_make_room(plug);
}

/**
 * blk_plug_policy_flushed - a plug sends out what it holds
 * @plug: plug, which still holds it
 *
 * Counts it for the hardware queues that are on "adaptive".  What comes next
 * begins with a queue of its own.
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
 * Return: true if @rq was added, and must not be touched any more because it
 *	may have been sent out; false if that is left to the caller.
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

static inline void blk_plug_policy_register(struct request_queue *q)
{
}

static inline void blk_plug_policy_unregister(struct request_queue *q)
{
}

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
#endif /* BLK_PLUG_POLICY_H */
