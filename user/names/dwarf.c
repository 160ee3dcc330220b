/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf: the helper processes that read files' DWARF, and how they are queried. */
#include "names/dwarf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf/elf.h"
#include "names/dwarf_kept_priv.h"
#include "names/pause_priv.h"

#define HELPER_CPU_S   20
#define HELPER_IDLE_MS 5000
/* A helper that has worked for this long is stopped; the next one starts with fresh CPU time. */
#define HELPER_WORKED_NS (HELPER_CPU_S * 1000000000ULL / 2)

/*
 * Memory of a helper: what libdw needs for any file, the inflated sections, and the index of
 * blocks, which takes up to eight times the size of the blocks in .debug_info.
 */
#define MEMORY_ANY   (64ULL << 20)
#define INDEX_FACTOR 8
#define MEMORY_MAX   (384ULL << 20)
/* A file whose compressed sections are larger than this, by its headers, is not read. The largest
 * debug files of a distribution are, but those exceed ELF_MAX_FILE as well. */
#define INFLATED_MAX (128ULL << 20)
/* Limits for all helpers together: the one that was queried the longest time ago is ended for a new
 * one. */
#define MEMORY_ALL  (512ULL << 20)
#define HELPERS_MAX 16

struct question {
	uint64_t vaddr;
};

struct answer {
	int32_t err;
	uint32_t _pad;
	struct dwarf_place place; /* for -ENOENT: start and end of its range, or 0 */
};

struct dwarf {
	const struct elf_file *elf;
	struct confine_server *server;
	struct dwarf_helpers *among; /* the table that it may be in; NULL */
	uint64_t memory;	     /* limit of its helper's memory */
	uint64_t asked_ns;
	uint64_t worked_ns; /* how long its helper has been waited for */
	struct dwarf_budget budget;
	struct names_pause pause;
	struct dwarf_kept kept; /* cached answers */
	int err;		/* permanent: no helper is started for it */
	int fd;
	struct dwarf_reader *reader; /* in the helper */
};

/* Shared by all users: memory and time are the machine's, whoever owns the files. */
struct dwarf_helpers {
	struct dwarf *helped[HELPERS_MAX]; /* files that may have a running helper */
	struct dwarf_budget budget;
};

int dwarf_helpers__new(struct dwarf_helpers **ret_helpers)
{
	struct dwarf_helpers *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->budget = (struct dwarf_budget){.most_ms = DWARF_ALL_MS, .part = DWARF_ALL_PART};
	*ret_helpers = h;
	return 0;
}

bool dwarf__is_in(const struct elf_file *elf)
{
	struct elf_section info, line;

	return elf && (elf__section(elf, ".debug_info", &info) == 0 ||
		       elf__section(elf, ".zdebug_info", &line) == 0);
}

/* ── the helper ──────────────────────────────────────────────────────────────────────────── */

static int begin(void *ctx)
{
	struct dwarf *d = ctx;
	size_t size;
	void *data;
	/* maps the file again through its descriptor */
	int err = elf__writable(d->elf, &data, &size);

	return err ? err : dwarf_reader__new(data, size, &d->reader);
}

static size_t answer_one(void *ctx, const void *question, size_t len, void *answer)
{
	struct dwarf *d = ctx;
	struct question q;
	struct answer a = {.err = -EINVAL};

	if (len == sizeof(q)) {
		memcpy(&q, question, sizeof(q));
		a.err = dwarf_reader__find(d->reader, q.vaddr, &a.place);
		if (a.err == -ENOENT)
			dwarf_reader__nothing(d->reader, q.vaddr, &a.place.start, &a.place.end);
	}
	memcpy(answer, &a, sizeof(a));
	return sizeof(a);
}

static uint64_t memory_for(const struct elf_debug_size *size)
{
	uint64_t index = MIN(size->info, MEMORY_MAX) * INDEX_FACTOR;

	return MIN(MEMORY_ANY + size->inflated + index, MEMORY_MAX);
}

int dwarf__new(const struct elf_file *elf, struct dwarf **ret_dwarf)
{
	struct confine_service service = {
		.how = {.name = "safescoped:dwarf", .cpu_s = HELPER_CPU_S, .user = CONFINE_NOBODY},
		.begin = begin,
		.answer = answer_one,
		.max_question = sizeof(struct question),
		.max_answer = sizeof(struct answer),
		.idle_ms = HELPER_IDLE_MS};
	struct dwarf *d = calloc(1, sizeof(*d));
	struct elf_debug_size size;
	int err;

	if (!d)
		return -ENOMEM;
	d->elf = elf;
	d->budget = (struct dwarf_budget){.most_ms = DWARF_FILE_MS, .part = DWARF_FILE_PART};
	elf__debug_size(elf, &size);
	if (size.inflated > INFLATED_MAX) {
		log_verbose("%s: its DWARF is not read: it would take %s", elf__name(elf),
			    human__bytes(size.inflated).s);
		d->err = -E2BIG;
		*ret_dwarf = d;
		return 0;
	}
	d->memory = memory_for(&size);
	service.how.memory = d->memory;
	d->fd = elf__fd(elf);
	service.how.fds = &d->fd;
	service.how.n_fds = d->fd >= 0;
	err = confine_server__new(&service, d, &d->server);
	if (err) {
		free(d);
		return err;
	}
	*ret_dwarf = d;
	return 0;
}

static void stop(struct dwarf *d)
{
	struct dwarf_helpers *h = d->among;

	for (size_t i = 0; h && i < ARRAY_SIZE(h->helped); i++)
		if (h->helped[i] == d)
			h->helped[i] = NULL;
	d->among = NULL;
	d->worked_ns = 0;
	if (d->server)
		confine_server__stop(d->server);
}

void dwarf_helpers__free(struct dwarf_helpers *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(h->helped); i++)
		if (h->helped[i])
			stop(h->helped[i]);
	free(h);
}

void dwarf__free(struct dwarf *d)
{
	if (!d)
		return;
	stop(d);
	confine_server__free(d->server);
	dwarf_kept__clear(&d->kept);
	free(d);
}

/* ── asking it ───────────────────────────────────────────────────────────────────────────── */

/* Ends other helpers until there is a slot and memory for this one. */
static void make_room(struct dwarf_helpers *h, struct dwarf *d)
{
	for (;;) {
		struct dwarf **oldest = NULL, **empty = NULL;
		uint64_t used = d->memory;

		for (size_t i = 0; i < ARRAY_SIZE(h->helped); i++) {
			if (h->helped[i] == d)
				return;
			if (!h->helped[i]) {
				empty = &h->helped[i];
				continue;
			}
			used += h->helped[i]->memory;
			if (!oldest || h->helped[i]->asked_ns < (*oldest)->asked_ns)
				oldest = &h->helped[i];
		}
		if (empty && (used <= MEMORY_ALL || !oldest)) {
			*empty = d;
			d->among = h;
			return;
		}
		if (oldest)
			stop(*oldest);
	}
}

static void end_strings(struct dwarf_place *p)
{
	p->name[sizeof(p->name) - 1] = '\0';
	p->linkage[sizeof(p->linkage) - 1] = '\0';
	p->file[sizeof(p->file) - 1] = '\0';
	p->proc_file[sizeof(p->proc_file) - 1] = '\0';
}

bool dwarf_budget__is_left(struct dwarf_budget *b, uint64_t now)
{
	uint64_t most = b->most_ms * 1000000ULL;

	b->left_ns = b->begun ? MIN(b->left_ns + (now - b->since_ns) / b->part, most) : most;
	b->since_ns = now;
	b->begun = true;
	/* enough for one more answer */
	return b->left_ns >= DWARF_ANSWER_MS * 1000000ULL;
}

void dwarf_budget__use(struct dwarf_budget *b, uint64_t took_ns)
{
	b->left_ns -= MIN(took_ns, b->left_ns);
}

static int ask(struct dwarf *d, struct dwarf_helpers *h, uint64_t vaddr, struct answer *answer)
{
	const struct question q = {.vaddr = vaddr};
	uint64_t began = time__monotonic_ns(), took;
	size_t len = 0;
	int err = names_pause__now(&d->pause, began);

	if (err)
		return err;
	if (!confine__may_wait(elf__user(d->elf)) || !dwarf_budget__is_left(&d->budget, began) ||
	    !dwarf_budget__is_left(&h->budget, began))
		return -EBUSY;
	d->asked_ns = began;
	/* or it has a helper in another table */
	if (d->worked_ns >= HELPER_WORKED_NS || (d->among && d->among != h))
		stop(d);
	make_room(h, d);
	err = confine_server__ask(d->server, &q, sizeof(q), DWARF_ANSWER_MS, answer, &len);
	took = time__monotonic_ns() - began;
	d->worked_ns += took;
	dwarf_budget__use(&d->budget, took);
	dwarf_budget__use(&h->budget, took);
	confine__waited(elf__user(d->elf), took, CONFINE_HONEST_NS);
	if (!err && len != sizeof(*answer))
		err = -EIO;
	if (!err && answer->err && answer->err != -ENOENT)
		err = answer->err < 0 && answer->err > -4096 ? answer->err : -EIO;
	if (!err)
		names_pause__end(&d->pause);
	/* too many helpers: there may be room next time */
	if (!err || err == -EBUSY)
		return err;
	names_pause__begin(&d->pause, began + took, err);
	log_verbose("%s: its DWARF is not read for %llu s: %s", elf__name(d->elf),
		    (unsigned long long)(d->pause.retry.ns / 1000000000ULL), strerror(-err));
	stop(d);
	return d->pause.err;
}

int dwarf__find(struct dwarf *d, struct dwarf_helpers *helpers, uint64_t vaddr,
		struct dwarf_place *ret_place)
{
	struct answer answer = {0};
	int err = dwarf_kept__find(&d->kept, vaddr, ret_place);

	if (err != -ESRCH)
		return err;
	err = d->err ? d->err : ask(d, helpers, vaddr, &answer);
	if (err)
		return err;
	end_strings(&answer.place);
	if (answer.err) {
		dwarf_kept__add_nothing(&d->kept, vaddr, answer.place.start, answer.place.end);
		return -ENOENT;
	}
	dwarf_kept__add(&d->kept, vaddr, &answer.place);
	*ret_place = answer.place;
	return 0;
}
