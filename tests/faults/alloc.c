/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fails allocations of the program that this is loaded into (LD_PRELOAD) or linked with (-DWRAPPED
 * and the linker's --wrap, for a build whose sanitizer has its own allocator: it then sees only the
 * program's own allocations, not those of its libraries).
 *
 * FAULTS_ALLOC names a file of the size of struct faults, shared with the program's children and
 * with the test that reads it: the number of allocations, and which of them fail.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAMES 24

struct faults {
	uint64_t first;	   /* the first one to fail, from 1; 0: none */
	uint64_t last;	   /* the last one to fail */
	uint64_t count;	   /* allocations so far */
	uint64_t n_frames; /* where the first one failed: offsets in the program, or 0 */
	uint64_t frames[FRAMES];
};

static struct faults *faults;
static pid_t counted; /* the process whose allocations count */
static uintptr_t base, end;

static int on_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	(void)ctx;
	base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && base + p->p_vaddr + p->p_memsz > end)
			end = base + p->p_vaddr + p->p_memsz;
	}
	/* the first object is the program */
	return 1;
}

/* Runs before main: earlier allocations are the loader's and are not counted. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAULTS_ALLOC");
	void *frames[1], *map;
	int fd;

	if (!path)
		return;
	/* programs that the one under test starts are left alone */
	unsetenv("FAULTS_ALLOC");
	unsetenv("LD_PRELOAD");
	dl_iterate_phdr(on_object, NULL);
	/* the first call loads a library */
	backtrace(frames, 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		_exit(126);
	map = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		_exit(126);
	counted = getpid();
	faults = map;
}

static void note_place(void)
{
	void *at[FRAMES];
	int n = backtrace(at, FRAMES);

	for (int i = 0; i < n; i++) {
		uintptr_t ip = (uintptr_t)at[i];

		faults->frames[i] = ip >= base && ip < end ? ip - base : 0;
	}
	faults->n_frames = (uint64_t)n;
}

static bool fails(void)
{
	uint64_t no;

	/* a confined child does not have its parent's memory, including this */
	if (!faults || getpid() != counted)
		return false;
	no = __atomic_add_fetch(&faults->count, 1, __ATOMIC_RELAXED);
	if (!faults->first || no < faults->first || no > faults->last)
		return false;
	if (no == faults->first)
		note_place();
	errno = ENOMEM;
	return true;
}

#ifdef WRAPPED
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
#else
#define OURS(name) name
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *OURS(malloc)(size_t size);
void *OURS(calloc)(size_t n, size_t size);
void *OURS(realloc)(void *old, size_t size);

void *OURS(malloc)(size_t size)
{
	return fails() ? NULL : REAL(malloc)(size);
}

void *OURS(calloc)(size_t n, size_t size)
{
	return fails() ? NULL : REAL(calloc)(n, size);
}

void *OURS(realloc)(void *old, size_t size)
{
	return fails() ? NULL : REAL(realloc)(old, size);
}

#ifdef WRAPPED
char *REAL(strdup)(const char *text);
char *REAL(strndup)(const char *text, size_t size);
int REAL(vasprintf)(char **ret_text, const char *format, va_list args);
FILE *REAL(open_memstream)(char **ret_data, size_t *ret_size);
char *OURS(strdup)(const char *text);
char *OURS(strndup)(const char *text, size_t size);
int OURS(vasprintf)(char **ret_text, const char *format, va_list args);
int OURS(asprintf)(char **ret_text, const char *format, ...);
FILE *OURS(open_memstream)(char **ret_data, size_t *ret_size);

char *OURS(strdup)(const char *text)
{
	return fails() ? NULL : REAL(strdup)(text);
}

char *OURS(strndup)(const char *text, size_t size)
{
	return fails() ? NULL : REAL(strndup)(text, size);
}

int OURS(vasprintf)(char **ret_text, const char *format, va_list args)
{
	return fails() ? -1 : REAL(vasprintf)(ret_text, format, args);
}

int OURS(asprintf)(char **ret_text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = OURS(vasprintf)(ret_text, format, args);
	va_end(args);
	return n;
}

FILE *OURS(open_memstream)(char **ret_data, size_t *ret_size)
{
	return fails() ? NULL : REAL(open_memstream)(ret_data, ret_size);
}
#else
void *reallocarray(void *old, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, total);
}
#endif
