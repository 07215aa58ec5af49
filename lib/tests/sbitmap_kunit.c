// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for the scalable bitmap: batches against a bit-by-bit model
 */

#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sbitmap.h>

enum {
	MAX_DEPTH = 1024,
	STEPS = 4000,
	PATTERNS = 200,
};

/* What the map should hold.  Seeded, so that each run makes the same calls. */
struct model {
	struct sbitmap_queue sbq;
	unsigned int depth;
	struct rnd_state rnd;
	DECLARE_BITMAP(busy, MAX_DEPTH);
};

struct map_case {
	const char *name;
	unsigned int depth;
	/* then resized to this, if not 0; words keep their size */
	unsigned int resized;
};

static const struct map_case map_cases[] = {
	{ "one_bit", 1 },
	{ "two_bits", 2 },
	{ "one_bit_per_word", 4 },
	{ "short_last_word_of_4", 31 },
	{ "words_of_8", 32 },
	{ "words_of_16", 64 },
	{ "short_last_word_of_16", 127 },
	{ "words_of_32", 128 },
	{ "short_last_word_of_32", 255 },
	{ "words_of_64", 256 },
	{ "last_word_of_1", 257 },
	{ "nvme", 1023 },
	{ "largest", 1024 },
	{ "shrunk_to_one_word", 1023, 64 },
	{ "shrunk_within_a_word", 1023, 100 },
};

KUNIT_ARRAY_PARAM_DESC(map, map_cases, name);

static unsigned int random_below(struct model *model, unsigned int limit)
{
	return prandom_u32_state(&model->rnd) % limit;
}

static void free_queue(void *sbq)
{
	sbitmap_queue_free(sbq);
}

static struct model *new_model(struct kunit *test, bool round_robin)
{
	const struct map_case *param = test->param_value;
	struct model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, model);
	KUNIT_ASSERT_EQ(test, 0,
			sbitmap_queue_init_node(&model->sbq, param->depth, -1,
						round_robin, GFP_KERNEL,
						NUMA_NO_NODE));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, free_queue,
						  &model->sbq));
	model->depth = param->depth;
	if (param->resized) {
		model->depth = param->resized;
		sbitmap_queue_resize(&model->sbq, model->depth);
	}
	prandom_seed_state(&model->rnd, param->depth);
	return model;
}

static void taken(struct kunit *test, struct model *model, unsigned int bit)
{
	KUNIT_ASSERT_LT(test, bit, model->depth);
	KUNIT_ASSERT_FALSE_MSG(test, test_bit(bit, model->busy),
			       "bit %u was handed out twice", bit);
	__set_bit(bit, model->busy);
}

/* Takes up to @nr bits at once, and returns how many it got. */
static unsigned int get_batch(struct sbitmap_queue *sbq, unsigned int nr,
			      int tags[BITS_PER_LONG])
{
	unsigned int offset = 0, bit, done = 0;
	unsigned long mask;

	mask = __sbitmap_queue_get_batch(sbq, nr, &offset);
	for_each_set_bit(bit, &mask, BITS_PER_LONG)
		tags[done++] = offset + bit;
	return done;
}

static unsigned int take_batch(struct kunit *test, struct model *model,
			       unsigned int nr)
{
	int tags[BITS_PER_LONG];
	unsigned int done, i;

	done = get_batch(&model->sbq, nr, tags);
	KUNIT_ASSERT_LE(test, done, nr);
	for (i = 0; i < done; i++)
		taken(test, model, tags[i]);
	return done;
}

static bool take_one(struct kunit *test, struct model *model)
{
	int bit = __sbitmap_queue_get(&model->sbq);

	if (bit >= 0)
		taken(test, model, bit);
	return bit >= 0;
}

/* Frees up to @nr busy bits, from a random one on. */
static void put_some(struct model *model, unsigned int nr, bool batch)
{
	unsigned int bit = random_below(model, model->depth), done = 0;
	int tags[BITS_PER_LONG];

	for_each_set_bit_from(bit, model->busy, model->depth) {
		if (done == nr)
			break;
		__clear_bit(bit, model->busy);
		tags[done++] = bit;
		if (!batch)
			sbitmap_queue_clear(&model->sbq, bit, 0);
	}
	if (batch && done)
		sbitmap_queue_clear_batch(&model->sbq, 0, tags, done);
}

/* Whatever came before: no bit has two owners, and the map knows each. */
static void batch_model(struct kunit *test)
{
	struct model *model = new_model(test, false);
	unsigned int step, nr;

	for (step = 0; step < STEPS; step++) {
		nr = 1 + random_below(model, BITS_PER_LONG);
		switch (random_below(model, 4)) {
		case 0:
			take_batch(test, model, nr);
			break;
		case 1:
			take_one(test, model);
			break;
		default:
			put_some(model, nr, step % 2);
		}
		KUNIT_ASSERT_EQ(test, sbitmap_weight(&model->sbq.sb),
				bitmap_weight(model->busy, model->depth));
	}
}

static unsigned int nr_words(struct model *model)
{
	return DIV_ROUND_UP(model->depth, 1U << model->sbq.sb.shift);
}

static void free_some(struct model *model, unsigned int percent)
{
	unsigned int bit;

	for_each_set_bit(bit, model->busy, model->depth) {
		if (random_below(model, 100) >= percent)
			continue;
		__clear_bit(bit, model->busy);
		sbitmap_queue_clear(&model->sbq, bit, 0);
	}
}

/* Batches take every free bit, wherever it lies, and then no more. */
static void batch_takes_all(struct kunit *test)
{
	struct model *model = new_model(test, false);
	unsigned int pattern;

	for (pattern = 0; pattern < PATTERNS; pattern++) {
		while (take_one(test, model))
			;
		free_some(model, random_below(model, 101));
		while (take_batch(test, model, 32))
			;
		KUNIT_ASSERT_TRUE(test, bitmap_full(model->busy, model->depth));
	}
}

/* From an empty map, each call takes a word. */
static void batch_takes_words(struct kunit *test)
{
	struct model *model = new_model(test, false);
	unsigned int calls = 0;

	while (take_batch(test, model, BITS_PER_LONG))
		calls++;
	KUNIT_EXPECT_EQ(test, nr_words(model), calls);
}

/* A map in strict order must not hand out batches. */
static void batch_not_round_robin(struct kunit *test)
{
	struct model *model = new_model(test, true);

	KUNIT_EXPECT_EQ(test, 0, take_batch(test, model, 1));
	KUNIT_EXPECT_TRUE(test, take_one(test, model));
}

struct racer {
	struct model *model;
	struct completion done;
	unsigned int twice;
};

/* Takes bits, most in batches, and frees them, one by one or together. */
static int race(void *data)
{
	struct racer *racer = data;
	struct model *model = racer->model;
	unsigned int step, nr, i;
	int tags[BITS_PER_LONG];

	for (step = 0; step < 50 * STEPS; step++) {
		nr = 1 + step % 16;
		if (nr > 1) {
			nr = get_batch(&model->sbq, nr, tags);
		} else {
			tags[0] = __sbitmap_queue_get(&model->sbq);
			nr = tags[0] >= 0;
		}
		for (i = 0; i < nr; i++)
			racer->twice += test_and_set_bit(tags[i], model->busy);
		for (i = 0; i < nr; i++) {
			clear_bit(tags[i], model->busy);
			if (step % 3)
				sbitmap_queue_clear(&model->sbq, tags[i], 0);
		}
		if (nr && !(step % 3))
			sbitmap_queue_clear_batch(&model->sbq, 0, tags, nr);
		cond_resched();
	}
	complete(&racer->done);
	return 0;
}

/* Two CPUs take from one map: no bit is handed out twice, and none is lost. */
static void batch_race(struct kunit *test)
{
	struct model *model = new_model(test, false);
	struct racer racers[2];
	struct task_struct *other;
	int i;

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		racers[i] = (struct racer){ .model = model };
		init_completion(&racers[i].done);
	}
	other = kthread_run(race, &racers[0], "sbitmap_race");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, other);
	race(&racers[1]);
	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		wait_for_completion(&racers[i].done);
		KUNIT_EXPECT_EQ(test, 0, racers[i].twice);
	}
	KUNIT_EXPECT_EQ(test, 0, sbitmap_weight(&model->sbq.sb));
}

static struct kunit_case sbitmap_cases[] = {
	KUNIT_CASE_PARAM(batch_model, map_gen_params),
	KUNIT_CASE_PARAM(batch_takes_all, map_gen_params),
	KUNIT_CASE_PARAM(batch_takes_words, map_gen_params),
	KUNIT_CASE_PARAM(batch_not_round_robin, map_gen_params),
	KUNIT_CASE_PARAM(batch_race, map_gen_params),
	{ }
};

static struct kunit_suite sbitmap_suite = {
	.name = "sbitmap",
	.test_cases = sbitmap_cases,
};

kunit_test_suite(sbitmap_suite);

MODULE_DESCRIPTION("KUnit tests for the scalable bitmap");
MODULE_LICENSE("GPL");
