/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slots for data that rooms above this one derive from a file and want kept and freed with it (its
 * symbols, its DWARF, the runtime in it): the holder need not know what it holds. Shared by the
 * rooms that keep something in a struct file or struct image.
 */
#ifndef SAFESCOPED_PROCESS_SLOTS_H
#define SAFESCOPED_PROCESS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

/* More than the program has keys. */
#define SLOTS_MAX 16

/* A constant of the module that makes the data; its address identifies the slot. */
struct slot_key {
	void (*free)(void *what); /* NULL: nothing to free */
};

struct slots {
	struct {
		const struct slot_key *key;
		void *what;
	} slot[SLOTS_MAX];
	size_t n;
};

/*
 * True if something was put under this key. *ret_what may then be NULL: it was looked for and does
 * not exist.
 */
bool slots__get(const struct slots *slots, const struct slot_key *key, void **ret_what);
/*
 * Takes over `what`, once for each key, and returns it. Returns NULL if there is no free slot,
 * after freeing `what`.
 */
void *slots__put(struct slots *slots, const struct slot_key *key, void *what);
/* Frees all slots, the last one first. */
void slots__free(struct slots *slots);

#endif
