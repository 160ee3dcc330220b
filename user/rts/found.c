/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words for how a part of a runtime was found. */
#include "found.h"

const char *rts_found__name(enum rts_found found)
{
	switch (found) {
	case FOUND_SYMTAB:
		return "symtab";
	case FOUND_DYNSYM:
		return "dynsym";
	case FOUND_DEBUGFILE:
		return "debugfile";
	case FOUND_CALLSITES:
		return "callsites";
	case FOUND_THREADS:
		return "threads";
	case FOUND_TICKER:
		return "ghc_ticker";
	case FOUND_MEMORY:
		return "memory";
	case FOUND_STRINGS:
		return "strings";
	case FOUND_CODE:
		return "code";
	case FOUND_NONE:
		break;
	}
	return "none";
}
