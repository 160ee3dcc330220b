/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening and closing: the BPF object, the programs that are not bound to a target, the ring. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/base.h"
#include "base/limit.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

/* The verifier logs everything it did; the reason for its refusal is at the end. */
#define LINES_SHOWN 40
/* With less than this, libbpf may have failed for lack of memory whatever error it reports. */
#define LITTLE_MEMORY (128ULL << 20)

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char *text, *line, *end, *next;
	unsigned lines = 0;

	if (level == LIBBPF_DEBUG || log__level() < LOG_LVL_DEBUG)
		return 0;
	if (vasprintf(&text, fmt, args) < 0)
		return 0;
	end = text + strlen(text);
	while (end > text && end[-1] == '\n')
		*--end = '\0';
	for (line = end; line > text; line--)
		if (line[-1] == '\n' && ++lines == LINES_SHOWN)
			break;
	for (; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		log_debug("%s", line);
	}
	free(text);
	return 0;
}

static int prepare_uprobes(struct safescope_bpf *skel, bool multi)
{
	struct bpf_program *progs[] = {
		skel->progs.on_suspend,	  skel->progs.on_resume,   skel->progs.on_tick,
		skel->progs.on_gc_sync,	  skel->progs.on_gc_start, skel->progs.on_gc_end,
		skel->progs.on_calibrate,
	};

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		int err = uprobe__prepare(progs[i], multi);

		if (err)
			return err;
	}
	return 0;
}

/* Hands the link's descriptor over to the keeper; libbpf's copy is destroyed. */
static int hand_over(struct keeper *keeper, struct bpf_link *link)
{
	int fd = fcntl(bpf_link__fd(link), F_DUPFD_CLOEXEC, 3), err = fd < 0 ? -errno : 0;
	uint32_t id;

	if (!err)
		err = keeper__hold(keeper, KEEP_REST, fd, &id);
	bpf_link__destroy(link);
	return err;
}

static int attach_always(struct safescope_bpf *skel, struct keeper *keeper)
{
	struct bpf_program *progs[] = {
		skel->progs.on_switch, skel->progs.on_wakeup, skel->progs.on_fork,
		skel->progs.on_exit,   skel->progs.on_exec,   skel->progs.on_name,
	};

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		struct bpf_link *link = bpf_program__attach(progs[i]);
		int err = link ? hand_over(keeper, link) : -errno;

		if (err) {
			log_error("%s: cannot attach: %s; Linux 6.1 or later with BTF is needed",
				  bpf_program__name(progs[i]), strerror(-err));
			return err;
		}
	}
	return 0;
}

static int on_ring(void *ctx, void *data, size_t size);

static int open_ring(struct kernel *kernel)
{
	kernel->record = malloc(65536);
	if (!kernel->record)
		return -ENOMEM;
	kernel->ring =
		ring_buffer__new(bpf_map__fd(kernel->skel->maps.ring), on_ring, kernel, NULL);
	return kernel->ring ? 0 : -errno;
}

/* RtsFlags.MiscFlags.tickInterval's default, rts/RtsFlags.c, 8.10 to 9.14: 10 ms */
#define TICKS_PER_SEC 100
/* In sparse sessions user space is woken when a quarter of the usual number of bytes is unread. */
#define SPARSE_WAKEUP_SHARE 4
/* See bpf/hold.bpf.h. */
#define HOLD_FOR_NS 200000000ULL

/*
 * Events that each target produces by the hundred per second cost the same at any sampling
 * frequency. A session with a low frequency, such as a service, records them no more often than it
 * samples; times and counts remain exact.
 */
static void set_rates(struct kernel *kernel, uint32_t frequency_hz)
{
	struct safescope_bpf__rodata *ro = kernel->skel->rodata;

	if (!kernel->sparse)
		return;
	/* the ring keeps its size: on a busy host the daemon may be held up for seconds */
	ro->wakeup_bytes /= SPARSE_WAKEUP_SHARE;
	ro->stacks_by_samples = 1;
	ro->hold_for_ns = HOLD_FOR_NS;
	ro->tick_every = MAX(1u, TICKS_PER_SEC / frequency_hz);
}

/* When libbpf lacks descriptors or memory it may report some other error, because it then misses
 * something that it could not read. */
static int why_refused(int err)
{
	const char *name;

	return err != -EMFILE && limit__memory(&name) < LITTLE_MEMORY ? -ENOMEM : err;
}

static bool has_descriptors(const struct bpf_object *obj)
{
	const struct bpf_program *prog = NULL;
	const struct bpf_map *map = NULL;
	unsigned n = 0;

	while ((map = bpf_object__next_map(obj, map)))
		n++;
	while ((prog = bpf_object__next_program(obj, (struct bpf_program *)prog)))
		n += bpf_program__autoload(prog);
	return fd__has_room(n);
}

static int load_object(struct kernel *kernel, const struct kernel_opts *opts)
{
	int err;

	libbpf_set_print(print_libbpf);
	kernel->skel = safescope_bpf__open();
	if (!kernel->skel)
		return -errno;
	if (kernel->skel->rodata->wire_version != WIRE_VERSION)
		return -EPROTO;
	kernel->skel->rodata->follow_tsos = opts->tsos;
	kernel->skel->rodata->held_up_ns = WIRE_HELD_UP_NS * machine__slowness();
	kernel->skel->rodata->kernel_stacks = opts->kernel_stacks;
	set_rates(kernel, opts->frequency_hz);
	err = prepare_uprobes(kernel->skel, kernel->multi);
	if (err)
		return err;
	/* no message here: the session has one of its own for this */
	if (!has_descriptors(kernel->skel->obj))
		return -EMFILE;
	err = safescope_bpf__load(kernel->skel);
	/* libbpf has freed the kernel's BTF, some 10 MB */
	malloc_trim(0);
	if (err)
		log_error("the kernel refuses the BPF programs: %s%s; -vv shows the verifier's log",
			  strerror(-err), limit__why(why_refused(err)).text);
	return err;
}

int kernel__open(const struct kernel_opts *opts, struct kernel **ret_kernel)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	int err;

	if (!kernel)
		return -ENOMEM;
	kernel->multi = opts->features->uprobe_multi;
	kernel->all = opts->all;
	kernel->max_overhead_percent = opts->max_overhead_percent;
	kernel->sparse = opts->frequency_hz < KERNEL_SPARSE_HZ;
	/* first, so that it inherits nothing that is opened later */
	err = keeper__new(&kernel->keeper);
	if (!err)
		err = unwind__new(&kernel->unwind);
	if (!err)
		err = users__new(&kernel->users);
	if (!err)
		err = load_object(kernel, opts);
	if (!err)
		err = programs__new(bpf_map__fd(kernel->skel->maps.programs),
				    bpf_map__max_entries(kernel->skel->maps.programs),
				    &kernel->programs);
	if (err)
		goto fail;
	if (kernel->all)
		kernel__follow(kernel, 0);
	/* without an account of run time the budget knows only the traps, which the report shows */
	err = run_time__new(kernel->skel->obj, kernel->keeper, kernel->sparse, &kernel->run_time);
	if (err)
		goto fail;
	err = open_ring(kernel);
	if (err)
		goto fail;
	err = attach_always(kernel->skel, kernel->keeper);
	if (err)
		goto fail;
	err = sampler__start(kernel->skel->progs.on_sample, opts->frequency_hz, kernel->keeper,
			     &kernel->sampler);
	if (err)
		goto fail;
	/* without it dlopened libraries are found late or not at all; everything else works */
	err = mappings__new(kernel->keeper, &kernel->mappings);
	if (err)
		log_verbose("the kernel does not report new mappings: %s", strerror(-err));
	kernel__keep_from_children();
	held_up__begin(kernel);
	*ret_kernel = kernel;
	return 0;
fail:
	kernel__close(kernel);
	return err;
}

bool kernel__is_sparse(const struct kernel *kernel)
{
	return kernel->sparse;
}

void kernel__release(struct kernel *kernel)
{
	if (kernel->keeper)
		keeper__release(kernel->keeper);
	sampler__free(kernel->sampler);
	kernel->sampler = NULL;
	mappings__free(kernel->mappings);
	kernel->mappings = NULL;
}

void kernel__let_files_go(struct kernel *kernel, uint64_t wait_ms)
{
	if (!kernel->leases || !keeper__ended(kernel->keeper, wait_ms))
		return;
	for (struct probe *p = kernel->probes; p; p = p->hh.next)
		p->lease = NULL;
	leases__free(kernel);
}

void kernel__close(struct kernel *kernel)
{
	if (!kernel)
		return;
	kernel__release(kernel);
	while (kernel->targets)
		kernel__detach(kernel, kernel->targets->pid);
	probes__free(kernel);
	ring_buffer__free(kernel->ring);
	run_time__free(kernel->run_time);
	safescope_bpf__destroy(kernel->skel);
	unwind__free(kernel->unwind);
	users__free(kernel->users);
	programs__free(kernel->programs);
	/* last, so that it has had time to end */
	keeper__free(kernel->keeper);
	leases__free(kernel);
	free(kernel->record);
	free(kernel);
}

/* ── the ring ────────────────────────────────────────────────────────────────────────────── */

/* The stack in a record; NULL if it has none. */
static struct wire_stack *stack_of(void *record, size_t size, uint64_t **ret_frames)
{
	const struct wire_hdr *h = record;
	size_t head;
	struct wire_stack *stack;

	switch (h->type) {
	case WIRE_SAMPLE:
		head = sizeof(struct wire_sample);
		stack = &((struct wire_sample *)record)->stack;
		break;
	case WIRE_OFF:
		head = sizeof(struct wire_off);
		stack = &((struct wire_off *)record)->stack;
		break;
	case WIRE_CALL:
		head = sizeof(struct wire_call);
		stack = &((struct wire_call *)record)->stack;
		break;
	case WIRE_ALLOC:
		head = sizeof(struct wire_alloc);
		stack = &((struct wire_alloc *)record)->stack;
		break;
	default:
		return NULL;
	}
	if (size < head || stack->nframes > (size - head) / sizeof(uint64_t))
		return NULL;
	*ret_frames = (uint64_t *)((char *)record + head);
	return stack;
}

static void reverse(uint64_t *a, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint64_t t = a[i];

		a[i] = a[n - 1 - i];
		a[n - 1 - i] = t;
	}
}

/*
 * The root frames of a deep stack come as a ring, which is unrolled here so that nobody else needs
 * to know about it. The elision mark is removed if nothing was left out after all.
 */
void stack__straighten(struct wire_stack *stack, uint64_t *frames)
{
	size_t n = stack->nframes, mark = 0, tail;

	if (!(stack->elided & 1))
		return;
	while (mark < n && frames[mark] >> WIRE_FRAME_KIND_SHIFT != WIRE_FRAME_ELIDED)
		mark++;
	if (mark == n)
		return;
	tail = n - mark - 1;
	if (stack->turn && stack->turn < tail) {
		reverse(frames + mark + 1, stack->turn);
		reverse(frames + mark + 1 + stack->turn, tail - stack->turn);
		reverse(frames + mark + 1, tail);
	}
	if (!(stack->elided & 2)) {
		memmove(frames + mark, frames + mark + 1, tail * sizeof(*frames));
		stack->nframes--;
	}
	stack->elided = (stack->elided & 4) | ((stack->elided & 2) ? 1 : 0);
	stack->turn = 0;
}

static int on_ring(void *ctx, void *data, size_t size)
{
	struct kernel *kernel = ctx;
	const struct wire_hdr *h = data;
	struct wire_stack *stack;
	uint64_t *frames;

	if (size < sizeof(struct wire_hdr) || size > 65536 || !kernel->fn || kernel->fn_err)
		return 0;
	memcpy(kernel->record, data, size);
	stack = stack_of(kernel->record, size, &frames);
	if (stack)
		stack__straighten(stack, frames);
	kernel->fn_err = kernel->fn(kernel->fn_ctx, kernel->record, size);
	/* libbpf consumes this record nevertheless */
	return h->ns > kernel->drained_ns ? -EAGAIN : 0;
}

int kernel__drain(struct kernel *kernel, int timeout_ms, kernel_record_fn fn, void *ctx)
{
	int err;

	kernel->fn = fn;
	kernel->fn_ctx = ctx;
	kernel->fn_err = 0;
	/* ends the drain even if records come faster than they are taken: later ones are left
	 * for the next drain, or lost */
	kernel->drained_ns = time__monotonic_ns();
	/* few records cause no wake-up, so always consume after the wait */
	err = timeout_ms ? ring_buffer__poll(kernel->ring, timeout_ms) : 0;
	if (err >= 0 || err == -EINTR)
		err = ring_buffer__consume(kernel->ring);
	kernel->fn = NULL;
	if (kernel->fn_err)
		return kernel->fn_err;
	return err < 0 && err != -EAGAIN ? err : 0;
}

int kernel__poll_fd(const struct kernel *kernel)
{
	return ring_buffer__epoll_fd(kernel->ring);
}
