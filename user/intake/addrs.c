/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * addrs: the named addresses of a target, by frame. A stack has dozens of frames, nearly all of
 * which were seen before, and each look into the hash table costs several cache misses, since it
 * walks entries scattered all over memory. A table of recent hits is therefore searched first: two
 * adjacent slots for each hash, and at least as many slots in total as there are addresses.
 */
#include "intake_priv.h"

#define LEAST_RECENT 64 /* a power of two */

/* The first of the two slots of a frame. */
static struct seen_addr **recent_of(struct seen *s, uint64_t frame)
{
	uint64_t hash = frame * 0x9e3779b97f4a7c15ULL >> 32;

	return &s->recent_addrs[hash & (s->n_recent_addrs - 1) & ~1ULL];
}

static bool is_at(struct seen_addr *const *place, uint64_t frame)
{
	return *place && (*place)->key == frame;
}

/*
 * Makes a larger table for the current addresses; without memory the old one stays. A target that
 * has ended gets none: little more comes of it, and there are many short-lived programs.
 */
static void make_room(struct seen *s)
{
	struct seen_addr **larger, *addr, *next;
	size_t n = LEAST_RECENT;

	if (s->ended)
		return;
	while (n < 2 * (size_t)HASH_COUNT(s->addrs))
		n *= 2;
	larger = calloc(n, sizeof(struct seen_addr *));
	if (!larger)
		return;
	free(s->recent_addrs);
	s->recent_addrs = larger;
	s->n_recent_addrs = n;
	HASH_ITER (hh, s->addrs, addr, next) {
		struct seen_addr **recent = recent_of(s, addr->key);

		recent[recent[0] != NULL] = addr;
	}
}

struct seen_addr *addrs__find(struct seen *s, uint64_t frame)
{
	struct seen_addr **recent, *addr;

	if (!s->recent_addrs && s->addrs)
		make_room(s);
	recent = s->recent_addrs ? recent_of(s, frame) : NULL;
	if (recent && is_at(&recent[0], frame))
		return recent[0];
	if (recent && is_at(&recent[1], frame))
		return recent[1];
	HASH_FIND(hh, s->addrs, &frame, sizeof(frame), addr);
	if (recent && addr) {
		recent[1] = recent[0];
		recent[0] = addr;
	}
	return addr;
}

int addrs__add(struct seen *s, struct seen_addr *addr)
{
	int err = HASH_INSERT(s->addrs, key, sizeof(addr->key), addr);

	if (!err && HASH_COUNT(s->addrs) > s->n_recent_addrs / 2)
		make_room(s);
	return err;
}

void addrs__expect(struct seen *s, const uint64_t *frames, size_t n)
{
	for (size_t i = 0; s->recent_addrs && i < n; i++) {
		struct seen_addr **recent = recent_of(s, frames[i]);

		for (size_t k = 0; k < 2; k++)
			if (recent[k])
				__builtin_prefetch(&recent[k]->key);
	}
}

void addrs__forget_recent(struct seen *s)
{
	free(s->recent_addrs);
	s->recent_addrs = NULL;
	s->n_recent_addrs = 0;
}

void addrs__free(struct seen *s)
{
	addrs__forget_recent(s);
	HASH_FREE(s->addrs);
}
