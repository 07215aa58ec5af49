// SPDX-License-Identifier: GPL-2.0
#include "plug.h"

/* Never fills: held for as long as without a policy. */
#define HOLD	(PLUG_MAX + 1)

/* As blk_plug_policy_bind(). */
static void bind(struct plug *plug, const struct decision *decided)
{
	plug->group = decided->group;
	if (!plug->begun && decided->first)
		plug->group = 1;
	else if (!plug->begun && decided->pair)
		plug->group = 2;
	if (plug->group >= PLUG_MAX)
		plug->group = HOLD;
	plug->begun = true;
	plug->random = decided->random;
}

/* As blk_plug_policy_unrelated(): does an I/O that continues also look? */
static bool looks(const struct plug *plug)
{
	return !plug->random || plug->nr == 1;
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
	bool continues = newest && pos != PLUG_NOWHERE && pos == plug->end;

	if (continues && looks(plug) && (*newest + 1) * size <= max_size) {
		++*newest;
		plug->end++;
		return PLUG_JOINED;
	}
	if (newest && (plug->nr >= PLUG_MAX || *newest * size >=
		       PLUG_FLUSH_SIZE))
		return PLUG_FULL;
	if (!newest)
		bind(plug, decided);
	plug->ios[plug->nr++] = 1;
	plug->end = pos == PLUG_NOWHERE ? pos : pos + 1;
	if (plug->nr < plug->group)
		return PLUG_HELD;
	if (!continues)
		return PLUG_FILLED;
	plug->group = HOLD;
	return PLUG_HELD;
}
