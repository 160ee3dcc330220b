/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures the cost of a trap on this machine: a uprobe with an empty program on a function of our
 * own that is called in a loop. Like suspendThread, the function begins with a push, which the
 * kernel emulates.
 */
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "keeper_priv.h"
#include "kernel_priv.h"

#define CALIBRATE_ROUNDS 8
#define CALIBRATE_CALLS	 250

__attribute__((naked, noinline, used)) static void calibrate_here(void)
{
	__asm__ volatile("push %rbp\n\tpop %rbp\n\tret");
}

struct own_text {
	uintptr_t addr;
	uint64_t offset;
	bool found;
};

static int own_segment(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct own_text *own = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || own->addr < start || own->addr - start >= ph->p_filesz)
			continue;
		own->offset = own->addr - start + ph->p_offset;
		own->found = true;
		return 1;
	}
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* The minimum of several rounds, to exclude what other programs on the machine add. */
static uint64_t least_per_call(void)
{
	uint64_t least = UINT64_MAX;

	for (int round = 0; round < CALIBRATE_ROUNDS; round++) {
		uint64_t start = cpu_ns(), took;

		for (int i = 0; i < CALIBRATE_CALLS; i++)
			calibrate_here();
		took = cpu_ns() - start;
		least = MIN(least, took);
	}
	return least / CALIBRATE_CALLS;
}

uint64_t calibrate__trap_ns(struct bpf_program *prog, bool multi, struct keeper *keeper)
{
	struct own_text own = {.addr = (uintptr_t)calibrate_here};
	uint64_t with, without;
	int err, fd;

	dl_iterate_phdr(own_segment, &own);
	if (!own.found)
		return 0;
	without = least_per_call();
	err = uprobe__attach(prog, multi, "/proc/self/exe", own.offset, getpid(), &fd);
	if (err) {
		log_verbose("a trap's cost cannot be measured: %s", strerror(-err));
		return 0;
	}
	with = least_per_call();
	keeper__discard(keeper, fd);
	return with > without ? with - without : 0;
}
