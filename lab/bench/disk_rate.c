// SPDX-License-Identifier: GPL-2.0
/*
 * disk_rate: run a program that somebody else wrote, and say how much I/O a
 * disk does for it in a stretch of time.
 *
 *	disk_rate DISK LEARN_MS MS PROGRAM [ARGUMENT...]
 *
 * The program is watched from outside, since its own figures differ from one
 * to the next, are of its whole life and round time to ms or s: from the disk's
 * first I/O LEARN_MS pass, MS are measured, then the program is killed, with
 * all that belongs to its process group. Prints what was measured, in bytes and
 * ns, and all bytes from the first to the last:
 *
 *	bytes=N ns=N all_bytes=N
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t program;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void stop(void)
{
	kill(-program, SIGKILL);
	waitpid(program, NULL, 0);
}

static void sleep_us(uint64_t us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
	if (waitpid(program, NULL, WNOHANG) == program)
		errx(1, "the program ended before it was measured");
}

/* What a disk has read and written; counted when it is complete. */
static uint64_t bytes_of(int stat)
{
	uint64_t in, out;
	char text[512];
	ssize_t len = pread(stat, text, sizeof(text) - 1, 0);

	if (len < 0)
		err(1, "the disk's stat");
	text[len] = 0;
	if (sscanf(text, "%*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64,
		   &in, &out) != 2)
		errx(1, "the disk's stat cannot be understood: %s", text);
	return (in + out) * 512;
}

/*
 * Until the disk has done I/O. The times at which it completes a batch are
 * those between which batches can be counted.
 */
static uint64_t next_io(int stat, uint64_t *at)
{
	uint64_t before = bytes_of(stat), bytes, since = now();

	while ((bytes = bytes_of(stat)) == before) {
		if (now() - since > 10000000000ULL)
			errx(1, "the program does no I/O on the disk");
		sleep_us(20);
	}
	*at = now();
	return bytes;
}

static int open_stat(const char *disk)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/sys/block/%s/stat", basename(disk));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

/* Its own output is not ours. */
static void start(char **argv)
{
	program = fork();
	if (program < 0)
		err(1, "fork");
	if (program)
		return;
	setpgid(0, 0);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(*argv, argv);
	err(127, "%s", *argv);
}

int main(int argc, char **argv)
{
	struct sched_param urgent = { .sched_priority = 1 };
	uint64_t first, begin, from, end, to, learn, ms;
	int stat;

	if (argc < 5)
		errx(2, "usage: disk_rate DISK LEARN_MS MS PROGRAM [ARG...]");
	stat = open_stat(argv[1]);
	learn = strtoull(argv[2], NULL, 10);
	ms = strtoull(argv[3], NULL, 10);
	first = bytes_of(stat);
	start(argv + 4);
	/* whoever computes must not make us late */
	if (sched_setscheduler(0, SCHED_FIFO, &urgent))
		err(1, "sched_setscheduler");
	next_io(stat, &from);
	sleep_us(learn * 1000);
	begin = next_io(stat, &from);
	sleep_us(ms * 1000);
	end = next_io(stat, &to);
	stop();
	printf("bytes=%" PRIu64 " ns=%" PRIu64 " all_bytes=%" PRIu64 "\n",
	       end - begin, to - from, bytes_of(stat) - first);
	return 0;
}
