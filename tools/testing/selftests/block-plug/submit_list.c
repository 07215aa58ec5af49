// SPDX-License-Identifier: GPL-2.0
/*
 * submit_list: submit the I/Os that the arguments list in one io_uring_enter()
 *
 * One call is one plug, so that the test decides what the plug sees: any mix
 * of devices, places and sizes, in this order. Each I/O is a read, direct, or
 * through the page cache if the first I/O of its device says "buffered"; or it
 * is a direct write of zeros, or a discard.
 *
 * Exit: 0 all were done in full, 1 one was not, 2 usage, 4 no io_uring, or no
 * discards.
 */
#define _GNU_SOURCE
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
	ALIGN		= 4096,

	/* The kernel's BLOCK_URING_CMD_DISCARD; libc may be older. */
	CMD_DISCARD	= _IO(0x12, 0),
};

static struct dev {
	const char *path;
	int access, fd;
} devs[MAX_DEVS];

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

static unsigned long long parse_number(const char *text)
{
	unsigned long long n;
	char *end = NULL;

	errno = 0;
	n = text ? strtoull(text, &end, 10) : 0;
	if (errno || !end || end == text || *end)
		errx(EXIT_USAGE, "'%s' is no number", text ? text : "");
	return n;
}

static bool is(const char *how, const char *what)
{
	return how && !strcmp(how, what);
}

static bool modifies(const char *how)
{
	return is(how, "write") || is(how, "discard");
}

static int flags_of(const char *how)
{
	if (!how || modifies(how))
		return O_DIRECT;
	if (!is(how, "buffered"))
		errx(EXIT_USAGE, "'%s' is not 'buffered', 'write' or 'discard'",
		     how);
	return 0;
}

static void prepare_discard(struct io_uring_sqe *sqe, int fd,
			    unsigned long long off, unsigned long long size)
{
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = CMD_DISCARD;
	sqe->addr = off;
	sqe->addr3 = size;
	io_uring_sqe_set_data64(sqe, 0);
}

static void *zeros(unsigned long long size)
{
	void *buf;

	if (posix_memalign(&buf, ALIGN, size))
		errx(EXIT_IO, "out of memory");
	return memset(buf, 0, size);
}

/* DEV:OFFSET:SIZE[:buffered|:write|:discard] */
static void prepare(struct io_uring *ring, char *arg)
{
	const char *path = strsep(&arg, ":");
	unsigned long long off = parse_number(strsep(&arg, ":"));
	unsigned long long size = parse_number(strsep(&arg, ":"));
	const char *how = strsep(&arg, ":");
	int access = modifies(how) ? O_RDWR : O_RDONLY;
	int fd = open_dev(path, access, flags_of(how));
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (is(how, "discard")) {
		prepare_discard(sqe, fd, off, size);
		return;
	}
	if (is(how, "write"))
		io_uring_prep_write(sqe, fd, zeros(size), size, off);
	else
		io_uring_prep_read(sqe, fd, zeros(size), size, off);
	io_uring_sqe_set_data64(sqe, size);
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
	struct io_uring ring;
	int nr = argc - 1, ret, i;

	if (nr < 1)
		errx(EXIT_USAGE, "usage: submit_list DEV:OFFSET:SIZE[:HOW]...");
	ret = io_uring_queue_init(nr, &ring, 0);
	if (ret)
		errx(EXIT_UNSUPPORTED, "no io_uring: %s", strerror(-ret));
	for (i = 1; i <= nr; i++)
		prepare(&ring, argv[i]);
	ret = io_uring_submit(&ring);
	if (ret != nr)
		errx(EXIT_IO, "%d of %d submitted", ret, nr);
	while (nr--)
		reap(&ring);
	return 0;
}
