/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the decoder of rts/insn.h in a process without rights: an x86 decoder is large, and the code
 * comes from anybody. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DECODE_PRIV_H
#define SAFESCOPED_NAMES_DECODE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rts/insn.h"

/* The helper processes, one for each recent user. */
struct decoder;
int decoder__new(struct decoder **ret_decoder);
void decoder__free(struct decoder *decoder);

/*
 * Like insn__call_target(), insn__find_call_before() and insn__site_candidate(), for code of a
 * process of `user` (CONFINE_NOBODY: not known). -ENOENT also if there was no answer; -EBUSY: no
 * time for it, try again later. At most INSN_SITE_WINDOW bytes of `code` are used: the first ones,
 * or, as in those functions, the last ones.
 */
int decode__call_target(struct decoder *decoder, uid_t user, const uint8_t *code, size_t len,
			uint64_t addr, struct insn_call *ret_call);
int decode__call_before(struct decoder *decoder, uid_t user, const uint8_t *code, size_t len,
			uint64_t ret_addr, struct insn_call *ret_call);
/* Like insn__set_before(). */
int decode__set_before(struct decoder *decoder, uid_t user, const uint8_t *code, size_t len,
		       struct insn_call *call);
int decode__site_back(struct decoder *decoder, uid_t user, const uint8_t *code, size_t len,
		      uint64_t ret_addr, bool (*is_suspend)(void *ctx, uint64_t target), void *ctx,
		      uint64_t *ret_site);

/* ── the messages (tests, fuzzing) ───────────────────────────────────────────────────────── */

enum decode_what {
	DECODE_CALL_TARGET,
	DECODE_CALL_BEFORE,
	DECODE_STRAIGHT,
	DECODE_SET_BEFORE,
};

struct decode_question {
	uint32_t what; /* enum decode_what */
	uint32_t len;
	/* of the code; for DECODE_CALL_BEFORE and DECODE_SET_BEFORE, of what follows the code */
	uint64_t addr;
	uint32_t reg; /* DECODE_SET_BEFORE: struct insn_call */
	uint32_t _pad;
	uint8_t code[INSN_SITE_WINDOW];
};

struct decode_answer {
	int32_t err; /* 0 or -ENOENT */
	uint32_t _pad;
	struct insn_call call;
};

/* Whether this can be an answer to the question. */
bool decode__check(const struct decode_question *q, const struct decode_answer *a, size_t len);

#endif
