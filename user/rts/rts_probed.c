/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the runtime's functions can be probed: decided once per file, by the process that reads
 * it. */
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"
#include "rts_find_priv.h"

const struct rts_place *rts__probed(const struct rts *rts, enum rts_probed which)
{
	switch (which) {
	case RTS_SUSPEND:
		return &rts->suspend;
	case RTS_RESUME:
		return &rts->resume;
	case RTS_TICK:
		return &rts->tick;
	case RTS_GC_SYNC:
		return &rts->gc_sync;
	case RTS_GC_START:
		return &rts->gc_start;
	case RTS_GC_END:
		return &rts->gc_end;
	case RTS_PROBED:
		break;
	}
	return NULL;
}

const uint8_t *rts__function_code(struct elf_file *elf, uint64_t vaddr, size_t *ret_len,
				  uint64_t *ret_offset)
{
	struct elf_fde fde;

	if (!elf__find_fde(elf, vaddr, &fde) || fde.start != vaddr)
		return NULL;
	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);

		if (!seg->exec || vaddr < seg->vaddr || fde.end > seg->vaddr + seg->filesz)
			continue;
		*ret_len = fde.end - vaddr;
		*ret_offset = seg->offset + (vaddr - seg->vaddr);
		return elf__at(elf, vaddr, *ret_len);
	}
	return NULL;
}

void rts_probed__choose(struct rts *rts)
{
	const struct image *image = rts->image;
	struct insn *insn;

	if (insn__new(&insn) < 0)
		return;
	for (int i = 0; i < RTS_PROBED; i++) {
		const struct rts_place *place = rts__probed(rts, (enum rts_probed)i);
		uint64_t vaddr = place->addr - image->bias, offset;
		const uint8_t *code;
		size_t len;

		code = place->addr ? rts__function_code(image->elf, vaddr, &len, &offset) : NULL;
		rts->probes[i].known =
			code && insn__choose_probe(insn, code, MIN(len, (size_t)INSN_PROBE_CODE),
						   vaddr, &rts->probes[i].choice) == 0;
	}
	insn__free(insn);
}

static bool is_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return len < size;
}

bool rts_probed__check(const struct rts *rts)
{
	for (int i = 0; i < RTS_PROBED; i++) {
		const struct rts_probe *p = &rts->probes[i];
		const struct insn_choice *c = &p->choice;

		if (!confine__is_bool(&p->known))
			return false;
		if (!p->known)
			continue;
		if (!confine__is_bool(&c->emulated) || !confine__is_bool(&c->args_intact) ||
		    c->offset >= INSN_PROBE_WINDOW || !is_text(c->text, sizeof(c->text)))
			return false;
	}
	return true;
}
