/* SPDX-License-Identifier: GPL-2.0 */
/* A hash table of records by a key of 64 bits; records never move. */
#ifndef LINES_TABLE_H
#define LINES_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
	size_t record;		/* bytes of one, which begins with its key */
	size_t nr, size;
	uint64_t **slots;
};

static inline uint64_t table_hash(uint64_t key)
{
	key ^= key >> 31;
	key *= 0x9e3779b97f4a7c15;
	return key ^ key >> 29;
}

static inline void *table_alloc(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory) {
		fprintf(stderr, "lines: out of memory\n");
		abort();
	}
	return memory;
}

static inline uint64_t **table_slot(const struct table *t, uint64_t key)
{
	size_t at = table_hash(key) & (t->size - 1);

	while (t->slots[at] && *t->slots[at] != key)
		at = (at + 1) & (t->size - 1);
	return &t->slots[at];
}

static inline void table_grow(struct table *t)
{
	struct table old = *t;
	size_t i;

	t->size = old.size ? 2 * old.size : 1024;
	t->slots = table_alloc(t->size, sizeof(*t->slots));
	for (i = 0; i < old.size; i++)
		if (old.slots[i])
			*table_slot(t, *old.slots[i]) = old.slots[i];
	free(old.slots);
}

/* The record of a key; a new one is all zeroes but for it. */
static inline void *table_get(struct table *t, uint64_t key)
{
	uint64_t **slot;

	if (2 * t->nr >= t->size)
		table_grow(t);
	slot = table_slot(t, key);
	if (!*slot) {
		*slot = table_alloc(1, t->record);
		**slot = key;
		t->nr++;
	}
	return *slot;
}

#endif /* LINES_TABLE_H */
