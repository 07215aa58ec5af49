// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of the model SSD, against what queueing theory says
 */
#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "ssd_model.h"

#define SSDM_DRAWS	100000
#define SSDM_ARRIVALS	200000

/* Mean wait in an M/D/4 queue that is 50 and 80 % busy, service time 100000 */
#define SSDM_MD4_50	4965
#define SSDM_MD4_80	38609

/**
 * struct ssdm_queueing - what a run of arrivals came to
 * @wait_ns: mean time in the queue
 * @end: last completion
 */
struct ssdm_queueing {
	u64 wait_ns;
	u64 end;
};

/* @value must be within @parts per thousand of @ideal. */
static void ssdm_expect_near(struct kunit *test, u64 value, u64 ideal,
			     u64 parts)
{
	u64 slack = div_u64(ideal * parts, 1000);

	KUNIT_EXPECT_GE(test, value, ideal - slack);
	KUNIT_EXPECT_LE(test, value, ideal + slack);
}

static const struct ssd_model_dist ssdm_nothing = { .nr = 1 };

static void ssdm_profile(struct kunit *test, struct ssd_model_profile *p,
			 const char *latency, const char *service)
{
	*p = (struct ssd_model_profile){
		.sectors = 1 << 20,
		.time_scale = 100,
	};
	p->latency[SSD_MODEL_WRITE] = ssdm_nothing;
	p->latency[SSD_MODEL_FLUSH] = ssdm_nothing;
	KUNIT_ASSERT_EQ(test, 0,
			ssd_model_dist_parse(&p->latency[SSD_MODEL_READ],
					     latency));
	KUNIT_ASSERT_EQ(test, 0, ssd_model_dist_parse(&p->service, service));
}

static void ssdm_media(struct kunit *test, struct ssd_model_media *media,
		       const struct ssd_model_profile *p)
{
	KUNIT_ASSERT_EQ(test, 0, ssd_model_media_init(media, p));
}

static u64 ssdm_read(struct ssd_model_media *media, u64 number, u64 sector,
		     u32 bytes, u64 now)
{
	struct ssd_model_access access = {
		.op = SSD_MODEL_READ,
		.bytes = bytes,
		.sector = sector,
		.seed = 1,
		.number = number,
	};

	return ssd_model_media_admit(media, &access, now);
}

/*
 * An exponential variate times 2^24, by von Neumann's method, which only
 * compares: the length of the first falling run of uniforms is odd with
 * probability exp(-first).
 */
static u64 ssdm_exponential(u64 *number)
{
	u64 whole = 0, first, last, next;
	bool odd;

	for (;; whole++) {
		first = ssd_model_draw(7, (*number)++, 0) >> 40;
		last = first;
		for (odd = true;; odd = !odd) {
			next = ssd_model_draw(7, (*number)++, 0) >> 40;
			if (next > last)
				break;
			last = next;
		}
		if (odd)
			return (whole << 24) + first;
	}
}

/* Poisson arrivals, one per @gap ns, at units that take @service each */
static struct ssdm_queueing ssdm_poisson(struct kunit *test, u32 units,
					 const char *service, u64 service_ns,
					 u64 gap)
{
	struct ssdm_queueing result = {};
	static struct ssd_model_profile p;
	static struct ssd_model_media media;
	u64 now = 0, number = 0, wait = 0, i;

	ssdm_profile(test, &p, "fixed:0", service);
	p.units = units;
	ssdm_media(test, &media, &p);
	for (i = 0; i < SSDM_ARRIVALS; i++) {
		now += (gap * ssdm_exponential(&number)) >> 24;
		result.end = ssdm_read(&media, i, 0, 4096, now);
		wait += result.end - now - service_ns;
	}
	KUNIT_EXPECT_EQ(test, ssd_model_media_busy(&media, result.end),
			SSDM_ARRIVALS * service_ns);
	ssd_model_media_exit(&media);
	result.wait_ns = div_u64(wait, SSDM_ARRIVALS);
	return result;
}

static void ssdm_draw_repeats(struct kunit *test)
{
	/* The first outputs of splitmix64 seeded with 0, as published */
	KUNIT_EXPECT_EQ(test, ssd_model_draw(0, 0, 0), 0xe220a8397b1dcdafULL);
	KUNIT_EXPECT_EQ(test, ssd_model_draw(0, 0, 1), 0x6e789e6aa1b965f4ULL);
	KUNIT_EXPECT_EQ(test, ssd_model_draw(0, 0, 2), 0x06c45d188009454fULL);
	KUNIT_EXPECT_NE(test, ssd_model_draw(1, 0, 0), ssd_model_draw(2, 0, 0));
}

/* Chi squared with 15 degrees of freedom exceeds 37.7 once in 1000. */
static void ssdm_draw_is_uniform(struct kunit *test)
{
	u64 count[16] = {}, sum = 0, i;
	u64 ideal = SSDM_DRAWS / 16;

	for (i = 0; i < SSDM_DRAWS; i++)
		count[ssd_model_draw(1, i, SSD_MODEL_DRAW_LATENCY) >> 60]++;
	for (i = 0; i < 16; i++) {
		s64 off = count[i] - ideal;

		sum += off * off;
	}
	KUNIT_EXPECT_LT(test, sum * 10, 377 * ideal);
	KUNIT_EXPECT_GT(test, sum, 0);
}

/* Checks the mean of many draws, to @parts per 1000, and their range. */
static void ssdm_check_dist(struct kunit *test, const char *text, u64 least,
			    u64 most, u64 mean, unsigned int parts)
{
	struct ssd_model_dist dist;
	u64 sum = 0, low = U64_MAX, high = 0, i, ns;

	KUNIT_ASSERT_EQ(test, 0, ssd_model_dist_parse(&dist, text));
	for (i = 0; i < SSDM_DRAWS; i++) {
		ns = ssd_model_dist_sample(&dist, ssd_model_draw(1, i, 0));
		low = min(low, ns);
		high = max(high, ns);
		sum += ns;
	}
	ssdm_expect_near(test, div_u64(sum, SSDM_DRAWS), mean, parts);
	KUNIT_EXPECT_GE(test, low, least);
	KUNIT_EXPECT_LE(test, high, most);
	KUNIT_EXPECT_EQ(test, ssd_model_dist_sample(&dist, 0), least);
	KUNIT_EXPECT_EQ(test, ssd_model_dist_sample(&dist, U64_MAX), most);
}

static void ssdm_dist_values(struct kunit *test)
{
	ssdm_check_dist(test, "fixed:12345", 12345, 12345, 12345, 0);
	ssdm_check_dist(test, "uniform:1000-3000", 1000, 3000, 2000, 5);
	ssdm_check_dist(test, "table:0=1000,50=2000,100=10000", 1000, 10000,
			(1500 + 6000) / 2, 10);
	ssdm_check_dist(test, "table:0=0,99.9=10000,100=20000", 0, 20000, 5010,
			10);
}

static void ssdm_dist_quantiles(struct kunit *test)
{
	struct ssd_model_dist dist;

	KUNIT_ASSERT_EQ(test, 0,
			ssd_model_dist_parse(&dist,
					     "table:0=10,50=20,100=1020"));
	KUNIT_EXPECT_EQ(test, 15, ssd_model_dist_sample(&dist, 1ULL << 62));
	KUNIT_EXPECT_EQ(test, 20, ssd_model_dist_sample(&dist, 1ULL << 63));
	KUNIT_EXPECT_EQ(test, 520, ssd_model_dist_sample(&dist, 3ULL << 62));
}

static const char *const ssdm_bad[] = {
	"", "0", "fixed", "fixed:", "fixed:-1", "fixed:+1", "fixed:1 ",
	" fixed:1", "fixed:1\n", "fixed:0x10", "fixed:10000000001",
	"fixed:18446744073709551617", "Fixed:1", "uniform:", "uniform:1",
	"uniform:1-", "uniform:-1", "uniform:2-1", "uniform:1-2-3",
	"table:", "table:0=1", "table:100=1", "table:0=1,50=2",
	"table:10=1,100=2", "table:0=1,50=2,50=3,100=4",
	"table:0=1,60=2,50=3,100=4", "table:0=2,100=1", "table:0=1,100=2,",
	"table:,0=1,100=2", "table:0=1,101=2", "table:0=1,100.1=2",
	"table:0=1,5.=2,100=3", "table:0=1,.5=2,100=3", "table:0,100",
	"table:0=1,50.00000001=2,100=3", "table:0=,100=1",
	"table:0=1,1=1,2=1,3=1,4=1,5=1,6=1,7=1,8=1,9=1,10=1,11=1,12=1,13=1,14=1,15=1,100=1",
};

static void ssdm_dist_refuses(struct kunit *test)
{
	struct ssd_model_dist dist = { .nr = 1, .points[0].ns = 77 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ssdm_bad); i++) {
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    ssd_model_dist_parse(&dist, ssdm_bad[i]),
				    "'%s'", ssdm_bad[i]);
	}
	KUNIT_EXPECT_EQ(test, 77, dist.points[0].ns);
}

/* Pollaczek and Khinchine: rho s / (2 (1 - rho)) */
static void ssdm_md1(struct kunit *test)
{
	struct ssdm_queueing r;

	r = ssdm_poisson(test, 1, "fixed:10000", 10000, 20000);
	ssdm_expect_near(test, r.wait_ns, 5000, 20);
	r = ssdm_poisson(test, 1, "fixed:10000", 10000, 12500);
	ssdm_expect_near(test, r.wait_ns, 20000, 40);
}

/*
 * The stationary distribution of the number in an M/D/4 queue, looked at once
 * per service time, gives the mean wait in service times; solved numerically.
 */
static void ssdm_md4(struct kunit *test)
{
	struct ssdm_queueing r;

	r = ssdm_poisson(test, 4, "fixed:10000", 10000, 5000);
	ssdm_expect_near(test, r.wait_ns, 10000 * SSDM_MD4_50 / 100000, 30);
	r = ssdm_poisson(test, 4, "fixed:10000", 10000, 3125);
	ssdm_expect_near(test, r.wait_ns, 10000 * SSDM_MD4_80 / 100000, 40);
}

/* Three units, all commands at once: rounds of three */
static void ssdm_dd3(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;
	u64 i;

	ssdm_profile(test, &p, "fixed:500", "fixed:1000");
	p.units = 3;
	ssdm_media(test, &media, &p);
	for (i = 0; i < 30; i++)
		KUNIT_EXPECT_EQ(test, ssdm_read(&media, i, 0, 4096, 100),
				100 + (i / 3 + 1) * 1000 + 500);
	KUNIT_EXPECT_EQ(test, ssd_model_media_busy(&media, 100 + 4000), 12000);
	KUNIT_EXPECT_EQ(test, ssd_model_media_busy(&media, 100 + 90000), 30000);
	ssd_model_media_exit(&media);
}

#define SSDM_LITTLE	6000

/* Commands in flight, looked at every 7 ns while the run is at its height */
static u64 ssdm_mean_inflight_milli(const u64 *start, const u64 *end)
{
	u64 t, sum = 0, looks = 0;
	unsigned int i;

	for (t = 1500000; t < 5000000; t += 2003) {
		for (i = 0; i < SSDM_LITTLE; i++)
			sum += start[i] <= t && t < end[i];
		looks++;
	}
	return div64_u64(sum * 1000, looks);
}

/* One command per us, with a mean of 150 us from latency and 4 of waiting */
static void ssdm_little(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;
	u64 *start, *end, sum = 0;
	unsigned int i;

	start = kunit_kcalloc(test, SSDM_LITTLE, sizeof(u64), GFP_KERNEL);
	end = kunit_kcalloc(test, SSDM_LITTLE, sizeof(u64), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, start);
	KUNIT_ASSERT_NOT_NULL(test, end);
	ssdm_profile(test, &p, "uniform:100000-200000", "uniform:0-14000");
	p.units = 8;
	ssdm_media(test, &media, &p);
	for (i = 0; i < SSDM_LITTLE; i++) {
		start[i] = i * 1000;
		end[i] = ssdm_read(&media, i, 0, 4096, start[i]);
		sum += end[i] - start[i];
	}
	ssd_model_media_exit(&media);
	/* One per us: the mean latency in ns is the mean number times 1000. */
	ssdm_expect_near(test, ssdm_mean_inflight_milli(start, end),
			 div_u64(sum, SSDM_LITTLE), 10);
	KUNIT_EXPECT_GT(test, div_u64(sum, SSDM_LITTLE), 155000);
}

/* 4 KiB at 3 GB/s are 1365 1/3 ns: the thirds must add up. */
static void ssdm_bandwidth(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;
	u64 i, done = 0;

	ssdm_profile(test, &p, "fixed:2000", "fixed:0");
	p.bandwidth_mbs = 3000;
	ssdm_media(test, &media, &p);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 4096, 0), 2000);
	for (i = 1; i < 3000; i++)
		done = ssdm_read(&media, i, 0, 4096, 0);
	KUNIT_EXPECT_EQ(test, done, 4096000);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, i, 0, 4096, 5000000), 5002000);
	ssd_model_media_exit(&media);
}

static void ssdm_per_kb(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;

	ssdm_profile(test, &p, "fixed:1000", "fixed:0");
	p.latency_per_kb_ns = 100;
	ssdm_media(test, &media, &p);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 512, 0), 1000);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 4096, 0), 1000);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 4608, 0), 1050);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 131072, 0), 13400);
	ssd_model_media_exit(&media);
}

static void ssdm_seeks(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;
	u64 now;

	ssdm_profile(test, &p, "fixed:0", "fixed:0");
	p.rotational = true;
	p.seek_min_ns = 1000000;
	p.seek_max_ns = 9000000;
	p.bandwidth_mbs = 512;
	ssdm_media(test, &media, &p);
	/* 512 bytes take 1000 ns; the arm begins at 0. */
	now = ssdm_read(&media, 0, 0, 512, 0);
	KUNIT_EXPECT_EQ(test, now, 1000);
	now = ssdm_read(&media, 1, 1, 512, now);
	KUNIT_EXPECT_EQ(test, now, 2000);
	/* A quarter of the device away is half of the way in time. */
	now = ssdm_read(&media, 2, 2 + (1 << 18), 512, now);
	KUNIT_EXPECT_EQ(test, now, 2000 + 5000000 + 1000);
	/* The arm is not free before: seeks follow each other. */
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 3, 3, 512, 0),
			now + 5000000 + 1000);
	ssd_model_media_exit(&media);
}

static void ssdm_rotation(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;
	u64 i, ns, low = U64_MAX, high = 0, sum = 0;

	ssdm_profile(test, &p, "fixed:0", "fixed:0");
	p.rotational = true;
	p.rotation_ns = 8000000;
	ssdm_media(test, &media, &p);
	for (i = 0; i < 10000; i++) {
		media.arm_sector = 1000;
		media.arm_free = 0;
		ns = ssdm_read(&media, i, 0, 4096, 0);
		low = min(low, ns);
		high = max(high, ns);
		sum += ns;
	}
	ssdm_expect_near(test, div_u64(sum, 10000), 4000000, 20);
	KUNIT_EXPECT_LT(test, low, 80000);
	KUNIT_EXPECT_GT(test, high, 7920000);
	KUNIT_EXPECT_LT(test, high, 8000000);
	ssd_model_media_exit(&media);
}

static void ssdm_time_scale(struct kunit *test)
{
	static struct ssd_model_profile p;
	static struct ssd_model_media media;

	ssdm_profile(test, &p, "fixed:1000", "fixed:300");
	p.units = 1;
	p.time_scale = 250;
	ssdm_media(test, &media, &p);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 4096, 0), 3250);
	ssd_model_media_exit(&media);

	p.units = 0;
	p.bandwidth_mbs = 1;
	ssdm_media(test, &media, &p);
	KUNIT_EXPECT_EQ(test, ssdm_read(&media, 0, 0, 512, 0), 512 * 2500);
	ssd_model_media_exit(&media);

	p.bandwidth_mbs = 0;
	p.time_scale = 0;
	ssdm_media(test, &media, &p);
	KUNIT_EXPECT_TRUE(test, media.instant);
	ssd_model_media_exit(&media);
}

static struct kunit_case ssdm_cases[] = {
	KUNIT_CASE(ssdm_draw_repeats),
	KUNIT_CASE(ssdm_draw_is_uniform),
	KUNIT_CASE(ssdm_dist_values),
	KUNIT_CASE(ssdm_dist_quantiles),
	KUNIT_CASE(ssdm_dist_refuses),
	KUNIT_CASE(ssdm_md1),
	KUNIT_CASE(ssdm_md4),
	KUNIT_CASE(ssdm_dd3),
	KUNIT_CASE(ssdm_little),
	KUNIT_CASE(ssdm_bandwidth),
	KUNIT_CASE(ssdm_per_kb),
	KUNIT_CASE(ssdm_seeks),
	KUNIT_CASE(ssdm_rotation),
	KUNIT_CASE(ssdm_time_scale),
	{}
};

static struct kunit_suite ssdm_suite = {
	.name = "ssd_model",
	.test_cases = ssdm_cases,
};

kunit_test_suite(ssdm_suite);

MODULE_DESCRIPTION("KUnit tests of the model SSD");
MODULE_IMPORT_NS("SSD_MODEL");
MODULE_LICENSE("GPL");
