/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processor-dependent part of the kernel side. A port needs, besides this header: struct
 * pt_regs and struct user_regs in vmlinux_min.h, __TARGET_ARCH_… in the Makefile,
 * calls_suspending() in calls.bpf.h (a call puts its return address on the stack), the frames of
 * StgRun and of signals in cstack.bpf.h and wire_unwind.h, the rules of wire_unwind.h (enum
 * wire_cfi) that unwind.bpf.h follows, and arch.h in the rooms elf, rts and unwind of the user
 * side.
 */
#ifndef SS_ARCH_BPF_H
#define SS_ARCH_BPF_H

#if !defined(__TARGET_ARCH_x86) && !defined(__x86_64__)
#error "bpf/arch.bpf.h knows x86-64 only"
#endif

/* For struct pt_regs and the registers of a perf sample. */
#define ARCH_IP(regs) ((regs)->ip)
#define ARCH_SP(regs) ((regs)->sp)
/* C's frame pointer, which is Sp in Haskell code; BaseReg in Haskell code
 * (rts/include/stg/MachRegs.h). */
#define ARCH_FP(regs)	((regs)->bp)
#define ARCH_BASE(regs) ((regs)->r13)
/* A register that a function's first instruction may push, besides the frame pointer. */
#define ARCH_SAVED(regs)     ((regs)->bx)
#define ARCH_FROM_USER(regs) (((regs)->cs & 3) == 3)

/* At a function's entry; the return address is at ARCH_SP. System V ABI, AMD64. */
#define ARCH_ARG1(regs) ((regs)->di)
#define ARCH_ARG2(regs) ((regs)->si)
#define ARCH_ARG3(regs) ((regs)->dx)
#define ARCH_ARG4(regs) ((regs)->cx)
#define ARCH_ARG5(regs) ((regs)->r8)
#define ARCH_ARG6(regs) ((regs)->r9)

/* Base address of thread-local variables, from a struct task_struct. */
#define ARCH_THREAD_POINTER(task) ((task)->thread.fsbase)

/*
 * True if the registers are those of a system call's entry, false if the thread was interrupted:
 * the syscall instruction leaves rip in rcx and rflags in r11.
 */
#define ARCH_IN_SYSCALL(regs) ((regs)->cx == (regs)->ip && (regs)->r11 == (regs)->flags)
#define ARCH_SYSCALL(regs)    ((u32)(regs)->orig_ax)

/* The breakpoint that replaces the first byte of a probed instruction (int3), and its length. */
#define ARCH_BREAKPOINT	     0xcc
#define ARCH_BREAKPOINT_SIZE 1

#endif
