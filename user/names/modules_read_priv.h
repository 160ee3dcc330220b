/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the code of each module in a file, in the child. Only modules.c starts it.
 *
 * What the compiler leaves and strip does not touch, in GHC 8.10 to 9.14:
 *
 * - For each constructor an info table in the module's own code, after all of its bindings'
 *   (GHC.StgToCmm.codeGen), with the description "package:Module.Con". After the last one the next
 *   module begins. The constructors' functions are, all in a row, the first of the bindings before
 *   9.2, so that the module's beginning is known too, and the last ones later.
 * - For each module a closure `$trModule` of type GHC.Types.Module among its static closures, with
 *   the package's and the module's name (GHC.Tc.Instance.Typeable).
 * - Closures of type SrcLoc, with both names, in modules that call what has HasCallStack.
 * - Static closures begin with the address of their code, and data and code of a module are put out
 *   in the same order: what lies between two closures in data has its code between theirs.
 *
 * - The program's own modules come before all libraries, Main as the last of them, and between the
 *   two lies C's main(), unless that was compiled with optimisation.
 * - Code that fails where no pattern matches refers to the path of its source.
 *
 * Where none of these marks the place between two modules, it is cut where the smallest share of
 * the references crosses: code and data of one module refer to each other more than to the
 * neighbour's. What lies between that place and others that are nearly as good is uncertain.
 *
 * Programs linked with sections split and collected lose `$trModule` and constructors where nobody
 * refers to them: a module may be missing there, and only code between a module's own marks is
 * certain. Of some modules no name is left in the file at all.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_MODULES_READ_PRIV_H
#define SAFESCOPED_NAMES_MODULES_READ_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules_priv.h"

struct elf_file;
struct strtab;

struct modules_out {
	struct modules_raw *pieces;
	char *strings;
	uint32_t max_pieces, max_strings; /* room */
	uint32_t n, strings_len;
};

/* Fills out; the pieces ascend. That there is nothing is no error. -ENOMEM, -E2BIG. */
int modules_read(const struct elf_file *elf, bool profiled, struct modules_out *out);

/* ── modules_image.c: the file's code, and its data as the loader would have it ──────────────── */

/* The word of a relocation by a symbol that the file does not define: this, and its index. */
#define MOD_SYMBOL (1ULL << 63)

struct mod_image {
	const struct elf_file *elf;
	const uint8_t *text;
	uint64_t text_start, text_end;
	uint64_t *words; /* of the data; word i is at data_start + 8 * i */
	uint64_t data_start;
	size_t n_words;
	bool profiled;
};

/* -ENOENT: it has no code or no data; -ENOMEM. */
int mod_image__init(const struct elf_file *elf, bool profiled, struct mod_image *ret_img);
void mod_image__fini(struct mod_image *img);
/* The closure type of the info table whose code is at vaddr; 0: there is none. */
uint32_t mod_image__type(const struct mod_image *img, uint64_t vaddr);
bool mod_image__is_static(uint32_t type); /* a function or thunk at top level */
/* The index of the word at vaddr; n_words: it is none. */
size_t mod_image__word(const struct mod_image *img, uint64_t vaddr);
/* How many bytes before its code an info table of that type begins. */
uint64_t mod_image__table_size(const struct mod_image *img, uint32_t type);

/* A constructor's code: inc %rbx; jmp *(%rbp), and what aligns the next table. */
#define MOD_CON_CODE 8

/* A name's two parts, ids of a strtab. */
struct mod_name {
	uint32_t package, module;
};
bool mod_name__is_package(const char *text, size_t len); /* "text-1.2.5.0" */
bool mod_name__is_module(const char *text, size_t len);	 /* "Data.Text.Internal" */
/* "text-1.2.5.0:Data.Text.Internal.Text"; false if it is no such thing. */
bool mod_name__of_description(const char *text, size_t len, struct strtab *names,
			      struct mod_name *ret_name);

/* ── modules_marks.c: what says a name ───────────────────────────────────────────────────────── */

/* The info tables of a module's constructors, which end its code. */
struct mod_cons {
	struct mod_name name;
	uint64_t start, end; /* of the tables */
	uint32_t n;
};

/* A `$trModule`. */
struct mod_tr {
	struct mod_name name;
	uint64_t data;
};

/* A closure with a place in the source, of a module that calls something with HasCallStack. */
struct mod_loc {
	struct mod_name name;
	uint64_t data;
};

/* The program's own code ends with Main, and then comes C's main(), which starts it. */
struct mod_main {
	uint64_t at;   /* main() */
	uint64_t data; /* `:Main.main`, the closure that it runs; 0: not found */
};

/* A static closure and its code. */
struct mod_static {
	uint64_t data, code;
};

struct mod_marks {
	struct mod_cons *cons; /* ascending */
	size_t n_cons, cap_cons;
	struct mod_tr *trs; /* ascending */
	size_t n_trs, cap_trs;
	struct mod_loc *locs; /* ascending */
	size_t n_locs, cap_locs;
	uint64_t loc_info;	    /* GHC.Stack.Types.SrcLoc's info table; 0 */
	struct mod_static *statics; /* ascending by data, and almost by code */
	size_t n_statics, cap_statics;
};

int mod_marks__find(const struct mod_image *img, struct strtab *names, struct mod_marks *marks);
void mod_marks__fini(struct mod_marks *marks);
/*
 * The code that stands where the closure at `data` stands: that of the last static closure before
 * it, 0 if there is none.
 */
uint64_t mod_marks__code_before(const struct mod_marks *marks, uint64_t data);
/* Of the first one after it; UINT64_MAX if there is none. */
uint64_t mod_marks__code_after(const struct mod_marks *marks, uint64_t data);

/* ── modules_workers.c: the functions of constructors ────────────────────────────────────────── */

struct mod_workers {
	uint64_t code, data; /* where the first one's begin */
	uint32_t n;	     /* how many closures of constructors are in a row there */
};

/* 1: they are right before the constructors' info tables, after other code; 0: not; -1: too few.
 */
int mod_workers__behind(const struct mod_image *img, const struct mod_marks *marks,
			const struct mod_cons *cons);
/* Looks for them from the code at `from` on; false: not found. */
bool mod_workers__find(const struct mod_image *img, const struct mod_marks *marks,
		       const struct mod_cons *cons, uint64_t from, struct mod_workers *ret_workers);

/* ── modules_source.c: places of pattern matches in source files ─────────────────────────────── */

/* The code that refers to places in a module's source. */
struct mod_source {
	uint32_t module;      /* id of a strtab */
	uint64_t first, last; /* where it does so */
};

/* One for each module that has any; the caller frees *ret_sources. -ENOMEM. */
int mod_sources__find(const struct mod_image *img, struct strtab *names,
		      struct mod_source **ret_sources, size_t *ret_n);

/* ── modules_main.c: where the program's own code ends ───────────────────────────────────────── */

/* Follows the program's entry; ret->data is 0 where it does not lead to GHC's main(). -ENOMEM. */
int mod_main__find(const struct mod_image *img, const struct mod_marks *marks,
		   struct mod_main *ret);

/* ── modules_cut.c: where a module ends that has no mark there ───────────────────────────────── */

/* Code that two modules share, and where between them the second one may begin. */
struct mod_between {
	uint64_t start, end; /* of both modules' code: references that lie in it count */
	uint64_t low, high;  /* the second one begins after the first and not after the second */
};

struct mod_cut {
	uint64_t at;	    /* the second module begins here */
	uint64_t low, high; /* or anywhere between these: as few references cross those */
};

/* Where the fewest references cross. -ENOENT: no info table lies there; -ENOMEM. */
int mod_cut__find(const struct mod_image *img, const struct mod_marks *marks,
		  const struct mod_between *where, struct mod_cut *ret_cut);

#endif
