/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How addresses are named. Shared by the files of this room only. */
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

/* demangle() of a symbol of the process; where there was no time the names are incomplete. */
const char *names__demangled(struct names *names, const char *symbol, char *buf, size_t size);

struct names {
	struct names_of of;
	struct names_helpers *own_helpers; /* NULL: they are the caller's */
	uid_t user;			   /* who runs the process; CONFINE_NOBODY: not known */
	struct strtab *strings;
	struct strtab *old_strings; /* until there is no room again; NULL */
	struct cached *cache;
	uint64_t kernel_no; /* the table of the kernel's functions that its names are from */
	/* of names_source.c: read when the first Haskell frame is named, again with new files */
	struct ipe *ipe;
	size_t ipe_images;	      /* how many files had been opened by then */
	struct names_pause ipe_pause; /* while reading it takes too long */
	/* What all code is that is asked for; CODE_UNKNOWN: that is to be found out. */
	enum code_class code_as;
	/* The code of the binding that the last name is of begins further on. */
	bool ahead;
	/* Something was not read, because there was no time: the name may be better later. */
	bool incomplete;
};

static inline void names__want_mapped(const struct names *names, uint64_t addr)
{
	if (names->of.want_mapped)
		names->of.want_mapped(names->of.ctx, addr);
}

/* ── names_text.c ────────────────────────────────────────────────────────────────────────── */

/* Interns text that holds as long as a name's; "" without memory. */
const char *names__intern(struct names *names, const char *text, size_t len);

static inline const char *intern(struct names *names, const char *text)
{
	return names__intern(names, text, strlen(text));
}

/* Literals too: names are compared by their addresses. */
void names__intern_all(struct names *names, struct code_name *n);
/* The C function that a capi import's wrapper calls, in buf; any other name unchanged. */
const char *names__capi(const char *name, char *buf, size_t size);
/* A C function's symbol, demangled. */
void names__c_symbol(struct names *names, const struct symbols_hit *hit, struct code_name *n);

/* ── names_source.c: better names than symbols are ───────────────────────────────────────── */

struct names_place {
	uint64_t addr, vaddr;	       /* in the process, as in the file */
	const struct symbols *symbols; /* NULL: the file has none */
	const struct symbols_hit *hit; /* NULL: no symbol */
	const struct zname *label;     /* hit's name taken apart; NULL: no label of GHC's */
};

/* Whether the process has provenance, and the file DWARF that can be read. */
bool names__has_ipe(struct names *names);
bool names__has_dwarf(struct names *names, struct image *image);
/* By provenance, else by DWARF. n->code and n->file are known. */
bool names__best(struct names *names, const struct image_map *map, const struct names_place *place,
		 struct code_name *n);
/*
 * By the description of the closure whose code it is. `binding`: only if that is a binding's name,
 * and not "sat_s3hx", which says less than the nearest symbol.
 */
bool names__described(struct names *names, struct image *image, uint64_t vaddr, bool binding,
		      struct code_name *n);

/* Where the block of Haskell code begins that vaddr lies in; vaddr itself if that is not known. */
uint64_t names__block(struct names *names, struct image *image, uint64_t vaddr);

/* ── later.c: what could not be read of a file this time ─────────────────────────────────── */

/*
 * Before something is read that is kept in a slot: whether it is not to be tried now, since it
 * failed a while ago. After it was: whether it may be tried again, rather than that there is none.
 * Either makes the names incomplete while there is something to expect.
 */
bool names__waits(struct names *names, const struct slots *slots, const struct slot_key *key);
bool names__put_off(struct names *names, struct slots *slots, const struct slot_key *key, int err);
/* The same of what has a pause of its own. */
bool names__pauses(struct names *names, const struct names_pause *pause, uint64_t now);
void names__begin_pause(struct names *names, struct names_pause *pause, uint64_t now, int err);

/* ── by_module.c ─────────────────────────────────────────────────────────────────────────── */

/* By the module that the code is of, where strip left no more: "Data.Map.Internal+0x1a30". */
bool names__by_module(struct names *names, struct image *image, uint64_t vaddr,
		      struct code_name *n);
bool names__has_modules(struct names *names, struct image *image);

/* ── by_archive.c ────────────────────────────────────────────────────────────────────────── */

struct archives_known;
struct module_runs;

/* Begins to look for functions of archives; the descriptor of what goes on, -1: nothing does. */
void names__start_archives(struct names *names);
int names__archives_fd(const struct names *names);
/* What a file without symbols has of them; NULL: nothing, or that is not known yet. */
const struct archives_known *names__archives(struct names *names, struct image *image);
/* What code lies among one module's functions of them; NULL as above. */
const struct module_runs *names__module_runs(struct names *names, struct image *image);

/* ── by_download.c ───────────────────────────────────────────────────────────────────────── */

/* Asks for a file with the symbols of one that has none. True: it may be there soon. What is there
 * already, but could not be read in time, is read after a pause: the names are incomplete then. */
bool names__awaits_download(struct names *names, struct image *image);
/* It is not there, but it may come sooner or later. */
bool names__may_be_downloaded(const struct names *names, const struct image *image);
/* The file with the symbols that the image's own does not have. NULL: there is none, so far. */
const struct elf_file *names__debug_file(const struct image *image);

/* ── code.c ──────────────────────────────────────────────────────────────────────────────── */

/* The name of the code at addr; a return address is named by the call before it. */
void names__code(struct names *names, uint64_t addr, bool is_return, struct code_name *ret_name);
/* The same for code that was met where C code is for sure. */
void names__c_code(struct names *names, uint64_t addr, bool is_return, struct code_name *ret_name);
/*
 * The Haskell code that makes the call which returns to addr. What has the name of a binding that
 * begins further on, and may be another one's, is "<before bar>".
 */
void names__caller(struct names *names, uint64_t addr, struct code_name *ret_name);
/* The base name of the file that defines a symbol which `not_this` imports; "". */
const char *names__library_of(const struct names *names, const char *name,
			      const struct image *not_this);

/* ── site.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * The C function that the call before a return address calls. -ENOENT: no call stands there, or it
 * goes through a register.
 */
int names__callee(struct names *names, uint64_t ret_addr, struct code_name *ret_name);

#endif
