/* SPDX-License-Identifier: GPL-2.0-or-later */
/* modules_marks: finds the marks that contain a module's name, and the code of static closures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "elf/elf.h"
#include "modules_read_priv.h"

#define MAX_CONS	  (1U << 20)
#define MAX_STATICS	  (8U << 20)
#define MAX_LOCS	  (1U << 16)
#define THUNK_CODE	  96
#define THUNK_WORDS	  6
#define TYPE_THUNK_STATIC 21
#define MAX_TEXT	  400
/* Gap between two tables of one module's constructors: sections may have a larger alignment. */
#define MAX_APART	 64
#define TYPE_CONSTR_LAST 7

/* The bytes before the NUL of a printable, terminated string; else NULL. */
static const char *text_at(const struct mod_image *img, uint64_t vaddr, size_t *ret_len)
{
	const char *s = (const char *)elf__at(img->elf, vaddr, 1);
	size_t len = 0;

	if (!s)
		return NULL;
	while (len < MAX_TEXT && elf__at(img->elf, vaddr, len + 1)) {
		if (!s[len]) {
			*ret_len = len;
			return len ? s : NULL;
		}
		if ((unsigned char)s[len] <= ' ')
			return NULL;
		len++;
	}
	return NULL;
}

/* The description in a constructor's info table; NULL: not a constructor's. */
static const char *con_description(const struct mod_image *img, uint64_t vaddr, size_t *ret_len)
{
	uint32_t type = mod_image__type(img, vaddr);
	int32_t offset, high;
	const uint8_t *p;

	if (type < 1 || type > TYPE_CONSTR_LAST)
		return NULL;
	p = img->text + (vaddr - img->text_start) - mod_image__table_size(img, type);
	memcpy(&offset, p, sizeof(offset));
	memcpy(&high, p + 4, sizeof(high));
	if (!offset || (high && high != -1))
		return NULL;
	return text_at(img, vaddr + (uint64_t)(int64_t)offset, ret_len);
}

static bool same_name(struct mod_name a, struct mod_name b)
{
	return a.package == b.package && a.module == b.module;
}

static int find_cons(const struct mod_image *img, struct strtab *names, struct mod_marks *m)
{
	for (uint64_t at = (img->text_start + 71) & ~7ULL; at < img->text_end; at += 8) {
		struct mod_cons *last = m->n_cons ? &m->cons[m->n_cons - 1] : NULL;
		struct mod_name name;
		uint64_t start;
		size_t len;
		const char *text = con_description(img, at, &len);
		int err;

		if (!text || !mod_name__of_description(text, len, names, &name))
			continue;
		if (text__ends_with(text, len, ".Stack.Types.SrcLoc"))
			m->loc_info = at;
		start = at - mod_image__table_size(img, 1);
		if (last && same_name(last->name, name) && start - last->end < MAX_APART) {
			last->end = at + MOD_CON_CODE;
			last->n++;
			continue;
		}
		err = ARRAY_RESERVE(m->cons, m->cap_cons, m->n_cons + 1, MAX_CONS);
		if (err)
			return err;
		m->cons[m->n_cons++] = (struct mod_cons){
			.name = name, .start = start, .end = at + MOD_CON_CODE, .n = 1};
	}
	return 0;
}

static int by_code(const void *a, const void *b)
{
	return CMP(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Code shared by several closures is the runtime's, and shows no position: stg_unpack_cstring
 * (9.4). */
static int drop_shared(struct mod_marks *m)
{
	uint64_t *codes = malloc((m->n_statics + 1) * sizeof(*codes));
	size_t n = 0;

	if (!codes)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_statics; i++)
		codes[i] = m->statics[i].code;
	qsort(codes, m->n_statics, sizeof(*codes), by_code);
	for (size_t i = 0; i < m->n_statics; i++) {
		uint64_t code = m->statics[i].code;
		size_t at = search__first(m->n_statics, k, codes[k] >= code);

		if (at + 1 >= m->n_statics || codes[at + 1] != code)
			m->statics[n++] = m->statics[i];
	}
	m->n_statics = n;
	free(codes);
	return 0;
}

static int find_statics(const struct mod_image *img, struct mod_marks *m)
{
	for (size_t i = 0; i < img->n_words; i++) {
		int err;

		if (!mod_image__is_static(mod_image__type(img, img->words[i])))
			continue;
		err = ARRAY_RESERVE(m->statics, m->cap_statics, m->n_statics + 1, MAX_STATICS);
		if (err)
			return err;
		m->statics[m->n_statics++] =
			(struct mod_static){img->data_start + 8 * i, img->words[i]};
	}
	return drop_shared(m);
}

/* Whether it is GHC.Types.Module's info table, in this file or another. */
static bool is_module_info(const struct mod_image *img, uint64_t info)
{
	static const char symbol[] = "GHCziTypes_Module_con_info";
	struct elf_sym sym;
	const char *text;
	size_t len;

	if (info & MOD_SYMBOL)
		return elf__symbol(img->elf, ELF_DYNSYM, (size_t)(info & ~MOD_SYMBOL), &sym) == 0 &&
		       strstr(sym.name, symbol) != NULL;
	text = con_description(img, info, &len);
	return text && text__ends_with(text, len, ":GHC.Types.Module");
}

/* The string of a TrNameS closure: its info pointer, then the string. */
static const char *tr_name(const struct mod_image *img, uint64_t closure, size_t *ret_len)
{
	size_t i = mod_image__word(img, closure & ~7ULL);

	if ((closure & 7) != 1 || i + 1 >= img->n_words)
		return NULL;
	return text_at(img, img->words[i + 1], ret_len);
}

static int find_trs(const struct mod_image *img, struct strtab *names, struct mod_marks *m)
{
	for (size_t i = 0; i + 3 < img->n_words; i++) {
		const uint64_t *w = img->words + i;
		const char *package, *module;
		size_t package_len, module_len;
		struct mod_tr tr = {.data = img->data_start + 8 * i};
		int err;

		if (w[3] != 3 || (w[1] & 7) != 1 || (w[2] & 7) != 1 || !is_module_info(img, w[0]))
			continue;
		package = tr_name(img, w[1], &package_len);
		module = tr_name(img, w[2], &module_len);
		if (!package || !module || !mod_name__is_package(package, package_len) ||
		    !mod_name__is_module(module, module_len))
			continue;
		/*
		 * GHC.Types contains one for the module of the primitive types, which has no code
		 */
		if (text__ends_with(module, module_len, "GHC.Prim") ||
		    text__ends_with(module, module_len, "GHC.Internal.Prim"))
			continue;
		if (strtab__add(names, package, package_len, &tr.name.package) ||
		    strtab__add(names, module, module_len, &tr.name.module))
			return -ENOMEM;
		err = ARRAY_RESERVE(m->trs, m->cap_trs, m->n_trs + 1, MODULES_MAX);
		if (err)
			return err;
		m->trs[m->n_trs++] = tr;
	}
	return 0;
}

/* A string outside code and data. */
static bool take_text(const struct mod_image *img, uint64_t at, bool (*is)(const char *, size_t),
		      struct strtab *names, uint32_t *ret_id)
{
	const char *text;
	size_t len;

	if ((at >= img->text_start && at < img->text_end) ||
	    (at >= img->data_start && at < img->data_start + 8 * img->n_words))
		return false;
	text = text_at(img, at, &len);
	return text && len > 1 && is(text, len) && strtab__add(names, text, len, ret_id) == 0;
}

/*
 * The string that a thunk unpacks into a list: its code passes the address to unpackCString#; since
 * 9.4 its code is the runtime's stg_unpack_cstring, and the address is in the closure.
 */
static bool thunk_text(const struct mod_image *img, uint64_t closure,
		       bool (*is)(const char *, size_t), struct strtab *names, uint32_t *ret_id)
{
	size_t i = mod_image__word(img, closure & ~7ULL);
	uint64_t code = i < img->n_words ? img->words[i] : 0;

	if (mod_image__type(img, code) != TYPE_THUNK_STATIC)
		return false;
	for (size_t k = i + 1; k < i + THUNK_WORDS && k < img->n_words; k++)
		if (take_text(img, img->words[k], is, names, ret_id))
			return true;
	for (uint64_t at = code; at < code + THUNK_CODE && at + 4 < img->text_end; at++) {
		uint32_t v;

		memcpy(&v, img->text + (at - img->text_start), sizeof(v));
		if (take_text(img, v, is, names, ret_id) ||
		    take_text(img, at + 4 + (uint64_t)(int64_t)(int32_t)v, is, names, ret_id))
			return true;
	}
	return false;
}

/* Layout of SrcLoc: package, module, file, four numbers, static link. */
static int find_locs(const struct mod_image *img, struct strtab *names, struct mod_marks *m)
{
	for (size_t i = 0; m->loc_info && i + 8 < img->n_words; i++) {
		const uint64_t *w = img->words + i;
		struct mod_loc loc = {.data = img->data_start + 8 * i};
		int err;

		if (w[0] != m->loc_info ||
		    !thunk_text(img, w[1], mod_name__is_package, names, &loc.name.package) ||
		    !thunk_text(img, w[2], mod_name__is_module, names, &loc.name.module))
			continue;
		err = ARRAY_RESERVE(m->locs, m->cap_locs, m->n_locs + 1, MAX_LOCS);
		if (err)
			return err == -E2BIG ? 0 : err;
		m->locs[m->n_locs++] = loc;
	}
	return 0;
}

int mod_marks__find(const struct mod_image *img, struct strtab *names, struct mod_marks *marks)
{
	int err = find_cons(img, names, marks);

	if (!err)
		err = find_statics(img, marks);
	if (!err)
		err = find_trs(img, names, marks);
	if (!err)
		err = find_locs(img, names, marks);
	return err;
}

void mod_marks__fini(struct mod_marks *marks)
{
	free(marks->cons);
	free(marks->trs);
	free(marks->locs);
	free(marks->statics);
}

uint64_t mod_marks__code_before(const struct mod_marks *m, uint64_t data)
{
	size_t after = search__first(m->n_statics, i, m->statics[i].data > data);

	return after ? m->statics[after - 1].code : 0;
}

uint64_t mod_marks__code_after(const struct mod_marks *m, uint64_t data)
{
	size_t after = search__first(m->n_statics, i, m->statics[i].data > data);

	return after < m->n_statics ? m->statics[after].code : UINT64_MAX;
}
