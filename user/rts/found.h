/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a part of a runtime was found. */
#ifndef SAFESCOPED_RTS_FOUND_H
#define SAFESCOPED_RTS_FOUND_H

enum rts_found {
	FOUND_NONE = 0,
	FOUND_SYMTAB,
	FOUND_DYNSYM,
	FOUND_DEBUGFILE,
	FOUND_CALLSITES,
	FOUND_THREADS, /* by a thread's my_task */
	FOUND_TICKER,  /* the timer's thread, by its name: nothing to probe */
	FOUND_MEMORY,  /* by scanning the runtime's variables */
	FOUND_STRINGS, /* by the strings that its code uses */
	FOUND_CODE,    /* by what code found earlier does with it */
};

/* The word for it in reports: "symtab", "ghc_ticker", …; "none". */
const char *rts_found__name(enum rts_found found);

#endif
