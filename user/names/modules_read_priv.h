/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the code of each module in a file. Runs in a child that only modules.c starts.
 *
 * What the compiler emits and strip does not touch, in GHC 8.10 to 9.14:
 *
 * - Each constructor has an info table in the module's code, after all of the module's bindings
 *   (GHC.StgToCmm.codeGen), with the description "package:Module.Con". The next module begins after
 *   the last one. The constructors' functions are in a row: before 9.2 they are the first bindings,
 *   so that the module's start is known too; later they are the last.
 * - Each module has a closure `$trModule` of type GHC.Types.Module among its static closures, with
 *   the names of package and module (GHC.Tc.Instance.Typeable).
 * - Modules that call functions with HasCallStack have closures of type SrcLoc, with both names.
 * - Static closures begin with the address of their code, and a module's data and code are emitted
 *   in the same order: what lies between two closures in data has its code between theirs.
 *
 * - The program's own modules come before all libraries, Main is the last of them, and C's main()
 *   lies between the two, unless it was compiled with optimisation.
 * - Code that fails when no pattern matches refers to the path of its source.
 *
 * If none of these marks the boundary between two modules, the cut is made where the smallest share
 * of the references crosses it: code and data of one module refer to each other more than to the
 * neighbour's. Code between that cut and others nearly as good is uncertain.
 *
 * Programs linked with split sections and section garbage collection lose `$trModule` and
 * constructors that nothing refers to: a module may be missing there, and only code between a
 * module's own marks is certain. The names of some modules are not in the file at all.
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
	uint32_t max_pieces, max_strings; /* capacity */
	uint32_t n, strings_len;
};

/* Fills *out; pieces ascend. Finding nothing is no error. -ENOMEM, -E2BIG. */
int modules_read(const struct elf_file *elf, bool profiled, struct modules_out *out);

/* ── modules_image.c: the file's code, and its data as the loader would have it ──────────── */

/*
 * Marks a word relocated by a symbol that the file does not define; the rest is the symbol's index.
 */
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

/* -ENOENT: the file has no code or no data; -ENOMEM. */
int mod_image__init(const struct elf_file *elf, bool profiled, struct mod_image *ret_img);
void mod_image__fini(struct mod_image *img);
/* The closure type of the info table whose code is at vaddr; 0: none. */
uint32_t mod_image__type(const struct mod_image *img, uint64_t vaddr);
bool mod_image__is_static(uint32_t type); /* a top-level function or thunk */
/* The index of the word at vaddr; n_words if there is none. */
size_t mod_image__word(const struct mod_image *img, uint64_t vaddr);
/* How many bytes before its code an info table of this type begins. */
uint64_t mod_image__table_size(const struct mod_image *img, uint32_t type);

/* Size of a constructor's code: inc %rbx; jmp *(%rbp), and padding up to the next table. */
#define MOD_CON_CODE 8

/* The two parts of a module's name, as ids of a strtab. */
struct mod_name {
	uint32_t package, module;
};
bool mod_name__is_package(const char *text, size_t len); /* "text-1.2.5.0" */
bool mod_name__is_module(const char *text, size_t len);	 /* "Data.Text.Internal" */
/* Splits "text-1.2.5.0:Data.Text.Internal.Text"; false if it has another form. */
bool mod_name__of_description(const char *text, size_t len, struct strtab *names,
			      struct mod_name *ret_name);

/* ── modules_marks.c: where names are ────────────────────────────────────────────────────── */

/* The info tables of a module's constructors, which are the end of its code. */
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

/* A SrcLoc closure, in a module that calls something with HasCallStack. */
struct mod_loc {
	struct mod_name name;
	uint64_t data;
};

/* The end of the program's own code: Main is its last module, followed by C's main(), which starts
 * it. */
struct mod_main {
	uint64_t at;   /* main() */
	uint64_t data; /* `:Main.main`, the closure that main() runs; 0: not found */
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
	uint64_t loc_info;	    /* info table of GHC.Stack.Types.SrcLoc; 0: not found */
	struct mod_static *statics; /* ascending by data, and nearly ascending by code */
	size_t n_statics, cap_statics;
};

int mod_marks__find(const struct mod_image *img, struct strtab *names, struct mod_marks *marks);
void mod_marks__fini(struct mod_marks *marks);
/*
 * The code at the position of the closure at `data`: the code of the last static closure before it,
 * or 0.
 */
uint64_t mod_marks__code_before(const struct mod_marks *marks, uint64_t data);
/* The code of the first static closure after it, or UINT64_MAX. */
uint64_t mod_marks__code_after(const struct mod_marks *marks, uint64_t data);

/* ── modules_workers.c: the functions of constructors ────────────────────────────────────── */

struct mod_workers {
	uint64_t code, data; /* start of the first one's code and closure */
	uint32_t n;	     /* how many constructor closures follow in a row */
};

/* 1: right before the constructors' info tables, after other code; 0: not there; -1: too few to
 * decide. */
int mod_workers__behind(const struct mod_image *img, const struct mod_marks *marks,
			const struct mod_cons *cons);
/* Searches from the code at `from` on; false: not found. */
bool mod_workers__find(const struct mod_image *img, const struct mod_marks *marks,
		       const struct mod_cons *cons, uint64_t from, struct mod_workers *ret_workers);

/* ── modules_source.c: places of pattern matches in source files ─────────────────────────── */

/* Code that refers to positions in a module's source. */
struct mod_source {
	uint32_t module;      /* id of a strtab */
	uint64_t first, last; /* first and last such reference */
};

/* One entry for each module that has any; the caller frees *ret_sources. -ENOMEM. */
int mod_sources__find(const struct mod_image *img, struct strtab *names,
		      struct mod_source **ret_sources, size_t *ret_n);

/* ── modules_main.c: where the program's own code ends ───────────────────────────────────── */

/*
 * Follows the program's entry point; ret->data is 0 if it does not lead to GHC's main(). -ENOMEM.
 */
int mod_main__find(const struct mod_image *img, const struct mod_marks *marks,
		   struct mod_main *ret);

/* ── modules_cut.c: where a module ends that has no mark there ───────────────────────────── */

/* Code of two adjacent modules, and the range in which the second may begin. */
struct mod_between {
	uint64_t start, end; /* of both modules' code: only references within it count */
	uint64_t low, high;  /* the second module begins after `low` and not after `high` */
};

struct mod_cut {
	uint64_t at;	    /* start of the second module */
	uint64_t low, high; /* or anywhere in this range, which as few references cross */
};

/* Finds the cut that the fewest references cross. -ENOENT: no info table in the range; -ENOMEM. */
int mod_cut__find(const struct mod_image *img, const struct mod_marks *marks,
		  const struct mod_between *where, struct mod_cut *ret_cut);

#endif
