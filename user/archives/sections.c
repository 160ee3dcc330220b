/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sections: a section's content, from the archive's bytes, which may be unaligned. */
#include "sections_priv.h"

#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "base/search.h"

void section__reloc(const struct sections *all, const struct section *s, uint32_t i,
		    Elf64_Rela *ret_reloc)
{
	size_t at = s->order == NO_ORDER ? i : all->order[s->order + i];

	memcpy(ret_reloc, section__member(all, s)->bytes + s->relocs + at * sizeof(*ret_reloc),
	       sizeof(*ret_reloc));
}

bool member__symbol(const struct member *m, uint32_t i, struct member_symbol *ret_symbol)
{
	Elf64_Sym sym;
	uint32_t section;

	if (i >= m->n_symbols)
		return false;
	memcpy(&sym, m->bytes + m->symbols + (size_t)i * sizeof(sym), sizeof(sym));
	if (sym.st_name >= m->strings_len)
		return false;
	section = sym.st_shndx;
	if (section == SHN_XINDEX && m->more_shndx)
		memcpy(&section, m->bytes + m->more_shndx + (size_t)i * sizeof(section),
		       sizeof(section));
	else if (section >= SHN_LORESERVE)
		section = 0;
	*ret_symbol = (struct member_symbol){
		.name = (const char *)m->bytes + m->strings + sym.st_name,
		.section = section,
		.value = sym.st_value,
		.size = sym.st_size,
		.type = ELF64_ST_TYPE(sym.st_info),
		.bind = ELF64_ST_BIND(sym.st_info),
	};
	return true;
}

const struct section *member__section(const struct sections *all, const struct member *m,
				      uint32_t number)
{
	size_t at = search__first(m->n, i, all->v[m->first + i].number >= number);

	return at < m->n && all->v[m->first + at].number == number ? &all->v[m->first + at] : NULL;
}

void stretches__begin(struct stretches *r, const struct sections *all, const struct section *s)
{
	*r = (struct stretches){.all = all, .s = s};
}

bool stretches__next(struct stretches *r, uint32_t *ret_from, uint32_t *ret_to)
{
	while (r->next < r->s->n_relocs) {
		struct archives_field field = {0, 0};
		uint32_t from = r->at, begins;
		Elf64_Rela reloc;

		section__reloc(r->all, r->s, r->next++, &reloc);
		archives_arch__field((uint32_t)ELF64_R_TYPE(reloc.r_info), &field);
		if (!field.len)
			continue;
		/* an instruction without a prefix may begin the section */
		begins = (uint32_t)reloc.r_offset - MIN((uint32_t)reloc.r_offset, field.before);
		r->at = MAX(r->at, (uint32_t)reloc.r_offset + field.len - field.before);
		if (begins > from) {
			*ret_from = from;
			*ret_to = begins;
			return true;
		}
	}
	if (r->at >= r->s->size)
		return false;
	*ret_from = r->at;
	*ret_to = r->at = r->s->size;
	return true;
}

bool section__is_at(const struct sections *all, const struct section *s, const uint8_t *code)
{
	const uint8_t *data = section__data(all, s);
	struct stretches stretches;
	uint32_t from, to;

	stretches__begin(&stretches, all, s);
	while (stretches__next(&stretches, &from, &to))
		if (memcmp(code + from, data + from, to - from) != 0)
			return false;
	return true;
}
