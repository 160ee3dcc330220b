/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Included before everything else when unit tests are analysed: what an assertion of cmocka's
 * excludes does not happen after it. Their functions end a test by longjmp() and are not declared
 * as functions that do not return.
 */
#ifndef SAFESCOPED_LINT_CMOCKA_ASSERTS_H
#define SAFESCOPED_LINT_CMOCKA_ASSERTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#undef assert_true
#undef assert_false
#undef assert_null
#undef assert_non_null
#undef assert_int_equal
#undef skip
#define assert_true(c)	       ((c) ? (void)0 : abort())
#define assert_false(c)	       ((c) ? abort() : (void)0)
#define assert_null(p)	       ((p) ? abort() : (void)0)
#define assert_non_null(p)     ((p) ? (void)0 : abort())
#define assert_int_equal(a, b) ((uintmax_t)(a) == (uintmax_t)(b) ? (void)0 : abort())
#define skip()		       abort()

#endif
