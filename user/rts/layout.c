/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks a GHC release up in the generated table of struct offsets. */
#include "layout.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "layout_table.h"

#define VERSION_PARTS	 4
#define VERSION_PART_MAX 99999999U

struct version {
	uint32_t part[VERSION_PARTS];
};

/* "9.0.2", "9.14", "9.12.20250101": two to four numbers. The text ends at NUL or a space. */
static int version__parse(const char *text, struct version *ret_version)
{
	struct version v = {0};
	size_t n = 0;

	for (;;) {
		uint32_t value = 0;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		for (; *text >= '0' && *text <= '9'; text++) {
			value = value * 10 + (uint32_t)(*text - '0');
			if (value > VERSION_PART_MAX)
				return -EINVAL;
		}
		v.part[n++] = value;
		if (*text != '.')
			break;
		if (n == VERSION_PARTS)
			return -EINVAL;
		text++;
	}
	if ((*text != '\0' && *text != ' ') || n < 2)
		return -EINVAL;
	*ret_version = v;
	return 0;
}

static int version__compare(const struct version *a, const struct version *b)
{
	for (size_t i = 0; i < VERSION_PARTS; i++)
		if (a->part[i] != b->part[i])
			return a->part[i] < b->part[i] ? -1 : 1;
	return 0;
}

int layout__find(const char *version, bool threaded, bool profiled, enum layout_variant variant,
		 struct layout *ret_layout, bool *ret_known)
{
	const struct layout_row *at_or_below = NULL, *lowest = NULL, *best;
	struct version want, below = {0}, low = {0};

	if (version__parse(version, &want) < 0)
		return -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(layout_rows); i++) {
		const struct layout_row *row = &layout_rows[i];

		if (row->threaded != threaded || row->profiled != profiled)
			continue;
		for (const char *p = row->versions; p; p = strchr(p, ' ')) {
			struct version v;

			p += *p == ' ';
			if (version__parse(p, &v) < 0)
				return -EINVAL;
			/* Rows of the other variant count too: they tell which release is nearest.
			 */
			if (version__compare(&v, &want) <= 0 &&
			    (!at_or_below || version__compare(&v, &below) > 0 ||
			     (version__compare(&v, &below) == 0 &&
			      (int)row->noclk == (int)variant))) {
				at_or_below = row;
				below = v;
			}
			if (!lowest || version__compare(&v, &low) < 0) {
				lowest = row;
				low = v;
			}
		}
	}
	best = at_or_below ? at_or_below : lowest;
	if (!best || (int)best->noclk != (int)variant)
		return -ENOENT;
	*ret_layout = best->layout;
	/* rts/include/rts/storage/TSO.h, 9.6 and later: bound, cap, trec, label */
	if (version__compare(&want, &(struct version){{9, 6, 0, 0}}) >= 0)
		ret_layout->wire.tso_label = best->layout.wire.tso_bound + 24;
	*ret_known = at_or_below && version__compare(&below, &want) == 0;
	return 0;
}

const struct layout_row *layout__rows(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(layout_rows);
	return layout_rows;
}
