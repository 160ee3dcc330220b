/* SPDX-License-Identifier: GPL-2.0-or-later */
/* describe: the info tables in a file's code, found by a child without rights. */
#include "describe_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "hs_name_priv.h"

/* rts/include/rts/storage/ClosureTypes.h: the same numbers from 8.10 to 9.14 */
#define TYPE_FUN	  8
#define TYPE_THUNK	  15
#define TYPE_THUNK_LAST	  22 /* THUNK_SELECTOR */
#define TYPE_IND_STATIC	  28 /* after byte code, applications and IND */
#define TYPE_RET_BCO	  29 /* the first return frame */
#define TYPE_RET_BIG	  31
#define TYPE_UPDATE_FRAME 33
#define TYPE_CATCH_FRAME  34
#define TYPE_STOP_FRAME	  36
#define TYPE_BLACKHOLE	  38
#define TYPE_ATOMICALLY	  55
#define TYPE_CATCH_STM	  57 /* after CATCH_RETRY_FRAME */
#define TYPE_LAST	  66
#define MAX_TEXT	  400
#define MAX_FIELDS	  1024
#define MAX_RTS_FIELDS	  4 /* of the runtime's own closures */
#define BLOCK_MAX_BACK	  4096
#define MAX_ENCLOSING	  64 /* closures searched for the one that contains another */
#define LOWEST		  64 /* no code lies below */

/* InfoTables.h, StgInfoTable with StgProfInfo and tables next to code, before the entry code */
struct prof_table {
	int32_t type_off;
	uint32_t pad0;
	int32_t desc_off;
	uint32_t pad1;
	uint64_t layout;
	uint32_t type;
	int32_t srt;
};

uint32_t describe__type(const struct elf_file *elf, uint64_t vaddr)
{
	const uint8_t *p = vaddr < 8 || (vaddr & 7) ? NULL : elf__at(elf, vaddr - 8, 8);
	uint32_t type = 0;

	if (p)
		memcpy(&type, p, sizeof(type));
	return type > TYPE_LAST ? 0 : type;
}

bool describe__is_plumbing(uint32_t type)
{
	return type == TYPE_UPDATE_FRAME || type == TYPE_CATCH_FRAME || type == TYPE_STOP_FRAME;
}

bool describe__is_thunk(uint32_t type)
{
	return type >= TYPE_THUNK && type <= TYPE_THUNK_LAST;
}

/*
 * A terminated string that is printable, or "<…>", in which the low byte of an operator like "∘"
 * may be a control character; else NULL.
 */
static const char *text_at(const struct elf_file *elf, uint64_t vaddr)
{
	const char *s = (const char *)elf__at(elf, vaddr, 1);
	bool printable = true;
	size_t len;

	if (!s || !*s)
		return NULL;
	for (len = 0; len < MAX_TEXT && elf__at(elf, vaddr, len + 1); len++) {
		if (!s[len])
			return printable || s[len - 1] == '>' ? s : NULL;
		printable &= (unsigned char)s[len] >= 0x20;
		if (!printable && s[0] != '<')
			return NULL;
	}
	return NULL;
}

/*
 * The description in the info table that ends at `code`, which is at vaddr, whatever kind of
 * closure it belongs to. `room`: readable bytes before it.
 */
static const char *description_at(const struct elf_file *elf, const uint8_t *code, uint64_t vaddr,
				  size_t room, uint32_t *ret_type)
{
	struct prof_table t;

	if (room < sizeof(t))
		return NULL;
	memcpy(&t, code - sizeof(t), sizeof(t));
	if (t.pad0 || t.pad1 || !t.desc_off || !t.type_off || !t.type || t.type > TYPE_LAST)
		return NULL;
	*ret_type = t.type;
	return text_at(elf, vaddr + (uint64_t)(int64_t)t.desc_off);
}

/* Whether C code lies between the two addresses, or at the second: C functions have unwind rows. */
static bool parted_by_c(struct elf_file *elf, uint64_t from, uint64_t vaddr)
{
	const struct elf_fde *fdes;
	size_t n, after;

	if (elf__fdes(elf, &fdes, &n))
		return false;
	after = search__first(n, i, fdes[i].start > vaddr);
	return after > 0 && fdes[after - 1].start > from;
}

/* A closure that runs code of its own when it is entered; a constructor only returns itself. */
static bool is_entered(uint32_t type)
{
	return (type >= TYPE_FUN && type <= TYPE_IND_STATIC) || type == TYPE_BLACKHOLE;
}

static bool is_return(uint32_t type)
{
	return (type >= TYPE_RET_BCO && type <= TYPE_STOP_FRAME) ||
	       (type >= TYPE_ATOMICALLY && type <= TYPE_CATCH_STM);
}

/* Checks the two words before entry code: layout; type and SRT (StgInfoTable with tables next to
 * code). */
static bool looks_like_table(const uint8_t *code)
{
	uint64_t layout, size, max;
	uint32_t type;
	int32_t srt;

	memcpy(&type, code - 8, sizeof(type));
	if (!is_entered(type) && !is_return(type))
		return false;
	memcpy(&layout, code - 16, sizeof(layout));
	memcpy(&srt, code - 4, sizeof(srt));
	/* an SRT is a closure, and aligned like info tables */
	if (srt & 7)
		return false;
	if (is_entered(type)) {
		max = type <= TYPE_THUNK_LAST ? MAX_FIELDS : MAX_RTS_FIELDS;
		return (layout & 0xffffffff) < max && layout >> 32 < max;
	}
	if (type == TYPE_RET_BIG)
		return layout && layout <= INT32_MAX;
	/* the bitmap: its size in the low six bits, no bits set beyond that size */
	size = layout & 0x3f;
	return size <= 58 && layout >> 6 >> size == 0;
}

/* ── read aside ──────────────────────────────────────────────────────────────────────────── */

/* More than the largest programs have: tables; tables with a description, and their text. */
#define MAX_BLOCKS   (4U << 20)
#define MAX_CLOSURES (1U << 20)
#define MAX_TEXTS    (32U << 20)
#define NO_TEXT	     UINT32_MAX

/* An info table with a description. */
struct closure {
	uint32_t at;   /* offset of its entry code from the base, in words */
	uint32_t text; /* offset in `texts` of package, module and name, each with a NUL; NO_TEXT:
			  not a closure of the program's own */
};

struct describe {
	uint64_t base;		  /* `at` and `blocks` are relative to it */
	uint32_t *blocks;	  /* code that follows an info table: ascending, in words */
	struct closure *closures; /* ascending */
	char *texts;
	size_t n_blocks, n_closures, text_len;
};

struct out {
	uint64_t n_blocks, n_closures, text_len;
	uint32_t blocks[MAX_BLOCKS];
	struct closure closures[MAX_CLOSURES];
	char texts[MAX_TEXTS];
};

struct job {
	const struct elf_file *elf;
	uint64_t base;
	bool profiled;
};

static uint32_t put_text(struct out *out, const struct hs_description *d)
{
	const char *const parts[] = {d->package, d->module, d->name};
	uint32_t at = (uint32_t)out->text_len;

	if (sizeof(*d) > MAX_TEXTS - out->text_len)
		return NO_TEXT;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t len = strlen(parts[i]) + 1;

		memcpy(out->texts + out->text_len, parts[i], len);
		out->text_len += len;
	}
	return at;
}

static void put_closure(const struct job *job, const uint8_t *code, uint64_t at, size_t room,
			struct out *out)
{
	struct hs_description d;
	uint32_t type = 0;
	const char *text = description_at(job->elf, code, at, room, &type);
	struct closure *c;

	if (!text || out->n_closures == MAX_CLOSURES)
		return;
	c = &out->closures[out->n_closures++];
	*c = (struct closure){.at = (uint32_t)((at - job->base) / 8), .text = NO_TEXT};
	/* descriptions of the runtime's own closures have no brackets, and the code after them is
	 * the runtime's */
	if (text[0] == '<' && type >= TYPE_FUN && type <= TYPE_THUNK_LAST &&
	    hs_name__description(text, &d))
		c->text = put_text(out, &d);
}

/* Checks every aligned word, since each could be the start of code after an info table. */
static void read_segment(const struct job *job, const struct elf_segment *seg, struct out *out)
{
	const uint8_t *code = elf__at(job->elf, seg->vaddr, seg->filesz);
	uint64_t at = (MAX(seg->vaddr + 16, (uint64_t)LOWEST) + 7) & ~7ULL;

	for (; code && at < seg->vaddr + seg->filesz; at += 8) {
		uint64_t word = (at - job->base) / 8, room = at - seg->vaddr;

		if (word > UINT32_MAX)
			return;
		if (out->n_blocks < MAX_BLOCKS && looks_like_table(code + room))
			out->blocks[out->n_blocks++] = (uint32_t)word;
		if (job->profiled)
			put_closure(job, code + room, at, room, out);
	}
}

static void give_module(struct out *out, size_t from, size_t to, const char *module)
{
	for (size_t i = from; i < to; i++) {
		struct closure *c = &out->closures[i];
		struct hs_description d = {.package = ""};

		if (c->text == NO_TEXT || out->texts[c->text] || out->texts[c->text + 1])
			continue;
		snprintf(d.module, sizeof(d.module), "%s", module);
		snprintf(d.name, sizeof(d.name), "%s", out->texts + c->text + 2);
		c->text = put_text(out, &d);
	}
}

/*
 * Before 9.6 the descriptions of exported functions lack the module. The linker keeps a module's
 * code together, so it is the one that the functions on both sides have, or that of a local closure
 * right before the function, since GHC emits a binding after the closures inside it.
 */
static void give_modules(struct out *out)
{
	const char *last = NULL;
	bool local = false; /* the closure before is, and has a module */
	size_t from = 0;

	for (size_t i = 0; i < out->n_closures; i++) {
		uint32_t text = out->closures[i].text;
		const char *module =
			text == NO_TEXT ? "" : out->texts + text + strlen(out->texts + text) + 1;

		if (!*module && text != NO_TEXT && local) {
			give_module(out, i, i + 1, last);
			from = i;
		}
		local = *module && strncmp(module + strlen(module) + 1, "sat_", 4) == 0;
		if (!*module)
			continue;
		if (last && strcmp(last, module) == 0)
			give_module(out, from, i, module);
		last = module;
		from = i;
	}
}

/* In the child. */
static int read_tables(void *ctx, void *ret_out)
{
	const struct job *job = ctx;

	for (size_t i = 0; i < elf__n_segments(job->elf); i++)
		if (elf__segment(job->elf, i)->exec)
			read_segment(job, elf__segment(job->elf, i), ret_out);
	give_modules(ret_out);
	elf__done(job->elf);
	return 0;
}

/* Whether three strings begin at `at` in `texts`, which end with a NUL. */
static bool check_texts(const struct out *out, size_t at)
{
	for (int i = 0; i < 3; i++) {
		if (at >= out->text_len)
			return false;
		at += strlen(out->texts + at) + 1;
	}
	return true;
}

static bool check(const struct out *out)
{
	if (out->n_blocks > MAX_BLOCKS || out->n_closures > MAX_CLOSURES ||
	    out->text_len > MAX_TEXTS || (out->text_len && out->texts[out->text_len - 1]))
		return false;
	for (size_t i = 0; i < out->n_closures; i++) {
		uint32_t at = out->closures[i].text;

		if (at != NO_TEXT && !check_texts(out, at))
			return false;
	}
	return true;
}

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size + 1);

	return to ? memcpy(to, from, size) : NULL;
}

static int take(struct describe *d, const struct out *out)
{
	if (!check(out))
		return -EIO;
	d->n_blocks = out->n_blocks;
	d->n_closures = out->n_closures;
	d->text_len = out->text_len;
	d->blocks = copy(out->blocks, d->n_blocks * sizeof(*d->blocks));
	d->closures = copy(out->closures, d->n_closures * sizeof(*d->closures));
	d->texts = copy(out->texts, d->text_len);
	return d->blocks && d->closures && d->texts ? 0 : -ENOMEM;
}

static uint64_t base_of(const struct elf_file *elf)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < elf__n_segments(elf); i++)
		if (elf__segment(elf, i)->exec)
			base = MIN(base, elf__segment(elf, i)->vaddr);
	return base & ~7ULL;
}

int describe__new(const struct elf_file *elf, bool profiled, struct describe **ret_describe)
{
	struct describe *d = calloc(1, sizeof(*d));
	struct job job = {.elf = elf, .base = base_of(elf), .profiled = profiled};
	void *out = NULL;
	int err = d ? elf__aside(elf, read_tables, &job, sizeof(struct out), &out) : -ENOMEM;

	if (!err) {
		d->base = job.base;
		err = take(d, out);
	}
	confine__free_out(out, sizeof(struct out));
	if (err)
		describe__free(d);
	else
		*ret_describe = d;
	return err;
}

void describe__free(struct describe *d)
{
	if (!d)
		return;
	free(d->blocks);
	free(d->closures);
	free(d->texts);
	free(d);
}

/* ── what is asked ───────────────────────────────────────────────────────────────────────── */

uint64_t describe__block(const struct describe *d, struct elf_file *elf, uint64_t vaddr)
{
	uint64_t word = (vaddr - d->base) / 8, at;
	size_t after = search__first(d->n_blocks, i, d->blocks[i] > word);

	if (vaddr < d->base || !after)
		return vaddr;
	at = d->base + d->blocks[after - 1] * 8ULL;
	return at > vaddr || vaddr - at >= BLOCK_MAX_BACK || parted_by_c(elf, at, vaddr) ? vaddr
											 : at;
}

static struct describe_name name_of(const struct describe *d, const struct closure *c)
{
	struct describe_name name = {.package = d->texts + c->text};

	name.module = name.package + strlen(name.package) + 1;
	name.name = name.module + strlen(name.module) + 1;
	return name;
}

/* How many of the closures begin at vaddr or before it. */
static size_t n_before(const struct describe *d, uint64_t vaddr)
{
	uint64_t word = (vaddr - d->base) / 8;

	return vaddr < d->base ? 0 : search__first(d->n_closures, i, d->closures[i].at > word);
}

bool describe__closure(const struct describe *d, struct elf_file *elf, uint64_t vaddr,
		       struct describe_name *ret)
{
	size_t after = n_before(d, vaddr);
	const struct closure *c = d->closures + after - 1;
	uint64_t at;

	if (!after || c->text == NO_TEXT)
		return false;
	at = d->base + c->at * 8ULL;
	if (at > vaddr || vaddr - at >= DESCRIBE_MAX_BACK || parted_by_c(elf, at, vaddr))
		return false;
	*ret = name_of(d, c);
	return true;
}

bool describe__enclosing(const struct describe *d, uint64_t vaddr, const char *module,
			 struct describe_name *ret)
{
	size_t after = n_before(d, vaddr);

	for (size_t i = after; i < d->n_closures && i < after + MAX_ENCLOSING; i++) {
		if (d->closures[i].text == NO_TEXT)
			continue;
		*ret = name_of(d, &d->closures[i]);
		/* before 9.6 exported ones are described without it */
		if (*ret->module && strcmp(ret->module, module) != 0)
			return false;
		if (!hs_name__is_anonymous(ret->name))
			return true;
	}
	return false;
}
