// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what the plug policy "adaptive" counts, when it samples, and
 * what submitters see of the controller.  What the controller makes of a sample
 * is tested on its own.  A row is named for what would break if it failed.
 */
#include <kunit/test.h>
#include <linux/blkdev.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "../blk.h"
#include "../blk-mq.h"
#include "../blk-plug-times.h"
#include "../elevator.h"
#include "blk_plug_hctxs.h"

enum {
	REQUESTS	= 4,
	/* a CPU reports its I/Os once in this many */
	FOLD		= 128,
};

/* The type of the hardware queues; the first one might hide a missing index. */
#define TYPE	HCTX_TYPE_READ

/*
 * A queue on "adaptive".  The first hardware queue is its only one, and all
 * CPUs map to it.
 */
struct fake {
	struct request_queue q;
	struct blk_mq_ops ops;
	struct blk_mq_tag_set set;
	struct blk_mq_hw_ctx hctx, other, *hctxs[2];
	struct blk_mq_ctx *ctxs[NR_CPUS];
	struct blk_mq_tags tags;
	struct request rq[REQUESTS], *rqs[REQUESTS];
	struct elevator_queue elevator;
	struct blk_plug_loop *loop;		/* that of hctx */
	struct blk_plug_loop_cpu *count;	/* that of this CPU for hctx */
};

static const int all_tags[REQUESTS] = { 0, 1, 2, 3 };

static void fake_queue_rqs(struct rq_list *list)
{
}

static void fake_free_hctx(struct blk_mq_hw_ctx *hctx)
{
	blk_plug_loop_free_hctx(hctx);
}

static void fake_exit(void *data)
{
	struct fake *f = data;

	fake_free_hctx(&f->hctx);
	fake_free_hctx(&f->other);
	blk_plug_loop_free(&f->q);
	blk_plug_test_free_hctxs(&f->q);
	free_percpu(f->q.queue_ctx);
}

static void fake_hctx(struct kunit *test, struct fake *f,
		      struct blk_mq_hw_ctx *hctx)
{
	hctx->queue = &f->q;
	hctx->numa_node = NUMA_NO_NODE;
	hctx->type = TYPE;
	hctx->tags = &f->tags;
}

static void fake_map(struct fake *f, enum hctx_type type,
		     struct blk_mq_hw_ctx *hctx)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		per_cpu_ptr(f->q.queue_ctx, cpu)->hctxs[type] = hctx;
}

static void fake_ctxs(struct fake *f, struct blk_mq_hw_ctx *hctx)
{
	struct blk_mq_ctx *ctx;
	unsigned int cpu;

	hctx->ctxs = f->ctxs;
	for_each_possible_cpu(cpu) {
		ctx = per_cpu_ptr(f->q.queue_ctx, cpu);
		ctx->cpu = cpu;
		hctx->ctxs[hctx->nr_ctx++] = ctx;
	}
}

static void fake_requests(struct fake *f)
{
	int i;

	f->tags.rqs = f->rqs;
	for (i = 0; i < REQUESTS; i++) {
		f->rq[i].q = &f->q;
		f->rq[i].mq_hctx = &f->hctx;
		f->rq[i].nr_phys_segments = 1;
		f->rqs[i] = &f->rq[i];
	}
}

static void fake_queue(struct kunit *test, struct fake *f)
{
	f->q.queue_flags = BIT(QUEUE_FLAG_PLUG_ADAPTIVE);
	f->ops.queue_rqs = fake_queue_rqs;
	f->q.mq_ops = &f->ops;
	f->q.tag_set = &f->set;
	f->hctxs[0] = &f->hctx;
	f->hctxs[1] = &f->other;
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_test_set_hctxs(&f->q, f->hctxs, 1));
	f->q.queue_ctx = alloc_percpu(struct blk_mq_ctx);
	KUNIT_ASSERT_NOT_NULL(test, f->q.queue_ctx);
}

/* A queue whose loops have not been allocated. */
static struct fake *fake_bare(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, fake_exit, f));
	fake_queue(test, f);
	fake_hctx(test, f, &f->hctx);
	fake_hctx(test, f, &f->other);
	fake_map(f, TYPE, &f->hctx);
	fake_ctxs(f, &f->hctx);
	fake_requests(f);
	return f;
}

/* Keeps the test on one CPU, whose counters are f->count. */
static struct fake *fake_alloc(struct kunit *test)
{
	const struct cpumask *here = cpumask_of(raw_smp_processor_id());
	struct fake *f = fake_bare(test);

	KUNIT_ASSERT_EQ(test, 0, set_cpus_allowed_ptr(current, here));
	KUNIT_ASSERT_EQ(test, 0, blk_plug_loop_alloc(&f->q));
	f->loop = f->hctx.plug_loop;
	KUNIT_ASSERT_NOT_NULL(test, f->loop);
	f->count = raw_cpu_ptr(f->q.plug_loop_cpu) + TYPE;
	return f;
}

static void sent(struct fake *f, unsigned int nr, unsigned int merged)
{
	blk_plug_loop_sent(&f->hctx, nr, merged);
}

/*
 * Pretend that the last sample ended a millisecond ago, with the counters as
 * they are.
 */
static void start_epoch(struct fake *f, u32 epoch)
{
	f->loop->resets = f->q.plug_policy_resets;
	f->loop->total = (struct blk_plug_adaptive_sample) {
		.ns		= ktime_get_ns() - NSEC_PER_MSEC,
		.wait_ns	= f->count->wait,
		.nr		= f->count->sent,
		.waits		= f->count->waits,
		.flushes	= f->count->flushes,
		.merged		= f->count->merged,
	};
	f->loop->next = atomic_read(&f->loop->folded) + epoch;
}

/* Take a sensible sample, of requests that took 100 us each. */
static void take_sample(struct kunit *test, struct fake *f,
			unsigned int merged)
{
	start_epoch(f, FOLD);
	f->count->waits += FOLD - merged;
	f->count->wait += (FOLD - merged) * 100 * NSEC_PER_USEC / 256;
	sent(f, FOLD - merged, merged);
	KUNIT_ASSERT_EQ(test, f->loop->sample.nr, FOLD);
}

/* --- memory --------------------------------------------------------------- */

struct alloc_case {
	const char *name;
	bool blocking, no_queue_rqs;
	bool gets;
};

static const struct alloc_case alloc_cases[] = {
	{ "useful", .gets = true },
	{ "blocking_sends_no_groups", .blocking = true },
	{ "driver_takes_no_groups", .no_queue_rqs = true },
};

KUNIT_ARRAY_PARAM_DESC(alloc, alloc_cases, name);

/* A queue that gains nothing from "adaptive" must not allocate for it. */
static void blk_plug_loop_test_alloc(struct kunit *test)
{
	const struct alloc_case *c = test->param_value;
	struct fake *f = fake_bare(test);

	f->set.flags = c->blocking ? BLK_MQ_F_BLOCKING : 0;
	f->ops.queue_rqs = c->no_queue_rqs ? NULL : fake_queue_rqs;
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_test_set_hctxs(&f->q, f->hctxs, 2));
	KUNIT_EXPECT_EQ(test, blk_plug_loop_alloc(&f->q), 0);
	KUNIT_EXPECT_EQ(test, !!f->q.plug_loop_cpu, c->gets);
	KUNIT_EXPECT_EQ(test, !!f->hctx.plug_loop, c->gets);
	KUNIT_EXPECT_EQ(test, !!f->other.plug_loop, c->gets);
}

/*
 * Setting the mode again must neither lose what is there nor miss a new hctx.
 */
static void blk_plug_loop_test_alloc_again(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop_cpu __percpu *cpu = f->q.plug_loop_cpu;

	f->loop->pinned = 3;
	f->count->sent = 1000;
	KUNIT_ASSERT_EQ(test, 0,
			blk_plug_test_set_hctxs(&f->q, f->hctxs, 2));
	KUNIT_EXPECT_EQ(test, blk_plug_loop_alloc(&f->q), 0);
	KUNIT_EXPECT_TRUE(test, f->q.plug_loop_cpu == cpu);
	KUNIT_EXPECT_EQ(test, f->count->sent, 1000);
	KUNIT_EXPECT_PTR_EQ(test, f->hctx.plug_loop, f->loop);
	KUNIT_EXPECT_EQ(test, f->loop->pinned, 3);
	KUNIT_ASSERT_NOT_NULL(test, f->other.plug_loop);
	KUNIT_EXPECT_TRUE(test, f->other.plug_loop->cpu == cpu);
}

/* A queue never on "adaptive" allocates nothing, even when it grows. */
static void blk_plug_loop_test_new_hctx(struct kunit *test)
{
	struct fake *f = fake_bare(test);

	blk_plug_loop_init_hctx(&f->other);
	KUNIT_EXPECT_NULL(test, f->other.plug_loop);
	KUNIT_ASSERT_EQ(test, blk_plug_loop_alloc(&f->q), 0);
	blk_plug_loop_init_hctx(&f->other);
	KUNIT_EXPECT_NOT_NULL(test, f->other.plug_loop);
	KUNIT_EXPECT_EQ(test, blk_plug_loop_decision(&f->other),
			BLK_PLUG_ADAPTIVE_MAX_GROUP);
}

/* A reused hardware queue must keep nothing of its former life. */
static void blk_plug_loop_test_reused_hctx(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->loop;
	unsigned int epoch;

	take_sample(test, f, 0);
	loop->decision = 1 | BLK_PLUG_LOOP_RANDOM;
	loop->pinned = 1;
	loop->controller.group = 1;
	blk_plug_loop_init_hctx(&f->hctx);
	KUNIT_EXPECT_PTR_EQ(test, f->hctx.plug_loop, loop);
	KUNIT_EXPECT_TRUE(test, loop->cpu == f->q.plug_loop_cpu);
	KUNIT_EXPECT_EQ(test, blk_plug_loop_decision(&f->hctx),
			BLK_PLUG_ADAPTIVE_MAX_GROUP);
	KUNIT_EXPECT_EQ(test, loop->pinned, 0);
	KUNIT_EXPECT_EQ(test, loop->controller.group,
			BLK_PLUG_ADAPTIVE_MAX_GROUP);

	/* what CPUs counted before must not be in its first sample */
	sent(f, FOLD, 0);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 0);
	epoch = roundup(loop->controller.epoch, FOLD);
	sent(f, epoch, 0);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, epoch);
	KUNIT_EXPECT_EQ(test, loop->sample.flushes, 1);
}

/* --- counters ------------------------------------------------------------- */

struct counts_case {
	const char *name;
	unsigned int type;
	unsigned int nr, merged;
	struct blk_plug_loop_cpu count;
};

static const struct counts_case counts_cases[] = {
	{ "one", HCTX_TYPE_READ, 1, 0, { .flushes = 1, .sent = 1 } },
	{ "group", HCTX_TYPE_READ, 32, 0, { .flushes = 1, .sent = 32 } },
	{ "an_io_is_a_bio", HCTX_TYPE_READ, 2, 6,
	  { .flushes = 1, .sent = 8, .merged = 6 } },
	{ "merged_alone_are_no_flush", HCTX_TYPE_READ, 0, 99,
	  { .sent = 99, .merged = 99 } },
	{ "default_type", HCTX_TYPE_DEFAULT, 2, 6,
	  { .flushes = 1, .sent = 8, .merged = 6 } },
	{ "poll_type", HCTX_TYPE_POLL, 2, 6,
	  { .flushes = 1, .sent = 8, .merged = 6 } },
};

KUNIT_ARRAY_PARAM_DESC(counts, counts_cases, name);

static void blk_plug_loop_test_counts(struct kunit *test)
{
	const struct counts_case *c = test->param_value;
	const struct blk_plug_loop_cpu none = {}, *count;
	struct fake *f = fake_alloc(test);
	int type;

	f->hctx.type = c->type;
	sent(f, c->nr, c->merged);
	for (type = 0; type < HCTX_MAX_TYPES; type++) {
		count = type == c->type ? &c->count : &none;
		KUNIT_EXPECT_MEMEQ(test, f->count - TYPE + type, count,
				   sizeof(*count));
	}
}

struct fold_case {
	const char *name;
	u32 before;			/* sent by this CPU so far */
	unsigned int nr, merged;
	u32 folded;
};

static const struct fold_case fold_cases[] = {
	{ "127_stay_on_the_cpu", 0, 127, 0, 0 },
	{ "128th_tells", 127, 1, 0, 128 },
	{ "merged_ones_count", 120, 4, 4, 128 },
	{ "129th_has_been_told", 128, 1, 0, 0 },
	{ "rest_stays", 100, 60, 0, 128 },
	{ "several_at_once", 100, 300, 0, 384 },
	{ "wraps_with_the_128th", -1, 1, 0, 128 },
	{ "wraps_and_keeps_the_rest", -28, 32, 32, 128 },
	{ "before_it_wraps", -128, 127, 0, 0 },
	{ "sign_changes", S32_MAX, 1, 0, 128 },
	{ "merged_alone", 0, 0, 255, 128 },
};

KUNIT_ARRAY_PARAM_DESC(fold, fold_cases, name);

static void blk_plug_loop_test_fold(struct kunit *test)
{
	const struct fold_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	f->count->sent = c->before;
	start_epoch(f, S32_MAX);
	sent(f, c->nr, c->merged);
	KUNIT_EXPECT_EQ(test, (u32)atomic_read(&f->loop->folded), c->folded);
	KUNIT_EXPECT_EQ(test, f->count->sent, c->before + c->nr + c->merged);
	KUNIT_EXPECT_EQ(test, f->loop->sample.nr, 0);
}

/* A start time up to @ns that mask @picks picks and mask @leaves does not. */
static u64 start_time(u64 ns, unsigned int picks, unsigned int leaves)
{
	struct request rq = { .start_time_ns = ns };

	while (!blk_plug_loop_picks(&rq, picks) ||
	       (leaves && blk_plug_loop_picks(&rq, leaves)))
		rq.start_time_ns--;
	return rq.start_time_ns;
}

/* Complete all requests together, then one alone; any mask picks them. */
static void complete_all_requests(struct fake *f)
{
	u64 start = start_time(ktime_get_ns() - NSEC_PER_MSEC, 0xff, 0);
	int i;

	for (i = 0; i < REQUESTS; i++)
		f->rq[i].start_time_ns = start;
	__blk_plug_loop_completed(&f->hctx, all_tags, REQUESTS);
	__blk_plug_loop_freed(&f->rq[0]);
}

struct uncounted_case {
	const char *name;
	unsigned long flags;
	bool elevator, no_memory;
	bool counts;
};

static const struct uncounted_case uncounted_cases[] = {
	{ "adaptive_counts", BIT(QUEUE_FLAG_PLUG_ADAPTIVE), .counts = true },
	{ "seq_small", BIT(QUEUE_FLAG_PLUG_SEQ_SMALL) },
	{ "never", BIT(QUEUE_FLAG_PLUG_NEVER) },
	{ "always", 0 },
	{ "elevator_has_what_plugs_held", BIT(QUEUE_FLAG_PLUG_ADAPTIVE),
	  .elevator = true },
	{ "no_memory", BIT(QUEUE_FLAG_PLUG_ADAPTIVE), .no_memory = true },
};

KUNIT_ARRAY_PARAM_DESC(uncounted, uncounted_cases, name);

/* Other modes do not count; without memory, nobody does. */
static void blk_plug_loop_test_uncounted(struct kunit *test)
{
	const struct uncounted_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	f->q.queue_flags = c->flags;
	f->q.elevator = c->elevator ? &f->elevator : NULL;
	if (c->no_memory)
		f->hctx.plug_loop = NULL;
	sent(f, 8, 2);
	complete_all_requests(f);
	f->hctx.plug_loop = f->loop;
	KUNIT_EXPECT_EQ(test, !!f->count->flushes, c->counts);
	KUNIT_EXPECT_EQ(test, !!f->count->sent, c->counts);
	KUNIT_EXPECT_EQ(test, !!f->count->merged, c->counts);
	KUNIT_EXPECT_EQ(test, !!f->count->waits, c->counts);
	KUNIT_EXPECT_EQ(test, !!f->count->wait, c->counts);
}

/* Which hardware queue this CPU maps to. */
enum maps { NONE, OWN, OTHER };

struct foreign_case {
	const char *name;
	enum maps type, default_type;
	bool counts;
};

static const struct foreign_case foreign_cases[] = {
	{ "own_cpu", OWN, .counts = true },
	{ "cpu_of_another", OTHER },
	{ "no_queue_of_the_type", NONE },
	{ "another_type_is_elsewhere", OWN, OTHER, .counts = true },
	{ "own_only_for_another_type", OTHER, OWN },
};

KUNIT_ARRAY_PARAM_DESC(foreign, foreign_cases, name);

/* A completion on another hctx's CPU must not get into that hctx's sample. */
static void blk_plug_loop_test_foreign(struct kunit *test)
{
	const struct foreign_case *c = test->param_value;
	struct fake *f = fake_alloc(test);
	struct blk_mq_hw_ctx *maps[] = { NULL, &f->hctx, &f->other };

	fake_map(f, TYPE, maps[c->type]);
	fake_map(f, HCTX_TYPE_DEFAULT, maps[c->default_type]);
	complete_all_requests(f);
	KUNIT_EXPECT_EQ(test, !!f->count->waits, c->counts);
	KUNIT_EXPECT_EQ(test, !!f->count->wait, c->counts);
	/* a submitter knows whose request it is, wherever it runs */
	sent(f, 8, 0);
	KUNIT_EXPECT_EQ(test, f->count->sent, 8);
}

/* --- samples -------------------------------------------------------------- */

struct due_case {
	const char *name;
	u32 counters, folded;
};

static const struct due_case due_cases[] = {
	{ "from_zero" },
	{ "counters_wrap", .counters = -256 },
	{ "counters_wrap_at_the_end", .counters = -512 },
	{ "counters_wrap_within_a_fold", .counters = -100 },
	{ "counters_change_sign", .counters = S32_MAX - 100 },
	{ "folded_wraps", .folded = -256 },
	{ "folded_wraps_at_the_end", .folded = -512 },
	{ "folded_changes_sign", .folded = S32_MAX - 127 },
};

KUNIT_ARRAY_PARAM_DESC(due, due_cases, name);

/* In an epoch of 512 I/Os, all have been sent out but those of one flush. */
static struct fake *fake_almost_due(struct kunit *test)
{
	const struct due_case *c = test->param_value;
	struct fake *f = fake_alloc(test);
	int i;

	*f->count = (struct blk_plug_loop_cpu) {
		.wait		= (long)(s32)c->counters,
		.waits		= c->counters,
		.flushes	= c->counters,
		.sent		= c->counters,
		.merged		= c->counters,
	};
	atomic_set(&f->loop->folded, c->folded);
	start_epoch(f, 512);
	f->count->waits += 123;
	f->count->wait += 456;
	for (i = 0; i < 15; i++)
		sent(f, 28, 4);
	return f;
}

/* A sample is taken when due, not before, not twice, and covers all of it. */
static void blk_plug_loop_test_due(struct kunit *test)
{
	const struct due_case *c = test->param_value;
	struct fake *f = fake_almost_due(test);
	struct blk_plug_loop *loop = f->loop;
	u32 next;

	KUNIT_EXPECT_EQ(test, loop->sample.nr, 0);
	KUNIT_EXPECT_EQ(test, loop->next, c->folded + 512);
	sent(f, 28, 4);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 512);
	KUNIT_EXPECT_EQ(test, loop->sample.flushes, 16);
	KUNIT_EXPECT_EQ(test, loop->sample.merged, 64);
	KUNIT_EXPECT_EQ(test, loop->sample.waits, 123);
	KUNIT_EXPECT_EQ(test, loop->sample.wait_ns, 456 * 256);
	KUNIT_EXPECT_GE(test, loop->sample.ns, NSEC_PER_MSEC);
	KUNIT_EXPECT_LT(test, loop->sample.ns, 3600ULL * NSEC_PER_SEC);
	next = c->folded + 512 + loop->controller.epoch;
	KUNIT_EXPECT_EQ(test, loop->next, next);

	sent(f, 1, 0);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 512);
	KUNIT_EXPECT_EQ(test, loop->next, next);
}

/* The next sample covers only what came after this one. */
static void blk_plug_loop_test_next(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	u32 epoch;

	take_sample(test, f, 4);
	epoch = roundup(f->loop->controller.epoch, FOLD);
	sent(f, 1, 0);
	sent(f, epoch - 1, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.nr, epoch);
	KUNIT_EXPECT_EQ(test, f->loop->sample.flushes, 2);
	KUNIT_EXPECT_EQ(test, f->loop->sample.merged, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.waits, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.wait_ns, 0);
}

/* A sum of response times may wrap, as it does where longs have 32 bits. */
static void blk_plug_loop_test_wait_wraps(struct kunit *test)
{
	struct fake *f = fake_alloc(test);

	f->count->wait = -1000;
	start_epoch(f, FOLD);
	f->count->wait += 3000;
	sent(f, FOLD, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.wait_ns, 3000 * 256);
	/* more than 32 bits in ns, but not in 256 ns */
	start_epoch(f, FOLD);
	f->count->wait += 1UL << 30;
	sent(f, FOLD, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.wait_ns, 1ULL << 38);
}

/* A sample adds up the CPUs that map to the hardware queue, and no others. */
static void blk_plug_loop_test_cpus(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int cpu;

	start_epoch(f, FOLD);
	for_each_possible_cpu(cpu) {
		struct blk_plug_loop_cpu *count =
			per_cpu_ptr(f->q.plug_loop_cpu, cpu);

		count[TYPE].sent += FOLD;
		count[TYPE].merged += 2;
		count[TYPE].flushes += 3;
		count[TYPE].waits += 4;
		count[TYPE].wait += 5;
		memset(&count[HCTX_TYPE_DEFAULT], 1, sizeof(*count));
	}
	sent(f, FOLD, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.nr,
			(num_possible_cpus() + 1) * FOLD);
	KUNIT_EXPECT_EQ(test, f->loop->sample.merged, num_possible_cpus() * 2);
	KUNIT_EXPECT_EQ(test, f->loop->sample.flushes,
			num_possible_cpus() * 3 + 1);
	KUNIT_EXPECT_EQ(test, f->loop->sample.waits, num_possible_cpus() * 4);
	KUNIT_EXPECT_EQ(test, f->loop->sample.wait_ns,
			num_possible_cpus() * 5 * 256);

	f->hctx.nr_ctx = 0;
	blk_plug_loop_restart(&f->q);
	sent(f, roundup(f->loop->controller.epoch, FOLD), 0);
	KUNIT_EXPECT_EQ(test, f->loop->resets, f->q.plug_policy_resets);
	KUNIT_EXPECT_EQ(test, f->loop->total.nr, 0);
}

/* If another CPU holds the lock, go on; the sample must not be lost. */
static void blk_plug_loop_test_busy(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->loop;

	if (!IS_ENABLED(CONFIG_SMP) && !IS_ENABLED(CONFIG_DEBUG_SPINLOCK))
		kunit_skip(test, "no spinlock is ever taken here");
	start_epoch(f, 512);
	spin_lock(&loop->lock);
	sent(f, 512, 0);
	spin_unlock(&loop->lock);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 0);
	sent(f, FOLD, 0);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 512 + FOLD);
	sent(f, FOLD, 0);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 512 + FOLD);
}

/* --- decisions ------------------------------------------------------------ */

struct decision_case {
	const char *name;
	bool no_memory, restarted;
	u8 decided, pinned;
	unsigned int decision;
};

static const struct decision_case decision_cases[] = {
	{ "no_memory_as_always", .no_memory = true, .decided = 1,
	  .decision = 32 },
	{ "as_decided", .decided = 4, .decision = 4 },
	{ "as_decided_without_lookups", .decided = 2 | BLK_PLUG_LOOP_RANDOM,
	  .decision = 2 | BLK_PLUG_LOOP_RANDOM },
	{ "restart_forgets_at_once", .restarted = true,
	  .decided = 1 | BLK_PLUG_LOOP_RANDOM, .decision = 32 },
	{ "restart_keeps_the_pin", .restarted = true, .pinned = 5,
	  .decided = 5 | BLK_PLUG_LOOP_RANDOM, .decision = 5 },
};

KUNIT_ARRAY_PARAM_DESC(decision, decision_cases, name);

static void blk_plug_loop_test_decision(struct kunit *test)
{
	const struct decision_case *c = test->param_value;
	struct fake *f = fake_alloc(test);

	start_epoch(f, 512);
	f->loop->decision = c->decided;
	f->loop->pinned = c->pinned;
	if (c->restarted)
		blk_plug_loop_restart(&f->q);
	if (c->no_memory)
		f->hctx.plug_loop = NULL;
	KUNIT_EXPECT_EQ(test, blk_plug_loop_decision(&f->hctx), c->decision);
	f->hctx.plug_loop = f->loop;
}

/* Has learnt something, and is near the end of an epoch of 512. */
static void learn(struct fake *f)
{
	start_epoch(f, 512);
	f->loop->controller.group = 4;
	f->loop->controller.merge = false;
	f->loop->decision = 4 | BLK_PLUG_LOOP_RANDOM;
	f->count->waits += 100;
	f->count->wait += 100;
	sent(f, 397, 3);
}

/* A restart forgets what was learnt before, and what was counted. */
static void blk_plug_loop_test_restart(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->loop;
	unsigned int epoch;

	learn(f);
	KUNIT_EXPECT_EQ(test, blk_plug_loop_decision(&f->hctx),
			4 | BLK_PLUG_LOOP_RANDOM);
	blk_plug_loop_restart(&f->q);
	KUNIT_EXPECT_EQ(test, blk_plug_loop_decision(&f->hctx),
			BLK_PLUG_ADAPTIVE_MAX_GROUP);
	sent(f, 112, 0);
	KUNIT_EXPECT_EQ(test, loop->resets, f->q.plug_policy_resets);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, 0);
	KUNIT_EXPECT_EQ(test, loop->controller.group,
			BLK_PLUG_ADAPTIVE_MAX_GROUP);
	KUNIT_EXPECT_EQ(test, loop->decision, BLK_PLUG_ADAPTIVE_MAX_GROUP);
	KUNIT_EXPECT_EQ(test, loop->next, 512 + loop->controller.epoch);

	epoch = roundup(loop->controller.epoch, FOLD);
	sent(f, epoch - 4, 4);
	KUNIT_EXPECT_EQ(test, loop->sample.nr, epoch);
	KUNIT_EXPECT_EQ(test, loop->sample.flushes, 1);
	KUNIT_EXPECT_EQ(test, loop->sample.merged, 4);
	KUNIT_EXPECT_EQ(test, loop->sample.waits, 0);
	KUNIT_EXPECT_EQ(test, loop->sample.wait_ns, 0);
}

/* One restart must start anew only once. */
static void blk_plug_loop_test_restart_once(struct kunit *test)
{
	struct fake *f = fake_alloc(test);

	learn(f);
	blk_plug_loop_restart(&f->q);
	sent(f, 112, 0);
	KUNIT_EXPECT_EQ(test, f->loop->sample.nr, 0);
	f->loop->controller.group = 8;
	take_sample(test, f, 0);
	KUNIT_EXPECT_EQ(test, f->loop->decision & BLK_PLUG_LOOP_GROUP, 8);
}

/* Submitters must see what the controller decided on the sample. */
static void blk_plug_loop_test_publish(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_adaptive *c = &f->loop->controller;
	unsigned int i, seen = 0;

	for (i = 0; i < 64; i++) {
		c->group = 1 << i % 6;
		take_sample(test, f, i % 16 < 8 ? FOLD / 2 : 0);
		KUNIT_EXPECT_EQ(test, f->loop->decision,
				c->group |
				(c->merge ? 0 : BLK_PLUG_LOOP_RANDOM));
		seen |= BIT(c->merge);
	}
	/* or the above has tested little */
	KUNIT_EXPECT_EQ(test, seen, BIT(false) | BIT(true));
}

/* A parked loop takes few response times, and must take more afterwards. */
static void blk_plug_loop_test_sparse(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_adaptive *c = &f->loop->controller;
	unsigned int i;

	/* the controller keeps its state while it is pinned */
	blk_plug_adaptive_init(c, 8);
	for (i = 0; i < 2 * BLK_PLUG_ADAPTIVE_STATES; i++) {
		c->state = i % BLK_PLUG_ADAPTIVE_STATES;
		take_sample(test, f, 0);
		KUNIT_EXPECT_EQ(test, c->state, i % BLK_PLUG_ADAPTIVE_STATES);
		KUNIT_EXPECT_EQ(test, f->loop->sparse,
				c->state == BLK_PLUG_ADAPTIVE_PARKED);
	}
}

static void restart_and_renew(struct kunit *test, struct fake *f)
{
	start_epoch(f, FOLD);
	blk_plug_loop_restart(&f->q);
	sent(f, FOLD, 0);
	KUNIT_ASSERT_EQ(test, f->loop->resets, f->q.plug_policy_resets);
}

/* A group set by hand stays until it is released by hand. */
static void blk_plug_loop_test_pinned(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	unsigned int pinned;

	for (pinned = 1; pinned <= BLK_PLUG_ADAPTIVE_MAX_GROUP; pinned++) {
		f->loop->pinned = pinned;
		restart_and_renew(test, f);
		KUNIT_EXPECT_EQ(test, f->loop->decision, pinned);
		take_sample(test, f, 0);
		take_sample(test, f, 0);
		KUNIT_EXPECT_EQ(test, f->loop->decision & BLK_PLUG_LOOP_GROUP,
				pinned);
	}
	f->loop->pinned = 0;
	restart_and_renew(test, f);
	KUNIT_EXPECT_EQ(test, f->loop->decision, BLK_PLUG_ADAPTIVE_MAX_GROUP);
	KUNIT_EXPECT_FALSE(test, f->loop->controller.pinned);
}

/* A pin must not decide whether bios look for merges. */
static void blk_plug_loop_test_pinned_looks(struct kunit *test)
{
	struct fake *f = fake_alloc(test);

	f->loop->pinned = 8;
	restart_and_renew(test, f);
	take_sample(test, f, 0);
	KUNIT_EXPECT_EQ(test, f->loop->decision, 8 | BLK_PLUG_LOOP_RANDOM);
	take_sample(test, f, FOLD / 2);
	KUNIT_EXPECT_EQ(test, f->loop->decision, 8);
}

/* Several merges in one plug are enough to look for more at once. */
static void blk_plug_loop_test_merges_at_once(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	struct blk_plug_loop *loop = f->loop;

	start_epoch(f, 512);
	loop->decision = 8 | BLK_PLUG_LOOP_RANDOM;
	sent(f, 1, BLK_PLUG_ADAPTIVE_SEQUENTIAL - 1);
	KUNIT_EXPECT_EQ(test, loop->decision, 8 | BLK_PLUG_LOOP_RANDOM);
	sent(f, 1, BLK_PLUG_ADAPTIVE_SEQUENTIAL);
	KUNIT_EXPECT_EQ(test, loop->decision, 8);
}

/* On each CPU, one plug in 32 looks for merges anyway. */
static void blk_plug_loop_test_probes(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	int i, probes = 0;

	for (i = 0; i < 3 * BLK_PLUG_ADAPTIVE_RARE; i++) {
		f->count->flushes = i;
		probes += blk_plug_loop_probes(&f->hctx);
	}
	KUNIT_EXPECT_EQ(test, probes, 3);
}

/* --- response times ------------------------------------------------------- */

struct timed_case {
	const char *name;
	bool io_stat;			/* of the queue */
	u8 counted;			/* bit mask of requests with IO_STAT */
	u8 passthrough, unused;		/* likewise */
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
	{ "without_statistics_passthrough_has_an_old_one", .passthrough = 0x3,
	  .picks = 0xff, .waits = 2 },
	{ "without_statistics_unused_ones_have_an_old_one", .unused = 0x7,
	  .picks = 0xff, .waits = 1 },
	{ "of_large_batches_each", ALL_COUNTED, .leaves = 1, .waits = 4 },
	{ "parked_takes_some", ALL_COUNTED, .picks = 0xff, .sparse = true,
	  .waits = 4 },
	{ "parked_leaves_most", ALL_COUNTED, .leaves = 1, .sparse = true },
};

KUNIT_ARRAY_PARAM_DESC(timed, timed_cases, name);

/* Fills in requests; returns the sum of the times from their start to @now. */
static u64 fake_times(struct fake *f, const struct timed_case *c, u64 now)
{
	u64 sum = 0;
	int i;

	f->q.limits.features = c->io_stat ? BLK_FEAT_IO_STAT : 0;
	for (i = 0; i < REQUESTS; i++) {
		struct request *rq = &f->rq[i];

		rq->start_time_ns = start_time(now - i * NSEC_PER_MSEC,
					       c->picks, c->leaves);
		if (c->passthrough & BIT(i))
			rq->cmd_flags = REQ_OP_DRV_IN;
		else if (c->unused & BIT(i))
			rq->nr_phys_segments = 0;
		else if (!c->io_stat || c->counted & BIT(i))
			sum += now - rq->start_time_ns;
		if (c->counted & BIT(i))
			rq->rq_flags = RQF_IO_STAT;
		else if (c->io_stat && i)
			rq->start_time_ns = 0;
	}
	return sum;
}

/* A request without a start time must not add all the time since boot. */
static void blk_plug_loop_test_completed(struct kunit *test)
{
	const struct timed_case *c = test->param_value;
	struct fake *f = fake_alloc(test);
	u64 now = ktime_get_ns(), least, spent;
	unsigned int weight;

	f->loop->sparse = c->sparse;
	least = fake_times(f, c, now);
	__blk_plug_loop_completed(&f->hctx, all_tags, REQUESTS);
	spent = ktime_get_ns() - now;
	if (!c->waits) {
		KUNIT_EXPECT_EQ(test, f->count->waits, 0);
		KUNIT_EXPECT_EQ(test, f->count->wait, 0);
		return;
	}
	/* the batch may stand for others that were not picked */
	weight = f->count->waits / c->waits;
	KUNIT_EXPECT_GE(test, weight, 1);
	KUNIT_EXPECT_EQ(test, f->count->waits, weight * c->waits);
	KUNIT_EXPECT_GE(test, f->count->wait, weight * least >> 8);
	KUNIT_EXPECT_LE(test, f->count->wait,
			weight * (least + c->waits * spent) >> 8);
}

/* A request that is freed alone counts like a batch of one. */
static void blk_plug_loop_test_freed(struct kunit *test)
{
	struct fake *f = fake_alloc(test);
	u64 now = ktime_get_ns(), start;
	unsigned int weight;

	f->q.limits.features = BLK_FEAT_IO_STAT;
	start = start_time(now - NSEC_PER_MSEC, 0xff, 0);
	f->rq[0].start_time_ns = start;
	__blk_plug_loop_freed(&f->rq[0]);
	KUNIT_EXPECT_EQ(test, f->count->waits, 0);

	f->rq[0].rq_flags = RQF_IO_STAT;
	__blk_plug_loop_freed(&f->rq[0]);
	weight = f->count->waits;
	KUNIT_EXPECT_GE(test, weight, 1);
	KUNIT_EXPECT_GE(test, f->count->wait, weight * (now - start) >> 8);
	KUNIT_EXPECT_LE(test, f->count->wait,
			weight * (ktime_get_ns() - start) >> 8);

	/* the loop decides how many it picks, but few while parked */
	f->loop->sparse = true;
	f->rq[0].start_time_ns = start_time(now, 0, 1);
	__blk_plug_loop_freed(&f->rq[0]);
	KUNIT_EXPECT_EQ(test, f->count->waits, weight);
}

/* Weights must make up for the unpicked, in any batch size, parked or not. */
static void blk_plug_loop_test_stand_for_all(struct kunit *test)
{
	enum { BATCHES = 1 << 14 };
	struct fake *f = fake_alloc(test);
	unsigned int i, j, nr, size;
	u64 now = ktime_get_ns();

	for (nr = 1; nr <= 2 * REQUESTS; nr++) {
		size = (nr + 1) / 2;
		f->loop->sparse = nr % 2;
		f->count->waits = 0;
		for (i = 0; i < BATCHES; i++) {
			for (j = 0; j < size; j++)
				f->rq[j].start_time_ns = now - i * 1024;
			__blk_plug_loop_completed(&f->hctx, all_tags, size);
		}
		KUNIT_EXPECT_GE_MSG(test, f->count->waits,
				    size * BATCHES * 9 / 10,
				    "batches of %u", size);
		KUNIT_EXPECT_LE_MSG(test, f->count->waits,
				    size * BATCHES * 11 / 10,
				    "batches of %u", size);
	}
}

/* One in mask + 1 is picked: not more, as it reads the clock, nor none. */
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
			/* as regular as a submitter can be */
			rq.start_time_ns = 1000000000000ULL + ns * 1024;
			picked += blk_plug_loop_picks(&rq, masks[i]);
		}
		KUNIT_EXPECT_GE_MSG(test, picked, expected * 9 / 10,
				    "mask %u", masks[i]);
		KUNIT_EXPECT_LE_MSG(test, picked, expected * 11 / 10,
				    "mask %u", masks[i]);
	}
}

/* Requests that share the plug's reading of the clock are told apart. */
static void blk_plug_loop_test_picks_by_tag(struct kunit *test)
{
	enum { TAGS = 1 << 12 };
	struct request rq = { .start_time_ns = 1000000000000ULL };
	unsigned int picked = 0;

	for (rq.tag = 0; rq.tag < TAGS; rq.tag++)
		picked += blk_plug_loop_picks(&rq, 3);
	KUNIT_EXPECT_GE(test, picked, TAGS / 4 * 9 / 10);
	KUNIT_EXPECT_LE(test, picked, TAGS / 4 * 11 / 10);
}

/* Without statistics, only "adaptive" must pay for a start time. */
static void blk_plug_loop_test_times(struct kunit *test)
{
	struct fake *f = fake_alloc(test);

	static_branch_inc(&blk_plug_loop_key);
	KUNIT_EXPECT_TRUE(test, blk_plug_loop_times(&f->q));
	f->q.queue_flags = BIT(QUEUE_FLAG_PLUG_SEQ_SMALL);
	KUNIT_EXPECT_FALSE(test, blk_plug_loop_times(&f->q));
	static_branch_dec(&blk_plug_loop_key);
}

static struct kunit_case blk_plug_loop_test_cases[] = {
	KUNIT_CASE_PARAM(blk_plug_loop_test_alloc, alloc_gen_params),
	KUNIT_CASE(blk_plug_loop_test_alloc_again),
	KUNIT_CASE(blk_plug_loop_test_new_hctx),
	KUNIT_CASE(blk_plug_loop_test_reused_hctx),
	KUNIT_CASE_PARAM(blk_plug_loop_test_counts, counts_gen_params),
	KUNIT_CASE_PARAM(blk_plug_loop_test_fold, fold_gen_params),
	KUNIT_CASE_PARAM(blk_plug_loop_test_uncounted, uncounted_gen_params),
	KUNIT_CASE_PARAM(blk_plug_loop_test_foreign, foreign_gen_params),
	KUNIT_CASE_PARAM(blk_plug_loop_test_due, due_gen_params),
	KUNIT_CASE(blk_plug_loop_test_next),
	KUNIT_CASE(blk_plug_loop_test_wait_wraps),
	KUNIT_CASE(blk_plug_loop_test_cpus),
	KUNIT_CASE(blk_plug_loop_test_busy),
	KUNIT_CASE_PARAM(blk_plug_loop_test_decision, decision_gen_params),
	KUNIT_CASE(blk_plug_loop_test_restart),
	KUNIT_CASE(blk_plug_loop_test_restart_once),
	KUNIT_CASE(blk_plug_loop_test_publish),
	KUNIT_CASE(blk_plug_loop_test_sparse),
	KUNIT_CASE(blk_plug_loop_test_pinned),
	KUNIT_CASE(blk_plug_loop_test_pinned_looks),
	KUNIT_CASE(blk_plug_loop_test_merges_at_once),
	KUNIT_CASE(blk_plug_loop_test_probes),
	KUNIT_CASE_PARAM(blk_plug_loop_test_completed, timed_gen_params),
	KUNIT_CASE(blk_plug_loop_test_freed),
	KUNIT_CASE(blk_plug_loop_test_stand_for_all),
	KUNIT_CASE(blk_plug_loop_test_picks),
	KUNIT_CASE(blk_plug_loop_test_picks_by_tag),
	KUNIT_CASE(blk_plug_loop_test_times),
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
