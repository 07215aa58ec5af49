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
	bool looks;
};

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
};

KUNIT_ARRAY_PARAM_DESC(merge, merge_cases, name);

static void fake_set(struct fake *f, enum blk_plug_policy_mode mode,
		     bool elevator, bool blocking, bool no_queue_rqs)
{
	static const unsigned long flags[BLK_PLUG_POLICY_NR] = {
		[BLK_PLUG_POLICY_NEVER]		= BIT(QUEUE_FLAG_PLUG_NEVER),
		[BLK_PLUG_POLICY_SEQ_SMALL] = BIT(QUEUE_FLAG_PLUG_SEQ_SMALL),
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
	bool looks;

	fake_set(f, c->mode, c->elevator, c->blocking, c->no_queue_rqs);
	if (c->other_queue)
		f->held.q = &f->other_q;
	f->plug.multiple_queues = c->multiple_queues;
	if (c->empty)
		f->plug.rq_count = 0;
	f->bio.bi_opf = c->discard ? REQ_OP_DISCARD : REQ_OP_READ;
	f->bio.bi_iter.bi_sector = c->sector;
	f->bio.bi_iter.bi_size = c->bytes;

	static_branch_inc(&blk_plug_policy_key);
	/* nothing in between may sleep: that would flush the fake plug */
	preempt_disable();
	current->plug = c->no_plug ? NULL : &f->plug;
	looks = blk_plug_policy_may_merge(&f->q, &f->bio);
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
	bool fills;
};

#define SEQ_SMALL_8TH \
	.mode = BLK_PLUG_POLICY_SEQ_SMALL, .held = 7, .bytes = SZ_4K

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
	f->plug.multiple_queues = c->multiple_queues;
	fake_fill(f, &f->rq, c->sector, c->bytes);
	f->rq.cmd_flags = (__force blk_opf_t)c->op;

	KUNIT_EXPECT_EQ(test, blk_plug_policy_fills(&f->plug, &f->rq),
			c->fills);
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
	struct fake *f = fake_alloc(test);

	f->q.queue_flags = BLK_PLUG_POLICY_FLAGS;
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			BLK_PLUG_POLICY_ALWAYS);
	f->q.queue_flags = 0;
	KUNIT_EXPECT_EQ(test, blk_plug_policy_get(&f->q),
			BLK_PLUG_POLICY_ALWAYS);
}

static int key_count(void)
{
	return static_key_count(&blk_plug_policy_key.key);
}

/* Every switch must be undone, or the static key stays on for ever. */
static void blk_plug_policy_test_key_balance(struct kunit *test)
{
	int before = key_count();
	struct fake *f = fake_alloc(test);
	int from, to;

	for (from = 0; from < BLK_PLUG_POLICY_NR; from++) {
		for (to = 0; to < BLK_PLUG_POLICY_NR; to++) {
			blk_plug_policy_set(&f->q, from);
			blk_plug_policy_set(&f->q, to);
			KUNIT_EXPECT_EQ(test, (int)blk_plug_policy_get(&f->q),
					to);
			KUNIT_EXPECT_EQ(test, before + !!to, key_count());
		}
	}
	blk_plug_policy_set(&f->q, BLK_PLUG_POLICY_ALWAYS);
	KUNIT_EXPECT_EQ(test, before, key_count());
}

static enum blk_plug_policy_mode configured_default(void)
{
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_NEVER))
		return BLK_PLUG_POLICY_NEVER;
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_SEQ_SMALL))
		return BLK_PLUG_POLICY_SEQ_SMALL;
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
	KUNIT_CASE_PARAM(blk_plug_policy_test_holds, hold_gen_params),
	KUNIT_CASE(blk_plug_policy_test_half_switched),
	KUNIT_CASE(blk_plug_policy_test_key_balance),
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
