/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading what the BPF programs keep in maps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

struct sites {
	struct kernel *kernel;
	bool (*gone)(void *ctx, uint32_t tgid); /* NULL: report all sites and keep them */
	int (*fn)(void *ctx, const struct wire_site_key *key, const struct wire_site *site);
	void *ctx;
};

static int on_site(void *ctx, const void *key, void *value)
{
	const struct sites *sites = ctx;
	const struct wire_site_key *site_key = key;
	struct wire_site *site = value;
	uint32_t user = site->user;
	int err;

	if (sites->gone && !sites->gone(sites->ctx, site_key->tgid))
		return 0;
	site->user = 0; /* only the kernel side uses it */
	err = sites->fn(sites->ctx, site_key, site);
	site->user = user;
	if (!err && sites->gone &&
	    bpf_map_delete_elem(bpf_map__fd(sites->kernel->skel->maps.call_sites), key) == 0)
		users__site_removed(sites->kernel, site);
	return err;
}

int kernel__sites(struct kernel *kernel,
		  int (*fn)(void *ctx, const struct wire_site_key *key,
			    const struct wire_site *site),
		  void *ctx)
{
	struct sites sites = {.kernel = kernel, .fn = fn, .ctx = ctx};

	return map__each(bpf_map__fd(kernel->skel->maps.call_sites), sizeof(struct wire_site_key),
			 sizeof(struct wire_site), on_site, &sites);
}

int kernel__sweep_sites(struct kernel *kernel, bool (*gone)(void *ctx, uint32_t tgid),
			int (*fn)(void *ctx, const struct wire_site_key *key,
				  const struct wire_site *site),
			void *ctx)
{
	struct sites sites = {.kernel = kernel, .gone = gone, .fn = fn, .ctx = ctx};
	int err =
		map__each(bpf_map__fd(kernel->skel->maps.call_sites), sizeof(struct wire_site_key),
			  sizeof(struct wire_site), on_site, &sites);

	users__sweep_threads(kernel);
	return err;
}

/* Like calls_known() in bpf/calls.bpf.h; a thread that is off the CPU has the state it left
 * with. */
static bool calls_known(const struct attached *a, const struct wire_thread *thread)
{
	if (!a)
		return false;
	if (thread->off_since_ns)
		return thread->epoch;
	return !(a->wire.flags & WIRE_TARGET_PROBES_OFF) &&
	       (a->wire.epoch == 1 || thread->epoch == a->wire.epoch);
}

void kernel__flush(struct kernel *kernel)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err;

	if (!kernel->sparse && !kernel__counter(kernel, WIRE_CNT_LOST_RING))
		return;
	__atomic_store_n(&kernel->skel->bss->hold_paused, 1, __ATOMIC_SEQ_CST);
	err = bpf_prog_test_run_opts(bpf_program__fd(kernel->skel->progs.on_flush), &run);
	/* short off-CPU intervals then come in the next window, or count as CPU time at the end */
	if (err)
		log_verbose("on_flush: cannot be run: %s", strerror(-err));
}

struct threads {
	struct kernel *kernel;
	int (*fn)(void *ctx, pid_t tid, const struct wire_thread *thread);
	void *ctx;
};

static int on_thread(void *ctx, const void *key, void *value)
{
	const struct threads *threads = ctx;
	struct wire_thread *thread = &((struct wire_thread_entry *)value)->th;
	const struct attached *a = kernel__find(threads->kernel, (pid_t)thread->tgid);

	thread->user = 0; /* only the kernel side uses it */
	if (calls_known(a, thread))
		thread->epoch = a->wire.epoch;
	else
		thread->epoch = thread->depth = 0;
	return threads->fn(threads->ctx, *(const pid_t *)key, thread);
}

int kernel__threads(struct kernel *kernel,
		    int (*fn)(void *ctx, pid_t tid, const struct wire_thread *thread), void *ctx)
{
	struct threads threads = {.kernel = kernel, .fn = fn, .ctx = ctx};

	return map__each(bpf_map__fd(kernel->skel->maps.threads), sizeof(__u32),
			 sizeof(struct wire_thread_entry), on_thread, &threads);
}

struct family {
	int (*fn)(void *ctx, pid_t pid);
	void *ctx;
};

static int on_family(void *ctx, const void *key, void *value)
{
	const struct family *family = ctx;

	(void)value;
	return family->fn(family->ctx, *(const pid_t *)key);
}

int kernel__family(struct kernel *kernel, int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct family family = {.fn = fn, .ctx = ctx};

	if (kernel->all)
		return 0;
	return map__each(bpf_map__fd(kernel->skel->maps.family), sizeof(__u32), sizeof(__u32),
			 on_family, &family);
}

void kernel__hold_again(struct kernel *kernel)
{
	__atomic_store_n(&kernel->skel->bss->hold_paused, 0, __ATOMIC_SEQ_CST);
}

int kernel__off_stack(struct kernel *kernel, pid_t tid, struct wire_off_stack *ret_stack)
{
	__u32 key = (__u32)tid;
	struct wire_off_stack stack;

	if (bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.off_stacks), &key, &stack))
		return -errno;
	if (stack.stack.nframes > WIRE_OFF_FRAMES)
		return -EBADMSG;
	stack__straighten(&stack.stack, (uint64_t *)stack.frames);
	*ret_stack = stack;
	return 0;
}

uint64_t kernel__counter(struct kernel *kernel, enum wire_counter which)
{
	int cpus = libbpf_num_possible_cpus();
	__u32 key = (__u32)which;
	uint64_t sum = 0, *each;

	if (cpus < 1)
		return 0;
	each = calloc((size_t)cpus, sizeof(*each));
	if (!each)
		return 0;
	if (bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.counters), &key, each) == 0)
		for (int i = 0; i < cpus; i++)
			sum += each[i];
	free(each);
	return sum;
}

const char *kernel__loss_name(enum wire_counter which)
{
	switch (which) {
	case WIRE_CNT_LOST_RING:
		return "ring_full";
	case WIRE_CNT_LOST_SCRATCH:
		return "no_scratch";
	case WIRE_CNT_LOST_THREADS:
		return "threads_full";
	case WIRE_CNT_LOST_SITES:
		return "sites_full";
	case WIRE_CNT_CALL_OVERFLOW:
		return "calls_too_deep";
	case WIRE_CNT_CALL_FAULT:
		return "call_unreadable";
	default:
		return NULL;
	}
}

uint64_t kernel__lost_records(struct kernel *kernel)
{
	uint64_t lost = 0;

	for (int i = 0; i < WIRE_CNT_MAX; i++)
		if (kernel__loss_name((enum wire_counter)i))
			lost += kernel__counter(kernel, (enum wire_counter)i);
	return lost;
}
