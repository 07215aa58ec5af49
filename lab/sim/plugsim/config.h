/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is simulated: one line of key=value words.  config.c has the list.
 */
#ifndef PLUGSIM_CONFIG_H
#define PLUGSIM_CONFIG_H

#include "media.h"

enum {
	MAX_PHASES	= 8,
	MAX_LOADS	= 4,
	MAX_STREAMS	= 8,
	MAX_HCTXS	= 64,
	MAX_TASKS	= 4,
};

enum completion {
	POLLED,
	IRQ_OWN,
	IRQ_OTHER,
};

/* What a submitter does.  Fields are the words of a line, here and below. */
struct load {
#define RUN(name, ...)
#define PHASE(name, ...)
#define LOAD(name, ...)		u64 name
#include "words.h"
};

/* A device, CPUs and loads, for a while: queues take the loads in turn. */
struct phase {
	struct ssd_model_profile media;
#define RUN(name, ...)
#define PHASE(name, ...)	u64 name
#define LOAD(name, ...)
#include "words.h"
	u32 nr_loads;
	struct load loads[MAX_LOADS];
};

struct config {
#define RUN(name, ...)		u64 name
#define PHASE(name, ...)
#define LOAD(name, ...)
#include "words.h"
	u32 nr_phases;
	struct phase phases[MAX_PHASES];
};

bool config_parse(struct config *config, char *line);
void config_help(void);

#endif /* PLUGSIM_CONFIG_H */
