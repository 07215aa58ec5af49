// SPDX-License-Identifier: GPL-2.0
/*
 * switch_in_plug: change a mode in the middle of a plug
 *
 * switch_in_plug DISK KNOB WORD...: one io_submit(), which is one plug. A WORD
 * that is a number stands for so many writes of 4 KiB, each 64 KiB behind the
 * one before, so that none merge; any other is written to KNOB. libaio writes
 * that on the spot, without sleeping, so that the plug goes on holding what it
 * held. io_uring would leave it to a thread.
 *
 * Exit: 0 all was written, 1 something was not, 2 usage, 4 no libaio.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <err.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	EXIT_IO		= 1,
	EXIT_USAGE	= 2,
	EXIT_UNSUPPORTED = 4,	/* the kselftest code for a skip */

	MAX_IOS		= 128,
	SIZE		= 4096,
	STRIDE		= 65536,
};

static struct iocb iocbs[MAX_IOS], *list[MAX_IOS];
static long nr;

static void add(int fd, const void *buf, size_t len, long long off)
{
	struct iocb *iocb = &iocbs[nr];

	if (nr == MAX_IOS)
		errx(EXIT_USAGE, "more than %d writes", MAX_IOS);
	iocb->aio_lio_opcode = IOCB_CMD_PWRITE;
	iocb->aio_fildes = fd;
	iocb->aio_buf = (uintptr_t)buf;
	iocb->aio_nbytes = len;
	iocb->aio_offset = off;
	list[nr++] = iocb;
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags);

	if (fd < 0)
		err(EXIT_USAGE, "%s", path);
	return fd;
}

static void prepare(char **word, int disk, const char *knob)
{
	char *data = aligned_alloc(SIZE, SIZE);
	long long off = 0;
	int n;

	if (!data)
		errx(EXIT_IO, "out of memory");
	memset(data, 0, SIZE);
	for (; *word; word++) {
		if (!isdigit(**word)) {
			/* each write begins at the start of the file */
			add(open_file(knob, 0), *word, strlen(*word), 0);
			continue;
		}
		for (n = atoi(*word); n > 0; n--, off += STRIDE)
			add(disk, data, SIZE, off);
	}
}

int main(int argc, char **argv)
{
	struct io_event events[MAX_IOS];
	aio_context_t ctx = 0;
	long n;

	if (argc < 4)
		errx(EXIT_USAGE, "usage: switch_in_plug DISK KNOB WORD...");
	prepare(argv + 3, open_file(argv[1], O_DIRECT), argv[2]);
	if (syscall(SYS_io_setup, nr, &ctx))
		err(EXIT_UNSUPPORTED, "io_setup");
	n = syscall(SYS_io_submit, ctx, nr, list);
	if (n != nr)
		errx(EXIT_IO, "%ld of %ld submitted", n, nr);
	if (syscall(SYS_io_getevents, ctx, nr, nr, events, NULL) != nr)
		err(EXIT_IO, "io_getevents");
	for (n = 0; n < nr; n++) {
		struct iocb *iocb = (void *)(uintptr_t)events[n].obj;

		if (events[n].res != (long long)iocb->aio_nbytes)
			errx(EXIT_IO, "write %td: %lld", iocb - iocbs,
			     (long long)events[n].res);
	}
	return 0;
}
