// SPDX-License-Identifier: GPL-2.0
#include "plug.h"

/* Does what is held leave before another request comes? */
static bool is_full(const struct plug *plug, u32 size)
{
	return plug->nr && (plug->nr >= PLUG_MAX ||
			    plug->nr >= plug->group ||
			    plug->ios[plug->nr - 1] * size >= PLUG_FLUSH_SIZE);
}

/**
 * plug_add - an I/O comes
 * @plug: the submission's plug
 * @group: requests that leave at a time, if it is empty
 * @pos: where the I/O is, in I/Os, or %PLUG_NOWHERE
 * @size: of each I/O, in bytes
 * @max_size: of a request
 */
enum plug_did plug_add(struct plug *plug, u32 group, u64 pos,
		       u32 size, u32 max_size)
{
	u32 *newest = plug->nr ? &plug->ios[plug->nr - 1] : NULL;

	if (newest && pos != PLUG_NOWHERE &&
	    pos == plug->end && (*newest + 1) * size <= max_size) {
		++*newest;
		plug->end++;
		return PLUG_JOINED;
	}
	if (is_full(plug, size))
		return PLUG_FULL;
	if (!newest)
		plug->group = group;
	plug->ios[plug->nr++] = 1;
	plug->end = pos == PLUG_NOWHERE ? pos : pos + 1;
	return PLUG_HELD;
}
