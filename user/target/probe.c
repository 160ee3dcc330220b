/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code bytes of a process, from its files, and the place of a probe in a function. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "rts/insn.h"
#include "target_priv.h"

const uint8_t *target__code(const struct target *target, uint64_t addr, size_t *ret_len,
			    size_t *ret_before)
{
	const struct image_map *map = images__ever_at(&target->images, addr);
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

/* The path by which the file is opened, for as long as this mapping lasts. */
static const struct image_map *map_of(const struct target *target, const struct rts_place *place)
{
	const struct image_map *map = place->addr ? images__at(&target->images, place->addr) : NULL;

	return map && map->image && map->image->elf ? map : NULL;
}

void probe__place(const struct target *target, const struct rts_place *place, bool entry_state,
		  struct target_probe *ret_probe)
{
	const struct image_map *map = map_of(target, place);
	struct insn_choice choice;
	struct target_probe p = {0};
	size_t len, before;
	const uint8_t *code;
	uint64_t offset;

	memset(ret_probe, 0, sizeof(*ret_probe));
	if (!map)
		return;
	code = target__code(target, place->addr, &len, &before);
	if (!code || insn__choose_probe(target->insn, code, MIN(len, (size_t)INSN_PROBE_CODE),
					place->addr, &choice) < 0)
		return;
	if (entry_state && (choice.stack != 0 || !choice.args_intact)) {
		/* Better a dear probe than a wrong argument. */
		memset(&choice, 0, sizeof(choice));
		snprintf(choice.text, sizeof(choice.text), "(first instruction)");
	}
	p.addr = place->addr + choice.offset;
	if (!elf__vaddr_to_offset(map->image->elf, p.addr - map->bias, &offset))
		return;
	p.offset = offset;
	p.dev = map->image->dev;
	p.ino = map->image->ino;
	p.found = place->found;
	p.emulated = choice.emulated;
	memcpy(p.path, map->image->path, sizeof(p.path));
	memcpy(p.insn, choice.text, sizeof(p.insn));
	*ret_probe = p;
}
