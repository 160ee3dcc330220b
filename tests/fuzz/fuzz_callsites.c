/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as code, and as a file whose runtime is looked for without symbols: the scan for safe
 * calls, the strings, StgRun, the classes of C code.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rts/callsites.h"
#include "rts/insn.h"
#include "rts/rts_find_priv.h"
#include "rts/rts_text.h"

#include "inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_code(const uint8_t *data, size_t size)
{
	struct insn_safe_call call;
	struct insn *insn;

	if (insn__new(&insn))
		return;
	for (size_t at = 0; at < size && at < 512; at++) {
		if (insn__safe_call(insn, data + at, size - at, 0x400000 + at, &call))
			continue;
		if (call.suspend == call.resume || call.site <= 0x400000 + at ||
		    call.site > 0x400000 + size)
			abort();
	}
	insn__free(insn);
}

static void as_file(const uint8_t *data, size_t size)
{
	struct image image = {.base = "libHSrts_thr-ghc9.0.2.so"};
	struct rts rts = {.image = &image};
	struct rts_text *text = NULL;

	if (elf__open_bytes(data, size, "fuzz", &image.elf))
		return;
	rts_strings__read(image.elf, image.base, &rts);
	rts_symbols__find(&rts);
	/* Runs the scan even if there are symbols. */
	memset(&rts.suspend, 0, sizeof(rts.suspend));
	rts_callsites__find(&rts);
	for (size_t i = 0; i < rts.callsites.n; i++)
		if (callsites__at(&rts.callsites, rts.callsites.sites[i].site) !=
		    &rts.callsites.sites[i])
			abort();
	rts_stgrun__find(&rts);
	image.base = "program";
	if (rts_text__new(&rts, &text) == 0)
		rts_text__part(text, rts.suspend.addr, "");
	rts_text__free(text);
	rts__free(&rts);
	elf__free(image.elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_code(data, size);
	as_file(data, size);
	return 0;
}
