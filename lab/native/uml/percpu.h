/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Per-CPU operations for User Mode Linux. On x86 each of these is an
 * instruction; asm-generic switches interrupts off and on around it, which
 * takes longer. These mostly compile to one instruction, too, after one that
 * reads where the CPU's data are; where they do not, an interrupt may change a
 * counter in between, and a count is lost, which a measurement can bear.
 */
#ifndef _ASM_UM_PERCPU_H
#define _ASM_UM_PERCPU_H

#define this_cpu_read_1(pcp)			raw_cpu_read_1(pcp)
#define this_cpu_read_2(pcp)			raw_cpu_read_2(pcp)
#define this_cpu_read_4(pcp)			raw_cpu_read_4(pcp)
#define this_cpu_read_8(pcp)			raw_cpu_read_8(pcp)
#define this_cpu_write_1(pcp, val)		raw_cpu_write_1(pcp, val)
#define this_cpu_write_2(pcp, val)		raw_cpu_write_2(pcp, val)
#define this_cpu_write_4(pcp, val)		raw_cpu_write_4(pcp, val)
#define this_cpu_write_8(pcp, val)		raw_cpu_write_8(pcp, val)
#define this_cpu_add_1(pcp, val)		raw_cpu_add_1(pcp, val)
#define this_cpu_add_2(pcp, val)		raw_cpu_add_2(pcp, val)
#define this_cpu_add_4(pcp, val)		raw_cpu_add_4(pcp, val)
#define this_cpu_add_8(pcp, val)		raw_cpu_add_8(pcp, val)
#define this_cpu_add_return_1(pcp, val)		raw_cpu_add_return_1(pcp, val)
#define this_cpu_add_return_2(pcp, val)		raw_cpu_add_return_2(pcp, val)
#define this_cpu_add_return_4(pcp, val)		raw_cpu_add_return_4(pcp, val)
#define this_cpu_add_return_8(pcp, val)		raw_cpu_add_return_8(pcp, val)

#ifdef CONFIG_SMP
extern unsigned long uml_cpu_offset;

static inline unsigned long uml_my_cpu_offset(void)
{
	unsigned long offset;

	asm("movq %%gs:%1, %0" : "=r" (offset) : "m" (uml_cpu_offset));
	return offset;
}

#define __my_cpu_offset uml_my_cpu_offset()
#endif
#include <asm-generic/percpu.h>

#endif /* _ASM_UM_PERCPU_H */
