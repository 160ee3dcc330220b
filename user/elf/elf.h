/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf: a bounded reader of ELF files that somebody else wrote. symbols.h finds the symbol of an
 * address, elf_eh.h reads the entries of .eh_frame.
 *
 * The file is mapped, never copied; every offset and size is checked against the mapping before it
 * is used; damaged parts are left out. A mapped file that shrinks or becomes unreadable would raise
 * SIGBUS; elf_map_priv.h explains how such pages become zeros instead. The file may also be
 * overwritten at any time, so reading it twice may give different values: a caller checks the very
 * value that it uses, and copies a name before the next allocation depends on its length.
 *
 * libelf is available (libdw reads DWARF with it, in a helper process, see names/dwarf_priv.h), but
 * not used here. Over a mapping, libelf 0.188 leaves all headers and tables in place (elf_memory():
 * elf64_getehdr(), elf64_getphdr(), elf64_getshdr() and elf_getdata() return pointers into it) and
 * reads them again after checking them: if a section header's size grows after elf_getdata(),
 * elf_strptr() reads outside the file, and a test that does this ends with SIGSEGV. Only data that
 * is copied before it is checked is safe from a file being rewritten. A call per symbol is also
 * slow: for all 413 000 of pandoc gelf_getsym() and elf_strptr() take 33 ms, elf__symbols() 12 ms.
 *
 * One thread at a time may use an elf_file; different ones are independent.
 */
#ifndef SAFESCOPED_ELF_H
#define SAFESCOPED_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ELF_MAX_FILE	(1ULL << 30)
#define ELF_MAX_SYMBOLS (8U << 20)
#define ELF_MAX_FDES	(4U << 20)

struct elf_file;

/*
 * Takes over fd, also on failure. `name` is for messages. -ENOEXEC: not ELF; -EMEDIUMTYPE: ELF, but
 * not 64-bit little-endian, or of another processor than arch.h's; -EFBIG, also for a large file
 * that is nearly all holes, which costs its owner nothing; -EINVAL: damaged beyond use; -ENFILE:
 * too many files are mapped already. The headers are parsed aside (below), on the owner's account:
 * this may give -EBUSY, -ETIMEDOUT or -EIO, which show nothing about the file.
 */
int elf__open_fd(int fd, const char *name, struct elf_file **ret_elf);

/* Where a file comes from. */
enum elf_source {
	ELF_OF_ANYBODY = 0, /* not known, or a file system where owners can be forged */
	ELF_OF_HOST,	    /* a file system of the host's: the owner can be trusted */
	ELF_COPY,	    /* a copy made for the user it is charged to, whoever owns it */
};
/*
 * The same for a process that maps it, charged to `account` unless the file is root's: one user may
 * have files of many owners, those of his user namespaces. A file that only root can have written
 * is parsed in this process.
 */
int elf__open_fd_for(int fd, const char *name, enum elf_source source, uid_t account,
		     struct elf_file **ret_elf);
/* The same over bytes that the caller keeps (tests, fuzzing). */
int elf__open_bytes(const void *data, size_t size, const char *name, struct elf_file **ret_elf);
void elf__free(struct elf_file *elf);

/* The machine and class, for the message after elf__open_* returned -EMEDIUMTYPE. */
int elf__peek(int fd, uint16_t *ret_machine, uint8_t *ret_class);

const char *elf__name(const struct elf_file *elf);
bool elf__is_pie_or_dso(const struct elf_file *elf); /* ET_DYN */
uint64_t elf__entry(const struct elf_file *elf);     /* entry point of a program; 0: none */
/* Hex, at most 40 digits and NUL; false if there is none. */
bool elf__build_id(const struct elf_file *elf, char out[41]);

/* ── addresses (as in the file, before relocation) ───────────────────────────────────────── */

struct elf_segment {
	uint64_t vaddr, offset, filesz, memsz;
	bool exec, write;
};
size_t elf__n_segments(const struct elf_file *elf); /* PT_LOAD only, at most 64 */
const struct elf_segment *elf__segment(const struct elf_file *elf, size_t i);
bool elf__vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_offset);
bool elf__offset_to_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *ret_vaddr);
/* Whether len bytes of memory from start on are in one executable segment. */
bool elf__in_code(const struct elf_file *elf, uint64_t start, uint64_t len);
/* The bytes at vaddr if all `len` of them are in a segment's file part; NULL otherwise. */
const uint8_t *elf__at(const struct elf_file *elf, uint64_t vaddr, size_t len);
/*
 * A large part of the file has been read and is not needed soon: drops its pages from this
 * process's memory. Pointers into it stay valid.
 */
void elf__done_with(const struct elf_file *elf, uint64_t vaddr, size_t len);
/* The same for the whole file. */
void elf__done(const struct elf_file *elf);
/* PT_TLS; false if there is none. */
bool elf__tls(const struct elf_file *elf, uint64_t *ret_memsz, uint64_t *ret_align);

/* A word that the loader fills in for thread-local variables. */
struct elf_tls_slot {
	uint64_t vaddr;
	bool module; /* the module id of the file's block; else the variable's offset from the
			thread pointer */
};
/* Stores at most `max` of them; returns how many. */
size_t elf__tls_slots(const struct elf_file *elf, struct elf_tls_slot *slots, size_t max);

/*
 * All bytes of the file, made privately writable without changing the file: for a library that
 * keeps notes in them. -ENOTSUP: they are the caller's own.
 */
int elf__writable(const struct elf_file *elf, void **ret_data, size_t *ret_size);

/* The descriptor that elf__writable() needs, which a helper process must keep open; -1: none. */
int elf__fd(const struct elf_file *elf);

/* ── reading it aside ────────────────────────────────────────────────────────────────────── */

/* The user whose account the file is charged to. CONFINE_NOBODY for bytes that the caller keeps. */
uid_t elf__user(const struct elf_file *elf);
/*
 * Runs fn(ctx, out), which parses the file, in a child without rights that has the file mapped
 * (confine.h, confine__aside(), whose errors it returns): one child per file, which sees no other
 * file. *ret_out: `size` bytes that this child may have filled with anything; the caller checks all
 * of it, copies what it keeps, and frees it (confine__free_out()).
 */
int elf__aside(const struct elf_file *elf, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       void **ret_out);

/*
 * The same in two steps: elf__start() starts the child, elf__await() waits for its result.
 * elf__await() returns -EBUSY if the child still runs and may not be waited for: the job goes on.
 * Otherwise it is over, and the caller frees it.
 */
struct confine_job;
int elf__start(const struct elf_file *elf, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       struct confine_job **ret_job);
int elf__await(const struct elf_file *elf, struct confine_job *job, void **ret_out);

/* ── sections ────────────────────────────────────────────────────────────────────────────── */

struct elf_section {
	const uint8_t *data; /* NULL: not in the file (NOBITS), or compressed */
	uint64_t size, vaddr, offset;
};
bool elf__has_sections(const struct elf_file *elf);
/* The first section with that name. -ENOENT. */
int elf__section(const struct elf_file *elf, const char *name, struct elf_section *ret_section);
/*
 * The first `max` sections whose name begins with `begins` and which are in the file and loaded,
 * but neither writable nor code. Returns how many there are, which may be more.
 */
size_t elf__constants(const struct elf_file *elf, const char *begins, struct elf_section *sections,
		      size_t max);

/* The size of the file's DWARF, from its headers. */
struct elf_debug_size {
	uint64_t inflated; /* sum of all compressed sections, inflated */
	uint64_t info;	   /* of .debug_info, inflated */
};
void elf__debug_size(const struct elf_file *elf, struct elf_debug_size *ret_size);

struct elf_code {
	uint64_t start, end;
};
/*
 * The ranges of code: the executable sections, or without a section table the executable segments;
 * sorted, without overlap, at most `max`. Returns how many.
 */
size_t elf__code_ranges(const struct elf_file *elf, struct elf_code *ranges, size_t max);

/* ── symbols ─────────────────────────────────────────────────────────────────────────────── */

enum elf_symtab { ELF_SYMTAB, ELF_DYNSYM };

struct elf_sym {
	const char *name; /* in the mapping, NUL-terminated; may be as long as its string table */
	uint64_t value, size;
	uint8_t type, bind;
	uint16_t shndx;
};
/* Calls fn for each defined or undefined symbol until it returns non-zero, and returns that; else
 * 0. */
int elf__symbols(const struct elf_file *elf, enum elf_symtab which,
		 int (*fn)(void *ctx, const struct elf_sym *sym), void *ctx);
size_t elf__n_symbols(const struct elf_file *elf, enum elf_symtab which);
/* True if the file ends before its section table does, which is at the end of most files. */
bool elf__is_cut(const struct elf_file *elf);
/* The symbol at an index of the table. -ENOENT: no such index, or it has no readable name. */
int elf__symbol(const struct elf_file *elf, enum elf_symtab which, size_t index,
		struct elf_sym *ret_sym);
/*
 * The defined symbol with that name, ignoring a version suffix @…; prefers .symtab, and within a
 * table a global symbol. ret_which (may be NULL) is the table. -ENOENT.
 */
int elf__find_symbol(const struct elf_file *elf, const char *name, struct elf_sym *ret_sym,
		     enum elf_symtab *ret_which);

/*
 * Whether the file exports a symbol with that name (without a version). The table of exports is
 * built once, aside; false while there is no time for that, or if it cannot be read.
 */
bool elf__exports(const struct elf_file *elf, const char *name);

/*
 * The name of the symbol that a PLT entry at vaddr, or a GOT slot at vaddr, is bound to through a
 * relocation. NULL if there is none. Handles .plt, .plt.sec and .plt.got by decoding the entry's
 * indirect jump.
 */
const char *elf__plt_symbol(const struct elf_file *elf, uint64_t vaddr);
const char *elf__got_symbol(const struct elf_file *elf, uint64_t vaddr);

/* ── what the dynamic linker brings ──────────────────────────────────────────────────────── */

/* Whether its dynamic string table, which has the names of libraries and symbols, contains that
 * text. */
bool elf__mentions(const struct elf_file *elf, const char *text);

struct elf_needs {
	char library[256]; /* a file name, no path */
	char path[4096];   /* directories separated by colons, $ORIGIN unexpanded; "": none */
};
/*
 * The first needed library whose name begins with `begins`, and the run path. -ENOENT: none. Read
 * aside; also returns elf__aside()'s errors.
 */
int elf__needs(const struct elf_file *elf, const char *begins, struct elf_needs *ret_needs);

/* ── unwind rows ─────────────────────────────────────────────────────────────────────────── */

struct elf_fde {
	uint64_t start, end; /* code covered, as in the file */
};
/*
 * All FDEs of .eh_frame sorted by start; damaged ones are left out. Owned by the file. Read aside,
 * once. After -EBUSY the next call reads them again; after one of retry__is_worth_it()'s errors
 * only once the pause is over.
 */
int elf__fdes(struct elf_file *elf, const struct elf_fde **ret_fdes, size_t *ret_n);
/* Checks what the child returned: FDEs ascend by start, none ends before it starts. */
bool elf_fdes__check(const struct elf_fde *fdes, size_t n);
/* The index of the first of these FDEs, sorted by start, that starts at vaddr; n if none does. */
size_t elf_fdes__starting_at(const struct elf_fde *fdes, size_t n, uint64_t vaddr);
/* The FDE that covers vaddr; false if there is none. */
bool elf__find_fde(struct elf_file *elf, uint64_t vaddr, struct elf_fde *ret_fde);
/* Whether an FDE covers vaddr: C code and hand-written assembly have them, GHC's code has none. */
bool elf__has_fde(struct elf_file *elf, uint64_t vaddr);

#endif
