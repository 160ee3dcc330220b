/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Haskell names that are no linker symbols: what provenance, DWARF and closure descriptions call
 * a closure, brought to one form.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_HS_NAME_PRIV_H
#define SAFESCOPED_NAMES_HS_NAME_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#define HS_NAME_LEN 512

/*
 * What a label that is not z-encoded names: "$wgo_r3cX_info" is "$wgo", "outer_info" is "outer".
 * A closure that has nothing but its unique keeps it: "sat_s3hx". out: at least HS_NAME_LEN.
 */
void hs_name__occurrence(const char *label, char *out);

/*
 * The source binding, marked as the worker or specialisation that its closure is: "main.go" and
 * "$wgo" are "main.$wgo". An occurrence that is something else leaves the binding as it is; ""
 * gives the occurrence.
 */
void hs_name__combine(const char *binding, const char *occurrence, char *out);

/* A label that the code generator made up, in place of a name: "c1Tx", "L7133701809754869848". */
bool hs_name__is_made_up(const char *name);

/* A name that is no binding's: "sat_s3hx", "lvl12". */
bool hs_name__is_anonymous(const char *name);

/*
 * A closure description of a profiled program: "<Data.Map.$wgo_r3cX>", "<$wgo>". Splits off the
 * module ("" if there is none). False: it is none of a closure that GHC's code generator made.
 */
bool hs_name__description(const char *text, char *ret_module, size_t module_size, char *ret_name);

#endif
