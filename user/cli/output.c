/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which format goes where, and writing them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "output.h"

/* sudo tells who it was run by; files made for that user shall be theirs. */
static uint32_t sudo_id(const char *variable)
{
	const char *s = geteuid() == 0 ? getenv(variable) : NULL;
	char *end;
	unsigned long v;

	if (!s || !*s)
		return (uint32_t)-1;
	errno = 0;
	v = strtoul(s, &end, 10);
	return errno || *end || v >= (uint32_t)-1 ? (uint32_t)-1 : (uint32_t)v;
}

void outputs__owner(uid_t *ret_owner, gid_t *ret_group)
{
	*ret_owner = sudo_id("SUDO_UID");
	*ret_group = sudo_id("SUDO_GID");
}

/* A process may call itself anything. */
static void file_name_of(const char *comm, char *out, size_t size)
{
	size_t n = 0;

	for (; *comm && n + 1 < size; comm++) {
		unsigned char c = (unsigned char)*comm;
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || c == '_' || c == '-' || (c == '.' && n);

		out[n++] = plain ? (char)c : '_';
	}
	out[n] = '\0';
}

static void default_stem(const char *comm, pid_t pid, char *out, size_t size)
{
	char name[32], when[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	file_name_of(comm, name, sizeof(name));
	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	if (pid)
		snprintf(out, size, "safescope-%s-%d-%s", name[0] ? name : "x", pid, when);
	else if (name[0])
		snprintf(out, size, "safescope-%s-%s", name, when);
	else
		snprintf(out, size, "safescope-%s", when);
}

static bool is_directory(const char *path)
{
	struct stat st;
	size_t len = strlen(path);

	return (len && path[len - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

static int set_path(struct output *o, const char *dir, const char *stem, const char *suffix)
{
	size_t len = strlen(dir);
	const char *slash = len && dir[len - 1] != '/' ? "/" : "";
	int n = snprintf(o->path, sizeof(o->path), "%s%s%s%s", dir, slash, stem, suffix);

	return n < 0 || (size_t)n >= sizeof(o->path) ? -ENAMETOOLONG : 0;
}

static int choose_path(const struct options *options, size_t n_files, const char *stem,
		       struct output *o)
{
	const char *to = options->output;
	bool text = o->format == &export_text;

	if (to && !strcmp(to, "-"))
		return set_path(o, "", "-", "");
	/* text is for reading now, unless it is all that was asked for */
	if (text && (!to || options->n_formats > 1))
		return set_path(o, "", "-", "");
	if (!to)
		return set_path(o, "", stem, o->format->suffix);
	if (is_directory(to))
		return set_path(o, to, stem, o->format->suffix);
	return set_path(o, "", to, n_files == 1 ? "" : o->format->suffix);
}

static int try_path(const struct output *o, uid_t owner, gid_t group)
{
	struct outfile *out;
	int err;

	if (!strcmp(o->path, "-"))
		return 0;
	err = outfile__open(o->path, owner, group, &out);
	if (err)
		return err;
	outfile__abort(out);
	return 0;
}

int outputs__plan(const struct options *options, const char *comm, pid_t pid,
		  struct outputs *ret_outputs)
{
	struct outputs *all = ret_outputs;
	size_t n_files = 0;
	char stem[128];

	memset(all, 0, sizeof(*all));
	outputs__owner(&all->owner, &all->group);
	default_stem(comm, pid, stem, sizeof(stem));
	for (size_t i = 0; i < options->n_formats; i++)
		n_files += options->formats[i] != &export_text || options->n_formats == 1;
	for (size_t i = 0; i < options->n_formats; i++) {
		struct output *o = &all->each[all->n];
		int err;

		o->format = options->formats[i];
		err = choose_path(options, n_files, stem, o);
		if (err) {
			log_error("%s: cannot be written: %s", options->output, strerror(-err));
			return err;
		}
		err = try_path(o, all->owner, all->group);
		if (err)
			return err;
		all->n++;
	}
	return 0;
}

unsigned output__terminal_width(int fd)
{
	struct winsize ws;

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col ? ws.ws_col : 80;
}

static int write_stdout(const struct output *o, const struct timeline *tl,
			const struct export_opts *opts)
{
	int err, why;

	/* a format tells only that writing failed; errno has kept why, unless nothing has set it */
	errno = 0;
	err = o->format->write(stdout, tl, opts);
	why = errno;
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	else if (err == -EIO && ferror(stdout) && why)
		err = -why;
	if (err)
		log_error("standard output: %s", strerror(-err));
	return err;
}

static int write_file(const struct output *o, const struct outputs *all, const struct timeline *tl,
		      const struct export_opts *opts, bool (*stop)(void *ctx), void *ctx)
{
	struct outfile *out;
	int err = outfile__open(o->path, all->owner, all->group, &out);

	if (err)
		return err;
	err = o->format->write(outfile__stream(out), tl, opts);
	if (err && outfile__error(out))
		err = outfile__error(out);
	if (err)
		log_error("%s: cannot be written: %s; nothing was left there", o->path,
			  strerror(-err));
	else if (stop(ctx))
		err = -ECANCELED;
	else
		return outfile__commit(out);
	outfile__abort(out);
	return err;
}

int outputs__write(const struct outputs *outputs, const struct options *options,
		   const struct timeline *tl, bool (*stop)(void *ctx), void *ctx)
{
	const char *no_colour = getenv("NO_COLOR");
	struct export_opts opts = {
		.weight = options->weight,
		.lanes = options->lanes,
		.verbose = options->verbose > 0,
		.width = output__terminal_width(STDOUT_FILENO),
	};
	int err, first = 0;

	opts.colour = opts.width && !(no_colour && no_colour[0]);
	for (size_t i = 0; i < outputs->n; i++) {
		const struct output *o = &outputs->each[i];

		if (stop(ctx))
			return -ECANCELED;
		if (!strcmp(o->path, "-")) {
			err = write_stdout(o, tl, &opts);
		} else {
			err = write_file(o, outputs, tl, &opts, stop, ctx);
			if (!err)
				log_info("%s", o->path);
		}
		/* one that fails does not keep the others from being written */
		if (err && !first)
			first = err;
	}
	return first;
}
