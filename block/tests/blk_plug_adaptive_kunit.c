// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the controller of the plug policy "adaptive".  A model of a
 * load drives it: the time per request that each group size leads to, and how
 * noisy that is.  A row is named for what would break if it failed.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/string.h>

#define ALWAYS	BLK_PLUG_ADAPTIVE_MAX_GROUP

enum {
	SEED	= 20260101,
	SEEDS	= 16,
	DELAY	= 10,
	WARM	= 100,		/* samples: by then it has learnt, */
	LONG	= 3000,		/* must not have forgotten, */
	AGAIN	= 10000,	/* has tried again, however long it parks */
};

/* A load, the controller that meets it, and what has been seen so far. */
struct sim {
	u16 parts[6];	/* time in groups of 1, 2, 4, 8, 16, 32, in 1/10000 */
	u32 noise;	/* the most that it is more or less, in 1/1000 */
	u32 time;	/* of a request, in ns */
	u32 fill;	/* requests in a plug */
	u32 in_flight;
	u32 group;	/* size in which these were sent out, 0: as now */
	struct rnd_state rnd;
	struct blk_plug_adaptive a;
	unsigned int samples, of[ALWAYS + 1];
};

#define SIM(_noise, ...) \
	{ .parts = __VA_ARGS__, .noise = (_noise), .time = 1500, .fill = 32 }

/* Best in the middle, and a step too far is worse than none. */
#define VALLEY	{ 13000, 11000, 10200, 9200, 9500, 10000 }
#define FLAT	{ 10000, 10000, 10000, 10000, 10000, 10000 }
#define DEAR	{ 26000, 18000, 14000, 11700, 10600, 10000 }

/* After a change, half of a sample still covers what was in flight before. */
static struct blk_plug_adaptive_sample sim_sample(struct sim *s)
{
	u32 nr = s->a.epoch, group = min(s->a.group, s->fill);
	u32 parts = s->parts[order_base_2(group)] +
		    s->parts[order_base_2(s->group ?: group)];
	u32 noise = prandom_u32_state(&s->rnd) % (2 * s->noise + 1);
	u64 ns = div_u64((u64)nr * s->time * parts, 20000);

	s->group = group;
	return (struct blk_plug_adaptive_sample){
		.ns = div_u64(ns * (1000 - s->noise + noise), 1000),
		.nr = nr,
		.flushes = DIV_ROUND_UP(nr, group),
		.in_flight = s->in_flight,
	};
}

/* Whatever the sample, the decision must be sane. */
static void decide(struct kunit *test, struct sim *s,
		   struct blk_plug_adaptive_sample sample)
{
	s->samples++;
	s->of[s->a.group]++;
	blk_plug_adaptive_decide(&s->a, &sample);
	KUNIT_ASSERT_LE(test, s->a.group, ALWAYS);
	KUNIT_ASSERT_TRUE(test, is_power_of_2(s->a.group));
	KUNIT_ASSERT_TRUE(test, s->a.epoch >= 128 && s->a.epoch <= 49152);
}

static void run(struct kunit *test, struct sim *s, unsigned int nr)
{
	while (nr--)
		decide(test, s, sim_sample(s));
}

/* Samples until the controller begins a trial, or until it parks. */
static unsigned int run_until(struct kunit *test, struct sim *s, bool trial)
{
	unsigned int start = s->samples;

	while (!!s->a.trial != trial && s->samples < start + AGAIN)
		run(test, s, 1);
	KUNIT_ASSERT_EQ(test, !!s->a.trial, trial);
	return s->samples - start;
}

/* Parked at 8. */
static struct sim learnt(struct kunit *test)
{
	struct sim s = SIM(0, VALLEY);

	prandom_seed_state(&s.rnd, SEED);
	blk_plug_adaptive_init(&s.a, DELAY);
	run(test, &s, WARM);
	KUNIT_ASSERT_EQ(test, s.a.group, 8);
	KUNIT_ASSERT_EQ(test, s.a.trial, 0);
	memset(s.of, 0, sizeof(s.of));
	return s;
}

struct ends_case {
	const char *name;
	struct sim sim;
	u8 group;
};

static const struct ends_case ends_cases[] = {
	{ "finds_8", SIM(10, VALLEY), 8 },
	{ "finds_8_in_noise", SIM(50, VALLEY), 8 },
	{ "stays_at_32", SIM(10, DEAR), 32 },
	{ "stays_at_32_in_noise", SIM(100, DEAR), 32 },
	{ "follows_chance", SIM(5, FLAT), 32 },
	{ "stops_before_the_last_step",
	  SIM(10, { 7000, 7500, 8000, 8500, 9200, 10000 }), 1 },
	{ "does_not_step_back_up",
	  SIM(5, { 12000, 11000, 10500, 9800, 9400, 10000 }), 16 },
};

KUNIT_ARRAY_PARAM_DESC(ends, ends_cases, name);

/* It ends where it should, and rests there: trials are rare. */
static void blk_plug_adaptive_test_ends(struct kunit *test)
{
	const struct ends_case *c = test->param_value;
	unsigned int seed, good = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		struct sim s = c->sim;

		prandom_seed_state(&s.rnd, SEED + seed);
		blk_plug_adaptive_init(&s.a, 0);
		run(test, &s, WARM);
		s.of[c->group] = 0;
		run(test, &s, LONG);
		good += s.of[c->group];
	}
	KUNIT_EXPECT_GE(test, good, SEEDS * LONG * 9 / 10);
}

struct trial_case {
	const char *name;
	u8 size;		/* 8, where 32 takes 10000; 16, where 8 9200 */
	u16 parts;		/* time in it */
	u8 samples;		/* half of them of transitions */
	u8 from, next;		/* sizes that are compared then */
};

/* Without noise, what decides is the mean gain. */
static const struct trial_case trial_cases[] = {
	{ "great_harm_is_measured_twice", 8, 40000, 3, 32, 16 },
	{ "harm_takes_one", 8, 10700, 2, 32, 16 },
	{ "less_harm_takes_three", 8, 10200, 6, 32, 16 },
	{ "gain_takes_three", 8, 9000, 6, 8, 4 },
	{ "great_gain_is_measured_twice", 8, 2500, 9, 8, 4 },
	{ "less_than_it_must_loses", 8, 9960, 6, 32, 16 },
	{ "no_more_than_it_must_takes_sixteen", 8, 9950, 32, 32, 16 },
	{ "larger_may_lose_half_a_percent", 16, 9244, 6, 16, 4 },
	{ "larger_must_not_lose_more", 16, 9248, 6, 8, 0 },
};

KUNIT_ARRAY_PARAM_DESC(trial, trial_cases, name);

/* A trial lasts no longer than need be, and ends as it should. */
static void blk_plug_adaptive_test_trial(struct kunit *test)
{
	const struct trial_case *c = test->param_value;
	struct sim s = SIM(0, FLAT);

	if (c->size > 8)
		s = learnt(test);
	else
		blk_plug_adaptive_init(&s.a, 2 * DELAY);
	s.parts[order_base_2(c->size)] = c->parts;
	while (s.a.trial != c->size && s.samples < LONG)
		run(test, &s, 1);
	s.of[c->size] = 0;
	while (s.a.trial == c->size && s.samples < LONG)
		run(test, &s, 1);
	KUNIT_EXPECT_EQ(test, s.of[c->size], c->samples);
	KUNIT_EXPECT_EQ(test, s.a.trial, c->next);
	/* a gain is no other load */
	run(test, &s, 4);
	KUNIT_EXPECT_EQ(test, s.a.from, c->from);
}

/* Where nothing pays it tries less and less often, but never gives up. */
static void blk_plug_adaptive_test_patience(struct kunit *test)
{
	static const int parks[] = { 256, 512, 1024, 2048, 4096, 4096 };
	struct sim s = SIM(0, FLAT);
	int i;

	blk_plug_adaptive_init(&s.a, 0);
	for (i = 0; i < ARRAY_SIZE(parks); i++) {
		run_until(test, &s, true);
		run_until(test, &s, false);
		KUNIT_EXPECT_EQ(test, run_until(test, &s, true), parks[i] + 1);
	}
	/* what takes so long to gain need not do so often */
	s.parts[3] = 9000;
	run_until(test, &s, false);
	KUNIT_EXPECT_EQ(test, s.a.from, 8);
	KUNIT_EXPECT_EQ(test, run_until(test, &s, true), 4096 + 1);
}

/*
 * While the time varies by more than 1/16, there is nothing to try.  However
 * much it does, if it always does, it is no other load: patience grows.
 */
static void blk_plug_adaptive_test_noisy(struct kunit *test)
{
	struct sim s = SIM(400, VALLEY);

	prandom_seed_state(&s.rnd, SEED);
	blk_plug_adaptive_init(&s.a, 0);
	run(test, &s, AGAIN);
	KUNIT_EXPECT_EQ(test, s.of[ALWAYS], AGAIN);
	KUNIT_EXPECT_EQ(test, s.a.patience, 4096);
	s.noise = 0;
	run(test, &s, AGAIN);
	KUNIT_EXPECT_EQ(test, s.a.from, 8);
}

/* If all sizes get slower, what was best still is. */
static void blk_plug_adaptive_test_drift(struct kunit *test)
{
	struct sim s = learnt(test);
	unsigned int i;

	for (i = 0; i < LONG; i++) {
		s.time = i % 1000 < 500 ? 1800 : 1500;
		run(test, &s, 1);
	}
	KUNIT_EXPECT_EQ(test, s.a.from, 8);
	KUNIT_EXPECT_GE(test, s.of[8], LONG * 9 / 10);
}

/* A group that no plug fills equals 32: trying it costs, and shows chance. */
static void blk_plug_adaptive_test_fill(struct kunit *test)
{
	static const u8 rows[][2] = {	/* fill, the first trial */
		{ 1, 0 }, { 2, 1 }, { 3, 1 }, { 7, 2 }, { 16, 4 }, { 32, 8 },
	};
	unsigned int i, group, first;
	struct sim s;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		s = (struct sim)SIM(0, DEAR);
		s.fill = rows[i][0];
		blk_plug_adaptive_init(&s.a, 0);
		for (first = 0; s.samples < LONG; first = first ?: s.a.trial)
			run(test, &s, 1);
		KUNIT_EXPECT_EQ(test, first, rows[i][1]);
		for (group = s.fill; group < ALWAYS; group++)
			KUNIT_EXPECT_EQ(test, s.of[group], 0);
	}
	s = learnt(test);
	s.fill = 4;
	run_until(test, &s, true);
	KUNIT_EXPECT_EQ(test, s.a.trial, 2);
}

struct odd_case {
	const char *name;
	u32 time;			/* was 1500 */
	bool stays;
	struct blk_plug_adaptive_sample s;	/* without a time */
};

static const struct odd_case odd_cases[] = {
	{ "twice_as_fast", 750 },
	{ "slower_by_a_third", 2000 },
	{ "far_slower", 50000000 },
	{ "faster_by_a_fifth", 1200, true },
	{ "slower_by_a_fifth", 1800, true },
	{ "no_requests", .s = { 1000000, 0, 16 } },
	{ "no_time", .s = { 0, 512, 16 } },
	/* which is 1380 ns for each of them, as before */
	{ "more_than_a_minute", 0, true, { 1ULL << 36, 49796544, 6224568 } },
	{ "a_minute_each", .s = { (1024ULL << 36) - 1, 1024, 128 } },
	{ "more_than_a_minute_each", .s = { 1ULL << 46, 1024, 512 } },
	{ "largest", .s = { U64_MAX, 1, 1, U32_MAX } },
};

KUNIT_ARRAY_PARAM_DESC(odd, odd_cases, name);

/* Three in a row change nothing; four are another load, or make no sense. */
static void blk_plug_adaptive_test_odd(struct kunit *test)
{
	const struct odd_case *c = test->param_value;
	struct sim s = learnt(test);
	int i;

	for (i = 0; i < 12; i++) {
		KUNIT_EXPECT_EQ(test, s.a.group, 8);
		KUNIT_EXPECT_EQ(test, s.a.fill, 8);
		s.time = i % 4 == 3 && i < 11 ? 1500 : c->time;
		decide(test, &s, s.time ? sim_sample(&s) : c->s);
	}
	KUNIT_EXPECT_EQ(test, s.a.group, c->stays ? 8 : ALWAYS);
	s.time = c->time ?: 1500;
	/* as at first, out of step: one settles, eight are learnt */
	if (!c->stays)
		KUNIT_EXPECT_EQ(test, run_until(test, &s, true), DELAY + 9);
}

/* A load that always varies by so much, or drifts, is not another one. */
static void blk_plug_adaptive_test_unsteady(struct kunit *test)
{
	struct sim s = learnt(test);
	unsigned int looks;

	s.parts[4] = 40000;	/* must not win by chance */
	for (s.noise = 1; s.noise < 300; s.noise++, s.time += 20)
		run(test, &s, 10);
	looks = s.of[ALWAYS];
	KUNIT_EXPECT_LE(test, looks, s.samples / 3);
	s.noise = 0;
	s.time *= 3;
	run(test, &s, 40);
	KUNIT_EXPECT_GE(test, s.of[ALWAYS], looks + DELAY + 1);
}

/* A sample covers 16 to 24 round trips; where it settles, a quarter of that. */
static void blk_plug_adaptive_test_epoch(struct kunit *test)
{
	static const u32 rows[][2] = {	/* in flight, the shortest epoch */
		{ 0, 512 }, { 32, 512 }, { 33, 528 }, { 2048, 32768 },
		{ 2049, 32768 }, { U32_MAX, 32768 },
	};
	u32 i, j, length, least, most;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sim s = SIM(0, VALLEY);

		s.in_flight = rows[i][0];
		length = rows[i][1];
		least = 2 * length;
		most = 0;
		blk_plug_adaptive_init(&s.a, AGAIN);
		for (j = 0; j < LONG; j++) {
			run(test, &s, 1);
			least = min(least, s.a.epoch);
			most = max(most, s.a.epoch);
		}
		KUNIT_EXPECT_TRUE(test, least >= length &&
				  least <= length * 33 / 32);
		KUNIT_EXPECT_TRUE(test, most <= length * 3 / 2 &&
				  most >= length * 47 / 32);
		/* fewer in flight may be so just now */
		s.in_flight = 0;
		run(test, &s, 1);
		KUNIT_EXPECT_GE(test, s.a.epoch, max(length * 7 / 8, 512));
		s.in_flight = rows[i][0];
		run_until(test, &s, true);
		run(test, &s, 1);
		KUNIT_ASSERT_EQ(test, s.a.group, 8);
		KUNIT_EXPECT_TRUE(test, s.a.epoch >= length / 4 &&
				  s.a.epoch <= length * 3 / 8);
	}
}

/* Numbers of any size, the smallest and the largest more often. */
static u64 hostile_number(struct rnd_state *rnd)
{
	u64 r = (u64)prandom_u32_state(rnd) << 32 | prandom_u32_state(rnd);

	return r % 8 ? r >> r % 64 : -(r >> 63);
}

/* For some time alike and mostly in range, or only checks would be hit. */
static void blk_plug_adaptive_test_hostile(struct kunit *test)
{
	struct blk_plug_adaptive_sample in = {};
	struct sim s = {};
	u32 kind;

	prandom_seed_state(&s.rnd, SEED);
	blk_plug_adaptive_init(&s.a, 0);
	while (s.samples < 400000) {
		kind = prandom_u32_state(&s.rnd) % 64;
		if (kind < 4) {
			in.nr = hostile_number(&s.rnd);
			in.ns = hostile_number(&s.rnd);
			in.flushes = hostile_number(&s.rnd);
			in.in_flight = hostile_number(&s.rnd);
		}
		if (kind == 1)
			in.ns = clamp(in.ns, in.nr / 256 + 1, (1ULL << 36) - 1);
		decide(test, &s, in);
	}
	/* or the samples have tested nothing */
	KUNIT_EXPECT_GT(test, s.samples - s.of[ALWAYS], 1000);
}

static struct kunit_case blk_plug_adaptive_test_cases[] = {
	KUNIT_CASE_PARAM(blk_plug_adaptive_test_ends, ends_gen_params),
	KUNIT_CASE_PARAM(blk_plug_adaptive_test_trial, trial_gen_params),
	KUNIT_CASE(blk_plug_adaptive_test_patience),
	KUNIT_CASE(blk_plug_adaptive_test_noisy),
	KUNIT_CASE(blk_plug_adaptive_test_drift),
	KUNIT_CASE(blk_plug_adaptive_test_fill),
	KUNIT_CASE_PARAM(blk_plug_adaptive_test_odd, odd_gen_params),
	KUNIT_CASE(blk_plug_adaptive_test_unsteady),
	KUNIT_CASE(blk_plug_adaptive_test_epoch),
	KUNIT_CASE(blk_plug_adaptive_test_hostile),
	{}
};

static struct kunit_suite blk_plug_adaptive_test_suite = {
	.name = "blk_plug_adaptive",
	.test_cases = blk_plug_adaptive_test_cases,
};

kunit_test_suite(blk_plug_adaptive_test_suite);
