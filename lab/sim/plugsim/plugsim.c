// SPDX-License-Identifier: GPL-2.0
/*
 * plugsim - drives block/blk-plug-adaptive.c against models of a device and of
 * those who submit to it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void print_outcome(const struct outcome *one)
{
	printf("\"iops\": %.1f, \"ios\": %llu, \"ns\": %llu, ", one->iops,
	       (unsigned long long)one->ios, (unsigned long long)one->ns);
	printf("\"mean\": %.1f, \"p99\": %llu, ", one->mean,
	       (unsigned long long)one->p99);
	printf("\"doorbells\": %.5f, \"requests\": %.5f", one->doorbells,
	       one->requests);
}

static void print_phase(const struct phase_outcome *one)
{
	fputs("{\"first50\": {", stdout);
	print_outcome(&one->first[FIRST_50]);
	fputs("}, \"first200\": {", stdout);
	print_outcome(&one->first[FIRST_200]);
	printf("}, \"late\": %.1f, ", one->late);
	print_outcome(&one->rest);
	putchar('}');
}

/* A line of JSON. */
static void print_result(const struct config *config,
			 const struct result *result)
{
	printf("{\"group\": %llu, \"seed\": %llu, ",
	       (unsigned long long)config->group,
	       (unsigned long long)config->seed);
	printf("\"final_group\": %.2f, \"changes\": %llu, \"phases\": [",
	       result->group, (unsigned long long)result->changes);
	for (u32 i = 0; i < config->nr_phases; i++) {
		fputs(i ? ", " : "", stdout);
		print_phase(&result->phases[i]);
	}
	fputs("], \"all\": {", stdout);
	print_outcome(&result->all);
	fputs("}, \"ios\": [", stdout);
	for (u32 i = 0; i < result->nr_tasks; i++)
		printf(i ? ", %llu" : "%llu",
		       (unsigned long long)result->ios[i]);
	puts("]}");
	fflush(stdout);
}

static bool run_line(char *line, bool trace)
{
	struct config config;
	struct result result;

	if (!config_parse(&config, line))
		return false;
	if (!sim_run(&config, trace, &result)) {
		fputs("plugsim: out of memory\n", stderr);
		return false;
	}
	print_result(&config, &result);
	return true;
}

static bool run_lines(bool trace)
{
	char *line = NULL;
	size_t size = 0;
	bool good = true;

	while (good && getline(&line, &size, stdin) > 0)
		if (line[0] != '#' && line[strspn(line, " \t\n")])
			good = run_line(line, trace);
	free(line);
	return good;
}

static void help(void)
{
	puts("Usage: plugsim [--trace] ['WORD=VALUE ...']\n"
	     "\n"
	     "Simulates what the argument, or each line of standard input, describes; prints\n"
	     "a line of JSON of each: IOPS, latency in ns, doorbells and requests per I/O, of\n"
	     "the first 50 and 200 ms and the rest of each phase, and of all; I/Os of each\n"
	     "submitter.\n"
	     "\n"
	     "--trace prints a line of each sample first: the word sample, then, separated by\n"
	     "tabs, time in ns, hardware queue, group, requests a second and epoch\n"
	     "as they are after it, the sample itself: ns, nr, flushes, in_flight; and the\n"
	     "size on trial, 0: parked.\n");
	config_help();
}

int main(int argc, char **argv)
{
	bool trace = argc > 1 && !strcmp(argv[1], "--trace");
	char *what = argv[1 + trace];
	bool good;

	if (what && !strcmp(what, "--help")) {
		help();
		return 0;
	}
	if (argc > 2 + trace || (what && !strchr(what, '='))) {
		fputs("plugsim: accepted: [--trace] ['WORD=VALUE ...'], --help\n",
		      stderr);
		return 2;
	}
	good = what ? run_line(what, trace) : run_lines(trace);
	return good ? 0 : 2;
}
