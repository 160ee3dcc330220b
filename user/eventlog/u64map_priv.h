/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * u64map: maps numbers to 32-bit indices, for the models' inner loops (uthash costs an allocation
 * per entry and a pointer chase per lookup). Not for other rooms.
 */
#ifndef SAFESCOPED_EVENTLOG_U64MAP_PRIV_H
#define SAFESCOPED_EVENTLOG_U64MAP_PRIV_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define U64MAP_NONE UINT32_MAX

struct u64map_slot {
	uint64_t key;
	uint32_t full; /* value + 1; 0: empty */
};

struct u64map {
	struct u64map_slot *slots;
	size_t n, size; /* size: a power of two, or 0 */
	uint64_t seed;	/* so that a log cannot choose colliding keys */
};

static inline size_t u64map__hash(const struct u64map *m, uint64_t key)
{
	key = (key + m->seed) * (m->seed | 1);
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15ull;
	key ^= key >> 29;
	return (size_t)key & (m->size - 1);
}

static inline uint32_t u64map__get(const struct u64map *m, uint64_t key)
{
	size_t i;

	if (!m->size)
		return U64MAP_NONE;
	for (i = u64map__hash(m, key); m->slots[i].full; i = (i + 1) & (m->size - 1))
		if (m->slots[i].key == key)
			return m->slots[i].full - 1;
	return U64MAP_NONE;
}

static inline void u64map__place(struct u64map *m, uint64_t key, uint32_t value)
{
	size_t i = u64map__hash(m, key);

	while (m->slots[i].full && m->slots[i].key != key)
		i = (i + 1) & (m->size - 1);
	if (!m->slots[i].full)
		m->n++;
	m->slots[i] = (struct u64map_slot){key, value + 1};
}

/* Callers bound the number of entries; a value must be below U64MAP_NONE. */
static inline int u64map__put(struct u64map *m, uint64_t key, uint32_t value)
{
	struct u64map old = *m;

	if (2 * (m->n + 1) > m->size) {
		size_t size = m->size ? 2 * m->size : 64;
		struct u64map_slot *slots = calloc(size, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		if (!old.size && getrandom(&old.seed, sizeof(old.seed), GRND_NONBLOCK) < 0)
			old.seed = (uint64_t)(uintptr_t)slots;
		*m = (struct u64map){slots, 0, size, old.seed};
		for (size_t i = 0; i < old.size; i++)
			if (old.slots[i].full)
				u64map__place(m, old.slots[i].key, old.slots[i].full - 1);
		free(old.slots);
	}
	u64map__place(m, key, value);
	return 0;
}

/* Later entries of the same probe run move up, so that no lookup stops short of them. */
static inline void u64map__del(struct u64map *m, uint64_t key)
{
	size_t i, k, mask = m->size - 1;

	if (!m->size)
		return;
	for (i = u64map__hash(m, key); m->slots[i].key != key || !m->slots[i].full;
	     i = (i + 1) & mask)
		if (!m->slots[i].full)
			return;
	for (k = (i + 1) & mask; m->slots[k].full; k = (k + 1) & mask) {
		size_t home = u64map__hash(m, m->slots[k].key);

		if (((k - home) & mask) >= ((k - i) & mask)) {
			m->slots[i] = m->slots[k];
			i = k;
		}
	}
	m->slots[i].full = 0;
	m->n--;
}

static inline void u64map__free(struct u64map *m)
{
	free(m->slots);
	*m = (struct u64map){NULL, 0, 0, 0};
}

#endif
