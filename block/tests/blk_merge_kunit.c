// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the decision whether, and how, a bio merges into a request.
 *
 * blk_merge_type() asks for the place first and for everything else after
 * that. It must come to the same decision as the checks in full.
 */
#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/blk-integrity.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include "../blk.h"
#include "../elevator.h"

#define PAIRS	200000
#define SEED	20260101

/* One request with its first bio, the bio that asks, and their queue. */
struct pair {
	struct request_queue q;
	struct request rq;
	struct bio first, bio;
#ifdef CONFIG_BLK_DEV_INTEGRITY
	struct bio_integrity_payload first_bip, bip;
#endif
};

static enum elv_merge checks_in_full(struct request *rq, struct bio *bio)
{
	if (!blk_rq_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	return blk_try_merge(rq, bio);
}

static struct pair *blk_merge_test_alloc(struct kunit *test)
{
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return p;
}

/* A read of 8 sectors at 1000, and one right behind it. */
static void blk_merge_test_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->q.limits.max_discard_segments = 1;
	p->q.limits.max_integrity_segments = 1;
	p->rq.q = &p->q;
	p->rq.bio = &p->first;
	p->rq.biotail = &p->first;
	p->rq.cmd_flags = REQ_OP_READ;
	p->rq.__sector = 1000;
	p->rq.__data_len = 8 << SECTOR_SHIFT;
	p->first.bi_opf = p->rq.cmd_flags;
	p->first.bi_iter.bi_sector = 1000;
	p->first.bi_iter.bi_size = 8 << SECTOR_SHIFT;
	p->bio.bi_opf = p->rq.cmd_flags;
	p->bio.bi_iter.bi_sector = 1008;
	p->bio.bi_iter.bi_size = 8 << SECTOR_SHIFT;
}

/* --- rows: what each check is there for ---------------------------------- */

struct merge_case {
	const char *name;
	blk_opf_t rq_opf, bio_opf;
	int distance;		/* sectors from the request's end */
	unsigned int ranges;	/* per discard */
	enum elv_merge type;
};

static const struct merge_case merge_cases[] = {
	{ "behind", REQ_OP_READ, REQ_OP_READ, 0, 1, ELEVATOR_BACK_MERGE },
	{ "before", REQ_OP_READ, REQ_OP_READ, -16, 1, ELEVATOR_FRONT_MERGE },
	{ "gap", REQ_OP_READ, REQ_OP_READ, 8, 1, ELEVATOR_NO_MERGE },
	{ "overlap", REQ_OP_READ, REQ_OP_READ, -1, 1, ELEVATOR_NO_MERGE },
	{ "same_place", REQ_OP_WRITE, REQ_OP_WRITE, -8, 1, ELEVATOR_NO_MERGE },
	{ "write_behind_read", REQ_OP_READ, REQ_OP_WRITE, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "discard_ranges_anywhere", REQ_OP_DISCARD, REQ_OP_DISCARD, 4096, 16,
	  ELEVATOR_DISCARD_MERGE },
	{ "discard_ranges_not_for_a_read", REQ_OP_DISCARD, REQ_OP_READ, 0, 16,
	  ELEVATOR_NO_MERGE },
	{ "discard_behind_read", REQ_OP_READ, REQ_OP_DISCARD, 0, 16,
	  ELEVATOR_NO_MERGE },
	{ "discard_single_range_behind", REQ_OP_DISCARD, REQ_OP_DISCARD, 0, 1,
	  ELEVATOR_BACK_MERGE },
	{ "discard_single_range_gap", REQ_OP_DISCARD, REQ_OP_DISCARD, 8, 1,
	  ELEVATOR_NO_MERGE },
	{ "zone_append", REQ_OP_ZONE_APPEND, REQ_OP_ZONE_APPEND, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "write_zeroes", REQ_OP_WRITE_ZEROES, REQ_OP_WRITE_ZEROES, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "passthrough", REQ_OP_DRV_IN, REQ_OP_READ, 0, 1, ELEVATOR_NO_MERGE },
	{ "atomic_both", REQ_OP_WRITE | REQ_ATOMIC, REQ_OP_WRITE | REQ_ATOMIC,
	  0, 1, ELEVATOR_BACK_MERGE },
	{ "atomic_behind_plain", REQ_OP_WRITE, REQ_OP_WRITE | REQ_ATOMIC, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "plain_behind_atomic", REQ_OP_WRITE | REQ_ATOMIC, REQ_OP_WRITE, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "bio_nomerge", REQ_OP_WRITE, REQ_OP_WRITE | REQ_NOMERGE, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "rq_nomerge", REQ_OP_WRITE | REQ_NOMERGE, REQ_OP_WRITE, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "preflush", REQ_OP_WRITE, REQ_OP_WRITE | REQ_PREFLUSH, 0, 1,
	  ELEVATOR_NO_MERGE },
	{ "fua", REQ_OP_WRITE | REQ_FUA, REQ_OP_WRITE, 0, 1,
	  ELEVATOR_NO_MERGE },
};

KUNIT_ARRAY_PARAM_DESC(merge, merge_cases, name);

static void blk_merge_test_type(struct kunit *test)
{
	const struct merge_case *c = test->param_value;
	struct pair *p = blk_merge_test_alloc(test);

	blk_merge_test_init(p);
	p->q.limits.max_discard_segments = c->ranges;
	p->rq.cmd_flags = c->rq_opf;
	p->first.bi_opf = c->rq_opf;
	p->bio.bi_opf = c->bio_opf;
	p->bio.bi_iter.bi_sector = 1008 + c->distance;
	KUNIT_EXPECT_EQ(test, blk_merge_type(&p->rq, &p->bio), c->type);
	KUNIT_EXPECT_EQ(test, checks_in_full(&p->rq, &p->bio), c->type);
}

/* --- random pairs --------------------------------------------------------- */

static bool once_in(struct rnd_state *rnd, unsigned int n)
{
	return prandom_u32_state(rnd) % n == 0;
}

/* Mostly the same operation, so that the later checks decide. */
static blk_opf_t random_opf(struct rnd_state *rnd)
{
	static const enum req_op ops[] = {
		REQ_OP_READ, REQ_OP_WRITE, REQ_OP_WRITE, REQ_OP_DISCARD,
		REQ_OP_DISCARD, REQ_OP_SECURE_ERASE, REQ_OP_FLUSH,
		REQ_OP_WRITE_ZEROES, REQ_OP_ZONE_APPEND, REQ_OP_DRV_IN,
	};
	static const blk_opf_t flags[] = {
		REQ_NOMERGE, REQ_PREFLUSH, REQ_FUA, REQ_ATOMIC, REQ_ATOMIC,
		REQ_RAHEAD, REQ_SYNC, REQ_NOWAIT, REQ_POLLED, REQ_META,
		REQ_INTEGRITY, REQ_SWAP,
	};
	blk_opf_t opf = ops[prandom_u32_state(rnd) % ARRAY_SIZE(ops)];

	if (once_in(rnd, 4))
		opf |= flags[prandom_u32_state(rnd) % ARRAY_SIZE(flags)];
	return opf;
}

static void random_hints(struct rnd_state *rnd, struct bio *bio)
{
	bio->bi_write_hint = once_in(rnd, 16);
	bio->bi_write_stream = once_in(rnd, 16);
	bio->bi_ioprio = once_in(rnd, 16);
}

#ifdef CONFIG_BLK_DEV_INTEGRITY
static void random_bip(struct rnd_state *rnd, struct bio *bio,
		       struct bio_integrity_payload *bip)
{
	if (!(bio->bi_opf & REQ_INTEGRITY))
		return;
	bip->bip_flags = once_in(rnd, 2) ? BIP_CHECK_APPTAG : 0;
	bip->app_tag = once_in(rnd, 4);
	bio->bi_integrity = bip;
}

static void random_integrity(struct rnd_state *rnd, struct pair *p)
{
	random_bip(rnd, &p->first, &p->first_bip);
	random_bip(rnd, &p->bio, &p->bip);
	p->rq.nr_integrity_segments = once_in(rnd, 2);
}
#else
static void random_integrity(struct rnd_state *rnd, struct pair *p)
{
	p->rq.cmd_flags &= ~REQ_INTEGRITY;
	p->first.bi_opf &= ~REQ_INTEGRITY;
	p->bio.bi_opf &= ~REQ_INTEGRITY;
}
#endif

static void random_pair(struct rnd_state *rnd, struct pair *p)
{
	static const int distances[] = {
		0, 0, -16, -16, -8, -1, 1, 8, 1 << 20,
	};

	blk_merge_test_init(p);
	p->q.limits.max_discard_segments = once_in(rnd, 2) ? 1 : 256;
	p->rq.cmd_flags = random_opf(rnd);
	if (once_in(rnd, 16))
		p->rq.rq_flags = once_in(rnd, 2) ? RQF_STARTED : RQF_FLUSH_SEQ;
	p->first.bi_opf = p->rq.cmd_flags;
	p->bio.bi_opf = once_in(rnd, 4) ? random_opf(rnd) : p->rq.cmd_flags;
	p->bio.bi_iter.bi_sector = 1008 +
		distances[prandom_u32_state(rnd) % ARRAY_SIZE(distances)];
	random_hints(rnd, &p->first);
	random_hints(rnd, &p->bio);
	random_integrity(rnd, p);
}

/* And neither of them may change what it looks at. */
static void blk_merge_test_random(struct kunit *test)
{
	struct pair *p = blk_merge_test_alloc(test);
	struct pair *before = blk_merge_test_alloc(test);
	unsigned int seen[ELEVATOR_DISCARD_MERGE + 1] = {};
	enum elv_merge full, type;
	struct rnd_state rnd;
	int i;

	prandom_seed_state(&rnd, SEED);
	for (i = 0; i < PAIRS; i++) {
		random_pair(&rnd, p);
		memcpy(before, p, sizeof(*p));
		full = checks_in_full(&p->rq, &p->bio);
		type = blk_merge_type(&p->rq, &p->bio);
		KUNIT_ASSERT_EQ_MSG(test, type, full,
				    "pair %d: rq %08x, bio %08x at %llu", i,
				    (__force u32)p->rq.cmd_flags,
				    (__force u32)p->bio.bi_opf,
				    (u64)p->bio.bi_iter.bi_sector);
		KUNIT_ASSERT_MEMEQ(test, p, before, sizeof(*p));
		seen[type]++;
	}
	/* Otherwise the pairs would have shown nothing. */
	KUNIT_EXPECT_GT(test, seen[ELEVATOR_NO_MERGE], PAIRS / 100);
	KUNIT_EXPECT_GT(test, seen[ELEVATOR_BACK_MERGE], PAIRS / 100);
	KUNIT_EXPECT_GT(test, seen[ELEVATOR_FRONT_MERGE], PAIRS / 100);
	KUNIT_EXPECT_GT(test, seen[ELEVATOR_DISCARD_MERGE], PAIRS / 100);
}

static struct kunit_case blk_merge_test_cases[] = {
	KUNIT_CASE_PARAM(blk_merge_test_type, merge_gen_params),
	KUNIT_CASE(blk_merge_test_random),
	{}
};

static struct kunit_suite blk_merge_test_suite = {
	.name = "blk_merge",
	.test_cases = blk_merge_test_cases,
};

kunit_test_suite(blk_merge_test_suite);

MODULE_DESCRIPTION("KUnit tests of the decision to merge a bio");
MODULE_LICENSE("GPL");
