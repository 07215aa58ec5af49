// SPDX-License-Identifier: GPL-2.0
#include "plug.h"

/* Does what is held leave before another request comes? */
static bool is_full(const struct plug *plug, u32 size)
{
	return plug->nr && (plug->nr >= PLUG_MAX ||
			    (!plug->random && plug->nr >= plug->group) ||
			    plug->ios[plug->nr - 1] * size >= PLUG_FLUSH_SIZE);
}

/**
 * plug_add - an I/O comes
 * @plug: the submission's plug
 * @decided: what counts if it is empty
 * @pos: where the I/O is, in I/Os, or %PLUG_NOWHERE
 * @size: of each I/O, in bytes
 * @max_size: of a request
 */
enum plug_did plug_add(struct plug *plug, const struct decision *decided,
		       u64 pos, u32 size, u32 max_size)
{
	u32 *newest = plug->nr ? &plug->ios[plug->nr - 1] : NULL;

	if (newest && !plug->random && pos != PLUG_NOWHERE &&
	    pos == plug->end && (*newest + 1) * size <= max_size) {
		++*newest;
		plug->end++;
		return PLUG_JOINED;
	}
	if (is_full(plug, size))
		return PLUG_FULL;
	if (!newest) {
		plug->group = decided->group;
		plug->random = decided->random;
	}
	plug->ios[plug->nr++] = 1;
	plug->end = pos == PLUG_NOWHERE ? pos : pos + 1;
	return plug->random && plug->nr >= plug->group ? PLUG_FILLED :
		PLUG_HELD;
}
