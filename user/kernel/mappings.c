/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Executable mappings of all processes as they are made: perf's MMAP2 records, in a small ring for
 * each CPU. This needs no program in the path of mmap() and no polling of processes; it is how
 * libraries that are dlopened long after the exec are found.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/base.h"
#include "kernel_priv.h"

/* Data pages of a ring, a power of two: 64 KiB hold some 500 records. */
#define RING_PAGES   16U
#define RING_PAGE    4096U
#define RING_BYTES   (RING_PAGES * RING_PAGE)
#define RECORD_BYTES 65536U

/* include/uapi/linux/perf_event.h, PERF_RECORD_MMAP2 without MMAP_BUILD_ID */
struct record_mmap2 {
	struct perf_event_header header;
	__u32 pid, tid;
	__u64 addr, len, pgoff;
	__u32 maj, min;
	__u64 ino, ino_generation;
	__u32 prot, flags;
};

struct mapping_ring {
	int fd; /* -1: none, the CPU is offline */
	struct perf_event_mmap_page *page;
};

struct mappings {
	struct keeper *keeper;
	struct mapping_ring *rings; /* by CPU */
	int n;
	bool lost;    /* a CPU was online for a while without reporting its mappings */
	int epoll_fd; /* readable when there are records */
};

static int open_ring(struct keeper *keeper, int cpu, struct mapping_ring *ring)
{
	int fd = cpu_event__open(keeper, CPU_EVENT_MAPPINGS, cpu, 0);
	void *mem;

	if (fd < 0)
		return fd;
	ring->fd = fd;
	mem = mmap(NULL, RING_PAGE + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (mem == MAP_FAILED) {
		int err = -errno;

		fd__close(&ring->fd);
		return err;
	}
	ring->page = mem;
	return 0;
}

static void close_ring(struct mapping_ring *ring)
{
	if (ring->fd < 0)
		return;
	munmap(ring->page, RING_PAGE + RING_BYTES);
	fd__close(&ring->fd);
}

void mappings__free(struct mappings *m)
{
	if (!m)
		return;
	for (int cpu = 0; cpu < m->n; cpu++)
		close_ring(&m->rings[cpu]);
	fd__close(&m->epoll_fd);
	free(m->rings);
	free(m);
}

/* -ENODEV: the CPU is offline. */
static int begin(struct mappings *m, int cpu)
{
	struct mapping_ring *ring = &m->rings[cpu];
	struct epoll_event ev = {.events = EPOLLIN};
	int err = open_ring(m->keeper, cpu, ring);

	if (err)
		return err;
	if (!epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, ring->fd, &ev))
		return 0;
	err = -errno;
	close_ring(ring);
	return err;
}

int mappings__new(struct keeper *keeper, struct mappings **ret_mappings)
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	struct mappings *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->keeper = keeper;
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll_fd < 0)
		err = -errno;
	m->rings = cpus > 0 ? calloc((size_t)cpus, sizeof(*m->rings)) : NULL;
	if (!m->rings)
		err = -ENOMEM;
	for (int cpu = 0; m->rings && cpu < cpus; cpu++)
		m->rings[m->n++].fd = -1;
	for (int cpu = 0; cpu < cpus && !err; cpu++) {
		err = begin(m, cpu);
		if (err == -ENODEV)
			err = 0; /* offline */
	}
	if (err) {
		mappings__free(m);
		return err;
	}
	*ret_mappings = m;
	return 0;
}

/* The CPU's ring was lost when it went offline, like the sampler's event. */
int mappings__revive(struct mappings *m, int cpu)
{
	if (!m || cpu >= m->n)
		return 0;
	close_ring(&m->rings[cpu]);
	m->lost = true;
	return begin(m, cpu);
}

static void hand_over(const uint8_t *record, size_t size, kernel_mapping_fn fn, void *ctx)
{
	struct record_mmap2 r;
	struct kernel_mapping m;

	memcpy(&r.header, record, sizeof(r.header));
	if (r.header.type == PERF_RECORD_LOST)
		fn(ctx, NULL);
	if (r.header.type != PERF_RECORD_MMAP2 || size < sizeof(r))
		return;
	memcpy(&r, record, sizeof(r));
	m = (struct kernel_mapping){
		.pid = (pid_t)r.pid,
		.start = r.addr,
		.end = r.addr + r.len,
		.dev_major = r.maj,
		.dev_minor = r.min,
		.ino = r.ino,
		.generation = r.ino_generation,
	};
	if (m.pid > 0 && m.end > m.start)
		fn(ctx, &m);
}

static void drain_ring(struct mapping_ring *ring, uint8_t *buf, kernel_mapping_fn fn, void *ctx)
{
	const uint8_t *data = (const uint8_t *)ring->page + RING_PAGE;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header h;
		uint64_t at = tail % RING_BYTES, first;

		/* record sizes are multiples of 8, so a header never wraps around */
		memcpy(&h, data + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		first = MIN((uint64_t)h.size, RING_BYTES - at);
		memcpy(buf, data + at, first);
		memcpy(buf + first, data, h.size - first);
		hand_over(buf, h.size, fn, ctx);
		tail += h.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

int kernel__mappings_fd(const struct kernel *kernel)
{
	return kernel->mappings ? kernel->mappings->epoll_fd : -1;
}

int kernel__mappings(struct kernel *kernel, kernel_mapping_fn fn, void *ctx)
{
	struct mappings *m = kernel->mappings;
	uint8_t *buf;

	if (!m)
		return -ENOTSUP;
	buf = malloc(RECORD_BYTES);
	if (!buf)
		return -ENOMEM;
	if (m->lost)
		fn(ctx, NULL);
	m->lost = false;
	for (int cpu = 0; cpu < m->n; cpu++)
		if (m->rings[cpu].fd >= 0)
			drain_ring(&m->rings[cpu], buf, fn, ctx);
	free(buf);
	return 0;
}
