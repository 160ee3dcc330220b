/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What --list and --doctor report of a target besides its target_info. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "process/mem.h"
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
	/* imports alone name nothing in the program */
	return t->rts.suspend.found == FOUND_DYNSYM ? "dynamic only" : "none";
}

/* ── the eventlog ────────────────────────────────────────────────────────────────────────── */

struct eventlog_ctx {
	pid_t pid;
};

static bool begins_as_eventlog(const char *link)
{
	char magic[4];
	struct stat st;
	ssize_t got;
	int fd;

	if (stat(link, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	got = pread(fd, magic, sizeof(magic), 0);
	close(fd);
	return got == sizeof(magic) && memcmp(magic, eventlog_magic, sizeof(magic)) == 0;
}

static bool is_eventlog(const char *link, const char *path)
{
	size_t len = strlen(path), suffix = sizeof(EVENTLOG_SUFFIX) - 1;

	if (path[0] != '/')
		return false;
	return (len > suffix && strcmp(path + len - suffix, EVENTLOG_SUFFIX) == 0) ||
	       begins_as_eventlog(link);
}

/* In a child: a file of FUSE may keep us waiting for as long as somebody likes. */
static int find_eventlog(void *ctx, void *out)
{
	const struct eventlog_ctx *c = ctx;
	char dir_path[64], link[sizeof(dir_path) + 32], path[256];
	struct dirent *ent;
	int seen = 0;
	DIR *dir;

	snprintf(dir_path, sizeof(dir_path), "/proc/%d/fd", c->pid);
	dir = opendir(dir_path);
	if (!dir)
		return -errno;
	while (seen++ < MAX_FDS && (ent = readdir(dir))) {
		ssize_t len;

		if (ent->d_name[0] < '0' || ent->d_name[0] > '9')
			continue;
		snprintf(link, sizeof(link), "%s/%.20s", dir_path, ent->d_name);
		len = readlink(link, path, sizeof(path) - 1);
		if (len <= 0)
			continue;
		path[len] = '\0';
		if (is_eventlog(link, path)) {
			memcpy(out, path, (size_t)len + 1);
			break;
		}
	}
	closedir(dir);
	return 0;
}

void target__traits(struct target *target, int timeout_ms, struct target_traits *ret_traits)
{
	struct eventlog_ctx ctx = {.pid = target->info.pid};
	struct target_traits traits = {.uid = (uid_t)-1};
	char path[64];
	struct stat st;
	pid_t *tids;
	void *out;
	size_t n;

	/* one that is only sampled has no file to look at */
	traits.linking = target->rts.image ? linking_of(target) : "";
	traits.symbols = target__symbols(target);
	if (proc__threads(target->info.pid, &tids, &n) == 0) {
		traits.threads = (uint32_t)n;
		free(tids);
	}
	snprintf(path, sizeof(path), "/proc/%d", target->info.pid);
	if (stat(path, &st) == 0)
		traits.uid = st.st_uid;
	if (mem__guard(target->info.pid, timeout_ms, find_eventlog, &ctx, sizeof(traits.eventlog),
		       &out) == 0) {
		memcpy(traits.eventlog, out, sizeof(traits.eventlog) - 1);
		mem__guard_free(out, sizeof(traits.eventlog));
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
