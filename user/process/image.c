/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens each ELF file that a process maps once, and keeps track of its mappings. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/search.h"

#define IMAGE_MAPS_MAX (1U << 18)
#define PAST_MAX       4096
/* Comparisons of mappings per reading, to find replaced ones. */
#define LOOKS_MAX (1U << 22)
/* Files that are kept although they are not mapped any more: their names may still be asked for. */
#define UNMAPPED_MAX 128
#define PAGE	     4096ULL
/* Files opened in one reading of the maps: most are libraries that other processes map too. */
#define OPENS_MAX (2 * IMAGES_MAX)
/* … of which this many are retries: a JIT's maps are read several times a second. */
#define AGAIN_MAX 16

static void image__free(const struct images *images, struct image *image)
{
	if (!image)
		return;
	slots__free(&image->slots);
	if (image->debug_is_own) {
		elf__free(image->debug);
		file_cache__discharge(images->cache, images->uid, image);
	}
	file__put_for(image->file, images->uid);
	free(image->name);
	free(image);
}

void images__free(struct images *images)
{
	for (size_t i = 0; i < images->n; i++)
		image__free(images, images->images[i]);
	free(images->images);
	free(images->maps);
	free(images->past);
	proc_maps__free(&images->proc);
	*images = (struct images){.cache = images->cache, .uid = images->uid};
}

uint64_t image__addr(const struct image *image, uint64_t vaddr)
{
	return vaddr + image->bias;
}

const struct image_map *images__at(const struct images *images, uint64_t addr)
{
	size_t at = search__first(images->n_maps, i, images->maps[i].end > addr);

	return at < images->n_maps && images->maps[at].start <= addr ? &images->maps[at] : NULL;
}

const struct image_map *images__ever_at(const struct images *images, uint64_t addr)
{
	const struct image_map *map = images__at(images, addr);

	/* the most recent one */
	for (size_t i = images->n_past; !map && i-- > 0;)
		if (addr >= images->past[i].start && addr < images->past[i].end)
			map = &images->past[i];
	return map;
}

const uint8_t *images__code(const struct images *images, uint64_t addr, size_t *ret_len,
			    size_t *ret_before)
{
	const struct image_map *map = images__ever_at(images, addr);
	const struct elf_file *elf;
	uint64_t vaddr;

	if (!map || !map->image || !map->image->elf)
		return NULL;
	elf = map->image->elf;
	vaddr = addr - map->bias;
	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		uint64_t at = vaddr - seg->vaddr;

		if (vaddr < seg->vaddr || at >= seg->filesz || !seg->exec)
			continue;
		*ret_len = seg->filesz - at;
		*ret_before = at;
		return elf__at(elf, vaddr, seg->filesz - at);
	}
	return NULL;
}

struct image *images__exe(const struct images *images)
{
	for (size_t i = 0; i < images->n_maps; i++)
		if (images->maps[i].image && images->maps[i].image->is_exe)
			return images->maps[i].image;
	return NULL;
}

/*
 * The bias of a file in the process, by the segment that this mapping belongs to. The loader maps
 * whole pages: the mapping may begin before the segment's first byte.
 */
static bool mapping_bias(const struct elf_file *elf, const struct proc_map *map, uint64_t *ret_bias)
{
	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		uint64_t first = seg->offset & ~(PAGE - 1);

		if (!seg->exec || map->offset < first || map->offset >= seg->offset + seg->filesz)
			continue;
		*ret_bias = map->start - (seg->vaddr - seg->offset + map->offset);
		return true;
	}
	return false;
}

/* Ignores an image whose file has been rewritten since, and is mapped again. */
static struct image *find(const struct images *images, int fd, uint64_t dev, uint64_t ino)
{
	struct stat st;
	bool known = fetch__stat(fd, &st) == 0;

	for (size_t i = 0; i < images->n; i++) {
		struct image *image = images->images[i];

		if (image->dev == dev && image->ino == ino &&
		    (!known || file__is_as_it_was(image->file, &st)))
			return image;
	}
	return NULL;
}

/* Takes over fd, also on failure. -EDQUOT: no room for it. */
static int image__add(struct images *images, pid_t pid, int fd, const char *path, const char *name,
		      struct image **ret_image)
{
	struct image *image;
	struct stat st;
	int err;

	if (images->n == IMAGES_MAX || fetch__stat(fd, &st) < 0 ||
	    (uint64_t)MAX(st.st_size, 0) >
		    IMAGES_MAX_BYTES - MIN(images->bytes, IMAGES_MAX_BYTES)) {
		fd__close(&fd);
		return -EDQUOT;
	}
	err = ARRAY_RESERVE(images->images, images->cap, images->n + 1, IMAGES_MAX);
	image = err < 0 ? NULL : calloc(1, sizeof(*image));
	if (!image) {
		fd__close(&fd);
		return err < 0 ? err : -ENOMEM;
	}
	image->name = strdup(name);
	if (!image->name) {
		fd__close(&fd);
		free(image);
		return -ENOMEM;
	}
	image->base = path__base(image->name);
	image->account = images->uid;
	snprintf(image->path, sizeof(image->path), "%s", path);
	err = file__get_for(images->cache, pid, images->uid, fd, image->base, &image->file);
	if (err < 0) {
		image__free(images, image);
		return err;
	}
	image->dev = image->file->dev;
	image->ino = image->file->ino;
	image->uid = image->file->uid;
	image->elf = image->file->elf;
	image->elf_err = image->file->elf_err;
	images->bytes += image->file->size;
	images->images[images->n++] = image;
	images->opened++;
	*ret_image = image;
	return 0;
}

static int image__open(struct images *images, pid_t pid, const struct proc_map *map,
		       struct image **ret_image)
{
	char path[PROC_PATH_LEN], exe[64];
	struct image *image;
	uint64_t dev, ino;
	struct stat st;
	int fd, err;

	err = proc__open_map(pid, map, path, &fd, &dev, &ino);
	if (err < 0)
		return err;
	image = find(images, fd, dev, ino);
	if (image) {
		fd__close(&fd);
		*ret_image = image;
		return 0;
	}
	err = image__add(images, pid, fd, path, map->path, &image);
	if (err < 0)
		return err;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	image->is_exe = fetch__stat_path(exe, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	*ret_image = image;
	return 0;
}

static void take_elf(struct images *images, struct image *image)
{
	image->elf = image->file->elf;
	image->elf_err = image->file->elf_err;
	image->came = image->elf != NULL;
	/* invalidates what was derived from all files together */
	images->opened += image->came;
}

/* A reading of the maps; these are the mappings of the previous one. */
struct reading {
	const struct image_map *maps;
	size_t n;
	const struct proc_maps *proc;
	size_t opens; /* files opened so far */
	size_t again; /* retries for lack of room or time */
};

/* The unchanged mapping of the previous reading at the same place, which saves opening the file
 * again. NULL: none. */
static const struct image_map *known(const struct images *images, struct reading *old,
				     const struct proc_map *map)
{
	size_t at = search__first(old->n, i, old->maps[i].start >= map->start);
	const struct image_map *was = at < old->n ? &old->maps[at] : NULL;
	const struct proc_map *before;

	if (!was || was->start != map->start || was->end != map->end)
		return NULL;
	/* retry: it may open this time */
	if (!was->image &&
	    (!was->lack || was->lack == IMAGE_NOT_OPENED || was->lack == IMAGE_NOT_YET))
		return NULL;
	before = proc_maps__at(old->proc, map->start);
	if (!before || before->ino != map->ino || before->dev_major != map->dev_major ||
	    before->dev_minor != map->dev_minor || before->offset != map->offset)
		return NULL;
	/* its user may have room by now */
	if (!was->image && was->lack == IMAGE_NO_ROOM && images->n < IMAGES_MAX &&
	    old->again < AGAIN_MAX) {
		old->again++;
		return NULL;
	}
	return was;
}

/* Reads a file that could not be read when the process was first seen to map it. */
static void catch_up(struct images *images, pid_t pid, const struct proc_map *map,
		     struct reading *old, struct image *image)
{
	char path[PROC_PATH_LEN];
	uint64_t dev, ino;
	int fd;

	if (image->elf)
		return;
	/* unless another process has read it meanwhile */
	if (!image->file->elf && file__is_due(image->file) && old->again < AGAIN_MAX) {
		old->again++;
		if (proc__open_map(pid, map, path, &fd, &dev, &ino) < 0)
			return;
		file__read_again(image->file, pid, images->uid, fd, image->base);
		fd__close(&fd);
	}
	take_elf(images, image);
}

/* `err`: of opening the file; image: NULL if that failed. */
static enum image_lack lack_of(int err, const struct image *image)
{
	if (err == -EDQUOT || (image && image->elf_err == -ENFILE))
		return IMAGE_NO_ROOM;
	/* -EREMOTEIO: see fetch__find() */
	if (retry__shows_nothing(err) || err == -EREMOTEIO)
		return IMAGE_NOT_YET;
	/* excludes processes that ended, and devices */
	if (err && err != -ESRCH && err != -ENOENT && err != -EINVAL)
		return IMAGE_NOT_OPENED;
	return image && file__is_not_copied(image->file) ? IMAGE_NOT_COPIED : IMAGE_LACKS_NOTHING;
}

static int add_map(struct images *images, pid_t pid, const struct proc_map *map,
		   struct reading *old)
{
	struct image_map im = {.start = map->start, .end = map->end, .offset = map->offset};
	const struct image_map *was = map->ino ? known(images, old, map) : NULL;
	int err = 0;

	if (was) {
		im.image = was->image;
		im.lack = was->lack;
		if (im.image) {
			catch_up(images, pid, map, old, im.image);
			im.lack = lack_of(0, im.image);
		}
	} else if (map->ino) {
		err = old->opens++ < OPENS_MAX ? image__open(images, pid, map, &im.image) : -EDQUOT;
		if (err == -ENOMEM || err == -E2BIG)
			return err;
		im.lack = lack_of(err, im.image);
	}
	if (im.image && im.image->elf && mapping_bias(im.image->elf, map, &im.bias))
		im.image->bias = im.bias;
	if (!im.image)
		im.special = map->path;
	err = ARRAY_RESERVE(images->maps, images->cap_maps, images->n_maps + 1, IMAGE_MAPS_MAX);
	if (err < 0)
		return err;
	images->maps[images->n_maps++] = im;
	return 0;
}

bool images__may_come_later(const struct images *images)
{
	for (size_t i = 0; i < images->n_maps; i++) {
		const struct image *image = images->maps[i].image;

		if (images->maps[i].lack == IMAGE_NOT_YET ||
		    (image && !image->elf && (image->file->elf || image->file->again_ns)))
			return true;
	}
	return false;
}

size_t images__left_out(const struct images *images, enum image_lack why)
{
	size_t n = 0;

	for (size_t i = 0; i < images->n_maps; i++)
		n += images->maps[i].lack == why;
	return n;
}

/* ── what is mapped no more ──────────────────────────────────────────────────────────────── */

static bool is_same_code(const struct image_map *a, const struct image_map *b)
{
	return a->image == b->image && a->bias == b->bias;
}

/* Whether maps[first] to maps[end - 1] have other code at the same place. */
static bool has_other(const struct image_map *maps, size_t first, size_t end,
		      const struct image_map *map)
{
	for (size_t i = first; i < end; i++)
		if (maps[i].start < map->end && maps[i].end > map->start &&
		    !is_same_code(&maps[i], map))
			return true;
	return false;
}

/* Records a range whose names may be outdated, including that of a mapping that is dropped from
 * `past`, after which nothing shows that it was there. */
static void add_retaken(struct images *images, const struct image_map *map)
{
	struct image_place *last = &images->retaken[IMAGES_RETAKEN_MAX - 1];

	if (images->n_retaken < IMAGES_RETAKEN_MAX) {
		images->retaken[images->n_retaken++] =
			(struct image_place){.start = map->start, .end = map->end};
		return;
	}
	last->start = MIN(last->start, map->start);
	last->end = MAX(last->end, map->end);
}

/* Finds mappings that replaced something else, of the previous reading or earlier. If there are too
 * many of both to compare, every added mapping counts as a replacement. */
static void note_retaken(struct images *images, const struct image_map *old, size_t n_old)
{
	size_t looks = 0;

	for (size_t i = 0; i < images->n_maps; i++) {
		const struct image_map *map = &images->maps[i];
		size_t first = search__first(n_old, k, old[k].end > map->start);
		size_t end = search__first(n_old, k, old[k].start >= map->end);
		bool is_new = first == end || !is_same_code(&old[first], map);

		looks += is_new ? images->n_past : 0;
		if (has_other(old, first, end, map) ||
		    (is_new &&
		     (looks > LOOKS_MAX || has_other(images->past, 0, images->n_past, map))))
			add_retaken(images, map);
	}
}

/* For a file that could be read only now: sets the bias of all its mappings, including those
 * processed before it was read; names made without it are outdated. */
static void note_came(struct images *images)
{
	size_t n = 0;

	for (size_t i = 0; i < images->n_maps; i++) {
		struct image_map *im = &images->maps[i];
		const struct proc_map *map = proc_maps__at(&images->proc, im->start);

		if (!im->image || !im->image->came)
			continue;
		if (map && mapping_bias(im->image->elf, map, &im->bias))
			im->image->bias = im->bias;
		add_retaken(images, im);
	}
	for (size_t i = 0; i < images->n_past; i++)
		if (images->past[i].image->came)
			add_retaken(images, &images->past[i]);
		else
			images->past[n++] = images->past[i];
	images->n_past = n;
	for (size_t i = 0; i < images->n; i++)
		images->images[i]->came = false;
}

/* Keeps mappings of the previous reading that are gone. A failure only loses names. */
static void keep_past(struct images *images, const struct image_map *old, size_t n_old)
{
	for (size_t i = 0; i < n_old; i++) {
		const struct image_map *now = images__at(images, old[i].start);

		if (!old[i].image || (now && now->image == old[i].image))
			continue;
		if (images->n_past == PAST_MAX) {
			for (size_t k = 0; k < PAST_MAX / 4; k++)
				add_retaken(images, &images->past[k]);
			images->n_past -= PAST_MAX / 4;
			memmove(images->past, images->past + PAST_MAX / 4,
				images->n_past * sizeof(*images->past));
		}
		if (ARRAY_RESERVE(images->past, images->cap_past, images->n_past + 1, PAST_MAX) < 0)
			return;
		images->past[images->n_past++] = old[i];
	}
}

bool images__take_retaken(struct images *images, struct image_place *ret_place)
{
	if (!images->n_retaken)
		return false;
	*ret_place = images->retaken[--images->n_retaken];
	return true;
}

/* Counts and marks the images of files that are not mapped any more, and may be dropped. */
static size_t mark_unmapped(struct images *images)
{
	size_t n = 0;

	for (size_t i = 0; i < images->n; i++)
		images->images[i]->goes = !images->images[i]->is_exe && !images->images[i]->stays;
	for (size_t i = 0; i < images->n_maps; i++)
		if (images->maps[i].image)
			images->maps[i].image->goes = false;
	for (size_t i = 0; i < images->n; i++)
		n += images->images[i]->goes;
	return n;
}

/* For a process that maps one file after the other, as when it reloads plugins again and again. */
static void make_room(struct images *images)
{
	size_t n = mark_unmapped(images), kept = 0;

	if (n <= UNMAPPED_MAX)
		return;
	/* keep those that were opened last */
	n -= UNMAPPED_MAX / 2;
	for (size_t i = 0; i < images->n; i++) {
		struct image *image = images->images[i];

		image->goes = image->goes && n;
		n -= image->goes;
	}
	for (size_t i = 0; i < images->n_past; i++)
		if (!images->past[i].image->goes)
			images->past[kept++] = images->past[i];
		else
			add_retaken(images, &images->past[i]);
	images->n_past = kept;
	kept = 0;
	for (size_t i = 0; i < images->n; i++) {
		struct image *image = images->images[i];

		if (!image->goes) {
			images->images[kept++] = image;
			continue;
		}
		images->bytes -= image->file->size;
		image__free(images, image);
	}
	images->n = kept;
}

int images__refresh(struct images *images, pid_t pid)
{
	struct image_map *old = images->maps;
	struct proc_maps old_proc = images->proc, proc;
	size_t n_old = images->n_maps;
	struct reading reading = {.maps = old, .n = n_old, .proc = &old_proc};
	int err;

	err = proc__maps(pid, &proc);
	if (err < 0)
		return err;
	/* zombies and kernel threads have none */
	if (proc.n == 0) {
		proc_maps__free(&proc);
		return -ESRCH;
	}
	images->maps = NULL;
	images->n_maps = images->cap_maps = 0;
	images->proc = proc;
	for (size_t i = 0; i < proc.n && err == 0; i++)
		if (proc.maps[i].exec)
			err = add_map(images, pid, &proc.maps[i], &reading);
	note_retaken(images, old, n_old);
	note_came(images);
	keep_past(images, old, n_old);
	make_room(images);
	free(old);
	proc_maps__free(&old_proc);
	return err;
}

int images__of_file(struct images *images, int fd, const char *path, const char *name, bool is_exe)
{
	/* above what is there already: an address must belong to one file */
	uint64_t bias = images->n_maps ? images->maps[images->n_maps - 1].end : 0;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), err;
	struct image *image;

	if (own < 0)
		return -errno;
	bias = (bias + PAGE - 1) & ~(PAGE - 1);
	err = image__add(images, 0, own, path, name, &image);
	if (err < 0)
		return err;
	image->is_exe = is_exe;
	image->bias = bias;
	for (size_t i = 0; image->elf && i < elf__n_segments(image->elf); i++) {
		const struct elf_segment *seg = elf__segment(image->elf, i);
		/* a debug file has no bytes there, but its symbols lie there */
		uint64_t end = seg->vaddr + seg->memsz;

		if (!seg->exec || end <= seg->vaddr || end + bias < end)
			continue;
		err = ARRAY_RESERVE(images->maps, images->cap_maps, images->n_maps + 1,
				    IMAGE_MAPS_MAX);
		if (err < 0)
			return err;
		images->maps[images->n_maps++] = (struct image_map){
			.start = bias + seg->vaddr,
			.end = bias + end,
			.offset = seg->offset,
			.bias = bias,
			.image = image,
		};
	}
	return 0;
}
