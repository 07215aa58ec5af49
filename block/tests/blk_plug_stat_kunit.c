// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the plug statistics: why there is no batch of tags, what a
 * flush of several queues counts, and the file; and of what drivers do to the
 * batches of a plug.  A row is named for what would break if it failed.
 */
#include <kunit/test.h>
#include <linux/string.h>

/* Two queues that are counted, and what the tests need. */
struct fake {
	struct request_queue q[2];
	struct blk_mq_hw_ctx hctx[2];
	struct blk_mq_ctx ctx, *ctxs[1];
	struct blk_mq_tags tags;
	struct request rq[5];
	struct blk_plug plug;
	struct seq_file m;
	char text[1024];
};

static void blk_plug_stat_test_exit(void *data)
{
	struct fake *fake = data;
	int i;

	for (i = 0; i < ARRAY_SIZE(fake->q); i++) {
		blk_plug_stat_disable(&fake->q[i]);
		free_percpu(fake->q[i].plug_stat);
	}
}

static struct fake *blk_plug_stat_test_fake(struct kunit *test)
{
	struct fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, blk_plug_stat_test_exit,
						  fake));
	for (i = 0; i < ARRAY_SIZE(fake->hctx); i++) {
		fake->hctx[i].queue = &fake->q[i];
		KUNIT_ASSERT_EQ(test, 0, blk_plug_stat_enable(&fake->q[i]));
	}
	return fake;
}

static unsigned long blk_plug_stat_test_nr(const struct blk_mq_hw_ctx *hctx,
					   enum blk_plug_stat_id id)
{
	unsigned long nr = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		nr += per_cpu_ptr(hctx->queue->plug_stat, cpu)->
			nr[hctx->type][id];
	return nr;
}

static void blk_plug_stat_test_is(struct kunit *test,
				  const struct blk_mq_hw_ctx *hctx,
				  enum blk_plug_stat_id id, unsigned long nr)
{
	KUNIT_EXPECT_EQ_MSG(test, blk_plug_stat_test_nr(hctx, id), nr,
			    "counter %u", id);
}

struct why_case {
	const char *name;
	unsigned int wanted;
	unsigned int used;		/* by the last plug */
	unsigned int before;		/* by the one before; 0: 32 */
	unsigned int taken;		/* by this one: it comes back */
	bool unannounced;
	unsigned int shallow_depth;
	bool shared;
	unsigned int active;		/* the share is half the depth */
	unsigned int depth;
	bool round_robin;
	bool waiting;
	unsigned int got;
	enum blk_plug_stat_id why;	/* the counter that moves, if any */
};

#define NONE	BLK_PLUG_STAT_NR

static const struct why_case why_cases[] = {
	{ "map_of_8_has_2_for_a_batch", .wanted = 32, .used = 32, .depth = 8,
	  .got = 2, .why = NONE },
	{ "map_of_7_has_1", .wanted = 32, .used = 32, .depth = 7,
	  .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "tags_go_round", .wanted = 2, .used = 32, .depth = 1024,
	  .round_robin = true, .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "task_waits", .wanted = 32, .used = 32, .depth = 1024,
	  .waiting = true, .why = BLK_PLUG_STAT_NO_BATCH_BUSY },
	{ "share_used_but_3", .wanted = 32, .used = 32, .depth = 1024,
	  .shared = true, .active = 509,
	  .why = BLK_PLUG_STAT_NO_BATCH_SHARED },
	{ "share_used_but_4_is_partial", .wanted = 32, .used = 32,
	  .depth = 1024, .shared = true, .active = 508, .got = 4, .why = NONE },
	{ "shared_but_map_too_small", .wanted = 32, .used = 32, .depth = 4,
	  .shared = true, .active = 4, .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "not_shared_and_used", .wanted = 32, .used = 32, .depth = 1024,
	  .active = 1000, .got = 32, .why = NONE },
	{ "last_plug_used_one", .wanted = 32, .used = 1, .depth = 1024,
	  .got = 1, .why = NONE },
	{ "back_after_one_takes_the_rest", .wanted = 31, .used = 1, .taken = 1,
	  .depth = 1024, .got = 31, .why = NONE },
	{ "back_after_6_of_32_takes_26", .wanted = 32, .used = 6, .taken = 6,
	  .depth = 1024, .got = 26, .why = NONE },
	{ "back_after_9_takes_three_times_9", .wanted = 32, .used = 9,
	  .taken = 9, .depth = 1024, .got = 27, .why = NONE },
	{ "back_after_32_takes_as_many", .wanted = 32, .used = 32, .taken = 32,
	  .depth = 1024, .got = 32, .why = NONE },
	{ "fewer_are_to_come", .wanted = 3, .used = 32, .depth = 1024,
	  .got = 3, .why = NONE },
	{ "not_announced_takes_all_but_8", .wanted = 32, .used = 32,
	  .unannounced = true, .depth = 1024, .got = 24, .why = NONE },
	{ "not_announced_but_8_used", .wanted = 32, .used = 8,
	  .unannounced = true, .depth = 1024, .got = 1, .why = NONE },
	{ "not_announced_and_1_used", .wanted = 32, .used = 1,
	  .unannounced = true, .depth = 1024, .got = 1, .why = NONE },
	{ "elevator_limits_a_plug_that_wants_one", .wanted = 32, .used = 1,
	  .depth = 1024, .shallow_depth = 8, .got = 1, .why = NONE },
	{ "not_announced_takes_the_rest_of_20", .wanted = 32, .used = 20,
	  .unannounced = true, .taken = 12, .depth = 1024, .got = 8,
	  .why = NONE },
	{ "not_announced_takes_no_more_than_20", .wanted = 32, .used = 20,
	  .unannounced = true, .taken = 20, .depth = 1024, .got = 1,
	  .why = NONE },
	{ "not_announced_and_32_at_most", .wanted = 32, .used = 255,
	  .unannounced = true, .before = 255, .depth = 1024, .got = 32,
	  .why = NONE },
	{ "not_announced_takes_an_eighth", .wanted = 32, .used = 32,
	  .unannounced = true, .depth = 64, .got = 8, .why = NONE },
	{ "not_announced_map_of_15_has_1", .wanted = 32, .used = 32,
	  .unannounced = true, .depth = 15,
	  .why = BLK_PLUG_STAT_NO_BATCH_DEPTH },
	{ "elevator_limits", .wanted = 32, .used = 32, .depth = 1024,
	  .shallow_depth = 8, .why = BLK_PLUG_STAT_NO_BATCH_SCHEDULER },
};

#undef NONE

KUNIT_ARRAY_PARAM_DESC(why, why_cases, name);

static void blk_plug_stat_test_why(struct kunit *test)
{
	const struct why_case *c = test->param_value;
	struct fake *fake = blk_plug_stat_test_fake(test);
	struct blk_mq_hw_ctx *hctx = &fake->hctx[0];
	struct blk_mq_alloc_data data = {
		.q		= fake->q,
		.ctx		= &fake->ctx,
		.hctx		= hctx,
		.nr_tags	= c->wanted,
		.shallow_depth	= c->shallow_depth,
	};
	struct blk_mq_plug_use *use = &fake->ctx.plug_use[HCTX_TYPE_DEFAULT];
	enum blk_plug_stat_id id;
	u8 *nr = use->nr;
	unsigned int got;

	use->plug_id = 1;
	if (c->taken) {
		fake->plug.id = 1;
		*nr++ = c->taken;
	}
	*nr++ = c->used;
	*nr = c->before ?: BLK_MAX_REQUEST_COUNT;
	fake->plug.announced = !c->unannounced;
	hctx->flags = c->shared ? BLK_MQ_F_TAG_QUEUE_SHARED : 0;
	hctx->state = BIT(BLK_MQ_S_TAG_ACTIVE);
	hctx->tags = &fake->tags;
	atomic_set(&hctx->nr_active, c->active);
	fake->tags.active_queues = 2;
	fake->tags.bitmap_tags.sb.depth = c->depth;
	fake->tags.bitmap_tags.sb.round_robin = c->round_robin;
	atomic_set(&fake->tags.bitmap_tags.ws_active, c->waiting);

	current->plug = &fake->plug;
	got = blk_mq_tag_batch(&data);
	current->plug = NULL;
	KUNIT_EXPECT_EQ(test, got, c->got);
	/* Nothing can be batched of this map: ask no more. */
	KUNIT_EXPECT_TRUE(test, fake->plug.single ==
			  (c->why == BLK_PLUG_STAT_NO_BATCH_DEPTH));
	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		blk_plug_stat_test_is(test, hctx, id, id == c->why);
}

/* Requests for the second queue where a bit of @second is set. */
static void blk_plug_stat_test_flush_of(struct fake *fake, unsigned int second)
{
	int i;

	rq_list_init(&fake->plug.mq_list);
	for (i = 0; i < ARRAY_SIZE(fake->rq); i++) {
		fake->rq[i].mq_hctx = &fake->hctx[second >> i & 1];
		rq_list_add_tail(&fake->plug.mq_list, &fake->rq[i]);
	}
	fake->plug.rq_count = ARRAY_SIZE(fake->rq);
	__blk_plug_stat_flush(&fake->plug);
}

static void blk_plug_stat_test_flush(struct kunit *test)
{
	static const struct {
		unsigned int second;
		unsigned long requests[2];
	} rows[] = {
		{ 0b00000, { 5, 0 } }, { 0b11111, { 0, 5 } },
		{ 0b01010, { 3, 2 } }, { 0b00110, { 3, 2 } },
	};
	int row, i;

	for (row = 0; row < ARRAY_SIZE(rows); row++) {
		struct fake *fake = blk_plug_stat_test_fake(test);

		blk_plug_stat_test_flush_of(fake, rows[row].second);
		for (i = 0; i < ARRAY_SIZE(fake->hctx); i++) {
			struct blk_mq_hw_ctx *hctx = &fake->hctx[i];

			blk_plug_stat_test_is(test, hctx,
					      BLK_PLUG_STAT_FLUSHES,
					      !!rows[row].requests[i]);
			blk_plug_stat_test_is(test, hctx,
					      BLK_PLUG_STAT_FLUSH_REQUESTS,
					      rows[row].requests[i]);
		}
	}
}

/*
 * Each counter must have a line of its own, with its own value: that of the
 * hardware queue's type and CPUs, and of no others.
 */
static void blk_plug_stat_test_show(struct kunit *test)
{
	struct fake *fake = blk_plug_stat_test_fake(test);
	struct blk_mq_hw_ctx *hctx = &fake->hctx[0];
	enum blk_plug_stat_id id;
	char *line, *rest = fake->text;
	char seen[BLK_PLUG_STAT_NR][32];
	int cpu;

	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		for_each_possible_cpu(cpu) {
			struct blk_plug_stat *stat;

			stat = per_cpu_ptr(hctx->queue->plug_stat, cpu);
			stat->nr[HCTX_TYPE_DEFAULT][id] = 1;
			stat->nr[HCTX_TYPE_READ][id] = 1000 + id;
		}
	hctx->type = HCTX_TYPE_READ;
	fake->ctxs[0] = &fake->ctx;
	hctx->ctxs = fake->ctxs;
	hctx->nr_ctx = 1;
	fake->m.buf = fake->text;
	fake->m.size = sizeof(fake->text);
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_stat_hctx_show(hctx, &fake->m));
	KUNIT_ASSERT_LT(test, fake->m.count, fake->m.size);
	fake->text[fake->m.count] = 0;
	for (id = 0; (line = strsep(&rest, "\n")) && *line; id++) {
		unsigned long value;
		int i, words;

		KUNIT_ASSERT_LT(test, id, BLK_PLUG_STAT_NR);
		words = sscanf(line, "%31s %lu", seen[id], &value);
		KUNIT_ASSERT_EQ_MSG(test, 2, words, "'%s'", line);
		KUNIT_EXPECT_EQ(test, value, 1000UL + id);
		for (i = 0; i < id; i++)
			KUNIT_EXPECT_STRNEQ(test, seen[i], seen[id]);
	}
	KUNIT_EXPECT_EQ(test, id, BLK_PLUG_STAT_NR);
}

/* Another queue's key must not make a queue count that is not counted. */
static void blk_plug_stat_test_off(struct kunit *test)
{
	struct fake *fake = blk_plug_stat_test_fake(test);
	struct blk_mq_hw_ctx *hctx = &fake->hctx[0];
	struct blk_plug_stat __percpu *stat = fake->q[0].plug_stat;
	int keys;

	fake->q[0].plug_stat = NULL;
	blk_plug_stat(hctx, BLK_PLUG_STAT_TAGS_SINGLE, 1);
	fake->q[0].plug_stat = stat;
	blk_plug_stat_disable(&fake->q[0]);
	blk_plug_stat(hctx, BLK_PLUG_STAT_TAGS_SINGLE, 1);
	blk_plug_stat_test_is(test, hctx, BLK_PLUG_STAT_TAGS_SINGLE, 0);
	/* twice is once, and what has been counted stays */
	blk_plug_stat_enable(&fake->q[0]);
	blk_plug_stat(hctx, BLK_PLUG_STAT_TAGS_SINGLE, 1);
	keys = static_key_count(&blk_plug_stat_key.key);
	KUNIT_EXPECT_EQ(test, 0, blk_plug_stat_enable(&fake->q[0]));
	KUNIT_EXPECT_EQ(test, keys, static_key_count(&blk_plug_stat_key.key));
	blk_plug_stat(hctx, BLK_PLUG_STAT_TAGS_SINGLE, 1);
	blk_plug_stat_test_is(test, hctx, BLK_PLUG_STAT_TAGS_SINGLE, 2);
}

/* Of a driver that sleeps, or allocates from the queue below, as dm does. */
struct driver {
	struct blk_mq_tag_set set;
	struct request_queue *q;
};

static struct request *driver_take(struct request_queue *q)
{
	return blk_mq_alloc_request(q, REQ_OP_DRV_IN, 0);
}

static unsigned int driver_tags(struct driver *d)
{
	return sbitmap_weight(&d->set.tags[0]->bitmap_tags.sb);
}

static blk_status_t driver_queue_rq(struct blk_mq_hw_ctx *hctx,
				    const struct blk_mq_queue_data *bd)
{
	blk_mq_start_request(bd->rq);
	if (hctx->queue->queuedata)
		blk_mq_free_request(driver_take(hctx->queue->queuedata));
	else
		schedule_timeout_uninterruptible(1);
	blk_mq_end_request(bd->rq, BLK_STS_OK);
	return BLK_STS_OK;
}

static const struct blk_mq_ops driver_ops = {
	.queue_rq = driver_queue_rq,
};

static void driver_exit(void *data)
{
	struct driver *d = data;

	blk_mq_destroy_queue(d->q);
	blk_put_queue(d->q);
	blk_mq_free_tag_set(&d->set);
}

static struct driver *driver_of(struct kunit *test, unsigned int depth,
				struct request_queue *below)
{
	struct driver *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->set.ops = &driver_ops;
	d->set.nr_hw_queues = 1;
	d->set.queue_depth = depth;
	d->set.numa_node = NUMA_NO_NODE;
	d->set.flags = BLK_MQ_F_BLOCKING;
	KUNIT_ASSERT_EQ(test, 0, blk_mq_alloc_tag_set(&d->set));
	d->q = blk_mq_alloc_queue(&d->set, NULL, below);
	KUNIT_ASSERT_FALSE(test, IS_ERR(d->q));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, driver_exit, d));
	return d;
}

/* A plug whose driver sleeps in a flush takes no more tags ahead. */
static void blk_plug_stat_test_driver_sleeps(struct kunit *test)
{
	struct driver *d = driver_of(test, 256, NULL);
	struct request *rq;
	struct blk_plug plug;

	blk_start_plug_nr_ios(&plug, 128);
	blk_execute_rq_nowait(driver_take(d->q), false);
	KUNIT_EXPECT_EQ(test, driver_tags(d), 32);
	blk_flush_plug(&plug, false);
	rq = driver_take(d->q);
	KUNIT_EXPECT_EQ(test, driver_tags(d), 1);
	blk_finish_plug(&plug);
	blk_mq_free_request(rq);
}

/*
 * Who waits for a tag runs the driver.  What that allocates was not announced.
 * The request that is to free a tag is issued no earlier.
 */
static void blk_plug_stat_test_driver_allocates(struct kunit *test)
{
	struct driver *below = driver_of(test, 256, NULL);
	struct driver *d = driver_of(test, 8, below->q);
	struct request *rq[8];
	struct blk_plug plug;
	int i;

	for (i = 0; i < ARRAY_SIZE(rq); i++)
		rq[i] = driver_take(d->q);
	blk_mq_stop_hw_queues(d->q);
	blk_execute_rq_nowait(rq[0], false);
	clear_bit(BLK_MQ_S_STOPPED, &rq[0]->mq_hctx->state);
	blk_start_plug_nr_ios(&plug, 128);
	rq[0] = driver_take(d->q);
	KUNIT_EXPECT_EQ(test, driver_tags(d), 8);
	KUNIT_EXPECT_EQ(test, driver_tags(below), 0);
	blk_finish_plug(&plug);
	for (i = 0; i < ARRAY_SIZE(rq); i++)
		blk_mq_free_request(rq[i]);
}

static struct kunit_case blk_plug_stat_test_cases[] = {
	KUNIT_CASE_PARAM(blk_plug_stat_test_why, why_gen_params),
	KUNIT_CASE(blk_plug_stat_test_flush),
	KUNIT_CASE(blk_plug_stat_test_show),
	KUNIT_CASE(blk_plug_stat_test_off),
	KUNIT_CASE(blk_plug_stat_test_driver_sleeps),
	KUNIT_CASE(blk_plug_stat_test_driver_allocates),
	{}
};

static struct kunit_suite blk_plug_stat_test_suite = {
	.name		= "blk_plug_stat",
	.test_cases	= blk_plug_stat_test_cases,
};

kunit_test_suite(blk_plug_stat_test_suite);
