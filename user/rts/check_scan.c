/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the capabilities where no symbol names them: among its variables (rts/Capability.c) the
 * runtime has its only MainCapability, or `capabilities`, which leads to all of them. Both start
 * out as zeros, so they are in .bss, which is small even where .data is not.
 */
#include <string.h>

#include "base/base.h"
#include "check_caps_priv.h"
#include "process/mem.h"

#define SCAN_BUF 65536
/* A static executable's .data may hold much else: Debian's pandoc has 12 MB of it. */
#define SCAN_MAX (32U << 20)
/* How far before and after `capabilities` its neighbours in rts/Capability.c are searched for. */
#define NEAR 64
/* From 9.6 on some releases have the array itself there, with room for 256 (MAX_N_CAPABILITIES). */
#define ARRAY_ROOM 256
/* The runtime reserves its heap here, with at least this size (rts/sm/MBlock.c,
 * getCommittedMBlocks). */
#define HEAP_START 0x4200000000ULL
#define HEAP_MIN   (1ULL << 30)

struct scan {
	pid_t pid;
	const struct rts *rts;
	const struct images *images;
	const struct layout *l;
	uint32_t want; /* n_capabilities; 0: unknown */
	uint64_t embedded;
	struct check_result best; /* n_caps 0: nothing found yet */
};

static bool is_code(const struct scan *s, uint64_t addr)
{
	const struct image_map *map = images__at(s->images, addr);

	return map && map->image == s->rts->image;
}

static bool is_data(const struct scan *s, uint64_t addr)
{
	const struct proc_map *map;

	if (!addr || (addr & 7))
		return false;
	map = proc_maps__at(&s->images->proc, addr);
	return map && map->read && map->write;
}

/* True if Task.cap of the capability's running_task, if there is one, leads back to the
 * capability. */
static bool task_leads_back(const struct scan *s, uint64_t cap)
{
	uint64_t task, back;

	if (mem__read_u64(s->pid, cap + s->l->wire.cap_running_task, &task) < 0)
		return false;
	return task == 0 ||
	       (mem__read_u64(s->pid, task + s->l->wire.task_cap, &back) == 0 && back == cap);
}

static void try_embedded(struct scan *s, uint64_t addr)
{
	if (!s->embedded && check__is_cap(s->pid, s->images, s->l, addr, 0) &&
	    task_leads_back(s, addr))
		s->embedded = addr;
}

/* True if the rest of the array's room, after its capabilities, is zeros. */
static bool has_array_room(const struct scan *s, uint64_t addr, uint32_t got)
{
	uint64_t words[ARRAY_ROOM];

	if (mem__read(s->pid, addr, words, sizeof(words)) < 0)
		return false;
	for (uint32_t i = got; i < ARRAY_ROOM; i++)
		if (words[i])
			return false;
	return true;
}

static void try_pointer(struct scan *s, uint64_t addr, uint64_t word)
{
	uint32_t max = s->want ? s->want : CHECK_MAX_CAPS, got = 0;
	uint64_t first, caps[CHECK_MAX_CAPS];
	bool is_array = false;

	if (check__is_cap(s->pid, s->images, s->l, word, 0)) {
		/* last_free_capability points to a capability as well, but only an array has its
		 * room after it. */
		got = check__take_array(s->pid, s->images, s->l, addr, max, caps);
		is_array = true;
		if (!has_array_room(s, addr, got))
			return;
	} else if (mem__read_u64(s->pid, word, &first) == 0 &&
		   check__is_cap(s->pid, s->images, s->l, first, 0)) {
		got = check__take_array(s->pid, s->images, s->l, word, max, caps);
	}
	if (got == 0 || (s->want && got != s->want))
		return;
	/* A single match may be any pointer to capability 0: the layout's form decides. */
	if (got == 1 && is_array != s->l->caps_array)
		return;
	if (got < s->best.n_caps ||
	    (got == s->best.n_caps && (is_array != s->l->caps_array || s->best.capabilities)))
		return;
	memcpy(s->best.caps, caps, got * sizeof(caps[0]));
	s->best.n_caps = got;
	s->best.caps_array = is_array;
	s->best.capabilities = addr;
}

static void scan_words(struct scan *s, uint64_t at, const uint64_t *words, size_t n)
{
	for (size_t w = 0; w < n; w++) {
		if (!words[w])
			continue;
		/* A capability begins with a table of three of the runtime's functions. */
		if (w + 2 < n && is_code(s, words[w]) && is_code(s, words[w + 1]) &&
		    is_code(s, words[w + 2]))
			try_embedded(s, at + 8 * w);
		else if (s->rts->threaded && is_data(s, words[w]))
			try_pointer(s, at + 8 * w, words[w]);
	}
}

static void scan_range(struct scan *s, uint64_t start, uint64_t end)
{
	uint64_t words[SCAN_BUF / 8];

	end = MIN(end, start + SCAN_MAX);
	for (uint64_t at = (start + 7) & ~7ULL; at + 8 <= end;) {
		size_t len = MIN(end - at, (uint64_t)sizeof(words)) & ~7ULL;

		if (mem__read(s->pid, at, words, len) < 0)
			return;
		scan_words(s, at, words, len / 8);
		/* Reads overlap, so that what begins at the end of one is whole in the next. */
		at += len == sizeof(words) ? len - 16 : len;
	}
}

static void scan_variables(struct scan *s, bool bss)
{
	const struct elf_file *elf = s->rts->image->elf;

	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		uint64_t start = image__addr(s->rts->image, seg->vaddr);

		if (!seg->write)
			continue;
		if (bss)
			scan_range(s, start + seg->filesz, start + seg->memsz);
		else
			scan_range(s, start, start + seg->filesz);
	}
}

bool check__scan_caps(pid_t pid, const struct rts *rts, const struct images *images,
		      const struct layout *l, uint32_t want, struct check_result *r)
{
	struct scan s = {.pid = pid, .rts = rts, .images = images, .l = l, .want = want};

	scan_variables(&s, true);
	/* Before there is a heap there is nothing to find, but much in .data that could be
	 * mistaken for it. */
	if (!s.embedded && s.best.n_caps == 0 && check__has_heap(images))
		scan_variables(&s, false);
	if (s.best.n_caps == 1 && s.embedded && s.best.caps[0] != s.embedded)
		s.best.n_caps = 0;
	/* A single capability is MainCapability in every version, and is then found along with
	 * its pointer. */
	if (s.best.n_caps == 1 && !s.embedded)
		return false;
	if (s.best.n_caps == 0) {
		if (!s.embedded || want > 1)
			return false;
		s.best.caps[0] = s.embedded;
		s.best.n_caps = 1;
	}
	memcpy(r->caps, s.best.caps, s.best.n_caps * sizeof(r->caps[0]));
	r->n_caps = s.best.n_caps;
	r->capabilities = s.best.capabilities;
	r->caps_array = s.best.caps_array;
	r->caps_found = FOUND_MEMORY;
	return true;
}

bool check__has_heap(const struct images *images)
{
	for (size_t i = 0; i < images->proc.n; i++) {
		const struct proc_map *map = &images->proc.maps[i];

		if (map->start >= HEAP_START && map->ino == 0 &&
		    (map->write || map->end - map->start >= HEAP_MIN) &&
		    map->start < HEAP_START + (1ULL << 40))
			return true;
	}
	return false;
}

/* How often the file's C code refers to that address, relative to the instruction or absolutely. */
static uint32_t references(const struct rts *rts, uint64_t addr)
{
	const struct elf_fde *fdes;
	uint64_t vaddr = addr - rts->image->bias;
	uint32_t count = 0;
	size_t n;

	if (elf__fdes(rts->image->elf, &fdes, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		size_t len = fdes[i].end - fdes[i].start;
		const uint8_t *code = elf__at(rts->image->elf, fdes[i].start, len);

		for (size_t at = 0; code && at + 4 <= len; at++) {
			uint32_t value;

			memcpy(&value, code + at, sizeof(value));
			count +=
				value == (uint32_t)vaddr ||
				fdes[i].start + at + 4 + (uint64_t)(int64_t)(int32_t)value == vaddr;
		}
	}
	return count;
}

/*
 * n_capabilities holds the number of capabilities and is next to `capabilities`.
 * enabled_capabilities does too, with the same value most of the time, but most of the runtime's
 * loops refer to n_capabilities.
 */
uint64_t check__scan_n_caps(pid_t pid, const struct rts *rts, const struct check_result *r)
{
	size_t room = r->capabilities && r->caps_array ? ARRAY_ROOM * sizeof(uint64_t) : 0;
	uint64_t at = (r->capabilities ? r->capabilities : r->caps[0]) - NEAR, best = 0;
	uint32_t words[(NEAR + ARRAY_ROOM * sizeof(uint64_t) + NEAR) / 4], most = 0;
	size_t len = NEAR + room + NEAR;

	if (mem__read(pid, at, words, len) < 0)
		return 0;
	for (size_t i = 0; i < len / 4; i++) {
		uint32_t n;

		if (words[i] != r->n_caps)
			continue;
		n = references(rts, at + 4 * i);
		if (n > most) {
			most = n;
			best = at + 4 * i;
		}
	}
	return best;
}

/*
 * Checks one capability: its number is its index, its flags are bools, and it begins with the table
 * of three of the runtime's functions (rts/include/stg/Regs.h, StgFunTable).
 */
bool check__is_cap(pid_t pid, const struct images *images, const struct layout *l, uint64_t cap,
		   uint32_t no)
{
	uint32_t cap_no;
	uint64_t code[3];
	uint8_t flag;

	return cap && (cap & 7) == 0 && mem__read_u32(pid, cap + l->wire.cap_no, &cap_no) == 0 &&
	       cap_no == no && mem__read(pid, cap + l->wire.cap_in_haskell, &flag, 1) == 0 &&
	       flag <= 1 && mem__read(pid, cap + l->wire.cap_disabled, &flag, 1) == 0 &&
	       flag <= 1 && mem__read(pid, cap, code, sizeof(code)) == 0 &&
	       images__at(images, code[0]) && images__at(images, code[1]) &&
	       images__at(images, code[2]);
}

uint32_t check__take_array(pid_t pid, const struct images *images, const struct layout *l,
			   uint64_t array, uint32_t max, uint64_t *caps)
{
	uint32_t n;

	for (n = 0; n < max; n++) {
		uint64_t cap;

		if (mem__read_u64(pid, array + 8ULL * n, &cap) < 0 ||
		    !check__is_cap(pid, images, l, cap, n))
			break;
		caps[n] = cap;
	}
	return n;
}
