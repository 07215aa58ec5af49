// SPDX-License-Identifier: GPL-2.0
/*
 * Jump labels for User Mode Linux on x86-64. No CPU is in the code that this
 * changes, as nothing is loaded while choices are made: plain stores do.
 */
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <os.h>

static void expect(const void *code, const u8 *wanted)
{
	if (memcmp(code, wanted, JUMP_LABEL_NOP_SIZE))
		panic("jump label: unexpected code at %pS", code);
}

static void set_writable(unsigned long start, unsigned long end, int writable)
{
	int error = os_protect_memory((void *)start, end - start, 1, writable,
				      1);

	if (error)
		panic("jump label: mprotect: %d", error);
}

void arch_jump_label_transform(struct jump_entry *entry,
			       enum jump_label_type type)
{
	static const u8 nop[JUMP_LABEL_NOP_SIZE] = {
		0x0f, 0x1f, 0x44, 0x00, 0x00
	};
	u8 jmp[JUMP_LABEL_NOP_SIZE] = { 0xe9 };
	unsigned long code = jump_entry_code(entry);
	unsigned long start = code & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(code + sizeof(jmp));
	s32 distance = jump_entry_target(entry) - (code + sizeof(jmp));
	bool is_jump = type == JUMP_LABEL_JMP;

	memcpy(jmp + 1, &distance, sizeof(distance));
	expect((void *)code, is_jump ? nop : jmp);
	set_writable(start, end, 1);
	memcpy((void *)code, is_jump ? jmp : nop, sizeof(jmp));
	set_writable(start, end, 0);
}
