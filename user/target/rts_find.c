/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the file that holds the GHC runtime and runs the finder's strategies over it. */
#include "rts_find.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "debugfile.h"

/* Order of a strategy matters: what one has found the next leaves alone. */
static void (*const strategies[])(struct rts *rts) = {
	rts_symbols__find,
	rts_callsites__find,
	rts_stgrun__find,
};

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

static bool is_rts(struct image *image, struct rts *rts)
{
	if (!image->elf)
		return false;
	memset(rts, 0, sizeof(*rts));
	return rts_strings__read(image->elf, image->base, rts);
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

			if (preference(image) != want || !is_rts(image, &rts))
				continue;
			rts.image = image;
			debugfile__look(pid, image);
			rts.dynamic = !image->is_exe;
			for (size_t s = 0; s < ARRAY_SIZE(strategies); s++)
				strategies[s](&rts);
			elf__done(image->elf);
			*ret_rts = rts;
			return 0;
		}
	}
	return -ENOEXEC;
}
