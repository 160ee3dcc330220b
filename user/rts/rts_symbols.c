/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The finder's first strategy: the runtime's symbols, from its file or from a separate debug
 * file. */
#include <linux/elf.h>
#include <string.h>

#include "elf/arch.h"
#include "rts_find_priv.h"

enum wanted {
	W_SUSPEND,
	W_RESUME,
	W_HANDLE_TICK,
	W_HANDLE_PROF_TICK,
	W_GC_SYNC,
	W_GC_START,
	W_GC_END,
	W_STGRUN,
	W_CAPABILITIES,
	W_N_CAPABILITIES,
	W_MAIN_CAP,
	W_ALL_TASKS,
	W_MY_TASK,
	W_CCS_MAIN,
	W_STATS,
	W_RTS_CONFIG,
	W_MAX,
};

static const char *const wanted_names[W_MAX] = {
	[W_SUSPEND] = "suspendThread",
	[W_RESUME] = "resumeThread",
	[W_HANDLE_TICK] = "handle_tick",
	[W_HANDLE_PROF_TICK] = "handleProfTick",
	[W_GC_SYNC] = "stat_startGCSync",
	[W_GC_START] = "stat_startGC",
	[W_GC_END] = "stat_endGC",
	[W_STGRUN] = "StgRun",
	[W_CAPABILITIES] = "capabilities",
	[W_N_CAPABILITIES] = "n_capabilities",
	[W_MAIN_CAP] = "MainCapability",
	[W_ALL_TASKS] = "all_tasks",
	[W_MY_TASK] = "my_task",
	[W_CCS_MAIN] = "CCS_MAIN",
	[W_STATS] = "stats",
	[W_RTS_CONFIG] = "rtsConfig",
};

struct collect {
	struct rts *rts;
	struct rts_place place[W_MAX];
	uint64_t tls_value;
	bool tls_found;
	enum rts_found found;
};

static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct collect *c = ctx;

	if (sym->shndx == SHN_UNDEF || !sym->name)
		return 0;
	for (size_t i = 0; i < W_MAX; i++) {
		if (sym->name[0] != wanted_names[i][0] || strcmp(sym->name, wanted_names[i]) != 0)
			continue;
		/* A TLS symbol's value is an offset, and a program may have its own `my_task`. */
		if (sym->type == STT_TLS) {
			if (i == W_MY_TASK && !c->tls_found) {
				c->tls_value = sym->value;
				c->tls_found = true;
			}
		} else if (!c->place[i].addr && sym->value != 0) {
			c->place[i].addr = image__addr(c->rts->image, sym->value);
			c->place[i].found = c->found;
		}
		break;
	}
	return 0;
}

/* Only for executables: the loader puts a shared library's block anywhere. */
static void executable_tls(struct rts *rts, uint64_t value)
{
	uint64_t memsz, align;

	if (!rts->image->is_exe || !elf__tls(rts->image->elf, &memsz, &align))
		return;
	if (align == 0)
		align = 1;
	if ((align & (align - 1)) != 0 || align > (1U << 20) || memsz > (1U << 30) ||
	    value >= memsz)
		return;
	rts->my_task_tls = elf_arch__tls_offset(value, memsz, align);
	rts->tls_known = true;
}

void rts_symbols__find(struct rts *rts)
{
	struct collect c = {.rts = rts, .found = FOUND_SYMTAB};

	elf__symbols(rts->image->elf, ELF_SYMTAB, on_symbol, &c);
	c.found = FOUND_DEBUGFILE;
	/* results are used for all processes of the file, and for probes, so not with a
	 * process's own file */
	if (rts->image->debug && !rts->image->debug_is_own)
		elf__symbols(rts->image->debug, ELF_SYMTAB, on_symbol, &c);
	c.found = FOUND_DYNSYM;
	elf__symbols(rts->image->elf, ELF_DYNSYM, on_symbol, &c);

	rts->suspend = c.place[W_SUSPEND];
	rts->resume = c.place[W_RESUME];
	rts->tick = c.place[W_HANDLE_TICK];
	rts->prof_tick = c.place[W_HANDLE_PROF_TICK];
	rts->gc_sync = c.place[W_GC_SYNC];
	rts->gc_start = c.place[W_GC_START];
	rts->gc_end = c.place[W_GC_END];
	rts->stgrun = c.place[W_STGRUN];
	rts->capabilities = c.place[W_CAPABILITIES];
	rts->n_capabilities = c.place[W_N_CAPABILITIES];
	rts->main_cap = c.place[W_MAIN_CAP];
	rts->all_tasks = c.place[W_ALL_TASKS];
	rts->stats = c.place[W_STATS];
	rts->config = c.place[W_RTS_CONFIG];
	if (c.tls_found)
		executable_tls(rts, c.tls_value);
	if (!rts->way[0]) {
		/* my_task is thread-local in the threaded runtime only (rts/Task.c) */
		const char *way = c.tls_found ? "rts_thr" : "rts_v";

		if (c.place[W_CCS_MAIN].addr)
			way = c.tls_found ? "rts_thr_p" : "rts_p";
		rts_strings__set_way(rts, way);
	}
}
