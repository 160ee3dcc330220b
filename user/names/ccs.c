/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ccs: from the address of a CostCentreStack to its path of cost centres, in another process's
 * memory. */
#include "ccs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* rts/include/rts/prof/CCS.h, 8.10 to 9.14: offsets in bytes */
#define CCS_CC		8
#define CCS_PREV_STACK	16
#define CCS_INDEX_TABLE 24
#define CC_LABEL	8
#define CC_MODULE	16
#define CC_SRC_LOC	24
/* IndexTable: the children of a stack */
#define IT_CCS	     8
#define IT_NEXT	     16
#define IT_BACK_EDGE 24
#define IT_SIZE	     32

#define MAX_CHILDREN 4096 /* of one node */
#define SLOTS	     (4 * CCS_MAX_NODES)
#define NONE	     UINT32_MAX

/*
 * Hash table with open addressing: 1 + index into an array whose elements begin with their address.
 */
struct index {
	uint32_t *slots;
	const char *base;
	size_t stride;
};

struct look {
	const struct ccs_reader *reader;
	struct ccs_found *found;
	struct index nodes, centres;
};

static uint64_t addr_at(const struct index *index, uint32_t i)
{
	uint64_t addr;

	memcpy(&addr, index->base + i * index->stride, sizeof(addr));
	return addr;
}

static uint32_t slot_of(const struct index *index, uint64_t addr)
{
	uint32_t slot = (uint32_t)((addr >> 3) * 0x9e3779b97f4a7c15ULL >> 32) % SLOTS;

	while (index->slots[slot] && addr_at(index, index->slots[slot] - 1) != addr)
		slot = (slot + 1) % SLOTS;
	return slot;
}

static uint32_t find(const struct index *index, uint64_t addr)
{
	uint32_t at = index->slots[slot_of(index, addr)];

	return at ? at - 1 : NONE;
}

static int read_word(const struct look *l, uint64_t addr, uint64_t *ret_word)
{
	return l->reader->read(l->reader->ctx, addr, ret_word, sizeof(*ret_word));
}

/* Reads a string of the process, truncated to CCS_MAX_STRING; *ret_at is its offset in text[]. */
static int take_string(struct look *l, uint64_t addr, uint32_t *ret_at)
{
	struct ccs_found *f = l->found;
	uint32_t at = f->n_text, len = 0;

	if (f->n_text > CCS_MAX_TEXT - CCS_MAX_STRING - 1)
		return -ENOSPC;
	while (len < CCS_MAX_STRING) {
		/* do not cross the page that holds it: the next one may be unmapped */
		size_t want = MIN((size_t)(CCS_MAX_STRING - len), 64 - (size_t)(addr % 64));
		char *to = f->text + at + len, *end;

		if (l->reader->read(l->reader->ctx, addr, to, want))
			return -EFAULT;
		end = memchr(to, 0, want);
		if (end) {
			len = (uint32_t)(end - (f->text + at));
			break;
		}
		len += (uint32_t)want;
		addr += want;
	}
	f->text[at + len] = 0;
	f->n_text = at + len + 1;
	*ret_at = at;
	return 0;
}

static int take_centre(struct look *l, uint64_t addr, uint32_t *ret_centre)
{
	struct ccs_found *f = l->found;
	uint32_t at = find(&l->centres, addr);
	struct ccs_centre c = {.addr = addr};
	uint64_t label, module, src;

	if (at != NONE) {
		*ret_centre = at;
		return 0;
	}
	if (f->n_centres == CCS_MAX_CENTRES)
		return -ENOSPC;
	if (!addr || addr % 8 || read_word(l, addr + CC_LABEL, &label) ||
	    read_word(l, addr + CC_MODULE, &module) || read_word(l, addr + CC_SRC_LOC, &src) ||
	    take_string(l, label, &c.label) || take_string(l, module, &c.module) ||
	    take_string(l, src, &c.src_loc))
		return -EFAULT;
	f->centres[f->n_centres++] = c;
	l->centres.slots[slot_of(&l->centres, addr)] = f->n_centres;
	*ret_centre = f->n_centres - 1;
	return 0;
}

/* Adds a node whose parent has been added. */
static int take_node(struct look *l, uint64_t addr, uint64_t parent)
{
	struct ccs_found *f = l->found;
	struct ccs_node node = {.addr = addr, .parent = parent};
	uint64_t cc;
	int err;

	if (f->n_nodes == CCS_MAX_NODES) {
		f->cut = 1;
		return -ENOSPC;
	}
	if (read_word(l, addr + CCS_CC, &cc))
		return -EFAULT;
	err = take_centre(l, cc, &node.centre);
	if (err)
		return err;
	f->nodes[f->n_nodes++] = node;
	l->nodes.slots[slot_of(&l->nodes, addr)] = f->n_nodes;
	return 0;
}

/* Adds a stack and its ancestors up to the root. The depth limit ends a cycle. */
static void climb(struct look *l, uint64_t addr)
{
	uint64_t chain[CCS_MAX_DEPTH], parent = 0;
	uint32_t n = 0;

	while (addr) {
		if (find(&l->nodes, addr) != NONE) {
			parent = addr;
			break;
		}
		if (n == CCS_MAX_DEPTH || addr % 8)
			return;
		chain[n++] = addr;
		if (read_word(l, addr + CCS_PREV_STACK, &addr))
			return;
	}
	while (n) {
		if (take_node(l, chain[--n], parent))
			return;
		parent = chain[n];
	}
}

static void take_children(struct look *l, uint64_t parent, uint64_t deadline_ns)
{
	uint64_t table, prev;

	if (read_word(l, parent + CCS_INDEX_TABLE, &table))
		return;
	for (uint32_t i = 0; table && i < MAX_CHILDREN; i++) {
		unsigned char entry[IT_SIZE];
		uint64_t ccs;

		if (time__monotonic_ns() >= deadline_ns ||
		    l->reader->read(l->reader->ctx, table, entry, sizeof(entry)))
			return;
		memcpy(&ccs, entry + IT_CCS, sizeof(ccs));
		memcpy(&table, entry + IT_NEXT, sizeof(table));
		/* a back edge leads to an ancestor: recursion */
		if (entry[IT_BACK_EDGE] || !ccs || ccs % 8 || find(&l->nodes, ccs) != NONE)
			continue;
		if (read_word(l, ccs + CCS_PREV_STACK, &prev) || prev != parent)
			continue;
		if (take_node(l, ccs, parent) == -ENOSPC)
			return;
	}
}

int ccs__collect(const struct ccs_reader *reader, const uint64_t *addrs, size_t n,
		 uint64_t deadline_ns, struct ccs_found *found)
{
	struct look l = {.reader = reader, .found = found};
	int err = -ENOMEM;

	l.nodes = (struct index){calloc(SLOTS, sizeof(uint32_t)), (const char *)found->nodes,
				 sizeof(found->nodes[0])};
	l.centres = (struct index){calloc(SLOTS, sizeof(uint32_t)), (const char *)found->centres,
				   sizeof(found->centres[0])};
	if (!l.nodes.slots || !l.centres.slots)
		goto out;
	for (size_t i = 0; i < n; i++)
		climb(&l, addrs[i]);
	/* breadth-first: the array grows while it is traversed */
	for (uint32_t i = 0; deadline_ns && i < found->n_nodes; i++) {
		if (time__monotonic_ns() >= deadline_ns)
			break;
		take_children(&l, found->nodes[i].addr, deadline_ns);
	}
	err = 0;
out:
	free(l.nodes.slots);
	free(l.centres.slots);
	return err;
}
