/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of all processes, with reference counts. */
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/shares.h"
#include "confine/confine.h"
#include "proc.h"

/* The cache holds at most one file for this many descriptors of the limit. */
#define FILES_DESCRIPTORS_PART 4
/* When to retry a copy that failed. */
#define FETCH_AGAIN_NS 10000000000ULL
/* … and a file that there was no time or no turn to parse. */
#define PARSE_AGAIN_NS 500000000ULL

struct file_cache {
	struct shares *shares; /* of mapped files, by address */
	struct copies *copies; /* of files not on a local file system */
	struct file **files;
	size_t n, cap, n_unused;
	uint64_t look_ups;
	uint64_t root_dev; /* of "/"; 0: not known */
};

int file_cache__new(struct file_cache **ret_cache)
{
	struct file_cache *cache = calloc(1, sizeof(*cache));
	uint64_t max = MIN(FILES_MAX, fd__limit() / FILES_DESCRIPTORS_PART);
	struct stat root;
	int err;

	if (!cache)
		return -ENOMEM;
	err = shares__new(max, FILES_MAX_BYTES, &cache->shares);
	if (!err)
		err = copies__new(&cache->copies);
	if (err) {
		shares__free(cache->shares);
		free(cache);
		return err;
	}
	if (fetch__stat_path("/", &root) == 0)
		cache->root_dev = root.st_dev;
	*ret_cache = cache;
	return 0;
}

static struct copies *copies_of(const struct file *file)
{
	return file->cache ? file->cache->copies : NULL;
}

static void file__free(struct file *file)
{
	slots__free(&file->slots);
	elf__free(file->debug);
	elf__free(file->downloaded);
	elf__free(file->elf);
	fetch__release(copies_of(file), &file->fetched);
	free(file);
}

void file_cache__free(struct file_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->n; i++) {
		/* one that is still referenced is freed by its last file__put() */
		if (cache->files[i]->refs)
			cache->files[i]->cache = NULL;
		else
			file__free(cache->files[i]);
	}
	free(cache->files);
	shares__free(cache->shares);
	copies__free(cache->copies);
	free(cache);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file__is_as_it_was(const struct file *file, const struct stat *st)
{
	return file->ino == st->st_ino && file->dev == st->st_dev &&
	       file->size == (uint64_t)st->st_size && same_time(&file->mtime, &st->st_mtim);
}

static bool is_same(const struct file *file, const struct stat *st)
{
	return file__is_as_it_was(file, st) && same_time(&file->ctime, &st->st_ctim);
}

static struct file *find(struct file_cache *cache, const struct stat *st)
{
	for (size_t i = 0; i < cache->n; i++)
		if (is_same(cache->files[i], st))
			return cache->files[i];
	return NULL;
}

/* Only for a file without references. */
static void drop(struct file_cache *cache, size_t i)
{
	file__free(cache->files[i]);
	cache->files[i] = cache->files[--cache->n];
	cache->n_unused--;
}

static void drop_oldest(struct file_cache *cache)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < cache->n; i++)
		if (!cache->files[i]->refs &&
		    (oldest == SIZE_MAX ||
		     cache->files[i]->last_used < cache->files[oldest]->last_used))
			oldest = i;
	if (oldest != SIZE_MAX)
		drop(cache, oldest);
}

void file_cache__turn(struct file_cache *cache, uint64_t now_ns)
{
	/* drop() moves the last one into the free place */
	for (size_t i = cache->n_unused ? cache->n : 0; i-- > 0;) {
		const struct file *file = cache->files[i];
		uint64_t longest =
			file->dev == cache->root_dev ? FILES_UNUSED_ROOT_NS : FILES_UNUSED_NS;

		if (!file->refs && now_ns > file->unused_ns + longest)
			drop(cache, i);
	}
}

bool file__may_be_read_later(const struct file *file)
{
	return file->elf_err == -ETIME || retry__shows_nothing(file->elf_err);
}

/* Whom a copy of the file is charged to. */
static uid_t account_of(pid_t pid, const uid_t *uid)
{
	uid_t user;

	if (uid)
		return *uid;
	return pid && proc__account(pid, &user) == 0 ? user : CONFINE_NOBODY;
}

bool file__is_not_copied(const struct file *file)
{
	return file->elf_err == -ETIME || file->elf_err == -EREMOTEIO;
}

static void set_pause(struct file *file)
{
	uint64_t now = time__monotonic_ns();

	file->again_ns = 0;
	if (!retry__shows_nothing(file->elf_err) && !file__is_not_copied(file)) {
		retry__end(&file->again);
		return;
	}
	/* other processes opening it meanwhile do not prolong the pause */
	if (!retry__waits(&file->again, now))
		retry__begin(&file->again, now, RETRY_NS, RETRY_LONGEST_NS);
	if (file__is_not_copied(file))
		file->again_ns = now + FETCH_AGAIN_NS;
	else if (file->elf_err == -EBUSY || file->elf_err == -ETIMEDOUT)
		file->again_ns = now + PARSE_AGAIN_NS;
	else
		file->again_ns = file->again.until_ns;
}

/* Reads the ELF file, or notes why it cannot be read. */
static void load(struct file *file, pid_t pid, const uid_t *uid, int path_fd, const struct stat *st,
		 const char *name)
{
	struct fetched fetched = {.fd = -1};
	uid_t account = account_of(pid, uid);
	enum elf_source source;

	file->elf_err = fetch__open(copies_of(file), pid, path_fd, st, account, &fetched);
	if (!file->elf_err) {
		source = fetched.is_copy    ? ELF_COPY
			 : fetched.is_roots ? ELF_OF_HOST
					    : ELF_OF_ANYBODY;
		file->elf_err = elf__open_fd_for(fetched.fd, name, source, account, &file->elf);
	}
	if (file->elf_err)
		fetch__release(copies_of(file), &fetched);
	else
		file->fetched = fetched;
	set_pause(file);
}

bool file__is_due(const struct file *file)
{
	return file->again_ns && !retry__waits(&file->again, time__monotonic_ns());
}

void file__read_again(struct file *file, pid_t pid, uid_t uid, int fd, const char *name)
{
	struct stat st;

	if (!file__is_due(file) || fetch__stat(fd, &st) < 0)
		return;
	/* a file changed meanwhile is a different one for whoever opens it */
	if (file__is_as_it_was(file, &st)) {
		file->ctime = st.st_ctim;
		load(file, pid, &uid, fd, &st, name);
	} else {
		file->again_ns = 0;
	}
}

bool file__put_off(struct file *file, int err)
{
	if (!retry__is_worth_it(err)) {
		retry__end(&file->put_off);
		return false;
	}
	retry__begin(&file->put_off, time__monotonic_ns(), RETRY_NS, RETRY_LONGEST_NS);
	return true;
}

bool file__rests(const struct file *file)
{
	return file->elf && retry__waits(&file->put_off, time__monotonic_ns());
}

static int new_file(const struct stat *st, struct file **ret_file)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->size = (uint64_t)st->st_size;
	file->uid = st->st_uid;
	file->mtime = st->st_mtim;
	file->ctime = st->st_ctim;
	file->refs = 1;
	*ret_file = file;
	return 0;
}

/* uid NULL: not charged to anybody. */
static int get(struct file_cache *cache, pid_t pid, const uid_t *uid, int fd, const char *name,
	       struct file **ret_file)
{
	struct file *file = NULL;
	struct stat st;
	int err = fetch__stat(fd, &st);

	if (!err && cache)
		file = find(cache, &st);
	/* an unreferenced file needs room like a newly opened one */
	if (!err && cache && uid && (!file || !file->refs))
		err = shares__ask(cache->shares, *uid, (uint64_t)st.st_size);
	if (!err && !file && cache)
		err = ARRAY_RESERVE(cache->files, cache->cap, cache->n + 1,
				    FILES_MAX + FILES_MAX_UNUSED + 1);
	if (err)
		goto out;
	if (file) {
		if (!file->refs++)
			cache->n_unused--;
		if (file->again_ns && time__monotonic_ns() >= file->again_ns)
			load(file, pid, uid, fd, &st, name);
	} else {
		err = new_file(&st, &file);
		if (err)
			goto out;
		file->cache = cache;
		load(file, pid, uid, fd, &st, name);
		if (cache)
			cache->files[cache->n++] = file;
	}
	if (cache)
		file->last_used = ++cache->look_ups;
	*ret_file = file;
out:
	fd__close(&fd);
	return err;
}

int file__get(struct file_cache *cache, pid_t pid, int fd, const char *name, struct file **ret_file)
{
	return get(cache, pid, NULL, fd, name, ret_file);
}

int file__get_for(struct file_cache *cache, pid_t pid, uid_t uid, int fd, const char *name,
		  struct file **ret_file)
{
	struct file *file;
	int err = get(cache, pid, &uid, fd, name, &file);

	if (err)
		return err;
	if (cache)
		err = shares__use(cache->shares, (uintptr_t)file, uid, file->size);
	if (err)
		file__put(file);
	else
		*ret_file = file;
	return err;
}

void file__put_for(struct file *file, uid_t uid)
{
	if (file && file->cache)
		shares__leave(file->cache->shares, (uintptr_t)file, uid);
	file__put(file);
}

int file_cache__charge(struct file_cache *cache, uid_t uid, const void *what, uint64_t bytes)
{
	int err = cache ? shares__ask(cache->shares, uid, bytes) : 0;

	return !err && cache ? shares__use(cache->shares, (uintptr_t)what, uid, bytes) : err;
}

void file_cache__discharge(struct file_cache *cache, uid_t uid, const void *what)
{
	if (cache)
		shares__leave(cache->shares, (uintptr_t)what, uid);
}

void file__put(struct file *file)
{
	struct file_cache *cache;

	if (!file || --file->refs)
		return;
	cache = file->cache;
	if (!cache) {
		file__free(file);
		return;
	}
	cache->n_unused++;
	file->unused_ns = time__monotonic_ns();
	if (cache->n_unused > FILES_MAX_UNUSED)
		drop_oldest(cache);
}
