/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug policy: how long a plug holds requests, chosen per queue.  Makes the
 * choice; blk-plug-hold.[ch] acts on it.
 */
#ifndef BLK_PLUG_POLICY_H
#define BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/blk-plug-policy.h>
#include <linux/jump_label.h>

#ifdef CONFIG_BLK_PLUG_POLICY

/* On while any queue is in a mode other than "always"; counts these queues. */
DECLARE_STATIC_KEY_FALSE(blk_plug_policy_key);

/**
 * blk_plug_policy_set - set the mode of a queue
 * @q: blk-mq queue whose disk is registered
 * @mode: what to set
 *
 * Takes effect when a plug next gets its first request, "never" at once.  The
 * queue is not frozen.
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock(), so no queue may
 *	be frozen, and the lock of the elevator must not be held.
 */
void blk_plug_policy_set(struct request_queue *q,
			 enum blk_plug_policy_mode mode);

/**
 * blk_plug_policy_fallback - why a queue does as under "always" in any mode
 * @q: blk-mq queue
 *
 * Context: Any.
 * Return: the reason in one word; %NULL if it follows its mode.
 */
const char *blk_plug_policy_fallback(const struct request_queue *q);

/**
 * blk_plug_policy_register - give a new disk's queue the configured default
 * @q: any request queue whose disk is being registered
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

/**
 * blk_plug_policy_get - the mode that a queue is set to
 * @q: any request queue
 *
 * Context: Any.
 * Return: the mode, which may be out of date at once.
 */
static inline enum blk_plug_policy_mode
blk_plug_policy_get(const struct request_queue *q)
{
	return READ_ONCE(q->plug_policy);
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
