/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debuginfod: the daemon's side: requests one file at a time, and keeps what was downloaded. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "debuginfod_priv.h"

/* for TLS, and the stacks of threads */
#define MEMORY	  (512ULL << 20)
#define MORE_FDS  32
#define NICE	  10
#define REPORT_NS 2000000000ULL
/* The downloading process keeps the time limit; if it overruns by this much it is broken. */
#define BROKEN_NS 5000000000ULL
/* How often a waiting caller goes on with keeping a file. */
#define AGAIN_MS 5
/* When to ask again for a file that failed, and when a completed one makes room; opts.none_ms
 * applies to files that no server has. */
#define OVER_NS 600000000000ULL
/* The period of DEBUGINFOD_MAX_ALL. */
#define ALL_NS (24 * 3600000000000ULL)
/* How often the directory is searched for unused files. */
#define TRIM_NS (24 * 3600000000000ULL)

/* A file that was asked for. */
struct want {
	char build_id[BUILD_ID_MAX];
	uid_t account;
	enum debuginfod_kind kind; /* the one being asked for; in the end the one that was found */
	int err;		   /* -EAGAIN: not completed */
	uint64_t number;	   /* requests are served in this order */
	uint64_t over_ns;	   /* when it was completed */
	bool reported;		   /* its failure was printed */
	char why[160];		   /* the reason for a failure, untrusted */
	uint32_t skip;		   /* bit i: server i sent something else … */
	int sent_err;		   /* … with this error */
};

struct debuginfod {
	struct debuginfod_opts opts; /* its strings are in `strings` */
	char *strings[DEBUGINFOD_MAX_URLS + 1];
	struct confine_peer *peer; /* NULL: it has ended */
	int cache;		   /* the directory */
	int file;		   /* unlinked; the peer writes to it */
	struct want *wants;
	size_t n, cap;
	bool asking;		 /* wants[at] has been requested */
	bool came;		 /* it was downloaded completely, and must be kept: */
	uint64_t came_bytes;	 /* this many bytes … */
	uint32_t came_from;	 /* … from this server */
	struct keeping *keeping; /* the copy in progress */
	size_t at;		 /* the last one requested */
	uint64_t numbers;
	size_t n_over;		/* number of completions */
	uint64_t until_ns;	/* when it must have arrived */
	uint64_t reported_ns;	/* when progress was printed last */
	uint64_t all_bytes;	/* downloaded … */
	uint64_t all_since_ns;	/* … since this time */
	uint64_t trimmed_ns;	/* when the directory was last searched; 0: not yet */
	uint64_t wait_until_ns; /* 0: nobody waits */
	int wait_fd;
};

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

static void run(void *ctx, int in, int out)
{
	const struct debuginfod *d = ctx;

	download__run(&d->opts, in, out, d->file);
}

static int copy_opts(struct debuginfod *d, const struct debuginfod_opts *opts)
{
	d->opts = *opts;
	for (size_t i = 0; i <= opts->n; i++) {
		d->strings[i] = strdup(i < opts->n ? opts->urls[i] : opts->cache);
		if (!d->strings[i])
			return -ENOMEM;
		*(i < opts->n ? &d->opts.urls[i] : &d->opts.cache) = d->strings[i];
	}
	return 0;
}

int debuginfod__new(const struct debuginfod_opts *opts, struct debuginfod **ret_debuginfod)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	struct confine how = {.name = "safescoped:info",
			      .memory = MEMORY,
			      .cpu_s = CONFINE_NO_END,
			      .keep = CONFINE_NETWORK,
			      .nice = NICE,
			      .more_fds = MORE_FDS,
			      .file_size = DEBUGINFOD_MAX_FILE,
			      .user = CONFINE_NOBODY,
			      .reads = confine__names_and_trust,
			      .n_fds = 1};
	int err;

	if (!d)
		return -ENOMEM;
	d->cache = d->file = d->wait_fd = -1;
	err = copy_opts(d, opts);
	if (!err)
		err = keep__open_cache(opts->cache, &d->cache);
	if (!err)
		err = keep__make_file(d->cache, &d->file);
	how.fds = &d->file;
	if (!err)
		err = confine_peer__start(&how, run, d, &d->peer);
	if (err) {
		log_error("debuginfod: %s: %s", opts->cache,
			  err == -EPERM
				  ? "another user could change or replace the files kept there; "
				    "set DEBUGINFOD_CACHE_PATH to a directory owned by root"
				  : strerror(-err));
		debuginfod__free(d);
		return err;
	}
	*ret_debuginfod = d;
	return 0;
}

void debuginfod__free(struct debuginfod *d)
{
	if (!d)
		return;
	confine_peer__free(d->peer);
	keep__free(d->keeping);
	fd__close(&d->file);
	fd__close(&d->cache);
	for (size_t i = 0; i < ARRAY_SIZE(d->strings); i++)
		free(d->strings[i]);
	free(d->wants);
	free(d);
}

uint64_t debuginfod__timeout_ns(const struct debuginfod *d)
{
	return (uint64_t)d->opts.timeout_ms * 1000000ULL * machine__slowness();
}

int debuginfod__fd(const struct debuginfod *d)
{
	return d && d->peer ? confine_peer__fd(d->peer) : -1;
}

size_t debuginfod__n_over(const struct debuginfod *d)
{
	return d ? d->n_over : 0;
}

/* ── asking ──────────────────────────────────────────────────────────────────────────────── */

static int path_of(const struct debuginfod *d, const struct want *w, char ret_path[PATH_MAX])
{
	return snprintf(ret_path, PATH_MAX, "%s/%s/%s", d->opts.cache, w->build_id,
			debuginfod_kind__name(w->kind)) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

/* Reopens the directory if it was removed or moved: files are read by its path. */
static int cache_of(struct debuginfod *d)
{
	struct stat own, there;
	int fd;

	if (stat(d->opts.cache, &there) == 0 && fstat(d->cache, &own) == 0 &&
	    there.st_dev == own.st_dev && there.st_ino == own.st_ino)
		return d->cache;
	if (keep__open_cache(d->opts.cache, &fd) == 0) {
		fd__close(&d->cache);
		d->cache = fd;
	}
	return d->cache;
}

static int ask(struct debuginfod *d, const struct want *w)
{
	struct download_task task = {.kind = w->kind, .skip = w->skip};

	memcpy(task.build_id, w->build_id, sizeof(task.build_id));
	if (ftruncate(d->file, 0) < 0)
		return -errno;
	if (confine_peer__send(d->peer, &task, sizeof(task), -1, MSG_DONTWAIT))
		return -EPIPE;
	log_verbose("debuginfod: requested the %s of %s", debuginfod_kind__name(w->kind),
		    w->build_id);
	d->reported_ns = time__monotonic_ns();
	d->until_ns = d->reported_ns + debuginfod__timeout_ns(d) + BROKEN_NS;
	d->asking = true;
	return 0;
}

static void end_keeping(struct debuginfod *d)
{
	keep__free(d->keeping);
	d->keeping = NULL;
}

/* The peer may still be working, or break the protocol: nothing can be requested any more. */
static void lose_peer(struct debuginfod *d, int err)
{
	log_warn("debuginfod: no more files are downloaded: %s",
		 err == -EPIPE ? "the downloading process has ended" : strerror(-err));
	confine_peer__free(d->peer);
	d->peer = NULL;
	end_keeping(d);
	d->asking = d->came = false;
}

/* Sets d->at to the next request; false: none is left. */
static bool find_next(struct debuginfod *d)
{
	bool found = false;

	for (size_t i = 0; i < d->n; i++) {
		if (d->wants[i].err != -EAGAIN ||
		    (found && d->wants[i].number > d->wants[d->at].number))
			continue;
		d->at = i;
		found = true;
	}
	return found;
}

static bool may_download(struct debuginfod *d, uint64_t now)
{
	if (!d->all_since_ns || now - d->all_since_ns >= ALL_NS) {
		d->all_since_ns = now;
		d->all_bytes = 0;
	}
	return d->all_bytes < DEBUGINFOD_MAX_ALL;
}

/* `text`: the reason; "": that of the error. */
static void end_want(struct debuginfod *d, struct want *w, int err, const char *text)
{
	if (err == -ENOENT)
		text = "no server has them";
	if (err)
		snprintf(w->why, sizeof(w->why), "%s", *text ? text : keep__why_not(err));
	d->n_over++;
	w->err = err;
	w->over_ns = time__monotonic_ns();
}

static void ask_next(struct debuginfod *d)
{
	while (!d->asking && find_next(d)) {
		struct want *w = &d->wants[d->at];
		int err;

		if (!d->peer) {
			end_want(d, w, -EPIPE, "the downloading process has ended");
		} else if (!may_download(d, time__monotonic_ns())) {
			end_want(d, w, -EDQUOT, "too much was downloaded today");
		} else {
			err = ask(d, w);
			if (err)
				lose_peer(d, err);
		}
	}
}

/* ── what came ───────────────────────────────────────────────────────────────────────────── */

static void finish(struct debuginfod *d, struct want *w, int err, const char *text)
{
	d->asking = d->came = false;
	/* the space on the disk; if this fails, the next request tries it again */
	if (ftruncate(d->file, 0) < 0)
		log_debug("debuginfod: %s", strerror(errno));
	/* an executable built without -g still has its symbols */
	if ((err == -ENOENT || err == -ENODATA) && w->kind == DEBUGINFOD_DEBUGINFO) {
		w->kind = DEBUGINFOD_EXECUTABLE;
		w->skip = 0;
		return;
	}
	if (err == -ENODATA)
		err = -ENOENT;
	if (err == -ENOENT && w->sent_err)
		err = w->sent_err;
	end_want(d, w, err, text);
	if (w->err == -ENOENT)
		log_verbose("debuginfod: no server has symbols for %s", w->build_id);
	else if (err && !w->reported)
		log_warn("debuginfod: %s: %s", w->build_id, w->why);
	/* avoids repeating the message, since it is requested again and again */
	w->reported |= err != 0;
}

static int begin_keeping(struct debuginfod *d, const struct want *w)
{
	struct stat st;
	uint64_t size;

	if (fstat(d->file, &st) < 0)
		return -errno;
	/* a server that broke off may have sent more than the one after it */
	size = MIN((uint64_t)st.st_size, d->came_bytes);
	d->all_bytes += (uint64_t)st.st_size;
	return keep__begin(d->file, size, cache_of(d), w->build_id, debuginfod_kind__name(w->kind),
			   &d->keeping);
}

/* True if what was received is not the requested file, or is unusable: another server may have it.
 */
static bool is_another(int err)
{
	return err == -EBADMSG || err == -ENODATA || err == -ENOEXEC || err == -EMEDIUMTYPE ||
	       err == -EMSGSIZE || err == -EINVAL || err == -EFBIG;
}

/* Notes what the server has sent. False: it was the last one. */
static bool may_ask_others(const struct debuginfod *d, struct want *w)
{
	w->skip |= 1U << d->came_from;
	return w->skip != (1U << d->opts.n) - 1;
}

/* Keeps one part per turn; without time to read it, a later turn does so. */
static void keep(struct debuginfod *d, struct want *w)
{
	int err = d->keeping ? 0 : begin_keeping(d, w);

	if (!err)
		err = keep__go_on(d->keeping, w->build_id);
	if (err == -EAGAIN || err == -EBUSY)
		return;
	end_keeping(d);
	if (!is_another(err) || !may_ask_others(d, w)) {
		finish(d, w, err, "");
		return;
	}
	w->sent_err = err == -ENODATA ? w->sent_err : err;
	d->asking = d->came = false;
}

/* -EAGAIN: nothing yet; -EPIPE: the peer is gone, or sent something invalid. */
static int take_news(struct debuginfod *d, struct download_news *news)
{
	int err = confine_peer__take(d->peer, news, sizeof(*news));

	if (err == -EAGAIN)
		return err;
	if (err || news->err > 0 || news->err < -4095 || news->server >= d->opts.n)
		return -EPIPE;
	news->text[sizeof(news->text) - 1] = '\0';
	return 0;
}

/* Shows progress to a waiting caller. */
static void report(struct debuginfod *d, const struct want *w, const struct download_news *news)
{
	uint64_t now = time__monotonic_ns();

	if (!d->wait_until_ns || now - d->reported_ns < REPORT_NS)
		return;
	d->reported_ns = now;
	if (news->total > news->bytes)
		log_info("debuginfod: %.12s: %s of %s", w->build_id, human__bytes(news->bytes).s,
			 human__bytes(news->total).s);
	else
		log_info("debuginfod: %.12s: %s", w->build_id, human__bytes(news->bytes).s);
}

static void take_all(struct debuginfod *d)
{
	struct download_news news;
	int err;

	while (d->peer && !(err = take_news(d, &news))) {
		struct want *w = d->asking && !d->came ? &d->wants[d->at] : NULL;

		if (!w) {
			lose_peer(d, -EPROTO);
		} else if (!news.done) {
			report(d, w, &news);
		} else {
			d->came = !news.err;
			d->came_bytes = news.bytes;
			d->came_from = news.server;
			if (news.err)
				finish(d, w, news.err, news.text);
			return;
		}
	}
	if (d->peer && err != -EAGAIN)
		lose_peer(d, err);
	else if (d->asking && !d->came && time__monotonic_ns() >= d->until_ns)
		lose_peer(d, -ETIMEDOUT);
}

bool debuginfod__has_ended(const struct debuginfod *d)
{
	return d && !d->peer;
}

static void trim(struct debuginfod *d)
{
	uint64_t now = time__monotonic_ns();
	size_t n = 0;
	int err;

	if (d->trimmed_ns && now - d->trimmed_ns < TRIM_NS)
		return;
	d->trimmed_ns = now;
	err = keep__trim(cache_of(d), time(NULL), &n);
	if (err)
		log_verbose("debuginfod: %s: %s", d->opts.cache, strerror(-err));
	else if (n)
		log_verbose(
			"debuginfod: %s: removed %zu files that had not been read for a long time",
			d->opts.cache, n);
}

void debuginfod__turn(struct debuginfod *d)
{
	if (!d)
		return;
	trim(d);
	take_all(d);
	if (d->came)
		keep(d, &d->wants[d->at]);
	ask_next(d);
}

/* ── whoever wants a file ────────────────────────────────────────────────────────────────── */

void debuginfod__wait_until(struct debuginfod *d, uint64_t until_ns, int fd)
{
	if (!d)
		return;
	d->wait_until_ns = until_ns;
	d->wait_fd = fd;
}

/* Takes an index, since the array may move meanwhile. */
static void wait_for(struct debuginfod *d, size_t no)
{
	while (d->wants[no].err == -EAGAIN) {
		struct pollfd fds[] = {{.fd = debuginfod__fd(d), .events = POLLIN},
				       {.fd = d->wait_fd, .events = POLLIN}};
		uint64_t now = time__monotonic_ns();

		if (now >= d->wait_until_ns)
			return;
		poll(fds, ARRAY_SIZE(fds),
		     d->came ? AGAIN_MS
			     : (int)MIN((d->wait_until_ns - now) / 1000000ULL + 1, 1000ULL));
		if (fds[1].revents & POLLIN) {
			d->wait_until_ns = 0;
			return;
		}
		debuginfod__turn(d);
	}
}

/* A file that is in the cache already needs no server. */
static bool is_kept(struct debuginfod *d, struct want *w)
{
	static const enum debuginfod_kind kinds[] = {DEBUGINFOD_DEBUGINFO, DEBUGINFOD_EXECUTABLE};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		w->kind = kinds[i];
		if (!keep__check(cache_of(d), w->build_id, debuginfod_kind__name(w->kind)))
			return true;
	}
	w->kind = DEBUGINFOD_DEBUGINFO;
	return false;
}

/* Finds the account's request that has been completed for the longest time, and for long enough to
 * make room. False: none. */
static bool find_over(const struct debuginfod *d, uid_t account, uint64_t now, size_t *ret_no)
{
	bool found = false;

	for (size_t i = 0; i < d->n; i++) {
		const struct want *w = &d->wants[i];

		if (w->account != account || w->err == -EAGAIN || now - w->over_ns < OVER_NS ||
		    (found && w->over_ns > d->wants[*ret_no].over_ns))
			continue;
		*ret_no = i;
		found = true;
	}
	return found;
}

static int make_room(struct debuginfod *d, uid_t account, size_t *ret_no)
{
	size_t of_account = 0;
	int err;

	for (size_t i = 0; i < d->n; i++)
		of_account += d->wants[i].account == account;
	if (of_account < DEBUGINFOD_MAX_WANTS_FOR && d->n < DEBUGINFOD_MAX_WANTS) {
		err = ARRAY_RESERVE(d->wants, d->cap, d->n + 1, DEBUGINFOD_MAX_WANTS);
		if (!err)
			*ret_no = d->n++;
		return err;
	}
	return find_over(d, account, time__monotonic_ns(), ret_no) ? 0 : -EDQUOT;
}

static int add_want(struct debuginfod *d, uid_t account, const char *build_id, size_t *ret_no)
{
	struct want w = {.account = account, .err = -EAGAIN, .number = ++d->numbers};
	int err;

	if (strlen(build_id) < 2 || strlen(build_id) >= BUILD_ID_MAX ||
	    build_id[strspn(build_id, "0123456789abcdef")])
		return -ENOENT;
	err = make_room(d, account, ret_no);
	if (err)
		return err;
	memcpy(w.build_id, build_id, strlen(build_id) + 1);
	if (is_kept(d, &w))
		end_want(d, &w, 0, "");
	d->wants[*ret_no] = w;
	return 0;
}

/* Whether the file is gone: other programs use the same directory, and remove files that nobody has
 * read for some days. */
static bool is_gone(const struct debuginfod *d, const struct want *w)
{
	char path[PATH_MAX];

	return !path_of(d, w, path) && access(path, F_OK) && errno == ENOENT;
}

/*
 * Retries after a pause: a server may have been down, the disk full, or the file not published yet.
 */
static void try_again(struct debuginfod *d, struct want *w)
{
	uint64_t pause = w->err == -ENOENT ? (uint64_t)d->opts.none_ms * 1000000ULL : OVER_NS;

	if (w->err == -EAGAIN ||
	    (w->err ? time__monotonic_ns() - w->over_ns < pause : !is_gone(d, w)))
		return;
	w->kind = DEBUGINFOD_DEBUGINFO;
	w->skip = 0;
	w->sent_err = 0;
	w->err = -EAGAIN;
	w->number = ++d->numbers;
}

const char *debuginfod__why_not(const struct debuginfod *d, const char *build_id)
{
	for (size_t i = 0; d && i < d->n; i++)
		if (!strcmp(d->wants[i].build_id, build_id))
			return d->wants[i].err && d->wants[i].err != -EAGAIN ? d->wants[i].why
									     : NULL;
	return NULL;
}

int debuginfod__find(struct debuginfod *d, uid_t account, const char *build_id,
		     char ret_path[PATH_MAX])
{
	size_t no = 0;
	int err = 0;

	while (no < d->n && strcmp(d->wants[no].build_id, build_id) != 0)
		no++;
	if (no == d->n)
		err = add_want(d, account, build_id, &no);
	if (err)
		return err;
	try_again(d, &d->wants[no]);
	if (d->wants[no].err == -EAGAIN)
		debuginfod__turn(d);
	if (d->wait_until_ns)
		wait_for(d, no);
	err = d->wants[no].err;
	return err ? err : path_of(d, &d->wants[no], ret_path);
}
