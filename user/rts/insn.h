/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn: what the finder needs to know about single instructions. Decodes untrusted bytes; every
 * walk is bounded. Only one thread at a time may use a struct insn. Like arch_priv.h, this is
 * reimplemented for each processor; its registers and bytes are those of x86-64.
 */
#ifndef SAFESCOPED_RTS_INSN_H
#define SAFESCOPED_RTS_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;

int insn__new(struct insn **ret_insn);
void insn__free(struct insn *insn);

/* ── where to probe a function ───────────────────────────────────────────────────────────── */

#define INSN_PROBE_WINDOW 64   /* how far into a function a probe may go */
#define INSN_PROBE_CODE	  4096 /* how much of `code` is searched for backward jumps */

struct insn_choice {
	size_t offset;	  /* bytes from the function's start */
	bool emulated;	  /* the kernel emulates the instruction instead of single-stepping it */
	uint32_t stack;	  /* bytes pushed before it: the return address is at rsp + stack */
	bool args_intact; /* rdi, rsi, rdx and rcx still hold the arguments there */
	char text[48];	  /* "push %r15" */
};

/*
 * Chooses the first instruction that Linux's uprobes emulate and that every call of the function
 * executes exactly once: in its first straight-line block, at most INSN_PROBE_WINDOW bytes in, and
 * not after a place that `code` (the function's bytes, as many as are known) jumps back to. If
 * there is none: offset 0, single-stepped. -EILSEQ if the first bytes are not an instruction.
 *
 * Source: arch/x86/kernel/uprobes.c, branch_setup_xol_ops and push_setup_xol_ops: push of a 64-bit
 * register (50+r, 41 50+r), nop (90), call rel32, jmp rel, jcc rel. Multi-byte nops (0f 1f) are
 * left alone: kernels older than 2025 single-step them, and 6.18 rewrites a five-byte one into a
 * call whose trampoline makes the target issue a system call (ba2bfc97b462).
 */
int insn__choose_probe(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		       struct insn_choice *ret_choice);

/* ── what a function does ────────────────────────────────────────────────────────────────── */

/* How one instruction refers to other places. */
struct insn_seen {
	bool call;     /* `target` is set for a direct call, else 0 */
	bool branch;   /* a jump, conditional or not */
	bool has_disp; /* it has a memory operand with a base register, and `disp` */
	uint32_t disp;
	uint64_t target;
	uint64_t
		refers; /* an address that it loads or reads, rip-relative or as a constant; or 0 */
};

/* Calls fn for each instruction from addr on, in a straight line, until fn returns false, the
 * code ends, or bytes are not an instruction. */
void insn__each(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		bool (*fn)(void *ctx, const struct insn_seen *seen), void *ctx);

/* ── calls ───────────────────────────────────────────────────────────────────────────────── */

enum insn_call_kind {
	INSN_CALL_DIRECT = 1, /* target: the address called */
	INSN_CALL_SLOT,	      /* target: the address of the pointer, as in call *slot(%rip) */
	INSN_CALL_REGISTER, /* through a register, or memory that a register points to: no target */
};

struct insn_call {
	enum insn_call_kind kind;
	uint64_t target;
	uint64_t at;   /* address of the call */
	uint64_t next; /* its return address */
	uint32_t reg;  /* the register that it goes through, as the decoder numbers it; 0: none, or
			  memory */
};

/*
 * The first call from addr on (`code` has the bytes there), in a straight line. -ENOENT if a jump,
 * a return, bytes that are not an instruction, or the end of the code comes first.
 */
int insn__call_target(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		      struct insn_call *ret_call);

/*
 * The call that returns to ret_addr; `code` holds the len bytes just before it (8 are enough).
 * -ENOENT if they do not end in a call.
 */
int insn__find_call_before(struct insn *insn, const uint8_t *code, size_t len, uint64_t ret_addr,
			   struct insn_call *ret_call);

#define INSN_SITE_WINDOW 256

/*
 * Finds the target of a call through a register, if the straight line of code before it set the
 * register to a constant or from a pointer at a constant address; other calls may come in between.
 * `code` holds the len bytes just before the call; the last INSN_SITE_WINDOW of them are examined.
 * *call becomes a direct call, or one through a slot. -ENOENT: not found.
 */
int insn__set_before(struct insn *insn, const uint8_t *code, size_t len, struct insn_call *call);

/*
 * The site of a safe call is found from the return address of the call of the foreign function, of
 * resumeThread, or of suspendThread itself, in two steps: find the nearest `call rel32` before it
 * whose target is_suspend() accepts, and check that decoding forward from there in a straight line
 * lands exactly on ret_addr. `code` holds the len bytes just before ret_addr; the last
 * INSN_SITE_WINDOW of them are examined.
 *
 * This is the first step, which decodes nothing: finds the nearest call that is_suspend() accepts
 * and that begins more than `back` bytes before ret_addr (0 at first). Returns how many bytes
 * before, and sets *ret_site to the address after the call; 0: none.
 */
size_t insn__site_candidate(const uint8_t *code, size_t len, uint64_t ret_addr, size_t back,
			    bool (*is_suspend)(void *ctx, uint64_t target), void *ctx,
			    uint64_t *ret_site);
/* The second step: true if decoding from addr on, in a straight line (calls return), ends
 * exactly after `len` bytes. */
bool insn__is_straight(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr);

/* ── a safe foreign call ─────────────────────────────────────────────────────────────────── */

#define INSN_SAFE_CALL_WINDOW 512 /* how many bytes of it are examined at most */

struct insn_safe_call {
	uint64_t suspend;	  /* the first call's target: suspendThread */
	uint64_t resume;	  /* the last call's target: resumeThread */
	uint64_t site;		  /* the first call's return address */
	struct insn_call foreign; /* the call between these two */
	bool interruptible;	  /* second argument of the first call */
	uint32_t current_tso;	  /* rCurrentTSO, from BaseReg */
	uint32_t stackobj, sp;	  /* offsets in the TSO, and in its STACK */
	uint32_t insns;		  /* number of instructions decoded; set on failure too */
};

/*
 * Decodes the code of a safe foreign call as GHC emits it, beginning with its `mov %r13,%rdi`
 * (which `code` and addr are of):
 *   suspendThread(BaseReg, 0 or 1); the call of the foreign function; resumeThread(its result),
 *   whose result is BaseReg; then Sp is loaded from rCurrentTSO's stackobj
 * (compiler/GHC/Cmm/LayoutStack.hs, lowerSafeForeignCall; GHC/StgToCmm/Foreign.hs, loadThreadState;
 * the same from 8.10 to 9.14). -ENOENT: it is something else.
 */
int insn__safe_call(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		    struct insn_safe_call *ret_call);

#endif
