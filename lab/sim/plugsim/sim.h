/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_SIM_H
#define PLUGSIM_SIM_H

#include "config.h"

/* What a time came to */
struct outcome {
	double iops;		/* I/Os per second */
	u64 ios;		/* how many these were */
	u64 ns;			/* how long it was */
	/*
	 * latency in ns: from when the submission began, or should have begun,
	 * so that it has all that an I/O waits for: room, the CPU, those
	 * before it
	 */
	double mean;
	u64 p99;		/* likewise, that one in a hundred exceeds */
	double doorbells;	/* per I/O */
	double requests;	/* per I/O */
};

/* The beginning of a phase, or as much of it as is not measured. */
enum {
	FIRST_50,
	FIRST_200,
	NR_FIRST,
};

/* What a phase came to */
struct phase_outcome {
	struct outcome first[NR_FIRST];	/* its first 50 and 200 ms */
	/* after its first part, see warm and warm_ios */
	struct outcome rest;
	double late;		/* I/Os per second in the second half of that */
};

/* What a run came to */
struct result {
	/* one of each phase, the last time that it was run through */
	struct phase_outcome phases[MAX_PHASES];
	/* from the end of the first phase's first part to the end */
	struct outcome all;
	u64 ios[MAX_HCTXS * MAX_TASKS];	/* of all, by submitter */
	u32 nr_tasks;		/* how many submitters there are */
	double group;		/* mean over the hardware queues, at the end */
	u64 changes;		/* times that a controller changed it */
};

bool sim_run(const struct config *config, bool trace, struct result *result);

#endif /* PLUGSIM_SIM_H */
