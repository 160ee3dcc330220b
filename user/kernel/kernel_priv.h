/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef SAFESCOPED_KERNEL_PRIV_H
#define SAFESCOPED_KERNEL_PRIV_H

#include <bpf/libbpf.h>

#include "kernel.h"

struct safescope_bpf;
struct unwind;
struct ring_buffer;

/* ── uprobe.c ────────────────────────────────────────────────────────────────────────────── */

/* One uprobe link of either kind. */
struct uprobe {
	int fd;		       /* uprobe_multi link; -1: none */
	struct bpf_link *link; /* perf uprobe; NULL: none */
};

/* Whether the kernel has uprobe_multi links whose process filter works. */
bool uprobe__has_multi(void);
/* The attach type a program needs before load to be used with a multi link. */
int uprobe__prepare(struct bpf_program *prog, bool multi);
/* pid 0: every process that maps the file. */
int uprobe__attach(struct bpf_program *prog, bool multi, const char *path, uint64_t offset,
		   pid_t pid, struct uprobe *ret_probe);
void uprobe__detach(struct uprobe *probe);

/* ── sampler.c ───────────────────────────────────────────────────────────────────────────── */

struct sampler;
int sampler__new(struct bpf_program *prog, uint32_t frequency_hz, struct sampler **ret_sampler);
void sampler__free(struct sampler *sampler);
/* True if a cpu-clock event can be opened. */
bool sampler__works(void);

/* ── calibrate.c ─────────────────────────────────────────────────────────────────────────── */

/* Measures one trap of a uprobe on a function of this program, in ns. 0 if it cannot be done. */
uint64_t calibrate__trap_ns(struct bpf_program *prog, bool multi);

/* ── one target's probes ─────────────────────────────────────────────────────────────────── */

#define KERNEL_MAX_TARGETS 4096

enum probe_state { PROBES_ABSENT, PROBES_ON, PROBES_OFF, PROBES_TRIAL };

struct attached {
	pid_t pid;
	struct target_probe suspend_at, resume_at;
	struct uprobe suspend, resume, tick, gc_start, gc_end;
	struct wire_target wire;
	/* budget */
	enum probe_state state;
	uint64_t since_ns; /* of the state */
	uint64_t checked_ns, checked_hits;
	uint64_t on_ns, off_ns; /* of states that have ended */
	uint64_t retry_ns;	/* how long the probes stay off this time */
	unsigned over;		/* checks in a row over the budget */
};

struct kernel {
	struct safescope_bpf *skel;
	struct ring_buffer *ring;
	struct sampler *sampler;
	int stats_fd;
	bool multi;
	double max_overhead_percent;
	uint64_t trap_ns;
	struct attached *targets;
	size_t n_targets, cap_targets;
	kernel_record_fn fn; /* during a drain */
	void *fn_ctx;
	int fn_err;
	uint64_t *record; /* scratch of the drain */
	struct unwind *unwind;
};

struct attached *kernel__find(struct kernel *kernel, pid_t pid);

/* ── unwind.c ────────────────────────────────────────────────────────────────────────────── */

int unwind__new(struct unwind **ret_unwind);
void unwind__free(struct unwind *unwind);
void unwind__forget(struct kernel *kernel, pid_t pid);

/* ── calls.c ─────────────────────────────────────────────────────────────────────────────── */

int call_probes__on(struct kernel *kernel, struct attached *a);
void call_probes__off(struct kernel *kernel, struct attached *a);

/* Turns the ring of root frames of a deep stack; see wire.h, struct wire_stack. */
void stack__straighten(struct wire_stack *stack, uint64_t *frames);

/* Run time of all programs so far, ns; false without statistics. */
bool kernel__run_time(struct kernel *kernel, uint64_t *ret_ns);

#endif
