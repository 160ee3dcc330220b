/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a process's memory with cost-centre stacks in it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "names/ccs.h"

#define BASE	  0x1000ULL
#define MAX_ADDRS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
	const uint8_t *data;
	size_t size;
};

/* Ignores the upper address bits: otherwise few inputs would lead anywhere. */
static int memory__read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory *m = ctx;
	uint64_t at = addr & 0xffff;

	if (at < BASE || at - BASE >= m->size || len > m->size - (at - BASE))
		return -1;
	memcpy(buf, m->data + (at - BASE), len);
	return 0;
}

/* Parents come before their children, and no reference points outside. */
static void check(const struct ccs_found *f)
{
	if (f->n_nodes > CCS_MAX_NODES || f->n_centres > CCS_MAX_CENTRES ||
	    f->n_text > CCS_MAX_TEXT)
		abort();
	for (uint32_t i = 0; i < f->n_nodes; i++) {
		bool found = !f->nodes[i].parent;

		for (uint32_t k = 0; !found && k < i; k++)
			found = f->nodes[k].addr == f->nodes[i].parent;
		if (!found || f->nodes[i].centre >= f->n_centres)
			abort();
	}
	for (uint32_t i = 0; i < f->n_centres; i++) {
		const struct ccs_centre *c = &f->centres[i];

		if (c->label >= f->n_text || c->module >= f->n_text || c->src_loc >= f->n_text)
			abort();
	}
	if (f->n_text && f->text[f->n_text - 1])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory m = {data, size};
	const struct ccs_reader reader = {.read = memory__read, .ctx = &m};
	uint64_t addrs[MAX_ADDRS];
	struct ccs_found *found = calloc(1, sizeof(*found));
	size_t n = MIN(size / sizeof(*addrs), (size_t)MAX_ADDRS);

	if (!found)
		return 0;
	memcpy(addrs, data, n * sizeof(*addrs));
	if (ccs__collect(&reader, addrs, n, time__monotonic_ns() + 20000000, found) == 0)
		check(found);
	free(found);
	return 0;
}
