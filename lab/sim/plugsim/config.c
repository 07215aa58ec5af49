// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#define SECOND	1000000000ULL

/* A word of a line: where its value goes, what it may be. */
struct word {
	enum { OF_RUN, OF_PHASE, OF_LOAD } of;
	const char *key;
	size_t offset;
	u64 preset;
	u64 low;
	u64 high;	/* 0: it is a distribution */
	const char *help;
};

static struct word words[64];

static void make_words(void)
{
	struct word *at = words;

#define WORD(...)		(*at++ = (struct word){ __VA_ARGS__ })
#define RUN(name, ...)		\
	WORD(OF_RUN, #name, offsetof(struct config, name), __VA_ARGS__)
#define PHASE(name, ...)	\
	WORD(OF_PHASE, #name, offsetof(struct phase, name), __VA_ARGS__)
#define LOAD(name, ...)		\
	WORD(OF_LOAD, #name, offsetof(struct load, name), __VA_ARGS__)
#include "words.h"
#define NUMBER(name, ...)	\
	WORD(OF_PHASE, #name, offsetof(struct phase, media.name), __VA_ARGS__)
#define DIST(name, help)	NUMBER(name, 0, 0, 0, help)
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

static bool set_number(const struct word *word, u64 *where, const char *value)
{
	char *end;
	u64 number = strtoull(value, &end, 0);

	if (!isdigit((unsigned char)value[0]) || *end || number < word->low ||
	    number > word->high)
		return refuse("%s=%s; accepted: %llu to %llu", word->key, value,
			      (unsigned long long)word->low,
			      (unsigned long long)word->high);
	*where = number;
	return true;
}

static bool set_name(char *name, const char *value)
{
	/* It will be part of JSON. */
	if (strlen(value) >= MAX_NAME || strpbrk(value, "\"\\"))
		return refuse("name=%s; accepted: up to %d letters, no quote",
			      value, MAX_NAME - 1);
	strcpy(name, value);
	return true;
}

/* Where a line's next word belongs. */
struct place {
	struct config *config;
	struct phase *phase;
	struct load *load;
};

static void *value_of(const struct place *at, const struct word *word)
{
	void *const base[] = { at->config, at->phase, at->load };

	return base[word->of] + word->offset;
}

static bool set_word(const struct place *at, const char *key,
		     const char *value)
{
	const struct word *word = words;

	if (!strcmp(key, "name"))
		return set_name(at->config->name, value);
	while (word->key && strcmp(word->key, key))
		word++;
	if (!word->key)
		return refuse("no word is named %s; see --help", key);
	if (word->high)
		return set_number(word, value_of(at, word), value);
	return !ssd_model_dist_parse(value_of(at, word), value) ||
	       refuse("%s=%s; accepted: " SSD_MODEL_DIST_SYNTAX
		      ", up to 10 s", key, value);
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

static void set_presets(const struct place *at)
{
	for (const struct word *word = words; word->key; word++) {
		if (word->high)
			*(u64 *)value_of(at, word) = word->preset;
		else
			ssd_model_dist_parse(value_of(at, word), "fixed:0");
	}
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

/**
 * config_parse - take a line
 * @config: result
 * @line: is written to
 *
 * Return: false if it can not be used; stderr says why.
 */
bool config_parse(struct config *config, char *line)
{
	struct place at = { config, config->phases, config->phases[0].loads };
	char *save, *key;

	memset(config, 0, sizeof(*config));
	config->nr_phases = 1;
	config->phases[0].nr_loads = 1;
	make_words();
	set_presets(&at);
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

static void help_words(int of)
{
	for (const struct word *word = words; word->key; word++) {
		if (word->of == of)
			printf("  %-13s %s (%s%llu)\n", word->key, word->help,
			       word->high ? "" : "fixed:",
			       (unsigned long long)word->preset);
	}
}

void config_help(void)
{
	make_words();
	puts("Words of a run, with what they are if not given:");
	puts("  name          what to call it (nothing)");
	help_words(OF_RUN);
	puts("Words of a phase; after the word \"then\" the next one begins,");
	puts("which is as the one before it but for the words that follow. Times");
	puts("of the device are " SSD_MODEL_DIST_SYNTAX ":");
	help_words(OF_PHASE);
	puts("Words of a load; after the word \"also\" those of the next one follow,");
	puts("which further queues have, in turn:");
	help_words(OF_LOAD);
}
