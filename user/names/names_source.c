/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names_source: names an address by provenance, DWARF or closure descriptions. */
#include "names_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/retry.h"
#include "describe_priv.h"
#include "dwarf_priv.h"
#include "hs_name_priv.h"
#include "ipe_priv.h"

/* Takes 10 ms for an ordinary program, and most of a second for GHC itself. */
#define IPE_TIMEOUT_MS 3000
/* Symbols of a compilation unit searched for its module. */
#define MAX_UNIT_SYMBOLS 64

/* Removes a leading "./". */
static const char *plain_path(const char *path)
{
	while (path[0] == '.' && path[1] == '/')
		for (path += 2; *path == '/';)
			path++;
	return path;
}

static void set_line(struct names *names, const char *file, uint32_t line, struct code_name *n)
{
	char text[600];

	if (!file[0])
		return;
	if (line)
		snprintf(text, sizeof(text), "%.400s:%u", plain_path(file), line);
	else
		snprintf(text, sizeof(text), "%.400s", plain_path(file));
	n->src = intern(names, text);
}

/* The line in "7:25-39" or "(6,1)-(7,47)"; 0 for other text. */
static uint32_t line_of_span(const char *span)
{
	bool many = span[0] == '(';
	const char *digits = span + many;
	unsigned long line;
	char *end;

	if (!isdigit((unsigned char)digits[0]))
		return 0;
	line = strtoul(digits, &end, 10);
	return *end == (many ? ',' : ':') && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Before 9.6 the span is appended to the file: "src/Foo.hs:7:25-39". */
static void set_span(struct names *names, const char *file, const char *span, struct code_name *n)
{
	char plain[512];
	uint32_t line = line_of_span(span);

	snprintf(plain, sizeof(plain), "%s", file);
	for (char *colon = plain; !line && (colon = strchr(colon, ':')); colon++) {
		line = line_of_span(colon + 1);
		if (line)
			*colon = '\0';
	}
	set_line(names, plain, line, n);
}

/* How many symbols after an address are searched for one of its module: local closures come before
 * their binding. */
#define MAX_NEIGHBOURS 8

static bool package_of_symbol(struct names *names, const struct symbols_hit *hit,
			      struct code_name *n)
{
	struct zname z;

	if (zname__decode(hit->name, &z) || !z.is_haskell || strcmp(z.module, n->module) != 0)
		return false;
	n->package = intern(names, z.package);
	return true;
}

/* `unit`: the package that the source of the name gives; "": it gives none. */
static void set_package(struct names *names, struct image *image, const struct names_place *p,
			const char *unit, struct code_name *n)
{
	struct symbols_hit after;
	char text[400];

	n->package = "";
	if (unit[0]) {
		names__package_text(unit, text, sizeof(text));
		n->package = intern(names, text);
		return;
	}
	if (p->hit && package_of_symbol(names, p->hit, n))
		return;
	for (size_t i = 0; p->symbols && n->module[0] && i < MAX_NEIGHBOURS; i++) {
		if (symbols__after(p->symbols, p->vaddr, i, &after))
			break;
		if (package_of_symbol(names, &after, n))
			return;
	}
	/* the search for modules is slow, and symbols already give nearly all packages */
	if (elf__n_symbols(image->elf, ELF_SYMTAB) <= 1 && !names__debug_file(image))
		names__package_by_modules(names, image, p->vaddr, n);
}

/* ── provenance ──────────────────────────────────────────────────────────────────────────── */

static const struct ipe *ipe_of(struct names *t)
{
	struct ipe *ipe;
	int err;

	if (t->ipe_images == t->of.images->opened || !t->of.pid)
		return t->ipe;
	err = names_pause__now(&t->ipe_pause, time__monotonic_ns());
	if (!err) {
		err = ipe__new(t->of.pid, t->of.rts->version, t->of.images, IPE_TIMEOUT_MS, &ipe);
		if (retry__is_worth_it(err)) {
			names_pause__begin(&t->ipe_pause, time__monotonic_ns(), err);
			log_verbose("pid %d: its info table map could not be read in time",
				    t->of.pid);
			err = t->ipe_pause.err;
		}
	}
	/* there may be time for it later */
	if (retry__shows_nothing(err)) {
		t->incomplete |= err == -EBUSY;
		return t->ipe;
	}
	t->ipe_images = t->of.images->opened;
	if (err && err != -ENOENT)
		log_verbose("pid %d: its info table map cannot be read: %s", t->of.pid,
			    strerror(-err));
	if (err)
		return t->ipe;
	if (ipe__truncated(ipe))
		log_verbose("pid %d: only %zu entries of its info table map are used", t->of.pid,
			    ipe__count(ipe));
	ipe__free(t->ipe);
	t->ipe = ipe;
	return ipe;
}

bool names__has_ipe(struct names *names)
{
	return ipe_of(names) != NULL;
}

static bool by_ipe(struct names *t, struct image *image, const struct names_place *p,
		   struct code_name *n)
{
	const struct ipe *ipe = ipe_of(t);
	char name[HS_NAME_LEN];
	struct ipe_entry e, closure;
	uint64_t symbol = 0;

	if (!ipe)
		return false;
	if (p->hit && p->hit->exact)
		symbol = p->addr - p->vaddr + p->hit->start;
	if (ipe__find(ipe, p->addr, symbol, &e, &closure))
		return false;
	hs_name__of_table(closure.table, e.label[0] ? e.label : closure.label, name);
	if (!name[0])
		return false;
	n->name = intern(t, name);
	n->module = intern(t, e.module);
	set_package(t, image, p, e.unit, n);
	if (!e.file[0])
		e = closure;
	set_span(t, e.file, e.span, n);
	n->source = NAME_IPE;
	return true;
}

/* ── DWARF ───────────────────────────────────────────────────────────────────────────────── */

static void free_dwarf(void *dwarf)
{
	dwarf__free(dwarf);
}

static const struct slot_key dwarf_key = {.free = free_dwarf};

static struct dwarf *read_dwarf(struct names *names, struct slots *slots,
				const struct elf_file *elf)
{
	struct dwarf *made = NULL;
	void *dwarf;
	int err;

	if (slots__get(slots, &dwarf_key, &dwarf))
		return dwarf;
	if (names__waits(names, slots, &dwarf_key))
		return NULL;
	err = dwarf__is_in(elf) ? dwarf__new(elf, &made) : -ENOENT;
	/* it can be read later */
	if (names__put_off(names, slots, &dwarf_key, err))
		return NULL;
	return slots__put(slots, &dwarf_key, err ? NULL : made);
}

static struct dwarf *dwarf_of(struct names *names, struct image *image)
{
	struct file *file = image->file;
	struct dwarf *dwarf = NULL;
	const struct elf_file *elf;
	void *read;

	if (slots__get(&file->slots, &dwarf_key, &read) && read)
		return read;
	if (!dwarf__is_in(file->elf) && names__awaits_download(names, image))
		return NULL;
	elf = dwarf__is_in(file->elf) ? file->elf : file->debug ?: file->downloaded;
	/* a file without DWARF may get one by download */
	if (elf)
		dwarf = read_dwarf(names, &file->slots, elf);
	if (dwarf || !image->debug_is_own)
		return dwarf;
	return read_dwarf(names, &image->slots, image->debug);
}

bool names__has_dwarf(struct names *names, struct image *image)
{
	return dwarf_of(names, image) != NULL;
}

/* GHC creates one compilation unit per module: any of its symbols shows the module. */
static void set_module(struct names *names, const struct symbols *symbols,
		       const struct dwarf_place *d, struct code_name *n)
{
	struct symbols_hit hit;
	struct zname z;

	n->module = n->package = "";
	if (!symbols || !d->cu_start)
		return;
	for (size_t i = 0; i < MAX_UNIT_SYMBOLS; i++) {
		if (symbols__after(symbols, d->cu_start - 1, i, &hit) || hit.start >= d->cu_end)
			return;
		if (zname__decode(hit.name, &z) || !z.is_haskell)
			continue;
		n->module = intern(names, z.module);
		n->package = intern(names, z.package);
		return;
	}
}

/* Names a procedure that only its position distinguishes from others. */
static void name_by_place(const struct dwarf_place *d, const char *binding, char *out)
{
	const char *dot = *binding ? "." : "";
	char label[HS_NAME_LEN];

	if (d->proc_line && d->proc_file[0] && d->nth > 1) {
		snprintf(out, HS_NAME_LEN, "%s%s<%.200s:%u#%u>", binding, dot,
			 path__base(d->proc_file), d->proc_line, d->nth);
	} else if (d->proc_line && d->proc_file[0]) {
		snprintf(out, HS_NAME_LEN, "%s%s<%.200s:%u>", binding, dot,
			 path__base(d->proc_file), d->proc_line);
	} else {
		hs_name__occurrence(d->linkage, label);
		snprintf(out, HS_NAME_LEN, "%s%s%.200s", binding, dot, label);
	}
}

static bool haskell_by_dwarf(struct names *t, const struct names_place *p,
			     const struct dwarf_place *d, struct code_name *n)
{
	char name[HS_NAME_LEN];
	struct zname z;

	if (zname__decode(d->linkage, &z) == 0 && z.is_haskell) {
		hs_name__combine(d->name, z.name, name);
		n->module = intern(t, z.module);
		n->package = intern(t, z.package);
	} else if (z.is_rts) {
		return false;
	} else {
		set_module(t, p->symbols, d, n);
		if (!d->name[0] || d->inner)
			name_by_place(d, d->name, name);
		else
			snprintf(name, sizeof(name), "%s", d->name);
	}
	if (!name[0])
		return false;
	n->name = intern(t, name);
	return true;
}

static bool c_by_dwarf(struct names *t, const struct names_place *p, const struct dwarf_place *d,
		       struct code_name *n)
{
	const char *symbol = d->linkage[0] ? d->linkage : d->name;
	char buf[1024];

	if (p->hit && p->hit->exact)
		names__c_symbol(t, p->hit, n);
	else if (symbol[0])
		n->name = intern(t, names__demangled(t, symbol, buf, sizeof(buf)));
	else
		return false;
	return true;
}

static bool find_dwarf(struct names *t, struct image *image, const struct names_place *p,
		       const struct code_name *n, struct dwarf_place *ret)
{
	struct dwarf *dwarf = dwarf_of(t, image);
	int err = dwarf ? dwarf__find(dwarf, t->of.helpers->dwarf, p->vaddr, ret) : -ENOENT;

	if (err == -EBUSY)
		t->incomplete = true;
	/* assembly has lines, but no functions beyond those that symbols name as well */
	return !err && (n->code != CODE_HASKELL || ret->haskell);
}

static void set_dwarf_line(struct names *t, const struct dwarf_place *d, struct code_name *n)
{
	if (d->line)
		set_line(t, d->file, d->line, n);
	else
		set_line(t, d->proc_file, d->proc_line, n);
}

static bool by_dwarf(struct names *t, struct image *image, const struct names_place *p,
		     struct code_name *n)
{
	struct dwarf_place d;

	if (!find_dwarf(t, image, p, n, &d))
		return false;
	if (d.haskell ? !haskell_by_dwarf(t, p, &d, n) : !c_by_dwarf(t, p, &d, n))
		return false;
	set_dwarf_line(t, &d, n);
	n->source = NAME_DWARF;
	return true;
}

bool names__best(struct names *names, const struct image_map *map, const struct names_place *place,
		 struct code_name *n)
{
	struct dwarf_place d;

	/* provenance lacks the runtime's own Cmm code, whose labels show all there is */
	if (place->label && place->label->is_rts && place->hit->exact)
		return false;
	if (n->code != CODE_HASKELL || !by_ipe(names, map->image, place, n))
		return by_dwarf(names, map->image, place, n);
	/* the map has no place for what GHC made of inlined functions, "$wgo" */
	if (!n->src[0] && find_dwarf(names, map->image, place, n, &d))
		set_dwarf_line(names, &d, n);
	return true;
}

/* ── descriptions ────────────────────────────────────────────────────────────────────────── */

static void free_describe(void *describe)
{
	describe__free(describe);
}

/* Indexed by `profiled`: only profiled programs have descriptions. */
static const struct slot_key describe_keys[2] = {{.free = free_describe}, {.free = free_describe}};

static const struct describe *describe_of(struct names *names, struct image *image)
{
	bool profiled = names->of.rts->profiled;
	const struct slot_key *key = &describe_keys[profiled];
	struct slots *slots = &image->file->slots;
	struct describe *made = NULL;
	void *describe;
	int err;

	if (slots__get(slots, key, &describe))
		return describe;
	if (names__waits(names, slots, key))
		return NULL;
	err = describe__new(image->elf, profiled, &made);
	/* it can be read later */
	if (names__put_off(names, slots, key, err))
		return NULL;
	if (err)
		log_verbose("%s: its info tables cannot be read: %s", image->name, strerror(-err));
	return slots__put(slots, key, err ? NULL : made);
}

bool names__described(struct names *names, struct image *image, const struct names_place *place,
		      bool binding, struct code_name *n)
{
	const struct describe *describe;
	struct describe_name d, outer;
	bool anonymous, inside;

	if (n->code != CODE_HASKELL || !names->of.rts->profiled)
		return false;
	describe = describe_of(names, image);
	if (!describe || !describe__closure(describe, image->elf, place->vaddr, &d))
		return false;
	anonymous = hs_name__is_anonymous(d.name);
	/* the unique in "sat_s3hx" is another one in each build; "lvl8" has none */
	inside = anonymous && strchr(d.name, '_') &&
		 describe__enclosing(describe, place->vaddr, d.module, &outer);
	if (inside) {
		d.name = outer.name;
		d.package = *outer.package ? outer.package : d.package;
	} else if (anonymous && binding)
		return false;
	names->ahead |= inside;
	n->name = intern(names, d.name);
	n->module = intern(names, d.module);
	set_package(names, image, place, d.package, n);
	n->source = inside ? NAME_DESCRIPTION_NEAR : NAME_DESCRIPTION;
	return true;
}

uint64_t names__block(struct names *names, struct image *image, uint64_t vaddr)
{
	const struct describe *describe = describe_of(names, image);

	return describe ? describe__block(describe, image->elf, vaddr) : vaddr;
}
