// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the plug statistics' buckets, reasons, file and reset.  A row
 * is named for what would break if it failed.
 */
#include <kunit/test.h>
#include <linux/blkdev.h>
#include <linux/log2.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "../blk.h"
#include "../blk-mq.h"
#include "../blk-plug-count.h"

struct bucket_case {
	const char *name;
	unsigned int nr;
	unsigned int buckets;
	unsigned int bucket;
};

static const struct bucket_case bucket_cases[] = {
	{ "none_is_no_shift_by_minus_1", 0, 7, 0 },
	{ "one", 1, 7, 0 },
	{ "lower_edge", 2, 7, 1 },
	{ "upper_edge", 3, 7, 1 },
	{ "next_edge", 4, 7, 2 },
	{ "just_not_full", 31, 7, 4 },
	{ "full", 32, 7, 5 },
	{ "full_of_several_queues", 64, 7, 6 },
	{ "more_than_the_last", 128, 7, 6 },
	{ "largest", UINT_MAX, 7, 6 },
	{ "full_batch", 32, 6, 5 },
	{ "more_than_a_batch", 64, 6, 5 },
};

KUNIT_ARRAY_PARAM_DESC(bucket, bucket_cases, name);

static void blk_plug_stat_test_bucket(struct kunit *test)
{
	const struct bucket_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, blk_plug_stat_bucket(c->nr, c->buckets),
			c->bucket);
}

struct why_case {
	const char *name;
	unsigned int nr_tags;
	unsigned int shallow_depth;
	blk_mq_req_flags_t flags;
	unsigned long hctx_flags;
	unsigned int active;		/* the share is half the depth */
	unsigned int depth;
	unsigned int word_bits;		/* 0: 64 */
	bool round_robin;
	enum blk_plug_stat_id why;
};

static const struct why_case why_cases[] = {
	{ "one_tag_is_no_batch", .nr_tags = 1, .depth = 128,
	  .why = BLK_PLUG_STAT_NO_BATCH_BUDGET },
	{ "budget_before_all_else", .nr_tags = 1, .depth = 16,
	  .shallow_depth = 1, .hctx_flags = BLK_MQ_F_TAG_QUEUE_SHARED,
	  .why = BLK_PLUG_STAT_NO_BATCH_BUDGET },
	{ "words_of_2_have_1_for_batches", .nr_tags = 32, .depth = 8,
	  .word_bits = 2, .why = BLK_PLUG_STAT_NO_BATCH_FRAGMENTED },
	{ "words_of_1_have_none", .nr_tags = 32, .depth = 7, .word_bits = 1,
	  .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "map_of_2", .nr_tags = 32, .depth = 2,
	  .why = BLK_PLUG_STAT_NO_BATCH_FRAGMENTED },
	{ "map_of_1", .nr_tags = 32, .depth = 1,
	  .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "tags_go_round", .nr_tags = 2, .depth = 1024, .round_robin = true,
	  .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "share_half_used", .nr_tags = 32, .depth = 1024, .active = 256,
	  .hctx_flags = BLK_MQ_F_TAG_QUEUE_SHARED,
	  .why = BLK_PLUG_STAT_NO_BATCH_SHARED },
	{ "share_less_used", .nr_tags = 32, .depth = 1024, .active = 255,
	  .hctx_flags = BLK_MQ_F_TAG_QUEUE_SHARED,
	  .why = BLK_PLUG_STAT_NO_BATCH_FRAGMENTED },
	{ "shared_but_map_too_small", .nr_tags = 32, .depth = 4, .active = 4,
	  .word_bits = 1, .hctx_flags = BLK_MQ_F_TAG_QUEUE_SHARED,
	  .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "not_shared_and_used", .nr_tags = 32, .depth = 1024, .active = 1000,
	  .why = BLK_PLUG_STAT_NO_BATCH_FRAGMENTED },
	{ "reserved", .nr_tags = 32, .depth = 1024,
	  .flags = BLK_MQ_REQ_RESERVED,
	  .why = BLK_PLUG_STAT_NO_BATCH_RESERVED },
	{ "nowait_is_no_reason", .nr_tags = 32, .depth = 1024,
	  .flags = BLK_MQ_REQ_NOWAIT,
	  .why = BLK_PLUG_STAT_NO_BATCH_FRAGMENTED },
	{ "elevator_limits", .nr_tags = 32, .depth = 1024, .shallow_depth = 8,
	  .why = BLK_PLUG_STAT_NO_BATCH_SCHEDULER },
};

KUNIT_ARRAY_PARAM_DESC(why, why_cases, name);

static void blk_plug_stat_test_why(struct kunit *test)
{
	const struct why_case *c = test->param_value;
	struct blk_mq_alloc_data data = {
		.nr_tags	= c->nr_tags,
		.shallow_depth	= c->shallow_depth,
		.flags		= c->flags,
	};
	struct blk_mq_hw_ctx *hctx;
	struct blk_mq_tags *tags;

	hctx = kunit_kzalloc(test, sizeof(*hctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hctx);
	tags = kunit_kzalloc(test, sizeof(*tags), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tags);
	hctx->flags = c->hctx_flags;
	hctx->state = BIT(BLK_MQ_S_TAG_ACTIVE);
	hctx->tags = tags;
	atomic_set(&hctx->nr_active, c->active);
	tags->active_queues = 2;
	tags->bitmap_tags.sb.depth = c->depth;
	tags->bitmap_tags.sb.shift = ilog2(c->word_bits ?: 64);
	tags->bitmap_tags.sb.round_robin = c->round_robin;
	data.hctx = hctx;
	KUNIT_EXPECT_EQ(test, blk_plug_stat_no_batch(&data), c->why);
}

/* A queue with one hardware queue, which is counted. */
struct fake {
	struct request_queue q;
	struct blk_mq_hw_ctx hctx;
	struct seq_file m;
	char text[4096];
};

static void blk_plug_stat_test_exit_fake(void *data)
{
	blk_plug_stat_free_hctx(data);
}

static struct fake *blk_plug_stat_test_fake(struct kunit *test)
{
	struct fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->hctx.queue = &fake->q;
	fake->hctx.numa_node = NUMA_NO_NODE;
	fake->q.plug_stat_mode = BLK_PLUG_STAT_COUNT;
	blk_plug_stat_init_hctx(&fake->hctx);
	KUNIT_ASSERT_NOT_NULL(test, fake->hctx.plug_stat);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test,
						  blk_plug_stat_test_exit_fake,
						  &fake->hctx));
	return fake;
}

/* The value that the file shows for @name, -1 if there is no such line. */
static long blk_plug_stat_test_shown(struct kunit *test, struct fake *fake,
				     const char *name)
{
	char *line, *rest = fake->text;
	long value = -1;

	fake->m.buf = fake->text;
	fake->m.size = sizeof(fake->text);
	fake->m.count = 0;
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_stat_hctx_show(&fake->hctx, &fake->m));
	KUNIT_ASSERT_LT(test, fake->m.count, fake->m.size);
	fake->text[fake->m.count] = 0;
	while ((line = strsep(&rest, "\n")) && *line) {
		char *end = strchr(line, ' ');

		KUNIT_ASSERT_NOT_NULL_MSG(test, end, "line '%s'", line);
		*end = 0;
		if (!strcmp(line, name)) {
			KUNIT_EXPECT_EQ_MSG(test, value, -1L, "two lines '%s'",
					    line);
			KUNIT_ASSERT_EQ(test, 0, kstrtol(end + 1, 10, &value));
		}
	}
	return value;
}

static void blk_plug_stat_test_count(struct fake *fake,
				     enum blk_plug_stat_id id, long nr)
{
	struct blk_plug_stat *stat = fake->hctx.plug_stat;

	if (id < BLK_PLUG_STAT_SUBMIT)
		this_cpu_add(stat->cpu->nr[id], nr);
	else if (id < BLK_PLUG_STAT_COMPLETE)
		blk_plug_stat_add_submit(stat, id, nr);
	else
		atomic_long_add(nr,
				&stat->complete[id - BLK_PLUG_STAT_COMPLETE]);
}

/* Each counter must have a line with its own value. */
static void blk_plug_stat_test_show(struct kunit *test)
{
	struct fake *fake = blk_plug_stat_test_fake(test);
	unsigned int lines = 0;
	char name[32];
	char *line, *rest;
	enum blk_plug_stat_id id;

	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		blk_plug_stat_test_count(fake, id, 1000 + id);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "requests"),
			1000L + BLK_PLUG_STAT_REQUESTS);
	KUNIT_EXPECT_EQ(test,
			blk_plug_stat_test_shown(test, fake, "flush_hist_64"),
			1000L + BLK_PLUG_STAT_FLUSH_HIST + 6);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "hold_us"),
			1000L + BLK_PLUG_STAT_HOLD_US);
	KUNIT_EXPECT_EQ(test,
			blk_plug_stat_test_shown(test, fake, "batch_hist_32"),
			1000L + BLK_PLUG_STAT_NR - 1);

	fake->m.count = 0;
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_stat_hctx_show(&fake->hctx, &fake->m));
	fake->text[fake->m.count] = 0;
	rest = fake->text;
	while ((line = strsep(&rest, "\n")) && *line) {
		unsigned long value;

		KUNIT_EXPECT_EQ_MSG(test, 2,
				    sscanf(line, "%31s %lu", name,
					   &value), "line '%s'", line);
		if (lines)
			KUNIT_EXPECT_EQ(test, value, 1000UL + lines - 1);
		lines++;
	}
	KUNIT_EXPECT_EQ(test, lines, BLK_PLUG_STAT_NR + 1U);
}

/* A counter of each kind is 0. */
static void blk_plug_stat_test_zero(struct kunit *test, struct fake *fake)
{
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "requests"),
			0L);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "plugs"),
			0L);
	KUNIT_EXPECT_EQ(test,
			blk_plug_stat_test_shown(test, fake,
						 "completion_batches"), 0L);
}

/* A reset hides what was counted, but keeps what is in flight. */
static void blk_plug_stat_test_reset(struct kunit *test)
{
	struct fake *fake = blk_plug_stat_test_fake(test);
	enum blk_plug_stat_id id;

	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		blk_plug_stat_test_count(fake, id, 50);
	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_REQUESTS, 3);
	KUNIT_EXPECT_EQ(test, 1,
			blk_plug_stat_hctx_write(&fake->hctx, NULL, 1, NULL));
	blk_plug_stat_test_zero(test, fake);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "in_flight"),
			3L);
	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_COMPLETIONS, 3);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "in_flight"),
			0L);
	KUNIT_EXPECT_EQ(test,
			blk_plug_stat_test_shown(test, fake, "completions"),
			3L);
}

/* A counter that wraps between two reads must still count right. */
static void blk_plug_stat_test_wrap(struct kunit *test)
{
	struct fake *fake = blk_plug_stat_test_fake(test);

	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_REQUESTS, -2);
	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_COMPLETIONS, -2);
	blk_plug_stat_hctx_write(&fake->hctx, NULL, 1, NULL);
	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_REQUESTS, 5);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "requests"),
			5L);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "in_flight"),
			5L);
}

/* A reused hardware queue must keep nothing of its former life. */
static void blk_plug_stat_test_reuse(struct kunit *test)
{
	struct fake *fake = blk_plug_stat_test_fake(test);
	struct blk_plug_stat *stat = fake->hctx.plug_stat;

	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_REQUESTS, 7);
	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_PLUGS, 7);
	blk_plug_stat_test_count(fake, BLK_PLUG_STAT_BATCHES, 7);
	blk_plug_stat_hctx_write(&fake->hctx, NULL, 1, NULL);
	fake->q.plug_stat_mode = BLK_PLUG_STAT_OFF;
	blk_plug_stat_init_hctx(&fake->hctx);
	KUNIT_EXPECT_PTR_EQ(test, fake->hctx.plug_stat, stat);
	KUNIT_EXPECT_TRUE(test, !blk_plug_stat_cpu(&fake->hctx));
	KUNIT_EXPECT_NULL(test, blk_plug_stat_of(&fake->hctx));
	blk_plug_stat_test_zero(test, fake);
	KUNIT_EXPECT_EQ(test, stat->base[BLK_PLUG_STAT_PLUGS], 0UL);
}

/* A hardware queue that was never counted shows zeros. */
static void blk_plug_stat_test_never(struct kunit *test)
{
	struct fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->hctx.queue = &fake->q;
	blk_plug_stat_init_hctx(&fake->hctx);
	KUNIT_EXPECT_NULL(test, fake->hctx.plug_stat);
	KUNIT_EXPECT_EQ(test, 2,
			blk_plug_stat_hctx_write(&fake->hctx, NULL, 2, NULL));
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "requests"),
			0L);
	KUNIT_EXPECT_EQ(test, blk_plug_stat_test_shown(test, fake, "in_flight"),
			0L);
}

static struct kunit_case blk_plug_stat_test_cases[] = {
	KUNIT_CASE_PARAM(blk_plug_stat_test_bucket, bucket_gen_params),
	KUNIT_CASE_PARAM(blk_plug_stat_test_why, why_gen_params),
	KUNIT_CASE(blk_plug_stat_test_show),
	KUNIT_CASE(blk_plug_stat_test_reset),
	KUNIT_CASE(blk_plug_stat_test_wrap),
	KUNIT_CASE(blk_plug_stat_test_reuse),
	KUNIT_CASE(blk_plug_stat_test_never),
	{}
};

static struct kunit_suite blk_plug_stat_test_suite = {
	.name		= "blk_plug_stat",
	.test_cases	= blk_plug_stat_test_cases,
};

kunit_test_suite(blk_plug_stat_test_suite);

MODULE_DESCRIPTION("KUnit tests of the plug statistics");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
