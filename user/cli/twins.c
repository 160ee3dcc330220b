/* SPDX-License-Identifier: GPL-2.0-or-later */
/* twins: which file names the code of a replayed process, found by the executable's build-id. */
#include "twins.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"
#include "debuginfod/debuginfod.h"
#include "names/names.h"
#include "names/twin.h"

#define MAX_TWINS 1024

/* The file for one build-id. */
struct known {
	char build_id[64];
	struct twin *twin; /* NULL: there is none */
};

struct twins {
	const char *dir;	    /* NULL: not given */
	struct debuginfod *servers; /* NULL: none */
	struct names_helpers *helpers;
	bool force; /* use the given file for every process */
	struct twin *given;
	const char *given_path;
	bool given_used;
	struct known *known;
	size_t n, cap;
	size_t n_in_dir, n_downloaded; /* how many of `known` are from these */
};

/* A missing directory is an error before anything is read, rather than missing names. */
static int check_dir(const char *dir)
{
	DIR *opened = opendir(dir);

	if (!opened) {
		int err = -errno;

		log_error("--symbols-dir %s: %s", dir, strerror(-err));
		return err;
	}
	closedir(opened);
	return 0;
}

int twins__new(const struct options *options, struct twins **ret_twins)
{
	struct twins *twins;
	int err;

	*ret_twins = NULL;
	if (!options->symbols && !options->symbols_dir && !options->n_debuginfod &&
	    !getenv("DEBUGINFOD_URLS"))
		return 0;
	twins = calloc(1, sizeof(*twins));
	if (!twins)
		return -ENOMEM;
	twins->dir = options->symbols_dir;
	twins->force = options->force;
	twins->given_path = options->symbols;
	err = names_helpers__new(&twins->helpers);
	if (!err && twins->dir)
		err = check_dir(twins->dir);
	if (err) {
		twins__free(twins);
		return err;
	}
	if (options->symbols)
		err = twin__open(options->symbols, twins->helpers, &twins->given);
	if (err) {
		log_error("--symbols %s: %s", options->symbols,
			  err == -ENODATA
				  ? "it has no symbols; give the unstripped executable or its "
				    "debug file"
				  : strerror(-err));
		twins__free(twins);
		return err;
	}
	err = debuginfod__open(options->debuginfod, options->n_debuginfod, &twins->servers);
	if (err) {
		twins__free(twins);
		return err;
	}
	debuginfod__wait_until(twins->servers, UINT64_MAX, -1);
	*ret_twins = twins;
	return 0;
}

void twins__free(struct twins *twins)
{
	if (!twins)
		return;
	for (size_t i = 0; i < twins->n; i++)
		twin__free(twins->known[i].twin);
	free(twins->known);
	twin__free(twins->given);
	names_helpers__free(twins->helpers);
	debuginfod__free(twins->servers);
	free(twins);
}

static bool is_of(const struct twin *twin, const char *build_id)
{
	char id[41];

	return twin && twin__build_id(twin, id) && !strcmp(id, build_id);
}

/* NULL: not in the directory. A build-id is hex digits (elf.h). */
static struct twin *look_up(const struct twins *twins, const char *build_id)
{
	static const char *const forms[] = {
		"%s/.build-id/%.2s/%s.debug", /* GDB's layout, in /usr/lib/debug */
		"%s/%.2s/%s.debug",	      "%s/%.2s%s.debug", "%s/%.2s%s",
		"%s/%.2s%s/debuginfo", /* the debuginfod client's cache */
		"%s/%.2s%s/executable",
	};
	char path[4096];

	if (strlen(build_id) < 3 || build_id[strspn(build_id, "0123456789abcdef")])
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct twin *twin;

		/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): one of those above */
		snprintf(path, sizeof(path), forms[i], twins->dir, build_id, build_id + 2);
		if (twin__open(path, twins->helpers, &twin))
			continue;
		if (is_of(twin, build_id))
			return twin;
		log_warn("%s: its build-id differs from the one in its name", path);
		twin__free(twin);
	}
	return NULL;
}

/* NULL: no server has it. */
static struct twin *download(struct twins *twins, const char *build_id)
{
	struct twin *twin;
	char path[PATH_MAX];

	return debuginfod__find(twins->servers, CONFINE_NOBODY, build_id, path) ||
			       twin__open(path, twins->helpers, &twin)
		       ? NULL
		       : twin;
}

static struct twin *of_build_id(struct twins *twins, const char *build_id)
{
	struct known *k;

	for (size_t i = 0; i < twins->n; i++)
		if (!strcmp(twins->known[i].build_id, build_id))
			return twins->known[i].twin;
	if (strlen(build_id) >= sizeof(k->build_id) ||
	    ARRAY_RESERVE(twins->known, twins->cap, twins->n + 1, MAX_TWINS))
		return NULL;
	k = &twins->known[twins->n++];
	memcpy(k->build_id, build_id, strlen(build_id) + 1);
	k->twin = twins->dir ? look_up(twins, build_id) : NULL;
	twins->n_in_dir += k->twin != NULL;
	if (k->twin || !twins->servers)
		return k->twin;
	k->twin = download(twins, build_id);
	twins->n_downloaded += k->twin != NULL;
	return k->twin;
}

static struct twin *twin_of(struct twins *twins, const struct target_info *info)
{
	const char *build_id = info->build_id ? info->build_id : "";

	if (twins->given && (twins->force || is_of(twins->given, build_id))) {
		twins->given_used = true;
		return twins->given;
	}
	return (twins->dir || twins->servers) && *build_id ? of_build_id(twins, build_id) : NULL;
}

/* True for code of the executable that the session had no better name for. */
static bool is_wanted(const struct target_info *info, const struct code_name *name)
{
	return name->file && info->exe && !strcmp(name->file, path__base(info->exe)) &&
	       name->source != NAME_IPE && name->source != NAME_DWARF && name->source != NAME_EXACT;
}

/* NULL: there is none with a better name. */
static struct twin *for_name(struct twins *twins, const struct target_info *info,
			     const struct code_name *name, uint64_t *ret_bias)
{
	const struct twin_marks marks = {info->suspend.addr, info->resume.addr};
	struct twin *twin = is_wanted(info, name) ? twin_of(twins, info) : NULL;

	return twin && !twin__bias(twin, &marks, ret_bias) ? twin : NULL;
}

void twins__name(void *ctx, const struct target_info *info, uint64_t frame, struct code_name *name)
{
	uint64_t bias = 0;
	struct twin *twin = for_name(ctx, info, name, &bias);

	if (twin)
		twin__name(twin, bias, frame, name);
}

/* "[prog]+0x1234": the offset in the file at which the function begins. */
static void rename_function(struct twins *twins, const struct target_info *info,
			    struct target_site *site)
{
	const char *base = path__base(info->exe ? info->exe : "");
	struct code_name found = {.name = site->function, .file = site->library};
	size_t len = strlen(base);
	unsigned long long offset;
	struct twin *twin;
	char *end;

	if (!site->function || site->function[0] != '[' ||
	    strncmp(site->function + 1, base, len) != 0 ||
	    strncmp(site->function + 1 + len, "]+0x", 4) != 0)
		return;
	offset = strtoull(site->function + len + 5, &end, 16);
	twin = *end ? NULL : twin_of(twins, info);
	if (twin && twin__function(twin, offset, &found))
		site->function = found.name;
}

void twins__site(void *ctx, const struct target_info *info, uint64_t addr, struct target_site *site)
{
	uint64_t bias = 0;
	struct twin *twin;

	(void)addr;
	rename_function(ctx, info, site);
	if (!site->caller.name || !site->site)
		return;
	twin = for_name(ctx, info, &site->caller, &bias);
	if (twin)
		twin__caller(twin, bias, site->site, &site->caller);
}

void twins__report(const struct twins *twins)
{
	if (!twins)
		return;
	if (twins->dir && twins->n && !twins->n_in_dir)
		log_warn("--symbols-dir %s: has no file with any of this session's build-ids",
			 twins->dir);
	if (twins->servers && twins->n > twins->n_in_dir && !twins->n_downloaded)
		log_warn("debuginfod: no server provided a file with any of this session's "
			 "build-ids");
	if (twins->given && !twins->given_used)
		log_warn("--symbols %s: no process of this session ran it: the build-ids differ; "
			 "use --force to accept it anyway",
			 twins->given_path);
}
