/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the file that holds the GHC runtime and runs the finder's strategies on it. */
#include "rts_find_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/retry.h"
#include "base/base.h"
#include "confine/confine.h"
#include "process/debugfile.h"

/* Their order matters: what one has found later ones leave alone. */
static void (*const strategies[])(struct rts *rts) = {
	rts_symbols__find, rts_callsites__find, rts_shape__check, rts_stgrun__find,   rts_gc__find,
	rts_gc__clock,	   rts_gc__stats,	rts_tick__find,	  rts_probed__choose,
};

/*
 * The order of search: the executable, then the libraries that GHC names libHSrts…, then all others
 * (a Haskell library loaded by a C program may have any name).
 */
static int preference(const struct image *image)
{
	if (image->is_exe)
		return 0;
	return strncmp(image->base, "libHSrts", 8) == 0 ? 1 : 2;
}

/* All of a runtime's places. */
static const size_t places[] = {
	offsetof(struct rts, suspend),	 offsetof(struct rts, resume),
	offsetof(struct rts, tick),	 offsetof(struct rts, gc_start),
	offsetof(struct rts, gc_end),	 offsetof(struct rts, stgrun),
	offsetof(struct rts, main_cap),	 offsetof(struct rts, capabilities),
	offsetof(struct rts, all_tasks), offsetof(struct rts, n_capabilities),
	offsetof(struct rts, gc_sync),	 offsetof(struct rts, stats),
	offsetof(struct rts, config),	 offsetof(struct rts, prof_tick),
};

static void shift(struct rts *rts, uint64_t by)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct rts_place *place = (void *)((char *)rts + places[i]);

		if (place->addr)
			place->addr += by;
	}
	if (rts->stgrun_ret)
		rts->stgrun_ret += by;
	if (rts->stgreturn)
		rts->stgreturn += by;
}

/* ── read aside ──────────────────────────────────────────────────────────────────────────── */

struct rts_out {
	struct rts rts; /* its pointers are invalid outside the child */
	struct callsite sites[];
};

#define OUT_SIZE (sizeof(struct rts_out) + CALLSITES_MAX * sizeof(struct callsite))

/* Runs in the child. Addresses are as in the file. */
static int read_rts(void *ctx, void *ret_out)
{
	struct rts_out *out = ret_out;
	struct image *image = ctx;
	struct rts rts = {0};

	if (!rts_strings__read(image->elf, image->base, &rts))
		return -ENOENT;
	rts.image = image;
	for (size_t s = 0; s < ARRAY_SIZE(strategies); s++)
		strategies[s](&rts);
	elf__done(image->elf);
	shift(&rts, -image->bias);
	if (rts.callsites.n > CALLSITES_MAX) {
		rts__free(&rts);
		return -E2BIG;
	}
	if (rts.callsites.n)
		memcpy(out->sites, rts.callsites.sites,
		       rts.callsites.n * sizeof(*rts.callsites.sites));
	out->rts = rts;
	/* in case this does not run in a child */
	rts__free(&rts);
	return 0;
}

static bool is_text(const char text[RTS_NAME_LEN])
{
	size_t len = strnlen(text, RTS_NAME_LEN);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	return len < RTS_NAME_LEN;
}

bool rts__check_read(const struct rts *rts, const struct callsite *sites)
{
	const bool *bools[] = {&rts->threaded, &rts->profiled, &rts->debug, &rts->dynamic,
			       &rts->tls_known};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct rts_place *place = (const void *)((const char *)rts + places[i]);

		if ((unsigned int)place->found > FOUND_CODE)
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(bools); i++)
		if (!confine__is_bool(bools[i]))
			return false;
	if (!rts_probed__check(rts))
		return false;
	if (!is_text(rts->version) || !is_text(rts->way) || rts->callsites.n > CALLSITES_MAX)
		return false;
	for (size_t i = 0; i < rts->callsites.n; i++)
		if (!confine__is_bool(&sites[i].interruptible) ||
		    !confine__is_bool(&sites[i].by_slot) ||
		    (i && sites[i].site <= sites[i - 1].site))
			return false;
	return true;
}

static int take(const struct rts_out *out, struct rts *ret_rts)
{
	struct rts rts = out->rts;

	if (!rts__check_read(&rts, out->sites))
		return -EIO;
	rts.image = NULL;
	rts.callsites.sites = NULL;
	if (rts.callsites.n) {
		size_t bytes = rts.callsites.n * sizeof(*out->sites);

		rts.callsites.sites = malloc(bytes);
		if (!rts.callsites.sites)
			return -ENOMEM;
		memcpy(rts.callsites.sites, out->sites, bytes);
	}
	*ret_rts = rts;
	return 0;
}

/* -ENOENT: the file does not hold a runtime; -ENOMEM, and elf__aside()'s errors. */
static int analyse(pid_t pid, struct image *image, struct rts **ret_rts)
{
	const struct elf_fde *fdes;
	struct rts *rts;
	size_t n_fdes;
	void *out;
	int err;

	/* most files hold no runtime, and need no debug file */
	err = rts__maybe_in(image->elf);
	if (err <= 0)
		return err ? err : -ENOENT;
	/* without the debug file less would be found, for all processes; but do not wait for one
	 * that only this process's path of the file leads to */
	err = debugfile__look(pid, image);
	if (err && !image->file->debug_tried)
		return err;
	/* read here, where they are kept for later use, and inherited by the child */
	err = elf__fdes(image->elf, &fdes, &n_fdes);
	/* without them less would be found, for good */
	if (retry__is_worth_it(err))
		return err;
	rts = calloc(1, sizeof(*rts));
	if (!rts)
		return -ENOMEM;
	err = elf__aside(image->elf, read_rts, image, OUT_SIZE, &out);
	if (!err) {
		err = take(out, rts);
		confine__free_out(out, OUT_SIZE);
	}
	if (err)
		free(rts);
	else
		*ret_rts = rts;
	return err;
}

static void free_rts(void *rts)
{
	rts__free(rts);
	free(rts);
}

/*
 * What a file holds, with addresses as in the file; NULL: no runtime. `early` is what was found
 * without a debug file: one process's path of the file may not lead to one while another's does,
 * and then it is used for all of them.
 */
static const struct slot_key rts_key = {.free = free_rts};
static const struct slot_key early_rts_key = {.free = free_rts};

static bool has_debug(const struct image *image)
{
	return image->debug && !image->debug_is_own;
}

/* True if everything that probes need has been found. */
static bool is_whole(const struct rts *rts)
{
	return rts->suspend.addr && rts->resume.addr && rts->gc_start.addr && rts->gc_end.addr;
}

/*
 * What was found earlier, for any process. False: nobody has looked yet, or a debug file has turned
 * up; *ret_rts is then what is known without it, or NULL.
 */
static bool is_known(pid_t pid, struct image *image, const struct rts **ret_rts)
{
	struct slots *slots = &image->file->slots;
	void *known = NULL, *early = NULL;
	bool looked = slots__get(slots, &rts_key, &known);
	bool looked_early = slots__get(slots, &early_rts_key, &early);

	*ret_rts = known ? known : early;
	if (looked || !looked_early)
		return looked;
	/* this process's path of the file may lead to one, or another process's has */
	if (early && (image->file->debug || !is_whole(early)))
		(void)debugfile__look(pid, image);
	return !early || !has_debug(image);
}

/* An error for which retry__shows_nothing() is true: there may be an answer later. Otherwise the
 * result is kept with the file. */
static int find(pid_t pid, struct image *image, const struct rts **ret_rts)
{
	struct file *file = image->file;
	struct rts *made = NULL;
	int err;

	/* another process may be luckier */
	if (!image->elf)
		return -ENOEXEC;
	if (file__rests(file))
		return -EBUSY;
	err = analyse(pid, image, &made);
	if (err == -EBUSY || (err && file__put_off(file, err)))
		return err;
	made = slots__put(&file->slots, has_debug(image) ? &rts_key : &early_rts_key,
			  err ? NULL : made);
	if (!made)
		return -ENOEXEC;
	*ret_rts = made;
	return 0;
}

/*
 * What the file holds, found now or earlier, relocated to where this process maps it. -ENOEXEC: no
 * runtime; an error for which retry__shows_nothing() is true: why the file could not be examined.
 */
static int look_into(pid_t pid, struct image *image, struct rts *rts)
{
	const struct rts *in_file = NULL;
	int err = is_known(pid, image, &in_file) ? 0 : find(pid, image, &in_file);

	/* what is known without the debug file is better than nothing */
	if (!in_file)
		return err ? err : -ENOEXEC;
	*rts = *in_file;
	rts->image = image;
	rts->dynamic = !image->is_exe;
	shift(rts, image->bias);
	/* the file does not show where a library's thread-local block is */
	if (rts->dynamic)
		rts->tls_known = false;
	return 0;
}

void rts__free(struct rts *rts)
{
	callsites__free(&rts->callsites);
}

int rts__find(pid_t pid, const struct images *images, struct rts *ret_rts)
{
	int none = -ENOEXEC, err;
	struct rts rts;

	for (int want = 0; want <= 2; want++) {
		for (size_t i = 0; i < images->n; i++) {
			struct image *image = images->images[i];

			if (preference(image) != want)
				continue;
			err = look_into(pid, image, &rts);
			none = retry__shows_nothing(err) ? err : none;
			if (err)
				continue;
			image->stays = true;
			*ret_rts = rts;
			return 0;
		}
	}
	return none;
}
