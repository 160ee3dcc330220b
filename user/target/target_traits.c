/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What --list and --doctor report about a target besides its target_info. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "process/mem.h"
#include "process/openfile.h"
#include "target_priv.h"

/* rts/EventLogFormat.h, EVENT_HEADER_BEGIN: "hdrb" */
static const char eventlog_magic[] = "hdrb";
#define EVENTLOG_SUFFIX ".eventlog"
#define MAX_FDS		65536

/* ── linking and symbols ─────────────────────────────────────────────────────────────────── */

static bool holds(const struct elf_file *elf, const char *text)
{
	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		const uint8_t *data =
			seg->write ? NULL : elf__at(elf, seg->vaddr, (size_t)seg->filesz);

		if (data && memmem(data, (size_t)seg->filesz, text, strlen(text) + 1))
			return true;
	}
	return false;
}

/*
 * A static executable has no interpreter. musl's locale_map.c reads MUSL_LOCPATH, and hs_init
 * calls setlocale (rts/RtsStartup.c); glibc's start file has an ABI note (csu/abi-note.c).
 */
static const char *linking_of(const struct target *t)
{
	const struct image *exe = images__exe(&t->images);
	struct elf_section sec;
	const struct elf_file *elf;

	if (!exe || !exe->elf)
		return t->rts.dynamic ? "library" : "";
	elf = exe->elf;
	if (elf__section(elf, ".interp", &sec) == 0 || elf__n_symbols(elf, ELF_DYNSYM) > 1) {
		if (t->rts.dynamic)
			return strncmp(t->rts.image->base, "libHSrts", 8) == 0 ? "dynamic Haskell"
									       : "library";
		if (elf__section(elf, ".interp", &sec) == 0 && sec.data &&
		    memmem(sec.data, sec.size, "ld-musl", 7))
			return "dynamic musl";
		return "dynamic";
	}
	if (elf__section(elf, ".note.ABI-tag", &sec) == 0)
		return "static glibc";
	return holds(elf, "MUSL_LOCPATH") ? "static musl" : "static";
}

const char *target__symbols(const struct target *t)
{
	const struct elf_file *elf;

	if (!t->rts.image)
		return "";
	elf = t->rts.image->elf;
	if (elf__n_symbols(elf, ELF_SYMTAB) > 1)
		return "full";
	if (t->rts.image->debug)
		return "debug file";
	/* imported symbols alone name nothing in the program */
	return t->rts.suspend.found == FOUND_DYNSYM ? "dynamic only" : "none";
}

/* ── the eventlog ────────────────────────────────────────────────────────────────────────── */

struct eventlog_search {
	pid_t pid;
	struct found_eventlog {
		int number;
		char path[sizeof(((struct target_traits *)0)->eventlog)];
	} found;
};

static bool begins_as_eventlog(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, eventlog_magic, sizeof(magic)) == 0;
}

/* Stops the search at an eventlog: a file that starts like one, or, as it may still be empty, is
 * named like one. */
static int take_eventlog(void *ctx, int number, const char *path)
{
	size_t len = strlen(path), suffix = sizeof(EVENTLOG_SUFFIX) - 1;
	struct eventlog_search *s = ctx;
	bool is_log;
	int fd = -1;

	if (len >= sizeof(s->found.path) || open_file__own(s->pid, number, &fd) < 0)
		return 0;
	is_log = (len > suffix && strcmp(path + len - suffix, EVENTLOG_SUFFIX) == 0) ||
		 begins_as_eventlog(fd);
	fd__close(&fd);
	if (!is_log)
		return 0;
	s->found.number = number;
	memcpy(s->found.path, path, len + 1);
	return 1;
}

/* Runs in a child, since a file may block. */
static int find_eventlog(void *ctx, void *out)
{
	struct eventlog_search *s = ctx;
	int ret = open_files__each(s->pid, MAX_FDS, take_eventlog, s);

	if (ret > 0)
		memcpy(out, &s->found, sizeof(s->found));
	return MIN(ret, 0);
}

void target__traits(struct target *target, int timeout_ms, struct target_traits *ret_traits)
{
	struct eventlog_search search = {.pid = target->info.pid};
	struct target_traits traits = {0};
	pid_t *tids;
	void *out;
	size_t n;

	/* a process that is only sampled has no file to inspect */
	traits.linking = target->rts.image ? linking_of(target) : "";
	traits.symbols = target__symbols(target);
	if (proc__threads(target->info.pid, &tids, &n) == 0) {
		traits.threads = (uint32_t)n;
		free(tids);
	}
	if (mem__guard(target->info.pid, GUARD_PROC, timeout_ms, find_eventlog, &search,
		       sizeof(search.found), &out) == 0) {
		const struct found_eventlog *found = out;

		traits.eventlog_number = found->number;
		memcpy(traits.eventlog, found->path, sizeof(traits.eventlog) - 1);
		mem__guard_free(out, sizeof(search.found));
	}
	*ret_traits = traits;
}

void target__confirmed(const struct target *target, struct target_confirmed *ret_confirmed)
{
	const struct check_result *c = &target->check;

	*ret_confirmed = (struct target_confirmed){
		.capabilities = c->n_caps,
		.tasks = c->tasks,
		.tsos = c->tsos,
		.tls = c->tls_checked,
		.task_layout = c->variant == LAYOUT_CLK ? "with clock" : "without clock",
		.stgrun_ret = target->rts.stgrun_ret,
		.rts_file = target->rts.image ? target->rts.image->base : "",
		.votes = target->rts.callsites.votes,
		.runner_up = target->rts.callsites.runner_up,
	};
}
