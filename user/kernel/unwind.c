/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind: the unwind rows in the kernel's maps. A file's rows are one array map, made when the
 * first process that maps the file is followed, and shared by all others; unused rows are dropped
 * when the room is needed. The room is divided between users (base/shares.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/retry.h"
#include "base/base.h"
#include "base/shares.h"
#include "kernel_priv.h"
#include "unwind/cfi.h"
#include "safescope.skel.h"

/* Room for the rows of all files together: those of 600 MB of libraries. One user gets half. */
#define UNWIND_MAX_BYTES (128ULL << 20)

struct unwind_file {
	uint64_t dev, ino, changed_ns;
	uint64_t base;
	uint64_t bytes;
	uint32_t buckets; /* 0: the file has no rows, or there was no room */
	uint32_t rows;
	uint32_t users;
	bool known;
	int err; /* it could not be read, so nobody uses it; if the error is transient it is read
		    again */
	struct retry again;
};

/* One process. */
struct unwind_user {
	pid_t pid;
	uid_t uid; /* whose account it is on */
	uint32_t *files;
	size_t n, cap;
	struct kernel_left_out left_out;
	/* the bytes that its user had when a file's rows exceeded the limit: no other file is
	 * read until the user has fewer; 0: that has not happened */
	uint64_t full_at;
};

struct unwind {
	uint32_t generation; /* of the lists of mappings, counted across all processes */
	struct unwind_file files[WIRE_UNWIND_FILES]; /* by id; 0 is unused */
	uint64_t bytes, rows;			     /* of all files */
	struct shares *shares;			     /* of the files in use, by id */
	struct unwind_user *users;
	size_t n_users, cap_users;
	/* files whose rows are in a map of their own that is not in the map of maps yet */
	uint32_t new_ids[WIRE_UNWIND_FILES];
	int new_fds[WIRE_UNWIND_FILES];
	uint32_t n_new;
};

int unwind__new(struct unwind **ret_unwind)
{
	struct unwind *unwind = calloc(1, sizeof(*unwind));
	int err = unwind ? shares__new(WIRE_UNWIND_FILES - 1, UNWIND_MAX_BYTES, &unwind->shares)
			 : -ENOMEM;

	if (err) {
		free(unwind);
		return err;
	}
	*ret_unwind = unwind;
	return 0;
}

void unwind__free(struct unwind *unwind)
{
	if (!unwind)
		return;
	for (size_t i = 0; i < unwind->n_users; i++)
		free(unwind->users[i].files);
	for (uint32_t i = 0; i < unwind->n_new; i++)
		close(unwind->new_fds[i]);
	free(unwind->users);
	shares__free(unwind->shares);
	free(unwind);
}

static struct unwind_user *find_user(const struct unwind *u, pid_t pid)
{
	for (size_t i = 0; i < u->n_users; i++)
		if (u->users[i].pid == pid)
			return &u->users[i];
	return NULL;
}

static int get_user(struct unwind *u, pid_t pid, uid_t uid, struct unwind_user **ret_user)
{
	int err;

	*ret_user = find_user(u, pid);
	if (*ret_user)
		return 0;
	err = ARRAY_RESERVE(u->users, u->cap_users, u->n_users + 1, KERNEL_MAX_TARGETS);
	if (err)
		return err;
	*ret_user = &u->users[u->n_users++];
	**ret_user = (struct unwind_user){.pid = pid, .uid = uid};
	return 0;
}

static void drop_files(struct unwind *u, const struct unwind_user *user)
{
	for (size_t i = 0; i < user->n; i++) {
		u->files[user->files[i]].users--;
		shares__leave(u->shares, user->files[i], user->uid);
	}
}

void unwind__forget(struct kernel *kernel, pid_t pid)
{
	struct unwind *u = kernel->unwind;
	struct unwind_user *user = find_user(u, pid);
	__u32 key = (__u32)pid;

	if (!user)
		return;
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.unwind_maps), &key);
	drop_files(u, user);
	free(user->files);
	*user = u->users[--u->n_users];
}

/* ── files ───────────────────────────────────────────────────────────────────────────────── */

/* Drops the file's rows if they are not in the map of maps yet. */
static void forget_new(struct unwind *u, uint32_t id)
{
	for (uint32_t i = 0; i < u->n_new; i++) {
		if (u->new_ids[i] != id)
			continue;
		close(u->new_fds[i]);
		u->new_ids[i] = u->new_ids[--u->n_new];
		u->new_fds[i] = u->new_fds[u->n_new];
		return;
	}
}

static void evict(struct kernel *kernel, uint32_t id)
{
	struct unwind_file *f = &kernel->unwind->files[id];

	if (f->buckets) {
		bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.unwind_files), &id);
		forget_new(kernel->unwind, id);
	}
	kernel->unwind->bytes -= f->bytes;
	kernel->unwind->rows -= f->rows;
	memset(f, 0, sizeof(*f));
}

/* Makes room by evicting files that nobody uses. */
static bool make_room(struct kernel *kernel, uint64_t bytes)
{
	struct unwind *u = kernel->unwind;

	for (uint32_t id = 1; id < WIRE_UNWIND_FILES && u->bytes + bytes > UNWIND_MAX_BYTES; id++)
		if (u->files[id].known && !u->files[id].users && u->files[id].bytes)
			evict(kernel, id);
	return u->bytes + bytes <= UNWIND_MAX_BYTES;
}

static uint32_t find_file(const struct unwind *u, const struct target_code *code)
{
	for (uint32_t id = 1; id < WIRE_UNWIND_FILES; id++)
		if (u->files[id].known && u->files[id].dev == code->dev &&
		    u->files[id].ino == code->ino && u->files[id].changed_ns == code->changed_ns)
			return id;
	return 0;
}

static uint32_t free_file(struct kernel *kernel)
{
	struct unwind *u = kernel->unwind;

	for (uint32_t id = 1; id < WIRE_UNWIND_FILES; id++)
		if (!u->files[id].known)
			return id;
	for (uint32_t id = 1; id < WIRE_UNWIND_FILES; id++) {
		if (!u->files[id].users) {
			evict(kernel, id);
			return id;
		}
	}
	return 0;
}

/* Copies the rows into a map of their own; put_new() puts that into the map of maps. */
static int upload(struct unwind *u, uint32_t id, const struct cfi_rows *rows)
{
	/* must be as in bpf/unwind.bpf.h: the kernel compares the flags */
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__u32 n = rows->n_buckets + rows->n_rows;
	size_t bytes = n * sizeof(uint64_t);
	void *mem;
	int fd, err;

	if (u->n_new == WIRE_UNWIND_FILES)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_rows", sizeof(__u32), sizeof(__u64), n,
			    &opts);
	if (fd < 0)
		return fd;
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		err = -errno;
		close(fd);
		return err;
	}
	memcpy(mem, rows->words, bytes);
	munmap(mem, bytes);
	u->new_ids[u->n_new] = id;
	u->new_fds[u->n_new++] = fd;
	return 0;
}

/*
 * All maps are put in at once: at each write to a map of maps the kernel waits until no program can
 * be using the old contents (maybe_wait_bpf_programs in kernel/bpf/syscall.c), which takes ten
 * milliseconds or more.
 */
static int put_new(struct kernel *kernel)
{
	struct unwind *u = kernel->unwind;
	int map = bpf_map__fd(kernel->skel->maps.unwind_files);
	__u32 n = u->n_new;
	int err = 0;

	bool all = n && !bpf_map_update_batch(map, u->new_ids, u->new_fds, &n, NULL);
	uint32_t left = 0;

	/* if the kernel lacks memory for one, it is tried again together with the next new ones */
	for (uint32_t i = 0; i < u->n_new; i++) {
		int err2 =
			all ? 0 : bpf_map_update_elem(map, &u->new_ids[i], &u->new_fds[i], BPF_ANY);

		if (!err2) {
			close(u->new_fds[i]);
			continue;
		}
		err = err2;
		if (!retry__is_worth_it(err2)) {
			/* for processes that map it from now on; those that have it already find
			 * no rows */
			u->files[u->new_ids[i]].err = err2;
			close(u->new_fds[i]);
			continue;
		}
		u->new_ids[left] = u->new_ids[i];
		u->new_fds[left++] = u->new_fds[i];
	}
	u->n_new = left;
	return err;
}

/* Returns 0 if the user may use rows that nobody else uses, or an error. Called before they are
 * made. */
static int ask(const struct unwind *u, struct unwind_user *user, uint64_t bytes)
{
	uint64_t has = shares__of(u->shares, user->uid).bytes;
	int err = user->full_at && has >= user->full_at ? -EDQUOT
							: shares__ask(u->shares, user->uid, bytes);

	if (err && bytes)
		user->full_at = MAX(has, (uint64_t)1);
	return err;
}

/* True if there was no room for the file, among the rows or among the children. */
static bool may_do_later(int err)
{
	return err == -EDQUOT || err == -ENOSPC || err == -EBUSY;
}

/* True if the file's rows are to be made now. id 0: they were never made. */
static bool is_due(const struct unwind *u, uint32_t id, uint64_t now)
{
	return !id ||
	       (retry__is_worth_it(u->files[id].err) && !retry__waits(&u->files[id].again, now));
}

/* *id: a file that could not be read before; 0: a new one. */
static int add_file(struct kernel *kernel, const struct target *target, struct unwind_user *user,
		    size_t i, const struct target_code *code, uint32_t *id)
{
	struct unwind *u = kernel->unwind;
	struct cfi_rows rows = {0};
	struct unwind_file *f;
	struct retry again;
	uint64_t bytes;
	int err = ask(u, user, 0);

	if (err)
		return err;
	if (!*id)
		*id = free_file(kernel);
	if (!*id)
		return -ENOSPC;
	f = &u->files[*id];
	again = f->again;
	err = target__rows(target, i, &rows);
	bytes = err ? 0 : 8ULL * (rows.n_buckets + rows.n_rows);
	if (!err)
		err = ask(u, user, bytes);
	if (!err && !make_room(kernel, bytes))
		err = -ENOSPC;
	if (!err)
		err = upload(u, *id, &rows);
	/* also remembers files that have no rows or cannot be read: looking cost the loop its
	 * time */
	if (retry__is_worth_it(err))
		retry__begin(&again, time__monotonic_ns(), RETRY_NS, RETRY_LONGEST_NS);
	if (!may_do_later(err)) {
		*f = (struct unwind_file){.dev = code->dev,
					  .ino = code->ino,
					  .changed_ns = code->changed_ns,
					  .known = true};
		if (err && err != -ENOENT) {
			f->err = err;
			f->again = again;
		} else if (!err) {
			f->base = rows.base;
			f->buckets = rows.n_buckets;
			f->bytes = bytes;
			f->rows = rows.n_rows;
			u->bytes += bytes;
			u->rows += rows.n_rows;
		}
		err = err == -ENOENT ? 0 : err;
	}
	cfi_rows__free(&rows);
	return err;
}

/* ── processes ───────────────────────────────────────────────────────────────────────────── */

static int use_file(struct unwind *u, struct unwind_user *user, uint32_t id)
{
	int err;

	for (size_t i = 0; i < user->n; i++)
		if (user->files[i] == id)
			return 0;
	err = ARRAY_RESERVE(user->files, user->cap, user->n + 1, WIRE_UNWIND_FILES);
	if (!err)
		err = shares__use(u->shares, id, user->uid, u->files[id].bytes);
	if (err)
		return err;
	user->files[user->n++] = id;
	u->files[id].users++;
	return 0;
}

/* Of several errors, the one after which the next try comes soonest is returned. */
static int rank(int err)
{
	return err == -EBUSY ? 3 : retry__is_worth_it(err) ? 2 : err != 0;
}

/* -EAGAIN: `until` passed before the rows of all files were made. */
static int fill_maps(struct kernel *kernel, const struct target *target, uint64_t until,
		     struct unwind_user *user, struct wire_unwind_maps *maps)
{
	struct unwind *u = kernel->unwind;
	uint64_t now = time__monotonic_ns();
	size_t n = target__n_code(target);
	int worst = 0;
	bool later = false;

	for (size_t i = 0; i < n; i++) {
		struct wire_unwind_map *m = &maps->v[maps->n];
		struct target_code code;
		uint32_t id;
		int err = 0;
		bool due;

		if (target__code_at(target, i, &code))
			continue;
		if (maps->n == WIRE_UNWIND_MAPS) {
			user->left_out.process++;
			continue;
		}
		id = find_file(u, &code);
		due = is_due(u, id, now);
		if (due && time__monotonic_ns() >= until) {
			later = true;
			continue;
		}
		if (due)
			err = add_file(kernel, target, user, i, &code, &id);
		else if (u->files[id].err)
			err = u->files[id].err;
		else if (!u->files[id].users)
			err = ask(u, user, u->files[id].bytes);
		if (!err)
			err = use_file(u, user, id);
		if (err == -EDQUOT || err == -ENOSPC)
			user->left_out.user++;
		else if (rank(err) > rank(worst))
			worst = err;
		if (err)
			continue;
		m->start = code.start;
		m->end = code.end;
		m->base = code.bias + u->files[id].base;
		m->file = id;
		m->buckets = u->files[id].buckets;
		maps->n++;
	}
	return later ? -EAGAIN : worst;
}

int kernel__unwind(struct kernel *kernel, const struct target *target, uint64_t until_ns)
{
	const struct target_info *info = target__info(target);
	struct wire_unwind_maps *maps = calloc(1, sizeof(*maps));
	struct unwind *u = kernel->unwind;
	struct unwind_user *user, old;
	__u32 key = (__u32)info->pid;
	int err, err2, err3;

	if (!maps)
		return -ENOMEM;
	err = get_user(u, info->pid, target__account(target), &user);
	if (err) {
		free(maps);
		return err;
	}
	/* the process's previous files are kept until the new list is made */
	old = *user;
	*user = (struct unwind_user){.pid = old.pid, .uid = old.uid, .full_at = old.full_at};
	err = fill_maps(kernel, target, until_ns, user, maps);
	maps->generation = ++u->generation;
	drop_files(u, &old);
	free(old.files);
	err3 = put_new(kernel);
	err2 = bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.unwind_maps), &key, maps,
				   BPF_ANY);
	log_debug("pid %d: %u mappings with unwind rows; in all processes %llu rows, %llu bytes",
		  info->pid, maps->n, (unsigned long long)u->rows, (unsigned long long)u->bytes);
	free(maps);
	err = err ? err : err2 ? err2 : err3;
	if (err && err != -EAGAIN)
		log_verbose("pid %d: some of its files have no unwind rows: %s", info->pid,
			    strerror(-err));
	return err;
}

void kernel__unwind_left_out(const struct kernel *kernel, pid_t pid,
			     struct kernel_left_out *ret_left_out)
{
	const struct unwind_user *user = find_user(kernel->unwind, pid);

	*ret_left_out = user ? user->left_out : (struct kernel_left_out){0};
}
