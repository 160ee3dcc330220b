/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names FILE [DIRECTORY…]: the steps by which a program's names are read from its file, each as
 * "step<TAB>milliseconds<TAB>kB", where kB is the peak of memory during the step, beyond what was
 * in use before. The steps run in this process, so that their memory is counted. The last one uses
 * the archives in these directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archives/archives.h"
#include "archives/files_priv.h"
#include "archives/known_priv.h"
#include "base/base.h"
#include "confine/confine.h"
#include "elf/symbols.h"
#include "names/modules_priv.h"
#include "process/image.h"
#include "rts/rts.h"
#include "rts/rts_text.h"

struct bench {
	const char *path;
	const char *const *dirs; /* of archives */
	size_t n_dirs;
	struct archives *archives;
	struct images images;
	struct elf_file *elf;
	struct rts rts;
	struct symbols *symbols;
	struct modules *modules;
	struct rts_text *text;
};

static int read_file(struct bench *b)
{
	int fd = -1, err = fd__open_regular(b->path, &fd);

	if (!err)
		err = images__of_file(&b->images, fd, b->path, path__base(b->path), true);
	fd__close(&fd);
	if (!err)
		b->elf = b->images.images[0]->elf;
	return err || b->elf ? err : -ENOEXEC;
}

static int find_runtime(struct bench *b)
{
	return rts__find(0, &b->images, &b->rts);
}

static int read_unwind_table(struct bench *b)
{
	const struct elf_fde *fdes;
	size_t n;

	return elf__fdes(b->elf, &fdes, &n);
}

static int sort_symbols(struct bench *b)
{
	return symbols__new(b->elf, &b->symbols);
}

static int find_modules(struct bench *b)
{
	return modules__new(b->elf, b->rts.profiled, &b->modules);
}

static int name_runtime(struct bench *b)
{
	return rts_text__new(&b->rts, &b->text);
}

static int find_functions(struct bench *b)
{
	struct elf_code codes[64];
	struct code_range ranges[64];
	struct code code = {.ranges = ranges};
	struct known_out out = {.v = calloc(KNOWN_MAX, sizeof(*out.v)),
				.strings = malloc(KNOWN_MAX_STRINGS)};
	size_t n = elf__code_ranges(b->elf, codes, ARRAY_SIZE(codes));
	int err = out.v && out.strings ? archives__open(b->dirs, b->n_dirs, &b->archives) : -ENOMEM;

	for (size_t i = 0; i < n; i++)
		ranges[code.n++] = (struct code_range){
			elf__at(b->elf, codes[i].start, codes[i].end - codes[i].start),
			codes[i].start, codes[i].end - codes[i].start};
	if (!err)
		err = known__read(b->archives->files, b->archives->n, b->rts.profiled, &code, &out);
	free(out.v);
	free(out.strings);
	return err;
}

/* A field of /proc/self/status, in kB. */
static long status(const char *field)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			kb = strtol(line + strlen(field), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

/* Resets the peak (proc(5), clear_refs). */
static void forget_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");

	if (!f)
		return;
	fputs("5", f);
	fclose(f);
}

static int run(struct bench *b, const char *what, int (*step)(struct bench *b))
{
	uint64_t began, took;
	long before;
	int err;

	forget_peak();
	before = status("VmRSS:");
	began = time__monotonic_ns();
	err = step(b);
	took = time__monotonic_ns() - began;
	if (err && err != -ENOENT) {
		log_error("%s: %s: %s", b->path, what, strerror(-err));
		return err;
	}
	printf("%s\t%.1f\t%ld\n", what, (double)took / 1e6, status("VmHWM:") - before);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		int (*step)(struct bench *b);
	} steps[] = {
		{"the file's heads", read_file},
		{"the runtime in it", find_runtime},
		{"where functions begin", read_unwind_table},
		{"symbols by address", sort_symbols},
		{"modules", find_modules},
		{"the runtime's functions", name_runtime},
	};
	struct bench b = {0};
	int err = 0;

	if (argc < 2)
		return 2;
	b.path = argv[1];
	b.dirs = (const char *const *)argv + 2;
	b.n_dirs = (size_t)argc - 2;
	confine__run_inside();
	for (size_t i = 0; !err && i < ARRAY_SIZE(steps); i++)
		err = run(&b, steps[i].what, steps[i].step);
	if (!err && b.n_dirs)
		err = run(&b, "functions of archives", find_functions);
	archives__free(b.archives);
	rts_text__free(b.text);
	modules__free(b.modules);
	symbols__free(b.symbols);
	images__free(&b.images);
	return err ? 1 : 0;
}
