/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind rows for the mappings of a target. */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/base.h"
#include "unwind/cfi.h"
#include "target_priv.h"

static bool is_vdso(const struct image_map *map)
{
	return !map->image && map->special && strcmp(map->special, "[vdso]") == 0;
}

size_t target__n_code(const struct target *target)
{
	return target->images.n_maps;
}

int target__code_at(const struct target *target, size_t i, struct target_code *ret_code)
{
	const struct image_map *map = &target->images.maps[i];
	struct target_code code = {.start = map->start, .end = map->end, .bias = map->bias};

	if (is_vdso(map)) {
		/* the kernel's builder links it at address 0 (arch/x86/entry/vdso) */
		code.bias = map->start;
	} else if (map->image && map->image->elf) {
		code.dev = map->image->dev;
		code.ino = map->image->ino;
		if (map->image->file)
			code.changed_ns = (uint64_t)map->image->file->ctime.tv_sec * 1000000000ULL +
					  (uint64_t)map->image->file->ctime.tv_nsec;
	} else {
		return -ENOENT;
	}
	*ret_code = code;
	return 0;
}

/* The kernel maps the same vdso into all 64-bit processes: ours is read instead of the target's. */
static int vdso_rows(const struct image_map *theirs, struct cfi_rows *ret_rows)
{
	uint64_t at = getauxval(AT_SYSINFO_EHDR);
	const struct proc_map *ours;
	struct elf_file *elf;
	struct proc_maps maps;
	int err;

	if (!at)
		return -ENOENT;
	err = proc__maps(getpid(), &maps);
	if (err < 0)
		return err;
	ours = proc_maps__at(&maps, at);
	err = -ENOENT;
	if (ours && ours->end - ours->start == theirs->end - theirs->start)
		err = elf__open_bytes((const void *)at, ours->end - at, "[vdso]", &elf);
	proc_maps__free(&maps);
	if (err < 0)
		return err;
	err = cfi__new(elf, false, ret_rows);
	elf__free(elf);
	return err;
}

int target__rows(const struct target *target, size_t i, struct cfi_rows *ret_rows)
{
	const struct image_map *map = &target->images.maps[i];

	if (is_vdso(map))
		return vdso_rows(map, ret_rows);
	if (!map->image || !map->image->elf)
		return -ENOENT;
	/* GHC's code is in the executable and in libraries named libHS… */
	return cfi__new(map->image->elf,
			!map->image->is_exe && map->image != target->rts.image &&
				strncmp(map->image->base, "libHS", 5) != 0,
			ret_rows);
}
