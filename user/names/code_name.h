/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a name of code is made of, and a safe call's site. */
#ifndef SAFESCOPED_NAMES_CODE_NAME_H
#define SAFESCOPED_NAMES_CODE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* The name of the code that a signal handler returns to, whatever the file's symbols call it. */
#define NAMES_SIGNAL_RETURN "__restore_rt"

enum name_source {
	NAME_NONE = 0, /* [file]+0xoffset */
	NAME_IPE,
	NAME_DWARF,
	NAME_EXACT,	  /* a symbol that covers the address */
	NAME_NEAREST,	  /* the nearest symbol below it */
	NAME_DESCRIPTION, /* the closure's description, in profiled programs */
	NAME_MODULE,	  /* Data.Map.Internal+0x1a30: only the module is known */
	NAME_MODULE_NEAR, /* the same, and it may be the neighbouring module's */
	NAME_STRINGS,	  /* a function of the runtime, by the strings that it uses */
	NAME_ARCHIVE,	  /* a symbol of a static archive whose bytes are there */
};

enum code_class {
	CODE_UNKNOWN = 0,
	CODE_HASKELL, /* made by GHC's code generator, or the RTS's Cmm */
	CODE_RTS,     /* C code of the RTS, the collector left out */
	CODE_GC,      /* C code of the collector */
	CODE_C,	      /* any other C code: foreign functions, libc, gmp */
	CODE_KERNEL,
};

/* Where an address is: in an executable mapping of a file. */
struct code_at {
	uint64_t address;	     /* of the instruction: in a call, where a call returns to */
	uint64_t start, end, offset; /* the mapping, and where it begins in the file; end 0: it is
					in no file, or not known */
	const char *path;	     /* as mapped */
	const char *build_id;	     /* in hexadecimal; "" if none */
};

/* The decoded name of an address. Strings are interned, see names.h for how long. */
struct code_name {
	const char *name;    /* "fib", "$wgo", "usleep"; with its module, where only that is known;
				never NULL */
	const char *module;  /* "Data.Map.Internal"; "" if none */
	const char *package; /* "containers-0.6.4.1"; "" for the main package and for C */
	const char *file;    /* base name of the ELF file that holds the code; "" if none */
	const char *src;     /* source file:line; "" if not known */
	enum name_source source;
	enum code_class code;
	bool partial;  /* there was no time for all of it: it may be better when it is asked for
			  again */
	bool plumbing; /* a return frame or closure of the runtime's own that means nothing to a
			  reader */
	struct code_at at;
};

/* Whether it is a place in the process's code. */
static inline bool frame__is_code(uint64_t frame)
{
	unsigned kind = (unsigned)(frame >> WIRE_FRAME_KIND_SHIFT);

	return kind != WIRE_FRAME_ELIDED && kind != WIRE_FRAME_KERNEL;
}

/* Whether it is one of code from start up to end, or returns to right after that. */
static inline bool frame__is_within(uint64_t frame, uint64_t start, uint64_t end)
{
	uint64_t addr = frame & WIRE_FRAME_ADDR_MASK;

	return frame__is_code(frame) && addr >= start && addr <= end;
}

/* A safe call's site. */
struct target_site {
	const char *function; /* the foreign function; "[indirect]" if called through a register */
	const char *library;  /* base name of the file that holds it; "" if not known */
	struct code_name caller;
	const char *file; /* of the site */
	uint64_t offset;  /* of the site in that file: with `file` stable from run to run */
	uint64_t site;	  /* the suspendThread call's return address; 0 if it was not found */
};

#endif
