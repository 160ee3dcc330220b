/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds processes that run a GHC runtime, by the files that each maps, cheaply enough for every
 * process of a host. Each file is inspected once; the result is kept by device and inode.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/keyset.h"
#include "base/retry.h"
#include "process/fetch.h"
#include "process/file.h"
#include "process/image.h"
#include "process/proc.h"
#include "rts/rts.h"
#include "target_priv.h"

/* The slot's value is not NULL if the file holds a runtime. */
static const struct slot_key runtime_key;

/*
 * Translates an error of opening a file of a process to a result of look_into(). 0: there is
 * nothing to inspect, because it is gone or access is denied; -EMFILE, -EBUSY: nothing is known.
 */
static int shown_by(int err)
{
	if (err == -EMFILE)
		return err;
	/* -EREMOTEIO: see fetch__find() */
	return retry__shows_nothing(err) || err == -EREMOTEIO ? -EBUSY : 0;
}

/* 1: the file holds a runtime; 0: it does not; -EBUSY: there may be time for it later. */
static int look_into(struct file *file)
{
	void *holds;
	int found;

	if (slots__get(&file->slots, &runtime_key, &holds))
		return holds != NULL;
	if (file__may_be_read_later(file) || file__rests(file))
		return -EBUSY;
	/* another process that maps it may be able to read it */
	if (!file->elf && file->again_ns)
		return 0;
	found = file->elf ? rts__maybe_in(file->elf) : 0;
	if (found == -EBUSY || file__put_off(file, found))
		return -EBUSY;
	return slots__put(&file->slots, &runtime_key, found > 0 ? file : NULL) != NULL;
}

static int look_into_exe(struct target_cache *cache, pid_t pid, int fd)
{
	struct file *file;
	int found, err = file__get(target_cache__files(cache), pid, fd, "/proc/PID/exe", &file);

	if (err)
		return shown_by(err);
	found = look_into(file);
	file__put(file);
	return found;
}

static int look_into_map(struct target_cache *cache, pid_t pid, const struct proc_map *map)
{
	char path[PROC_PATH_LEN];
	struct file *file;
	uint64_t dev, ino;
	int found, fd, err;

	err = proc__open_map(pid, map, path, &fd, &dev, &ino);
	if (!err)
		err = file__get(target_cache__files(cache), pid, fd, map->path, &file);
	if (err)
		return shown_by(err);
	found = look_into(file);
	file__put(file);
	return found;
}

static bool is_same_file(const struct proc_map *a, const struct proc_map *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* GHC's own libraries first, which saves inspecting the others. Returns like look_into(). */
static int look_into_libraries(struct target_cache *cache, pid_t pid)
{
	struct proc_maps maps;
	int found = 0, unknown = 0, err = proc__maps(pid, &maps);

	if (err < 0)
		return shown_by(err);
	for (int pass = 0; found <= 0 && pass < 2; pass++) {
		const struct proc_map *last = NULL;

		for (size_t i = 0; found <= 0 && i < maps.n; i++) {
			const struct proc_map *m = &maps.maps[i];
			bool named = strncmp(path__base(m->path), "libHSrts", 8) == 0;

			if (!m->exec || !m->ino || named != !pass ||
			    (last && is_same_file(m, last)))
				continue;
			last = m;
			found = look_into_map(cache, pid, m);
			unknown = found < 0 ? found : unknown;
		}
	}
	proc_maps__free(&maps);
	return found > 0 ? found : unknown;
}

static int open_exe(pid_t pid)
{
	char exe[64];
	int fd;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	/* does not ask a file server */
	fd = open(exe, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool target__has_code(const struct elf_file *elf)
{
	struct elf_code range;

	return elf__has_sections(elf) && elf__code_ranges(elf, &range, 1) > 0;
}

/* True if neither the file nor what the dynamic linker maps for it holds a runtime, and it is not
 * packed. */
static bool is_plain(struct file *file)
{
	return !look_into(file) && file->elf && target__has_code(file->elf) &&
	       !elf__mentions(file->elf, RUNTIME_LIBRARY);
}

static struct plain_key key_of(const struct stat *st)
{
	return (struct plain_key){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec,
		.ctime_s = st->st_ctim.tv_sec,
		.ctime_ns = st->st_ctim.tv_nsec,
	};
}

bool discover__is_plain(struct target_cache *cache, pid_t pid)
{
	struct keyset *known = target_cache__plain(cache);
	struct plain_key key;
	struct file *file;
	struct stat st;
	int fd = open_exe(pid);
	bool plain;

	if (fd < 0)
		return false;
	if (fetch__stat(fd, &st)) {
		close(fd);
		return false;
	}
	key = key_of(&st);
	if (keyset__has(known, &key)) {
		close(fd);
		return true;
	}
	if (file__get(target_cache__files(cache), pid, fd, "/proc/PID/exe", &file))
		return false;
	plain = is_plain(file);
	if (plain)
		keyset__add(known, &key);
	file__put(file);
	return plain;
}

int discover__process(struct target_cache *cache, pid_t pid)
{
	int in_exe, in_libraries, err, fd = open_exe(pid);

	/* its main thread may have exited; target__open() then refuses it */
	if (fd == -ENOENT) {
		err = proc__living_thread(pid, &pid);
		fd = err ? err : open_exe(pid);
	}
	/* a kernel thread has no executable, and no libraries either */
	if (fd < 0)
		return shown_by(fd);
	in_exe = look_into_exe(cache, pid, fd);
	if (in_exe > 0)
		return in_exe;
	in_libraries = look_into_libraries(cache, pid);
	return in_libraries ? in_libraries : in_exe;
}

/*
 * The dynamic linker maps a whole library, and then other parts of it over that: what is left of
 * the first mapping is only in /proc/PID/maps.
 */
static int open_mapping(pid_t pid, uint64_t start, uint64_t ino, int *ret_fd)
{
	char path[PROC_PATH_LEN];
	const struct proc_map *map;
	struct proc_maps maps;
	uint64_t dev, ino2;
	int err;

	err = proc__maps(pid, &maps);
	if (err < 0)
		return err;
	map = proc_maps__at(&maps, start);
	err = map && map->ino == ino ? proc__open_map(pid, map, path, ret_fd, &dev, &ino2) : -ESRCH;
	proc_maps__free(&maps);
	return err;
}

int discover__mapping(struct target_cache *cache, pid_t pid, uint64_t start, uint64_t ino)
{
	struct file *file;
	int fd, found, err;

	err = open_mapping(pid, start, ino, &fd);
	if (!err)
		err = file__get(target_cache__files(cache), pid, fd, "", &file);
	if (err)
		return shown_by(err) ? shown_by(err) : err;
	found = look_into(file);
	file__put(file);
	return found;
}

int discover__all(struct target_cache *cache, int (*before_each)(void *ctx),
		  int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct dirent *ent;
	int result = 0;
	DIR *dir = opendir("/proc");

	if (!dir)
		return -errno;
	while (!result && (ent = readdir(dir))) {
		long pid = strtol(ent->d_name, NULL, 10);

		if (pid <= 0 || pid > INT32_MAX || pid == getpid())
			continue;
		if (before_each)
			result = before_each(ctx);
		if (!result && discover__process(cache, (pid_t)pid))
			result = fn(ctx, (pid_t)pid);
	}
	closedir(dir);
	return result;
}
