/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alone: a log or a report that the user names, read in a process without rights. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "eventlog/pack.h"
#include "logs_priv.h"

/* Parsing a JSON report takes ten times its size. */
#define MEMORY (4ULL << 30)
#define ASK_MS 50
/* If memory is limited (ulimit -v): enough for most logs. */
#define LESS_ROOM   ((size_t)32 << 20)
#define PROGRESS_NS 100000000ULL
/* A limit, since a process that writes notes endlessly must not keep the stop callback from
 * being called. */
#define NOTES_AT_ONCE 16

struct progress_note {
	uint64_t done, all;
};

struct alone {
	const struct log_alone *how;
	int fd;
	int asked;    /* an eventfd: the stream should end */
	int notes[2]; /* a pipe for progress notes; -1: not wanted */
	size_t room;  /* for the result, in bytes */
	bool stream;
	bool asked_for_end;
	/* used in the reading process */
	struct log_models *models;
	uint64_t noted_ns;
};

struct alone_out {
	int32_t err;
	uint8_t kind, stopped, damaged;
	uint64_t len;
	uint8_t packed[];
};

/* ── in the process that reads ───────────────────────────────────────────────────────────── */

static bool was_asked(void *ctx)
{
	const struct alone *a = ctx;
	struct pollfd p = {.fd = a->asked, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* Does not wait if the pipe is full. */
static int on_block(void *ctx, const struct el_event *ev)
{
	struct alone *a = ctx;
	const struct eventlog_stats *stats = log_models__stats(a->models);
	uint64_t now = time__monotonic_ns();
	struct progress_note note = {stats->header_bytes + stats->event_bytes + stats->lost_bytes,
				     stats->bytes_in};
	struct pollfd p = {.fd = a->notes[1], .events = POLLOUT};

	(void)ev;
	if (now - a->noted_ns < PROGRESS_NS)
		return 0;
	a->noted_ns = now;
	if (poll(&p, 1, 0) > 0 && write(a->notes[1], &note, sizeof(note)) < 0)
		a->noted_ns = UINT64_MAX;
	return 0;
}

static int read_log(struct alone *a, struct el_input *in, struct pack *p)
{
	static const uint16_t ids[] = {EL_BLOCK_MARKER};
	int err = log_models__new(&a->how->part, &a->models);

	if (err)
		return err;
	if (a->notes[1] >= 0)
		err = eventlog__subscribe(log_models__reader(a->models), ids, ARRAY_SIZE(ids),
					  on_block, a);
	if (!err)
		err = eventlog__read(log_models__reader(a->models), in);
	if (!err)
		err = log_models__finish(a->models);
	if (!err)
		log_models__pack(a->models, p);
	log_models__free(a->models);
	a->models = NULL;
	return err;
}

static int read_report(struct el_input *in, struct pack *p)
{
	struct prof_info *info = malloc(sizeof(*info));
	struct cctree *tree = NULL;
	int err = info ? prof__read(in, &tree, info) : -ENOMEM;

	if (!err)
		prof__pack(tree, info, p);
	cctree__free(tree);
	free(info);
	return err;
}

/* Always returns 0: the result, or the error, is in the message. */
static int read_alone(void *ctx, void *ret_out)
{
	static const uint8_t kinds[] = {[EL_INPUT_LOG] = LOG_ALONE_LOG,
					[EL_INPUT_REPORT] = LOG_ALONE_REPORT,
					[EL_INPUT_EMPTY] = LOG_ALONE_EMPTY,
					[EL_INPUT_OTHER] = LOG_ALONE_OTHER};
	struct alone *a = ctx;
	struct alone_out *out = ret_out;
	struct pack p = {.data = out->packed, .size = a->room};
	struct el_input *in;
	int err = el_input__take(a->fd, was_asked, a, &in);

	if (!err) {
		out->kind = kinds[el_input__kind(in)];
		if (out->kind == LOG_ALONE_LOG)
			err = read_log(a, in, &p);
		else if (out->kind == LOG_ALONE_REPORT)
			err = read_report(in, &p);
		out->stopped = el_input__stopped(in);
		out->damaged = el_input__is_damaged(in);
		el_input__free(in);
	}
	out->len = p.len;
	out->err = p.full && !err ? -E2BIG : err;
	return 0;
}

/* ── here ────────────────────────────────────────────────────────────────────────────────── */

static void take_notes(const struct alone *a)
{
	struct pollfd p = {.fd = a->notes[0], .events = POLLIN};
	struct progress_note note;

	for (int i = 0; a->notes[0] >= 0 && i < NOTES_AT_ONCE && poll(&p, 1, 0) > 0; i++)
		if (read(a->notes[0], &note, sizeof(note)) == sizeof(note))
			a->how->progress(a->how->ctx, note.done, note.all);
}

/* -ECANCELED: reading must stop. */
static int look_after(struct alone *a, const struct confine_job *job)
{
	struct pollfd fds[] = {{.fd = confine_job__fd(job), .events = POLLIN},
			       {.fd = a->notes[0], .events = POLLIN}};
	const uint64_t one = 1;

	poll(fds, ARRAY_SIZE(fds), ASK_MS);
	take_notes(a);
	if (a->asked_for_end || !a->how->stop(a->how->ctx))
		return 0;
	if (!a->stream)
		return -ECANCELED;
	a->asked_for_end = true;
	return write(a->asked, &one, sizeof(one)) == sizeof(one) ? 0 : -EIO;
}

static int unpack(const struct alone *a, const struct alone_out *out, struct log_alone_read *r)
{
	struct unpack u = {.data = out->packed, .left = MIN(out->len, a->room)};

	if (r->kind == LOG_ALONE_LOG)
		return log_models__unpack(&u, &a->how->part, &r->models);
	if (r->kind != LOG_ALONE_REPORT)
		return 0;
	r->report_info = malloc(sizeof(*r->report_info));
	return r->report_info ? prof__unpack(&u, &r->report, r->report_info) : -ENOMEM;
}

static int take(const struct alone *a, const struct alone_out *out, struct log_alone_read *ret_read)
{
	struct log_alone_read r = {.stopped = out->stopped, .damaged = out->damaged};
	int err;

	if (out->kind > LOG_ALONE_OTHER || out->err > 0 || out->err <= -4096)
		return -EIO;
	r.kind = out->kind;
	r.unreadable = out->err == -EBADMSG;
	if (out->err && !r.unreadable)
		return out->err;
	err = r.unreadable ? 0 : unpack(a, out, &r);
	if (err) {
		log_alone__free(&r);
		return err == -EBADMSG ? -EIO : err;
	}
	*ret_read = r;
	return 0;
}

static int run(struct alone *a, struct log_alone_read *ret_read)
{
	size_t size = sizeof(struct alone_out) + a->room;
	const int fds[] = {a->fd, a->asked, a->notes[1]};
	/* the user waits for it, and can interrupt it: there is no deadline */
	const struct confine by = {.name = "safescoped:log",
				   .memory = MEMORY,
				   .cpu_s = INT_MAX,
				   .user = CONFINE_NOBODY,
				   .fds = fds,
				   .n_fds = ARRAY_SIZE(fds) - (a->notes[1] < 0)};
	struct confine_job *job;
	void *out;
	int err = confine__start(&by, INT_MAX, read_alone, a, size, &job);

	if (err == -ENOMEM) {
		a->room = LESS_ROOM;
		size = sizeof(struct alone_out) + a->room;
		err = confine__start(&by, INT_MAX, read_alone, a, size, &job);
	}
	if (err)
		return err;
	while ((err = confine_job__result(job, &out)) == -EAGAIN) {
		err = look_after(a, job);
		if (err) {
			confine_job__free(job);
			return err;
		}
	}
	confine_job__free(job);
	take_notes(a);
	if (err)
		return err;
	err = take(a, out, ret_read);
	confine__free_out(out, size);
	return err;
}

int log_alone__read(const struct log_alone *how, int fd, struct log_alone_read *ret_read)
{
	struct alone a = {.how = how, .fd = fd, .asked = -1, .notes = {-1, -1}};
	struct stat st;
	int err = 0;

	if (fstat(fd, &st))
		return -errno;
	a.stream = !S_ISREG(st.st_mode);
	a.room = LOG_PACKED_MAX;
	a.asked = eventfd(0, EFD_CLOEXEC);
	if (a.asked < 0 || (how->progress && pipe2(a.notes, O_CLOEXEC)))
		err = -errno;
	if (!err)
		err = run(&a, ret_read);
	fd__close(&a.asked);
	fd__close(&a.notes[0]);
	fd__close(&a.notes[1]);
	return err;
}

void log_alone__free(struct log_alone_read *r)
{
	log_models__free(r->models);
	cctree__free(r->report);
	free(r->report_info);
	*r = (struct log_alone_read){0};
}
