/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Haskell names that are not linker symbols: normalises what provenance, DWARF and closure
 * descriptions call a closure.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_HS_NAME_PRIV_H
#define SAFESCOPED_NAMES_HS_NAME_PRIV_H

#include <stdbool.h>

#define HS_NAME_LEN 512

/*
 * The name in a label that is not z-encoded: "$wgo_r3cX_info" gives "$wgo", "outer_info" gives
 * "outer". A closure with nothing but its unique keeps it: "sat_s3hx". `out` holds at least
 * HS_NAME_LEN bytes.
 */
void hs_name__occurrence(const char *label, char *out);

/*
 * Marks a source binding as the worker or specialisation that its closure is: "main.go" and "$wgo"
 * give "main.$wgo". Any other occurrence leaves the binding as it is; if the binding is "" the
 * result is the occurrence.
 */
void hs_name__combine(const char *binding, const char *occurrence, char *out);

/*
 * The name of a closure in an info table map, by its info table, "$wgo_r3cX_info", and its source
 * binding, "main.go"; "": it has none. As above, but "go1_samc_info" without a binding is "go1".
 */
void hs_name__of_table(const char *table, const char *binding, char *out);

/*
 * A label that the code generator made up instead of a name: "c1Tx", "L7133701809754869848". The
 * label of a block close to it, "_c1Ty", distinguishes it from a name in the source, since they are
 * numbered in one sequence. NULL: there is none, and only what looks most like a label counts as
 * one.
 */
bool hs_name__is_made_up(const char *name, const char *block);

/* A name that belongs to no binding: "sat_s3hx", "lvl12". */
bool hs_name__is_anonymous(const char *name);

/* A closure description's parts. "": it does not have that part. */
struct hs_description {
	char package[160]; /* "main", "text-1.2.5.0-HASH" */
	char module[256];
	char name[HS_NAME_LEN];
};

/*
 * Splits a closure description of a profiled program: "<main:Data.Map.$wgo_r3cX>",
 * "<Data.Map.$wgo_r3cX>" or "<$wgo>". False: not the description of a closure that GHC's code
 * generator made.
 */
bool hs_name__description(const char *text, struct hs_description *ret);

#endif
