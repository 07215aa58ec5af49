// SPDX-License-Identifier: GPL-2.0
/*
 * linessay WORD...: what a guest tells lines.c, the plugin of the QEMU that it
 * runs in.
 *
 * No device is needed for it: a no-op with a number that nobody else uses says
 * one bit.  The lowest bit of each byte comes first, and a byte of 0 last.
 */
static void say_bit(int bit)
{
	/* nopl 0x504c4900(%rax,%rax,1), and ...01(%rax,%rax,1) */
	if (bit)
		asm volatile(".byte 0x0f,0x1f,0x84,0x00,0x01,0x49,0x4c,0x50");
	else
		asm volatile(".byte 0x0f,0x1f,0x84,0x00,0x00,0x49,0x4c,0x50");
}

static void say_byte(int byte)
{
	int bit;

	for (bit = 0; bit < 8; bit++)
		say_bit(byte >> bit & 1);
}

int main(int argc, char **argv)
{
	int arg;

	for (arg = 1; arg < argc; arg++) {
		const char *c;

		for (c = argv[arg]; *c; c++)
			say_byte(*c);
		say_byte(arg + 1 < argc ? ' ' : 0);
	}
	return 0;
}
