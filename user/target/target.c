/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens a process, finds and checks its GHC runtime, and reports in one line what is wrong. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/elf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/limit.h"
#include "base/retry.h"
#include "elf/arch.h"
#include "process/debugfile.h"
#include "process/fetch.h"
#include "names/names.h"
#include "target_priv.h"

/* Limit on directories of an executable's run path that are searched. */
#define RUN_PATHS_MAX 16
/* Minimum length of code unpacked by a packer. */
#define PACKED_MIN (64U << 10)

void target__free(struct target *target)
{
	if (!target)
		return;
	target__cancel(target);
	ccs_table__free(target->ccs);
	names__free(target->names);
	images__free(&target->images);
	fd__close(&target->pidfd);
	fd__close(&target->info.probe_file);
	free(target->symbols_path);
	free(target);
}

const struct target_info *target__info(const struct target *target)
{
	return &target->info;
}

void target__set_unprobed(struct target *target, bool calls, bool gc)
{
	if (calls)
		target->info.suspend.found = target->info.resume.found = FOUND_NONE;
	if (gc)
		target->info.gc_start.found = target->info.gc_end.found = FOUND_NONE;
}

int target__pidfd(const struct target *target)
{
	return target->pidfd;
}

uid_t target__account(const struct target *target)
{
	return target->images.uid;
}

void target__left_out(const struct target *target, struct target_left_out *ret_left_out)
{
	ret_left_out->no_room = images__left_out(&target->images, IMAGE_NO_ROOM);
	ret_left_out->not_copied = images__left_out(&target->images, IMAGE_NOT_COPIED);
	ret_left_out->not_opened = images__left_out(&target->images, IMAGE_NOT_OPENED) +
				   images__left_out(&target->images, IMAGE_NOT_YET);
}

static bool lives(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&p, 1, 0) == 0;
}

static int open_process(struct target *t, pid_t pid)
{
	struct proc_stat st = {0};
	int err;

	err = pid > 0 ? proc__pidfd(pid, &t->pidfd) : -EINVAL;
	if (err == -EINVAL) {
		/* pidfd_open() accepts thread group leaders only */
		target__refuse(t, "no such process (perhaps a thread's ID); --list shows the "
				  "running GHC programs");
		return -ESRCH;
	}
	if (err < 0 && err != -ESRCH) {
		target__refuse(t, "cannot open: %s; %s", strerror(-err),
			       retry__shows_nothing(err) ? "try again" : "run as root");
		return err;
	}
	if (err == 0)
		err = proc__stat(pid, 0, &st);
	/* no descriptor or memory to look at it: it may well exist */
	if (retry__shows_nothing(err)) {
		target__refuse(t, "cannot be inspected: %s; try again", strerror(-err));
		return err;
	}
	if (err < 0 && lives(t->pidfd)) {
		target__refuse(t, "hidden (/proc is mounted with hidepid); run as root, or with "
				  "CAP_SYS_PTRACE");
		return -EPERM;
	}
	if (err < 0) {
		target__refuse(t, "no such process; --list shows the running GHC programs");
		return -ESRCH;
	}
	t->first = st;
	t->info.start_time_ns = proc__ticks_to_ns(st.start_ticks);
	memcpy(t->info.comm, st.comm, sizeof(t->info.comm));
	if (proc__ns_pid(pid, 0, &t->info.ns_pid) < 0)
		t->info.ns_pid = pid;
	t->info.clock_known = proc__clock_ahead(pid, &t->info.clock_ahead_ns) == 0;
	/* if it is not known, only its name is missing */
	(void)cgroup__of(pid, &t->cgroup);
	err = proc__account(pid, &t->images.uid);
	if (err < 0) {
		target__refuse(t, "cannot read its owner: %s; is it still running?",
			       strerror(-err));
		return err;
	}
	if (st.state == 'Z' && target__alive(t)) {
		target__refuse(t, "its main thread has exited: it can no longer be profiled, "
				  "although its other threads still run");
		return -EOWNERDEAD;
	}
	if (st.state == 'Z') {
		target__refuse(t, "has ended (a zombie); --list shows the running GHC programs");
		return -ESRCH;
	}
	return 0;
}

static int open_images(struct target *t, pid_t pid)
{
	int err = proc__exe(pid, t->exe, sizeof(t->exe));

	/* Neither a process that is ending nor a kernel thread has an executable. */
	if (err == -ESRCH && !t->first.kernel_thread) {
		target__refuse(t, "has ended; --list shows the running GHC programs");
		return -ESRCH;
	}
	if (err == -ESRCH && target__alive(t)) {
		target__refuse(t, "not a GHC program (a kernel thread); --list shows the running "
				  "GHC programs");
		return -ENOEXEC;
	}
	if (err == 0)
		err = images__refresh(&t->images, pid);
	if (err == -EACCES || err == -EPERM) {
		target__refuse(t, "cannot inspect it: %s; %s", strerror(-err),
			       proc__why_denied(pid).s);
		return err;
	}
	if (err < 0)
		target__refuse(t, "cannot read its mappings: %s; is it still running?",
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
		log_error("--symbols %s: pid %d has no readable executable to use it with",
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
 * in a file. A JIT's code is in such memory as well, but the program's own code is in its file.
 */
static bool is_packed(const struct target *t)
{
	const struct image *exe = images__exe(&t->images);

	if (exe && exe->elf && target__has_code(exe->elf))
		return false;
	for (size_t i = 0; i < t->images.n_maps; i++) {
		const struct image_map *map = &t->images.maps[i];

		if (!map->image && !map->special[0] && map->end - map->start >= PACKED_MIN)
			return true;
	}
	return false;
}

/* Reports a lack of resources, with the advice to try again unless a limit is the cause. Returns
 * -EBUSY. */
static int refuse_for_now(struct target *t, const char *name, int err)
{
	const char *lacked = err == -ENOMEM			? "memory"
			     : err == -EMFILE || err == -ENFILE ? "descriptor"
								: "time";
	struct limit_text why = limit__why(err);

	target__refuse(t, "no %s was left to inspect %s%s", lacked, name,
		       why.text[0] ? why.text : "; try again");
	return -EBUSY;
}

/* Reports why it is not a GHC program that can be profiled: -ENOEXEC, -ENOTSUP, -EACCES, or
 * -EBUSY. */
static int not_ghc(struct target *t, pid_t pid)
{
	const struct image *exe = images__exe(&t->images);
	char link[64];
	uint16_t machine = 0;
	uint8_t class = 0;
	int fd;

	for (size_t i = 0; i < t->images.n; i++) {
		const struct image *image = t->images.images[i];

		if (file__may_be_read_later(image->file))
			return refuse_for_now(t, image->name, image->file->elf_err);
	}
	if (images__left_out(&t->images, IMAGE_NOT_YET)) {
		target__refuse(t, "no descriptor, memory or time was left to open the files it "
				  "maps; try again");
		return -EBUSY;
	}
	/* discover__process() inspects them without taking room from their user */
	if (images__left_out(&t->images, IMAGE_NO_ROOM) && discover__process(t->cache, pid)) {
		target__refuse(t, "there is no room for all the files that its user's processes "
				  "map; try again");
		return -EBUSY;
	}
	if (exe && exe->elf_err == -EMEDIUMTYPE) {
		snprintf(link, sizeof(link), "/proc/%d/exe", pid);
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			elf__peek(fd, &machine, &class);
		fd__close(&fd);
		target__refuse(t, "%s is %s; only %s programs can be profiled", t->exe,
			       machine_name(machine, class), elf_arch_name);
		return -ENOEXEC;
	}
	if (is_packed(t)) {
		snprintf(t->why_sampled, sizeof(t->why_sampled),
			 "%.100s is packed (its code is in anonymous memory, not in a file): it "
			 "cannot be inspected; unpack it (upx -d) and start it again",
			 t->exe);
		if (t->sample)
			return 0;
		target__refuse(t, "%s", t->why_sampled);
		return -ENOTSUP;
	}
	if (!exe && images__left_out(&t->images, IMAGE_NOT_OPENED)) {
		target__refuse(
			t, "cannot open %s: its file system may give access only to its own user",
			t->exe);
		return -EACCES;
	}
	target__refuse(
		t, "not a GHC program (no RTS found in %s); --list shows the running GHC programs",
		t->exe);
	return -ENOEXEC;
}

/* Logs a place, for users who want to look at it with another tool. */
static void log_place(const struct target *t, const char *what, const struct rts_place *place)
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
			  rts_found__name(place->found));
}

/*
 * A threaded runtime has a thread for its timer (rts/posix/itimer/Pthread.c, later
 * rts/posix/ticker/), and its ticks show in switches that are recorded anyway: a trap for each tick
 * of each process would cost more than everything else that a daemon does at rest. Late ticks are
 * seen as one; but for cost centres in a profiled program each tick counts.
 */
static void place_tick(struct target *t)
{
	if (t->rts.threaded && !t->rts.profiled)
		t->info.tick = (struct target_probe){.found = FOUND_TICKER};
	else
		probe__place(t, RTS_TICK, false, &t->info.tick);
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
	probe__open_file(t);
	log_place(t, "suspendThread", &t->rts.suspend);
	log_place(t, "resumeThread", &t->rts.resume);
	probe__place(t, RTS_SUSPEND, true, &info->suspend);
	probe__place(t, RTS_RESUME, true, &info->resume);
	place_tick(t);
	/* synchronisation exists only between the threads of a threaded runtime */
	if (t->rts.threaded)
		probe__place(t, RTS_GC_SYNC, false, &info->gc_sync);
	probe__place(t, RTS_GC_START, false, &info->gc_start);
	probe__place(t, RTS_GC_END, true, &info->gc_end);
}

/* True if the dynamic linker, which runs after the exec, will map a runtime. */
static bool awaits_library(const struct target *t)
{
	const struct image *exe = images__exe(&t->images);

	return exe && exe->elf && elf__mentions(exe->elf, RUNTIME_LIBRARY);
}

/*
 * Adds the library in which the dynamic linker will probably find the runtime. A wrong guess is
 * harmless: it is compared with what the process maps. The path may lead to any file server.
 */
static bool add_library(struct target *t, int root, const char *path)
{
	struct stat st;
	int fd;

	if (fetch__find(root, path, elf__user(images__exe(&t->images)->elf), &fd))
		return false;
	if (fetch__stat(fd, &st) == 0 && S_ISREG(st.st_mode))
		images__of_file(&t->images, fd, path, path, false);
	close(fd);
	return true;
}

/* Adds the library from the first directory that has it. */
static void add_runtime_library(struct target *t)
{
	const struct image *exe = images__exe(&t->images);
	const char *slash = strrchr(t->exe, '/');
	struct elf_needs needs;
	size_t left = RUN_PATHS_MAX;
	bool added = false;
	int root;

	if (!exe || !exe->elf || elf__needs(exe->elf, RUNTIME_LIBRARY, &needs))
		return;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (const char *p = needs.path; *p && root >= 0 && !added && left; left--) {
		size_t len = strcspn(p, ":");
		bool origin = len >= 7 && strncmp(p, "$ORIGIN", 7) == 0;
		char path[PATH_MAX];
		int n;

		n = snprintf(path, sizeof(path), "%.*s%.*s/%s",
			     origin && slash ? (int)(slash - t->exe) : 0, t->exe,
			     (int)(len - (origin ? 7 : 0)), p + (origin ? 7 : 0), needs.library);
		p += len + (p[len] == ':');
		if (len && n >= 0 && n < (int)sizeof(path))
			added = add_library(t, root, path);
	}
	fd__close(&root);
}

static int new_target(pid_t pid, const struct target_opts *opts, struct target **ret_target)
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->pidfd = t->info.probe_file = -1;
	t->info.pid = pid;
	t->images.uid = getuid();
	t->info.ghc_version = t->info.way = t->info.exe = t->info.build_id = "";
	t->info.container = t->cgroup.container;
	t->info.pod = t->cgroup.pod;
	t->info.service = t->cgroup.service;
	t->info.cgroup = t->cgroup.path;
	if (opts) {
		t->cache = opts->cache;
		t->images.cache = target_cache__files(opts->cache);
		t->reason = opts->reason;
		t->reason_size = opts->reason_size;
		t->starting = opts->starting;
		t->unchecked = opts->unchecked;
		t->sample = opts->sample;
		t->force = opts->force;
	}
	if (opts && opts->symbols_path) {
		t->symbols_path = strdup(opts->symbols_path);
		if (!t->symbols_path) {
			target__free(t);
			return -ENOMEM;
		}
	}
	*ret_target = t;
	return 0;
}

/* Opens the process and finds its runtime; fills t->rts. */
static int find_runtime(struct target *t)
{
	pid_t pid = t->info.pid;
	int err;

	err = open_process(t, pid);
	if (err < 0)
		return err;
	err = open_images(t, pid);
	if (err < 0)
		return err;
	err = t->symbols_path ? take_symbols(t) : 0;
	if (err < 0)
		return err;
	err = rts__find(pid, &t->images, &t->rts);
	if (!err)
		return 0;
	if (retry__shows_nothing(err))
		return refuse_for_now(t, t->exe, err);
	return (t->starting || t->unchecked) && awaits_library(t) ? -EAGAIN : not_ghc(t, pid);
}

int target__open(pid_t pid, const struct target_opts *opts, struct target **ret_target,
		 enum target_verdict *ret_verdict)
{
	enum target_verdict verdict = TARGET_OK;
	struct target *t;
	int err;

	err = new_target(pid, opts, &t);
	if (err < 0) {
		log_error("pid %d: out of memory", pid);
		return err;
	}
	err = find_runtime(t);
	if (err < 0)
		goto out;
	/* a process that has just started is attached first, and checked when it is ready */
	if (t->why_sampled[0])
		verdict = TARGET_SAMPLED;
	else if (t->starting || t->unchecked)
		verdict = TARGET_NOT_READY;
	else
		err = live__check(t, &verdict);
	if (err < 0 && err != -ESRCH && err != -ENOMEM && t->reason) {
		verdict = TARGET_REFUSED;
		err = 0;
	}
	if (err < 0)
		goto out;
	fill_info(t);
	if (verdict == TARGET_OK)
		target__fill_wire(t);
	else if (verdict == TARGET_SAMPLED)
		target__fill_wire_sampled(t);
	else
		target__fill_wire_early(t);
	err = target__open_names(t);
	if (err < 0)
		goto no_memory;
	if (!target__alive(t)) {
		target__refuse(t, "has ended; --list shows the running GHC programs");
		err = -ESRCH;
		goto out;
	}
	t->reason = NULL;
	*ret_target = t;
	*ret_verdict = verdict;
	return 0;

no_memory:
	err = -ENOMEM;
	target__refuse(t, "out of memory");
out:
	target__free(t);
	return err;
}

bool target__untouched(const struct target *target)
{
	return target->check.verdict == CHECK_NOT_READY;
}

int target__open_file(int fd, const char *path, const struct target_opts *opts,
		      struct target **ret_target)
{
	char link[PROC_PATH_LEN];
	struct target *t;
	int err;

	err = new_target(0, opts, &t);
	if (err < 0)
		return err;
	snprintf(t->exe, sizeof(t->exe), "%s", path);
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", getpid(), fd);
	err = images__of_file(&t->images, fd, link, path, true);
	if (err == 0)
		add_runtime_library(t);
	if (err == 0 && t->symbols_path)
		err = take_symbols(t);
	if (err == 0)
		err = rts__find(0, &t->images, &t->rts);
	if (err == 0) {
		fill_info(t);
		target__fill_wire_early(t);
		if (!t->info.wire.flags)
			err = -ENOEXEC;
	}
	if (err < 0) {
		target__free(t);
		return err;
	}
	t->reason = NULL;
	*ret_target = t;
	return 0;
}
