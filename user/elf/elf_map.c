/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_map: mapped files that may shrink at any time; see elf_map_priv.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "elf_map_priv.h"

/* More than the room above keeps (process/file.c), each with a debug file. Without a free slot a
 * file is not mapped: copying it instead would let its owner choose how much memory we use. */
#define MAP_SLOTS 8704

/*
 * A signal handler gets no context, so its data must be at a fixed address. `start` is written last
 * when a slot is taken, and cleared first when it is released.
 */
struct map_slot {
	_Atomic uintptr_t start; /* 0: unused */
	_Atomic uintptr_t end;
	_Atomic bool taken;
};

/* Process-wide, since a signal handler gets no context. */
static struct map_slot map_slots[MAP_SLOTS];
static struct sigaction map_previous;
static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER; /* guards map_previous and map_page */
static size_t map_page;

/* Only async-signal-safe calls: mmap() is a bare system call on Linux. */
static bool patch(uintptr_t addr)
{
	size_t i;

	for (i = 0; i < MAP_SLOTS; i++) {
		uintptr_t start = atomic_load(&map_slots[i].start);
		uintptr_t end = atomic_load(&map_slots[i].end);
		uintptr_t page = addr & ~(uintptr_t)(map_page - 1);

		if (start == 0 || addr < start || addr >= end)
			continue;
		if (mmap((void *)page, end - page, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return false;
		return true;
	}
	return false;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	/* si_code > 0: from the kernel, for a memory access; a sent signal has no address. */
	if (info->si_code > 0 && patch((uintptr_t)info->si_addr)) {
		errno = saved;
		return;
	}
	if (map_previous.sa_flags & SA_SIGINFO) {
		map_previous.sa_sigaction(sig, info, context);
	} else if (map_previous.sa_handler != SIG_DFL && map_previous.sa_handler != SIG_IGN) {
		map_previous.sa_handler(sig);
	} else {
		/* Restore the default; the access faults again, or the signal is raised again. */
		signal(sig, SIG_DFL);
		if (info->si_code <= 0)
			raise(sig);
	}
	errno = saved;
}

/* Checks at every open that the handler is still installed: a library may have replaced it. */
static int install(void)
{
	struct sigaction action, now;
	long page = sysconf(_SC_PAGESIZE);
	int err = 0;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_sigbus;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	sigemptyset(&action.sa_mask);
	pthread_mutex_lock(&map_lock);
	map_page = page > 0 ? (size_t)page : 4096;
	if (sigaction(SIGBUS, NULL, &now)) {
		err = -errno;
	} else if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
		map_previous = now;
		if (sigaction(SIGBUS, &action, NULL))
			err = -errno;
	}
	pthread_mutex_unlock(&map_lock);
	return err;
}

static int take_slot(uintptr_t start, uintptr_t end)
{
	int i;

	for (i = 0; i < MAP_SLOTS; i++) {
		bool expected = false;

		if (atomic_load(&map_slots[i].taken) ||
		    !atomic_compare_exchange_strong(&map_slots[i].taken, &expected, true))
			continue;
		atomic_store(&map_slots[i].end, end);
		atomic_store(&map_slots[i].start, start);
		return i;
	}
	return -1;
}

int elf_map__open(int fd, size_t size, struct elf_map *ret_map)
{
	struct elf_map map = {.size = size, .slot = -1, .fd = -1};
	size_t pages;
	void *at;
	int err;

	err = install();
	if (err)
		return err;
	if (size == 0 || size > SIZE_MAX - 2 * map_page)
		return -EINVAL;

	/* Reserve one more page than needed: it stays anonymous, hence zero. */
	pages = (size + map_page - 1) & ~(map_page - 1);
	map.total = pages + map_page;
	at = mmap(NULL, map.total, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	map.data = at;
	map.slot = take_slot((uintptr_t)at, (uintptr_t)at + pages);
	/*
	 * Shared: uprobes, ours and others', are inserted into every private mapping of the file,
	 * whatever its protection (kernel/events/uprobes.c, valid_vma()), and the code read here
	 * would contain breakpoints.
	 */
	if (map.slot < 0)
		err = -ENFILE;
	else if (mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		err = -errno;
	if (err) {
		elf_map__free(&map);
		return err;
	}
	*ret_map = map;
	return 0;
}

void elf_map__free(struct elf_map *map)
{
	if (!map || map->total == 0)
		return;
	if (map->slot >= 0) {
		atomic_store(&map_slots[map->slot].start, 0);
		atomic_store(&map_slots[map->slot].taken, false);
	}
	munmap((void *)map->data, map->total);
	fd__close(&map->fd);
	memset(map, 0, sizeof(*map));
	map->slot = map->fd = -1;
}

void elf_map__drop(const struct elf_map *map, size_t offset, size_t len)
{
	size_t end;

	if (map->total == 0 || offset > map->size || len > map->size - offset)
		return;
	end = (offset + len) & ~(map_page - 1);
	offset = (offset + map_page - 1) & ~(map_page - 1);
	if (offset < end)
		madvise((void *)(map->data + offset), end - offset, MADV_DONTNEED);
}

int elf_map__make_writable(const struct elf_map *map)
{
	if (map->total == 0 || map->fd < 0 ||
	    mmap((void *)map->data, map->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 map->fd, 0) == MAP_FAILED)
		return -ENOTSUP;
	return 0;
}
