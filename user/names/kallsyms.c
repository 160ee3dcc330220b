/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kallsyms: the kernel's own table of its functions, including loaded modules and BPF programs. */
#include "kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"

#define MAX_SYMBOLS (1U << 22)
#define MAX_TEXT    (256U << 20)
/* Functions are smaller: an address further from a symbol belongs to no function. */
#define MAX_FUNCTION (1U << 20)

struct symbol {
	uint64_t addr;
	uint32_t name, module; /* offsets in text; module 0: none */
};

struct kallsyms {
	struct symbol *v;
	size_t n, cap;
	uint64_t own_end; /* start of the kernel's own last function */
	struct buf text;
};

void kallsyms__free(struct kallsyms *syms)
{
	if (!syms)
		return;
	free(syms->v);
	buf__free(&syms->text);
	free(syms);
}

static int add_text(struct kallsyms *syms, const char *s, size_t len, uint32_t *ret_at)
{
	size_t at = syms->text.len;
	int err = buf__add(&syms->text, s, len);

	if (!err)
		err = buf__addc(&syms->text, '\0');
	*ret_at = (uint32_t)at;
	return err;
}

/* Module names come in groups: reuses the last one. */
static int add_module(struct kallsyms *syms, const char *s, size_t len, uint32_t last,
		      uint32_t *ret_at)
{
	const char *before = last ? syms->text.data + last : "";

	if (last && strlen(before) == len && !memcmp(before, s, len)) {
		*ret_at = last;
		return 0;
	}
	return add_text(syms, s, len, ret_at);
}

/* Parses "ffffffff81000000 T name", optionally followed by a tab and "[module]". */
static int add_line(struct kallsyms *syms, const char *line, size_t len, uint32_t *last_module)
{
	struct symbol s = {0};
	const char *name, *tab;
	size_t name_len;
	char *end;
	int err;

	errno = 0;
	s.addr = strtoull(line, &end, 16);
	if (errno || end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return -EBADMSG;
	if (!strchr("tTwW", end[1]) || !s.addr)
		return 0;
	name = end + 3;
	len -= (size_t)(name - line);
	tab = memchr(name, '\t', len);
	name_len = tab ? (size_t)(tab - name) : len;
	err = ARRAY_RESERVE(syms->v, syms->cap, syms->n + 1, MAX_SYMBOLS);
	if (!err)
		err = add_text(syms, name, name_len, &s.name);
	if (!err && len - name_len > 3) {
		err = add_module(syms, tab + 2, len - name_len - 3, *last_module, &s.module);
		*last_module = s.module;
	}
	if (!err)
		syms->v[syms->n++] = s;
	return err;
}

static int by_addr(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

int kallsyms__read(FILE *in, struct kallsyms **ret_syms)
{
	struct kallsyms *syms = calloc(1, sizeof(*syms));
	uint32_t last_module = 0;
	size_t size = 0, lines = 0;
	char *line = NULL;
	ssize_t len;
	int err;

	if (!syms)
		return -ENOMEM;
	buf__init(&syms->text, MAX_TEXT);
	err = buf__addc(&syms->text, '\0');
	while (!err && (len = getline(&line, &size, in)) > 0) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		err = add_line(syms, line, (size_t)len, &last_module);
		lines++;
	}
	free(line);
	if (!err && !syms->n)
		err = lines ? -EPERM : -EBADMSG;
	if (err) {
		kallsyms__free(syms);
		return err;
	}
	qsort(syms->v, syms->n, sizeof(*syms->v), by_addr);
	for (size_t i = 0; i < syms->n; i++)
		if (!syms->v[i].module)
			syms->own_end = syms->v[i].addr;
	*ret_syms = syms;
	return 0;
}

int kallsyms__open(struct kallsyms **ret_syms)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	int err;

	if (!in)
		return -errno;
	err = kallsyms__read(in, ret_syms);
	fclose(in);
	return err;
}

bool kallsyms__stays(const struct kallsyms *syms, uint64_t addr)
{
	return addr <= syms->own_end;
}

const char *kallsyms__find(const struct kallsyms *syms, uint64_t addr, const char **ret_module)
{
	size_t after = search__first(syms->n, i, syms->v[i].addr > addr);

	if (!after || addr - syms->v[after - 1].addr >= MAX_FUNCTION)
		return NULL;
	*ret_module = syms->text.data + syms->v[after - 1].module;
	return syms->text.data + syms->v[after - 1].name;
}
