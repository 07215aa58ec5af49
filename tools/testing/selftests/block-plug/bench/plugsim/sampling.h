/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which response times are taken: the kernel's own functions, which the
 * Makefile cuts out of block/blk-plug-times.[ch], and all that they look at.
 */
#ifndef PLUGSIM_SAMPLING_H
#define PLUGSIM_SAMPLING_H

#include <asm-generic/bitops/fls.h>
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/types.h>

struct request {
	u64 start_time_ns;
	int tag;
};

struct blk_plug_loop {
	bool sparse;
};

#include "loop_functions.h"

#endif /* PLUGSIM_SAMPLING_H */
