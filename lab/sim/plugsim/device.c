// SPDX-License-Identifier: GPL-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "rng.h"

#define TWO_32	4294967296.0

/* The normal distribution's quantile, which the C library lacks. */
static double normal_quantile(double part)
{
	double low = -8, high = 8;

	for (int i = 0; i < 50; i++) {
		double mid = (low + high) / 2;

		if (erfc(-mid / M_SQRT2) / 2 < part)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

/* Bisected once, since a configuration lasts only milliseconds. */
static const double *normal_quantiles(void)
{
	static double at[QUANTILES + 1];
	static bool done;

	for (int i = 0; !done && i <= QUANTILES; i++) {
		double part = (double)i / QUANTILES;

		/* The outermost ones stand for half an interval. */
		part = fmin(fmax(part, 0.25 / QUANTILES),
			    1 - 0.25 / QUANTILES);
		at[i] = normal_quantile(part);
	}
	done = true;
	return at;
}

static void dist_table(const struct dist *dist, u64 *at)
{
	const double *normal = normal_quantiles();
	double median = dist->mean / exp(dist->sigma * dist->sigma / 2);

	for (int i = 0; i <= QUANTILES; i++)
		at[i] = median * exp(dist->sigma * normal[i]);
}

static u64 dist_draw(const struct dist *dist, const u64 *at, u64 *rng)
{
	u64 random = rng_next(rng), part = random >> 32, time;

	if (dist->sigma) {
		u64 i = part * QUANTILES >> 32;

		part = part * QUANTILES & 0xffffffff;
		return at[i] + (part * (at[i + 1] - at[i]) >> 32);
	}
	time = dist->low + (part * dist->span >> 32);
	return (random & 0xffffffff) < dist->share ? time * dist->factor : time;
}

u64 dist_mean(const struct dist *dist)
{
	double mean = dist->low + dist->span / 2.0;

	if (dist->sigma)
		return dist->mean;
	return mean * (1 + (dist->factor - 1.0) * dist->share / TWO_32);
}

static bool dist_set(struct dist *dist, double low, double high, double share,
		     double factor)
{
	*dist = (struct dist){ .low = low, .span = high - low,
			       .share = share * TWO_32 / 100,
			       .factor = factor };
	return low >= 0 && high >= low && high < TWO_32 && share >= 0 &&
	       share <= 100 && factor >= 1 && factor <= 1000;
}

/* False: accepted is what the help says. */
bool dist_parse(struct dist *dist, const char *text)
{
	double a, b, c, d;
	int end = -1;

	if (sscanf(text, "fixed:%lf%n", &a, &end) == 1 && !text[end])
		return dist_set(dist, a, a, 0, 1);
	if (sscanf(text, "uniform:%lf-%lf%n", &a, &b, &end) == 2 && !text[end])
		return dist_set(dist, a, b, 0, 1);
	if (sscanf(text, "bimodal:%lf-%lf:%lf:%lf%n", &a, &b, &c, &d, &end) ==
	    4 && !text[end])
		return dist_set(dist, a, b, c, d);
	if (sscanf(text, "lognormal:%lf:%lf%n", &a, &b, &end) != 2 ||
	    text[end] || !dist_set(dist, a, a, 0, 1))
		return false;
	dist->mean = a;
	dist->sigma = b / 100;
	return b > 0 && b <= 200;
}

void device_init(struct device *dev, u64 seed)
{
	*dev = (struct device){ .rng = seed };
}

/* Commands that the device has already seen stay as they are. */
void device_setup(struct device *dev, const struct device_config *config)
{
	if (config->units != dev->config.units ||
	    config->stall != dev->config.stall ||
	    config->stall_every != dev->config.stall_every) {
		memset(dev->busy_until, 0, sizeof(dev->busy_until));
		dev->link_until = 0;
	}
	dev->config = *config;
	dev->mix_share = (config->mix << 32) / 100;
	if (config->latency.sigma)
		dist_table(&config->latency, dev->latency_at);
	if (config->service.sigma)
		dist_table(&config->service, dev->service_at);
}

/* The device's own time stands still while it pauses. */
static u64 own_time(const struct device_config *config, u64 now)
{
	u64 stall = config->stall, every = config->stall_every, rest;

	if (!stall)
		return now;
	rest = now % every;
	return now / every * (every - stall) +
	       (rest > stall ? rest - stall : 0);
}

static u64 real_time(const struct device_config *config, u64 own)
{
	u64 stall = config->stall, awake = config->stall_every - stall;

	if (!stall)
		return own;
	return own / awake * config->stall_every + stall + own % awake;
}

/* The unit that was free first is busy until then. */
static void unit_busy(struct device *dev, u64 until)
{
	u64 *heap = dev->busy_until;
	u32 nr = dev->config.units, i = 0, child;

	while ((child = 2 * i + 1) < nr) {
		if (child + 1 < nr && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= until)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = until;
}

/**
 * device_ready - the device sees a command
 * @dev: device
 * @now: when; calls come in this order
 * @ios: how many I/Os it carries
 *
 * Return: when it will have completed it.
 */
u64 device_ready(struct device *dev, u64 now, u32 ios)
{
	const struct device_config *config = &dev->config;
	u64 own = own_time(config, now), factor = 1;

	if (config->mix && (rng_next(&dev->rng) >> 32) < dev->mix_share)
		factor = config->mix_factor;
	if (config->transfer) {
		if (own < dev->link_until)
			own = dev->link_until;
		own += ios * config->transfer;
		dev->link_until = own;
	}
	if (config->units) {
		if (own < dev->busy_until[0])
			own = dev->busy_until[0];
		own += factor * dist_draw(&config->service, dev->service_at,
					  &dev->rng);
		unit_busy(dev, own);
	}
	own += factor * dist_draw(&config->latency, dev->latency_at, &dev->rng);
	return real_time(config, own);
}
