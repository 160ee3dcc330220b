/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the DWARF of a file has on an address: function, file and line. Programs that GHC compiled
 * with -g have that for every block of code, return points among them
 * (GHC/CmmToAsm/Dwarf.hs: a subprogram for each procedure, lexical blocks for its blocks).
 *
 * libdw reads it, in a process without rights for each file (confine): a damaged or malicious file
 * may crash or stall that, and no more. Its memory is bounded by what the file's headers show that
 * reading it takes, and so is that of all helpers together. A helper that is not asked ends after
 * some seconds, or minutes where its start was costly (confine.h); its answers stay (dwarf_kept).
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DWARF_PRIV_H
#define SAFESCOPED_NAMES_DWARF_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf.h"

/* For one answer: who waits is the loop. */
#define DWARF_ANSWER_MS 1500
/* For one file so long at once, and then a tenth of the time; for all together so long, and a
 * fourth: what one takes leaves time for others. */
#define DWARF_FILE_MS	6000
#define DWARF_FILE_PART 10
#define DWARF_ALL_MS	5000
#define DWARF_ALL_PART	4

struct dwarf;

struct dwarf_place {
	uint64_t start, end;	   /* of the block of code, as in the file */
	uint64_t proc;		   /* the lowest address of the function */
	uint64_t cu_start, cu_end; /* of the compilation unit; 0, 0: not known */
	uint32_t line;		   /* 0: not known */
	uint32_t proc_line;	   /* where the function's source begins; 0: not known */
	bool haskell;		   /* GHC made it */
	bool inner;		   /* GHC's: another function is what the name means */
	uint32_t nth;		   /* of the functions of that name at proc_line, if it is inner or
				      its name is made up; 0: it is neither */
	char name[256];		   /* DW_AT_name: of GHC's the source binding, or a made-up label */
	char linkage[256];	   /* the symbol, even if no symbol table has it; "" */
	char file[256];		   /* of `line` */
	char proc_file[256];	   /* of `proc_line` */
};

/* The helpers that there are, each for one file, and the time that all of them have. */
struct dwarf_helpers;
int dwarf_helpers__new(struct dwarf_helpers **ret_helpers);
/* Ends them; the files may be asked others later. */
void dwarf_helpers__free(struct dwarf_helpers *helpers);

/* True if the file has DWARF that names functions. */
bool dwarf__is_in(const struct elf_file *elf);
/* The file must outlive the result. Starts nothing yet. For the thread that uses confine. */
int dwarf__new(const struct elf_file *elf, struct dwarf **ret_dwarf);
void dwarf__free(struct dwarf *dwarf);
/*
 * -ENOENT: it has nothing on this address. -EBUSY: it is not asked now, for want of time or since
 * its helper ended: later there may be an answer. Any other: nor is there likely to be one later.
 */
int dwarf__find(struct dwarf *dwarf, struct dwarf_helpers *helpers, uint64_t vaddr,
		struct dwarf_place *ret_place);

/* ── how long it is waited for (tests) ───────────────────────────────────────────────────── */

/* Time that is used and comes back as time passes. */
struct dwarf_budget {
	uint64_t most_ms, part; /* at once, and of the time that passes: one part in so many */
	uint64_t left_ns, since_ns;
	bool begun;
};

/* True if there is enough for one answer. */
bool dwarf_budget__is_left(struct dwarf_budget *budget, uint64_t now);
void dwarf_budget__use(struct dwarf_budget *budget, uint64_t took_ns);

/*
 * What the helper does, without the helper (tests, fuzzing): dwarf_read.c. `data` must be writable:
 * libelf changes the heads of compressed sections.
 */
struct dwarf_reader;
int dwarf_reader__new(void *data, size_t size, struct dwarf_reader **ret_reader);
void dwarf_reader__free(struct dwarf_reader *reader);
int dwarf_reader__find(struct dwarf_reader *reader, uint64_t vaddr, struct dwarf_place *ret_place);
/*
 * After -ENOENT on vaddr: where around it -ENOENT is the answer too. False: perhaps nowhere else.
 */
bool dwarf_reader__nothing(const struct dwarf_reader *reader, uint64_t vaddr, uint64_t *ret_start,
			   uint64_t *ret_end);

#endif
