/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_LINUX_KERNEL_H
#define PLUGSIM_LINUX_KERNEL_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include_next <linux/kernel.h>
#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/minmax.h>

#define abs_diff(a, b) ({			\
	typeof(a) _a = (a);			\
	typeof(b) _b = (b);			\
	_a > _b ? _a - _b : _b - _a;		\
})

#endif /* PLUGSIM_LINUX_KERNEL_H */
