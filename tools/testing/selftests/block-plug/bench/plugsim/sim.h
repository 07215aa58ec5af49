/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_SIM_H
#define PLUGSIM_SIM_H

#include "config.h"

/**
 * struct outcome - what a phase came to
 * @early:	requests per second of its first part, see warm and warm_ios
 * @early_ios:	how many these were
 * @iops:	requests per second after that
 * @late:	the same of the second half of that
 * @ns:		how long that was
 * @mean:	latency after the first part, from submission or arrival, in ns
 * @p99:	likewise
 * @doorbells:	per request
 */
struct outcome {
	double early;
	u64 early_ios;
	double iops;
	double late;
	u64 ns;
	double mean;
	u64 p99;
	double doorbells;
};

/**
 * struct result - what a run came to
 * @phases:	one of each phase
 * @group:	mean over the hardware queues, at the end
 * @changes:	times that a controller changed it
 */
struct result {
	struct outcome phases[MAX_PHASES];
	double group;
	u64 changes;
};

bool sim_run(const struct config *config, bool trace, struct result *result);

#endif /* PLUGSIM_SIM_H */
