/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks a GHC release up in the generated table of struct offsets. */
#include "layout.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "ghc_version.h"
#include "layout_table_priv.h"

int layout__find(const char *version, bool threaded, bool profiled, enum layout_variant variant,
		 struct layout *ret_layout, bool *ret_known)
{
	const struct layout_row *at_or_below = NULL, *lowest = NULL, *best;
	ghc_version_t want, below = 0, low = 0;

	if (ghc_version__parse(version, strlen(version), &want) < 0)
		return -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(layout_rows); i++) {
		const struct layout_row *row = &layout_rows[i];

		if (row->threaded != threaded || row->profiled != profiled)
			continue;
		for (const char *p = row->versions; *p; p += *p == ' ') {
			size_t len = strcspn(p, " ");
			ghc_version_t v;

			if (ghc_version__parse(p, len, &v) < 0)
				return -EINVAL;
			p += len;
			/* Rows of the other variant count too: they show which release is
			 * nearest. */
			if (v <= want && (!at_or_below || v > below ||
					  (v == below && (int)row->noclk == (int)variant))) {
				at_or_below = row;
				below = v;
			}
			if (!lowest || v < low) {
				lowest = row;
				low = v;
			}
		}
	}
	best = at_or_below ? at_or_below : lowest;
	if (!best || (int)best->noclk != (int)variant)
		return -ENOENT;
	*ret_layout = best->layout;
	*ret_known = at_or_below && below == want;
	return 0;
}
