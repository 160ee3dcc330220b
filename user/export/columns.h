/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * columns: the titles of a table's columns and the sources of their cells, declared once for the
 * text report and the page.
 */
#ifndef SAFESCOPED_EXPORT_COLUMNS_H
#define SAFESCOPED_EXPORT_COLUMNS_H

#include "export_priv.h"

/* The type of the row's member that a cell shows. In text a number of UINT64_MAX is "–". */
enum cell {
	CELL_TEXT,  /* const char * */
	CELL_NAME,  /* const char *; in text `?` if empty, and `~` first if the mark is set */
	CELL_COUNT, /* uint64_t; in text prefixed with `≥` if there is a mark that is not set */
	CELL_NS,    /* the same */
	CELL_ABOUT_NS, /* the same; in text prefixed with `~` */
	CELL_KNOWN_NS, /* the same; in text empty if not known */
	CELL_SHARE,    /* double, percent */
};

struct column {
	const char *text, *page; /* titles; NULL: not in that format */
	enum cell cell;
	uint16_t offset, mark; /* of the member; of the bool that marks it, 0: none */
	uint8_t worth;	       /* the least go first if the text is too narrow; 0: never left out */
};

struct columns {
	const struct column *v;
	size_t n;
};

struct call_row {
	struct pic_call call;
	uint64_t mean_ns;
	const char *notes;
};
struct function_row {
	struct pic_function function;
	double self, total;
};
struct centre_row {
	struct pic_cost_centre centre;
	double self, total;
};
extern const struct columns call_columns, unsafe_columns, function_columns, centre_columns;

#endif
