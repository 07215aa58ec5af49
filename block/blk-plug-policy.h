/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug policy: how long a plug holds requests, and which bios look for a merge
 * in it, chosen per queue.  Makes the choice; blk-plug-hold.[ch] acts on it.
 */
#ifndef BLK_PLUG_POLICY_H
#define BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/jump_label.h>

struct seq_file;

/**
 * enum blk_plug_policy_mode - the values of queue/plug_policy
 * @BLK_PLUG_POLICY_ALWAYS:	hold and merge as without a policy
 * @BLK_PLUG_POLICY_NEVER:	no merge in the plug, no hold
 * @BLK_PLUG_POLICY_SEQ_SMALL:	merge and hold small sequential requests only,
 *				send the others out in groups
 * @BLK_PLUG_POLICY_ADAPTIVE:	merge while merges are found, send out groups of
 *				the size that has proved best on the hardware
 *				queue
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
 * @BLK_PLUG_POLICY_ELEVATOR:	the elevator merges what the plug has held
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
 * Takes effect with the next bio.  Requests that a plug holds by then leave
 * with the next flush.  The queue is not frozen.
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock(), so no
 *	queue may be frozen, and the lock of the elevator must not be held.
 *	For %BLK_PLUG_POLICY_ADAPTIVE, hold q->tag_set->update_nr_hwq_lock.
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
 * Context: Process context, may sleep.  Takes cpus_read_lock(), unless the
 *	queue is on "always".  It may be draining, since its disk is dead.
 */
void blk_plug_policy_unregister(struct request_queue *q);

/* queue/plug_policy* and the hctx's debugfs file, in blk-plug-sysfs.c */
ssize_t blk_plug_policy_show(struct gendisk *disk, char *page);
ssize_t blk_plug_policy_store(struct gendisk *disk, const char *page,
			      size_t count);
ssize_t blk_plug_policy_fallback_show(struct gendisk *disk, char *page);
int blk_plug_policy_debugfs_show(void *data, struct seq_file *m);

/*
 * The gates test this first, before they follow any pointer: while all queues
 * are on "always", nothing is loaded for the tests that come next.
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

#else /* CONFIG_BLK_PLUG_POLICY */

static inline void blk_plug_policy_register(struct request_queue *q)
{
}

static inline void blk_plug_policy_unregister(struct request_queue *q)
{
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_POLICY_H */
