/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds separate debug files. All paths here are built from text that the target's owner wrote. */
#include "debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"
#include "base/retry.h"
#include "confine/confine.h"
#include "fetch.h"
#include "origin.h"

#define DEBUG_DIR   "/usr/lib/debug"
#define MAX_RANGES  64
#define CHECKSUM_MS 3000
/* When to look again after there was no time or no turn for it. */
#define LOOK_AGAIN_NS 500000000ULL

/* Where a debug file is looked for. */
struct place {
	int root;     /* the directory at which its paths begin */
	pid_t mounts; /* the process whose mounts those are; 0: our own */
	const struct image *image;
	int err; /* why something was not looked at; 0: everything was */
};

/* Notes an error that leaves open whether there is a debug file. -EREMOTEIO: see fetch.h. */
static void note(struct place *p, int err)
{
	if (retry__shows_nothing(err) || err == -EREMOTEIO)
		p->err = err;
}

/* Takes over fd, a file that was opened through the mounts of that process (0: our own). */
static int open_elf(pid_t mounts, int fd, const char *path, uid_t account,
		    struct elf_file **ret_elf)
{
	enum elf_source source = origin__is_roots(mounts, fd) ? ELF_OF_HOST : ELF_OF_ANYBODY;

	return elf__open_fd_for(fd, path, source, account, ret_elf);
}

/*
 * Whether a debug file may be used for the image. A file found by our own paths: if nobody can have
 * written it who could not have written the image's file. One found by the process's paths: it is
 * used for that process's names alone, but its file system must be local.
 */
static bool may_speak(const struct place *p, int path_fd)
{
	struct origin origin;
	struct stat st;

	origin__of(p->mounts, path_fd, p->image->uid, &origin);
	if (origin.reach == ORIGIN_FOREIGN || fstat(path_fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if (p->mounts || origin.reach == ORIGIN_OWNED)
		return true;
	return st.st_dev == p->image->dev && (st.st_uid == 0 || st.st_uid == p->image->uid) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Directories where only root mounts anything on a host, so that the path crosses no foreign file
 * system. */
static bool is_systems(const struct place *p, const char *path)
{
	static const char *const dirs[] = {"/usr/",  "/lib/", "/lib64/",     "/bin/",
					   "/sbin/", "/opt/", "/nix/store/", "/gnu/store/"};

	for (size_t i = 0; !p->mounts && i < ARRAY_SIZE(dirs); i++)
		if (strncmp(path, dirs[i], strlen(dirs[i])) == 0 && !strstr(path, "/../"))
			return true;
	return false;
}

/* Opens a path as a process with this root would. */
static int open_in(struct place *p, const char *path)
{
	int path_fd = -1, fd = -EACCES, err;
	char link[64];

	/* O_PATH first: it opens no device and waits for no writer */
	if (is_systems(p, path))
		err = fetch__find_here(p->root, path, 0, 0, &path_fd);
	else /* charged to the process that maps the image, whoever owns the file */
		err = fetch__find(p->root, path, p->image->account, &path_fd);
	if (!err && may_speak(p, path_fd)) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
		fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		err = fd < 0 ? -errno : 0;
	}
	fd__close(&path_fd);
	note(p, err);
	return err ? err : fd;
}

static bool same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	char x[41], y[41];

	return elf__build_id(a, x) && elf__build_id(b, y) && strcmp(x, y) == 0;
}

/* The checksum of the whole file, as in .gnu_debuglink. In a child, since the file may be large. */
static int read_checksum(void *ctx, void *out)
{
	static uint8_t buf[1 << 16];
	const int *fd = ctx;
	uLong crc = crc32(0, NULL, 0);
	uint64_t done = 0;

	while (done <= ELF_MAX_FILE) {
		ssize_t n = pread(*fd, buf, sizeof(buf), (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			*(uint32_t *)out = (uint32_t)crc;
			return 0;
		}
		crc = crc32(crc, buf, (uInt)n);
		done += (uint64_t)n;
	}
	return -EFBIG;
}

static int checksum(struct place *p, int fd, uint32_t *ret_crc)
{
	const struct confine how = {
		.name = "safescoped:crc", .user = p->image->account, .fds = &fd, .n_fds = 1};
	void *out;
	int err = confine__aside(&how, CHECKSUM_MS, CONFINE_HONEST_NS, read_checksum, &fd,
				 sizeof(*ret_crc), &out);

	note(p, err);
	if (err)
		return err;
	*ret_crc = *(uint32_t *)out;
	confine__free_out(out, sizeof(*ret_crc));
	return 0;
}

/* Takes over fd. NULL: not a usable ELF file. */
static struct elf_file *open_debug(struct place *p, int fd, const char *path)
{
	struct elf_file *elf;
	int err = open_elf(p->mounts, fd, path, p->image->account, &elf);

	note(p, err);
	if (err)
		return NULL;
	if (elf__n_symbols(elf, ELF_SYMTAB) > 1)
		return elf;
	elf__free(elf);
	return NULL;
}

static struct elf_file *by_build_id(struct place *p)
{
	const struct image *image = p->image;
	char id[41], path[128];
	struct elf_file *elf;
	int fd;

	if (!elf__build_id(image->elf, id) || strlen(id) < 4)
		return NULL;
	snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
	fd = open_in(p, path);
	elf = fd >= 0 ? open_debug(p, fd, path) : NULL;
	if (elf && !same_build_id(elf, image->elf)) {
		elf__free(elf);
		return NULL;
	}
	return elf;
}

int debugfile__parse_link(const uint8_t *data, uint64_t size, char ret_name[DEBUGLINK_NAME],
			  uint32_t *ret_crc)
{
	char name[DEBUGLINK_NAME] = "";
	uint64_t crc_at;
	size_t len;

	/* A copy: the file may change while it is looked at. */
	if (size)
		memcpy(name, data, MIN(size, (uint64_t)sizeof(name)));
	len = strnlen(name, sizeof(name));
	if (len == 0 || len == sizeof(name) || strchr(name, '/') || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return -EINVAL;
	crc_at = (len + 4) & ~3ULL; /* after the NUL, aligned to 4 */
	if (crc_at > size || size - crc_at < sizeof(*ret_crc))
		return -EINVAL;
	memcpy(ret_crc, data + crc_at, sizeof(*ret_crc));
	memcpy(ret_name, name, len + 1);
	return 0;
}

static struct elf_file *by_link(struct place *p)
{
	const struct image *image = p->image;
	static const char *const forms[] = {"%.*s/%s", "%.*s/.debug/%s", DEBUG_DIR "%.*s/%s"};
	char name[DEBUGLINK_NAME], path[PATH_MAX + DEBUGLINK_NAME + 32];
	const char *slash = strrchr(image->name, '/');
	struct elf_section sec;
	uint32_t want = 0, crc = 0;

	if (image->name[0] != '/' || !slash || slash - image->name >= PATH_MAX ||
	    elf__section(image->elf, ".gnu_debuglink", &sec) < 0 || !sec.data ||
	    debugfile__parse_link(sec.data, sec.size, name, &want) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct elf_file *elf;
		int fd;

		snprintf(path, sizeof(path), forms[i], (int)(slash - image->name), image->name,
			 name);
		fd = open_in(p, path);
		if (fd < 0)
			continue;
		if (checksum(p, fd, &crc) < 0 || crc != want) {
			log_verbose("%s: its checksum is not the one in %s, or could not be "
				    "computed: not used",
				    path, image->base);
			fd__close(&fd);
			continue;
		}
		elf = open_debug(p, fd, path);
		if (elf)
			return elf;
	}
	return NULL;
}

static int open_root(struct place *p, const char *path)
{
	p->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root >= 0)
		return 0;
	note(p, -errno);
	return -1;
}

/*
 * Looks along the host's paths. The result by build-id is the same for all processes, so it is
 * looked for once per file; the result by .gnu_debuglink depends on the path at which the process
 * maps the file. A file found either way is used for all. *ret_err: why something was not looked
 * at.
 */
static struct elf_file *look_at_host(const struct image *image, int *ret_err)
{
	struct place p = {.image = image};
	struct elf_file *debug = NULL;
	struct file *file = image->file;

	if (open_root(&p, "/") == 0) {
		if (!file || !file->debug_tried)
			debug = by_build_id(&p);
		if (file)
			file->debug_tried |= debug || !p.err;
		if (!debug)
			debug = by_link(&p);
	}
	fd__close(&p.root);
	if (file)
		file->debug = debug;
	*ret_err = p.err;
	return debug;
}

/* Whether the process's mounts or root differ from ours. */
static bool has_own_mounts(pid_t pid)
{
	struct stat own, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat("/proc/self/ns/mnt", &own) || stat(path, &its))
		return false;
	if (own.st_ino != its.st_ino)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return stat("/", &own) == 0 && stat(path, &its) == 0 &&
	       (own.st_dev != its.st_dev || own.st_ino != its.st_ino);
}

/* Charged to the process's user, since no other process shares it. */
static struct elf_file *look_at_its_own(pid_t pid, const struct image *image, int *ret_err)
{
	struct place p = {.image = image, .mounts = pid};
	struct elf_file *debug = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (open_root(&p, path) == 0) {
		debug = by_build_id(&p);
		if (!debug)
			debug = by_link(&p);
	}
	fd__close(&p.root);
	if (p.err)
		*ret_err = p.err;
	return debug;
}

static int look(pid_t pid, struct image *image)
{
	int err = 0;

	image->debug = look_at_host(image, &err);
	if (!image->debug && pid && has_own_mounts(pid)) {
		image->debug = look_at_its_own(pid, image, &err);
		if (image->debug && image->file &&
		    file_cache__charge(image->file->cache, image->account, image,
				       image->file->size) < 0) {
			elf__free(image->debug);
			image->debug = NULL;
		}
		image->debug_is_own = image->debug != NULL;
	}
	if (image->debug)
		log_verbose("%s: symbols from %s", image->base, elf__name(image->debug));
	return image->debug ? 0 : err;
}

int debugfile__look(pid_t pid, struct image *image)
{
	uint64_t now;

	if (!image->elf)
		return 0;
	/* another process may have found it */
	if (!image->debug && image->file)
		image->debug = image->file->debug;
	if (image->debug || image->debug_tried || elf__n_symbols(image->elf, ELF_SYMTAB) > 1)
		return 0;
	now = time__monotonic_ns();
	if (retry__waits(&image->debug_again, now))
		return -EBUSY;
	if (look(pid, image)) {
		retry__begin(&image->debug_again, now, LOOK_AGAIN_NS, RETRY_LONGEST_NS);
		return -EBUSY;
	}
	image->debug_tried = true;
	return 0;
}

struct image *debugfile__image_of(const char *path, const struct images *images)
{
	struct elf_file *elf = NULL;
	struct image *found = NULL;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || open_elf(0, fd, path, CONFINE_NOBODY, &elf) < 0)
		return NULL;
	for (size_t i = 0; i < images->n && !found; i++)
		if (images->images[i]->elf && same_build_id(elf, images->images[i]->elf))
			found = images->images[i];
	elf__free(elf);
	return found;
}

/* Whether both have code, and it is byte for byte the same. */
static bool same_code(const struct elf_file *a, const struct elf_file *b)
{
	struct elf_code x[MAX_RANGES], y[MAX_RANGES];
	size_t n = elf__code_ranges(a, x, MAX_RANGES);
	bool any = false;

	if (n != elf__code_ranges(b, y, MAX_RANGES))
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t len = x[i].end - x[i].start;
		const uint8_t *p = elf__at(a, x[i].start, len), *q = elf__at(b, y[i].start, len);

		if (x[i].start != y[i].start || x[i].end != y[i].end || !p || !q ||
		    memcmp(p, q, len) != 0)
			return false;
		any = true;
		elf__done_with(a, x[i].start, len);
		elf__done_with(b, y[i].start, len);
	}
	return any;
}

int debugfile__take(const char *path, bool force, struct image *image)
{
	struct elf_file *elf = NULL;
	char want[41] = "", got[41] = "";
	int fd, err;

	image->debug_tried = true;
	/* another process of the same program has taken it, and reads from it */
	if (image->file && image->file->debug_given) {
		image->debug = image->file->debug;
		return 0;
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	err = fd < 0 ? -errno : open_elf(0, fd, path, CONFINE_NOBODY, &elf);
	if (err < 0) {
		log_error("--symbols %s: %s; give the unstripped version of %s", path,
			  err == -ENOEXEC || err == -EMEDIUMTYPE
				  ? "not an ELF file for this processor"
				  : strerror(-err),
			  image->base);
		return -EINVAL;
	}
	if (elf__n_symbols(elf, ELF_SYMTAB) <= 1) {
		log_error("--symbols %s: it has no symbols; give the unstripped version of %s",
			  path, image->base);
		elf__free(elf);
		return -EINVAL;
	}
	elf__build_id(image->elf, want);
	elf__build_id(elf, got);
	if (strcmp(want, got) != 0 || (!want[0] && !same_code(elf, image->elf))) {
		if (!force) {
			log_error("--symbols %s: from another build (build-id %s, %s has %s); give "
				  "a file from the same build, or --force",
				  path, got[0] ? got : "none", image->base,
				  want[0] ? want : "none");
			elf__free(elf);
			return -EINVAL;
		}
		log_warn("--symbols %s: from another build (build-id %s, %s has %s); names may be "
			 "wrong",
			 path, got[0] ? got : "none", image->base, want[0] ? want : "none");
	}
	elf__free(image->debug);
	image->debug = elf;
	image->debug_is_own = false;
	if (image->file) {
		image->file->debug = elf;
		image->file->debug_tried = image->file->debug_given = true;
	}
	return 0;
}
