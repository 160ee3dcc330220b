/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file's functions, in the form in which a child hands them over. For the files of this room
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
	uint64_t start, size;	       /* as in the file; size 0: unknown */
	uint64_t section, section_end; /* where the function's section is */
	uint32_t name;		       /* offset into the strings */
	uint8_t type, bind;
	uint8_t rts; /* 1: a function of the runtime */
	uint8_t pad;
};

struct known_out {
	struct known_raw *v;
	char *strings;
	uint32_t n, strings_len;
};

/*
 * Reads archives, finds their functions in the code, and fills in as many as there is room for.
 * -ENOENT: there are none; -E2BIG, -ENOMEM. Runs in the child.
 */
struct archive_file;
int known__read(const struct archive_file *files, size_t n, bool profiled, const struct code *code,
		struct known_out *out);

/*
 * Validates a child's result: functions ascend, each is in its section, sections are identical or
 * do not overlap, and names end within the `len` bytes.
 */
bool known__check(const struct known_raw *v, size_t n, const char *strings, size_t len);

#endif
