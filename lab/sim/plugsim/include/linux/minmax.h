/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_LINUX_MINMAX_H
#define PLUGSIM_LINUX_MINMAX_H

/*
 * Those of tools/include want both of exactly one type, the kernel's do not:
 * there it is enough if a comparison means the same for both.
 */
#include_next <linux/kernel.h>

#undef min
#undef max
#undef clamp
#define min(x, y) ({				\
	typeof(x) _min1 = (x);			\
	typeof(y) _min2 = (y);			\
	_min1 < _min2 ? _min1 : _min2;		\
})
#define max(x, y) ({				\
	typeof(x) _max1 = (x);			\
	typeof(y) _max2 = (y);			\
	_max1 > _max2 ? _max1 : _max2;		\
})
#define max3(x, y, z)		max(max(x, y), z)
#define clamp(val, lo, hi)	min(max(val, lo), hi)

#endif /* PLUGSIM_LINUX_MINMAX_H */
