// SPDX-License-Identifier: GPL-2.0
/*
 * submit_list: submit the I/Os that the arguments list in one io_uring_enter()
 *
 * One call is one plug, so that the test decides what the plug sees: any mix
 * of devices, places and sizes, in this order. Each I/O is a read, direct, or
 * through the page cache if the first I/O of its device says "buffered".
 *
 * Exit: 0 all were read in full, 1 one was not, 2 usage, 4 no io_uring.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	EXIT_IO		= 1,
	EXIT_USAGE	= 2,
	EXIT_UNSUPPORTED = 4,	/* the kselftest code for a skip */

	MAX_DEVS	= 16,
	ALIGN		= 4096,
};

static struct dev {
	const char *path;
	int fd;
} devs[MAX_DEVS];

static int open_dev(const char *path, int flags)
{
	struct dev *d;

	for (d = devs; d < devs + MAX_DEVS && d->path; d++) {
		if (!strcmp(d->path, path))
			return d->fd;
	}
	if (d == devs + MAX_DEVS)
		errx(EXIT_USAGE, "more than %d devices", MAX_DEVS);
	d->path = path;
	d->fd = open(path, O_RDONLY | O_CLOEXEC | flags);
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

static int parse_how(const char *text)
{
	if (text && strcmp(text, "buffered"))
		errx(EXIT_USAGE, "'%s' is not 'buffered'", text);
	return text ? 0 : O_DIRECT;
}

/* DEV:OFFSET:SIZE[:buffered] */
static void prepare(struct io_uring *ring, char *arg)
{
	const char *path = strsep(&arg, ":");
	unsigned long long off = parse_number(strsep(&arg, ":"));
	unsigned long long size = parse_number(strsep(&arg, ":"));
	int fd = open_dev(path, parse_how(strsep(&arg, ":")));
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	void *buf;

	if (posix_memalign(&buf, ALIGN, size))
		errx(EXIT_IO, "out of memory");
	io_uring_prep_read(sqe, fd, buf, size, off);
	io_uring_sqe_set_data64(sqe, size);
}

static void reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe(ring, &cqe);

	if (ret)
		errx(EXIT_IO, "no completion: %s", strerror(-ret));
	if (cqe->res < 0)
		errx(EXIT_IO, "read: %s", strerror(-cqe->res));
	if ((__u64)cqe->res != cqe->user_data)
		errx(EXIT_IO, "%d bytes were read instead of %llu", cqe->res,
		     (unsigned long long)cqe->user_data);
	io_uring_cqe_seen(ring, cqe);
}

int main(int argc, char **argv)
{
	struct io_uring ring;
	int nr = argc - 1, ret, i;

	if (nr < 1)
		errx(EXIT_USAGE, "usage: submit_list DEV:OFFSET:SIZE[:buffered]...");
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
