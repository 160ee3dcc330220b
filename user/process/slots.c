/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slots: a few keys, searched linearly. */
#include "slots.h"

bool slots__get(const struct slots *slots, const struct slot_key *key, void **ret_what)
{
	for (size_t i = 0; i < slots->n; i++) {
		if (slots->slot[i].key != key)
			continue;
		*ret_what = slots->slot[i].what;
		return true;
	}
	return false;
}

void *slots__put(struct slots *slots, const struct slot_key *key, void *what)
{
	if (slots->n == SLOTS_MAX) {
		if (what && key->free)
			key->free(what);
		return NULL;
	}
	slots->slot[slots->n].key = key;
	slots->slot[slots->n++].what = what;
	return what;
}

void slots__free(struct slots *slots)
{
	while (slots->n > 0) {
		const struct slot_key *key = slots->slot[--slots->n].key;
		void *what = slots->slot[slots->n].what;

		if (what && key->free)
			key->free(what);
	}
}
