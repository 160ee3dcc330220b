/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capabilities of a live process: by the symbols `capabilities` and `MainCapability`, and
 * where the first is hidden (a stripped libHSrts*.so, a stripped executable) by looking through the
 * runtime's own variables for the one that leads to them.
 */
#include "check_caps.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "mem.h"

/* The runtime's .data and .bss; a static executable's may hold much else. */
#define SCAN_MAX (8U << 20)
#define SCAN_BUF 65536

/*
 * One capability: its number is its index, its flags are truth values, and it begins with the
 * table of three of the runtime's own functions (rts/include/stg/Regs.h, StgFunTable).
 */
static bool is_cap(pid_t pid, const struct images *images, const struct layout *l, uint64_t cap,
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

/* Reads the array; how many of its first entries are capabilities. */
static uint32_t take_array(pid_t pid, const struct images *images, const struct layout *l,
			   uint64_t array, uint32_t max, uint64_t *caps)
{
	uint32_t n;

	for (n = 0; n < max; n++) {
		uint64_t cap;

		if (mem__read_u64(pid, array + 8ULL * n, &cap) < 0 ||
		    !is_cap(pid, images, l, cap, n))
			break;
		caps[n] = cap;
	}
	return n;
}

static enum check_verdict failed(struct check_result *r, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%s", why);
	return CHECK_FAILED;
}

static enum check_verdict by_array(pid_t pid, const struct rts *rts, const struct images *images,
				   const struct layout *l, uint32_t want, struct check_result *r)
{
	uint64_t first, array = rts->capabilities.addr;
	bool is_array = l->caps_array;
	uint32_t got;

	if (mem__read_u64(pid, array, &first) < 0)
		return failed(r, "the variable `capabilities` cannot be read");
	if (!first)
		return CHECK_NOT_READY;
	got = take_array(pid, images, l, is_array ? array : first, want, r->caps);
	if (got == 0) {
		/* It changed from pointer to array and back within series (9.6.7, 9.10.2). */
		got = take_array(pid, images, l, is_array ? first : array, want, r->caps);
		is_array = !is_array;
	}
	if (got < want) {
		snprintf(r->why, sizeof(r->why),
			 "only %u of %u entries of `capabilities` are capabilities", got, want);
		return CHECK_FAILED;
	}
	r->n_caps = want;
	r->capabilities = array;
	r->caps_array = is_array;
	r->caps_found = rts->capabilities.found;
	return CHECK_OK;
}

static bool try_word(pid_t pid, const struct images *images, const struct layout *l, uint64_t addr,
		     uint64_t word, uint32_t want, struct check_result *r)
{
	uint32_t max = want ? want : CHECK_MAX_CAPS;
	uint64_t first, caps[CHECK_MAX_CAPS];
	uint32_t got = 0;
	bool is_array = false;

	if (!word || (word & 7))
		return false;
	/* the array form: the word is capability 0 itself */
	if (is_cap(pid, images, l, word, 0)) {
		got = take_array(pid, images, l, addr, max, caps);
		is_array = true;
	} else if (mem__read_u64(pid, word, &first) == 0 && is_cap(pid, images, l, first, 0)) {
		got = take_array(pid, images, l, word, max, caps);
	}
	/* Any pointer to capability 0 looks like an array of one: without n_capabilities more than
	 * one entry has to say so. */
	if (got == 0 || (want ? got != want : got < 2))
		return false;
	/* One entry alone may be anything: the layout's form and the capability must agree. */
	if (got == 1 && (is_array != l->caps_array || (r->n_caps == 1 && caps[0] != r->caps[0])))
		return false;
	memcpy(r->caps, caps, got * sizeof(caps[0]));
	r->n_caps = got;
	r->caps_array = is_array;
	r->capabilities = addr;
	r->caps_found = FOUND_MEMORY;
	return true;
}

/* Looks through the writable memory that belongs to the runtime's file. */
static bool by_memory(pid_t pid, const struct rts *rts, const struct images *images,
		      const struct layout *l, uint32_t want, struct check_result *r)
{
	const struct elf_file *elf = rts->image->elf;
	uint64_t words[SCAN_BUF / 8];
	uint64_t left = SCAN_MAX;

	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		uint64_t at = image__addr(rts->image, (seg->vaddr + 7) & ~7ULL);
		uint64_t end = image__addr(rts->image, seg->vaddr + seg->memsz);

		while (seg->write && at + 8 <= end && left) {
			size_t len = MIN(MIN(end - at, (uint64_t)sizeof(words)), left) & ~7ULL;

			if (len == 0 || mem__read(pid, at, words, len) < 0)
				break;
			for (size_t w = 0; w < len / 8; w++)
				if (try_word(pid, images, l, at + 8 * w, words[w], want, r))
					return true;
			at += len;
			left -= len;
		}
	}
	return false;
}

enum check_verdict check__caps(pid_t pid, const struct rts *rts, const struct images *images,
			       const struct layout *l, struct check_result *r)
{
	uint32_t want = 0;

	r->n_caps = 0;
	r->capabilities = 0;
	r->caps_found = FOUND_NONE;
	if (rts->n_capabilities.addr) {
		if (mem__read_u32(pid, rts->n_capabilities.addr, &want) < 0)
			return failed(r, "the variable `n_capabilities` cannot be read");
		if (want == 0)
			return CHECK_NOT_READY;
		if (want > CHECK_MAX_CAPS)
			return failed(r, "n_capabilities is out of bounds");
	}
	if (rts->threaded && rts->capabilities.addr)
		return by_array(pid, rts, images, l, want ? want : 1, r);

	/* One capability is MainCapability in every version (rts/Capability.c). */
	if (rts->main_cap.addr && (!rts->threaded || want == 1)) {
		uint64_t code;

		if (mem__read_u64(pid, rts->main_cap.addr, &code) < 0)
			return failed(r, "MainCapability cannot be read");
		if (!code)
			return CHECK_NOT_READY;
		if (!is_cap(pid, images, l, rts->main_cap.addr, 0))
			return failed(r, "MainCapability is no capability");
		r->caps[0] = rts->main_cap.addr;
		r->n_caps = 1;
		r->caps_found = rts->main_cap.found;
		r->capabilities = rts->capabilities.addr;
		r->caps_array = l->caps_array;
		if (rts->capabilities.addr || !rts->threaded)
			return CHECK_OK;
	}
	if (rts->threaded && by_memory(pid, rts, images, l, want, r))
		return CHECK_OK;
	/* The one capability may still become several: then the array would be needed. */
	return r->n_caps ? CHECK_OK : failed(r, "no capability found in the runtime's memory");
}
