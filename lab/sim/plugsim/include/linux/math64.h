/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_LINUX_MATH64_H
#define PLUGSIM_LINUX_MATH64_H

#include_next <linux/math64.h>

/* As in the kernel: what is divided has the type of the argument. */
#define div64_u64(a, b)		((u64)(a) / (u64)(b))
#define div64_s64(a, b)		((s64)(a) / (s64)(b))
#define div_u64(a, b)		((u64)(a) / (u32)(b))

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

#endif /* PLUGSIM_LINUX_MATH64_H */
