// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

#define SECOND	1000000000ULL

/* Of the run, of a phase, of a load */
enum { RUN, PHASE, LOAD, TABLES };

static struct ssd_model_word words[TABLES][40];

static void make_words(void)
{
	struct ssd_model_word *at[TABLES] = { words[RUN], words[PHASE],
					      words[LOAD] };

#define WORD(of, ...)	(*at[of]++ = (struct ssd_model_word){ __VA_ARGS__ })
#define RUN(name, ...) \
	WORD(RUN, #name, offsetof(struct config, name), __VA_ARGS__)
#define PHASE(name, ...) \
	WORD(PHASE, #name, offsetof(struct phase, name), __VA_ARGS__)
#define LOAD(name, ...) \
	WORD(LOAD, #name, offsetof(struct load, name), __VA_ARGS__)
#include "words.h"
#define NUMBER(name, ...) \
	WORD(PHASE, #name, offsetof(struct phase, media.name), __VA_ARGS__)
#define DIST(name, help) NUMBER(name, 0, 0, 0, help)
#include "media_words.h"
}

__attribute__((format(printf, 1, 2))) static bool refuse(const char *text, ...)
{
	va_list args;

	fputs("plugsim: ", stderr);
	va_start(args, text);
	vfprintf(stderr, text, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
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
	void *const what[TABLES] = { at->config, at->phase, at->load };
	const struct ssd_model_word *word = NULL;
	int of;

	for (of = 0; of < TABLES && !word; of++)
		word = ssd_model_word_find(words[of], key);
	if (!word)
		return refuse("no word is named %s; see --help", key);
	if (!ssd_model_word_set(word, what[of - 1], value))
		return true;
	if (!word->most)
		return refuse("%s=%s; accepted: " SSD_MODEL_DIST_SYNTAX, key,
			      value);
	return refuse("%s=%s; accepted: %llu to %llu", key, value,
		      (unsigned long long)word->least,
		      (unsigned long long)word->most);
}

static bool phase_check(const struct phase *phase)
{
	for (u32 i = 0; i < phase->nr_loads; i++) {
		if (phase->loads[i].batch > phase->loads[i].depth)
			return refuse("batch is above depth");
		if (phase->loads[i].complete > phase->loads[i].depth)
			return refuse("complete is above depth");
	}
	if (phase->stall && phase->stall >= phase->stall_every)
		return refuse("stall is not below stall_every");
	if (phase->steal && !phase->steal_every)
		return refuse("steal needs steal_every");
	if (phase->max_size < phase->size)
		return refuse("max_size is below size");
	return true;
}

/* A new one is as the one before it. */
static bool next_phase(struct place *at)
{
	struct config *config = at->config;

	if (config->nr_phases == MAX_PHASES)
		return refuse("accepted: up to %d phases", MAX_PHASES);
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
		return refuse("accepted: up to %d loads", MAX_LOADS);
	if (at->load == phase->loads + phase->nr_loads) {
		phase->nr_loads++;
		at->load[0] = at->load[-1];
	}
	return true;
}

static bool parse_word(struct place *at, char *key)
{
	char *value = strchr(key, '=');

	if (!strcmp(key, "then"))
		return next_phase(at);
	if (!strcmp(key, "also"))
		return next_load(at);
	if (!value)
		return refuse("%s; accepted: key=value", key);
	*value++ = 0;
	return set_word(at, key, value);
}

/* The line is written to. False if it can not be used; stderr says why. */
bool config_parse(struct config *config, char *line)
{
	struct place at = { config, config->phases, config->phases[0].loads };
	char *save, *key;

	memset(config, 0, sizeof(*config));
	config->nr_phases = 1;
	config->phases[0].nr_loads = 1;
	make_words();
	ssd_model_words_preset(words[RUN], config);
	ssd_model_words_preset(words[PHASE], at.phase);
	ssd_model_words_preset(words[LOAD], at.load);
	for (key = strtok_r(line, " \t\n", &save); key;
	     key = strtok_r(NULL, " \t\n", &save)) {
		if (!parse_word(&at, key))
			return false;
	}
	for (u32 i = 0; i < config->nr_phases; i++) {
		if (!phase_check(&config->phases[i]))
			return false;
	}
	return true;
}

static void help_words(const struct ssd_model_word *word)
{
	for (; word->key; word++)
		printf("  %-13s %s (%s%llu)\n", word->key, word->help,
		       word->most ? "" : "fixed:",
		       (unsigned long long)word->preset);
}

void config_help(void)
{
	make_words();
	puts("Words of a run, with what they are if not given:");
	help_words(words[RUN]);
	puts("Words of a phase; after the word \"then\" the next one begins,");
	puts("which is as the one before it but for the words that follow:");
	help_words(words[PHASE]);
	puts("Words of a load; after the word \"also\" those of the next one follow,");
	puts("which further queues have, in turn:");
	help_words(words[LOAD]);
}
