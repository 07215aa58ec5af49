// SPDX-License-Identifier: GPL-2.0
/*
 * hog BUSY_US IDLE_US: preempt whatever runs on a CPU, again and again
 *
 * A real-time task that computes for BUSY_US, sleeps for IDLE_US, and so on
 * until it is killed: each time it wakes up it interrupts a task in whatever
 * that is doing. (fio's cpuio would do, but for its start, at the same
 * priority.)
 */
#include <err.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 50 };
	struct timespec idle = { };
	long busy = argc == 3 ? atol(argv[1]) : 0;

	if (!busy)
		errx(2, "usage: hog BUSY_US IDLE_US");
	idle.tv_nsec = atol(argv[2]) * 1000;
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		err(1, "SCHED_FIFO");
	for (;;) {
		long long end = now_ns() + busy * 1000;

		while (now_ns() < end)
			;
		nanosleep(&idle, NULL);
	}
}
