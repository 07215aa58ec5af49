/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is simulated: one line of key=value words.  config.c has the list.
 */
#ifndef PLUGSIM_CONFIG_H
#define PLUGSIM_CONFIG_H

#include "device.h"

enum {
	MAX_PHASES	= 8,
	MAX_LOADS	= 4,
	MAX_STREAMS	= 8,
	MAX_HCTXS	= 64,
	MAX_TASKS	= 4,
	MAX_NAME	= 64,
};

enum completion {
	POLLED,
	IRQ_OWN,
	IRQ_OTHER,
};

/* What a submitter does.  The fields are the words of a line. */
struct load {
	u64 depth;
	u64 batch;
	u64 ragged;
	u64 complete;
	u64 arrive;
	u64 poisson;
	u64 burst;
	u64 pause;
	u64 seq;
	u64 streams;
};

/* A device, CPUs and loads, for a while: queues take the loads in turn. */
struct phase {
	struct device_config device;
	u64 enter;
	u64 submit;
	u64 reap;
	u64 join;
	u64 reap_join;
	u64 doorbell;
	u64 flush;
	u64 poll;
	u64 irq;
	u64 irq_core;
	u64 wake;
	u64 single;
	u64 jitter;
	u64 steal;
	u64 steal_every;
	u64 size;
	u64 max_size;
	u32 nr_loads;
	struct load loads[MAX_LOADS];
	u64 warm;
	u64 warm_ios;
	u64 ios;
	u64 time;
};

struct config {
	char name[MAX_NAME];
	u64 seed;
	u64 group;
	u64 merge;
	u64 hctxs;
	u64 tasks;
	u64 cycles;
	u32 nr_phases;
	struct phase phases[MAX_PHASES];
};

bool config_parse(struct config *config, char *line);
void config_help(void);

#endif /* PLUGSIM_CONFIG_H */
