/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code: names the code at an address: finds file and symbol, decodes Haskell symbols, and
 * determines the class of code.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "archives/archives.h"
#include "base/base.h"
#include "hs_name_priv.h"
#include "names_priv.h"
#include "process/debugfile.h"
#include "process/file.h"
#include "rts/rts_text.h"

/* Labels searched after a local closure for the binding that contains it. */
#define MAX_ENCLOSING 8

/* Code to be classified. */
struct code_place {
	uint64_t vaddr;
	bool in_c;			       /* found where the code must be C */
	const struct archives_known *archives; /* where its symbol is from; NULL: the file itself */
};

static void free_symbols(void *symbols)
{
	symbols__free(symbols);
}

static void free_rts_text(void *text)
{
	rts_text__free(text);
}

/* Slots of a file; symbols and DWARF are also kept with an image that has its own debug file. */
static const struct slot_key symbols_key = {.free = free_symbols};
/* Symbols read before there was a debug file: one may be downloaded, or found by another process's
 * path. */
static const struct slot_key early_symbols_key = {.free = free_symbols};
static const struct slot_key rts_text_key = {.free = free_rts_text};
static const struct slot_key haskell_key; /* not NULL: the file may contain GHC's code */

static int read_symbols(const struct elf_file *elf, const struct elf_file *debug,
			struct symbols **ret_symbols)
{
	int err = symbols__new_debug(elf, debug, ret_symbols);

	/* later reads touch few pages */
	elf__done(elf);
	if (debug)
		elf__done(debug);
	return err;
}

static const struct symbols *symbols_of(struct names *names, struct image *image)
{
	bool early = names__awaits_download(names, image);
	const struct slot_key *key;
	struct symbols *made = NULL;
	struct slots *slots;
	void *symbols;
	int err;

	early |= debugfile__look(names->of.pid, image) != 0;
	key = names__debug_file(image) ? &symbols_key : &early_symbols_key;
	slots = image->debug_is_own ? &image->slots : &image->file->slots;
	names->incomplete |= early;
	if (slots__get(slots, key, &symbols))
		return symbols;
	if (names__waits(names, slots, key))
		return NULL;
	err = read_symbols(image->elf, names__debug_file(image), &made);
	/* it can be read later */
	if (names__put_off(names, slots, key, err))
		return NULL;
	return slots__put(slots, key, err ? NULL : made);
}

/* Read on first use, once for a file, so that a target that has just started is not delayed. */
static const struct rts_text *rts_text_of(struct names *names)
{
	struct slots *slots = &names->of.rts->image->file->slots;
	struct rts_text *made = NULL;
	void *text;
	int err;

	if (slots__get(slots, &rts_text_key, &text))
		return text;
	if (names__waits(names, slots, &rts_text_key))
		return NULL;
	err = rts_text__new(names->of.rts, &made);
	/* it can be read later */
	if (names__put_off(names, slots, &rts_text_key, err))
		return NULL;
	return slots__put(slots, &rts_text_key, err ? NULL : made);
}

/* A symbol, and the tables to search around it. */
struct found {
	const struct symbols *symbols;	       /* the file's; NULL: none */
	const struct archives_known *archives; /* where the hit is from; NULL: from the file's */
	struct symbols_hit hit;
};

/* Prefers the file's own exact symbol, then one of an archive, then the nearest one. */
static bool find_symbol(struct names *names, struct image *image, uint64_t vaddr, struct found *ret)
{
	const struct archives_known *archives;
	struct symbols_hit hit;
	bool near;

	*ret = (struct found){.symbols = symbols_of(names, image)};
	near = ret->symbols && symbols__lookup(ret->symbols, vaddr, &ret->hit) == 0;
	if (near && ret->hit.exact)
		return true;
	archives = names__archives(names, image);
	if (archives && archives_known__lookup(archives, vaddr, &hit) == 0 &&
	    (hit.exact || !near)) {
		ret->archives = archives;
		ret->hit = hit;
		return true;
	}
	return near;
}

static int find_after(const struct found *found, uint64_t vaddr, size_t skip,
		      struct symbols_hit *ret_hit)
{
	return found->archives ? archives_known__after(found->archives, vaddr, skip, ret_hit)
			       : symbols__after(found->symbols, vaddr, skip, ret_hit);
}

/* For code in the runtime's file. */
static enum rts_part rts_part(struct names *names, const struct code_place *place,
			      const struct symbols_hit *hit)
{
	const struct rts_text *text;

	/* the owner of an archive's function is known; other functions are judged by their
	 * neighbours */
	if (place->archives && hit->exact && elf__has_fde(names->of.rts->image->elf, place->vaddr))
		return archives_known__is_rts(place->archives, place->vaddr)
			       ? rts_text__part_of(hit->name)
			       : RTS_PART_C;
	text = rts_text_of(names);
	return text ? rts_text__part(text, place->vaddr, hit ? hit->name : "") : RTS_PART_UNKNOWN;
}

static enum code_class rts_class(struct names *names, const struct code_place *place,
				 const struct symbols_hit *hit)
{
	switch (rts_part(names, place, hit)) {
	case RTS_PART_C:
		return CODE_C;
	case RTS_PART_RTS:
		return CODE_RTS;
	case RTS_PART_GC:
		return CODE_GC;
	case RTS_PART_UNKNOWN:
		break;
	}
	return CODE_UNKNOWN;
}

/*
 * Whether a library may contain GHC's code: one of GHC's own, or one that depends on those (a
 * foreign library for other programs, or what GHCi links at run time).
 */
static bool may_be_haskell(const struct image *image)
{
	struct slots *slots = &image->file->slots;
	void *may_be;

	if (image->is_exe || strncmp(image->base, "libHS", 5) == 0)
		return true;
	if (!slots__get(slots, &haskell_key, &may_be))
		may_be = slots__put(slots, &haskell_key,
				    elf__mentions(image->elf, "libHS") ? image->file : NULL);
	return may_be != NULL;
}

/*
 * GHC's code has no unwind rows. Nor do C code of a libc built without them (musl) and assembly
 * (gmp): these are recognised by where they were found, or by a function symbol that is not a GHC
 * label.
 */
static enum code_class classify(struct names *names, struct image *image,
				const struct code_place *place, const struct symbols_hit *hit,
				bool ghc_label)
{
	uint64_t vaddr = place->vaddr;
	enum code_class c = names->code_as;

	if (c != CODE_UNKNOWN)
		return c;
	if (image == names->of.rts->image) {
		c = rts_class(names, place, hit);
		if (c != CODE_UNKNOWN)
			return c;
	} else if (!may_be_haskell(image) || elf__has_fde(image->elf, vaddr)) {
		return CODE_C;
	}
	if (hit && hit->exact && !ghc_label && (hit->type == STT_FUNC || place->in_c))
		return CODE_C;
	/* an exact symbol settles it */
	return place->in_c && !(hit && hit->exact) ? CODE_C : CODE_HASKELL;
}

/*
 * Code between the symbols of a module belongs to a local closure, whose label the assembler
 * dropped. GHC emits the closures inside a binding before it (GHC.StgToCmm.Closure: a body's code
 * is emitted before the code that allocates it), so the next binding is a better name than the
 * previous symbol, which for a module's first closures is another module's or a C function's. A
 * constructor's entry code is skipped. If there is such a binding, found->hit and z are set to it.
 */
static bool prefer_enclosing(struct found *found, uint64_t vaddr, struct zname *z)
{
	struct symbols_hit after;
	struct zname first, za;

	for (size_t skip = 0; skip < MAX_ENCLOSING; skip++) {
		if (find_after(found, vaddr, skip, &after) < 0)
			return false;
		if (zname__decode(after.name, &za) < 0 || !za.is_haskell)
			return false;
		if (skip == 0)
			first = za;
		if (strcmp(za.module, first.module) != 0 || strcmp(za.package, first.package) != 0)
			return false;
		if (za.kind == ZNAME_INFO) {
			found->hit = after;
			*z = za;
			return true;
		}
	}
	return false;
}

/* Names a function of the runtime by its messages; false: none found, or other code. */
static bool named_by_strings(struct names *names, const struct image *image, uint64_t vaddr,
			     struct code_name *n)
{
	const struct rts_text *text = image == names->of.rts->image ? rts_text_of(names) : NULL;
	const char *name = text ? rts_text__name(text, vaddr) : NULL;

	if (!name)
		return false;
	n->name = name;
	n->source = NAME_STRINGS;
	return true;
}

/* Whether it is the runtime's Cmm code, which is compiled like Haskell code. */
static bool is_cmm(struct names *names, const struct image *image, uint64_t vaddr)
{
	const struct rts_text *text = image == names->of.rts->image ? rts_text_of(names) : NULL;

	return text && rts_text__is_cmm(text, vaddr);
}

/* The prefix shown before the offset of nameless code; also sets the package. */
static void offset_in(struct names *names, const struct image *image, uint64_t vaddr,
		      struct code_name *n, char *out, size_t size)
{
	bool cmm = n->code == CODE_HASKELL && is_cmm(names, image, vaddr);

	if (n->code == CODE_GC)
		snprintf(out, size, "[GC]");
	else if (n->code == CODE_RTS || cmm)
		snprintf(out, size, "[RTS]");
	else
		snprintf(out, size, "[%.255s]", image->base);
	if (cmm)
		n->package = intern(names, "rts");
}

/* Names code that has no symbol. */
static void name_offset(struct names *names, struct image *image, uint64_t vaddr,
			struct code_name *n)
{
	uint64_t offset = vaddr;
	struct elf_fde fde;
	char text[320], in[300];

	if (n->code == CODE_HASKELL ? names__by_module(names, image, vaddr, n)
				    : named_by_strings(names, image, vaddr, n))
		return;
	/* one name for all of a C function, or for a block of Haskell code: its start */
	if (elf__find_fde(image->elf, vaddr, &fde))
		vaddr = fde.start;
	else if (n->code == CODE_HASKELL)
		vaddr = names__block(names, image, vaddr);
	elf__vaddr_to_offset(image->elf, vaddr, &offset);
	offset_in(names, image, vaddr, n, in, sizeof(in));
	snprintf(text, sizeof(text), "%s+0x%llx", in, (unsigned long long)offset);
	n->name = intern(names, text);
	n->source = NAME_NONE;
}

/* The file that defines a symbol imported by another. */
const char *names__library_of(const struct names *names, const char *name,
			      const struct image *not_this)
{
	for (size_t i = 0; i < names->of.images->n; i++) {
		const struct image *image = names->of.images->images[i];

		if (image != not_this && image->elf && elf__exports(image->elf, name))
			return image->base;
	}
	return "";
}

static void name_without_symbol(struct names *names, const struct image_map *map,
				const struct code_place *place, struct code_name *n)
{
	struct image *image = map->image;
	uint64_t vaddr = place->vaddr;
	const struct names_place at = {.addr = vaddr + map->bias, .vaddr = vaddr};
	const char *plt = elf__plt_symbol(image->elf, vaddr);
	char buf[1024], symbol[512];

	n->code = classify(names, image, place, NULL, false);
	if (plt && plt[0]) {
		snprintf(symbol, sizeof(symbol), "%.*s", (int)strcspn(plt, "@"), plt);
		n->name = intern(names, names__demangled(names, symbol, buf, sizeof(buf)));
		n->file = intern(names, names__library_of(names, symbol, image));
		n->source = NAME_EXACT;
		n->code = CODE_C;
		return;
	}
	if (names__best(names, map, &at, n) || names__described(names, image, &at, false, n))
		return;
	name_offset(names, image, vaddr, n);
}

/* Names code by its offset in a file that could not be read. */
static void name_unread(struct names *names, const struct image_map *map, uint64_t addr,
			struct code_name *n)
{
	unsigned long long offset = addr - map->start + map->offset;
	char text[320];

	snprintf(text, sizeof(text), "[%.255s]+0x%llx", map->image->base, offset);
	n->name = intern(names, text);
}

/*
 * Whether a function without a name begins after the nearest symbol: its unwind rows show that, or
 * it is C code after a GHC label (`after_label`).
 */
static bool is_nameless(const struct image *image, const struct code_place *place,
			const struct symbols_hit *hit, bool after_label)
{
	struct elf_fde fde;

	if (hit->exact)
		return false;
	return (elf__find_fde(image->elf, place->vaddr, &fde) && fde.start > hit->start) ||
	       (place->in_c && after_label);
}

static void name_in_image(struct names *names, const struct image_map *map, uint64_t addr,
			  bool in_c, struct code_name *n)
{
	struct image *image = map->image;
	uint64_t vaddr = addr - map->bias;
	struct code_place place = {.vaddr = vaddr, .in_c = in_c};
	struct names_place at = {.addr = addr, .vaddr = vaddr};
	struct symbols_hit *hit;
	struct found found;
	struct zname z;
	bool label;

	n->file = intern(names, image->base);
	if (!image->elf) {
		name_unread(names, map, addr, n);
		return;
	}
	if (!find_symbol(names, image, vaddr, &found)) {
		name_without_symbol(names, map, &place, n);
		return;
	}
	hit = &found.hit;
	place.archives = found.archives;
	label = zname__decode(hit->name, &z) == 0;
	n->code = classify(names, image, &place, hit, label);
	at.symbols = found.symbols;
	at.hit = hit;
	at.label = label ? &z : NULL;
	if (names__best(names, map, &at, n))
		return;
	if (n->code == CODE_HASKELL && (!label || z.is_haskell) && !hit->exact) {
		if (names__described(names, image, &at, true, n))
			return;
		if (!prefer_enclosing(&found, vaddr, &z) && !label) {
			if (names__described(names, image, &at, false, n))
				return;
			/* after a C function, and not followed by a module's symbol */
			name_offset(names, image, vaddr, n);
			return;
		}
	}
	if (n->code != CODE_HASKELL &&
	    is_nameless(image, &place, hit, n->code == CODE_C && label && z.is_haskell)) {
		name_offset(names, image, vaddr, n);
		return;
	}
	n->source = !hit->exact ? NAME_NEAREST : found.archives ? NAME_ARCHIVE : NAME_EXACT;
	/* C's Foo_bar_info may look like a GHC label: it counts as one only in Haskell code. */
	if (n->code != CODE_HASKELL && !z.is_rts) {
		names__c_symbol(names, hit, n);
		return;
	}
	n->name = intern(names, z.name);
	n->module = intern(names, z.module);
	n->package = intern(names, z.package);
	names->ahead = hit->start > vaddr;
}

static void set_place(struct names *names, const struct image_map *map, uint64_t addr,
		      struct code_name *n)
{
	char build_id[41] = "";

	if (map->image->elf)
		elf__build_id(map->image->elf, build_id);
	n->at = (struct code_at){.address = addr,
				 .start = map->start,
				 .end = map->end,
				 .offset = map->offset,
				 .path = map->image->name,
				 .build_id = intern(names, build_id)};
}

static void name_code(struct names *names, uint64_t addr, bool is_return, bool in_c,
		      struct code_name *ret_name)
{
	struct code_name n = {
		.name = "[unmapped]", .module = "", .package = "", .file = "", .src = ""};
	/*
	 * A call may be a function's last instruction: its return address then belongs to the next.
	 */
	uint64_t at = is_return && addr > 0 ? addr - 1 : addr;
	const struct image_map *map = images__ever_at(names->of.images, at);

	if (map && map->image) {
		name_in_image(names, map, at, in_c, &n);
		set_place(names, map, at, &n);
	} else if (map) {
		/* [vdso] is C code; code in anonymous memory is GHCi's or another JIT's */
		n.name = intern(names, map->special[0] ? map->special : "[anonymous code]");
		n.code = map->special[0] ? CODE_C : CODE_UNKNOWN;
	}
	names__intern_all(names, &n);
	*ret_name = n;
}

void names__code(struct names *names, uint64_t addr, bool is_return, struct code_name *ret_name)
{
	name_code(names, addr, is_return, false, ret_name);
}

void names__caller(struct names *names, uint64_t addr, struct code_name *ret_name)
{
	char text[HS_NAME_LEN];

	names->ahead = false;
	names__code(names, addr, true, ret_name);
	if (!names->ahead)
		return;
	snprintf(text, sizeof(text), "<before %.400s>", ret_name->name);
	ret_name->name = intern(names, text);
}

void names__c_code(struct names *names, uint64_t addr, bool is_return, struct code_name *ret_name)
{
	name_code(names, addr, is_return, true, ret_name);
}
