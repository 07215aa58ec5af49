/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel tree's kublk wants of liburing and Debian 12's liburing 2.3
 * has not. To be included before anything else (-include); weak, so that a
 * liburing that has them wins.
 */
#ifndef KUBLK_COMPAT_H
#define KUBLK_COMPAT_H

#include <errno.h>
#include <linux/io_uring.h>	/* the tree's, before liburing's own */
#include <liburing.h>
#include <sys/mman.h>

struct io_uring_buf_ring *io_uring_setup_buf_ring(struct io_uring *ring,
						  unsigned int nentries,
						  int bgid, unsigned int flags,
						  int *ret);
int io_uring_free_buf_ring(struct io_uring *ring, struct io_uring_buf_ring *br,
			   unsigned int nentries, int bgid);

__attribute__((weak)) struct io_uring_buf_ring *
io_uring_setup_buf_ring(struct io_uring *ring, unsigned int nentries, int bgid,
			unsigned int flags, int *ret)
{
	size_t size = nentries * sizeof(struct io_uring_buf);
	struct io_uring_buf_reg reg = {
		.ring_entries = nentries,
		.bgid = bgid,
	};
	void *br = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	*ret = -ENOMEM;
	if (br == MAP_FAILED)
		return NULL;
	reg.ring_addr = (unsigned long)br;
	*ret = io_uring_register_buf_ring(ring, &reg, flags);
	if (!*ret)
		return br;
	munmap(br, size);
	return NULL;
}

__attribute__((weak)) int
io_uring_free_buf_ring(struct io_uring *ring, struct io_uring_buf_ring *br,
		       unsigned int nentries, int bgid)
{
	int ret = io_uring_unregister_buf_ring(ring, bgid);

	munmap(br, nentries * sizeof(struct io_uring_buf));
	return ret;
}

#endif
