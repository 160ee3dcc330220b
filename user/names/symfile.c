/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symfile: names functions of a process that is gone, by address, from the unstripped executable.
 * The load bias of a position-independent executable is recorded nowhere: it is the number of whole
 * pages by which every address becomes the start of a function.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "elf/elf.h"
#include "elf/symbols.h"
#include "symfile.h"

#define PAGE	      4096
#define PROBES_MAX    64
#define CANDIDATE_MAX 65536

struct symfile {
	struct elf_file *elf;
	struct symbols *symbols;
	uint64_t bias;
	char *name;
};

int symfile__open(const char *path, struct symfile **ret_file)
{
	struct symfile *file = calloc(1, sizeof(*file));
	int fd, err;

	if (!file)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	err = fd < 0 ? -errno : elf__open_fd(fd, path, &file->elf);
	if (!err)
		err = symbols__new(file->elf, &file->symbols);
	if (!err && !symbols__count(file->symbols))
		err = -ENODATA;
	if (!err) {
		file->name = strdup(path__base(path));
		err = file->name ? 0 : -ENOMEM;
	}
	if (err) {
		symfile__free(file);
		return err;
	}
	*ret_file = file;
	return 0;
}

void symfile__free(struct symfile *file)
{
	if (!file)
		return;
	symbols__free(file->symbols);
	elf__free(file->elf);
	free(file->name);
	free(file);
}

static bool begins_at(const struct symfile *file, uint64_t vaddr)
{
	struct symbols_hit hit;

	return symbols__lookup(file->symbols, vaddr, &hit) == 0 && hit.start == vaddr;
}

/* Tries every function of the file as the first address. */
struct search {
	struct symfile *file;
	const uint64_t *addrs;
	size_t n, best, tries;
};

static int try_symbol(void *ctx, const struct elf_sym *sym)
{
	struct search *s = ctx;
	uint64_t bias = s->addrs[0] - sym->value;
	size_t hits = 0;

	if (!sym->value || bias % PAGE || sym->value > s->addrs[0])
		return 0;
	if (s->tries++ > CANDIDATE_MAX)
		return 1;
	for (size_t i = 0; i < s->n; i++)
		hits += begins_at(s->file, s->addrs[i] - bias);
	if (hits > s->best) {
		s->best = hits;
		s->file->bias = bias;
	}
	return s->best == s->n;
}

void symfile__place(struct symfile *file, const uint64_t *addrs, size_t n)
{
	struct search s = {.file = file, .addrs = addrs, .n = MIN(n, (size_t)PROBES_MAX)};

	file->bias = 0;
	if (!n)
		return;
	for (size_t i = 0; i < s.n; i++)
		s.best += begins_at(file, addrs[i]);
	if (s.best < s.n && elf__is_pie_or_dso(file->elf))
		elf__symbols(file->elf, ELF_SYMTAB, try_symbol, &s);
	log_debug("%s: moved by 0x%llx, %zu of %zu functions found", file->name,
		  (unsigned long long)file->bias, s.best, s.n);
}

bool symfile__name(const struct symfile *file, uint64_t addr, struct code_name *ret_name)
{
	struct symbols_hit hit;

	if (addr < file->bias || symbols__lookup(file->symbols, addr - file->bias, &hit) < 0)
		return false;
	*ret_name = (struct code_name){
		.name = hit.name,
		.module = "",
		.package = "",
		.file = file->name,
		.src = "",
		.source = hit.exact ? NAME_EXACT : NAME_NEAREST,
	};
	return true;
}
