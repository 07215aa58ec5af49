// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the plug policy: its mode, what plugs hold and when they send
 * it out, what "adaptive" counts and when it samples.  A row is named for what
 * would break if it failed.
 */
#include <kunit/test.h>

#define NO_GROUP	BLK_PLUG_POLICY_NO_GROUP
#define ALWAYS		BLK_PLUG_POLICY_ALWAYS
#define NEVER		BLK_PLUG_POLICY_NEVER
#define SEQ_SMALL	BLK_PLUG_POLICY_SEQ_SMALL
#define ADAPTIVE	BLK_PLUG_POLICY_ADAPTIVE
#define TYPE		HCTX_TYPE_READ	/* 0 might hide a missing index */

enum {
	REQUESTS	= 65,
	EPOCH		= 512,
};

/* A queue with a hardware queue for all CPUs, another queue, and a plug. */
struct fake {
	struct request_queue q, other_q;
	struct blk_mq_hw_ctx hctx, *hctxs[2];
	struct blk_mq_ctx *ctxs[NR_CPUS];
	struct blk_mq_tags tags;
	struct sbitmap_word map;
	struct blk_mq_tag_set set;
	struct blk_mq_ops ops;
	struct request rq[REQUESTS], *next;
	struct blk_plug plug;
	struct blk_plug_tune *tune;
	unsigned int sent;		/* requests that left together */
};

/* Kernels that keep them otherwise define it in blk-mq.h. */
#ifndef blk_plug_test_set_hctxs
static void blk_plug_test_set_hctxs(struct request_queue *q,
				    struct blk_mq_hw_ctx **hctxs)
{
	q->queue_hw_ctx = hctxs;
}
#endif

static void fake_queue_rqs(struct rq_list *list)
{
	struct fake *f = rq_list_peek(list)->q->queuedata;

	for (f->sent = 0; rq_list_pop(list); f->sent++)
		;
}

static void fake_release(struct percpu_ref *ref)
{
}

static void fake_exit(void *data)
{
	struct fake *f = data;

	static_branch_dec(&blk_plug_policy_key);
	kfree(f->hctx.plug_tune);
	percpu_ref_exit(&f->q.q_usage_counter);
	free_percpu(f->q.queue_ctx);
}

static void fake_queue(struct fake *f, enum blk_plug_policy_mode mode)
{
	f->ops.queue_rqs = fake_queue_rqs;
	f->q.mq_ops = &f->ops;
	f->q.tag_set = &f->set;
	f->q.queuedata = f;
	f->q.plug_policy = mode;
	f->other_q = f->q;
	/* the second is NULL, as while their number changes */
	f->hctxs[0] = &f->hctx;
	f->q.nr_hw_queues = 2;
	blk_plug_test_set_hctxs(&f->q, f->hctxs);
	f->tags.bitmap_tags.sb = (struct sbitmap){
		.depth = 64, .shift = 6, .map_nr = 1, .map = &f->map,
	};
	f->hctx.queue = &f->q;
	f->hctx.tags = &f->tags;
	f->hctx.type = TYPE;
	f->hctx.queue_num = 11;
	f->hctx.numa_node = NUMA_NO_NODE;
}

/* With an empty plug, and the policy on. */
static struct fake *fake_alloc(struct kunit *test,
			       enum blk_plug_policy_mode mode)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	fake_queue(f, mode);
	f->q.queue_ctx = alloc_percpu(struct blk_mq_ctx);
	static_branch_inc(&blk_plug_policy_key);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_exit, f));
	KUNIT_ASSERT_TRUE(test, f->q.queue_ctx);
	KUNIT_ASSERT_EQ(test, 0, percpu_ref_init(&f->q.q_usage_counter,
						 fake_release, 0, GFP_KERNEL));
	/* or counter() is that of another CPU */
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	f->hctx.ctxs = f->ctxs;
	for_each_possible_cpu(i) {
		f->ctxs[f->hctx.nr_ctx] = per_cpu_ptr(f->q.queue_ctx, i);
		f->ctxs[f->hctx.nr_ctx++]->cpu = i;
	}
	for (i = 0; i < REQUESTS; i++) {
		f->next = &f->rq[i];
		f->next->q = &f->q;
		f->next->mq_hctx = &f->hctx;
		f->next->__sector = 1000;
		f->next->__data_len = SZ_4K;
	}
	f->plug.policy.group = NO_GROUP;
	return f;
}

static void learn(struct fake *f, unsigned int group)
{
	f->tune->group = group;
	f->tune->controller.group = group;
	f->tune->controller.from = group;
}

/* Its hardware queue counts, and has learnt @group. */
static struct fake *fake_adaptive(struct kunit *test, unsigned int group)
{
	struct fake *f = fake_alloc(test, ADAPTIVE);

	f->hctx.tags = NULL;	/* as before a CPU is mapped to it */
	blk_plug_policy_alloc_hctx(&f->hctx, GFP_KERNEL);
	f->tune = f->hctx.plug_tune;
	f->hctx.tags = &f->tags;
	KUNIT_ASSERT_NOT_NULL(test, f->tune);
	learn(f, group);
	return f;
}

static void hold(struct fake *f, unsigned int nr)
{
	unsigned int i;

	rq_list_init(&f->plug.mq_list);
	for (i = 0; i < nr; i++)
		rq_list_add_tail(&f->plug.mq_list, &f->rq[i]);
	f->plug.rq_count = nr;
}

static u64 *counter(struct fake *f, enum hctx_type type)
{
	return &raw_cpu_ptr(f->q.queue_ctx)->plug_sent[type];
}

/* Every switch must be balanced, or the static key stays on for ever. */
static void blk_plug_policy_test_set(struct kunit *test)
{
	struct static_key *key = &blk_plug_policy_key.key;
	struct fake *f = fake_adaptive(test, 8);
	int from, to, before;

	blk_plug_policy_set(&f->q, ALWAYS);
	static_branch_inc(&blk_plug_policy_key);	/* for fake_exit() */
	before = static_key_count(key);
	for (from = 0; from < BLK_PLUG_POLICY_NR; from++) {
		for (to = 0; to < BLK_PLUG_POLICY_NR; to++) {
			blk_plug_policy_set(&f->q, from);
			f->tune->group = 8;
			blk_plug_policy_set(&f->q, to);
			KUNIT_EXPECT_EQ(test, (int)blk_plug_policy_get(&f->q),
					to);
			KUNIT_EXPECT_EQ(test, static_key_count(key),
					before + !!to);
			/* forgets what was learnt before, but only then */
			KUNIT_EXPECT_EQ(test, f->tune->group,
					to == ADAPTIVE && from != to ? 32 : 8);
		}
	}
	blk_plug_policy_set(&f->q, ALWAYS);
}

struct fallback_case {
	const char *reason;
	bool elevator, blocking, no_queue_rqs;
};

static const struct fallback_case fallback_cases[] = {
	{ "none" },
	{ "elevator", .elevator = true },
	{ "blocking-driver", .blocking = true },
	{ "no-queue_rqs", .no_queue_rqs = true },
};

KUNIT_ARRAY_PARAM_DESC(fallback, fallback_cases, reason);

/* Some queues do as under "always" in every mode. */
static void blk_plug_policy_test_fallback(struct kunit *test)
{
	const struct fallback_case *c = test->param_value;
	bool follows = c == fallback_cases;
	struct fake *f = fake_alloc(test, SEQ_SMALL);

	f->q.elevator = c->elevator ? (void *)f : NULL;
	f->set.flags = c->blocking ? BLK_MQ_F_BLOCKING : 0;
	f->hctx.flags = f->set.flags;
	f->ops.queue_rqs = c->no_queue_rqs ? NULL : fake_queue_rqs;
	KUNIT_EXPECT_STREQ(test, blk_plug_policy_fallback(&f->q) ?: "none",
			   c->reason);
	blk_plug_policy_first_rq(&f->plug, f->next);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, follows ? 8 : NO_GROUP);
	f->q.plug_policy = NEVER;
	KUNIT_EXPECT_EQ(test, blk_plug_policy_hold(&f->plug, f->next),
			!follows);
	f->q.plug_policy = ADAPTIVE;
	blk_plug_policy_alloc_hctx(&f->hctx, GFP_KERNEL);
	/* a driver that takes no groups needs no memory for it */
	KUNIT_EXPECT_EQ(test, !!f->hctx.plug_tune, follows || c->elevator);
	blk_plug_policy_first_rq(&f->plug, f->next);
	KUNIT_EXPECT_EQ(test, !!f->plug.policy.counts, follows);
}

/* What the policy adds to the plug must fit into its padding. */
static void blk_plug_policy_test_plug_size(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_64BIT))
		KUNIT_EXPECT_EQ(test, sizeof(struct blk_plug), 64);
}

struct first_case {
	const char *name;
	enum blk_plug_policy_mode mode;
	unsigned int bytes, learnt;
	enum req_op op;
	unsigned int group;
};

static const struct first_case first_cases[] = {
	{ "always", ALWAYS, SZ_4K, 8, REQ_OP_READ, NO_GROUP },
	{ "never_has_no_group", NEVER, SZ_4K, 8, REQ_OP_READ, NO_GROUP },
	{ "no_data", SEQ_SMALL, 0, 1, REQ_OP_READ, 8 },
	{ "last_of_8", SEQ_SMALL, SZ_16K, 1, REQ_OP_WRITE, 8 },
	{ "rounds_down", SEQ_SMALL, SZ_32K + 512, 1, REQ_OP_ZONE_APPEND, 3 },
	{ "never_zero", SEQ_SMALL, SZ_128K + 512, 1, REQ_OP_DRV_IN, 1 },
	{ "largest", SEQ_SMALL, UINT_MAX, 1, REQ_OP_READ, 1 },
	{ "discard_is_no_data", SEQ_SMALL, SZ_1M, 1, REQ_OP_DISCARD, NO_GROUP },
	{ "adaptive_31", ADAPTIVE, SZ_1M, 31, REQ_OP_DISCARD, 31 },
	{ "adaptive_32_is_always", ADAPTIVE, SZ_4K, 32, REQ_OP_READ, NO_GROUP },
};

KUNIT_ARRAY_PARAM_DESC(first, first_cases, name);

static void blk_plug_policy_test_first_rq(struct kunit *test)
{
	const struct first_case *c = test->param_value;
	struct fake *f = fake_adaptive(test, c->learnt);

	f->q.plug_policy = c->mode;
	f->rq[0].cmd_flags = (__force blk_opf_t)c->op;
	f->rq[0].__data_len = c->bytes;
	/* of an earlier request */
	f->plug.policy.group = 3;
	f->plug.policy.counts = true;
	blk_plug_policy_first_rq(&f->plug, &f->rq[0]);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, c->group);
	KUNIT_EXPECT_EQ(test, !!f->plug.policy.counts, c->mode == ADAPTIVE);
	/* where trials choose the group, no size does */
	KUNIT_EXPECT_EQ(test, blk_plug_policy_flush_large(&f->plug),
			c->mode != ADAPTIVE);
	/* the groups of one queue are not those of two */
	blk_plug_policy_no_group(&f->plug);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, NO_GROUP);
	KUNIT_EXPECT_FALSE(test, f->plug.policy.counts);
	KUNIT_EXPECT_TRUE(test, blk_plug_policy_flush_large(&f->plug));
	/* nor does a queue follow what it has learnt without an elevator */
	f->q.elevator = (void *)f;
	blk_plug_policy_first_rq(&f->plug, &f->rq[0]);
	KUNIT_EXPECT_FALSE(test, f->plug.policy.counts);
}

struct group_case {
	const char *name;
	bool sends;
	enum blk_plug_policy_mode mode;
	u8 group, held;
	int sector;			/* of the next, from the newest one */
	unsigned int bytes;
	enum req_op op;
	bool nomerges, other_hctx;
};

static const struct group_case group_cases[] = {
	{ "not_full", false, ADAPTIVE, 8, 7, 99, SZ_4K },
	{ "nothing_held", false, ADAPTIVE, 1, 0, 99, SZ_4K },
	{ "no_merge_was_found", true, ADAPTIVE, 8, 8, 8, SZ_4K },
	{ "no_group", false, ADAPTIVE, NO_GROUP, 64, 99, SZ_4K },
	{ "mode_has_changed", true, ALWAYS, 8, 9, 8, SZ_4K },
	{ "sequential", false, SEQ_SMALL, 8, 31, 8, SZ_4K },
	{ "first_half_of_a_page", false, SEQ_SMALL, 8, 8, -4, SZ_2K },
	{ "gap", true, SEQ_SMALL, 8, 8, 9, SZ_4K },
	{ "gap_in_front", true, SEQ_SMALL, 8, 8, -9, SZ_4K },
	{ "just_small", false, SEQ_SMALL, 8, 8, 8, SZ_64K - 512 },
	{ "large", true, SEQ_SMALL, 8, 8, 8, SZ_64K },
	{ "write", true, SEQ_SMALL, 8, 8, 8, SZ_4K, REQ_OP_WRITE },
	{ "no_sectors", true, SEQ_SMALL, 8, 8, 8, SZ_4K, REQ_OP_DRV_IN },
	{ "no_merges", true, SEQ_SMALL, 8, 8, 8, SZ_4K, .nomerges = true },
	{ "a_second_hctx", false, ADAPTIVE, 8, 8, 99, SZ_4K,
	  .other_hctx = true },
};

KUNIT_ARRAY_PARAM_DESC(group, group_cases, name);

/* A full group leaves, unless the request that comes next belongs to it. */
static void blk_plug_policy_test_flush_group(struct kunit *test)
{
	const struct group_case *c = test->param_value;
	struct fake *f = fake_alloc(test, c->mode);

	if (c->nomerges)
		blk_queue_flag_set(QUEUE_FLAG_NOMERGES, &f->q);
	hold(f, c->held);
	f->plug.policy.group = c->group;
	if (blk_op_is_passthrough(c->op))
		f->rq[c->held - 1].cmd_flags = REQ_OP_DRV_IN;
	f->next->cmd_flags = (__force blk_opf_t)c->op;
	f->next->__sector += c->sector;
	f->next->__data_len = c->bytes;
	if (c->other_hctx)
		f->next->mq_hctx = &f->hctx + 1;	/* nobody looks at it */
	KUNIT_EXPECT_TRUE(test, blk_plug_policy_hold(&f->plug, f->next));
	KUNIT_EXPECT_EQ(test, f->sent, c->sends ? c->held : 0);
	KUNIT_EXPECT_EQ(test, f->plug.rq_count, c->sends ? 0 : c->held);
}

/* A group is one hardware queue's, also where a disk has several. */
static void blk_plug_policy_test_second_hctx(struct kunit *test)
{
	struct fake *f = fake_adaptive(test, 8);

	blk_plug_policy_first_rq(&f->plug, f->rq);
	hold(f, 1);
	blk_plug_policy_hold(&f->plug, f->next);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, 8);
	KUNIT_EXPECT_EQ(test, *counter(f, TYPE), 0);
	f->next->mq_hctx = &f->hctx + 1;	/* nobody looks at it */
	blk_plug_policy_hold(&f->plug, f->next);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, NO_GROUP);
	/* what is held counts, as a smaller group would; nothing else does */
	blk_plug_policy_hold(&f->plug, f->next);
	blk_plug_policy_count_flush(&f->plug);
	KUNIT_EXPECT_EQ(test, *counter(f, TYPE), (1ULL << 32) + 1);
	/* nor what the plug holds later, which depends on the groups */
	blk_plug_policy_first_rq(&f->plug, f->rq);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, 8);
	KUNIT_EXPECT_FALSE(test, f->plug.policy.counts);
}

struct now_case {
	const char *name;
	bool now;
	enum blk_plug_policy_mode mode;
	u8 held, group;
	bool other_queue, multiple_queues;
	enum req_op op;
};

static const struct now_case now_cases[] = {
	{ "empty_plug", true, NEVER, 0, NO_GROUP },
	{ "sends_what_was_held_before", true, NEVER, 3, NO_GROUP },
	{ "leaves_another_queue_alone", true, NEVER, 3, 3, true },
	{ "must_not_overtake", false, NEVER, 3, NO_GROUP, true, true },
	{ "holds_passthrough", false, NEVER, 3, NO_GROUP, .op = REQ_OP_DRV_IN },
	{ "adaptive", false, ADAPTIVE, 3, 4 },
};

KUNIT_ARRAY_PARAM_DESC(now, now_cases, name);

/* "never" issues each request of a bio as it comes, in order. */
static void blk_plug_policy_test_issue_now(struct kunit *test)
{
	const struct now_case *c = test->param_value;
	struct fake *f = fake_alloc(test, c->mode);

	hold(f, c->held);
	f->plug.policy.group = c->group;
	f->plug.multiple_queues = c->multiple_queues;
	f->next->cmd_flags = (__force blk_opf_t)c->op;
	if (c->other_queue) {
		f->rq[2].q = &f->other_q;
		f->rq[2].mq_hctx = &f->hctx + 1;
	}
	KUNIT_EXPECT_EQ(test, blk_plug_policy_hold(&f->plug, f->next), !c->now);
	KUNIT_EXPECT_EQ(test, f->sent, c->now && !c->other_queue ? c->held : 0);
	KUNIT_EXPECT_EQ(test, f->plug.rq_count + f->sent, c->held);
	KUNIT_EXPECT_EQ(test, f->plug.policy.group, c->group);
}

/* Does sending out @nr requests drop the plug's reading of the clock? */
static bool drops_clock(struct fake *f, unsigned int nr)
{
	struct blk_plug *outer = current->plug;
	bool dropped;

	hold(f, nr);
	f->q.plug_policy = nr ? ADAPTIVE : NEVER;
	f->plug.policy.group = nr;
	/* nothing in between may sleep: that would flush the fake plug */
	preempt_disable();
	current->plug = &f->plug;
	current->flags |= PF_BLOCK_TS;
	f->plug.cur_ktime = 1;
	blk_plug_policy_hold(&f->plug, f->next);
	dropped = !f->plug.cur_ktime;
	current->flags &= ~PF_BLOCK_TS;
	current->plug = outer;
	preempt_enable();
	return dropped;
}

/* Once in 32 requests, and behind a large one. */
static void blk_plug_policy_test_clock(struct kunit *test)
{
	struct fake *f = fake_alloc(test, NEVER);
	unsigned int nr, times;

	/* 0: issued one by one */
	for (nr = 0; nr < BLK_MAX_REQUEST_COUNT; nr++) {
		struct request *last = nr ? &f->rq[nr - 1] : f->next;

		for (times = 1; !drops_clock(f, nr) && times < 99; times++)
			;
		KUNIT_EXPECT_EQ(test, times,
				DIV_ROUND_UP(BLK_MAX_REQUEST_COUNT, nr ?: 1));
		last->__data_len = SZ_128K - 512;
		KUNIT_EXPECT_EQ(test, drops_clock(f, nr), false);
		last->__data_len = SZ_128K;
		KUNIT_EXPECT_TRUE(test, drops_clock(f, nr));
	}
}

/* Full plugs send out @nr requests. */
static void count(struct fake *f, unsigned int nr)
{
	do {
		hold(f, min(nr, 32));
		f->plug.policy.counts = true;
		blk_plug_policy_count_flush(&f->plug);
		nr -= f->plug.rq_count;
	} while (nr);
}

/* Once per flush and on the CPU; the hardware queue hears once in 128. */
static void blk_plug_policy_test_sum(struct kunit *test)
{
	static const u64 rows[][3] = {	/* counted before, sent, summed */
		{ 0, 32, 0 }, { 126, 1, 0 }, { 127, 1, STEP }, { 128, 1, 0 },
		{ 100, 30, STEP }, { U32_MAX, 1, STEP },
		{ U32_MAX - 9, 32, STEP }, { U32_MAX - 127, 32, 0 },
		{ U64_MAX << 32 | 100, 32, STEP },
	};
	struct fake *f = fake_adaptive(test, 8);
	u64 sent;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		*counter(f, TYPE) = rows[i][0];
		atomic_set(&f->tune->summed, 0);
		count(f, rows[i][1]);
		KUNIT_EXPECT_EQ(test, *counter(f, TYPE),
				rows[i][0] + (1ULL << 32) + rows[i][1]);
		KUNIT_EXPECT_EQ(test, atomic_read(&f->tune->summed),
				rows[i][2]);
	}
	KUNIT_EXPECT_EQ(test, f->tune->sample.nr, 0);
	/* of several queues, of another mode; without memory, none hears */
	f->plug.policy.counts = false;
	sent = *counter(f, TYPE);
	blk_plug_policy_count_flush(&f->plug);
	KUNIT_EXPECT_EQ(test, *counter(f, TYPE), sent);
	f->hctx.plug_tune = NULL;
	*counter(f, TYPE) = 100;
	count(f, 32);
	f->hctx.plug_tune = f->tune;
	/* a reused hardware queue may have another type */
	f->hctx.type = HCTX_TYPE_POLL;
	count(f, 32);
	KUNIT_EXPECT_EQ(test, *counter(f, TYPE), (1ULL << 32) + 132);
	KUNIT_EXPECT_EQ(test, *counter(f, HCTX_TYPE_POLL), (1ULL << 32) + 32);
}

struct due_case {
	const char *name;
	u64 before;
	u32 summed, shared, flushes;
};

static const struct due_case due_cases[] = {
	{ "from_zero", 0, 0, 0, 16 },
	{ "requests_wrap_with_one_flush_too_many", U32_MAX - 255, 0, 0, 17 },
	{ "flushes_wrap", U64_MAX << 32, 0, 0, 16 },
	{ "summed_wraps", 0, -256, 0, 16 },
	{ "summed_changes_sign", 0, S32_MAX - 127, 0, 16 },
	{ "shares_its_tags", 0, 0, 80, 16 },
};

KUNIT_ARRAY_PARAM_DESC(due, due_cases, name);

/* A sample is taken when due, not before, not twice, and covers all of it. */
static void blk_plug_policy_test_due(struct kunit *test)
{
	const struct due_case *c = test->param_value;
	struct fake *f = fake_adaptive(test, 8);
	const struct blk_plug_adaptive_sample *s = &f->tune->sample;
	unsigned int cpu, epoch, others = num_possible_cpus() * STEP;
	u64 start = ktime_get_ns();

	*counter(f, TYPE) = c->before;
	atomic_set(&f->tune->summed, c->summed);
	blk_plug_policy_map_hctx(&f->hctx);
	f->map.word = 0xff;
	f->hctx.flags = c->shared ? BLK_MQ_F_TAG_QUEUE_SHARED : 0;
	atomic_set(&f->hctx.nr_active, c->shared);
	/* not summed yet */
	for_each_possible_cpu(cpu)
		per_cpu_ptr(f->q.queue_ctx, cpu)->plug_sent[TYPE] += STEP;
	count(f, EPOCH - 32);
	KUNIT_EXPECT_EQ(test, s->nr, 0);
	count(f, 32);
	KUNIT_EXPECT_EQ(test, s->nr, EPOCH + others);
	KUNIT_EXPECT_EQ(test, s->flushes, c->flushes);
	KUNIT_EXPECT_EQ(test, s->in_flight, c->shared ?: 8);
	KUNIT_EXPECT_TRUE(test, s->ns && s->ns <= ktime_get_ns() - start);
	epoch = round_up(f->tune->controller.epoch, STEP);
	KUNIT_EXPECT_GE(test, epoch, c->shared ? 80 * 16 : EPOCH);
	count(f, epoch - 32);
	KUNIT_EXPECT_EQ(test, s->nr, EPOCH + others);
	count(f, 32);
	KUNIT_EXPECT_EQ(test, s->nr, epoch);
}

/*
 * Submitters see what the controller has decided, or what was set by hand.
 * When it begins anew it keeps nothing else, nor does its first sample; mapped
 * to CPUs anew, it may be another queue, and not that either.
 */
static void blk_plug_policy_test_begin(struct kunit *test)
{
	struct fake *f = fake_adaptive(test, 8);
	int i;

	for (i = 0; i < 4; i++) {
		*counter(f, TYPE) = 0;
		learn(f, 8);
		f->tune->group = 5;
		f->tune->pinned = i % 2 ? 5 : 0;
		if (i % 2)
			f->tune->controller.group = 5;
		count(f, round_up(f->tune->controller.epoch, STEP));
		KUNIT_EXPECT_EQ(test, f->tune->group, i % 2 ? 5 : 8);
		count(f, 32);
		/* no CPU may be mapped to it */
		f->hctx.tags = NULL;
		if (i < 2)
			plug_tune_restart(&f->q);
		else
			blk_plug_policy_map_hctx(&f->hctx);
		f->hctx.tags = &f->tags;
		KUNIT_EXPECT_EQ(test, f->tune->group, i == 1 ? 5 : 32);
		KUNIT_EXPECT_EQ(test, f->tune->controller.group,
				i == 1 ? 5 : 32);
		/* out of step with the seven next to it */
		KUNIT_EXPECT_EQ(test, f->tune->controller.delay, 11 % 8 * 5);
		KUNIT_EXPECT_EQ(test, f->tune->sample.nr, 0);
		count(f, EPOCH);
		/* the CPU has told of 32 more, which were counted before */
		KUNIT_EXPECT_EQ(test, f->tune->sample.nr, EPOCH - 32);
		/* nothing is decided about a size that is not in force */
		KUNIT_EXPECT_EQ(test, f->tune->controller.settle, i == 1);
	}
}

static struct kunit_case blk_plug_policy_test_cases[] = {
	KUNIT_CASE(blk_plug_policy_test_set),
	KUNIT_CASE_PARAM(blk_plug_policy_test_fallback, fallback_gen_params),
	KUNIT_CASE(blk_plug_policy_test_plug_size),
	KUNIT_CASE_PARAM(blk_plug_policy_test_first_rq, first_gen_params),
	KUNIT_CASE_PARAM(blk_plug_policy_test_flush_group, group_gen_params),
	KUNIT_CASE(blk_plug_policy_test_second_hctx),
	KUNIT_CASE_PARAM(blk_plug_policy_test_issue_now, now_gen_params),
	KUNIT_CASE(blk_plug_policy_test_clock),
	KUNIT_CASE(blk_plug_policy_test_sum),
	KUNIT_CASE_PARAM(blk_plug_policy_test_due, due_gen_params),
	KUNIT_CASE(blk_plug_policy_test_begin),
	{}
};

static struct kunit_suite blk_plug_policy_test_suite = {
	.name = "blk_plug_policy",
	.test_cases = blk_plug_policy_test_cases,
};

kunit_test_suite(blk_plug_policy_test_suite);
