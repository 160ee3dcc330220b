/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keyset: a bounded set of keys of one size. When it is full, all keys are forgotten. */
#ifndef SAFESCOPED_KEYSET_H
#define SAFESCOPED_KEYSET_H

#include <stdbool.h>
#include <stddef.h>

struct keyset;

/* Keys of key_size bytes, padding included; at most `max` of them. -ENOMEM. */
int keyset__new(size_t key_size, size_t max, struct keyset **ret_set);
void keyset__free(struct keyset *set); /* NULL is fine */
bool keyset__has(const struct keyset *set, const void *key);
/* If there is no memory, the key is not added. */
void keyset__add(struct keyset *set, const void *key);
void keyset__forget(struct keyset *set);
size_t keyset__count(const struct keyset *set);

#endif
