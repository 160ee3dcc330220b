/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides which format goes where, and writes them. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "places_priv.h"
#include "rotate_priv.h"

#define COLUMNS_MAX 10000 /* from the environment: a larger value is a mistake */
#define MAX_NAMES   1000  /* to try for a window */
#define NS_PER_MS   1000000

struct output {
	const struct export_format *format;
	char path[PATH_MAX]; /* "-": standard output, or standard error if beside_command */
};

struct outputs {
	const struct output_opts *opts;
	uid_t owner;
	gid_t group;
	size_t n;
	struct output each[OUTPUT_MAX_FORMATS];
	char stem[128];	       /* of windows' files; the time is appended */
	struct rotate *rotate; /* NULL: no windows are removed */
	bool old_stay;	       /* removing old windows failed, and this has been reported */
	struct utsname uname;
	char host_id[64]; /* "": not known */
};

/* Accepts digits only; (uid_t)-1 is not a user. */
static bool parse_id(const char *s, uint32_t *ret_id)
{
	size_t len = strlen(s);
	unsigned long v;

	if (!len || len > 10 || strspn(s, "0123456789") != len)
		return false;
	v = strtoul(s, NULL, 10);
	if (v >= (uint32_t)-1)
		return false;
	*ret_id = (uint32_t)v;
	return true;
}

int output__find_owner(uid_t *ret_owner, gid_t *ret_group)
{
	const char *uid = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	const char *gid = geteuid() == 0 ? getenv("SUDO_GID") : NULL;

	if (!uid && !gid) {
		*ret_owner = (uid_t)-1;
		*ret_group = (gid_t)-1;
		return 0;
	}
	return uid && gid && parse_id(uid, ret_owner) && parse_id(gid, ret_group) ? 0 : -EINVAL;
}

int output__owner(uid_t *ret_owner, gid_t *ret_group)
{
	int err = output__find_owner(ret_owner, ret_group);
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (err)
		log_error("SUDO_UID=%s, SUDO_GID=%s: not the ids of the user who ran sudo; unset "
			  "both, or use sudo itself",
			  uid ? uid : "(unset)", gid ? gid : "(unset)");
	return err;
}

int output__become(uid_t uid, gid_t gid)
{
	struct passwd *pw = getpwuid(uid);

	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	/* a program run as the user must not write into root's home */
	if (pw && (setenv("HOME", pw->pw_dir, 1) || setenv("USER", pw->pw_name, 1) ||
		   setenv("LOGNAME", pw->pw_name, 1)))
		return -errno;
	return 0;
}

/* Makes a file name from a comm, which may hold anything. */
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

/* The default stem, without the time. */
static void plain_stem(const char *comm, pid_t pid, char *out, size_t size)
{
	char name[32];

	file_name_of(comm, name, sizeof(name));
	if (pid)
		snprintf(out, size, "safescope-%s-%d", name[0] ? name : "x", pid);
	else if (name[0])
		snprintf(out, size, "safescope-%s", name);
	else
		snprintf(out, size, "safescope");
}

static void default_stem(const char *comm, pid_t pid, char *out, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;
	size_t len;

	plain_stem(comm, pid, out, size);
	len = strlen(out);
	if (localtime_r(&now, &tm))
		strftime(out + len, size - len, "-%Y%m%d-%H%M%S", &tm);
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
	return output__may_replace(o->path, o->format);
}

int outputs__check(const struct output_opts *opts)
{
	if (!opts->windows || !opts->path || !strcmp(opts->path, "-") ||
	    place__is_directory(opts->path))
		return 0;
	log_error("%s: %s; windows need one for their files", opts->path,
		  access(opts->path, F_OK) && errno == ENOENT ? "no such directory"
							      : "not a directory");
	return -ENOTDIR;
}

/* Sweeps the windows' directory. */
static void sweep(const struct outputs *all, const char *path)
{
	const char *name;
	int dir;

	if (dir__open_of(path, all->owner, &dir, &name))
		return;
	outfile__sweep(dir, all->owner);
	close(dir);
}

/* Called after the error has been printed; 0: the session goes on regardless. */
static int without_place(const struct output_opts *opts, int err)
{
	if (err == -ENOMEM || !opts->windows || !opts->place_may_come)
		return err;
	log_warn("the session continues; trying again for each window");
	return 0;
}

static int plan(struct outputs *all, const char *stem)
{
	const struct output_opts *opts = all->opts;
	size_t n_files = 0;
	int err = outputs__check(opts);
	bool may_try = !err;

	if (err)
		err = without_place(opts, err);
	if (err)
		return err;
	for (size_t i = 0; i < opts->n_formats; i++)
		n_files += opts->formats[i] != &export_text || opts->n_formats == 1;
	for (size_t i = 0; i < opts->n_formats; i++) {
		struct output *o = &all->each[i];

		o->format = opts->formats[i];
		err = place__choose(opts, o->format, n_files, stem, o->path);
		if (err) {
			log_error("%s: cannot be written: %s", opts->path, strerror(-err));
			return err;
		}
		err = may_try ? try_path(o, all->owner, all->group) : 0;
		if (err) {
			may_try = false;
			err = without_place(opts, err);
		}
		if (err)
			return err;
		all->n++;
	}
	if (!opts->windows || !all->n || !strcmp(all->each[0].path, "-"))
		return 0;
	sweep(all, all->each[0].path);
	err = rotate__new(opts, all->stem, all->owner, &all->rotate);
	if (err)
		log_error("no memory");
	return err;
}

/* Reads machine-id(5), 32 hexadecimal digits that stay the same across boots, and the host's
 * name. */
static void read_host(struct outputs *all)
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, all->host_id, sizeof(all->host_id) - 1);

	fd__close(&fd);
	all->host_id[MAX(n, (ssize_t)0)] = '\0';
	all->host_id[strspn(all->host_id, "0123456789abcdef")] = '\0';
	if (uname(&all->uname))
		all->uname.nodename[0] = '\0';
}

struct export_opts outputs__export_opts(const struct outputs *outputs)
{
	const struct output_opts *opts = outputs->opts;

	return (struct export_opts){
		.weight = opts->weight,
		.lanes = opts->lanes,
		.window = opts->windows,
		.verbose = opts->verbose,
		.host_name = opts->host_name	  ? opts->host_name
			     : opts->of_this_host ? outputs->uname.nodename
						  : NULL,
		.host_id = opts->of_this_host ? outputs->host_id : NULL,
	};
}

int outputs__plan(const struct output_opts *opts, const char *comm, pid_t pid,
		  struct outputs **ret_outputs)
{
	struct outputs *all = calloc(1, sizeof(*all));
	char stem[128];
	int err;

	if (!all) {
		log_error("no memory");
		return -ENOMEM;
	}
	all->opts = opts;
	err = output__owner(&all->owner, &all->group);
	plain_stem(comm, pid, all->stem, sizeof(all->stem));
	default_stem(comm, pid, stem, sizeof(stem));
	read_host(all);
	if (!err)
		err = plan(all, stem);
	if (err) {
		outputs__free(all);
		return err;
	}
	*ret_outputs = all;
	return 0;
}

void outputs__free(struct outputs *outputs)
{
	if (outputs)
		rotate__free(outputs->rotate);
	free(outputs);
}

unsigned output__terminal_width(int fd)
{
	struct winsize ws;

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col ? ws.ws_col : 80;
}

unsigned output__page_width(int fd)
{
	unsigned width = output__terminal_width(fd);
	const char *columns = width ? NULL : getenv("COLUMNS");
	char *end;
	unsigned long v;

	if (!columns || *columns < '1' || *columns > '9')
		return width;
	v = strtoul(columns, &end, 10);
	return *end || v > COLUMNS_MAX ? 0 : (unsigned)v;
}

bool output__has_colour(unsigned width)
{
	const char *no_colour = getenv("NO_COLOR");

	return width && !(no_colour && no_colour[0]);
}

int output__flush(FILE *out)
{
	if (!fflush(out) && !ferror(out))
		return 0;
	return errno ? -errno : -EIO;
}

/* A picture, or something else to write. */
struct source {
	const struct picture *pic;
	output_write *write; /* NULL: the picture */
	void *ctx;
};

static int put(const struct source *source, const struct export_format *format, FILE *out,
	       const struct export_opts *opts)
{
	return source->write ? source->write(source->ctx, format, out, opts)
			     : format->write(out, source->pic, opts);
}

/* With a command, standard output belongs to it, and the report goes to standard error. */
static int write_stream(const struct output *o, const struct outputs *all,
			const struct source *source, const struct export_opts *opts)
{
	bool beside = all->opts->beside_command;
	FILE *out = beside ? stderr : stdout;
	struct export_opts its = *opts;
	int err, why, fd = beside ? STDERR_FILENO : STDOUT_FILENO;

	its.width = output__page_width(fd);
	its.colour = output__has_colour(output__terminal_width(fd));
	/* a format reports only that writing failed; errno still has the reason, unless nothing set
	 * it */
	errno = 0;
	err = put(source, o->format, out, &its);
	why = errno;
	if (!err)
		err = output__flush(out);
	else if (err == -EIO && ferror(out) && why)
		err = -why;
	/* the reader (`| head`) has seen enough; no further window need be made for it */
	if (err == -EPIPE)
		return all->opts->windows ? err : 0;
	if (err)
		log_error("standard %s: %s", beside ? "error" : "output", strerror(-err));
	return err;
}

static int write_file(const struct output *o, const struct outputs *all,
		      const struct source *source, const struct export_opts *opts,
		      bool (*stop)(void *ctx), void *ctx)
{
	struct outfile *out;
	int err = outfile__open(o->path, all->owner, all->group, &out);

	if (err)
		return err;
	err = put(source, o->format, outfile__stream(out), opts);
	if (err && outfile__error(out))
		err = outfile__error(out);
	if (err)
		log_error("%s: cannot be written: %s; no file was left", o->path, strerror(-err));
	else if (stop && stop(ctx))
		err = -ECANCELED;
	else
		return outfile__commit(out);
	outfile__abort(out);
	return err;
}

/* Prints the path, and how to open the file. */
static void say_written(const struct output *o, enum export_weight weight)
{
	const char *hint = place__hint(o->format, weight), *at = strstr(hint, "%s");
	char *word = at ? text__shell_word(o->path) : NULL;

	if (at)
		log_info("%s: %.*s%s%s", o->path, (int)(at - hint), hint, word ? word : o->path,
			 at + 2);
	else
		log_info("%s: %s", o->path, hint);
	free(word);
}

static bool knows_allocation(const struct picture *pic)
{
	for (size_t i = 0; i < picture__n_targets(pic); i++)
		if (picture__target(pic, i)->alloc.known)
			return true;
	return false;
}

/*
 * True if the file would show nothing: viewers refuse an empty profile, or stay blank. Reports are
 * still written, as they show that there was nothing; and so are all files of a window, for the
 * sake of programs that count them.
 */
static bool is_worthless(const struct output *o, const struct outputs *all,
			 const struct source *source)
{
	if (!source->pic || all->opts->windows)
		return false;
	if (o->format == &export_folded && all->opts->weight == WEIGHT_ALLOC)
		return !knows_allocation(source->pic);
	return !picture__n_targets(source->pic) && !picture__session(source->pic)->n_ended &&
	       o->format != &export_text && o->format != &export_json;
}

static int write_all(const struct outputs *outputs, const struct source *source,
		     bool (*stop)(void *ctx), void *ctx)
{
	const struct export_opts opts = outputs__export_opts(outputs);
	int err = 0, first = 0;

	for (size_t i = 0; i < outputs->n && err != -ECANCELED; i++) {
		const struct output *o = &outputs->each[i];

		if (stop && stop(ctx)) {
			err = -ECANCELED;
		} else if (!strcmp(o->path, "-")) {
			err = write_stream(o, outputs, source, &opts);
		} else if (is_worthless(o, outputs, source)) {
			log_info("%s: not written, as it would show nothing", o->path);
		} else {
			err = write_file(o, outputs, source, &opts, stop, ctx);
			if (!err && !outputs->opts->windows)
				say_written(o, opts.weight);
			else if (!err)
				log_verbose("%s", o->path);
			if (!err && outputs->opts->written)
				outputs->opts->written(outputs->opts->written_ctx, o->format,
						       o->path);
		}
		if (err && !first)
			first = err;
		/* an incomplete window is removed altogether */
		if (err && outputs->opts->windows)
			break;
	}
	if (err == -ECANCELED)
		log_error("interrupted: the rest of the output was dropped");
	return first;
}

static bool has_format(const struct outputs *outputs, const struct export_format *format)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (outputs->each[i].format == format)
			return true;
	return false;
}

/* Explains exit status 1, whose reasons only the text and JSON reports show. */
static void explain_partial(const struct outputs *outputs, const struct picture *pic)
{
	size_t n = picture__n_targets(pic);
	bool lost = false;

	/* if nothing was profiled, that has been reported */
	if (picture__session(pic)->exit_code != EXIT_PARTIAL || !n ||
	    has_format(outputs, &export_text))
		return;
	for (size_t i = 0; i < n; i++)
		lost |= picture__target(pic, i)->lost_share > 0;
	log_warn("incomplete (exit status 1): %s; %s",
		 lost ? "records were lost"
		      : "something was lost, or was requested but not available",
		 has_format(outputs, &export_json)
			 ? "\"lost\" and \"missing\" in the JSON report have the details"
			 : "use --format text or json for details");
}

int outputs__write(const struct outputs *outputs, const struct picture *pic,
		   bool (*stop)(void *ctx), void *ctx)
{
	const struct source source = {.pic = pic};
	int err = write_all(outputs, &source, stop, ctx);

	if (!err && !outputs->opts->windows)
		explain_partial(outputs, pic);
	return err;
}

int outputs__write_by(const struct outputs *outputs, output_write *write, void *ctx)
{
	const struct source source = {.write = write, .ctx = ctx};

	return write_all(outputs, &source, NULL, NULL);
}

/* ── windows ─────────────────────────────────────────────────────────────────────────────── */

/* Removes a window's files: it is kept in all formats or in none. */
static void remove_all(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->n; i++) {
		const char *name;
		int dir;

		/* leave anything else that is in a file's place */
		if (output__may_replace(outputs->each[i].path, outputs->each[i].format) ||
		    dir__open_of(outputs->each[i].path, outputs->owner, &dir, &name))
			continue;
		unlinkat(dir, name, 0);
		close(dir);
	}
}

/* Reports a failure to remove old windows once, as it would recur with each window. */
static void note_rotated(struct outputs *outputs, int err)
{
	const char *path = outputs->opts->path;

	if (err && !outputs->old_stay)
		log_error("%s: old windows cannot be removed: %s; not reporting it again until "
			  "they can",
			  path ? path : ".", strerror(-err));
	outputs->old_stay = err != 0;
}

void outputs__set_old_stay(struct outputs *outputs, bool old_stay)
{
	outputs->old_stay = old_stay;
}

bool outputs__old_stay(const struct outputs *outputs)
{
	return outputs->old_stay;
}

/* Names the window's files after this time. *ret_taken: one of them exists already. */
static int choose_paths(struct outputs *outputs, uint64_t unix_ns, bool *ret_taken)
{
	char when[ROTATE_TIME_SIZE], stem[sizeof(outputs->stem) + ROTATE_TIME_SIZE];
	bool taken = false;
	int err = 0;

	rotate__time(unix_ns, when);
	snprintf(stem, sizeof(stem), "%s-%s", outputs->stem, when);
	for (size_t i = 0; i < outputs->n && !err; i++) {
		err = place__choose(outputs->opts, outputs->each[i].format, outputs->n, stem,
				    outputs->each[i].path);
		taken |= !err && place__is_taken(outputs->each[i].path);
	}
	if (!err)
		*ret_taken = taken;
	return err;
}

/*
 * Chooses the time that names the window's files: after the clock was set back, an earlier window
 * may have the same name, and must not be replaced. A replay's windows replace those of an earlier
 * replay.
 */
static int choose_time(struct outputs *outputs, uint64_t *unix_ns)
{
	bool taken;
	int err = choose_paths(outputs, *unix_ns, &taken);

	if (!outputs->opts->of_this_host)
		return err;
	for (int i = 0; !err && taken && i < MAX_NAMES; i++) {
		*unix_ns += NS_PER_MS;
		err = choose_paths(outputs, *unix_ns, &taken);
	}
	return err;
}

int outputs__write_window(struct outputs *outputs, const struct picture *pic)
{
	const struct output_opts *opts = outputs->opts;
	uint64_t unix_ns = picture__session(pic)->start_unix_ns;
	int err = choose_time(outputs, &unix_ns);

	if (err)
		return err;
	err = outputs__write(outputs, pic, NULL, NULL);
	if (opts->path && !strcmp(opts->path, "-"))
		return err;
	if (err)
		remove_all(outputs);
	/* even if the disk was full: this makes room for the next window */
	note_rotated(outputs, rotate__window(outputs->rotate, unix_ns, !err));
	return err;
}
