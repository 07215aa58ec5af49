/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_LINUX_MATH64_H
#define PLUGSIM_LINUX_MATH64_H

#include <linux/types.h>

/* Functions, as in the kernel: what is divided has the type of the argument. */
#define DIVIDE(name, type, by)				\
static inline type name(type dividend, by divisor)	\
{							\
	return dividend / divisor;			\
}

DIVIDE(div64_u64, u64, u64)
DIVIDE(div64_s64, s64, s64)
DIVIDE(div_u64, u64, u32)

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * mul) >> shift);
}

#endif /* PLUGSIM_LINUX_MATH64_H */
