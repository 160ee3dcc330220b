/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capabilities of a live process: by the symbols `capabilities` and `MainCapability`, and where
 * these are missing (a stripped libHSrts*.so, a stripped executable) by scanning the runtime's own
 * variables (check_scan.c).
 */
#include "check_caps_priv.h"

#include <stdio.h>
#include <string.h>

#include "process/mem.h"

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
	got = check__take_array(pid, images, l, is_array ? array : first, want, r->caps);
	if (got == 0) {
		/* It changed from pointer to array and back within a series (9.6.7, 9.10.2). */
		got = check__take_array(pid, images, l, is_array ? first : array, want, r->caps);
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

enum check_verdict check__caps(pid_t pid, const struct rts *rts, const struct images *images,
			       const struct layout *l, struct check_result *r)
{
	uint32_t want = 0;
	bool found;

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

	/* A single capability is MainCapability in every version (rts/Capability.c). */
	if (rts->main_cap.addr && (!rts->threaded || want == 1)) {
		uint64_t code;

		if (mem__read_u64(pid, rts->main_cap.addr, &code) < 0)
			return failed(r, "MainCapability cannot be read");
		if (!code)
			return CHECK_NOT_READY;
		if (!check__is_cap(pid, images, l, rts->main_cap.addr, 0))
			return failed(r, "MainCapability is not a capability");
		r->caps[0] = rts->main_cap.addr;
		r->n_caps = 1;
		r->caps_found = rts->main_cap.found;
		r->capabilities = rts->capabilities.addr;
		r->caps_array = l->caps_array;
		if (rts->capabilities.addr || !rts->threaded)
			return CHECK_OK;
	}
	found = r->n_caps > 0;
	if (check__scan_caps(pid, rts, images, l, want, r) || found)
		return CHECK_OK;
	if (!check__has_heap(images))
		return CHECK_NOT_READY;
	return failed(r, "no capability found in the runtime's memory");
}
