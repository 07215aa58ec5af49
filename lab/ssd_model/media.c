// SPDX-License-Identifier: GPL-2.0
/*
 * When a command completes. All servers here are first come, first served, so
 * that this is known when the command arrives. No clock and no locks: who calls
 * says what time it is, and sees to it that calls do not overlap.
 *
 * lab/sim/plugsim compiles this, too.
 */
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "media.h"

/* Percentiles in units of 10^-7 % */
#define SSDM_PERCENT	10000000U
#define SSDM_ONE	(100ULL * SSDM_PERCENT)

/* The output function of splitmix64 */
static u64 ssdm_mix(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* A random number: a function of the arguments, so that runs repeat */
u64 ssd_model_draw(u64 seed, u64 number, enum ssd_model_draw which)
{
	u64 step = number * SSD_MODEL_DRAWS + which + 1;

	return ssdm_mix(seed + step * SSD_MODEL_STEP);
}

static bool ssdm_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits, as kstrtou64() is too generous with signs and line ends */
static bool ssdm_number(const char **text, u64 most, u64 *value)
{
	const char *p = *text;
	u64 n = 0;

	for (; ssdm_digit(*p); p++) {
		unsigned int digit = *p - '0';

		if (digit > most || n > div64_u64(most - digit, 10))
			return false;
		n = n * 10 + digit;
	}
	if (p == *text)
		return false;
	*text = p;
	*value = n;
	return true;
}

static bool ssdm_percent(const char **text, u64 *value)
{
	u32 digit = SSDM_PERCENT;
	const char *p;

	if (!ssdm_number(text, 100, value))
		return false;
	*value *= SSDM_PERCENT;
	if (**text != '.')
		return true;
	for (p = *text + 1; ssdm_digit(*p); p++) {
		digit /= 10;
		if (!digit)
			return false;
		*value += (*p - '0') * digit;
	}
	if (p == *text + 1 || *value > SSDM_ONE)
		return false;
	*text = p;
	return true;
}

static bool ssdm_char(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

static bool ssdm_parse_uniform(struct ssd_model_dist *dist, const char **text)
{
	struct ssd_model_point *p = dist->points;

	dist->nr = 2;
	p[0].below = 0;
	p[1].below = 1ULL << 32;
	return ssdm_number(text, SSD_MODEL_NS_MAX, &p[0].ns) &&
	       ssdm_char(text, '-') &&
	       ssdm_number(text, SSD_MODEL_NS_MAX, &p[1].ns) &&
	       p[0].ns <= p[1].ns;
}

static bool ssdm_parse_point(struct ssd_model_dist *dist, const char **text)
{
	struct ssd_model_point *p = &dist->points[dist->nr];
	u64 percent;

	if (dist->nr == SSD_MODEL_POINTS_MAX ||
	    !ssdm_percent(text, &percent) || !ssdm_char(text, '=') ||
	    !ssdm_number(text, SSD_MODEL_NS_MAX, &p->ns))
		return false;
	p->below = div64_u64(percent << 32, SSDM_ONE);
	/* Two percentiles that are too close are one. */
	if (dist->nr++)
		return p[-1].below < p->below && p[-1].ns <= p->ns;
	return !percent;
}

static bool ssdm_parse_table(struct ssd_model_dist *dist, const char **text)
{
	dist->nr = 0;
	do {
		if (!ssdm_parse_point(dist, text))
			return false;
	} while (ssdm_char(text, ','));
	return dist->points[dist->nr - 1].below == 1ULL << 32;
}

static bool ssdm_parse_fixed(struct ssd_model_dist *dist, const char **text)
{
	dist->nr = 1;
	dist->points[0].below = 0;
	return ssdm_number(text, SSD_MODEL_NS_MAX, &dist->points[0].ns);
}

static const struct {
	const char *prefix;
	bool (*parse)(struct ssd_model_dist *dist, const char **text);
} ssdm_kinds[] = {
	{ "fixed:", ssdm_parse_fixed },
	{ "uniform:", ssdm_parse_uniform },
	{ "table:", ssdm_parse_table },
};

/* As SSD_MODEL_DIST_SYNTAX says. Percentiles and times ascend. */
static int ssdm_parse_dist(struct ssd_model_dist *dist, const char *text)
{
	struct ssd_model_dist new = {};
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(ssdm_kinds); i++) {
		len = strlen(ssdm_kinds[i].prefix);
		if (strncmp(text, ssdm_kinds[i].prefix, len))
			continue;
		text += len;
		if (!ssdm_kinds[i].parse(&new, &text) || *text)
			return -EINVAL;
		*dist = new;
		return 0;
	}
	return -EINVAL;
}

/* NULL: there is none. */
const struct ssd_model_word *
ssd_model_word_find(const struct ssd_model_word *words, const char *key)
{
	while (words->key && strcmp(words->key, key))
		words++;
	return words->key ? words : NULL;
}

/* Returns 0, or -EINVAL and nothing has changed. */
int ssd_model_word_set(const struct ssd_model_word *word, void *what,
		       const char *value)
{
	u64 number;

	if (!word->most)
		return ssdm_parse_dist(what + word->offset, value);
	if (!ssdm_number(&value, word->most, &number) || *value ||
	    number < word->least)
		return -EINVAL;
	*(u64 *)(what + word->offset) = number;
	return 0;
}

/* What words are that are not given; all is 0 before. */
void ssd_model_words_preset(const struct ssd_model_word *words, void *what)
{
	for (; words->key; words++) {
		if (words->most)
			*(u64 *)(what + words->offset) = words->preset;
		else
			ssdm_parse_dist(what + words->offset, "fixed:0");
	}
}

/* Of a random number, the upper half counts. */
static u64 ssdm_sample(const struct ssd_model_dist *dist, u64 draw)
{
	const struct ssd_model_point *p = dist->points;
	u64 share = draw >> 32;
	u32 part;

	/* No share reaches 2^32, where the last point is. */
	while (share >= p[1].below)
		p++;
	part = div64_u64((share - p[0].below) << 32, p[1].below - p[0].below);
	/* One bit more, to round: cutting off would shift the mean. */
	return p[0].ns + (mul_u64_u32_shr(p[1].ns - p[0].ns, part, 31) + 1) / 2;
}

/* A sample for a command, without the draw where it would not matter */
static u64 ssdm_time(const struct ssd_model_dist *dist,
		     const struct ssd_model_access *a,
		     enum ssd_model_draw which)
{
	if (dist->nr == 1)
		return dist->points[0].ns;
	return ssdm_sample(dist, ssd_model_draw(a->seed, a->number, which));
}

/* Up to SSD_MODEL_NS_MAX by up to SSD_MODEL_SCALE_MAX percent */
u64 ssd_model_scale(u64 ns, u32 percent)
{
	return div_u64(ns * percent, 100);
}

static void ssdm_scale_dist(struct ssd_model_dist *dist, u32 percent)
{
	unsigned int i;

	for (i = 0; i < dist->nr; i++)
		dist->points[i].ns = ssd_model_scale(dist->points[i].ns,
						     percent);
}

static bool ssdm_dist_zero(const struct ssd_model_dist *dist)
{
	return !dist->points[dist->nr - 1].ns;
}

/* Returns 0 or -ENOMEM. */
int ssd_model_media_init(struct ssd_model_media *media,
			 const struct ssd_model_profile *profile)
{
	struct ssd_model_profile *p = &media->profile;

	memset(media, 0, sizeof(*media));
	*p = *profile;
	ssdm_scale_dist(&p->read_latency, p->time_scale);
	ssdm_scale_dist(&p->write_latency, p->time_scale);
	ssdm_scale_dist(&p->service, p->time_scale);
	/* bytes * 1000 / (MB/s) is ns; percents make that 10 / (MB/s). */
	media->link_cost = 10 * p->time_scale;
	media->shared = p->units || p->bandwidth_mbs;
	media->instant = !media->shared && ssdm_dist_zero(&p->read_latency) &&
			 ssdm_dist_zero(&p->write_latency) &&
			 ssdm_dist_zero(&p->service);
	if (p->units)
		media->unit_free = kvcalloc(p->units, sizeof(u64), GFP_KERNEL);
	return p->units && !media->unit_free ? -ENOMEM : 0;
}

void ssd_model_media_exit(struct ssd_model_media *media)
{
	kvfree(media->unit_free);
	media->unit_free = NULL;
}

/* The earliest unit has become free later: move it down the heap. */
static void ssdm_sift(u64 *heap, u32 nr, u64 later)
{
	u32 at = 0, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && heap[child + 1] < heap[child])
			child++;
		if (later <= heap[child])
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = later;
}

/* Returns when a unit is done with the command. */
static u64 ssdm_serve(struct ssd_model_media *media,
		      const struct ssd_model_access *a, u64 now)
{
	const struct ssd_model_profile *p = &media->profile;
	u64 ns = ssdm_time(&p->service, a, SSD_MODEL_DRAW_SERVICE);
	u64 done;

	if (!p->units)
		return now + ns;
	done = max(now, media->unit_free[0]) + ns;
	ssdm_sift(media->unit_free, p->units, done);
	return done;
}

static u64 ssdm_latency(const struct ssd_model_media *media,
			const struct ssd_model_access *a)
{
	const struct ssd_model_profile *p = &media->profile;

	return ssdm_time(a->op == SSD_MODEL_WRITE ? &p->write_latency :
						    &p->read_latency,
			 a, SSD_MODEL_DRAW_LATENCY);
}

/*
 * Returns when the link is done. Fractions of a ns are kept while the link is
 * busy, so that many transfers together take what one as long would.
 */
static u64 ssdm_transfer(struct ssd_model_media *media, u32 bytes, u64 now)
{
	u64 cost = (u64)bytes * media->link_cost;

	if (media->link_free < now) {
		media->link_free = now;
		media->link_rest = 0;
	}
	cost += media->link_rest;
	media->link_free += div64_u64_rem(cost, media->profile.bandwidth_mbs,
					  &media->link_rest);
	return media->link_free;
}

/*
 * Lets a command in; returns when it completes. @now is never less than in the
 * call before, and calls must not overlap if @media->shared. The link transfers
 * while the units work: a command is done when both are. A flush takes no time.
 */
u64 ssd_model_media_admit(struct ssd_model_media *media,
			  const struct ssd_model_access *access, u64 now)
{
	u64 done;

	if (access->op == SSD_MODEL_FLUSH)
		return now;
	done = ssdm_serve(media, access, now) + ssdm_latency(media, access);
	if (media->profile.bandwidth_mbs)
		done = max(done, ssdm_transfer(media, access->bytes, now));
	return done;
}
