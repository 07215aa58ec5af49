/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_SIM_H
#define PLUGSIM_SIM_H

#include "config.h"

/**
 * struct outcome - what a time came to
 * @iops:	I/Os per second
 * @ios:	how many these were
 * @ns:		how long it was
 * @mean:	latency in ns: from when the submission began, or should have
 *		begun, so that it has all that an I/O waits for: room, the CPU,
 *		those before it
 * @p99:	likewise, that one in a hundred exceeds
 * @doorbells:	per I/O
 * @requests:	per I/O
 */
struct outcome {
	double iops;
	u64 ios;
	u64 ns;
	double mean;
	u64 p99;
	double doorbells;
	double requests;
};

/* The beginning of a phase, or as much of it as is not measured. */
enum {
	FIRST_50,
	FIRST_200,
	NR_FIRST,
};

/**
 * struct phase_outcome - what a phase came to
 * @first:	its first 50 and 200 ms
 * @rest:	after its first part, see warm and warm_ios
 * @late:	I/Os per second in the second half of that
 */
struct phase_outcome {
	struct outcome first[NR_FIRST];
	struct outcome rest;
	double late;
};

/**
 * struct result - what a run came to
 * @phases:	one of each phase, the last time that it was run through
 * @all:	from the end of the first phase's first part to the end
 * @ios:	of @all, by submitter
 * @nr_tasks:	how many submitters there are
 * @group:	mean over the hardware queues, at the end
 * @changes:	times that a controller changed it
 */
struct result {
	struct phase_outcome phases[MAX_PHASES];
	struct outcome all;
	u64 ios[MAX_HCTXS * MAX_TASKS];
	u32 nr_tasks;
	double group;
	u64 changes;
};

bool sim_run(const struct config *config, bool trace, struct result *result);

#endif /* PLUGSIM_SIM_H */
