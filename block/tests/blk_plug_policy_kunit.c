// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the plug policy's decisions.  A row is named for what would
 * break if it failed.
 */
#include <kunit/test.h>
#include <linux/blkdev.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "../blk.h"
#include "../blk-mq.h"
#include "../blk-plug-policy.h"
#include "../elevator.h"

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

/* A text as long as sysfs can hand over must neither match nor be overrun. */
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

/*
 * A queue, and a plug that holds one 4K read of it at sector 1000, as far as
 * the decisions look at them.
 */
struct fake {
	struct request_queue q, other_q;
	struct blk_mq_hw_ctx hctx;
	struct blk_plug_loop loop;
	struct blk_mq_tag_set set;
	struct blk_mq_ops ops;
	struct elevator_queue elevator;
	struct request held, rq;
	struct bio bio;
	struct blk_plug plug;
};

enum { HELD_SECTOR = 1000, HELD_END = HELD_SECTOR + SZ_4K / SECTOR_SIZE };

static void fake_queue_rqs(struct rq_list *list)
{
}

static void fake_fill(struct fake *f, struct request *rq, sector_t sector,
		      unsigned int bytes)
{
	rq->q = &f->q;
	rq->mq_hctx = &f->hctx;
	rq->cmd_flags = REQ_OP_READ;
	rq->__sector = sector;
	rq->__data_len = bytes;
}

static struct fake *fake_alloc(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->ops.queue_rqs = fake_queue_rqs;
	f->q.mq_ops = &f->ops;
	f->q.tag_set = &f->set;
	f->other_q = f->q;
	f->hctx.queue = &f->q;
	f->hctx.plug_loop = &f->loop;
	fake_fill(f, &f->held, HELD_SECTOR, SZ_4K);
	rq_list_add_tail(&f->plug.mq_list, &f->held);
	f->plug.rq_count = 1;
	return f;
}

struct merge_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	sector_t sector;
	unsigned int bytes;
	bool elevator, blocking, no_queue_rqs, other_queue, multiple_queues;
	bool empty, no_plug, discard;
	u8 policy;		/* what the plug is bound to */
	u8 held;		/* 0: one */
	bool looks;
};

/* Under "adaptive", bound to groups of 8; merges were found lately, or none. */
#define MERGED	(BLK_PLUG_LOOP_BEGUN | 8)
#define RANDOM	(BLK_PLUG_LOOP_BEGUN | BLK_PLUG_LOOP_RANDOM | 8)
#define ADAPTIVE_4K \
	.mode = BLK_PLUG_POLICY_ADAPTIVE, .bytes = SZ_4K

static const struct merge_case merge_cases[] = {
	{ .name = "always_random", .mode = BLK_PLUG_POLICY_ALWAYS,
	  .sector = 8, .bytes = SZ_4K, .looks = true },
	{ .name = "never_contiguous", .mode = BLK_PLUG_POLICY_NEVER,
	  .sector = HELD_END, .bytes = SZ_4K },
	{ .name = "never_keeps_elevator_merges", .mode = BLK_PLUG_POLICY_NEVER,
	  .sector = 8, .bytes = SZ_4K, .elevator = true, .looks = true },
	{ .name = "seq_small_contiguous", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_4K, .looks = true },
	{ .name = "seq_small_random", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = 8, .bytes = SZ_4K },
	{ .name = "seq_small_same_sector", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_SECTOR, .bytes = SZ_4K },
	{ .name = "seq_small_gap", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END + 1, .bytes = SZ_4K },
	{ .name = "seq_small_below_64k", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_64K - SECTOR_SIZE, .looks = true },
	{ .name = "seq_small_64k_is_large", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_64K },
	{ .name = "seq_small_keeps_elevator_merges",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = 8, .bytes = SZ_4K, .elevator = true, .looks = true },
	{ .name = "seq_small_other_queue_is_newest",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_4K, .other_queue = true },
	{ .name = "seq_small_several_queues_as_always",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL, .sector = HELD_END,
	  .bytes = SZ_4K, .other_queue = true, .multiple_queues = true,
	  .looks = true },
	{ .name = "seq_small_empty_plug_keeps_other_lookups",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_4K, .empty = true, .looks = true },
	{ .name = "seq_small_large_on_empty_plug",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_64K, .empty = true },
	{ .name = "seq_small_no_plug", .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = HELD_END, .bytes = SZ_4K, .no_plug = true, .looks = true },
	{ .name = "never_blocking_keeps_merges", .mode = BLK_PLUG_POLICY_NEVER,
	  .sector = 8, .bytes = SZ_4K, .blocking = true, .looks = true },
	{ .name = "seq_small_no_queue_rqs_keeps_merges",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = 8, .bytes = SZ_4K, .no_queue_rqs = true, .looks = true },
	{ .name = "seq_small_discards_merge_apart",
	  .mode = BLK_PLUG_POLICY_SEQ_SMALL,
	  .sector = 8, .bytes = SZ_4K, .discard = true, .looks = true },
	{ .name = "adaptive_no_plug", ADAPTIVE_4K, .sector = HELD_END,
	  .no_plug = true, .looks = true },
	{ .name = "adaptive_plug_has_only_begun", ADAPTIVE_4K, .sector = 8,
	  .empty = true, .looks = true },
	{ .name = "adaptive_fallback_looks_as_always", ADAPTIVE_4K,
	  .sector = 8, .held = 2, .looks = true },
	{ .name = "adaptive_contiguous", ADAPTIVE_4K, .sector = HELD_END,
	  .policy = MERGED, .looks = true },
	{ .name = "adaptive_contiguous_with_many", ADAPTIVE_4K,
	  .sector = HELD_END, .policy = MERGED, .held = 7, .looks = true },
	{ .name = "adaptive_random", ADAPTIVE_4K, .sector = 8,
	  .policy = MERGED },
	{ .name = "adaptive_same_sector", ADAPTIVE_4K, .sector = HELD_SECTOR,
	  .policy = MERGED },
	{ .name = "adaptive_empty_finds_in_software_queue", ADAPTIVE_4K,
	  .sector = 8, .policy = MERGED, .empty = true, .looks = true },
	{ .name = "adaptive_other_queue_is_newest", ADAPTIVE_4K, .sector = 8,
	  .policy = MERGED, .other_queue = true, .looks = true },
	{ .name = "adaptive_discards_merge_apart", ADAPTIVE_4K, .sector = 8,
	  .policy = MERGED, .discard = true, .looks = true },
	{ .name = "adaptive_no_merges_empty", ADAPTIVE_4K, .sector = HELD_END,
	  .policy = RANDOM, .empty = true },
	{ .name = "adaptive_no_merges_second_shows_again", ADAPTIVE_4K,
	  .sector = HELD_END, .policy = RANDOM, .looks = true },
	{ .name = "adaptive_no_merges_second_is_random", ADAPTIVE_4K,
	  .sector = 8, .policy = RANDOM },
	{ .name = "adaptive_no_merges_third_is_not_asked", ADAPTIVE_4K,
	  .sector = HELD_END, .policy = RANDOM, .held = 2 },
};

KUNIT_ARRAY_PARAM_DESC(merge, merge_cases, name);

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

static void blk_plug_policy_test_merge(struct kunit *test)
{
	const struct merge_case *c = test->param_value;
	struct blk_plug *outer = current->plug;
	struct fake *f = fake_alloc(test);
	struct blk_plug *plug = c->no_plug ? NULL : &f->plug;
	bool looks;

	fake_set(f, c->mode, c->elevator, c->blocking, c->no_queue_rqs);
	if (c->other_queue)
		f->held.q = &f->other_q;
	f->plug.multiple_queues = c->multiple_queues;
	f->plug.rq_count = c->empty ? 0 : c->held ?: 1;
	f->plug.policy = c->policy;
	f->bio.bi_opf = c->discard ? REQ_OP_DISCARD : REQ_OP_READ;
	f->bio.bi_iter.bi_sector = c->sector;
	f->bio.bi_iter.bi_size = c->bytes;

	static_branch_inc(&blk_plug_policy_key);
	/* nothing in between may sleep: that would flush the fake plug */
	preempt_disable();
	current->plug = plug;
	looks = blk_plug_policy_may_merge(&f->q, plug, &f->bio);
	current->plug = outer;
	preempt_enable();
	static_branch_dec(&blk_plug_policy_key);

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
	bool fills;
};

#define SEQ_SMALL_8TH \
	.mode = BLK_PLUG_POLICY_SEQ_SMALL, .held = 7, .bytes = SZ_4K

/* Its plug is bound to groups of 8. */
#define ADAPTIVE_8TH \
	.mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 7, .bytes = SZ_4K
#define ADAPTIVE_2ND \
	.mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 1, .sector = 8

static const struct fill_case fill_cases[] = {
	{ .name = "always_does_not_group", .mode = BLK_PLUG_POLICY_ALWAYS,
	  .held = 31, .sector = 8, .bytes = SZ_4K },
	{ .name = "never_passthrough_is_a_group",
	  .mode = BLK_PLUG_POLICY_NEVER, .bytes = SZ_4K, .op = REQ_OP_DRV_IN,
	  .fills = true },
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
	{ .name = "never_elevator_holds", .mode = BLK_PLUG_POLICY_NEVER,
	  .bytes = SZ_4K, .elevator = true },
	{ .name = "adaptive_8th", ADAPTIVE_8TH, .sector = 8, .fills = true },
	{ .name = "adaptive_2nd", ADAPTIVE_2ND, .bytes = SZ_4K },
	{ .name = "adaptive_size_does_not_count", ADAPTIVE_2ND,
	  .bytes = UINT_MAX & ~(SECTOR_SIZE - 1) },
	{ .name = "adaptive_contiguous_holds", ADAPTIVE_8TH,
	  .sector = HELD_END },
	{ .name = "adaptive_contiguous_128k_may_merge",
	  .mode = BLK_PLUG_POLICY_ADAPTIVE, .held = 7, .bytes = SZ_128K,
	  .sector = HELD_END },
	{ .name = "adaptive_nomerges_wins", ADAPTIVE_8TH, .sector = HELD_END,
	  .nomerges = true, .fills = true },
	{ .name = "adaptive_write_after_read_is_no_sequence", ADAPTIVE_8TH,
	  .sector = HELD_END, .op = REQ_OP_WRITE, .fills = true },
	{ .name = "adaptive_passthrough", ADAPTIVE_8TH, .op = REQ_OP_DRV_IN,
	  .fills = true },
	{ .name = "adaptive_discard_holds", ADAPTIVE_2ND, .bytes = SZ_1G,
	  .op = REQ_OP_DISCARD },
	{ .name = "adaptive_elevator_holds", ADAPTIVE_8TH, .elevator = true },
	{ .name = "adaptive_blocking_holds", ADAPTIVE_8TH, .blocking = true },
	{ .name = "adaptive_no_queue_rqs_holds", ADAPTIVE_8TH,
	  .no_queue_rqs = true },
	{ .name = "adaptive_several_queues_hold", ADAPTIVE_8TH,
	  .multiple_queues = true },
	{ .name = "adaptive_several_queues_hold_large", ADAPTIVE_2ND,
	  .bytes = SZ_128K, .multiple_queues = true },
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
	f->plug.policy = BLK_PLUG_LOOP_BEGUN | 8;
	f->plug.multiple_queues = c->multiple_queues;
	f->plug.has_elevator = c->other_elevator;
	fake_fill(f, &f->rq, c->sector, c->bytes);
	f->rq.cmd_flags = (__force blk_opf_t)c->op;

	KUNIT_EXPECT_EQ(test, blk_plug_policy_fills(&f->plug, &f->rq),
			c->fills);
}

/*
 * How many requests at random places leave together; 0 if the policy lets the
 * plug hold as many as it may.  After that the plug is empty.
 */
static unsigned int filling(struct fake *f)
{
	unsigned int nr = 0;
	bool full;

	fake_fill(f, &f->rq, 8, SZ_4K);
	f->plug.rq_count = 0;
	do {
		full = blk_plug_policy_fills(&f->plug, &f->rq);
		nr = ++f->plug.rq_count;
	} while (!full && nr < BLK_MAX_REQUEST_COUNT - 1);
	/* as blk_plug_loop_flush() does */
	f->plug.policy &= ~BLK_PLUG_LOOP_GROUP;
	f->plug.rq_count = 0;
	return full ? nr : 0;
}

struct bound_case {
	const char *name;
	unsigned int decision;
	unsigned int first, next;	/* fillings of the plug */
};

static const struct bound_case bound_cases[] = {
	{ "one_by_one", 1, 1, 1 },
	{ "two_show_whether_they_merge", 1 | BLK_PLUG_LOOP_PAIR, 2, 1 },
	{ "two", 2, 2, 2 },
	{ "eight", 8, 8, 8 },
	{ "sixteen", 16, 16, 16 },
	{ "the_plug_knows_when_it_is_full", 32, 0, 0 },
	{ "first_at_once_of_eight", 8 | BLK_PLUG_LOOP_FIRST, 1, 8 },
	{ "first_at_once_of_a_plug", 32 | BLK_PLUG_LOOP_FIRST, 1, 0 },
	{ "lookups_are_another_matter",
	  4 | BLK_PLUG_LOOP_FIRST | BLK_PLUG_LOOP_RANDOM, 1, 4 },
	{ "pinned_to_what_is_no_power_of_two", 5, 5, 5 },
};

KUNIT_ARRAY_PARAM_DESC(bound, bound_cases, name);

/* The hardware queue's decision as a plug follows it. */
static void blk_plug_policy_test_bound(struct kunit *test)
{
	const struct bound_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	fake_set(f, BLK_PLUG_POLICY_ADAPTIVE, false, false, false);
	f->loop.decision = c->decision;
	KUNIT_EXPECT_EQ(test, filling(f), c->first);
	KUNIT_EXPECT_EQ(test, f->plug.policy & BLK_PLUG_LOOP_RANDOM,
			c->decision & BLK_PLUG_LOOP_RANDOM);
	KUNIT_EXPECT_EQ(test, filling(f), c->next);
	KUNIT_EXPECT_EQ(test, filling(f), c->next);

	/* a filling goes on as it began, the next one is as decided since */
	f->plug.policy |= BLK_PLUG_LOOP_BEGUN;
	f->loop.decision = 16;
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_fills(&f->plug, &f->rq));
	f->plug.rq_count = 1;
	f->loop.decision = 2;
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_fills(&f->plug, &f->rq));
	KUNIT_EXPECT_EQ(test, filling(f), 2);
	blk_plug_policy_start(&f->plug);
	f->loop.decision = c->decision;
	KUNIT_EXPECT_EQ(test, filling(f), c->first);
}

/* Once a filling is sequential, it is held to its end; the next is anew. */
static void blk_plug_policy_test_sequential(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int nr;

	fake_set(f, BLK_PLUG_POLICY_ADAPTIVE, false, false, false);
	f->loop.decision = 4;
	f->plug.rq_count = 0;
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_fills(&f->plug, &f->held));
	f->plug.rq_count = 1;
	fake_fill(f, &f->rq, HELD_END, SZ_4K);
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_fills(&f->plug, &f->rq));
	fake_fill(f, &f->rq, 8, SZ_4K);
	for (nr = 2; nr < BLK_MAX_REQUEST_COUNT - 1; nr++) {
		f->plug.rq_count = nr;
		KUNIT_EXPECT_FALSE(test,
				   blk_plug_policy_fills(&f->plug, &f->rq));
	}
	f->plug.policy &= ~BLK_PLUG_LOOP_GROUP;
	KUNIT_EXPECT_EQ(test, filling(f), 4);
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

/* Such a plug does as under "always", also if the one before was bound. */
static void blk_plug_policy_test_unbound(struct kunit *test)
{
	const struct unbound_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	fake_set(f, BLK_PLUG_POLICY_ADAPTIVE, c->elevator, c->blocking,
		 c->no_queue_rqs);
	if (c->no_loop)
		f->hctx.plug_loop = NULL;
	f->loop.decision = 1 | BLK_PLUG_LOOP_RANDOM;
	if (c->held_before) {
		f->plug.rq_count = 7;
	} else {
		f->plug.policy = BLK_PLUG_LOOP_BEGUN | BLK_PLUG_LOOP_RANDOM;
		KUNIT_EXPECT_EQ(test, filling(f), 0);
	}
	fake_fill(f, &f->rq, 8, SZ_128K);
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_fills(&f->plug, &f->rq));
	KUNIT_EXPECT_EQ(test, f->plug.policy, 0);
	KUNIT_EXPECT_FALSE(test,
			   blk_plug_policy_unrelated(&f->plug, &f->q, &f->bio));
}

/* The gate without a call must not hold back what the call would let go. */
static void blk_plug_policy_test_within(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int held, group;
	bool within;

	fake_set(f, BLK_PLUG_POLICY_ADAPTIVE, false, false, false);
	for (group = 1; group <= BLK_PLUG_LOOP_GROUP; group++) {
		for (held = 1; held < BLK_MAX_REQUEST_COUNT; held++) {
			f->plug.policy = BLK_PLUG_LOOP_BEGUN | group;
			f->plug.rq_count = held;
			fake_fill(f, &f->rq, 8, SZ_4K);
			within = blk_plug_policy_within(&f->plug);
			KUNIT_EXPECT_EQ_MSG(test, within,
					    !blk_plug_policy_fills(&f->plug,
								   &f->rq),
					    "%u held, group %u", held,
					    group);
		}
	}
	/* the first of a plug has yet to bind it */
	f->plug.policy = BLK_PLUG_LOOP_BEGUN | BLK_PLUG_LOOP_RANDOM;
	f->plug.rq_count = 0;
	KUNIT_EXPECT_FALSE(test, blk_plug_policy_within(&f->plug));
}

struct hold_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	bool elevator, blocking, no_queue_rqs, other_queue, multiple_queues;
	bool holds;
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
		f->held.q = &f->other_q;
	f->plug.multiple_queues = c->multiple_queues;
	fake_fill(f, &f->rq, 8, SZ_4K);

	static_branch_inc(&blk_plug_policy_key);
	holds = blk_plug_policy_holds(&f->plug, &f->rq);
	static_branch_dec(&blk_plug_policy_key);
	KUNIT_EXPECT_EQ(test, holds, c->holds);
	KUNIT_EXPECT_EQ(test, f->plug.rq_count, 1);
}

/* The middle of a switch shows two flags or none: both must be harmless. */
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

/* Every switch must be undone, or a static key stays on for ever. */
static void blk_plug_policy_test_key_balance(struct kunit *test)
{
	int before = key_count(), loops = loop_key_count();
	struct fake *f = fake_alloc(test);
	int from, to;

	for (from = 0; from < BLK_PLUG_POLICY_NR; from++) {
		for (to = 0; to < BLK_PLUG_POLICY_NR; to++) {
			blk_plug_policy_set(&f->q, from);
			blk_plug_policy_set(&f->q, to);
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

/* What was learnt before another mode was set is of another time. */
static void blk_plug_policy_test_set_restarts(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int resets = f->q.plug_policy_resets;

	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ADAPTIVE);
	KUNIT_EXPECT_NE(test, f->q.plug_policy_resets, resets);
	resets = f->q.plug_policy_resets;
	/* but to set what is set is no change */
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ADAPTIVE);
	KUNIT_EXPECT_EQ(test, f->q.plug_policy_resets, resets);
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ALWAYS);
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

/* The default is for those who declared that it does no harm. */
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

/* What the policy needs in the plug must fit into its padding. */
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
	KUNIT_CASE_PARAM(blk_plug_policy_test_bound, bound_gen_params),
	KUNIT_CASE(blk_plug_policy_test_sequential),
	KUNIT_CASE_PARAM(blk_plug_policy_test_unbound, unbound_gen_params),
	KUNIT_CASE(blk_plug_policy_test_within),
	KUNIT_CASE_PARAM(blk_plug_policy_test_holds, hold_gen_params),
	KUNIT_CASE(blk_plug_policy_test_half_switched),
	KUNIT_CASE(blk_plug_policy_test_key_balance),
	KUNIT_CASE(blk_plug_policy_test_set_restarts),
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
