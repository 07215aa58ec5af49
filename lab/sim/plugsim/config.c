// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

/* A word of a line: where its value goes, what it may be. */
struct word {
	const char *key;
	size_t offset;
	u64 low;
	u64 high;
	u64 preset;
	const char *help;
};

#define RUN(field, low, high, preset, help) \
	{ #field, offsetof(struct config, field), low, high, preset, help }
#define PHASE(field, low, high, preset, help) \
	{ #field, offsetof(struct phase, field), low, high, preset, help }
#define DEVICE(field, low, high, preset, help) \
	{ #field, offsetof(struct phase, device.field), low, high, preset, \
	  help }
#define LOAD(field, low, high, preset, help) \
	{ #field, offsetof(struct load, field), low, high, preset, help }
#define SECOND	1000000000ULL
#define DIST_SYNTAX \
	"fixed:NS, uniform:LOW-HIGH, lognormal:MEAN:PERCENT, " \
	"bimodal:LOW-HIGH:PERCENT:FACTOR"

static const struct word run_words[] = {
	RUN(seed, 0, ~0ULL, 1, "of the random numbers"),
	RUN(group, 0, 32, 0,
	    "requests a plug sends out; 32: always, 0: adaptive"),
	RUN(merge, 0, 1, 1, "0: no I/O joins a request, as under never"),
	RUN(hctxs, 1, MAX_HCTXS, 1, "hardware queues"),
	RUN(tasks, 1, MAX_TASKS, 1, "submitters of each, on a core each"),
	RUN(cycles, 1, 10000, 1, "times that all phases are run through"),
	{}
};

static const struct word phase_words[] = {
	DEVICE(units, 0, MAX_UNITS, 0, "that serve; 0: no limit"),
	DEVICE(stall, 0, SECOND, 0, "ns that the device pauses ..."),
	DEVICE(stall_every, 0, 10 * SECOND, 0, "... out of so many"),
	DEVICE(mix, 0, 100, 0, "percent of commands that take longer"),
	DEVICE(mix_factor, 1, 1000, 1, "so many times"),
	DEVICE(transfer, 0, SECOND, 0, "ns of the device's link per I/O"),
	PHASE(enter, 0, SECOND, 0, "ns of CPU for an I/O before its plug begins"),
	PHASE(submit, 0, SECOND, 250, "ns of CPU to prepare a request"),
	PHASE(reap, 0, SECOND, 150, "ns of CPU to complete one"),
	PHASE(join, 0, SECOND, 220, "ns to prepare an I/O that joins one"),
	PHASE(reap_join, 0, SECOND, 130, "ns to complete an I/O that did"),
	PHASE(doorbell, 0, SECOND, 50, "ns of CPU of a doorbell"),
	PHASE(flush, 0, SECOND, 0, "ns of CPU of a flush besides"),
	PHASE(irq_core, 0, IRQ_OTHER, 0,
	      "0: polled, 1: interrupts own core, 2: another"),
	PHASE(poll, 0, SECOND, 0, "ns of CPU of a poll that finds something"),
	PHASE(irq, 0, SECOND, 500, "ns of CPU of an interrupt"),
	PHASE(wake, 0, SECOND, 0, "ns to wake a submitter that sleeps"),
	PHASE(single, 0, 1, 0, "1: requests complete one by one"),
	PHASE(jitter, 0, 100, 0, "percent that CPU times vary"),
	PHASE(steal, 0, SECOND, 0, "ns that a core is taken away, after ..."),
	PHASE(steal_every, 0, 10 * SECOND, 0, "... so many on average"),
	PHASE(size, 512, 1 << 20, 4096, "bytes of an I/O"),
	PHASE(max_size, 4096, 1 << 20, 512 << 10, "bytes of a request"),
	PHASE(warm, 0, 1000 * SECOND, SECOND, "ns before it is measured, ..."),
	PHASE(warm_ios, 0, 1ULL << 40, 1ULL << 40, "... or so many I/Os"),
	PHASE(ios, 1, 1ULL << 40, 64000, "I/Os to measure after that"),
	PHASE(time, 0, 1000 * SECOND, 0, "ns to measure for at most; 0: any"),
	{}
};

static const struct word load_words[] = {
	LOAD(depth, 1, 65536, 128, "I/Os in flight of a task"),
	LOAD(batch, 1, 65536, 32, "I/Os of a submission"),
	LOAD(ragged, 0, 1, 0, "1: of any number of I/Os up to that"),
	LOAD(complete, 1, 65536, 32, "I/Os to wait for"),
	LOAD(arrive, 0, 10 * SECOND, 0,
	     "ns between batches; 0: when there is room"),
	LOAD(poisson, 0, 1, 0, "1: these ns are an average"),
	LOAD(burst, 1, 10 * SECOND, SECOND, "ns that it submits, before ..."),
	LOAD(pause, 0, 10 * SECOND, 0, "... a pause of so many"),
	LOAD(seq, 0, 100, 0, "percent of I/Os that go on with a stream"),
	LOAD(streams, 1, MAX_STREAMS, 1, "sequential streams, by chance"),
	{}
};

static bool set_number(const struct word *word, void *base, const char *value)
{
	char *end;
	u64 number = strtoull(value, &end, 0);

	if (!isdigit((unsigned char)value[0]) || *end || number < word->low ||
	    number > word->high) {
		fprintf(stderr, "plugsim: %s=%s; accepted: %llu to %llu\n",
			word->key, value, (unsigned long long)word->low,
			(unsigned long long)word->high);
		return false;
	}
	*(u64 *)((char *)base + word->offset) = number;
	return true;
}

static const struct word *find_word(const struct word *words, const char *key)
{
	while (words->key && strcmp(words->key, key))
		words++;
	return words->key ? words : NULL;
}

static bool set_dist(struct dist *dist, const char *key, const char *value)
{
	if (dist_parse(dist, value))
		return true;
	fprintf(stderr, "plugsim: %s=%s; accepted: %s, below 4 s\n", key, value,
		DIST_SYNTAX);
	return false;
}

static bool set_name(char *name, const char *value)
{
	/* It will be part of JSON. */
	if (strlen(value) >= MAX_NAME || strpbrk(value, "\"\\")) {
		fprintf(stderr, "plugsim: name=%s; accepted: up to %d letters, no quote\n",
			value, MAX_NAME - 1);
		return false;
	}
	strcpy(name, value);
	return true;
}

/* Where a line's next word belongs. */
struct place {
	struct config *config;
	struct phase *phase;
	struct load *load;
};

static bool set_word(const struct place *at, const char *key,
		     const char *value)
{
	struct config *config = at->config;
	struct phase *phase = at->phase;
	const struct word *word;

	if (!strcmp(key, "name"))
		return set_name(config->name, value);
	if (!strcmp(key, "lat"))
		return set_dist(&phase->device.latency, key, value);
	if (!strcmp(key, "service"))
		return set_dist(&phase->device.service, key, value);
	word = find_word(run_words, key);
	if (word)
		return set_number(word, config, value);
	word = find_word(phase_words, key);
	if (word)
		return set_number(word, phase, value);
	word = find_word(load_words, key);
	if (word)
		return set_number(word, at->load, value);
	fprintf(stderr, "plugsim: no word is named %s; see --help\n", key);
	return false;
}

static const char *load_wrong(const struct load *load)
{
	if (load->batch > load->depth)
		return "batch is above depth";
	if (load->complete > load->depth)
		return "complete is above depth";
	return NULL;
}

static bool phase_check(const struct phase *phase)
{
	const char *wrong = NULL;

	for (u32 i = 0; i < phase->nr_loads && !wrong; i++)
		wrong = load_wrong(&phase->loads[i]);
	if (phase->device.stall &&
	    phase->device.stall >= phase->device.stall_every)
		wrong = "stall is not below stall_every";
	else if (phase->steal && !phase->steal_every)
		wrong = "steal needs steal_every";
	else if (phase->max_size < phase->size)
		wrong = "max_size is below size";
	if (wrong)
		fprintf(stderr, "plugsim: %s\n", wrong);
	return !wrong;
}

static void set_presets(const struct word *words, void *base)
{
	for (; words->key; words++)
		*(u64 *)((char *)base + words->offset) = words->preset;
}

static bool too_many(const char *what, int most)
{
	fprintf(stderr, "plugsim: accepted: up to %d %s\n", most, what);
	return false;
}

/* A new one is as the one before it. */
static bool next_phase(struct place *at)
{
	struct config *config = at->config;

	if (config->nr_phases == MAX_PHASES)
		return too_many("phases", MAX_PHASES);
	at->phase = &config->phases[config->nr_phases++];
	at->phase[0] = at->phase[-1];
	at->load = at->phase->loads;
	return true;
}

/* In a further phase it may be there already. */
static bool next_load(struct place *at)
{
	struct phase *phase = at->phase;

	if (++at->load == phase->loads + MAX_LOADS)
		return too_many("loads", MAX_LOADS);
	if (at->load == phase->loads + phase->nr_loads) {
		phase->nr_loads++;
		at->load[0] = at->load[-1];
	}
	return true;
}

static bool parse_words(struct config *config, char *line)
{
	struct place at = { config, config->phases, config->phases[0].loads };
	char *save, *key;

	for (key = strtok_r(line, " \t\n", &save); key;
	     key = strtok_r(NULL, " \t\n", &save)) {
		char *value = strchr(key, '=');

		if (!strcmp(key, "then") || !strcmp(key, "also")) {
			if (!(key[0] == 't' ? next_phase : next_load)(&at))
				return false;
			continue;
		}
		if (!value) {
			fprintf(stderr, "plugsim: %s; accepted: key=value\n",
				key);
			return false;
		}
		*value++ = 0;
		if (!set_word(&at, key, value))
			return false;
	}
	return true;
}

/**
 * config_parse - take a line
 * @config: result
 * @line: is written to
 *
 * Return: false if it can not be used; stderr says why.
 */
bool config_parse(struct config *config, char *line)
{
	memset(config, 0, sizeof(*config));
	config->nr_phases = 1;
	set_presets(run_words, config);
	set_presets(phase_words, &config->phases[0]);
	set_presets(load_words, &config->phases[0].loads[0]);
	config->phases[0].nr_loads = 1;
	dist_parse(&config->phases[0].device.latency, "fixed:0");
	dist_parse(&config->phases[0].device.service, "fixed:0");
	if (!parse_words(config, line))
		return false;
	for (u32 i = 0; i < config->nr_phases; i++)
		if (!phase_check(&config->phases[i]))
			return false;
	return true;
}

static void help_words(const struct word *words)
{
	for (; words->key; words++)
		printf("  %-12s %s (%llu)\n", words->key, words->help,
		       (unsigned long long)words->preset);
}

void config_help(void)
{
	puts("Words of a run, with what they are if not given:");
	puts("  name         what to call it (nothing)");
	help_words(run_words);
	puts("Words of a phase; after the word \"then\" the next one begins,");
	puts("which is as the one before it but for the words that follow:");
	puts("  lat          of the device: " DIST_SYNTAX);
	puts("  service      of a unit, likewise (fixed:0)");
	help_words(phase_words);
	puts("Words of a load; after the word \"also\" those of the next one follow,");
	puts("which further queues have, in turn:");
	help_words(load_words);
}
