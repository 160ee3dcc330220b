/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of info-table provenance by GHC version: rts/include/rts/IPE.h of each release. */
#include "base/base.h"
#include "ipe_read_priv.h"
#include "rts/ghc_version.h"

#define NONE UINT16_MAX

static const struct row {
	ghc_version_t from;
	struct ipe_layout layout;
} rows[] = {
	/* struct InfoProvEnt_ with `link` as its last field; its last string is "file:span" */
	{GHC_VERSION(9, 2, 0),
	 {.form = IPE_ENTS,
	  .size = 64,
	  .table = 8,
	  .desc = 16,
	  .label = 32,
	  .module = 40,
	  .file = 48,
	  .span = NONE,
	  .padding = NONE,
	  .node_unit = NONE,
	  .node_module = NONE}},
	/* the same without `link` */
	{GHC_VERSION(9, 4, 0),
	 {.form = IPE_ENTS,
	  .size = 56,
	  .table = 8,
	  .desc = 16,
	  .label = 32,
	  .module = 40,
	  .file = 48,
	  .span = NONE,
	  .padding = NONE,
	  .node_unit = NONE,
	  .node_module = NONE}},
	{GHC_VERSION(9, 4, 3),
	 {.form = IPE_INLINE,
	  .size = 32,
	  .table = 8,
	  .desc = 12,
	  .label = 20,
	  .module = 24,
	  .file = 28,
	  .span = NONE,
	  .padding = NONE,
	  .node_size = 24,
	  .node_unit = NONE,
	  .node_module = NONE}},
	{GHC_VERSION(9, 6, 0),
	 {.form = IPE_INLINE,
	  .size = 40,
	  .table = 8,
	  .desc = 12,
	  .label = 20,
	  .module = 24,
	  .file = 28,
	  .span = 32,
	  .padding = 36,
	  .node_size = 24,
	  .node_unit = NONE,
	  .node_module = NONE}},
	{GHC_VERSION(9, 8, 0),
	 {.form = IPE_TABLES,
	  .size = 32,
	  .table = 0,
	  .desc = 4,
	  .label = 12,
	  .module = 16,
	  .file = 20,
	  .span = 24,
	  .padding = 28,
	  .node_size = 64,
	  .node_unit = NONE,
	  .node_module = NONE}},
	{GHC_VERSION(9, 10, 0),
	 {.form = IPE_TABLES,
	  .size = 24,
	  .table = 0,
	  .desc = 4,
	  .label = 12,
	  .module = NONE,
	  .file = 16,
	  .span = 20,
	  .padding = NONE,
	  .node_size = 72,
	  .node_unit = 64,
	  .node_module = 68}},
};

/* Versions after 9.14 are not supported: the format has changed, and none was released to test
 * with. */
#define KNOWN_BEFORE GHC_VERSION(9, 15, 0)

const struct ipe_layout *ipe_layout__find(const char *ghc_version)
{
	ghc_version_t version = ghc_version__of(ghc_version);
	const struct ipe_layout *found = NULL;

	if (version >= KNOWN_BEFORE)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (version >= rows[i].from)
			found = &rows[i].layout;
	return found;
}
