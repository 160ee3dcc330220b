/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the target's memory, and hides the other differences between BPF and a native build: the
 * same walker runs in BPF, in the unit tests and fuzzers over a memory image, and in the snapshot's
 * helper process over process_vm_readv.
 */
#ifndef SAFESCOPED_MEM_BPF_H
#define SAFESCOPED_MEM_BPF_H

#ifdef __bpf__

#define SS_INLINE static __always_inline
/* Not inlined, for a stack frame of its own: a program and its callees share 512 bytes of stack. */
#define SS_NOINLINE static __attribute__((noinline, unused))

/*
 * A global function: the verifier checks it once, independently of its callers' states, which keeps
 * the verification of the walks short. Its pointers are to plain memory and may be NULL.
 */
#define SS_GLOBAL __attribute__((noinline))

struct mem;

/* Returns 0 or -EFAULT. Never sleeps, never faults a page in. */
SS_INLINE long mem_read(struct mem *mem, void *dst, u32 size, u64 addr)
{
	(void)mem;
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

#define ss_loop(n, fn, ctx) bpf_loop(n, fn, ctx, 0)

/* Keeps a bound that was just checked in the register that is then used as an index. */
#define ss_barrier(var) asm volatile("" : "+r"(var))

/*
 * Hides a value from the verifier, which would otherwise follow the code after an unrolled loop
 * once per result. `by` is any value that is unknown to the verifier.
 */
SS_INLINE s64 ss_opaque(s64 v, u64 by)
{
	asm volatile("%0 ^= %1; %0 ^= %1" : "+r"(v) : "r"(by));
	return v;
}

#else /* native */

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define SS_INLINE   static inline __attribute__((unused))
#define SS_NOINLINE static inline __attribute__((unused))

/* The memory that a native walker reads. read() returns 0 if all `size` bytes could be read. */
struct mem {
	int (*read)(struct mem *mem, void *dst, u32 size, u64 addr);
};

SS_INLINE long mem_read(struct mem *mem, void *dst, u32 size, u64 addr)
{
	return mem->read(mem, dst, size, addr);
}

/* Like bpf_loop: calls fn until it returns non-zero; returns the number of calls made. */
SS_INLINE long ss_loop(u32 n, long (*fn)(u32, void *), void *ctx)
{
	for (u32 i = 0; i < n; i++)
		if (fn(i, ctx))
			return (long)i + 1;
	return (long)n;
}

#define ss_barrier(var)                                                                            \
	do {                                                                                       \
	} while (0)

SS_INLINE s64 ss_opaque(s64 v, u64 by)
{
	(void)by;
	return v;
}

#endif

SS_INLINE long mem_u64(struct mem *mem, void *dst, u64 addr)
{
	return mem_read(mem, dst, sizeof(u64), addr);
}

/* Reads an unsigned field of 1, 2, 4 or 8 bytes. */
SS_INLINE long mem_uint(struct mem *mem, u64 *dst, u64 addr, u8 size)
{
	u64 v = 0;
	long err;

	if (size == 8)
		err = mem_read(mem, &v, 8, addr);
	else if (size == 4)
		err = mem_read(mem, &v, 4, addr);
	else if (size == 2)
		err = mem_read(mem, &v, 2, addr);
	else
		err = mem_read(mem, &v, 1, addr);
	*dst = v;
	return err;
}

#endif
