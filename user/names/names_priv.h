/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internals of naming addresses. Shared by the files of this room only. */
#ifndef SAFESCOPED_NAMES_PRIV_H
#define SAFESCOPED_NAMES_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf/symbols.h"
#include "names.h"
#include "pause_priv.h"
#include "process/image.h"
#include "rts/rts.h"
#include "zname_priv.h"

struct cached;
struct decoder;
struct demangler;
struct dwarf_helpers;
struct ipe;
struct strtab;

/* ── helpers.c ───────────────────────────────────────────────────────────────────────────── */

struct names_helpers {
	struct demangler *demangler;
	struct decoder *decoder;
	struct dwarf_helpers *dwarf;
};

/* demangle() for a symbol of the process; marks the names as incomplete if there was no time. */
const char *names__demangled(struct names *names, const char *symbol, char *buf, size_t size);

struct names {
	struct names_of of;
	struct names_helpers *own_helpers; /* NULL: the caller's are used */
	uid_t user;			   /* who runs the process; CONFINE_NOBODY: not known */
	struct strtab *strings;
	struct strtab *old_strings; /* the previous generation of strings, kept until the next one
				       is full; NULL */
	struct cached *cache;
	uint64_t kernel_no; /* number of the kernel's table that cached kernel names come from */
	/* of names_source.c: read when the first Haskell frame is named, and again when files were
	 * opened */
	struct ipe *ipe;
	size_t ipe_images;	      /* how many files were open at that time */
	struct names_pause ipe_pause; /* while reading it keeps taking too long */
	/* The class to assume for all code; CODE_UNKNOWN: determine it. */
	enum code_class code_as;
	/* The code of the binding that gave the last name begins after the address. */
	bool ahead;
	/* Something was not read for lack of time: the name may be better later. */
	bool incomplete;
};

static inline void names__want_mapped(const struct names *names, uint64_t addr)
{
	if (names->of.want_mapped)
		names->of.want_mapped(names->of.ctx, addr);
}

/* ── names_text.c ────────────────────────────────────────────────────────────────────────── */

/* Interns text for as long as names stay valid; "" if out of memory. */
const char *names__intern(struct names *names, const char *text, size_t len);

static inline const char *intern(struct names *names, const char *text)
{
	return names__intern(names, text, strlen(text));
}

/* Interns literals too, since names are compared by address. */
void names__intern_all(struct names *names, struct code_name *n);
/*
 * The C function called by a capi import's wrapper, in buf; any other name is returned unchanged.
 */
const char *names__capi(const char *name, char *buf, size_t size);
/* Names by a C function's symbol, demangled. */
void names__c_symbol(struct names *names, const struct symbols_hit *hit, struct code_name *n);

/* ── names_source.c: better names than symbols are ───────────────────────────────────────── */

struct names_place {
	uint64_t addr, vaddr;	       /* in the process; in the file */
	const struct symbols *symbols; /* NULL: the file has none */
	const struct symbols_hit *hit; /* NULL: no symbol found */
	const struct zname *label;     /* hit's name decoded; NULL: not one of GHC's labels */
};

/* Whether the process has provenance; whether the file has readable DWARF. */
bool names__has_ipe(struct names *names);
bool names__has_dwarf(struct names *names, struct image *image);
/* Names by provenance, else by DWARF. n->code and n->file are set already. */
bool names__best(struct names *names, const struct image_map *map, const struct names_place *place,
		 struct code_name *n);
/*
 * Names by the description of the closure that the code belongs to. `binding`: only if that is the
 * name of a binding, not one like "sat_s3hx", which is worse than the nearest symbol.
 */
bool names__described(struct names *names, struct image *image, const struct names_place *place,
		      bool binding, struct code_name *n);

/* The start of the block of Haskell code that contains vaddr; vaddr itself if not known. */
uint64_t names__block(struct names *names, struct image *image, uint64_t vaddr);

/* ── later.c: what could not be read of a file this time ─────────────────────────────────── */

/*
 * names__waits() is called before reading something that is kept in a slot: true if it failed a
 * while ago and must not be tried yet. names__put_off() is called after it failed: true if it may
 * be tried again, rather than recorded as missing. Both mark the names as incomplete while a later
 * attempt may succeed.
 */
bool names__waits(struct names *names, const struct slots *slots, const struct slot_key *key);
bool names__put_off(struct names *names, struct slots *slots, const struct slot_key *key, int err);
/* The same for something with a pause of its own. */
bool names__pauses(struct names *names, const struct names_pause *pause, uint64_t now);
void names__begin_pause(struct names *names, struct names_pause *pause, uint64_t now, int err);

/* ── by_module.c ─────────────────────────────────────────────────────────────────────────── */

/* Names by the code's module, if strip left nothing better: "Data.Map.Internal+0x1a30". */
bool names__by_module(struct names *names, struct image *image, uint64_t vaddr,
		      struct code_name *n);
bool names__has_modules(struct names *names, struct image *image);
/* The form that is shown: without a hash, and "" for the program's own package. */
void names__package_text(const char *package, char *text, size_t size);
/* Finds the package of n->module, in a file without symbols; and that module if it is "". */
void names__package_by_modules(struct names *names, struct image *image, uint64_t vaddr,
			       struct code_name *n);

/* ── by_archive.c ────────────────────────────────────────────────────────────────────────── */

struct archives_known;
struct module_runs;

/* Starts the search for functions of archives; the descriptor of the running search, -1: none. */
void names__start_archives(struct names *names);
int names__archives_fd(const struct names *names);
/* The archive functions found in a file without symbols; NULL: none, or not known yet. */
const struct archives_known *names__archives(struct names *names, struct image *image);
/* The code between one module's archive functions; NULL as above. */
const struct module_runs *names__module_runs(struct names *names, struct image *image);

/* ── by_download.c ───────────────────────────────────────────────────────────────────────── */

/*
 * Requests a file with the symbols of one that has none. True: it may arrive soon. If it is there
 * but could not be read in time, it is read after a pause, and the names are incomplete until then.
 */
bool names__awaits_download(struct names *names, struct image *image);
/* The file with the symbols that the image's own file lacks. NULL: none so far. */
const struct elf_file *names__debug_file(const struct image *image);

/* ── code.c ──────────────────────────────────────────────────────────────────────────────── */

/* Names the code at addr; a return address is named by the call before it. */
void names__code(struct names *names, uint64_t addr, bool is_return, struct code_name *ret_name);
/* The same where the code must be C. */
void names__c_code(struct names *names, uint64_t addr, bool is_return, struct code_name *ret_name);
/*
 * Names the Haskell code that makes the call returning to addr. If the binding found begins after
 * addr, and may be another one, the name is "<before bar>".
 */
void names__caller(struct names *names, uint64_t addr, struct code_name *ret_name);
/* The base name of the file that defines a symbol imported by `not_this`; or "". */
const char *names__library_of(const struct names *names, const char *name,
			      const struct image *not_this);

/* ── site.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Names the C function called right before a return address. -ENOENT: there is no call, or it goes
 * through a register.
 */
int names__callee(struct names *names, uint64_t ret_addr, struct code_name *ret_name);

#endif
