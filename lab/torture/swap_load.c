// SPDX-License-Identifier: GPL-2.0
/*
 * swap_load: more memory than there is, verified
 *
 *	swap_load SEED SECONDS MIB
 *
 * Each page holds a pattern that its number and its version determine. Tasks
 * verify pages at random or in a row, write a new version to some, and now and
 * then ask for a part to be swapped out, so that swap is used even where
 * memory is not short.
 *
 * Says "did swap_pages_verified N" and "found TEXT". Exit: 0, 1 if something
 * was found, 2 on wrong usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum {
	PAGE		= 4096,
	WORDS		= PAGE / sizeof(uint64_t),
	TASKS		= 4,
	MAX_RUN		= 64,		/* pages in a row */
	MAX_FOUND	= 10,
	STUCK_SECONDS	= 60,
};

struct task {
	pthread_t thread;
	uint64_t chance;
	uint64_t *pages;
	uint32_t *versions;
	size_t first, nr;
	_Atomic(unsigned long long) written, verified;
};

static struct task tasks[TASKS];
static uint64_t seed;
static atomic_bool stop;
static atomic_int left = TASKS;
static atomic_ullong faults;

static uint64_t rnd(struct task *task, uint64_t below)
{
	task->chance ^= task->chance << 13;
	task->chance ^= task->chance >> 7;
	task->chance ^= task->chance << 17;
	return (task->chance * 0x2545f4914f6cdd1dull >> 33) % below;
}

/* Any word tells which page and version it is of. */
static uint64_t key_of(const struct task *task, size_t page)
{
	return (seed + 1) * 0x9e3779b97f4a7c15ull ^
		(uint64_t)task->versions[page] << 32 ^ (task->first + page);
}

static uint64_t word_of(uint64_t key, unsigned int n)
{
	return key + n * 0xbf58476d1ce4e5b9ull;
}

static void write_page(struct task *task, size_t page)
{
	uint64_t *words = task->pages + page * WORDS, key;
	unsigned int n;

	task->versions[page]++;
	task->written++;
	key = key_of(task, page);
	for (n = 0; n < WORDS; n++)
		words[n] = word_of(key, n);
}

static void verify_page(struct task *task, size_t page)
{
	const uint64_t *words = task->pages + page * WORDS;
	uint64_t key = key_of(task, page);
	unsigned int n;

	for (n = 0; n < WORDS && words[n] == word_of(key, n); n++)
		;
	task->verified++;
	if (n == WORDS || ++faults > MAX_FOUND)
		return;
	printf("found swap_load: page %zu, version %u: word %u is %016llx, should be %016llx\n",
	       task->first + page, task->versions[page], n,
	       (unsigned long long)words[n],
	       (unsigned long long)word_of(key, n));
}

static void visit(struct task *task)
{
	size_t first = rnd(task, task->nr), nr, page;

	nr = rnd(task, 2) ? 1 : 1 + rnd(task, MAX_RUN);
	for (page = first; page < task->nr && page < first + nr; page++) {
		verify_page(task, page);
		if (rnd(task, 2))
			write_page(task, page);
	}
	if (!rnd(task, 16))
		madvise(task->pages + first * WORDS, (page - first) * PAGE,
			MADV_PAGEOUT);
}

static void *task_main(void *data)
{
	struct task *task = data;
	size_t page;

	for (page = 0; page < task->nr && !stop; page++)
		write_page(task, page);
	task->nr = page;
	while (!stop && task->nr && faults < MAX_FOUND)
		visit(task);
	/* all of it, were it only that time did not suffice for more */
	for (page = 0; page < task->nr && faults < MAX_FOUND; page++)
		verify_page(task, page);
	left--;
	return NULL;
}

static void sum_pages(unsigned long long *verified, unsigned long long *written)
{
	int i;

	*verified = 0;
	*written = 0;
	for (i = 0; i < TASKS; i++) {
		*verified += tasks[i].verified;
		*written += tasks[i].written;
	}
}

static void *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		fprintf(stderr, "swap_load: %zu bytes: %s\n", size,
			strerror(errno));
		exit(2);
	}
	return at;
}

static void start_tasks(size_t mib)
{
	size_t nr = (mib << 20) / PAGE / TASKS;
	int i;

	for (i = 0; i < TASKS; i++) {
		struct task *task = &tasks[i];

		task->nr = nr;
		task->first = i * nr;
		task->chance = (seed + 1) * 0x9e3779b97f4a7c15ull + i;
		task->pages = map(nr * PAGE);
		task->versions = map(nr * sizeof(*task->versions));
		if (pthread_create(&task->thread, NULL, task_main, task)) {
			fputs("swap_load: cannot start tasks\n", stderr);
			exit(2);
		}
	}
}

/* Ends this program if nothing goes on any more. */
static void check_stuck(void)
{
	static unsigned long long last;
	static int since;
	unsigned long long verified, written;

	sum_pages(&verified, &written);
	since = verified + written == last ? since + 1 : 0;
	last = verified + written;
	if (since < STUCK_SECONDS)
		return;
	printf("found swap_load: no page came for %d s\n", STUCK_SECONDS);
	_exit(1);
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc == 4 ? strtoul(argv[2], NULL, 0) : 0;
	unsigned long mib = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
	unsigned long long verified, written;
	unsigned long n;
	int i;

	if (!seconds || !mib) {
		fputs("usage: swap_load SEED SECONDS MIB\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = strtoull(argv[1], NULL, 0);
	start_tasks(mib);
	for (n = 0; n < seconds || left; n++) {
		sleep(1);
		check_stuck();
		if (n + 1 >= seconds)
			stop = true;
	}
	for (i = 0; i < TASKS; i++)
		pthread_join(tasks[i].thread, NULL);
	sum_pages(&verified, &written);
	printf("did swap_pages_verified %llu\n", verified);
	return faults ? 1 : 0;
}
