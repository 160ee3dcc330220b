/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modules_main: GHC generates a C file with main(), which passes the closure `:Main.main` of the
 * module Main to hs_main(), and links it after the program's own modules, of which Main is the
 * last, and before all libraries (GHC.Linker.Static,
 * GHC.SysTools.ExtraObj.mkExtraObjToLinkIntoBinary; 8.10 to 9.14). So main() shows where the
 * program's own package ends, even if Main's name is nowhere in the file. If main() was compiled
 * with optimisation it precedes all code (.text.startup), and shows nothing.
 */
#include "base/base.h"
#include "base/search.h"
#include "elf/elf.h"
#include "modules_read_priv.h"
#include "rts/insn.h"

/* Bytes of _start that are decoded; in musl _start_c follows it. */
#define START_CODE 64
/* GHC's main() copies defaultRtsConfig, field by field, before its only call: 200 to 320 bytes. */
#define MAIN_CODE 512
/* Addresses in _start: main()'s, and two or three others, of constructors. */
#define MAX_ADDRESSES 16
/* Only Main's closures have code this close before main(). */
#define MAX_BEFORE (64U << 10)

struct search {
	const struct mod_image *img;
	const struct mod_marks *marks;
	struct insn *insn;
	uint64_t addresses[MAX_ADDRESSES];
	size_t n;
	uint64_t at; /* candidate for main() */
	struct mod_main *ret;
};

/* Decodes instructions from `at` on, for at most `len` bytes. */
static void each_insn(struct search *s, uint64_t at, size_t len,
		      bool (*fn)(void *ctx, const struct insn_seen *seen))
{
	const struct mod_image *img = s->img;

	if (at >= img->text_start && at < img->text_end)
		insn__each(s->insn, img->text + (at - img->text_start),
			   MIN(len, (size_t)(img->text_end - at)), at, fn, s);
}

/* The static closure at vaddr if its code is shortly before `at`; else NULL. */
static const struct mod_static *closure_before(const struct mod_marks *m, uint64_t vaddr,
					       uint64_t at)
{
	size_t i = search__first(m->n_statics, k, m->statics[k].data >= vaddr);

	if (i >= m->n_statics || m->statics[i].data != vaddr || m->statics[i].code >= at ||
	    at - m->statics[i].code > MAX_BEFORE)
		return NULL;
	return &m->statics[i];
}

/* Called for each instruction of a candidate for main(), before its first call. */
static bool on_insn_of_main(void *ctx, const struct insn_seen *seen)
{
	struct search *s = ctx;
	const struct mod_static *c = NULL;

	if (seen->refers)
		c = closure_before(s->marks, seen->refers, s->at);
	if (c)
		*s->ret = (struct mod_main){.at = s->at, .data = c->data};
	return !c && !seen->call && !seen->branch;
}

/* Called for each instruction of _start: it may load main()'s address, also from the GOT. */
static bool on_insn_of_start(void *ctx, const struct insn_seen *seen)
{
	struct search *s = ctx;
	size_t i = mod_image__word(s->img, seen->refers);

	if (seen->refers)
		s->addresses[s->n++] = i < s->img->n_words ? s->img->words[i] : seen->refers;
	return s->n < MAX_ADDRESSES;
}

int mod_main__find(const struct mod_image *img, const struct mod_marks *marks, struct mod_main *ret)
{
	struct search s = {.img = img, .marks = marks, .ret = ret};
	int err = insn__new(&s.insn);

	*ret = (struct mod_main){0};
	if (err)
		return err;
	each_insn(&s, elf__entry(img->elf), START_CODE, on_insn_of_start);
	for (size_t i = 0; i < s.n && !ret->data; i++) {
		s.at = s.addresses[i];
		each_insn(&s, s.at, MAIN_CODE, on_insn_of_main);
	}
	insn__free(s.insn);
	return 0;
}
