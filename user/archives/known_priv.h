/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of a file's functions, as a child hands it over. Shared by the files of this room
 * only. */
#ifndef SAFESCOPED_ARCHIVES_KNOWN_PRIV_H
#define SAFESCOPED_ARCHIVES_KNOWN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "match_priv.h"
#include "place_priv.h"

#define KNOWN_MAX	  (1U << 19) /* functions; pandoc has 118 000 symbols */
#define KNOWN_MAX_STRINGS (48U << 20)

struct known_raw {
	uint64_t start, size;	       /* as in the file; size 0: not known */
	uint64_t section, section_end; /* where its section is */
	uint32_t name;		       /* offset into the strings */
	uint8_t type, bind;
	uint8_t rts; /* 1: the runtime's */
	uint8_t pad;
};

struct known_out {
	struct known_raw *v;
	char *strings;
	uint32_t n, strings_len;
};

/*
 * Reads archives, finds their functions in the code, and fills in what it has room for. -ENOENT:
 * there is none; -E2BIG, -ENOMEM. In the child.
 */
struct archive_file;
int known__read(const struct archive_file *files, size_t n, bool profiled, const struct code *code,
		struct known_out *out);

/*
 * Of what a child made: functions ascend, each is in its section, sections are the same or do not
 * overlap, and names end within the `len` bytes.
 */
bool known__check(const struct known_raw *v, size_t n, const char *strings, size_t len);

#endif
