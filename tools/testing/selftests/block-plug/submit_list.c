// SPDX-License-Identifier: GPL-2.0
/*
 * submit_list: submit the I/Os that the arguments list in one io_uring_enter()
 *
 * submit_list [-P] RUN[,RUN...]...
 *
 * One call is one plug, so that the test decides what the plug sees: any mix
 * of devices, places and sizes, in this order. Runs with a comma in between
 * take turns; -P polls. A RUN is
 * [DEV:]OFFSET:SIZE[*COUNT[+STRIDE|-STRIDE]][:HOW]
 *
 * DEV is a path, or what stands in /dev, and that of the last run if it is left
 * out. Each of COUNT I/Os lies STRIDE, or SIZE, behind the one before. They are
 * reads, direct, or through the page cache if the first I/O of its device says
 * "buffered"; or direct writes of zeros ("write"), discards ("discard"), or
 * fsyncs ("fsync"), which have a place and a size for nothing.
 *
 * Exit: 0 all were done in full, 1 one was not, 2 usage, 4 no io_uring, or no
 * discards.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	EXIT_IO		= 1,
	EXIT_USAGE	= 2,
	EXIT_UNSUPPORTED = 4,	/* the kselftest code for a skip */

	MAX_DEVS	= 16,
	MAX_RUNS	= 16,	/* that take turns */
	MAX_IOS		= 1024,
	ALIGN		= 4096,

	/* The kernel's BLOCK_URING_CMD_DISCARD; libc may be older. */
	CMD_DISCARD	= _IO(0x12, 0),
};

static struct dev {
	const char *path;
	int access, fd;
} devs[MAX_DEVS];

struct run {
	const char *path, *how;
	long long off, size, count, stride;
};

/* Opened for writing only where needed, since udev notices. */
static int open_dev(const char *path, int access, int flags)
{
	struct dev *d;

	for (d = devs; d < devs + MAX_DEVS && d->path; d++) {
		if (!strcmp(d->path, path) && d->access == access)
			return d->fd;
	}
	if (d == devs + MAX_DEVS)
		errx(EXIT_USAGE, "more than %d devices", MAX_DEVS);
	d->path = path;
	d->access = access;
	d->fd = open(path, access | O_CLOEXEC | flags);
	if (d->fd < 0)
		err(EXIT_USAGE, "%s", path);
	return d->fd;
}

/* At *text, which is moved behind it. */
static long long parse_size(char **text)
{
	char *end;
	long long n = strtoll(*text, &end, 10);

	if (end == *text)
		errx(EXIT_USAGE, "'%s' is no number", *text);
	if (*end == 'k' || *end == 'm')
		n <<= *end++ == 'k' ? 10 : 20;
	*text = end;
	return n;
}

static void parse_run(struct run *run, char *text)
{
	static const char *last;

	if (!isdigit(*text))
		last = strsep(&text, ":");
	if (!last || !text)
		errx(EXIT_USAGE, "no device, or nothing but a device");
	*run = (struct run){ .path = last,
			     .off = parse_size(&text),
			     .count = 1 };
	if (*text++ != ':')
		errx(EXIT_USAGE, "no size behind the offset");
	run->size = parse_size(&text);
	run->stride = run->size;
	if (*text == '*') {
		text++;
		run->count = parse_size(&text);
		if (*text == '+' || *text == '-')
			run->stride = parse_size(&text);
	}
	if (*text == ':')
		run->how = text + 1;
	else if (*text)
		errx(EXIT_USAGE, "'%s' is not understood", text);
}

static bool is(const char *how, const char *what)
{
	return how && !strcmp(how, what);
}

static void *zeros(unsigned long long size)
{
	void *buf;

	if (posix_memalign(&buf, ALIGN, size))
		errx(EXIT_IO, "out of memory");
	return memset(buf, 0, size);
}

/* The next I/O of a run. */
static void prepare(struct io_uring *ring, struct run *run)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	bool discards = is(run->how, "discard"), writes = is(run->how, "write");
	bool buffered = is(run->how, "buffered"), syncs = is(run->how, "fsync");
	int fd;

	if (!sqe)
		errx(EXIT_USAGE, "more than %d I/Os", MAX_IOS);
	if (run->how && !discards && !writes && !buffered && !syncs)
		errx(EXIT_USAGE,
		     "'%s' is not 'buffered', 'write', 'discard' or 'fsync'",
		     run->how);
	fd = open_dev(run->path, discards || writes ? O_RDWR : O_RDONLY,
		      buffered ? 0 : O_DIRECT);
	if (discards) {
		io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
		sqe->cmd_op = CMD_DISCARD;
		sqe->addr = run->off;
		sqe->addr3 = run->size;
	} else if (syncs) {
		io_uring_prep_fsync(sqe, fd, 0);
	} else {
		io_uring_prep_rw(writes ? IORING_OP_WRITE : IORING_OP_READ, sqe,
				 fd, zeros(run->size), run->size, run->off);
	}
	io_uring_sqe_set_data64(sqe, discards || syncs ? 0 : run->size);
	run->off += run->stride;
	run->count--;
}

/* All runs of an argument, in turn; returns the number of I/Os. */
static int prepare_all(struct io_uring *ring, char *arg)
{
	struct run runs[MAX_RUNS];
	int nr = 0, ios = 0, before, i;

	while (arg) {
		if (nr == MAX_RUNS)
			errx(EXIT_USAGE, "more than %d take turns", MAX_RUNS);
		parse_run(&runs[nr++], strsep(&arg, ","));
	}
	do {
		before = ios;
		for (i = 0; i < nr; i++) {
			if (!runs[i].count)
				continue;
			prepare(ring, &runs[i]);
			ios++;
		}
	} while (ios > before);
	return ios;
}

static void reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe(ring, &cqe);

	if (ret)
		errx(EXIT_IO, "no completion: %s", strerror(-ret));
	if (cqe->res < 0)
		errx(cqe->res == -EOPNOTSUPP ? EXIT_UNSUPPORTED : EXIT_IO,
		     "I/O: %s", strerror(-cqe->res));
	if ((__u64)cqe->res != cqe->user_data)
		errx(EXIT_IO, "%d bytes were done instead of %llu", cqe->res,
		     (unsigned long long)cqe->user_data);
	io_uring_cqe_seen(ring, cqe);
}

int main(int argc, char **argv)
{
	bool polled = argc > 1 && is(argv[1], "-P");
	int nr = 0, ret, i = 1 + polled;
	struct io_uring ring;

	if (i >= argc)
		errx(EXIT_USAGE, "usage: submit_list [-P] RUN[,RUN...]...");
	if (chdir("/dev"))	/* where names are looked up */
		err(EXIT_USAGE, "/dev");
	ret = io_uring_queue_init(MAX_IOS, &ring,
				  polled ? IORING_SETUP_IOPOLL : 0);
	if (ret)
		errx(EXIT_UNSUPPORTED, "no io_uring: %s", strerror(-ret));
	for (; i < argc; i++)
		nr += prepare_all(&ring, argv[i]);
	ret = io_uring_submit(&ring);
	if (ret != nr)
		errx(EXIT_IO, "%d of %d submitted", ret, nr);
	while (nr--)
		reap(&ring);
	return 0;
}
