/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hash: uthash, configured not to end the program when memory runs out. To be included through this
 * header. */
#ifndef SAFESCOPED_HASH_H
#define SAFESCOPED_HASH_H

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* HASH_ADD for an entry that is in no other structure yet; 0, or -ENOMEM after freeing the
 * entry. */
#define HASH_INSERT(head, key, len, entry)                                                         \
	({                                                                                         \
		HASH_ADD(hh, head, key, len, entry);                                               \
		int hash_err_ = (entry)->hh.tbl ? 0 : -ENOMEM;                                     \
		if (hash_err_)                                                                     \
			free(entry);                                                               \
		hash_err_;                                                                         \
	})

/* Frees all entries with free(). */
#define HASH_FREE(head)                                                                            \
	do {                                                                                       \
		__typeof__(head) hash_entry_, hash_next_;                                          \
		HASH_ITER (hh, head, hash_entry_, hash_next_) {                                    \
			/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of uthash */ \
			HASH_DEL(head, hash_entry_);                                               \
			free(hash_entry_);                                                         \
		}                                                                                  \
	} while (0)

#endif
