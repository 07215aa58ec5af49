// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the plug policy's decisions.  A row is named for what would
 * break if it failed.
 */
#include <kunit/test.h>
#include <linux/blkdev.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "../blk.h"
#include "../blk-mq.h"
#include "../blk-plug-hold.h"
#include "../elevator.h"
#include "blk_plug_hctxs.h"

#define NO_GROUP	BLK_PLUG_POLICY_NO_GROUP

struct parse_case {
	const char *name;
	const char *text;
	int mode;
};

static const struct parse_case parse_cases[] = {
	{ "always", "always", BLK_PLUG_POLICY_ALWAYS },
	{ "never", "never", BLK_PLUG_POLICY_NEVER },
	{ "seq_small", "seq-small", BLK_PLUG_POLICY_SEQ_SMALL },
	{ "adaptive", "adaptive", BLK_PLUG_POLICY_ADAPTIVE },
	{ "adaptive_newline", "adaptive\n", BLK_PLUG_POLICY_ADAPTIVE },
	{ "adaptive_prefix", "adapt", -EINVAL },
	{ "adaptive_and_more", "adaptively", -EINVAL },
	{ "echo_adds_newline", "never\n", BLK_PLUG_POLICY_NEVER },
	{ "empty", "", -EINVAL },
	{ "newline_only", "\n", -EINVAL },
	{ "unknown", "sometimes", -EINVAL },
	{ "prefix_of_a_name", "seq", -EINVAL },
	{ "name_is_a_prefix", "neverever", -EINVAL },
	{ "trailing_space", "never ", -EINVAL },
	{ "leading_space", " never", -EINVAL },
	{ "two_words", "never always", -EINVAL },
	{ "brackets_of_show", "[never]", -EINVAL },
	{ "upper_case", "NEVER", -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(parse, parse_cases, name);

static void blk_plug_policy_test_parse(struct kunit *test)
{
	const struct parse_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, blk_plug_policy_parse(c->text), c->mode);
}

/* The longest text that sysfs can pass must neither match nor be overrun. */
static void blk_plug_policy_test_parse_page(struct kunit *test)
{
	char *page = kunit_kzalloc(test, SZ_4K + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	memset(page, 'n', SZ_4K);
	KUNIT_EXPECT_EQ(test, blk_plug_policy_parse(page), -EINVAL);
}

struct group_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	unsigned int bytes;
	bool sequential;
	unsigned int group;
};

static const struct group_case group_cases[] = {
	{ "always_random_holds", BLK_PLUG_POLICY_ALWAYS, SZ_4K, false,
	  NO_GROUP },
	{ "always_large_holds", BLK_PLUG_POLICY_ALWAYS, SZ_1M, false,
	  NO_GROUP },
	{ "adaptive_has_its_own_groups", BLK_PLUG_POLICY_ADAPTIVE, SZ_4K, false,
	  NO_GROUP },
	{ "never_random", BLK_PLUG_POLICY_NEVER, SZ_4K, false, 1 },
	{ "never_sequential", BLK_PLUG_POLICY_NEVER, SZ_4K, true, 1 },
	{ "never_no_data", BLK_PLUG_POLICY_NEVER, 0, false, 1 },
	{ "seq_small_holds_sequential", BLK_PLUG_POLICY_SEQ_SMALL, SZ_4K, true,
	  NO_GROUP },
	{ "seq_small_holds_below_64k", BLK_PLUG_POLICY_SEQ_SMALL,
	  SZ_64K - SECTOR_SIZE, true, NO_GROUP },
	{ "seq_small_64k_is_large", BLK_PLUG_POLICY_SEQ_SMALL, SZ_64K, true,
	  2 },
	{ "seq_small_random_512", BLK_PLUG_POLICY_SEQ_SMALL, SECTOR_SIZE, false,
	  8 },
	{ "seq_small_random_4k", BLK_PLUG_POLICY_SEQ_SMALL, SZ_4K, false, 8 },
	{ "seq_small_no_data_no_shift", BLK_PLUG_POLICY_SEQ_SMALL, 0, false,
	  8 },
	{ "seq_small_last_full_group", BLK_PLUG_POLICY_SEQ_SMALL, SZ_16K, false,
	  8 },
	{ "seq_small_odd_size_rounds_down", BLK_PLUG_POLICY_SEQ_SMALL,
	  SZ_16K + SECTOR_SIZE, false, 4 },
	{ "seq_small_32k", BLK_PLUG_POLICY_SEQ_SMALL, SZ_32K, false, 4 },
	{ "seq_small_64k_random", BLK_PLUG_POLICY_SEQ_SMALL, SZ_64K, false, 2 },
	{ "seq_small_never_zero", BLK_PLUG_POLICY_SEQ_SMALL,
	  SZ_128K - SECTOR_SIZE, false, 1 },
	{ "seq_small_128k", BLK_PLUG_POLICY_SEQ_SMALL, SZ_128K, false, 1 },
	{ "seq_small_huge", BLK_PLUG_POLICY_SEQ_SMALL, UINT_MAX, false, 1 },
};

KUNIT_ARRAY_PARAM_DESC(group, group_cases, name);

static void blk_plug_policy_test_group_size(struct kunit *test)
{
	const struct group_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test,
			blk_plug_policy_group_size(c->mode, c->bytes,
						   c->sequential),
			c->group);
}

enum { REQUESTS = 64 };

/*
 * A queue with a hardware queue of each type, another queue, and a plug that
 * holds one 4K read at sector 1000.  Only what the decisions look at is set.
 */
struct fake {
	struct request_queue q, other_q;
	struct blk_mq_hw_ctx hctx[HCTX_MAX_TYPES], other_hctx;
	struct blk_mq_hw_ctx *hctxs[HCTX_MAX_TYPES];
	struct blk_mq_tag_set set;
	struct blk_mq_ops ops;
	struct elevator_queue elevator;
	struct request rq[REQUESTS], *held;
	struct bio bio;
	struct blk_plug plug;
	unsigned int submitted;
	unsigned int sent;		/* requests that left together */
	bool disorder;
};

enum { HELD_SECTOR = 1000, HELD_END = HELD_SECTOR + SZ_4K / SECTOR_SIZE };

/* The driver. */
static void fake_queue_rqs(struct rq_list *list)
{
	struct fake *f = rq_list_peek(list)->q->queuedata;
	struct request *rq, *prev = NULL;

	f->sent = 0;
	while ((rq = rq_list_pop(list))) {
		if (prev && blk_rq_pos(prev) >= blk_rq_pos(rq))
			f->disorder = true;
		prev = rq;
		f->sent++;
	}
}

static void fake_fill(struct fake *f, struct request *rq, sector_t sector,
		      unsigned int bytes)
{
	rq->q = &f->q;
	rq->mq_hctx = &f->hctx[0];
	rq->cmd_flags = REQ_OP_READ;
	rq->__sector = sector;
	rq->__data_len = bytes;
}

static void fake_exit(void *data)
{
	struct fake *f = data;
	int i;

	for (i = 0; i < HCTX_MAX_TYPES; i++)
		blk_plug_loop_free_hctx(&f->hctx[i]);
	blk_plug_loop_free(&f->q);
	blk_plug_test_free_hctxs(&f->q);
}

static void fake_hctx(struct kunit *test, struct fake *f, int i)
{
	struct blk_mq_hw_ctx *hctx = &f->hctx[i];

	f->hctxs[i] = hctx;
	hctx->queue = &f->q;
	hctx->type = i;
	hctx->numa_node = NUMA_NO_NODE;
}

static void fake_queue(struct kunit *test, struct fake *f)
{
	int i;

	f->ops.queue_rqs = fake_queue_rqs;
	f->q.mq_ops = &f->ops;
	f->q.tag_set = &f->set;
	f->q.queuedata = f;
	f->other_q = f->q;
	f->other_hctx.queue = &f->other_q;
	for (i = 0; i < HCTX_MAX_TYPES; i++)
		fake_hctx(test, f, i);
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_test_set_hctxs(&f->q, f->hctxs,
						HCTX_MAX_TYPES));
}

static struct fake *fake_alloc(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, fake_exit, f));
	fake_queue(test, f);
	KUNIT_ASSERT_EQ(test, 0, blk_plug_loop_alloc(&f->q));
	f->held = &f->rq[0];
	fake_fill(f, f->held, HELD_SECTOR, SZ_4K);
	rq_list_add_tail(&f->plug.mq_list, f->held);
	f->plug.rq_count = 1;
	return f;
}

static void fake_set(struct fake *f, enum blk_plug_policy_mode mode,
		     bool elevator, bool blocking, bool no_queue_rqs)
{
	static const unsigned long flags[BLK_PLUG_POLICY_NR] = {
		[BLK_PLUG_POLICY_NEVER]		= BIT(QUEUE_FLAG_PLUG_NEVER),
		[BLK_PLUG_POLICY_SEQ_SMALL] = BIT(QUEUE_FLAG_PLUG_SEQ_SMALL),
		[BLK_PLUG_POLICY_ADAPTIVE] = BIT(QUEUE_FLAG_PLUG_ADAPTIVE),
	};

	f->q.queue_flags = flags[mode];
	f->q.elevator = elevator ? &f->elevator : NULL;
	f->set.flags = blocking ? BLK_MQ_F_BLOCKING : 0;
	f->ops.queue_rqs = no_queue_rqs ? NULL : fake_queue_rqs;
}

static struct fake *fake_adaptive(struct kunit *test)
{
	struct fake *f = fake_alloc(test);

	fake_set(f, BLK_PLUG_POLICY_ADAPTIVE, false, false, false);
	return f;
}

static void empty_plug(struct fake *f)
{
	rq_list_init(&f->plug.mq_list);
	f->plug.rq_count = 0;
}

/* Pretend that the controller of the hardware queue has decided this. */
static void decide(struct fake *f, unsigned int decision)
{
	f->hctx[0].plug_loop->resets = f->q.plug_policy_resets;
	f->hctx[0].plug_loop->decision = decision;
}

/* One plug in 32 is filled as if merges were found: set if the next is. */
static void probe(struct fake *f, bool next)
{
	enum hctx_type type = f->hctx[0].type;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		per_cpu_ptr(f->q.plug_loop_cpu, cpu)[type].flushes = !next;
}

/* Turn all static keys on, until keys_off(). */
static void keys_on(void)
{
	static_branch_inc(&blk_plug_policy_key);
	static_branch_inc(&blk_plug_loop_key);
}

static void keys_off(void)
{
	static_branch_dec(&blk_plug_loop_key);
	static_branch_dec(&blk_plug_policy_key);
}

struct merge_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	sector_t sector;
	unsigned int bytes;
	bool elevator, blocking, no_queue_rqs, other_queue, multiple_queues;
	bool empty, no_plug;
	enum req_op op;
	u8 policy;		/* how the plug is filled */
	u8 held;		/* 0: one */
	bool looks;
};

/* "adaptive" in groups of 8: merges were found lately, or were not. */
#define FOUND	8
#define RANDOM	(BLK_PLUG_POLICY_RANDOM | 8)
#define MIXED	(BLK_PLUG_POLICY_MIXED | BLK_PLUG_POLICY_SIZE)
#define ADAPTIVE_4K \
	.mode = BLK_PLUG_POLICY_ADAPTIVE, .bytes = SZ_4K
#define SEQ_SMALL_4K \
	.mode = BLK_PLUG_POLICY_SEQ_SMALL, .bytes = SZ_4K

static const struct merge_case merge_cases[] = {
	{ .name = "always_random", .mode = BLK_PLUG_POLICY_ALWAYS,
	  .sector = 8, .bytes = SZ_4K, .looks = true },
	{ .name = "never_contiguous", .mode = BLK_PLUG_POLICY_NEVER,
	  .sector = HELD_END, .bytes = SZ_4K },
	{ .name = "never_keeps_elevator_merges", .mode = BLK_PLUG_POLICY_NEVER,
	  .sector = 8, .bytes = SZ_4K, .elevator = true, .looks = true },
	{ .name = "never_blocking_keeps_merges", .mode = BLK_PLUG_POLICY_NEVER,
	  .sector = 8, .bytes = SZ_4K, .blocking = true, .looks = true },
	{ .name = "seq_small_contiguous", SEQ_SMALL_4K, .sector = HELD_END,
	  .looks = true },
	{ .name = "seq_small_random", SEQ_SMALL_4K, .sector = 8 },
	{ .name = "seq_small_same_sector", SEQ_SMALL_4K,
	  .sector = HELD_SECTOR },
	{ .name = "seq_small_gap", SEQ_SMALL_4K, .sector = HELD_END + 1 },
	{ .name = "seq_small_front", SEQ_SMALL_4K, .sector = HELD_SECTOR - 8,
	  .looks = true },
	{ .name = "seq_small_gap_in_front", SEQ_SMALL_4K,
	  .sector = HELD_SECTOR - 9 },
	{ .name = "seq_small_overlaps_in_front", SEQ_SMALL_4K,
	  .sector = HELD_SECTOR - 7 },
	{ .name = "seq_small_large_front", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_SECTOR - SZ_64K / SECTOR_SIZE, .bytes = SZ_64K },
	{ .name = "seq_small_below_64k", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_64K - SECTOR_SIZE, .looks = true },
	{ .name = "seq_small_64k_is_large", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_64K },
	{ .name = "seq_small_keeps_elevator_merges", SEQ_SMALL_4K,
	  .sector = 8, .elevator = true, .looks = true },
	{ .name = "seq_small_other_queue_is_newest", SEQ_SMALL_4K,
	  .sector = HELD_END, .other_queue = true },
	{ .name = "seq_small_front_of_another_queue", SEQ_SMALL_4K,
	  .sector = HELD_SECTOR - 8, .other_queue = true },
	{ .name = "seq_small_several_queues_as_always", SEQ_SMALL_4K,
	  .sector = HELD_END, .other_queue = true, .multiple_queues = true,
	  .looks = true },
	{ .name = "seq_small_empty_plug_keeps_other_lookups", SEQ_SMALL_4K,
	  .sector = HELD_END, .empty = true, .looks = true },
	{ .name = "seq_small_large_on_empty_plug",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_64K, .empty = true },
	{ .name = "seq_small_no_plug", SEQ_SMALL_4K, .sector = HELD_END,
	  .no_plug = true, .looks = true },
	{ .name = "seq_small_no_queue_rqs_keeps_merges", SEQ_SMALL_4K,
	  .sector = 8, .no_queue_rqs = true, .looks = true },
	{ .name = "seq_small_discards_merge_apart", SEQ_SMALL_4K, .sector = 8,
	  .op = REQ_OP_DISCARD, .looks = true },
	{ .name = "adaptive_no_plug", ADAPTIVE_4K, .sector = 8,
	  .no_plug = true, .looks = true },
	{ .name = "adaptive_plug_has_only_begun", ADAPTIVE_4K, .sector = 8,
	  .empty = true, .looks = true },
	{ .name = "adaptive_fallback_looks_as_always", ADAPTIVE_4K,
	  .sector = 8, .held = 2, .looks = true },
	{ .name = "adaptive_found_looks_everywhere", ADAPTIVE_4K, .sector = 8,
	  .policy = FOUND, .held = 3, .looks = true },
	{ .name = "adaptive_full_group_may_still_be_joined", ADAPTIVE_4K,
	  .sector = HELD_END, .policy = FOUND, .held = 8, .looks = true },
	{ .name = "adaptive_found_large", .mode = BLK_PLUG_POLICY_ADAPTIVE,
	  .sector = 8, .bytes = SZ_1M, .policy = FOUND, .held = 3,
	  .looks = true },
	{ .name = "adaptive_several_queues_as_always", ADAPTIVE_4K,
	  .sector = 8, .policy = MIXED, .held = 9, .other_queue = true,
	  .multiple_queues = true, .looks = true },
	{ .name = "adaptive_random_on_empty_plug", ADAPTIVE_4K,
	  .sector = HELD_END, .policy = BLK_PLUG_POLICY_RANDOM,
	  .empty = true },
	{ .name = "adaptive_empty_plug_keeps_elevator_merges", ADAPTIVE_4K,
	  .sector = 8, .policy = BLK_PLUG_POLICY_RANDOM, .empty = true,
	  .elevator = true, .looks = true },
	{ .name = "adaptive_empty_plug_blocking", ADAPTIVE_4K, .sector = 8,
	  .policy = BLK_PLUG_POLICY_RANDOM, .empty = true, .blocking = true,
	  .looks = true },
	{ .name = "adaptive_empty_plug_no_queue_rqs", ADAPTIVE_4K, .sector = 8,
	  .policy = BLK_PLUG_POLICY_RANDOM, .empty = true,
	  .no_queue_rqs = true, .looks = true },
	{ .name = "adaptive_random_second", ADAPTIVE_4K, .sector = HELD_END,
	  .policy = RANDOM },
	{ .name = "adaptive_random_third", ADAPTIVE_4K, .sector = HELD_END,
	  .policy = RANDOM, .held = 2 },
	{ .name = "adaptive_random_third_write", ADAPTIVE_4K,
	  .sector = HELD_END, .policy = RANDOM, .held = 2,
	  .op = REQ_OP_WRITE },
	{ .name = "adaptive_random_last", ADAPTIVE_4K, .sector = HELD_END,
	  .policy = RANDOM, .held = 7 },
	{ .name = "adaptive_random_of_another_queue_keeps_elevator_merges",
	  ADAPTIVE_4K, .sector = HELD_END, .policy = RANDOM, .held = 2,
	  .other_queue = true, .elevator = true, .looks = true },
	{ .name = "adaptive_discards_merge_apart", ADAPTIVE_4K, .sector = 8,
	  .policy = RANDOM, .held = 2, .op = REQ_OP_DISCARD, .looks = true },
	{ .name = "adaptive_zone_appends_merge_apart", ADAPTIVE_4K,
	  .sector = 8, .policy = RANDOM, .held = 2,
	  .op = REQ_OP_ZONE_APPEND, .looks = true },
	{ .name = "adaptive_discard_on_empty_plug", ADAPTIVE_4K, .sector = 8,
	  .policy = BLK_PLUG_POLICY_RANDOM, .empty = true,
	  .op = REQ_OP_DISCARD, .looks = true },
};

KUNIT_ARRAY_PARAM_DESC(merge, merge_cases, name);

static void fake_merge(struct fake *f, const struct merge_case *c)
{
	fake_set(f, c->mode, c->elevator, c->blocking, c->no_queue_rqs);
	if (c->other_queue)
		f->held->q = &f->other_q;
	f->plug.multiple_queues = c->multiple_queues;
	f->plug.rq_count = c->empty ? 0 : c->held ?: 1;
	f->plug.policy = c->policy;
	f->bio.bi_opf = (__force blk_opf_t)c->op;
	f->bio.bi_iter.bi_sector = c->sector;
	f->bio.bi_iter.bi_size = c->bytes;
}

static void blk_plug_policy_test_merge(struct kunit *test)
{
	const struct merge_case *c = test->param_value;
	struct blk_plug *outer = current->plug;
	struct fake *f = fake_alloc(test);
	struct blk_plug *plug = c->no_plug ? NULL : &f->plug;
	bool looks;

	fake_merge(f, c);
	keys_on();
	/* nothing in between may sleep: that would flush the fake plug */
	preempt_disable();
	current->plug = plug;
	looks = blk_plug_policy_may_merge(&f->q, plug, &f->bio);
	current->plug = outer;
	preempt_enable();
	keys_off();

	KUNIT_EXPECT_EQ(test, looks, c->looks);
}

struct fill_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	unsigned int held;
	sector_t sector;
	unsigned int bytes;
	enum req_op op;
	bool elevator, blocking, no_queue_rqs, nomerges, multiple_queues;
	bool other_elevator;	/* of another queue in the plug */
	u8 policy;		/* how the plug is filled */
	bool fills;
};

#define SEQ_SMALL_8TH \
	.mode = BLK_PLUG_POLICY_SEQ_SMALL, .held = 7, .bytes = SZ_4K
#define ADAPTIVE_8TH \
	.mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 7, .bytes = SZ_4K, \
	.policy = RANDOM

static const struct fill_case fill_cases[] = {
	{ .name = "always_does_not_group", .mode = BLK_PLUG_POLICY_ALWAYS,
	  .held = 31, .sector = 8, .bytes = SZ_4K },
	{ .name = "never_passthrough_is_a_group",
	  .mode = BLK_PLUG_POLICY_NEVER, .bytes = SZ_4K, .op = REQ_OP_DRV_IN,
	  .fills = true },
	{ .name = "never_elevator_holds", .mode = BLK_PLUG_POLICY_NEVER,
	  .bytes = SZ_4K, .elevator = true },
	{ .name = "seq_small_8th", SEQ_SMALL_8TH, .sector = 8, .fills = true },
	{ .name = "seq_small_7th", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .held = 6, .sector = 8, .bytes = SZ_4K },
	{ .name = "seq_small_held_before_the_switch",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL, .held = 20, .sector = 8,
	  .bytes = SZ_4K, .fills = true },
	{ .name = "seq_small_first_large", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = 8, .bytes = SZ_128K, .fills = true },
	{ .name = "seq_small_contiguous_holds", SEQ_SMALL_8TH,
	  .sector = HELD_END },
	{ .name = "seq_small_descending_holds", SEQ_SMALL_8TH,
	  .sector = HELD_SECTOR - 8 },
	{ .name = "seq_small_descending_with_a_gap", SEQ_SMALL_8TH,
	  .sector = HELD_SECTOR - 9, .fills = true },
	{ .name = "seq_small_same_place_again", SEQ_SMALL_8TH,
	  .sector = HELD_SECTOR, .fills = true },
	{ .name = "seq_small_nomerges_wins", SEQ_SMALL_8TH, .sector = HELD_END,
	  .nomerges = true, .fills = true },
	{ .name = "seq_small_write_after_read_is_no_sequence", SEQ_SMALL_8TH,
	  .sector = HELD_END, .op = REQ_OP_WRITE, .fills = true },
	{ .name = "seq_small_passthrough", SEQ_SMALL_8TH,
	  .op = REQ_OP_DRV_IN, .fills = true },
	{ .name = "seq_small_discard_holds", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .bytes = SZ_1G, .op = REQ_OP_DISCARD },
	{ .name = "seq_small_elevator_holds", SEQ_SMALL_8TH, .elevator = true },
	{ .name = "seq_small_blocking_holds", SEQ_SMALL_8TH, .blocking = true },
	{ .name = "seq_small_no_queue_rqs_holds", SEQ_SMALL_8TH,
	  .no_queue_rqs = true },
	{ .name = "seq_small_several_queues_hold", SEQ_SMALL_8TH,
	  .multiple_queues = true },
	{ .name = "adaptive_8th", ADAPTIVE_8TH, .sector = 8, .fills = true },
	{ .name = "adaptive_7th", .mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 6,
	  .sector = 8, .bytes = SZ_4K, .policy = RANDOM },
	{ .name = "adaptive_more_than_a_group",
	  .mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 20, .sector = 8,
	  .bytes = SZ_4K, .policy = RANDOM, .fills = true },
	{ .name = "adaptive_size_does_not_count",
	  .mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 1, .sector = 8,
	  .bytes = UINT_MAX & ~(SECTOR_SIZE - 1), .policy = RANDOM },
	{ .name = "adaptive_place_does_not_count", ADAPTIVE_8TH,
	  .sector = HELD_END, .fills = true },
	{ .name = "adaptive_found_waits_for_the_next",
	  .mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 7, .sector = 8,
	  .bytes = SZ_4K, .policy = FOUND },
	{ .name = "adaptive_not_bound_holds",
	  .mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 7, .sector = 8,
	  .bytes = SZ_4K },
	{ .name = "adaptive_passthrough", ADAPTIVE_8TH, .op = REQ_OP_DRV_IN,
	  .fills = true },
	{ .name = "adaptive_discard_holds", ADAPTIVE_8TH,
	  .op = REQ_OP_DISCARD },
	{ .name = "adaptive_elevator_holds", ADAPTIVE_8TH, .elevator = true },
	{ .name = "adaptive_blocking_holds", ADAPTIVE_8TH, .blocking = true },
	{ .name = "adaptive_no_queue_rqs_holds", ADAPTIVE_8TH,
	  .no_queue_rqs = true },
	{ .name = "adaptive_several_queues_hold", ADAPTIVE_8TH,
	  .multiple_queues = true },
	{ .name = "adaptive_other_elevator_holds", ADAPTIVE_8TH,
	  .other_elevator = true },
};

KUNIT_ARRAY_PARAM_DESC(fill, fill_cases, name);

static void blk_plug_policy_test_fills(struct kunit *test)
{
	const struct fill_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	fake_set(f, c->mode, c->elevator, c->blocking, c->no_queue_rqs);
	if (c->nomerges)
		f->q.queue_flags |= BIT(QUEUE_FLAG_NOMERGES);
	f->plug.rq_count = c->held;
	f->plug.policy = c->policy;
	f->plug.multiple_queues = c->multiple_queues;
	f->plug.has_elevator = c->other_elevator;
	fake_fill(f, &f->rq[1], c->sector, c->bytes);
	f->rq[1].cmd_flags = (__force blk_opf_t)c->op;

	KUNIT_EXPECT_EQ(test, blk_plug_policy_fills(&f->plug, &f->rq[1]),
			c->fills);
}

struct room_case {
	const char *name;
	u8 policy;
	unsigned int held;
	bool sends;
};

static const struct room_case room_cases[] = {
	{ "empty", FOUND, 0 },
	{ "not_full", FOUND, 7 },
	{ "full", FOUND, 8, .sends = true },
	{ "more_than_full", FOUND, 9, .sends = true },
	{ "group_of_one", 1, 1, .sends = true },
	{ "as_always", 0, 31 },
	{ "plug_knows_when_it_is_full", BLK_PLUG_POLICY_SIZE, 32 },
	{ "random_has_left_when_full", RANDOM, 8 },
	{ "left_from_the_queue_before", BLK_PLUG_POLICY_RANDOM, 32 },
	{ "several_queues", MIXED, 64 },
};

KUNIT_ARRAY_PARAM_DESC(room, room_cases, name);

/* A full group waits for a request that has joined none. */
static void blk_plug_policy_test_make_room(struct kunit *test)
{
	const struct room_case *c = test->param_value;
	struct fake *f = fake_adaptive(test);

	f->plug.policy = c->policy;
	f->plug.rq_count = c->held;
	keys_on();
	blk_plug_policy_make_room(&f->plug);
	keys_off();
	KUNIT_EXPECT_EQ(test, f->sent, c->sends ? 1 : 0);
	KUNIT_EXPECT_EQ(test, f->plug.rq_count, c->sends ? 0 : c->held);
	KUNIT_EXPECT_EQ(test, f->plug.policy, c->sends ? 0 : c->policy);
	KUNIT_EXPECT_EQ(test, rq_list_empty(&f->plug.mq_list), c->sends);
}

/* Add the next request as blk_add_rq_to_plug() does. */
static void submit(struct fake *f)
{
	struct request *rq = &f->rq[f->submitted % REQUESTS];

	fake_fill(f, rq, 100 * ++f->submitted, SZ_4K);
	blk_plug_policy_make_room(&f->plug);
	if (blk_plug_policy_add(&f->plug, rq))
		return;
	rq_list_add_tail(&f->plug.mq_list, rq);
	f->plug.rq_count++;
}

/* Requests until the policy sends some; 0 if it leaves all held. */
static unsigned int submit_until_sent(struct fake *f)
{
	unsigned int nr;

	f->sent = 0;
	for (nr = 1; nr <= BLK_MAX_REQUEST_COUNT; nr++) {
		submit(f);
		if (f->sent)
			return nr;
	}
	return 0;
}

struct stream_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	unsigned int decision;
	unsigned int group;		/* 0: the plug may hold all */
	unsigned int waits;		/* a full group waits for one more */
};

static const struct stream_case stream_cases[] = {
	{ "always", BLK_PLUG_POLICY_ALWAYS, 1, 0 },
	{ "seq_small", BLK_PLUG_POLICY_SEQ_SMALL, 1, 8 },
	{ "one_by_one", BLK_PLUG_POLICY_ADAPTIVE, BLK_PLUG_LOOP_RANDOM | 1,
	  1 },
	{ "one_that_may_be_joined", BLK_PLUG_POLICY_ADAPTIVE, 1, 1, 1 },
	{ "two", BLK_PLUG_POLICY_ADAPTIVE, BLK_PLUG_LOOP_RANDOM | 2, 2 },
	{ "pinned_to_what_is_no_power_of_two", BLK_PLUG_POLICY_ADAPTIVE,
	  BLK_PLUG_LOOP_RANDOM | 5, 5 },
	{ "eight", BLK_PLUG_POLICY_ADAPTIVE, BLK_PLUG_LOOP_RANDOM | 8, 8 },
	{ "eight_that_may_be_joined", BLK_PLUG_POLICY_ADAPTIVE, 8, 8, 1 },
	{ "almost_a_plug", BLK_PLUG_POLICY_ADAPTIVE, BLK_PLUG_LOOP_RANDOM | 31,
	  31 },
	{ "almost_a_plug_that_may_be_joined", BLK_PLUG_POLICY_ADAPTIVE, 31,
	  31, 1 },
	{ "plug_knows_when_it_is_full", BLK_PLUG_POLICY_ADAPTIVE,
	  BLK_PLUG_LOOP_RANDOM | 32, 0 },
	{ "plug_that_may_be_joined", BLK_PLUG_POLICY_ADAPTIVE, 32, 0 },
};

KUNIT_ARRAY_PARAM_DESC(stream, stream_cases, name);

/* Random requests, from an empty plug to the second group. */
static void blk_plug_policy_test_stream(struct kunit *test)
{
	const struct stream_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	fake_set(f, c->mode, false, false, false);
	decide(f, c->decision);
	probe(f, false);
	empty_plug(f);
	keys_on();
	KUNIT_EXPECT_EQ(test, submit_until_sent(f), c->group + c->waits);
	if (c->group) {
		KUNIT_EXPECT_EQ(test, f->sent, c->group);
		KUNIT_EXPECT_EQ(test, f->plug.rq_count, c->waits);
		KUNIT_EXPECT_EQ(test, submit_until_sent(f), c->group);
		KUNIT_EXPECT_EQ(test, f->sent, c->group);
	}
	keys_off();
	KUNIT_EXPECT_FALSE(test, f->disorder);
}

struct bind_case {
	const char *name;
	unsigned int decision;
	u8 policy;
	bool probe;
};

static const struct bind_case bind_cases[] = {
	{ "one", 1, 1 },
	{ "eight", 8, 8 },
	{ "eight_random", BLK_PLUG_LOOP_RANDOM | 8, RANDOM },
	{ "eight_random_probe", BLK_PLUG_LOOP_RANDOM | 8, 8, true },
	{ "eight_that_merge_anyway", 8, 8, true },
	{ "plug_is_full_first", 32, BLK_PLUG_POLICY_SIZE },
	{ "full_plug_random", BLK_PLUG_LOOP_RANDOM | 32,
	  BLK_PLUG_POLICY_RANDOM | BLK_PLUG_POLICY_SIZE },
};

KUNIT_ARRAY_PARAM_DESC(bind, bind_cases, name);

/* The first request binds the plug, which stays so until it is flushed. */
static void blk_plug_policy_test_bind(struct kunit *test)
{
	const struct bind_case *c = test->param_value;
	struct fake *f = fake_adaptive(test);

	decide(f, c->decision);
	probe(f, c->probe);
	empty_plug(f);
	/* left from what it held before */
	f->plug.policy = BLK_PLUG_POLICY_RANDOM;
	fake_fill(f, &f->rq[1], 8, SZ_4K);
	blk_plug_policy_fills(&f->plug, &f->rq[1]);
	KUNIT_EXPECT_EQ(test, f->plug.policy, c->policy);

	f->plug.rq_count = 1;
	decide(f, 16);
	blk_plug_policy_fills(&f->plug, &f->rq[1]);
	KUNIT_EXPECT_EQ(test, f->plug.policy, c->policy);
	blk_plug_policy_start(&f->plug);
	KUNIT_EXPECT_EQ(test, f->plug.policy, 0);
}

struct unbound_case {
	const char *name;
	bool elevator, blocking, no_queue_rqs, no_loop, held_before;
};

static const struct unbound_case unbound_cases[] = {
	{ "elevator", .elevator = true },
	{ "blocking", .blocking = true },
	{ "no_queue_rqs", .no_queue_rqs = true },
	{ "no_memory", .no_loop = true },
	{ "held_before_the_switch", .held_before = true },
};

KUNIT_ARRAY_PARAM_DESC(unbound, unbound_cases, name);

/* These plugs do as under "always", even if they were bound before. */
static void blk_plug_policy_test_unbound(struct kunit *test)
{
	const struct unbound_case *c = test->param_value;
	struct fake *f = fake_adaptive(test);
	struct blk_plug_loop *loop = f->hctx[0].plug_loop;

	fake_set(f, BLK_PLUG_POLICY_ADAPTIVE, c->elevator, c->blocking,
		 c->no_queue_rqs);
	decide(f, BLK_PLUG_LOOP_RANDOM | 1);
	if (c->no_loop)
		f->hctx[0].plug_loop = NULL;
	if (!c->held_before) {
		empty_plug(f);
		f->plug.policy = BLK_PLUG_POLICY_RANDOM;
	}
	keys_on();
	KUNIT_EXPECT_EQ(test, submit_until_sent(f), 0);
	KUNIT_EXPECT_TRUE(test, blk_plug_policy_may_merge(&f->q, &f->plug,
							  &f->bio));
	keys_off();
	KUNIT_EXPECT_EQ(test, f->plug.policy, 0);
	f->hctx[0].plug_loop = loop;
}

/* The inline gate must not hold back what the call would let go. */
static void blk_plug_policy_test_within(struct kunit *test)
{
	struct fake *f = fake_adaptive(test);
	unsigned int held, group;
	bool within, fills;

	fake_fill(f, &f->rq[1], 8, SZ_4K);
	for (group = 1; group <= BLK_PLUG_POLICY_SIZE; group++) {
		for (held = 1; held < BLK_MAX_REQUEST_COUNT; held++) {
			f->plug.policy = BLK_PLUG_POLICY_RANDOM | group;
			f->plug.rq_count = held;
			within = blk_plug_policy_within(&f->plug);
			fills = blk_plug_policy_fills(&f->plug, &f->rq[1]);
			KUNIT_EXPECT_EQ_MSG(test, within, !fills,
					    "%u held, group %u", held, group);
		}
	}
	/* the first request has yet to bind the plug */
	f->plug.policy = BLK_PLUG_POLICY_RANDOM;
	f->plug.rq_count = 0;
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_within(&f->plug));
}

/* Nor must the gate of "seq-small". */
static void blk_plug_policy_test_may_fill(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int held, bytes;
	bool may, fills;

	fake_set(f, BLK_PLUG_POLICY_SEQ_SMALL, false, false, false);
	for (held = 0; held < BLK_MAX_REQUEST_COUNT; held++) {
		for (bytes = SECTOR_SIZE; bytes <= SZ_256K; bytes += SZ_2K) {
			f->plug.rq_count = held;
			fake_fill(f, &f->rq[1], 8, bytes);
			may = blk_plug_policy_may_fill(&f->plug, &f->rq[1]);
			fills = blk_plug_policy_fills(&f->plug, &f->rq[1]);
			KUNIT_EXPECT_TRUE_MSG(test, may || !fills,
					      "%u held, %u bytes", held,
					      bytes);
		}
	}
}

/* A plug that gets a second queue does as under "always". */
static void blk_plug_policy_test_mix(struct kunit *test)
{
	struct fake *f = fake_adaptive(test);

	f->plug.policy = RANDOM;
	blk_plug_policy_mix(&f->plug);
	/* no policy has ever been on, so there is nothing to count */
	if (!blk_plug_policy_on())
		KUNIT_EXPECT_EQ(test, f->plug.policy, RANDOM);
	keys_on();
	blk_plug_policy_mix(&f->plug);
	KUNIT_EXPECT_EQ(test, f->plug.policy, MIXED);
	f->plug.multiple_queues = true;
	KUNIT_EXPECT_EQ(test, submit_until_sent(f), 0);
	KUNIT_EXPECT_TRUE(test, blk_plug_policy_may_merge(&f->q, &f->plug,
							  &f->bio));
	KUNIT_EXPECT_EQ(test, f->plug.policy, MIXED);
	blk_plug_policy_flushed(&f->plug);
	keys_off();
	KUNIT_EXPECT_EQ(test, f->plug.policy, 0);
}

/* A flush ends this even if no queue is on "adaptive". */
static void blk_plug_policy_test_mix_ends(struct kunit *test)
{
	struct fake *f = fake_alloc(test);

	static_branch_inc(&blk_plug_policy_key);
	blk_plug_policy_mix(&f->plug);
	blk_plug_policy_flushed(&f->plug);
	static_branch_dec(&blk_plug_policy_key);
	KUNIT_EXPECT_EQ(test, f->plug.policy, 0);
}

/* What all CPUs have counted for a hardware queue, added up. */
static struct blk_plug_loop_cpu counted(const struct fake *f,
					enum hctx_type type)
{
	struct blk_plug_loop_cpu sum = {};
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		const struct blk_plug_loop_cpu *c =
			per_cpu_ptr(f->q.plug_loop_cpu, cpu) + type;

		sum.flushes += c->flushes;
		sum.sent += c->sent;
		sum.merged += c->merged;
	}
	return sum;
}

static void expect_counted(struct kunit *test, const struct fake *f,
			   enum hctx_type type, unsigned int flushes,
			   unsigned int sent, unsigned int merged)
{
	struct blk_plug_loop_cpu c = counted(f, type);

	KUNIT_EXPECT_EQ_MSG(test, c.flushes, flushes, "type %u", type);
	KUNIT_EXPECT_EQ_MSG(test, c.sent, sent, "type %u", type);
	KUNIT_EXPECT_EQ_MSG(test, c.merged, merged, "type %u", type);
}

struct flushed_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	u8 policy, merged;
	unsigned int held;
	unsigned int flushes, sent;
	u8 after;		/* what the plug's policy becomes */
};

static const struct flushed_case flushed_cases[] = {
	{ "group", BLK_PLUG_POLICY_ADAPTIVE, FOUND, 0, 8, 1, 8, 0 },
	{ "with_merged", BLK_PLUG_POLICY_ADAPTIVE, FOUND, 3, 5, 1, 8, 0 },
	{ "random_is_remembered", BLK_PLUG_POLICY_ADAPTIVE, RANDOM, 0, 8,
	  1, 8, BLK_PLUG_POLICY_RANDOM },
	{ "as_much_as_always", BLK_PLUG_POLICY_ADAPTIVE, BLK_PLUG_POLICY_SIZE,
	  0, 32, 1, 32, 0 },
	{ "not_bound_is_not_counted", BLK_PLUG_POLICY_ADAPTIVE, 0, 3, 5,
	  0, 0, 0 },
	{ "left_from_the_queue_before", BLK_PLUG_POLICY_SEQ_SMALL,
	  BLK_PLUG_POLICY_RANDOM, 0, 5, 0, 0, BLK_PLUG_POLICY_RANDOM },
	{ "mode_changed_meanwhile", BLK_PLUG_POLICY_ALWAYS, FOUND, 3, 5,
	  0, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(flushed, flushed_cases, name);

/* A flush is counted once, and lets the next request bind the plug. */
static void blk_plug_policy_test_flushed(struct kunit *test)
{
	const struct flushed_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	fake_set(f, c->mode, false, false, false);
	f->plug.policy = c->policy;
	f->plug.nr_merged = c->merged;
	f->plug.rq_count = c->held;
	keys_on();
	blk_plug_policy_flushed(&f->plug);
	keys_off();
	expect_counted(test, f, 0, c->flushes, c->sent,
		       c->flushes ? c->merged : 0);
	KUNIT_EXPECT_EQ(test, f->plug.nr_merged, 0);
	KUNIT_EXPECT_EQ(test, f->plug.policy, c->after);
}

struct mixed_case {
	const char *name;
	/*
	 * a letter per request: A, B, C by hardware queue, X for another queue
	 */
	const char *held;
	unsigned int merged;
	bool elevator;
	struct {
		unsigned int flushes, sent, merged;
	} counts[HCTX_MAX_TYPES];
};

static const struct mixed_case mixed_cases[] = {
	{ "one_after_the_other", "AAAB",
	  .counts = { { 1, 3 }, { 1, 1 } } },
	{ "two_that_alternate_flush_once", "ABABABAB",
	  .counts = { { 1, 4 }, { 1, 4 } } },
	{ "three", "AABBBC", .counts = { { 1, 2 }, { 1, 3 }, { 1, 1 } } },
	{ "three_that_alternate_flush_once", "CABACCAC",
	  .counts = { { 1, 3 }, { 1, 1 }, { 1, 4 } } },
	{ "first_may_be_any", "CAC", .counts = { { 1, 1 }, {}, { 1, 2 } } },
	{ "only_adaptive_ones", "XAXBX", .counts = { { 1, 1 }, { 1, 1 } } },
	{ "none_is_adaptive", "XX" },
	{ "elevator_has_what_the_plug_held", "AAB", .elevator = true },
	{ "merged_are_the_newest_ones", "AAB", .merged = 5,
	  .counts = { { 1, 2 }, { 1, 6, 5 } } },
	{ "merged_into_the_first", "ABA", .merged = 5,
	  .counts = { { 1, 7, 5 }, { 1, 1 } } },
};

KUNIT_ARRAY_PARAM_DESC(mixed, mixed_cases, name);

static void fake_hold(struct fake *f, char queue)
{
	struct request *rq = &f->rq[f->plug.rq_count++];

	fake_fill(f, rq, 8, SZ_4K);
	if (queue == 'X') {
		rq->q = &f->other_q;
		rq->mq_hctx = &f->other_hctx;
	} else {
		rq->mq_hctx = &f->hctx[queue - 'A'];
	}
	rq_list_add_tail(&f->plug.mq_list, rq);
}

/* A hardware queue must not miss a flush because queues shared the plug. */
static void blk_plug_policy_test_mixed(struct kunit *test)
{
	const struct mixed_case *c = test->param_value;
	struct fake *f = fake_adaptive(test);
	const char *queue;
	int i;

	f->q.elevator = c->elevator ? &f->elevator : NULL;
	empty_plug(f);
	for (queue = c->held; *queue; queue++)
		fake_hold(f, *queue);
	f->plug.policy = MIXED;
	f->plug.nr_merged = c->merged;
	keys_on();
	blk_plug_policy_flushed(&f->plug);
	keys_off();
	for (i = 0; i < HCTX_MAX_TYPES; i++)
		expect_counted(test, f, i, c->counts[i].flushes,
			       c->counts[i].sent, c->counts[i].merged);
	KUNIT_EXPECT_EQ(test, f->plug.policy, 0);
	KUNIT_EXPECT_EQ(test, f->plug.nr_merged, 0);
}

struct merged_case {
	const char *name;
	u8 policy;
	bool empty;
	unsigned int merges;
	unsigned int in_plug, counted;
};

static const struct merged_case merged_cases[] = {
	{ "one", FOUND, .merges = 1, .in_plug = 1 },
	{ "as_many_as_fit", FOUND, .merges = 254, .in_plug = 254 },
	{ "one_more", FOUND, .merges = 255, .counted = 255 },
	{ "goes_on", FOUND, .merges = 256, .in_plug = 1, .counted = 255 },
	{ "twice_as_many", FOUND, .merges = 510, .counted = 510 },
	{ "several_queues", MIXED, .merges = 300, .in_plug = 45,
	  .counted = 255 },
	{ "not_bound", 0, .merges = 300 },
	{ "joined_what_a_plug_does_not_hold", BLK_PLUG_POLICY_RANDOM,
	  .empty = true, .merges = 300, .in_plug = 45 },
};

KUNIT_ARRAY_PARAM_DESC(merged, merged_cases, name);

/* A plug may collect more merges than its counter can hold. */
static void blk_plug_policy_test_merged(struct kunit *test)
{
	const struct merged_case *c = test->param_value;
	struct fake *f = fake_adaptive(test);
	unsigned int i;

	if (c->empty)
		empty_plug(f);
	f->plug.policy = c->policy;
	keys_on();
	for (i = 0; i < c->merges; i++)
		blk_plug_policy_merged(&f->plug);
	blk_plug_policy_merged(NULL);
	keys_off();
	KUNIT_EXPECT_EQ(test, f->plug.nr_merged, c->in_plug);
	/* nothing has been flushed yet */
	expect_counted(test, f, 0, 0, c->counted, c->counted);
}

/* Merges that were reported early must not be reported again by the flush. */
static void blk_plug_policy_test_merged_and_flushed(struct kunit *test)
{
	struct fake *f = fake_adaptive(test);
	unsigned int i;

	f->plug.policy = FOUND;
	keys_on();
	for (i = 0; i < 600; i++)
		blk_plug_policy_merged(&f->plug);
	blk_plug_policy_flushed(&f->plug);
	keys_off();
	expect_counted(test, f, 0, 1, 601, 600);
}

/* Does sending out what the plug holds drop its reading of the clock? */
static bool gives_up_clock(struct fake *f)
{
	struct blk_plug *outer = current->plug;
	bool given_up;

	/* nothing in between may sleep: that would flush the fake plug */
	preempt_disable();
	current->plug = &f->plug;
	current->flags |= PF_BLOCK_TS;
	f->plug.cur_ktime = 1;
	if (f->plug.rq_count)
		blk_plug_policy_make_room(&f->plug);
	else
		blk_plug_policy_holds(&f->plug, &f->rq[1]);
	given_up = !f->plug.cur_ktime;
	current->flags &= ~PF_BLOCK_TS;
	current->plug = outer;
	preempt_enable();
	return given_up;
}

/* Does a group of @nr drop the clock reading? */
static bool group_gives_up_clock(struct fake *f, unsigned int nr,
				 unsigned int bytes)
{
	fake_fill(f, f->held, 8, bytes);
	rq_list_init(&f->plug.mq_list);
	rq_list_add_tail(&f->plug.mq_list, f->held);
	f->plug.rq_count = nr;
	f->plug.policy = nr;
	return gives_up_clock(f);
}

/* As often as under "always": once in 32 requests, in groups of any size. */
static void blk_plug_policy_test_clock(struct kunit *test)
{
	struct fake *f = fake_adaptive(test);
	unsigned int nr, group, times;

	keys_on();
	for (nr = 1; nr < BLK_MAX_REQUEST_COUNT; nr++) {
		times = 0;
		for (group = 1; group <= BLK_MAX_REQUEST_COUNT; group++)
			times += group_gives_up_clock(f, nr, SZ_4K);
		KUNIT_EXPECT_EQ_MSG(test, times, nr, "groups of %u", nr);
	}
	/* a large request takes long enough by itself */
	KUNIT_EXPECT_FALSE(test, group_gives_up_clock(f, 1,
						      SZ_128K - SECTOR_SIZE));
	KUNIT_EXPECT_TRUE(test, group_gives_up_clock(f, 1, SZ_128K));
	keys_off();
}

/* Likewise if requests are issued one by one, whatever tags they get. */
static void blk_plug_policy_test_clock_never(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct request *rq = &f->rq[1];
	unsigned int i, times = 0;

	fake_set(f, BLK_PLUG_POLICY_NEVER, false, false, false);
	empty_plug(f);
	keys_on();
	fake_fill(f, rq, 8, SZ_4K);
	for (i = 0; i < 1024; i++) {
		/* the second word of a small map of tags */
		rq->tag = 16 + i % 16;
		times += gives_up_clock(f);
	}
	KUNIT_EXPECT_EQ(test, times, 1024 / BLK_MAX_REQUEST_COUNT);
	fake_fill(f, rq, 8, SZ_128K);
	KUNIT_EXPECT_TRUE(test, gives_up_clock(f));
	keys_off();
}

struct hold_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	bool elevator, blocking, no_queue_rqs, other_queue, multiple_queues;
	bool holds;
	bool sends;		/* what the plug holds */
};

static const struct hold_case hold_cases[] = {
	{ .name = "always", .mode = BLK_PLUG_POLICY_ALWAYS, .other_queue = true,
	  .holds = true },
	{ .name = "seq_small_joins_the_plug",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL, .other_queue = true,
	  .holds = true },
	{ .name = "adaptive_joins_the_plug",
	  .mode = BLK_PLUG_POLICY_ADAPTIVE, .other_queue = true,
	  .holds = true },
	{ .name = "never_sends_what_was_held_before_the_switch",
	  .mode = BLK_PLUG_POLICY_NEVER, .sends = true },
	{ .name = "never_leaves_another_queue_alone",
	  .mode = BLK_PLUG_POLICY_NEVER, .other_queue = true },
	{ .name = "never_must_not_overtake", .mode = BLK_PLUG_POLICY_NEVER,
	  .other_queue = true, .multiple_queues = true, .holds = true },
	{ .name = "never_elevator", .mode = BLK_PLUG_POLICY_NEVER,
	  .other_queue = true, .elevator = true, .holds = true },
	{ .name = "never_blocking", .mode = BLK_PLUG_POLICY_NEVER,
	  .other_queue = true, .blocking = true, .holds = true },
	{ .name = "never_no_queue_rqs", .mode = BLK_PLUG_POLICY_NEVER,
	  .other_queue = true, .no_queue_rqs = true, .holds = true },
};

KUNIT_ARRAY_PARAM_DESC(hold, hold_cases, name);

static void blk_plug_policy_test_holds(struct kunit *test)
{
	const struct hold_case *c = test->param_value;
	struct fake *f = fake_alloc(test);
	bool holds;

	fake_set(f, c->mode, c->elevator, c->blocking, c->no_queue_rqs);
	if (c->other_queue)
		f->held->q = &f->other_q;
	f->plug.multiple_queues = c->multiple_queues;
	fake_fill(f, &f->rq[1], 8, SZ_4K);

	keys_on();
	holds = blk_plug_policy_holds(&f->plug, &f->rq[1]);
	keys_off();
	KUNIT_EXPECT_EQ(test, holds, c->holds);
	KUNIT_EXPECT_EQ(test, f->sent, c->sends ? 1 : 0);
	KUNIT_EXPECT_EQ(test, f->plug.rq_count, c->sends ? 0 : 1);
}

/* In the middle of a switch, two flags may be set, or none: all harmless. */
static void blk_plug_policy_test_half_switched(struct kunit *test)
{
	static const unsigned long both[] = {
		BIT(QUEUE_FLAG_PLUG_NEVER) | BIT(QUEUE_FLAG_PLUG_SEQ_SMALL),
		BIT(QUEUE_FLAG_PLUG_NEVER) | BIT(QUEUE_FLAG_PLUG_ADAPTIVE),
		BIT(QUEUE_FLAG_PLUG_SEQ_SMALL) | BIT(QUEUE_FLAG_PLUG_ADAPTIVE),
		BLK_PLUG_POLICY_FLAGS,
	};
	struct fake *f = fake_alloc(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(both); i++) {
		f->q.queue_flags = both[i];
		KUNIT_EXPECT_EQ_MSG(test, blk_plug_policy_get(&f->q),
				    BLK_PLUG_POLICY_ALWAYS, "flags %lx",
				    both[i]);
	}
	f->q.queue_flags = 0;
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			BLK_PLUG_POLICY_ALWAYS);
}

static int key_count(void)
{
	return static_key_count(&blk_plug_policy_key.key);
}

static int loop_key_count(void)
{
	return static_key_count(&blk_plug_loop_key.key);
}

/* Every switch must be balanced, or a static key stays on for ever. */
static void blk_plug_policy_test_key_balance(struct kunit *test)
{
	int before = key_count(), loops = loop_key_count();
	struct fake *f = fake_alloc(test);
	int from, to;

	for (from = 0; from < BLK_PLUG_POLICY_NR; from++) {
		for (to = 0; to < BLK_PLUG_POLICY_NR; to++) {
			blk_plug_policy_set(&f->q, from);
			KUNIT_EXPECT_EQ(test, blk_plug_policy_set(&f->q, to),
					0);
			KUNIT_EXPECT_EQ(test, (int)blk_plug_policy_get(&f->q),
					to);
			KUNIT_EXPECT_EQ(test, before + !!to, key_count());
			KUNIT_EXPECT_EQ(test, loop_key_count(), loops +
					(to == BLK_PLUG_POLICY_ADAPTIVE));
		}
	}
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ALWAYS);
	KUNIT_EXPECT_EQ(test, before, key_count());
	KUNIT_EXPECT_EQ(test, loops, loop_key_count());
}

/* Setting the mode must forget what was learnt before. */
static void blk_plug_policy_test_set_restarts(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int resets = f->q.plug_policy_resets;

	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ADAPTIVE);
	KUNIT_EXPECT_NE(test, f->q.plug_policy_resets, resets);
	resets = f->q.plug_policy_resets;
	/* but setting the same mode again changes nothing */
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ADAPTIVE);
	KUNIT_EXPECT_EQ(test, f->q.plug_policy_resets, resets);
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ALWAYS);
}

/* A queue may be set to "adaptive" even if that can do nothing for it. */
static void blk_plug_policy_test_set_useless(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->q.mq_ops = &f->ops;
	f->q.tag_set = &f->set;
	KUNIT_EXPECT_EQ(test, 0,
			blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ADAPTIVE));
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			BLK_PLUG_POLICY_ADAPTIVE);
	KUNIT_EXPECT_TRUE(test, !f->q.plug_loop_cpu);
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ALWAYS);
}

/* Memory is allocated before submitters look for it, and is kept. */
static void blk_plug_policy_test_set_allocates(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop;

	blk_plug_loop_free_hctx(&f->hctx[0]);
	f->hctx[0].plug_loop = NULL;
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_SEQ_SMALL);
	KUNIT_EXPECT_NULL(test, f->hctx[0].plug_loop);
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ADAPTIVE);
	loop = f->hctx[0].plug_loop;
	KUNIT_EXPECT_NOT_NULL(test, loop);
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ALWAYS);
	KUNIT_EXPECT_PTR_EQ(test, f->hctx[0].plug_loop, loop);
}

static enum blk_plug_policy_mode configured_default(void)
{
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_NEVER))
		return BLK_PLUG_POLICY_NEVER;
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_SEQ_SMALL))
		return BLK_PLUG_POLICY_SEQ_SMALL;
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE))
		return BLK_PLUG_POLICY_ADAPTIVE;
	return BLK_PLUG_POLICY_ALWAYS;
}

/* The default is only for drivers that declare cheap submission. */
static void blk_plug_policy_test_default(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	int before = key_count();

	blk_plug_policy_register(&f->q);
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			BLK_PLUG_POLICY_ALWAYS);

	f->q.limits.features = BLK_FEAT_CHEAP_SUBMIT;
	blk_plug_policy_register(&f->q);
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			configured_default());

	blk_plug_policy_unregister(&f->q);
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			BLK_PLUG_POLICY_ALWAYS);
	KUNIT_EXPECT_EQ(test, before, key_count());
}

/* What the policy adds to the plug must fit into its padding. */
static void blk_plug_policy_test_plug_size(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_64BIT))
		kunit_skip(test, "the size that must not grow is 64-bit's");
	KUNIT_EXPECT_EQ(test, sizeof(struct blk_plug), 64);
}

static struct kunit_case blk_plug_policy_test_cases[] = {
	KUNIT_CASE_PARAM(blk_plug_policy_test_parse, parse_gen_params),
	KUNIT_CASE(blk_plug_policy_test_parse_page),
	KUNIT_CASE_PARAM(blk_plug_policy_test_group_size, group_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_merge, merge_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_fills, fill_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_make_room, room_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_stream, stream_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_bind, bind_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_unbound, unbound_gen_params),
	KUNIT_CASE(blk_plug_policy_test_within),
	KUNIT_CASE(blk_plug_policy_test_may_fill),
	KUNIT_CASE(blk_plug_policy_test_mix),
	KUNIT_CASE(blk_plug_policy_test_mix_ends),
	KUNIT_CASE_PARAM(blk_plug_policy_test_flushed, flushed_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_mixed, mixed_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_merged, merged_gen_params),
	KUNIT_CASE(blk_plug_policy_test_merged_and_flushed),
	KUNIT_CASE(blk_plug_policy_test_clock),
	KUNIT_CASE(blk_plug_policy_test_clock_never),
	KUNIT_CASE_PARAM(blk_plug_policy_test_holds, hold_gen_params),
	KUNIT_CASE(blk_plug_policy_test_half_switched),
	KUNIT_CASE(blk_plug_policy_test_key_balance),
	KUNIT_CASE(blk_plug_policy_test_set_restarts),
	KUNIT_CASE(blk_plug_policy_test_set_useless),
	KUNIT_CASE(blk_plug_policy_test_set_allocates),
	KUNIT_CASE(blk_plug_policy_test_default),
	KUNIT_CASE(blk_plug_policy_test_plug_size),
	{}
};

static struct kunit_suite blk_plug_policy_test_suite = {
	.name = "blk_plug_policy",
	.test_cases = blk_plug_policy_test_cases,
};

kunit_test_suite(blk_plug_policy_test_suite);

MODULE_DESCRIPTION("KUnit tests of the plug policy");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
