/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device: latencies that are drawn, units that serve in order of arrival,
 * and pauses.  All hardware queues share it.
 */
#ifndef PLUGSIM_DEVICE_H
#define PLUGSIM_DEVICE_H

#include <linux/types.h>

enum {
	MAX_UNITS	= 4096,
	QUANTILES	= 1024,
};

/**
 * struct dist - what to draw times from, in ns
 * @low:	least of a uniform distribution
 * @span:	greatest less least
 * @share:	part of 2^32 that takes @factor times as long
 * @factor:	how much longer these take
 * @sigma:	of a lognormal distribution; 0: it is uniform
 * @mean:	of a lognormal distribution
 */
struct dist {
	u64 low;
	u64 span;
	u64 share;
	u64 factor;
	double sigma;
	double mean;
};

/**
 * struct device_config - how a device is
 * @latency:	what a command takes after a unit has served it
 * @service:	what it takes a unit
 * @units:	how many there are; 0: no limit
 * @stall:	the device pauses for so long ...
 * @stall_every: ... out of so many ns
 * @transfer:	what an I/O takes the link, which all commands share
 * @mix:	percent of the commands that take @mix_factor times as long
 * @mix_factor:	see @mix
 */
struct device_config {
	struct dist latency;
	struct dist service;
	u64 units;
	u64 stall;
	u64 stall_every;
	u64 transfer;
	u64 mix;
	u64 mix_factor;
};

/**
 * struct device - a device, while it is simulated
 * @config:	what it was set up with
 * @rng:	state of its random numbers
 * @mix_share:	@config.mix as a part of 2^32
 * @link_until:	when the link is free, in the device's own time
 * @busy_until:	when each unit is free, as a heap, in the device's own time
 * @latency_at:	quantiles of @config.latency if that is lognormal
 * @service_at:	likewise
 */
struct device {
	struct device_config config;
	u64 rng;
	u64 mix_share;
	u64 link_until;
	u64 busy_until[MAX_UNITS];
	u64 latency_at[QUANTILES + 1];
	u64 service_at[QUANTILES + 1];
};

bool dist_parse(struct dist *dist, const char *text);
u64 dist_mean(const struct dist *dist);
void device_init(struct device *dev, u64 seed);
void device_setup(struct device *dev, const struct device_config *config);
u64 device_ready(struct device *dev, u64 now, u32 ios);

#endif /* PLUGSIM_DEVICE_H */
