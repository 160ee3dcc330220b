/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mapped archives. For the files of this room only. */
#ifndef SAFESCOPED_ARCHIVES_FILES_PRIV_H
#define SAFESCOPED_ARCHIVES_FILES_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "sections_priv.h"

struct archive_file {
	void *data;
	size_t size;
	enum archive_kind kind;
	bool profiled; /* GHC's profiled way */
};

struct archives {
	struct archive_file *files;
	size_t n, cap;
	size_t bytes;
	size_t left_out;
};

#endif
