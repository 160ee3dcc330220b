/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds and reads info-table provenance through a callback that reads memory. Runs in a child: the
 * memory may contain anything. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_IPE_READ_PRIV_H
#define SAFESCOPED_NAMES_IPE_READ_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The format of a version's buffers (rts/include/rts/IPE.h). */
enum ipe_form {
	IPE_ENTS,   /* single InfoProvEnt, with pointers to strings */
	IPE_INLINE, /* a buffer that contains its entries with their info pointers */
	IPE_TABLES, /* a buffer that points to a table of info pointers and a table of entries */
};

/* Offsets in bytes; UINT16_MAX: there is no such field. */
struct ipe_layout {
	enum ipe_form form;
	/* of an entry */
	uint16_t size, table, label, module, file, span;
	uint16_t desc;	  /* closure description or type; "53" or 53 for a return point */
	uint16_t padding; /* a u32 that is 0 */
	/* of a buffer */
	uint16_t node_unit, node_module, node_size;
};

/* NULL: older than 9.2, newer than the known ones, or not a version. */
const struct ipe_layout *ipe_layout__find(const char *ghc_version);

struct ipe_range {
	uint64_t start, end;
};

struct ipe_source {
	/* Reads all `len` bytes: 0 or a negative errno. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
	const struct ipe_range *data; /* where buffers may lie */
	size_t n_data;
	const struct ipe_range *code; /* where info pointers point */
	size_t n_code;
	const struct ipe_range *strings; /* where the strings of single entries may lie */
	size_t n_strings;
};

/* The form in which the child returns an entry: offsets into `strings`; 0 is "". */
struct ipe_raw {
	uint64_t info;
	uint32_t node; /* number of the module */
	uint32_t table, label, module, unit, file, span;
	uint32_t is_return;
};

struct ipe_out {
	uint32_t max_entries, max_strings; /* capacity */
	uint32_t n, strings_len;
	uint32_t n_nodes;
	bool truncated;
	struct ipe_raw *entries;
	char *strings;
};

/* Fills *out; entries ascend by info. Finding nothing is no error. -ENOMEM. */
int ipe_read(const struct ipe_layout *layout, const struct ipe_source *source, struct ipe_out *out);

#endif
