/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files that implement insn for x86-64, and by nobody else. */
#ifndef SAFESCOPED_RTS_INSN_X86_64_PRIV_H
#define SAFESCOPED_RTS_INSN_X86_64_PRIV_H

#include <stdbool.h>
#include <capstone/capstone.h>

#include "insn.h"

struct insn {
	csh handle;
	bool open;
	cs_insn *one; /* reused for every instruction */
};

/* Decodes the instruction at code; NULL if there is none within len bytes. */
const cs_insn *insn_x86__decode(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr);
bool insn_x86__is_call(const struct insn *insn, const cs_insn *i);
/* True if control does not simply go on to the next instruction (a call returns, but much
 * later). */
bool insn_x86__ends_block(const struct insn *insn, const cs_insn *i);
/* Describes a call. */
void insn_x86__describe_call(const cs_insn *i, struct insn_call *ret_call);

#endif
