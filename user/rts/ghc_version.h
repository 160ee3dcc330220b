/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GHC's releases, as numbers that compare as the releases do. */
#ifndef SAFESCOPED_RTS_GHC_VERSION_H
#define SAFESCOPED_RTS_GHC_VERSION_H

#include <stddef.h>
#include <stdint.h>

/*
 * Up to four parts: 4 bits, 6 bits and twice 27 bits, which hold the dates of development versions
 * ("9.15.20260101", "9.6.0.20230111").
 */
typedef uint64_t ghc_version_t;

#define GHC_VERSION_MAX_MAJOR 15U
#define GHC_VERSION_MAX_MINOR 63U
#define GHC_VERSION_MAX_PATCH 99999999U

/* For comparisons with constants. */
#define GHC_VERSION(major, minor, patch)                                                           \
	((ghc_version_t)(major) << 60 | (ghc_version_t)(minor) << 54 | (ghc_version_t)(patch) << 27)

/*
 * "9.0.2", "9.14", "9.12.20250101": all `len` bytes must be two to four numbers with single dots
 * between them. -EINVAL for anything else, and for a part above its maximum.
 */
int ghc_version__parse(const char *text, size_t len, ghc_version_t *ret_version);

/* The same for a NUL-terminated string; 0, which is below every release, if it is not a version. */
ghc_version_t ghc_version__of(const char *text);

#endif
