/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The few kernel structs that the programs read, with only the fields that they read. CO-RE
 * relocates every access against the running kernel's BTF, so order and padding do not matter.
 */
#ifndef SAFESCOPED_VMLINUX_MIN_H
#define SAFESCOPED_VMLINUX_MIN_H

/* bpf_tracing.h: our struct pt_regs has the kernel's field names */
#define __VMLINUX_H__

#include <linux/types.h>
#include <linux/bpf.h>

typedef _Bool bool;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

struct thread_struct {
	unsigned long fsbase;
};

typedef struct {
	int counter;
} atomic_t;

struct list_head {
	struct list_head *next;
};

struct signal_struct {
	atomic_t live;
	unsigned int flags;
	struct task_struct *group_exec_task; /* since Linux 5.17 */
	struct list_head thread_head;
};

struct super_block {
	unsigned int s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct mm_struct {
	struct file *exe_file;
	unsigned long start_stack;
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

/* exists for a thread at a uprobe; xol_vaddr: where the instruction is single-stepped out of
 * line */
struct uprobe_task {
	unsigned long vaddr;
	unsigned long xol_vaddr;
};

struct task_struct {
	unsigned int __state;
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int in_execve : 1;
	__u64 start_boottime;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	struct list_head thread_node;
	struct sched_entity se;
	struct thread_struct thread;
	struct uprobe_task *utask;
	char comm[16];
};

#pragma clang attribute pop

/* The context of a perf_event program is not a BTF object: its layout is fixed (uapi). */
struct user_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct user_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#endif
