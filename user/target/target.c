/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens a process, finds and checks its GHC runtime, and says in one line what is wrong. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "debugfile.h"
#include "insn.h"
#include "names.h"
#include "target_priv.h"

#define CHECK_TIMEOUT_MS 2000
/* Code that a packer unpacked is not less than this. */
#define PACKED_MIN (64U << 10)

const char *target__found_name(enum target_found found)
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
	case FOUND_MEMORY:
		return "memory";
	case FOUND_NONE:
		break;
	}
	return "none";
}

void target__free(struct target *target)
{
	if (!target)
		return;
	names__free(target->names);
	insn__free(target->insn);
	rts__free(&target->rts);
	images__free(&target->images);
	fd__close(&target->pidfd);
	free(target->symbols_path);
	free(target);
}

const struct target_info *target__info(const struct target *target)
{
	return &target->info;
}

int target__pidfd(const struct target *target)
{
	return target->pidfd;
}

bool target__alive(const struct target *target)
{
	struct pollfd pfd = {.fd = target->pidfd, .events = POLLIN};
	struct proc_stat st;

	if (poll(&pfd, 1, 0) != 0)
		return false;
	return proc__stat(target->info.pid, 0, &st) == 0 && st.start_ticks == target->start_ticks;
}

int target__refresh_maps(struct target *target)
{
	int err = images__refresh(&target->images, target->info.pid);

	/* The maps may be those of another process that got the pid meanwhile. */
	if (err == 0 && !target__alive(target))
		err = -ESRCH;
	return err;
}

static int open_process(struct target *t, pid_t pid)
{
	struct proc_stat st = {0};
	int err;

	err = pid > 0 ? proc__pidfd(pid, &t->pidfd) : -EINVAL;
	if (err == -EINVAL) {
		/* pidfd_open() takes thread group leaders only */
		log_error("pid %d: no such process (perhaps a thread's id); "
			  "--list shows the GHC programs that run",
			  pid);
		return -ESRCH;
	}
	if (err < 0 && err != -ESRCH) {
		log_error("pid %d: cannot open: %s; run as root", pid, strerror(-err));
		return err;
	}
	if (err == 0)
		err = proc__stat(pid, 0, &st);
	if (err < 0) {
		log_error("pid %d: no such process; --list shows the GHC programs that run", pid);
		return -ESRCH;
	}
	t->start_ticks = st.start_ticks;
	t->info.start_time_ns = proc__ticks_to_ns(st.start_ticks);
	memcpy(t->info.comm, st.comm, sizeof(t->info.comm));
	if (proc__ns_pid(pid, 0, &t->info.ns_pid) < 0)
		t->info.ns_pid = pid;
	if (st.state == 'Z') {
		log_error("pid %d: has ended (a zombie); --list shows the GHC programs that run",
			  pid);
		return -ESRCH;
	}
	return 0;
}

static int open_images(struct target *t, pid_t pid)
{
	int err = proc__exe(pid, t->exe, sizeof(t->exe));

	/* A kernel thread has no executable. */
	if (err == -ESRCH && target__alive(t)) {
		log_error(
			"pid %d: not a GHC program (a kernel thread); --list shows those that are",
			pid);
		return -ENOEXEC;
	}
	if (err == 0)
		err = images__refresh(&t->images, pid);
	if (err == -EACCES || err == -EPERM) {
		log_error("pid %d: may not look into it: %s; run as root (CAP_SYS_PTRACE)", pid,
			  strerror(-err));
		return err;
	}
	if (err < 0)
		log_error("pid %d: cannot read its mappings: %s; is it still running?", pid,
			  strerror(-err));
	return err;
}

/* --symbols is for the executable, unless it has the build-id of another file of the process. */
static int take_symbols(struct target *t)
{
	struct image *image = debugfile__image_of(t->symbols_path, &t->images);

	if (!image)
		image = images__exe(&t->images);
	if (!image || !image->elf) {
		log_error("--symbols %s: pid %d has no executable that can be read to go with it",
			  t->symbols_path, t->info.pid);
		return -EINVAL;
	}
	return debugfile__take(t->symbols_path, t->force, image);
}

static const char *machine_name(uint16_t machine, uint8_t class)
{
	if (class == ELFCLASS32 && (machine == EM_386 || machine == EM_X86_64))
		return "a 32-bit x86 program";
	if (class == ELFCLASS32)
		return "a 32-bit program";
	if (machine == EM_AARCH64)
		return "an aarch64 program";
	return "a program for another processor";
}

/*
 * A packer (UPX) unpacks the program into anonymous memory and runs it there: none of its code is
 * in a file. A JIT's code is in such memory too, but that program's own is in its file.
 */
static bool is_packed(const struct target *t)
{
	const struct image *exe = images__exe(&t->images);
	struct elf_code range;

	if (exe && exe->elf && elf__has_sections(exe->elf) &&
	    elf__code_ranges(exe->elf, &range, 1) > 0)
		return false;
	for (size_t i = 0; i < t->images.n_maps; i++) {
		const struct image_map *map = &t->images.maps[i];

		if (!map->image && !map->special[0] && map->end - map->start >= PACKED_MIN)
			return true;
	}
	return false;
}

/* -ENOEXEC or -ENOTSUP with its line. */
static int not_ghc(const struct target *t, pid_t pid)
{
	const struct image *exe = images__exe(&t->images);
	char link[64];
	uint16_t machine = 0;
	uint8_t class = 0;
	int fd;

	if (exe && exe->elf_err == -EMEDIUMTYPE) {
		snprintf(link, sizeof(link), "/proc/%d/exe", pid);
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			elf__peek(fd, &machine, &class);
		fd__close(&fd);
		log_error("pid %d: %s is %s; only x86-64 programs can be profiled", pid, t->exe,
			  machine_name(machine, class));
		return -ENOEXEC;
	}
	if (is_packed(t)) {
		log_error("pid %d: %s is packed (its code is in anonymous memory, not in a file): "
			  "it cannot be looked into; unpack it (upx -d) and start it again",
			  pid, t->exe);
		return -ENOTSUP;
	}
	log_error("pid %d: not a GHC program (no RTS found in %s); --list shows those that are",
		  pid, t->exe);
	return -ENOEXEC;
}

/* For who wants to look for himself, by another tool. */
static void say_place(const struct target *t, const char *what, const struct rts_place *place)
{
	const struct callsites *c = &t->rts.callsites;
	uint64_t offset;

	if (!place->addr ||
	    !elf__vaddr_to_offset(t->rts.image->elf, place->addr - t->rts.image->bias, &offset))
		return;
	if (place->found == FOUND_CALLSITES && c->votes)
		log_debug("pid %d: %s at file offset 0x%llx of %s: %u safe calls agree, at most %u "
			  "on anything else",
			  t->info.pid, what, (unsigned long long)offset, t->rts.image->base,
			  c->votes, c->runner_up);
	else
		log_debug("pid %d: %s at file offset 0x%llx of %s, by %s", t->info.pid, what,
			  (unsigned long long)offset, t->rts.image->base,
			  target__found_name(place->found));
}

static void fill_info(struct target *t)
{
	struct target_info *info = &t->info;
	const struct image *exe = images__exe(&t->images);

	if (exe && exe->elf && !elf__build_id(exe->elf, t->build_id))
		t->build_id[0] = '\0';
	info->exe = t->exe;
	info->build_id = t->build_id;
	info->ghc_version = t->rts.version;
	info->way = t->rts.way;
	info->threaded = t->rts.threaded;
	info->profiled = t->rts.profiled;
	info->debug = t->rts.debug;
	info->dynamic_rts = t->rts.dynamic;
	say_place(t, "suspendThread", &t->rts.suspend);
	say_place(t, "resumeThread", &t->rts.resume);
	probe__place(t, &t->rts.suspend, true, &info->suspend);
	probe__place(t, &t->rts.resume, true, &info->resume);
	probe__place(t, &t->rts.tick, false, &info->tick);
	probe__place(t, &t->rts.gc_start, false, &info->gc_start);
	probe__place(t, &t->rts.gc_end, false, &info->gc_end);
}

static void fill_wire(struct target *t)
{
	struct wire_target *w = &t->info.wire;
	const struct check_result *c = &t->check;

	t->info.capabilities = c->n_caps;
	t->info.caps_found = c->caps_found;
	t->info.layout_checked = true;
	w->layout = c->layout.wire;
	w->flags = (t->rts.threaded ? WIRE_TARGET_THREADED : 0) |
		   (t->rts.profiled ? WIRE_TARGET_PROFILED : 0) |
		   (c->caps_array ? WIRE_TARGET_CAPS_ARRAY : 0);
	w->my_task_tls = (int32_t)c->my_task_tls;
	w->main_cap = t->rts.threaded ? 0 : c->caps[0];
	w->capabilities = c->capabilities;
	w->n_capabilities = c->n_capabilities;
	w->stgrun_ret = t->rts.stgrun_ret;
	w->start_boottime_ns = t->info.start_time_ns;
	w->call_record_ns = TARGET_CALL_RECORD_NS;
	w->off_record_ns = TARGET_OFF_RECORD_NS;
}

static int check_live(struct target *t, pid_t pid, enum target_verdict *ret_verdict)
{
	int err;

	if (!t->rts.version[0]) {
		log_error("pid %d: a GHC program of unknown version (%s); its offsets cannot be "
			  "known",
			  pid, t->exe);
		return -ENOTSUP;
	}
	err = check__run(pid, &t->rts, &t->images, t->rts.version, CHECK_TIMEOUT_MS, &t->check,
			 &t->info.version_known);
	if (err == -EPERM || err == -EACCES) {
		log_error("pid %d: may not read its memory: %s; run as root (CAP_SYS_PTRACE)", pid,
			  strerror(-err));
		return err;
	}
	if (err == -ENOTSUP) {
		log_error("pid %d: GHC %s (%s): no layout is known for it; see the README for the "
			  "versions that are",
			  pid, t->rts.version, t->rts.way);
		return err;
	}
	if (err < 0) {
		log_error("pid %d: cannot check its runtime: %s; is it still running?", pid,
			  strerror(-err));
		return err;
	}
	if (t->check.verdict == CHECK_FAILED) {
		log_error("pid %d: GHC %s (%s): the live process does not confirm the layout: %s; "
			  "nothing was attached",
			  pid, t->rts.version, t->rts.way, t->check.why);
		return -ENOTSUP;
	}
	/* A version that nobody has measured must confirm more than one that is known. */
	if (t->check.verdict == CHECK_OK && !t->info.version_known && t->check.tsos == 0) {
		log_error("pid %d: GHC %s (%s): unknown version, and no Haskell thread to confirm "
			  "its offsets by; try again while it works",
			  pid, t->rts.version, t->rts.way);
		return -ENOTSUP;
	}
	if (t->check.verdict == CHECK_OK && !t->info.version_known)
		log_info("pid %d: GHC %s (%s): unknown version, offsets confirmed live (by %u "
			 "Tasks, "
			 "%u Haskell threads and %u safe calls in its code)",
			 pid, t->rts.version, t->rts.way, t->check.tasks, t->check.tsos,
			 t->rts.callsites.offset_votes);
	*ret_verdict = t->check.verdict == CHECK_OK ? TARGET_OK : TARGET_NOT_READY;
	return 0;
}

int target__open(pid_t pid, const struct target_opts *opts, struct target **ret_target,
		 enum target_verdict *ret_verdict)
{
	enum target_verdict verdict = TARGET_OK;
	struct target *t;
	int err = -ENOMEM;

	t = calloc(1, sizeof(*t));
	if (!t)
		goto no_memory;
	t->pidfd = -1;
	t->info.pid = pid;
	t->info.ghc_version = t->info.way = t->info.exe = t->info.build_id = "";
	if (opts && opts->symbols_path) {
		t->symbols_path = strdup(opts->symbols_path);
		if (!t->symbols_path)
			goto no_memory;
		t->force = opts->force;
	}
	err = open_process(t, pid);
	if (err < 0)
		goto out;
	err = open_images(t, pid);
	if (err < 0)
		goto out;
	err = t->symbols_path ? take_symbols(t) : 0;
	if (err < 0)
		goto out;
	if (rts__find(pid, &t->images, &t->rts) < 0) {
		err = not_ghc(t, pid);
		goto out;
	}
	err = check_live(t, pid, &verdict);
	if (err < 0)
		goto out;
	err = insn__new(&t->insn);
	if (err < 0)
		goto no_memory;
	fill_info(t);
	if (verdict == TARGET_OK)
		fill_wire(t);
	err = names__new(t, &t->names);
	if (err < 0)
		goto no_memory;
	if (!target__alive(t)) {
		log_error("pid %d: has ended; --list shows the GHC programs that run", pid);
		err = -ESRCH;
		goto out;
	}
	*ret_target = t;
	*ret_verdict = verdict;
	return 0;

no_memory:
	err = -ENOMEM;
	log_error("pid %d: out of memory", pid);
out:
	target__free(t);
	return err;
}
