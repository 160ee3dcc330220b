/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sum: functions and unsafe calls, added up from the rows of the threads' accounts. */
#include "private.h"

void sums__free(struct sums *sums)
{
	struct unsafe_entry *entry, *next;

	HASH_ITER (hh, sums->unsafes, entry, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(sums->unsafes, entry);
		free(entry);
	}
	memset(sums, 0, sizeof(*sums));
}

/* ── functions ───────────────────────────────────────────────────────────────────────────── */

static bool is_code(const struct tl_frame *frame)
{
	return frame->kind != TF_STATE && frame->kind != TF_MARK;
}

struct tally {
	struct tl_function f;
	const struct ledger_row
		*seen; /* the row that was added last: a function counts once in each */
};

static void add_stack(const struct timeline *tl, struct tally *tallies,
		      const struct ledger_row *row)
{
	struct tl_stack stack = stacks__get(&tl->stacks, row->stack);

	for (uint32_t i = 0; i < stack.n; i++) {
		struct tally *tally = &tallies[stack.frames[i]];

		if (!is_code(&tl->frames.v[stack.frames[i]]))
			continue;
		if (tally->seen != row) {
			tally->f.total_ns += row->ns;
			tally->f.total_samples += row->samples;
			tally->seen = row;
		}
		if (i + 1 == stack.n) {
			tally->f.self_ns += row->ns;
			tally->f.self_samples += row->samples;
		}
	}
}

static int by_self(const void *pa, const void *pb)
{
	const struct tl_function *a = pa, *b = pb;

	if (a->self_samples != b->self_samples)
		return a->self_samples < b->self_samples ? 1 : -1;
	if (a->total_samples != b->total_samples)
		return a->total_samples < b->total_samples ? 1 : -1;
	if (a->self_ns != b->self_ns)
		return a->self_ns < b->self_ns ? 1 : -1;
	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

int sums__functions(struct timeline *tl, struct target_state *tg)
{
	size_t n_frames = tl->frames.n, n = 0, i;
	struct tally *tallies = calloc(n_frames + 1, sizeof(*tallies));

	if (!tallies)
		return -ENOMEM;
	for (uint32_t a = 0; a < tg->n_accounts; a++)
		for (i = 0; i < tg->accounts[a].n; i++) {
			const struct ledger_row *row = &tg->accounts[a].rows[i];

			if (row->on_cpu)
				add_stack(tl, tallies, row);
		}
	for (i = 0; i < n_frames; i++)
		n += tallies[i].seen != NULL;
	tg->functions = calloc(n + 1, sizeof(*tg->functions));
	if (!tg->functions) {
		free(tallies);
		return -ENOMEM;
	}
	for (i = 0; i < n_frames; i++) {
		const struct tl_frame *frame = &tl->frames.v[i];
		struct tl_function *f;

		if (!tallies[i].seen)
			continue;
		f = &tg->functions[tg->pub.n_functions++];
		*f = tallies[i].f;
		f->name = frame->name;
		f->module = frame->module;
		f->kind = frame->kind;
		f->approximate = frame->approximate;
	}
	free(tallies);
	qsort(tg->functions, tg->pub.n_functions, sizeof(*tg->functions), by_self);
	tg->pub.functions = tg->functions;
	return 0;
}

/* ── unsafe calls ────────────────────────────────────────────────────────────────────────── */

/* The outermost C function, which is the one that Haskell called. */
uint32_t sums__function(const struct timeline *tl, const struct ev *ev)
{
	struct tl_stack c = stacks__get(&tl->parts, ev->c);

	for (uint32_t i = 0; i < c.n; i++)
		if (tl->frames.v[c.frames[i]].kind != TF_KERNEL &&
		    tl->frames.v[c.frames[i]].kind != TF_MARK)
			return c.frames[i];
	return UINT32_MAX;
}

/* The Haskell code around it, as the whole stack shows it (cost centres, maybe). */
static uint32_t caller_of(const struct timeline *tl, uint32_t stack, uint32_t *ret_index)
{
	struct tl_stack frames = stacks__get(&tl->stacks, stack);
	uint32_t i = frames.n;

	while (i > 0 && tl->frames.v[frames.frames[i - 1]].kind != TF_HASKELL)
		i--;
	*ret_index = i;
	return i ? frames.frames[i - 1] : UINT32_MAX;
}

/* The last Haskell frame of a whole stack is the caller, what it called comes next. */
static struct unsafe_key key_of(const struct timeline *tl, uint32_t stack)
{
	struct unsafe_key key = {.function = UINT32_MAX};
	struct tl_stack frames = stacks__get(&tl->stacks, stack);
	uint32_t i;

	key.caller = caller_of(tl, stack, &i);
	for (; i < frames.n && key.function == UINT32_MAX; i++) {
		enum tl_frame_kind kind = tl->frames.v[frames.frames[i]].kind;

		if (kind != TF_KERNEL && kind != TF_MARK && kind != TF_STATE)
			key.function = frames.frames[i];
	}
	return key;
}

static int add_unsafe(struct timeline *tl, struct sums *sums, const struct ledger_row *row)
{
	struct unsafe_key key = key_of(tl, row->stack);
	struct unsafe_entry *entry;

	HASH_FIND(hh, sums->unsafes, &key, sizeof(key), entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = key;
		HASH_ADD(hh, sums->unsafes, key, sizeof(entry->key), entry);
		if (!entry->hh.tbl) {
			free(entry);
			return -ENOMEM;
		}
	}
	entry->samples += row->samples;
	if (row->state == ST_UNSAFE_CALL_CPU)
		entry->cpu_ns += row->ns;
	else
		entry->blocked_ns += row->ns;
	return 0;
}

int sums__unsafes(struct timeline *tl, struct target_state *tg)
{
	int err = 0;

	for (uint32_t a = 0; !err && a < tg->n_accounts; a++)
		for (size_t i = 0; !err && i < tg->accounts[a].n; i++) {
			const struct ledger_row *row = &tg->accounts[a].rows[i];

			if (row->state == ST_UNSAFE_CALL_CPU ||
			    row->state == ST_UNSAFE_CALL_BLOCKED)
				err = add_unsafe(tl, &tg->sums, row);
		}
	return err;
}

void sums__held_up(const struct timeline *tl, struct sums *sums, uint32_t stack, uint64_t ns)
{
	struct unsafe_key key = key_of(tl, stack);
	struct unsafe_entry *entry;

	HASH_FIND(hh, sums->unsafes, &key, sizeof(key), entry);
	if (entry)
		entry->held_up_gc_ns += ns;
}

static int by_time(const void *pa, const void *pb)
{
	const struct tl_unsafe *a = pa, *b = pb;
	uint64_t ta = a->cpu_ns + a->blocked_ns, tb = b->cpu_ns + b->blocked_ns;
	int diff;

	if (ta != tb)
		return ta < tb ? 1 : -1;
	diff = strcmp(a->function, b->function);
	return diff ? diff : strcmp(a->caller, b->caller);
}

int sums__unsafe_calls(struct timeline *tl, struct target_state *tg, struct sums *sums)
{
	size_t n = HASH_COUNT(sums->unsafes);
	struct unsafe_entry *entry, *next;

	tg->unsafes = calloc(n + 1, sizeof(*tg->unsafes));
	if (!tg->unsafes)
		return -ENOMEM;
	HASH_ITER (hh, sums->unsafes, entry, next) {
		/* cppcheck-suppress uninitvar ; set by the loop's head */
		const struct tl_frame *f = timeline__frame(tl, entry->key.function);
		const struct tl_frame *caller = timeline__frame(tl, entry->key.caller);

		tg->unsafes[tg->pub.n_unsafe_calls++] = (struct tl_unsafe){
			.function = f ? f->name : "[unknown function]",
			.library = f ? f->file : "",
			.caller = caller ? caller->name : "",
			.caller_approximate = caller && caller->approximate,
			.samples = entry->samples,
			.cpu_ns = entry->cpu_ns,
			.blocked_ns = entry->blocked_ns,
			.held_up_gc_ns = sums->gc_sync_known ? entry->held_up_gc_ns : UINT64_MAX,
		};
	}
	qsort(tg->unsafes, tg->pub.n_unsafe_calls, sizeof(*tg->unsafes), by_time);
	tg->pub.unsafe_calls = tg->unsafes;
	return 0;
}
