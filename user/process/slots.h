/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places for what the rooms above this one make of a file and want kept and freed with it (its
 * symbols, its DWARF, the runtime in it): the holder need not know what it holds. Shared by the
 * rooms that keep something in a struct file or struct image.
 */
#ifndef SAFESCOPED_PROCESS_SLOTS_H
#define SAFESCOPED_PROCESS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

/* More than there are keys in the program. */
#define SLOTS_MAX 16

/* A constant of the module that makes the thing; its address distinguishes it from others. */
struct slot_key {
	void (*free)(void *what); /* NULL: nothing is to be freed */
};

struct slots {
	struct {
		const struct slot_key *key;
		void *what;
	} slot[SLOTS_MAX];
	size_t n;
};

/*
 * True if something was put there under this key. *ret_what may be NULL then: it was looked for,
 * and there is none.
 */
bool slots__get(const struct slots *slots, const struct slot_key *key, void **ret_what);
/*
 * Takes `what` over, once for each key, and returns it. NULL if there is no slot left: it has been
 * freed then.
 */
void *slots__put(struct slots *slots, const struct slot_key *key, void *what);
/* Frees what was put, the last first. */
void slots__free(struct slots *slots);

#endif
