/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf_kit: starts the helpers that read DWARF, for a group of tests. Include after cmocka.h. */
#ifndef SAFESCOPED_TEST_DWARF_KIT_H
#define SAFESCOPED_TEST_DWARF_KIT_H

#include "names/dwarf_priv.h"

static struct dwarf_helpers *helpers;

static int begin(void **state)
{
	(void)state;
	return dwarf_helpers__new(&helpers);
}

static int end(void **state)
{
	(void)state;
	dwarf_helpers__free(helpers);
	return 0;
}

#endif
