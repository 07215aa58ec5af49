// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what the plug policy "adaptive" counts, when it samples, and
 * what submitters get to see of the controller.  What the controller makes of
 * a sample is tested on its own.
 */
#include <kunit/test.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "../blk.h"
#include "../blk-mq.h"
#include "../blk-plug-loop.h"
#include "../blk-plug-policy.h"

enum { REQUESTS = 4 };

/* A queue on "adaptive" with one hardware queue, and requests of it. */
struct fake {
	struct request_queue q;
	struct blk_mq_hw_ctx hctx;
	struct blk_mq_tags tags;
	struct request rq[REQUESTS], *rqs[REQUESTS];
	struct bio bio, other_bio;
};

static const int all_tags[REQUESTS] = { 0, 1, 2, 3 };

static void fake_exit(void *data)
{
	blk_plug_loop_free_hctx(data);
}

static struct fake *fake_alloc(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->q.queue_flags = BIT(QUEUE_FLAG_PLUG_ADAPTIVE);
	f->hctx.queue = &f->q;
	f->hctx.numa_node = NUMA_NO_NODE;
	f->hctx.tags = &f->tags;
	f->tags.rqs = f->rqs;
	for (i = 0; i < REQUESTS; i++) {
		f->rq[i].q = &f->q;
		f->rq[i].mq_hctx = &f->hctx;
		f->rq[i].bio = &f->bio;
		f->rq[i].biotail = &f->bio;
		f->rqs[i] = &f->rq[i];
	}
	blk_plug_loop_init_hctx(&f->hctx);
	KUNIT_ASSERT_NOT_NULL(test, f->hctx.plug_loop);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_exit,
							   &f->hctx));
	return f;
}

static void flush(struct fake *f, unsigned int nr)
{
	__blk_plug_loop_flush(&f->rq[0], nr);
}

/*
 * As if the last sample had been just now, a millisecond ago, with the counters
 * as they are.
 */
static void start_epoch(struct fake *f, u32 epoch)
{
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	loop->total = (struct blk_plug_adaptive_sample) {
		.ns		= ktime_get_ns() - NSEC_PER_MSEC,
		.wait_ns	= atomic64_read(&loop->wait_ns),
		.nr		= atomic_read(&loop->flushed),
		.waits		= atomic_read(&loop->waits),
		.flushes	= atomic_read(&loop->flushes),
		.merged		= atomic_read(&loop->merged),
	};
	loop->next = loop->total.nr + epoch;
}

/* A sample that makes sense, of requests that took 100 us each. */
static void take_sample(struct kunit *test, struct fake *f)
{
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	start_epoch(f, 128);
	atomic_add(128, &loop->waits);
	atomic64_add(128 * 100 * NSEC_PER_USEC, &loop->wait_ns);
	flush(f, 128);
	KUNIT_ASSERT_EQ(test, loop->sample.nr, 128);
}

static void blk_plug_loop_test_init(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	KUNIT_EXPECT_EQ(test, loop->decision, BLK_PLUG_ADAPTIVE_MAX_GROUP);
	/* a hardware queue that is reused has nothing of its former life */
	take_sample(test, f);
	loop->decision = 1 | BLK_PLUG_LOOP_RANDOM;
	loop->pinned = 1;
	loop->controller.group = 1;
	blk_plug_loop_init_hctx(&f->hctx);
	KUNIT_EXPECT_PTR_EQ(test, f->hctx.plug_loop, loop);
	KUNIT_EXPECT_EQ(test, loop->decision, BLK_PLUG_ADAPTIVE_MAX_GROUP);
	KUNIT_EXPECT_EQ(test, loop->pinned, 0);
	KUNIT_EXPECT_EQ(test, loop->controller.group,
			BLK_PLUG_ADAPTIVE_MAX_GROUP);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->flushed), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->waits), 0);
}

static void blk_plug_loop_test_counts(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	flush(f, 8);
	flush(f, 1);
	f->rq[0].biotail = &f->other_bio;
	flush(f, 32);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->flushes), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->flushed), 41);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->merged), 1);
}

/* Other modes have nothing to learn, and without memory nobody has. */
static void blk_plug_loop_test_others(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	f->q.queue_flags = BIT(QUEUE_FLAG_PLUG_SEQ_SMALL);
	flush(f, 8);
	__blk_plug_loop_completed(&f->hctx, all_tags, REQUESTS);
	__blk_plug_loop_freed(&f->rq[0]);
	f->q.queue_flags = BIT(QUEUE_FLAG_PLUG_ADAPTIVE);
	f->hctx.plug_loop = NULL;
	flush(f, 8);
	__blk_plug_loop_completed(&f->hctx, all_tags, REQUESTS);
	__blk_plug_loop_freed(&f->rq[0]);
	f->hctx.plug_loop = loop;
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->flushes), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->flushed), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->waits), 0);
}

struct due_case {
	const char *name;
	u32 counters;
};

static const struct due_case due_cases[] = {
	{ "from_zero", 0 },
	{ "wraps", -100 },
	{ "wraps_at_the_end", -512 },
	{ "sign_changes", S32_MAX - 100 },
};

KUNIT_ARRAY_PARAM_DESC(due, due_cases, name);

/* A sample is taken when due, neither before nor twice, and of all of it. */
static void blk_plug_loop_test_due(struct kunit *test)
{
	const struct due_case *c = test->param_value;
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	u32 next, epoch;
	int i;

	atomic_set(&loop->flushes, c->counters);
	atomic_set(&loop->flushed, c->counters);
	atomic_set(&loop->merged, c->counters);
	atomic_set(&loop->waits, c->counters);
	atomic64_set(&loop->wait_ns, (s32)c->counters);
	start_epoch(f, 512);
	f->rq[0].biotail = &f->other_bio;
	atomic_add(123, &loop->waits);
	atomic64_add(123456, &loop->wait_ns);
	for (i = 0; i < 15; i++)
		flush(f, 32);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 0);
	KUNIT_EXPECT_EQ(test, loop->next, c->counters + 512);

	flush(f, 32);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 512);
	KUNIT_EXPECT_EQ(test, loop->sample.flushes, 16);
	KUNIT_EXPECT_EQ(test, loop->sample.merged, 16);
	KUNIT_EXPECT_EQ(test, loop->sample.waits, 123);
	KUNIT_EXPECT_EQ(test, loop->sample.wait_ns, 123456);
	KUNIT_EXPECT_GE(test, loop->sample.ns, NSEC_PER_MSEC);
	KUNIT_EXPECT_LT(test, loop->sample.ns, 3600ULL * NSEC_PER_SEC);
	next = c->counters + 512 + loop->controller.epoch;
	KUNIT_EXPECT_EQ(test, loop->next, next);

	flush(f, 1);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 512);
	KUNIT_EXPECT_EQ(test, loop->next, next);

	/* the next one is of what came after this one alone */
	epoch = loop->controller.epoch;
	flush(f, epoch - 1);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, epoch);
	KUNIT_EXPECT_EQ(test, loop->sample.flushes, 2);
	KUNIT_EXPECT_EQ(test, loop->sample.waits, 0);
}

/* Who finds another at it goes on, and the sample is not lost. */
static void blk_plug_loop_test_busy(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	if (!IS_ENABLED(CONFIG_SMP) && !IS_ENABLED(CONFIG_DEBUG_SPINLOCK))
		kunit_skip(test, "no spinlock is ever taken here");
	start_epoch(f, 512);
	spin_lock(&loop->lock);
	flush(f, 600);
	spin_unlock(&loop->lock);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 0);
	flush(f, 1);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 601);
	flush(f, 1);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 601);
}

/* The next sample starts anew, that after it does not. */
static void blk_plug_loop_test_restart(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;

	loop->controller.group = 4;
	take_sample(test, f);
	KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_GROUP, 4);

	blk_plug_loop_restart(&f->q);
	flush(f, 1);
	KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_GROUP, 4);
	take_sample(test, f);
	KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_GROUP,
			BLK_PLUG_ADAPTIVE_MAX_GROUP);

	loop->controller.group = 4;
	take_sample(test, f);
	KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_GROUP, 4);
}

/* Submitters see the controller as it is after the sample. */
static void blk_plug_loop_test_publish(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	struct blk_plug_adaptive *c = &loop->controller;
	int i;

	for (i = 0; i < 64; i++) {
		c->group = 1 << i % 6;
		/* the last bio of each flush was merged, or none */
		f->rq[0].biotail = i % 16 < 8 ? &f->other_bio : &f->bio;
		take_sample(test, f);
		KUNIT_EXPECT_EQ(test, c->merge, i % 16 < 8);
		KUNIT_EXPECT_EQ(test, loop->decision,
				c->group |
				(c->merge ? 0 : BLK_PLUG_LOOP_RANDOM) |
				(c->first ? BLK_PLUG_LOOP_FIRST : 0) |
				(c->pair ? BLK_PLUG_LOOP_PAIR : 0));
		KUNIT_EXPECT_EQ(test, loop->sparse,
				c->state == BLK_PLUG_ADAPTIVE_PARKED);
	}
}

/* The group set by hand wins, and the controller starts anew after it. */
static void blk_plug_loop_test_pinned(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	unsigned int pinned;

	for (pinned = 1; pinned <= BLK_PLUG_ADAPTIVE_MAX_GROUP; pinned++) {
		loop->pinned = pinned;
		loop->controller.group = 4;
		loop->controller.first = true;
		take_sample(test, f);
		KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_GROUP,
				pinned);
		KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_FIRST, 0);
		KUNIT_EXPECT_EQ(test, !!(loop->decision & BLK_PLUG_LOOP_PAIR),
				pinned == 1);
		KUNIT_EXPECT_EQ(test, loop->controller.group,
				BLK_PLUG_ADAPTIVE_MAX_GROUP);
	}
	loop->pinned = 0;
	take_sample(test, f);
	KUNIT_EXPECT_EQ(test, loop->decision & BLK_PLUG_LOOP_GROUP,
			BLK_PLUG_ADAPTIVE_MAX_GROUP);
}

/* A time before @ns at which mask @picks picks a request, and @leaves not. */
static u64 start_time(u64 ns, unsigned int picks, unsigned int leaves)
{
	struct request rq = { .start_time_ns = ns };

	while (!blk_plug_loop_picks(&rq, picks) ||
	       (leaves && blk_plug_loop_picks(&rq, leaves)))
		rq.start_time_ns--;
	return rq.start_time_ns;
}

struct timed_case {
	const char *name;
	bool io_stat;			/* of the queue */
	u8 counted;			/* requests with IO_STAT, a bit each */
	unsigned int picks, leaves;	/* masks: a larger one picks fewer */
	bool sparse;
	unsigned int waits;		/* requests whose time is taken */
};

#define ALL_COUNTED	.io_stat = true, .counted = 0xf

static const struct timed_case timed_cases[] = {
	{ "all", ALL_COUNTED, .picks = 0xff, .waits = 4 },
	{ "passthrough_has_no_start_time", .io_stat = true, .counted = 0x5,
	  .picks = 0xff, .waits = 2 },
	{ "none", .io_stat = true, .picks = 0xff },
	{ "without_statistics_all_have", .picks = 0xff, .waits = 4 },
	{ "parked_takes_some", ALL_COUNTED, .picks = 0xff, .sparse = true,
	  .waits = 4 },
	{ "parked_leaves_most", ALL_COUNTED, .leaves = 1, .sparse = true },
};

KUNIT_ARRAY_PARAM_DESC(timed, timed_cases, name);

/* One without a start time must not add all the time since then. */
static void blk_plug_loop_test_completed(struct kunit *test)
{
	const struct timed_case *c = test->param_value;
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	u64 now = ktime_get_ns(), least = 0, spent;
	unsigned int weight;
	int i;

	f->q.limits.features = c->io_stat ? BLK_FEAT_IO_STAT : 0;
	loop->sparse = c->sparse;
	for (i = 0; i < REQUESTS; i++) {
		f->rq[i].start_time_ns =
			start_time(now - i * NSEC_PER_USEC,
				   c->picks, c->leaves);
		if (!c->io_stat || c->counted & BIT(i))
			least += now - f->rq[i].start_time_ns;
		if (c->counted & BIT(i))
			f->rq[i].rq_flags = RQF_IO_STAT;
		else if (c->io_stat)
			f->rq[i].start_time_ns = i ? 0 :
				f->rq[i].start_time_ns;
	}
	__blk_plug_loop_completed(&f->hctx, all_tags, REQUESTS);
	spent = ktime_get_ns() - now;
	if (!c->waits) {
		KUNIT_EXPECT_EQ(test, atomic_read(&loop->waits), 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&loop->wait_ns), 0);
		return;
	}
	/* it may stand for others that were not picked */
	weight = atomic_read(&loop->waits) / c->waits;
	KUNIT_EXPECT_GE(test, weight, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->waits), weight * c->waits);
	KUNIT_EXPECT_GE(test, (u64)atomic64_read(&loop->wait_ns),
			weight * least);
	KUNIT_EXPECT_LE(test, (u64)atomic64_read(&loop->wait_ns),
			weight * (least + c->waits * spent));
}

/* One that is freed alone counts like a batch of one. */
static void blk_plug_loop_test_freed(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	u64 now = ktime_get_ns(), start;
	unsigned int weight;

	f->q.limits.features = BLK_FEAT_IO_STAT;
	start = start_time(now, 0xff, 0);
	f->rq[0].start_time_ns = start;
	__blk_plug_loop_freed(&f->rq[0]);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->waits), 0);

	f->rq[0].rq_flags = RQF_IO_STAT;
	__blk_plug_loop_freed(&f->rq[0]);
	weight = atomic_read(&loop->waits);
	KUNIT_EXPECT_GE(test, weight, 1);
	KUNIT_EXPECT_GE(test, (u64)atomic64_read(&loop->wait_ns),
			weight * (now - start));
	KUNIT_EXPECT_LE(test, (u64)atomic64_read(&loop->wait_ns),
			weight * (ktime_get_ns() - start));

	/* how many are picked is for the loop to say, but parked few are */
	loop->sparse = true;
	f->rq[0].start_time_ns = start_time(now, 0, 1);
	__blk_plug_loop_freed(&f->rq[0]);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->waits), weight);
}

/* Those picked stand for all, in batches of any size, parked or not. */
static void blk_plug_loop_test_stand_for_all(struct kunit *test)
{
	enum { BATCHES = 1 << 14 };
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	unsigned int i, j, nr, waits;
	u64 now = ktime_get_ns();

	for (nr = 1; nr <= 2 * REQUESTS; nr++) {
		unsigned int size = (nr + 1) / 2;

		loop->sparse = nr % 2;
		atomic_set(&loop->waits, 0);
		for (i = 0; i < BATCHES; i++) {
			for (j = 0; j < size; j++)
				f->rq[j].start_time_ns = now - i * 1024;
			__blk_plug_loop_completed(&f->hctx, all_tags, size);
		}
		waits = atomic_read(&loop->waits);
		KUNIT_EXPECT_GE_MSG(test, waits, size * BATCHES * 9 / 10,
				    "batches of %u", size);
		KUNIT_EXPECT_LE_MSG(test, waits, size * BATCHES * 11 / 10,
				    "batches of %u", size);
	}
}

/* One in so many is picked, or the clock is read too often, or never. */
static void blk_plug_loop_test_picks(struct kunit *test)
{
	static const unsigned int masks[] = { 0, 1, 3, 7, 15, 63, 127 };
	enum { TIMES = 1 << 16 };
	struct request rq = {};
	unsigned int i, picked, expected;
	u64 ns;

	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		expected = TIMES / (masks[i] + 1);
		picked = 0;
		for (ns = 0; ns < TIMES; ns++) {
			/* as regular as a submitter may be */
			rq.start_time_ns = 1000000000000ULL + ns * 1024;
			picked += blk_plug_loop_picks(&rq, masks[i]);
		}
		KUNIT_EXPECT_GE_MSG(test, picked, expected * 9 / 10,
				    "mask %u", masks[i]);
		KUNIT_EXPECT_LE_MSG(test, picked, expected * 11 / 10,
				    "mask %u", masks[i]);
	}
}

/* A flush opens the next filling, and keeps what the plug has learnt. */
static void blk_plug_loop_test_plug(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->hctx.plug_loop;
	struct blk_plug plug = {
		.policy		= BLK_PLUG_LOOP_BEGUN | BLK_PLUG_LOOP_RANDOM |
				  8,
		.rq_count	= 5,
	};

	rq_list_add_tail(&plug.mq_list, &f->rq[0]);
	static_branch_inc(&blk_plug_loop_key);
	blk_plug_loop_flush(&plug);
	static_branch_dec(&blk_plug_loop_key);
	KUNIT_EXPECT_EQ(test, plug.policy,
			BLK_PLUG_LOOP_BEGUN | BLK_PLUG_LOOP_RANDOM);
	KUNIT_EXPECT_EQ(test, atomic_read(&loop->flushed), 5);
	blk_plug_policy_start(&plug);
	KUNIT_EXPECT_EQ(test, plug.policy, 0);
}

static struct kunit_case blk_plug_loop_test_cases[] = {
	KUNIT_CASE(blk_plug_loop_test_init),
	KUNIT_CASE(blk_plug_loop_test_counts),
	KUNIT_CASE(blk_plug_loop_test_others),
	KUNIT_CASE_PARAM(blk_plug_loop_test_due, due_gen_params),
	KUNIT_CASE(blk_plug_loop_test_busy),
	KUNIT_CASE(blk_plug_loop_test_restart),
	KUNIT_CASE(blk_plug_loop_test_publish),
	KUNIT_CASE(blk_plug_loop_test_pinned),
	KUNIT_CASE_PARAM(blk_plug_loop_test_completed, timed_gen_params),
	KUNIT_CASE(blk_plug_loop_test_freed),
	KUNIT_CASE(blk_plug_loop_test_stand_for_all),
	KUNIT_CASE(blk_plug_loop_test_picks),
	KUNIT_CASE(blk_plug_loop_test_plug),
	{}
};

static struct kunit_suite blk_plug_loop_test_suite = {
	.name = "blk_plug_loop",
	.test_cases = blk_plug_loop_test_cases,
};

kunit_test_suite(blk_plug_loop_test_suite);

MODULE_DESCRIPTION("KUnit tests of the plug policy's samples");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
