/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names: names the frames of a process, and caches the names. */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "confine/confine.h"
#include "describe_priv.h"
#include "ipe_priv.h"
#include "kallsyms.h"
#include "names_priv.h"
#include "process/proc.h"
#include "wire.h"

/*
 * Cached names, some 5 MB: a large program sampled for months hits nearly every address. When the
 * cache is full, unused names are dropped, and looked up again if needed.
 */
#define MAX_CACHED (1U << 15)
/* More strings than those names have: some belong to dropped names. */
#define MAX_TEXTS (MAX_CACHED * 8)

struct cached {
	uint64_t frame;
	struct code_name name;
	bool used; /* since the cache was last full */
	UT_hash_handle hh;
};

int names__new(const struct names_of *of, struct names **ret_names)
{
	struct names *names = calloc(1, sizeof(*names));
	int err;

	if (!names)
		return -ENOMEM;
	names->of = *of;
	if (!of->pid || proc__account(of->pid, &names->user))
		names->user = CONFINE_NOBODY;
	err = strtab__new(&names->strings);
	if (!err && !of->helpers) {
		err = names_helpers__new(&names->own_helpers);
		names->of.helpers = names->own_helpers;
	}
	if (err < 0) {
		names__free(names);
		return err;
	}
	*ret_names = names;
	return 0;
}

static void clear_cache(struct names *names)
{
	HASH_FREE(names->cache);
}

/*
 * Also frees the strings of dropped names: in a stripped program there is no end of new places,
 * each with a string of its own. The previous strings stay until the next time, for callers that
 * have just got a name.
 */
static void renew_texts(struct names *names)
{
	struct strtab *fresh;
	struct cached *c, *next;

	/* if out of memory, all strings stay */
	if (strtab__new(&fresh))
		return;
	strtab__free(names->old_strings);
	names->old_strings = names->strings;
	names->strings = fresh;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	HASH_ITER (hh, names->cache, c, next)
		names__intern_all(names, &c->name);
}

/* Drops names unused since the cache was last full; drops all if those are less than a fourth. */
static void make_room(struct names *names)
{
	struct cached *c, *next;
	size_t in_use = 0;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	HASH_ITER (hh, names->cache, c, next) {
		in_use += c->used;
		if (!c->used) {
			HASH_DEL(names->cache, c);
			free(c);
			continue;
		}
		c->used = false;
	}
	if (in_use > MAX_CACHED / 4 * 3)
		clear_cache(names);
	renew_texts(names);
}

static bool is_full(const struct names *names)
{
	return HASH_COUNT(names->cache) >= MAX_CACHED || strtab__count(names->strings) >= MAX_TEXTS;
}

void names__free(struct names *names)
{
	if (!names)
		return;
	clear_cache(names);
	ipe__free(names->ipe);
	strtab__free(names->old_strings);
	strtab__free(names->strings);
	names_helpers__free(names->own_helpers);
	free(names);
}

/*
 * The code that a signal handler returns to: libcs have no symbol for it, or none that survives
 * strip, and debuggers recognise it by exactly these bytes (glibc
 * sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c, musl src/signal/x86_64/restore.s): mov $15,%rax;
 * syscall
 */
static bool is_signal_return(const struct names *names, uint64_t addr)
{
	static const uint8_t bytes[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	const struct image_map *map = images__ever_at(names->of.images, addr);
	const uint8_t *code = map && map->image && map->image->elf
				      ? elf__at(map->image->elf, addr - map->bias, sizeof(bytes))
				      : NULL;

	return code && memcmp(code, bytes, sizeof(bytes)) == 0;
}

/* Whether a thread is there, before or in the system call. */
static bool returns_from_signal(const struct names *names, uint64_t addr)
{
	return is_signal_return(names, addr - 7) || is_signal_return(names, addr - 9);
}

/*
 * Names a frame of the C part of a stack. If StgRun was found, the kernel side recognises Haskell
 * code by StgRun's place above the stack pointer, so these frames are C; C code is unwound by its
 * rows or by the calls that led to it.
 */
static void name_c_frame(struct names *names, uint64_t addr, bool is_return, struct code_name *n)
{
	const struct image_map *map;

	if (names->of.rts && names->of.rts->stgrun_ret)
		names__c_code(names, addr, is_return, n);
	else
		names__code(names, addr, is_return, n);
	if (!is_signal_return(names, addr) && (is_return || !returns_from_signal(names, addr)))
		return;
	map = images__ever_at(names->of.images, addr);
	*n = (struct code_name){.name = NAMES_SIGNAL_RETURN,
				.module = "",
				.package = "",
				.file = intern(names, map->image->base),
				.src = "",
				.source = NAME_EXACT,
				.code = CODE_C,
				.at = n->at};
}

static bool is_kernel(uint64_t frame)
{
	return frame >> WIRE_FRAME_KIND_SHIFT == WIRE_FRAME_KERNEL;
}

/* The upper bits, which do not fit into a frame, are the same for all kernel addresses. */
static uint64_t kernel_addr(uint64_t frame)
{
	return frame | ~WIRE_FRAME_ADDR_MASK;
}

static void name_by(const struct kallsyms *syms, uint64_t frame, struct code_name *n)
{
	const char *name = NULL, *module = "";

	if (syms)
		name = kallsyms__find(syms, kernel_addr(frame), &module);
	n->code = CODE_KERNEL;
	n->name = name ? name : "[kernel]";
	n->file = *module ? module : "kernel";
	n->source = name ? NAME_EXACT : NAME_NONE;
}

/* The table for this frame. A newer table renames all cached kernel frames for good, since it
 * includes everything that existed when they were sampled. */
static struct names_kernel kernel_of(struct names *names, uint64_t frame)
{
	struct names_kernel kernel = {0};
	struct cached *c, *next;

	if (names->of.kernel)
		names->of.kernel(names->of.ctx, kernel_addr(frame), &kernel);
	if (kernel.no == names->kernel_no)
		return kernel;
	names->kernel_no = kernel.no;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	HASH_ITER (hh, names->cache, c, next) {
		if (!is_kernel(c->frame))
			continue;
		name_by(kernel.syms, c->frame, &c->name);
		names__intern_all(names, &c->name);
		c->name.partial = false;
	}
	return kernel;
}

static void name_kernel(struct names *names, uint64_t frame, struct code_name *n)
{
	struct names_kernel kernel = kernel_of(names, frame);

	name_by(kernel.syms, frame, n);
	names->incomplete |= kernel.early;
}

/* Decides by the info table, the only mark in a stripped program. */
static bool is_plumbing(const struct names *names, uint64_t info, bool updatee)
{
	const struct image_map *map = images__at(names->of.images, info);
	uint32_t type;

	if (!map || !map->image || !map->image->elf)
		return updatee;
	type = describe__type(map->image->elf, info - map->bias);
	/* a black hole has replaced its thunk, and does not show which one it was */
	return updatee ? !describe__is_thunk(type) : describe__is_plumbing(type);
}

static void name_frame(struct names *names, uint64_t frame, struct code_name *n)
{
	uint64_t addr = frame & WIRE_FRAME_ADDR_MASK;
	struct target_site site;
	char text[64];

	switch ((enum wire_frame_kind)(frame >> WIRE_FRAME_KIND_SHIFT)) {
	case WIRE_FRAME_HS_RET:
	case WIRE_FRAME_UPDATEE:
		names__code(names, addr, false, n);
		n->plumbing = is_plumbing(names, addr,
					  frame >> WIRE_FRAME_KIND_SHIFT == WIRE_FRAME_UPDATEE);
		return;
	case WIRE_FRAME_C_IP:
		name_c_frame(names, addr, false, n);
		return;
	case WIRE_FRAME_C_RET:
		name_c_frame(names, addr, true, n);
		return;
	case WIRE_FRAME_HS_IP:
		names__code(names, addr, false, n);
		return;
	case WIRE_FRAME_HS_CALL:
		names__code(names, addr, true, n);
		return;
	case WIRE_FRAME_SITE:
		if (names__site(names, addr, &site) == 0) {
			n->name = site.function;
			n->file = site.library;
			n->source = site.function[0] == '[' ? NAME_NONE : NAME_EXACT;
			n->code = CODE_C;
		} else {
			names__code(names, addr, true, n);
		}
		return;
	case WIRE_FRAME_CALLEE:
		if (names__callee(names, addr, n) < 0)
			n->name = "[indirect]";
		return;
	case WIRE_FRAME_ELIDED:
		snprintf(text, sizeof(text), "[%llu chunks left out]", (unsigned long long)addr);
		n->name = intern(names, text);
		return;
	case WIRE_FRAME_GAP:
		n->name = "[C frames not known]";
		return;
	case WIRE_FRAME_KERNEL:
		name_kernel(names, frame, n);
		return;
	}
	n->name = "[unknown frame]";
}

void names__forget(struct names *names, uint64_t start, uint64_t end)
{
	struct cached *c, *next;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	HASH_ITER (hh, names->cache, c, next) {
		if (!frame__is_within(c->frame, start, end))
			continue;
		HASH_DEL(names->cache, c);
		free(c);
	}
}

void names__frame(struct names *names, uint64_t frame, struct code_name *ret_name)
{
	struct code_name n = {.name = "", .module = "", .package = "", .file = "", .src = ""};
	struct cached *c;

	HASH_FIND(hh, names->cache, &frame, sizeof(frame), c);
	if (c && c->name.partial)
		kernel_of(names, frame);
	if (c) {
		c->used = true;
		*ret_name = c->name;
		return;
	}
	if (is_full(names))
		make_room(names);
	if (frame__is_code(frame))
		names__want_mapped(names, frame & WIRE_FRAME_ADDR_MASK);
	names->incomplete = false;
	name_frame(names, frame, &n);
	names__intern_all(names, &n);
	n.partial = names->incomplete;
	*ret_name = n;
	/* Unmapped code may be mapped later (dlopen), and slow sources may be read later: such a
	 * name is not cached. A kernel name is, until there is a newer table. */
	if ((n.partial && !is_kernel(frame)) || strcmp(n.name, "[unmapped]") == 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->frame = frame;
	c->name = n;
	/* if out of memory, it is looked up again */
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	(void)HASH_INSERT(names->cache, frame, sizeof(c->frame), c);
}

/* Whether the file has symbols beyond imports, which do not name the program's code. */
static bool has_symbols(const struct names *names, const struct image *image)
{
	return elf__n_symbols(image->elf, ELF_SYMTAB) > 1 || names__debug_file(image) ||
	       names->of.rts->suspend.found == FOUND_DYNSYM;
}

unsigned names__sources(struct names *names)
{
	struct image *image = images__exe(names->of.images) ?: names->of.rts->image;
	unsigned sources = 0;

	if (!image || !image->elf || !names->of.rts->image)
		return 0;
	sources |= names__has_ipe(names) << NAME_IPE;
	sources |= names__has_dwarf(names, image) << NAME_DWARF;
	sources |= names->of.rts->profiled << NAME_DESCRIPTION;
	if (has_symbols(names, image)) {
		sources |= 1U << NAME_EXACT;
	} else {
		sources |= (names__archives(names, image) != NULL) << NAME_ARCHIVE;
		sources |= names__has_modules(names, image) << NAME_MODULE;
	}
	return sources;
}
