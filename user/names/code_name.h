/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name of a piece of code, and the site of a safe call. */
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
	NAME_MODULE_NEAR, /* the same, but it may be the neighbouring module instead */
	NAME_STRINGS,	  /* a function of the runtime, identified by the strings that it uses */
	NAME_ARCHIVE,	  /* a symbol of a static archive whose bytes match */
	NAME_DESCRIPTION_NEAR, /* the description of the closure that may contain the nameless one
				  at the address */
};

enum code_class {
	CODE_UNKNOWN = 0,
	CODE_HASKELL, /* made by GHC's code generator, or the RTS's Cmm */
	CODE_RTS,     /* C code of the RTS, except the collector */
	CODE_GC,      /* C code of the collector */
	CODE_C,	      /* any other C code: foreign functions, libc, gmp */
	CODE_KERNEL,
};

/* The place of an address: an executable mapping of a file. */
struct code_at {
	uint64_t address;	     /* of the instruction, or a call's return address */
	uint64_t start, end, offset; /* the mapping, and where it begins in the file; end 0: it is
					in no file, or not known */
	const char *path;	     /* as mapped */
	const char *build_id;	     /* in hexadecimal; "" if none */
};

/* The decoded name of an address. Strings are interned; names.h documents their lifetime. */
struct code_name {
	const char *name;    /* "fib", "$wgo", "usleep"; includes the module if only that is known;
				never NULL */
	const char *module;  /* "Data.Map.Internal"; "" if none */
	const char *package; /* "containers-0.6.4.1"; "" for the main package and for C */
	const char *file;    /* base name of the ELF file that holds the code; "" if none */
	const char *src;     /* source file:line; "" if not known */
	enum name_source source;
	enum code_class code;
	bool partial;  /* some source was not read for lack of time: asking again later may give a
			  better name */
	bool plumbing; /* a return frame or closure of the runtime that means nothing to the user */
	struct code_at at;
};

/* Whether the frame is an address of the process's code. */
static inline bool frame__is_code(uint64_t frame)
{
	unsigned kind = (unsigned)(frame >> WIRE_FRAME_KIND_SHIFT);

	return kind != WIRE_FRAME_ELIDED && kind != WIRE_FRAME_KERNEL;
}

/* Whether the frame lies in code from start to end, or returns to right after it. */
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
	uint64_t offset;  /* of the site in that file; with `file` it is stable from run to run */
	uint64_t site;	  /* the suspendThread call's return address; 0 if it was not found */
};

#endif
