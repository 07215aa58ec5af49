// SPDX-License-Identifier: GPL-2.0
/*
 * hog: preempt whatever runs on a CPU, again and again
 *
 * hog CPU BUSY_US IDLE_US
 *
 * A real-time task that computes for BUSY_US, sleeps for IDLE_US, and so on
 * until it is killed: each time it wakes up it interrupts a task in whatever
 * that is doing, unless the kernel is built to let it finish.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum {
	EXIT_USAGE	= 2,
	MAX_US		= 100000,	/* the rest of the guest must live */
};

static long parse(const char *text, long least, long most)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		errx(EXIT_USAGE, "'%s' is no number from %ld to %ld", text,
		     least, most);
	return n;
}

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void take_cpu(long cpu)
{
	struct sched_param param = { .sched_priority = 50 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(EXIT_FAILURE, "CPU %ld", cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		err(EXIT_FAILURE, "SCHED_FIFO");
}

int main(int argc, char **argv)
{
	struct timespec idle;
	long busy;

	if (argc != 4)
		errx(EXIT_USAGE, "usage: hog CPU BUSY_US IDLE_US");
	busy = parse(argv[2], 1, MAX_US);
	idle.tv_sec = 0;
	idle.tv_nsec = parse(argv[3], 1, MAX_US) * 1000;
	take_cpu(parse(argv[1], 0, CPU_SETSIZE - 1));
	for (;;) {
		long long end = now_ns() + busy * 1000;

		while (now_ns() < end)
			;
		nanosleep(&idle, NULL);
	}
}
