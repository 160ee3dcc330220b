/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the file that holds the GHC runtime and runs the finder's strategies over it. */
#include "rts_find_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/debugfile.h"

/* Order of a strategy matters: what one has found the next leaves alone. */
static void (*const strategies[])(struct rts *rts) = {
	rts_symbols__find, rts_callsites__find, rts_shape__check,
	rts_stgrun__find,  rts_gc__find,	rts_gc__clock,
};

const char *rts_found__name(enum rts_found found)
{
	switch (found) {
	case FOUND_SYMTAB:
		return "symtab";
	case FOUND_DYNSYM:
		return "dynsym";
	case FOUND_DEBUGFILE:
		return "debugfile";
	case FOUND_CALLSITES:
		return "callsites";
	case FOUND_THREADS:
		return "threads";
	case FOUND_TICKER:
		return "ghc_ticker";
	case FOUND_MEMORY:
		return "memory";
	case FOUND_STRINGS:
		return "strings";
	case FOUND_NONE:
		break;
	}
	return "none";
}

/*
 * Where to look first: the executable, then the libraries that GHC names libHSrts…, then all
 * others (a Haskell library loaded by a C program may be called anything).
 */
static int preference(const struct image *image)
{
	if (image->is_exe)
		return 0;
	return strncmp(image->base, "libHSrts", 8) == 0 ? 1 : 2;
}

static void shift(struct rts *rts, uint64_t by)
{
	struct rts_place *places[] = {
		&rts->suspend,	 &rts->resume,	       &rts->tick,     &rts->gc_start,
		&rts->gc_end,	 &rts->stgrun,	       &rts->main_cap, &rts->capabilities,
		&rts->all_tasks, &rts->n_capabilities, &rts->gc_sync,  &rts->stats,
		&rts->prof_tick,
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (places[i]->addr)
			places[i]->addr += by;
	if (rts->stgrun_ret)
		rts->stgrun_ret += by;
}

/* NULL: the file holds no runtime, or there is no memory. */
static struct rts *analyse(pid_t pid, struct image *image)
{
	struct rts *rts = image->elf ? calloc(1, sizeof(*rts)) : NULL;

	if (!rts)
		return NULL;
	if (!rts_strings__read(image->elf, image->base, rts)) {
		free(rts);
		return NULL;
	}
	rts->image = image;
	debugfile__look(pid, image);
	for (size_t s = 0; s < ARRAY_SIZE(strategies); s++)
		strategies[s](rts);
	elf__done(image->elf);
	rts->image = NULL;
	shift(rts, -image->bias);
	return rts;
}

static void free_rts(void *rts)
{
	rts__free(rts);
	free(rts);
}

/* What a file holds, with its addresses as in the file; NULL: no runtime. */
static const struct slot_key rts_key = {.free = free_rts};

/* What the file was found to hold, now or before, moved to where this process has it. */
static bool is_rts(pid_t pid, struct image *image, struct rts *rts)
{
	struct file *file = image->file;
	const struct rts *in_file;
	void *known;

	if (!slots__get(&file->slots, &rts_key, &known))
		known = slots__put(&file->slots, &rts_key, analyse(pid, image));
	in_file = known;
	if (!in_file)
		return false;
	*rts = *in_file;
	rts->image = image;
	rts->dynamic = !image->is_exe;
	shift(rts, image->bias);
	/* where a library's thread-local block lies is not in the file */
	if (rts->dynamic)
		rts->tls_known = false;
	return true;
}

void rts__free(struct rts *rts)
{
	callsites__free(&rts->callsites);
}

int rts__find(pid_t pid, const struct images *images, struct rts *ret_rts)
{
	struct rts rts;

	for (int want = 0; want <= 2; want++) {
		for (size_t i = 0; i < images->n; i++) {
			struct image *image = images->images[i];

			if (preference(image) != want || !is_rts(pid, image, &rts))
				continue;
			*ret_rts = rts;
			return 0;
		}
	}
	return -ENOEXEC;
}
