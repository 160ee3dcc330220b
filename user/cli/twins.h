/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files with the symbols that a replayed session lacked: --symbols, --symbols-dir, debuginfod.
 * Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_TWINS_H
#define SAFESCOPED_CLI_TWINS_H

#include "options.h"
#include "target/target.h"

struct twins;

/* *ret_twins: NULL without such options. Prints a line if --symbols or --symbols-dir cannot be
 * used. */
int twins__new(const struct options *options, struct twins **ret_twins);
void twins__free(struct twins *twins);

/* Hooks of a replay (capture.h); ctx is the struct twins. */
void twins__name(void *ctx, const struct target_info *info, uint64_t frame, struct code_name *name);
void twins__site(void *ctx, const struct target_info *info, uint64_t addr,
		 struct target_site *site);

/* Warns about options whose files matched no process of the replay. */
void twins__report(const struct twins *twins);

#endif
