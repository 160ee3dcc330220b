/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the ELF files that a process maps, each once, and keeps track of where they lie. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/search.h"

#define IMAGES_MAX     8192
#define IMAGE_MAPS_MAX (1U << 18)
#define PAST_MAX       4096
#define PAGE	       4096ULL

static void image__free(struct image *image)
{
	if (!image)
		return;
	slots__free(&image->slots);
	if (image->debug_is_own)
		elf__free(image->debug);
	file__put(image->file);
	free(image->name);
	free(image);
}

void images__free(struct images *images)
{
	for (size_t i = 0; i < images->n; i++)
		image__free(images->images[i]);
	free(images->images);
	free(images->maps);
	free(images->past);
	proc_maps__free(&images->proc);
	*images = (struct images){.cache = images->cache};
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

	/* the last one that was there */
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
 * Where the file's addresses lie in the process, by the segment that this mapping shows. The
 * loader maps whole pages: the mapping may begin before the segment's first byte.
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

static struct image *find(const struct images *images, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < images->n; i++)
		if (images->images[i]->dev == dev && images->images[i]->ino == ino)
			return images->images[i];
	return NULL;
}

/* Takes fd over (also on failure). */
static int image__add(struct images *images, int fd, const char *path, const char *name,
		      struct image **ret_image)
{
	struct image *image;
	int err;

	err = array__reserve((void **)&images->images, &images->cap, images->n + 1, IMAGES_MAX,
			     sizeof(struct image *));
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
	snprintf(image->path, sizeof(image->path), "%s", path);
	err = file__get(images->cache, fd, image->base, &image->file);
	if (err < 0) {
		image__free(image);
		return err;
	}
	image->dev = image->file->dev;
	image->ino = image->file->ino;
	image->uid = image->file->uid;
	image->elf = image->file->elf;
	image->elf_err = image->file->elf_err;
	images->images[images->n++] = image;
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
	image = find(images, dev, ino);
	if (image) {
		fd__close(&fd);
		*ret_image = image;
		return 0;
	}
	err = image__add(images, fd, path, map->path, &image);
	if (err < 0)
		return err;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	image->is_exe = stat(exe, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	*ret_image = image;
	return 0;
}

/* The image that the previous reading had at the same place: saves opening it again. */
static struct image *known(const struct image_map *old, size_t n_old, const struct proc_maps *proc,
			   const struct proc_map *map)
{
	for (size_t i = 0; i < n_old; i++) {
		const struct proc_map *before;

		if (old[i].start != map->start || old[i].end != map->end || !old[i].image)
			continue;
		before = proc_maps__at(proc, map->start);
		if (before && before->ino == map->ino && before->dev_major == map->dev_major &&
		    before->dev_minor == map->dev_minor && before->offset == map->offset)
			return old[i].image;
	}
	return NULL;
}

static int add_map(struct images *images, pid_t pid, const struct proc_map *map,
		   const struct image_map *old, size_t n_old, const struct proc_maps *old_proc)
{
	struct image_map im = {.start = map->start, .end = map->end, .offset = map->offset};
	int err;

	if (map->ino != 0) {
		im.image = known(old, n_old, old_proc, map);
		if (!im.image)
			err = image__open(images, pid, map, &im.image);
		else
			err = 0;
		if (err == -ENOMEM || err == -E2BIG)
			return err;
		if (im.image && im.image->elf && mapping_bias(im.image->elf, map, &im.bias))
			im.image->bias = im.bias;
	}
	if (!im.image)
		im.special = map->path;
	err = array__reserve((void **)&images->maps, &images->cap_maps, images->n_maps + 1,
			     IMAGE_MAPS_MAX, sizeof(*images->maps));
	if (err < 0)
		return err;
	images->maps[images->n_maps++] = im;
	return 0;
}

/* What of the previous reading is not there any more. Only names are lost where it fails. */
static void keep_past(struct images *images, const struct image_map *old, size_t n_old)
{
	for (size_t i = 0; i < n_old; i++) {
		const struct image_map *now = images__at(images, old[i].start);

		if (!old[i].image || (now && now->image == old[i].image))
			continue;
		if (array__reserve((void **)&images->past, &images->cap_past, images->n_past + 1,
				   PAST_MAX, sizeof(*images->past)) < 0)
			return;
		images->past[images->n_past++] = old[i];
	}
}

int images__refresh(struct images *images, pid_t pid)
{
	struct image_map *old = images->maps;
	struct proc_maps old_proc = images->proc, proc;
	size_t n_old = images->n_maps;
	int err;

	err = proc__maps(pid, &proc);
	if (err < 0)
		return err;
	/* A zombie and a kernel thread have none. */
	if (proc.n == 0) {
		proc_maps__free(&proc);
		return -ESRCH;
	}
	images->maps = NULL;
	images->n_maps = images->cap_maps = 0;
	images->proc = proc;
	for (size_t i = 0; i < proc.n && err == 0; i++)
		if (proc.maps[i].exec)
			err = add_map(images, pid, &proc.maps[i], old, n_old, &old_proc);
	keep_past(images, old, n_old);
	free(old);
	proc_maps__free(&old_proc);
	return err;
}

int images__of_file(struct images *images, int fd, const char *path, const char *name, bool is_exe)
{
	/* after what is there already: an address is of one file */
	uint64_t bias = images->n_maps ? images->maps[images->n_maps - 1].end : 0;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), err;
	struct image *image;

	if (own < 0)
		return -errno;
	bias = (bias + PAGE - 1) & ~(PAGE - 1);
	err = image__add(images, own, path, name, &image);
	if (err < 0)
		return err;
	image->is_exe = is_exe;
	image->bias = bias;
	for (size_t i = 0; image->elf && i < elf__n_segments(image->elf); i++) {
		const struct elf_segment *seg = elf__segment(image->elf, i);
		uint64_t end = seg->vaddr + seg->filesz;

		if (!seg->exec || end <= seg->vaddr || end + bias < end)
			continue;
		err = array__reserve((void **)&images->maps, &images->cap_maps, images->n_maps + 1,
				     IMAGE_MAPS_MAX, sizeof(*images->maps));
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
