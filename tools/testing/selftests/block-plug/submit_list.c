// SPDX-License-Identifier: GPL-2.0
/*
 * submit_list: submit the I/Os that the arguments list in one io_uring_enter()
 *
 * submit_list [-A|-P] RUN[,RUN...]...
 *
 * One call is one plug, so that the test decides what the plug sees: any mix
 * of devices, places and sizes, in this order. Runs with a comma in between
 * take turns; -P polls, and -A does reads and writes by one io_submit() of
 * libaio. A RUN is
 * [DEV:]OFFSET:SIZE[*COUNT[+STRIDE|-STRIDE]][:HOW]
 *
 * DEV is a path, or what stands in /dev, and that of the last run if it is left
 * out. Each of COUNT I/Os lies STRIDE, or SIZE, behind the one before. They are
 * reads, direct, or through the page cache if the first I/O of its device says
 * "buffered"; or direct writes of zeros ("write"), discards ("discard"), or
 * fsyncs ("fsync"), which have a place and a size for nothing. "=TEXT" writes
 * that to a file, like those of sysfs. libaio does so on the spot, without
 * sleeping, so that the plug goes on holding what it held; io_uring would leave
 * it to a thread.
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
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
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

static struct iocb iocbs[MAX_IOS], *iocb_list[MAX_IOS];
static char option;

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

static void prepare_rw(struct io_uring_sqe *sqe, int fd, bool writes,
		       void *buf, unsigned int size, long long off)
{
	static unsigned int nr;

	io_uring_prep_rw(writes ? IORING_OP_WRITE : IORING_OP_READ, sqe, fd,
			 buf, size, off);
	iocbs[nr] = (struct iocb){
		.aio_lio_opcode = writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = fd,
		.aio_buf = (uintptr_t)buf,
		.aio_nbytes = size,
		.aio_offset = off,
		.aio_data = size,
	};
	iocb_list[nr] = &iocbs[nr];
	nr++;
}

/* The next I/O of a run. */
static void prepare(struct io_uring *ring, struct run *run)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	bool discards = is(run->how, "discard"), writes = is(run->how, "write");
	bool buffered = is(run->how, "buffered"), syncs = is(run->how, "fsync");
	const char *text = run->how && *run->how == '=' ? run->how + 1 : NULL;
	int fd;

	if (!sqe)
		errx(EXIT_USAGE, "more than %d I/Os", MAX_IOS);
	if (run->how && !discards && !writes && !buffered && !syncs && !text)
		errx(EXIT_USAGE,
		     "'%s' is not 'buffered', 'write', 'discard', 'fsync' or '=...'",
		     run->how);
	if (option == 'A' && (discards || syncs))
		errx(EXIT_USAGE, "-A only reads and writes");
	fd = open_dev(run->path, discards || writes || text ? O_RDWR : O_RDONLY,
		      buffered || text ? 0 : O_DIRECT);
	if (text)
		run->size = strlen(text);
	if (discards) {
		io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
		sqe->cmd_op = CMD_DISCARD;
		sqe->addr = run->off;
		sqe->addr3 = run->size;
	} else if (syncs) {
		io_uring_prep_fsync(sqe, fd, 0);
	} else {
		prepare_rw(sqe, fd, writes || text,
			   text ? (void *)text : zeros(run->size), run->size,
			   run->off);
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

static void expect_done(long long res, unsigned long long size)
{
	if (res < 0)
		errx(res == -EOPNOTSUPP ? EXIT_UNSUPPORTED : EXIT_IO, "I/O: %s",
		     strerror(-res));
	if ((unsigned long long)res != size)
		errx(EXIT_IO, "%lld bytes were done instead of %llu", res, size);
}

static void reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe(ring, &cqe);

	if (ret)
		errx(EXIT_IO, "no completion: %s", strerror(-ret));
	expect_done(cqe->res, cqe->user_data);
	io_uring_cqe_seen(ring, cqe);
}

static void do_aio(int nr)
{
	static struct io_event events[MAX_IOS];
	aio_context_t ctx = 0;
	int ret;

	if (syscall(SYS_io_setup, nr, &ctx))
		err(EXIT_UNSUPPORTED, "io_setup");
	ret = syscall(SYS_io_submit, ctx, nr, iocb_list);
	if (ret != nr)
		errx(EXIT_IO, "%d of %d submitted", ret, nr);
	if (syscall(SYS_io_getevents, ctx, nr, nr, events, NULL) != nr)
		err(EXIT_IO, "io_getevents");
	while (nr--)
		expect_done(events[nr].res, events[nr].data);
}

int main(int argc, char **argv)
{
	struct io_uring ring;
	int nr = 0, ret, i = 1;

	if (argc > 1 && (is(argv[1], "-P") || is(argv[1], "-A")))
		option = argv[i++][1];
	if (i >= argc)
		errx(EXIT_USAGE, "usage: submit_list [-A|-P] RUN[,RUN...]...");
	if (chdir("/dev"))	/* where names are looked up */
		err(EXIT_USAGE, "/dev");
	ret = io_uring_queue_init(MAX_IOS, &ring,
				  option == 'P' ? IORING_SETUP_IOPOLL : 0);
	if (ret)
		errx(EXIT_UNSUPPORTED, "no io_uring: %s", strerror(-ret));
	for (; i < argc; i++)
		nr += prepare_all(&ring, argv[i]);
	if (option == 'A') {
		do_aio(nr);
		return 0;
	}
	ret = io_uring_submit(&ring);
	if (ret != nr)
		errx(EXIT_IO, "%d of %d submitted", ret, nr);
	while (nr--)
		reap(&ring);
	return 0;
}
