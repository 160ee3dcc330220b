/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How unwind rows of C code are encoded, and which file's rows a mapping of a process has. Included
 * by wire.h, which has the rules for all of them.
 */
#ifndef SAFESCOPED_WIRE_UNWIND_H
#define SAFESCOPED_WIRE_UNWIND_H

#include "wire.h"

/*
 * An unwind row has the rule of .eh_frame for the code from an address up to that of the next row:
 * how to find the canonical frame address (CFA: rsp before the call), the return address and the
 * caller's rbp. A row is one u64: the address relative to the file's first code page in the high
 * half, the rule in the low half:
 *   bits 0–3    enum wire_cfi
 *   bits 4–19   an offset, in words of 8 bytes
 *   bits 20–31  the caller's rbp: 0: unchanged; n: at CFA − 8 n; or WIRE_CFI_BP_…
 */
#define WIRE_CFI_KIND(rule)   ((rule)&15u)
#define WIRE_CFI_OFFSET(rule) (8u * (((rule) >> 4) & 0xffffu))
#define WIRE_CFI_BP(rule)     ((rule) >> 20)
#define WIRE_CFI_MAX_OFFSET   (8u * 0xffffu)
#define WIRE_CFI_BP_AT_BP     0xffeu /* saved at the address in rbp: realigned frames */
#define WIRE_CFI_BP_UNKNOWN   0xfffu
#define WIRE_CFI_MAX_BP	      0xff0u

enum wire_cfi {
	WIRE_CFI_NONE = 0, /* no row covers this code */
	WIRE_CFI_RSP = 1,  /* CFA = rsp + offset */
	WIRE_CFI_RBP = 2,  /* CFA = rbp + offset */
	WIRE_CFI_PLT = 3,  /* CFA = rsp + 8; from byte offset / 8 of a 16-byte entry on, + 16 */
	WIRE_CFI_RBP_DEREF = 4,	 /* CFA = *(rbp − offset) */
	WIRE_CFI_RSP_DEREF = 5,	 /* CFA = *(rsp + offset) */
	WIRE_CFI_RSP_DEREF8 = 6, /* CFA = *(rsp + offset) + 8 */
	WIRE_CFI_SIGNAL = 7,	 /* rsp + offset points at the registers of a ucontext */
	WIRE_CFI_STGRUN = 8,	 /* rsp + offset points at StgRun's 16 kB of reserved stack */
	WIRE_CFI_END = 9,	 /* the outermost frame */
	WIRE_CFI_UNKNOWN = 10,	 /* a rule that cannot be expressed by any of these */
	WIRE_CFI_LEAF_RDI = 11, /* CFA = rsp + offset, return address in rdi; only for the innermost
				   frame of a thread (glibc's vfork) */
};

/* struct ucontext, x86-64: offsets of the saved registers in a signal frame */
#define WIRE_CFI_SIGNAL_BP 120
#define WIRE_CFI_SIGNAL_SP 160
#define WIRE_CFI_SIGNAL_IP 168
/* GHC rts/StgCRun.c: offsets from rsp in Haskell code */
#define WIRE_CFI_STGRUN_BP 16392
#define WIRE_CFI_STGRUN_IP 16432

/*
 * A file's rows are one array of u64: first the buckets (one per 2^WIRE_UNWIND_BUCKET_SHIFT bytes
 * of code; low half: index of the first row inside, high half: number of rows), then the rows.
 */
#define WIRE_UNWIND_BUCKET_SHIFT 12
#define WIRE_UNWIND_FILES	 4096 /* file 0 has no rows */
#define WIRE_UNWIND_MAPS	 256

/* One executable mapping of a process. */
struct wire_unwind_map {
	__u64 start, end;
	__u64 base; /* load address of the file's first code page */
	__u32 file;
	__u32 buckets; /* number of buckets; 0: no rows */
};
WIRE_ASSERT_SIZE(struct wire_unwind_map, 32);

/* Value of `unwind_maps`, keyed by tgid. */
struct wire_unwind_maps {
	__u32 n;	  /* entries in v[], ascending and without overlaps */
	__u32 generation; /* changes whenever the process's mappings are read again */
	struct wire_unwind_map v[WIRE_UNWIND_MAPS];
};

#endif
