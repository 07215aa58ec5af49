// SPDX-License-Identifier: GPL-2.0
/*
 * swap_load: more memory than there is, verified
 *
 *	swap_load SEED SECONDS MIB
 *
 * Each page holds a pattern that its number and its version determine. Tasks
 * verify pages at random or in a row, write a new version to some, and now and
 * then ask for a part to be swapped out, so that swap is used even where memory
 * is not short. One that does not come back is for the kernel's watchdogs.
 *
 * Says "did swap_pages_verified N" and "found TEXT". Exit: 0, 1 if something
 * was found, 2 on wrong usage.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WORDS		= 4096 / sizeof(uint64_t),	/* of a page */
	TASKS		= 4,
	MAX_RUN		= 64,				/* pages in a row */
	MAX_FOUND	= 3,
};

static uint64_t seed, (*pages)[WORDS];
static uint32_t *versions;
static size_t nr;
static unsigned long verified, faults;

#define rnd(below)	(random() % (below))

/* Any word tells which page and version it is of. */
static uint64_t word_of(size_t page, unsigned int n)
{
	return ((seed + 1) * 0x9e3779b97f4a7c15ull ^
		(uint64_t)versions[page] << 32 ^ page) +
	       n * 0xbf58476d1ce4e5b9ull;
}

static void write_page(size_t page)
{
	versions[page]++;
	for (unsigned int n = 0; n < WORDS; n++)
		pages[page][n] = word_of(page, n);
}

static void verify_page(size_t page)
{
	unsigned int n;

	for (n = 0; n < WORDS && pages[page][n] == word_of(page, n); n++)
		;
	verified++;
	if (n < WORDS && faults++ < MAX_FOUND)
		printf("found swap_load: page %zu, version %u: word %u is %016llx, should be %016llx\n",
		       page, versions[page], n,
		       (unsigned long long)pages[page][n],
		       (unsigned long long)word_of(page, n));
}

static void visit(void)
{
	size_t first = rnd(nr), page,
	       end = first + (rnd(2) ? 1 : 1 + rnd(MAX_RUN));

	for (page = first; page < nr && page < end; page++) {
		verify_page(page);
		if (rnd(2))
			write_page(page);
	}
	if (!rnd(16))
		madvise(pages[first], (page - first) * sizeof(*pages),
			MADV_PAGEOUT);
}

static int task_main(int task, time_t end)
{
	size_t page;

	seed = seed * TASKS + task;
	srandom(seed);
	pages = mmap(NULL, nr * sizeof(*pages), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	versions = calloc(nr, sizeof(*versions));
	if (pages == MAP_FAILED || !versions)
		return 2;
	/* all, however slow: less might leave nothing to swap out */
	for (page = 0; page < nr; page++)
		write_page(page);
	while (time(NULL) < end && !faults)
		visit();
	/* all of it, were it only that time did not suffice for more */
	for (page = 0; page < nr; page++)
		verify_page(page);
	printf("did swap_pages_verified %lu\n", verified);
	return faults ? 1 : 0;
}

int main(int argc, char **argv)
{
	int task, status, rc = 0;

	nr = argc != 4 ? 0 :
	     (strtoul(argv[3], NULL, 0) << 20) / sizeof(*pages) / TASKS;
	if (!nr) {
		fputs("usage: swap_load SEED SECONDS MIB\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = strtoull(argv[1], NULL, 0);
	for (task = 0; task < TASKS; task++)
		if (!fork())
			return task_main(task, time(NULL) + atoi(argv[2]));
	while (wait(&status) > 0)
		if (status)
			rc = WIFEXITED(status) &&
			     WEXITSTATUS(status) == 1 && rc < 2 ? 1 : 2;
	return rc;
}
