/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts of a running session, from which windows are made: the ledgers' differences from one cut to
 * the next add up to what they hold without any cut, to the nanosecond, in the sessions of
 * tests/data/capture/, whether records are kept to the end or made into slices in between. The
 * session goes on as if there had been no cut: its lanes are the same. (Stacks may have other
 * numbers, since a cut may be the first to show one.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "capture/codec_priv.h"
#include "ledger/ledger_priv.h"
#include "picture/picture.h"

#define MAX_TARGETS 16

/* ── captures ────────────────────────────────────────────────────────────────────────────── */

static void load(const char *name, char **ret_data, size_t *ret_size)
{
	const char *slash = strrchr(__FILE__, '/');
	FILE *in, *out = open_memstream(ret_data, ret_size);
	char path[512];
	int c;

	snprintf(path, sizeof(path), "%.*s/../data/capture/%s", slash ? (int)(slash - __FILE__) : 1,
		 slash ? __FILE__ : ".", name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_non_null(out);
	while ((c = getc(in)) != EOF)
		putc(c, out);
	fclose(in);
	fclose(out);
}

/* The capture with other options. */
static FILE *with_opts(const char *name, size_t max_records, size_t max_slices, bool haskell,
		       char **ret_data)
{
	size_t size, n;
	FILE *out = open_memstream(ret_data, &n);
	char *data, *json, *end;
	struct header header;
	uint32_t crc;

	assert_non_null(out);
	load(name, &data, &size);
	json = memchr(data, '\n', size);
	end = json ? memchr(json + 1, '\n', (size_t)(data + size - json) - 1) : NULL;
	assert_non_null(end);
	*end = '\0';
	assert_int_equal(capture_header__parse(json + 1, &header), 0);
	header.opts.max_records = max_records;
	header.opts.max_slices = max_slices;
	header.opts.haskell_lanes = haskell;
	json = capture_header__make(&header.opts, header.version, header.mode);
	assert_non_null(json);
	fprintf(out, "%s%s\n", CAPTURE_MAGIC, json);
	fflush(out);
	crc = (uint32_t)crc32(0, (const void *)*ret_data, (uInt)n);
	fprintf(out, "%08x\n", (unsigned)crc);
	/* skip the old CRC */
	end = memchr(end + 1, '\n', (size_t)(data + size - end) - 1);
	assert_non_null(end);
	fwrite(end + 1, 1, (size_t)(data + size - end) - 1, out);
	fclose(out);
	free(json);
	free(data);
	out = fmemopen(*ret_data, n, "r");
	assert_non_null(out);
	return out;
}

/* ── what they hold ──────────────────────────────────────────────────────────────────────── */

static void put_stack(FILE *out, const struct picture *pic, uint32_t id)
{
	struct pic_stack stack = picture__stack(pic, id);

	for (uint32_t i = 0; i < stack.n; i++)
		fprintf(out, ";%s", picture__frame(pic, stack.frames[i])->name);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The ledger as text, one line per booking, with names, since stacks may have other numbers in
 * another session. The caller frees. */
static char *text_of(const struct picture *pic, const struct ledger *ledger)
{
	size_t n = 0, len;
	char **lines = calloc(HASH_COUNT(ledger->table) + 1, sizeof(*lines)), *all;
	struct booking *b, *next;
	FILE *out;

	assert_non_null(lines);
	HASH_ITER (hh, ledger->table, b, next) {
		const struct booking_key *k = &b->key;
		const struct pic_frame *frame = picture__frame(pic, k->stack);

		if (!b->n)
			continue;
		out = open_memstream(&lines[n++], &len);
		assert_non_null(out);
		fprintf(out, "%u %u %u %u %u", k->owner, k->detail, k->kind, k->class, k->state);
		if (k->kind == BOOKING_REASON)
			fprintf(out, " %s", frame ? frame->name : "");
		else
			put_stack(out, pic, k->stack);
		fprintf(out, " %lld\n", (long long)b->n);
		fclose(out);
	}
	qsort(lines, n, sizeof(*lines), by_text);
	out = open_memstream(&all, &len);
	assert_non_null(out);
	for (size_t i = 0; i < n; i++) {
		fputs(lines[i], out);
		free(lines[i]);
	}
	fclose(out);
	free(lines);
	return all;
}

/* ── a session with cuts ─────────────────────────────────────────────────────────────────── */

struct cuts {
	uint64_t every_ns; /* 0: only at the end */
	uint64_t next_ns;
	unsigned n;
	bool negative; /* some difference was below zero: earlier time was reassigned */
	struct timeline_cut before;
	struct ledger
		*sums[MAX_TARGETS][LANE_KINDS]; /* sums of the differences, by target number */
	char *texts[MAX_TARGETS][LANE_KINDS];	/* at the end */
};

static const struct ledger *reading_of(const struct timeline_cut *cut, uint32_t no, unsigned kind)
{
	for (size_t i = 0; i < cut->n; i++)
		if (cut->v[i].no == no)
			return cut->v[i].reading.of[kind];
	return NULL;
}

static void add_window(struct cuts *c, const struct timeline_reading *r, unsigned kind)
{
	const struct ledger *now = r->reading.of[kind], *before;
	struct ledger **sum = &c->sums[r->no][kind], *window;
	struct booking *b, *next;

	before = reading_of(&c->before, r->no, kind);
	if (!*sum)
		assert_int_equal(ledger__new(&now->opts, sum), 0);
	assert_int_equal(ledger__copy(now, &window), 0);
	if (before)
		assert_int_equal(ledger__add(window, before, -1), 0);
	HASH_ITER (hh, window->table, b, next)
		c->negative |= b->n < 0;
	assert_int_equal(ledger__add(*sum, window, 1), 0);
	ledger__free(window);
}

static void cut(struct cuts *c, struct timeline *tl, uint64_t ns)
{
	struct timeline_cut now;

	assert_int_equal(timeline__cut(tl, ns, &now), 0);
	assert_in_range(now.n, c->before.n, MAX_TARGETS);
	for (size_t i = 0; i < now.n; i++) {
		assert_in_range(now.v[i].no, 0, MAX_TARGETS - 1);
		for (unsigned kind = 0; kind < LANE_KINDS; kind++)
			add_window(c, &now.v[i], kind);
	}
	timeline_cut__free(&c->before);
	c->before = now;
	c->n++;
}

/* All bookings of a are in b, with the same time. */
static bool is_in(const struct ledger *a, const struct ledger *b)
{
	struct booking *x, *y, *next;

	HASH_ITER (hh, a->table, x, next) {
		HASH_FIND(hh, b->table, &x->key, sizeof(x->key), y);
		if (x->n != (y ? y->n : 0))
			return false;
	}
	return true;
}

static bool is_equal(const struct ledger *a, const struct ledger *b)
{
	return is_in(a, b) && is_in(b, a);
}

static void at(void *ctx, struct timeline *tl, uint64_t ns, bool last)
{
	struct cuts *c = ctx;

	if (!c->next_ns)
		c->next_ns = ns + c->every_ns;
	if (!last && (!c->every_ns || ns < c->next_ns))
		return;
	cut(c, tl, ns);
	c->next_ns = ns + c->every_ns;
	if (!last)
		return;
	for (size_t i = 0; i < c->before.n; i++)
		for (unsigned kind = 0; kind < LANE_KINDS; kind++) {
			const struct timeline_reading *r = &c->before.v[i];

			assert_true(is_equal(c->sums[r->no][kind], r->reading.of[kind]));
			c->texts[r->no][kind] =
				text_of(timeline__picture(tl), c->sums[r->no][kind]);
		}
}

static void cuts_free(struct cuts *c)
{
	timeline_cut__free(&c->before);
	for (size_t i = 0; i < MAX_TARGETS; i++)
		for (unsigned kind = 0; kind < LANE_KINDS; kind++) {
			ledger__free(c->sums[i][kind]);
			free(c->texts[i][kind]);
		}
}

static struct replay *replay(const char *name, size_t max_records, size_t max_slices, bool haskell,
			     struct cuts *c)
{
	const struct replay_hooks hooks = {.ctx = c, .at = c ? at : NULL};
	struct replay *r;
	char *data;
	FILE *in = with_opts(name, max_records, max_slices, haskell, &data);

	assert_int_equal(replay__read(in, name, &hooks, &r), 0);
	fclose(in);
	free(data);
	assert_true(replay__notes(r)->complete);
	assert_int_equal(replay__notes(r)->refused_inputs, 0);
	return r;
}

/* ── tests ───────────────────────────────────────────────────────────────────────────────── */

/* Sums of one kind of lane, by state. */
static void check_states(const struct pic_target *t, unsigned kind, const struct ledger *ledger)
{
	uint64_t lanes[LANE_STATES] = {0}, rows[LEDGER_STATES] = {0};
	struct ledger_account *accounts;
	uint32_t n_owners = 0;
	struct booking *b, *next;

	for (size_t i = 0; i < t->lanes[kind].n; i++)
		for (unsigned s = 0; s < LANE_STATES; s++)
			lanes[s] += t->lanes[kind].v[i].states_ns[s];
	HASH_ITER (hh, ledger->table, b, next)
		n_owners = MAX(n_owners, b->key.owner + 1);
	assert_int_equal(ledger__accounts(ledger, n_owners, &accounts), 0);
	for (uint32_t i = 0; i < n_owners; i++)
		for (size_t k = 0; k < accounts[i].n; k++)
			rows[accounts[i].rows[k].state] += accounts[i].rows[k].ns;
	ledger_accounts__free(accounts, n_owners);
	for (unsigned s = 0; s < LANE_STATES; s++)
		assert_int_equal(rows[s], lanes[s]);
}

static void assert_same_slice(const struct picture *a, const struct pic_slice *x,
			      const struct picture *b, const struct pic_slice *y)
{
	struct pic_stack s = picture__stack(a, x->stack), t = picture__stack(b, y->stack);

	assert_int_equal(x->start_ns, y->start_ns);
	assert_int_equal(x->end_ns, y->end_ns);
	assert_int_equal(x->tso, y->tso);
	assert_int_equal(x->tid, y->tid);
	assert_int_equal(x->cap, y->cap);
	assert_int_equal(x->state, y->state);
	assert_int_equal(x->exact, y->exact);
	assert_int_equal(x->samples, y->samples);
	assert_int_equal(s.n, t.n);
	for (uint32_t i = 0; i < s.n; i++)
		assert_string_equal(picture__frame(a, s.frames[i])->name,
				    picture__frame(b, t.frames[i])->name);
}

static void assert_same_lanes(const struct picture *a, const struct pic_lanes *v,
			      const struct picture *b, const struct pic_lanes *w)
{
	assert_int_equal(v->n, w->n);
	for (size_t i = 0; i < v->n; i++) {
		const struct pic_lane *x = &v->v[i], *y = &w->v[i];

		assert_int_equal(x->start_ns, y->start_ns);
		assert_int_equal(x->end_ns, y->end_ns);
		assert_memory_equal(x->states_ns, y->states_ns, sizeof(x->states_ns));
		assert_int_equal(x->sampled_states, y->sampled_states);
		assert_int_equal(x->n_slices, y->n_slices);
		for (size_t k = 0; k < x->n_slices; k++)
			assert_same_slice(a, &x->slices[k], b, &y->slices[k]);
	}
}

static void assert_same_picture(const struct picture *a, const struct picture *b)
{
	for (size_t i = 0; i < picture__n_targets(a); i++)
		for (unsigned kind = 0; kind < LANE_KINDS; kind++)
			assert_same_lanes(a, &picture__target(a, i)->lanes[kind], b,
					  &picture__target(b, i)->lanes[kind]);
}

static void check(const char *name, size_t max_records, bool haskell, uint64_t every_ns)
{
	struct cuts none = {0}, some = {.every_ns = every_ns};
	struct replay *plain = replay(name, max_records, 0, haskell, NULL);
	struct replay *one = replay(name, max_records, 0, haskell, &none);
	struct replay *many = replay(name, max_records, 0, haskell, &some);
	const struct picture *pic = replay__picture(many);
	size_t lines = 0;

	assert_int_equal(none.n, 1);
	assert_true(some.n > 2);
	print_message("          %s: %u cuts\n", name, some.n);
	assert_int_equal(some.before.n, picture__n_targets(pic));
	for (size_t i = 0; i < some.before.n; i++)
		for (unsigned kind = 0; kind < LANE_KINDS; kind++) {
			const struct timeline_reading *r = &some.before.v[i];

			assert_string_equal(none.texts[r->no][kind], some.texts[r->no][kind]);
			check_states(picture__target(pic, i), kind, some.sums[r->no][kind]);
			lines += strlen(some.texts[r->no][kind]) > 200;
		}
	assert_true(lines >= (haskell ? 3 : 2));
	assert_same_picture(replay__picture(plain), replay__picture(one));
	assert_same_picture(replay__picture(plain), pic);
	cuts_free(&none);
	cuts_free(&some);
	replay__free(plain);
	replay__free(one);
	replay__free(many);
}

#define SECOND UINT64_C(1000000000)

static void test_all_records_kept(void **state)
{
	(void)state;
	check("calls", 0, false, SECOND / 10);
	check("centres", 0, false, SECOND / 10);
	check("calls", 0, true, SECOND / 10);
	check("centres", 0, true, SECOND / 50);
}

static void test_slices_in_between(void **state)
{
	(void)state;
	check("calls", 100, false, SECOND / 10);
	check("centres", 100, false, SECOND / 10);
	check("calls", 50, true, SECOND / 100);
	check("centres", 50, true, SECOND / 100);
}

/* The lane of the same kind with the same tid, number and id. */
static const struct pic_lane *same_lane(const struct pic_target *t, const struct pic_lane *lane)
{
	const struct pic_lanes *lanes = &t->lanes[lane->kind];

	for (size_t i = 0; i < lanes->n; i++)
		if (lanes->v[i].tid == lane->tid && lanes->v[i].cap == lane->cap &&
		    lanes->v[i].tso == lane->tso)
			return &lanes->v[i];
	return NULL;
}

/* The part of the lanes' time that is in another state. */
static uint64_t distance(const struct pic_target *a, const struct pic_target *b, unsigned kind,
			 uint64_t *ret_wall)
{
	uint64_t sum = 0;

	*ret_wall = 0;
	assert_int_equal(a->lanes[kind].n, b->lanes[kind].n);
	for (size_t i = 0; i < a->lanes[kind].n; i++) {
		const struct pic_lane *x = &a->lanes[kind].v[i], *y = same_lane(b, x);

		assert_non_null(y);
		*ret_wall += x->end_ns - x->start_ns;
		for (unsigned s = 0; s < LANE_STATES; s++)
			sum += x->states_ns[s] > y->states_ns[s] ? x->states_ns[s] - y->states_ns[s]
								 : 0;
	}
	return sum;
}

/*
 * Totals of threads and capabilities do not depend on when slices are made or how many are merged.
 * (Which Haskell thread ran also depends on later records.)
 */
static void test_totals_hold(void **state)
{
	static const char *const names[] = {"calls", "centres"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct replay *whole = replay(names[i], 0, 0, false, NULL);
		struct replay *folded = replay(names[i], 100, 1, false, NULL);
		const struct pic_target *a = picture__target(replay__picture(whole), 0);
		const struct pic_target *b = picture__target(replay__picture(folded), 0);

		for (unsigned kind = 0; kind < LANE_HASKELL; kind++) {
			uint64_t wall, far = distance(a, b, kind, &wall);

			print_message("          %s, kind %u: %.4f %%\n", names[i], kind,
				      100.0 * (double)far / (double)wall);
			assert_true(far <= wall / 1000);
		}
		replay__free(whole);
		replay__free(folded);
	}
}

/* ── merged slices ───────────────────────────────────────────────────────────────────────── */

static void put_rows(FILE *out, const struct picture *pic, const struct pic_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct pic_row *r = &rows[i];

		fprintf(out, "  %u %u %u %llu %llu %llu %llu", r->state, r->on_cpu, r->unsampled,
			(unsigned long long)r->ns, (unsigned long long)r->samples,
			(unsigned long long)r->times, (unsigned long long)r->longest_ns);
		put_stack(out, pic, r->stack);
		fputc('\n', out);
	}
}

/* All figures of the picture except its slices. The caller frees. */
static char *figures_of(const struct picture *pic)
{
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_target *t = picture__target(pic, i);
		const uint64_t *overlaps = (const uint64_t *)&t->overlaps;

		for (size_t k = 0; k < t->n_findings; k++)
			fprintf(out, "%s %s %s %llu\n", t->findings[k].kind, t->findings[k].text,
				t->findings[k].where, (unsigned long long)t->findings[k].ns);
		for (size_t k = 0; k < t->n_unsafe_calls; k++) {
			const struct pic_unsafe *u = &t->unsafe_calls[k];

			fprintf(out, "%s %s %llu %llu %llu %llu %llu %llu %llu %llu %llx\n",
				u->function, u->caller, (unsigned long long)u->samples,
				(unsigned long long)u->cpu_ns, (unsigned long long)u->blocked_ns,
				(unsigned long long)u->sleeps,
				(unsigned long long)u->longest_sleep_ns,
				(unsigned long long)u->held_up_gc_ns,
				(unsigned long long)u->held_up_gcs,
				(unsigned long long)u->longest_held_ns,
				(unsigned long long)u->held_caps);
		}
		for (size_t k = 0; k < t->n_gcs; k++)
			fprintf(out, "gc %llu %llu %llu %u\n",
				(unsigned long long)t->gcs[k].start_ns,
				(unsigned long long)t->gcs[k].haskell_ns,
				(unsigned long long)t->gcs[k].no_cpu_ns, t->gcs[k].cap);
		fprintf(out, "gcs %llu %llu\n", (unsigned long long)t->gc.pause_ns,
			(unsigned long long)t->gc.wait_ns);
		put_rows(out, pic, t->gc.sync_rows, t->gc.n_sync_rows);
		for (size_t k = 0; k < sizeof(t->overlaps) / sizeof(*overlaps); k++)
			fprintf(out, "overlap %llu\n", (unsigned long long)overlaps[k]);
		for (unsigned kind = 0; kind < LANE_KINDS; kind++)
			for (size_t k = 0; k < t->lanes[kind].n; k++) {
				const struct pic_lane *lane = &t->lanes[kind].v[k];

				fprintf(out, "lane %u %d %u %llu\n", kind, lane->tid, lane->cap,
					(unsigned long long)lane->tso);
				put_rows(out, pic, lane->rows, lane->n_rows);
			}
	}
	fclose(out);
	return text;
}

static size_t n_merged(const struct picture *pic)
{
	size_t n = 0;

	for (size_t i = 0; i < picture__n_targets(pic); i++)
		for (unsigned kind = 0; kind < LANE_KINDS; kind++)
			for (size_t k = 0; k < picture__target(pic, i)->lanes[kind].n; k++)
				n += picture__target(pic, i)->lanes[kind].v[k].merged_ns != 0;
	return n;
}

/* However many slices are merged, no figure changes. */
static void check_merging(const char *name, size_t max_records, bool haskell)
{
	struct replay *whole = replay(name, max_records, SIZE_MAX / 2, haskell, NULL);
	struct replay *merged = replay(name, max_records, 1, haskell, NULL);
	char *want = figures_of(replay__picture(whole));
	char *got = figures_of(replay__picture(merged));

	assert_true(n_merged(replay__picture(merged)) > n_merged(replay__picture(whole)));
	print_message("          %s: %zu lanes merged\n", name, n_merged(replay__picture(merged)));
	assert_true(strlen(want) > 2000);
	assert_string_equal(got, want);
	free(want);
	free(got);
	replay__free(whole);
	replay__free(merged);
}

static void test_merging_changes_no_figure(void **state)
{
	static const char *const names[] = {"calls", "centres"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (unsigned haskell = 0; haskell < 2; haskell++) {
			check_merging(names[i], 0, haskell);
			check_merging(names[i], 100, haskell);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_records_kept),
		cmocka_unit_test(test_slices_in_between),
		cmocka_unit_test(test_totals_hold),
		cmocka_unit_test(test_merging_changes_no_figure),
	};

	return cmocka_run_group_tests_name("cuts", tests, NULL, NULL);
}
