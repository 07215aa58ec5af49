/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jump labels for User Mode Linux on x86-64: a gate that is closed costs a nop,
 * as it does on bare metal, and not a load and a branch.
 */
#ifndef _ASM_UM_JUMP_LABEL_H
#define _ASM_UM_JUMP_LABEL_H

#define JUMP_LABEL_NOP_SIZE 5

#ifndef __ASSEMBLER__

#include <linux/types.h>

/* What kernel/jump_label.c wants to know of the code at "1:". */
#define UM_JUMP_TABLE_ENTRY			\
	".pushsection __jump_table, \"aw\"\n\t"	\
	".balign 8\n\t"				\
	".long 1b - .\n\t"			\
	".long %l[l_yes] - .\n\t"		\
	".quad %c0 + %c1 - .\n\t"		\
	".popsection\n\t"

static __always_inline bool arch_static_branch(struct static_key * const key,
					       const bool branch)
{
	asm goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
		 UM_JUMP_TABLE_ENTRY
		 : : "i" (key), "i" (branch) : : l_yes);
	return false;
l_yes:
	return true;
}

static __always_inline bool
arch_static_branch_jump(struct static_key * const key, const bool branch)
{
	asm goto("1: .byte 0xe9\n\t"
		 ".long %l[l_yes] - (1b + 5)\n\t"
		 UM_JUMP_TABLE_ENTRY
		 : : "i" (key), "i" (branch) : : l_yes);
	return false;
l_yes:
	return true;
}

#endif /* __ASSEMBLER__ */
#endif /* _ASM_UM_JUMP_LABEL_H */
