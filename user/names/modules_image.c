/* SPDX-License-Identifier: GPL-2.0-or-later */
/* modules_image: a file's code and data, prepared for modules_read.c. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "elf/elf.h"
#include "modules_read_priv.h"

#define MAX_DATA   (256U << 20)
#define MAX_RANGES 64
/* InfoTables.h: layout, type, SRT; preceded by a constructor's description or a function's arity */
#define TABLE_SIZE	  16
#define EXTRA_SIZE	  8
#define PROF_SIZE	  16
#define TYPE_FUN	  8
#define TYPE_THUNK	  15
#define TYPE_FUN_STATIC	  14
#define TYPE_THUNK_STATIC 21
#define TYPE_LAST	  66

static uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

size_t mod_image__word(const struct mod_image *img, uint64_t vaddr)
{
	if (vaddr < img->data_start || (vaddr & 7))
		return img->n_words;
	return MIN((vaddr - img->data_start) / 8, (uint64_t)img->n_words);
}

static void set_word(struct mod_image *img, uint64_t vaddr, uint64_t value)
{
	size_t i = mod_image__word(img, vaddr);

	if (i < img->n_words)
		img->words[i] = value;
}

/* Applies the loader's relocations: a position-independent file has zeros in these places. */
static void relocate(struct mod_image *img)
{
	struct elf_section rela;

	if (elf__section(img->elf, ".rela.dyn", &rela) || !rela.data)
		return;
	for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= rela.size; at += sizeof(Elf64_Rela)) {
		struct elf_sym sym;
		Elf64_Rela r;

		memcpy(&r, rela.data + at, sizeof(r));
		switch (ELF64_R_TYPE(r.r_info)) {
		case R_X86_64_RELATIVE:
			set_word(img, r.r_offset, (uint64_t)r.r_addend);
			break;
		case R_X86_64_64:
			if (elf__symbol(img->elf, ELF_DYNSYM, ELF64_R_SYM(r.r_info), &sym))
				break;
			if (sym.shndx != SHN_UNDEF)
				set_word(img, r.r_offset, sym.value + (uint64_t)r.r_addend);
			else
				set_word(img, r.r_offset, MOD_SYMBOL | ELF64_R_SYM(r.r_info));
			break;
		default:
			break;
		}
	}
}

static void find_text(struct mod_image *img)
{
	struct elf_code ranges[MAX_RANGES];
	size_t n = elf__code_ranges(img->elf, ranges, MAX_RANGES);

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p;

		if (ranges[i].end - ranges[i].start <= img->text_end - img->text_start)
			continue;
		p = elf__at(img->elf, ranges[i].start, ranges[i].end - ranges[i].start);
		if (!p)
			continue;
		img->text = p;
		img->text_start = ranges[i].start;
		img->text_end = ranges[i].end;
	}
}

static const struct elf_segment *data_segment(const struct elf_file *elf)
{
	const struct elf_segment *best = NULL;

	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *s = elf__segment(elf, i);

		if (s->write && !s->exec && (!best || s->filesz > best->filesz))
			best = s;
	}
	return best;
}

int mod_image__init(const struct elf_file *elf, bool profiled, struct mod_image *ret_img)
{
	struct mod_image img = {.elf = elf, .profiled = profiled};
	const struct elf_segment *data = data_segment(elf);
	const uint8_t *p;

	find_text(&img);
	if (!img.text || !data || data->filesz > MAX_DATA)
		return -ENOENT;
	img.data_start = (data->vaddr + 7) & ~7ULL;
	if (data->filesz < 16)
		return -ENOENT;
	img.n_words = (data->filesz - (img.data_start - data->vaddr)) / 8;
	p = elf__at(elf, img.data_start, img.n_words * 8);
	if (!p)
		return -ENOENT;
	img.words = malloc(img.n_words * 8);
	if (!img.words)
		return -ENOMEM;
	memcpy(img.words, p, img.n_words * 8);
	relocate(&img);
	*ret_img = img;
	return 0;
}

void mod_image__fini(struct mod_image *img)
{
	free(img->words);
	img->words = NULL;
}

uint32_t mod_image__type(const struct mod_image *img, uint64_t vaddr)
{
	uint64_t info;

	if ((vaddr & 7) || vaddr < img->text_start + 64 || vaddr >= img->text_end)
		return 0;
	info = word_at(img->text + (vaddr - img->text_start) - 8);
	return (uint32_t)info > TYPE_LAST ? 0 : (uint32_t)info;
}

bool mod_image__is_static(uint32_t type)
{
	return type == TYPE_FUN_STATIC || type == TYPE_THUNK_STATIC;
}

uint64_t mod_image__table_size(const struct mod_image *img, uint32_t type)
{
	uint64_t size = TABLE_SIZE + (img->profiled ? PROF_SIZE : 0);

	return type < TYPE_THUNK ? size + EXTRA_SIZE : size;
}

static bool is_part(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '\'' || (c & 0x80);
}

static bool is_upper(char c)
{
	return (c >= 'A' && c <= 'Z') || (c & 0x80);
}

bool mod_name__is_package(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_part(text[i]) && text[i] != '-' && text[i] != '.' && text[i] != '+')
			return false;
	return len > 0;
}

bool mod_name__is_module(const char *text, size_t len)
{
	bool first = true;

	for (size_t i = 0; i < len; i++) {
		if (first ? !is_upper(text[i]) : !is_part(text[i]) && text[i] != '.')
			return false;
		first = text[i] == '.';
	}
	return len > 0 && !first;
}

bool mod_name__of_description(const char *text, size_t len, struct strtab *names,
			      struct mod_name *ret_name)
{
	const char *colon = memchr(text, ':', len), *end = text + len, *p, *module_end = NULL;

	if (!colon || !mod_name__is_package(text, (size_t)(colon - text)))
		return false;
	for (p = colon + 1; p < end && is_upper(*p);) {
		while (p < end && is_part(*p))
			p++;
		/* another component follows, in the end the constructor */
		if (p + 1 >= end || *p != '.')
			break;
		module_end = p++;
	}
	if (!module_end)
		return false;
	return strtab__add(names, text, (size_t)(colon - text), &ret_name->package) == 0 &&
	       strtab__add(names, colon + 1, (size_t)(module_end - colon - 1), &ret_name->module) ==
		       0;
}
