/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_BLK_PLUG_POLICY_H
#define _LINUX_BLK_PLUG_POLICY_H

#include <linux/types.h>

/**
 * enum blk_plug_policy_mode - the values of queue/plug_policy
 * @BLK_PLUG_POLICY_ALWAYS:	hold requests as without a policy
 * @BLK_PLUG_POLICY_NEVER:	hold none
 * @BLK_PLUG_POLICY_SEQ_SMALL:	hold small sequential requests, send the others
 *				out in groups
 * @BLK_PLUG_POLICY_ADAPTIVE:	send out groups of the size that has proved best
 *				on the hardware queue
 * @BLK_PLUG_POLICY_NR:		number of modes
 */
enum blk_plug_policy_mode {
	BLK_PLUG_POLICY_ALWAYS,
	BLK_PLUG_POLICY_NEVER,
	BLK_PLUG_POLICY_SEQ_SMALL,
	BLK_PLUG_POLICY_ADAPTIVE,
	BLK_PLUG_POLICY_NR,
};

/* More than any plug holds. */
#define BLK_PLUG_POLICY_NO_GROUP	U8_MAX

/**
 * struct blk_plug_policy - what a policy keeps in a plug
 * @group:	requests that the plug sends out together;
 *		%BLK_PLUG_POLICY_NO_GROUP: as many as under "always".  Set by
 *		the first request that an empty plug gets.
 * @nr_sent:	requests sent out since the policy has dropped the plug's
 *		reading of the clock
 * @counts:	all requests are for a queue on "adaptive": count them when they
 *		are sent out
 *
 * Fits into the two bytes of padding that struct blk_plug had.
 */
struct blk_plug_policy {
#ifdef CONFIG_BLK_PLUG_POLICY
	u8 group;
	u8 nr_sent : 7;
	bool counts : 1;
#endif
};

#endif /* _LINUX_BLK_PLUG_POLICY_H */
