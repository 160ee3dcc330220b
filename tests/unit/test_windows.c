/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows of a session: each is a picture of its own, and together they add up to what the same
 * records make without windows.
 */
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "capture/capture.h"
#include "capture/codec_priv.h"
#include "picture/make.h"

#define MAX_LINES 65536

/* A sum: its name, and its amount. */
struct line {
	char *name;
	uint64_t ns;
};
struct sums {
	struct line v[MAX_LINES];
	size_t n, windows;
	uint64_t next_ns; /* where the previous window ended */
	bool per_stack;
};

static void add(struct sums *s, char *name, uint64_t ns)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].name, name)) {
			s->v[i].ns += ns;
			free(name);
			return;
		}
	assert_true(s->n < MAX_LINES);
	s->v[s->n++] = (struct line){name, ns};
}

static uint64_t sum_of(const struct sums *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].name, name))
			return s->v[i].ns;
	return 0;
}

static char *stack_text(const struct picture *pic, uint32_t id)
{
	struct pic_stack stack = picture__stack(pic, id);
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	for (uint32_t i = 0; i < stack.n; i++)
		fprintf(out, ";%s", picture__frame(pic, stack.frames[i])->name);
	fclose(out);
	return text;
}

__attribute__((format(printf, 3, 4))) static void put(struct sums *s, uint64_t ns, const char *fmt,
						      ...)
{
	char *name;
	va_list args;

	va_start(args, fmt);
	assert_true(vasprintf(&name, fmt, args) >= 0);
	va_end(args);
	add(s, name, ns);
}

static void add_rows(struct sums *s, const struct picture *pic, const struct pic_lane *lane,
		     long long id)
{
	for (size_t i = 0; i < lane->n_rows; i++) {
		const struct pic_row *r = &lane->rows[i];
		char *stack = stack_text(pic, r->stack);

		if (!r->on_cpu)
			put(s, r->ns, "%u %lld off %u %s", lane->kind, id, r->state, stack);
		if (r->samples)
			put(s, r->samples, "%u %lld samples %u %s", lane->kind, id, r->state,
			    stack);
		free(stack);
	}
}

static void add_lane(struct sums *s, const struct picture *pic, const struct pic_lane *lane)
{
	long long id = lane->kind == LANE_THREAD       ? lane->tid
		       : lane->kind == LANE_CAPABILITY ? (long long)lane->cap
						       : (long long)lane->tso;
	uint64_t sum = 0;

	put(s, lane->end_ns - lane->start_ns, "%u %lld wall", lane->kind, id);
	for (unsigned i = 0; i < LANE_STATES; i++) {
		sum += lane->states_ns[i];
		if (lane->states_ns[i] && !state__on_cpu(lane->kind, i))
			put(s, lane->states_ns[i], "%u %lld state %s", lane->kind, id,
			    state__name(lane->kind, i));
		else if (lane->states_ns[i])
			put(s, lane->states_ns[i], "%u %lld on", lane->kind, id);
	}
	/* each window is a complete report: its states add up to all of its time */
	assert_int_equal(sum, lane->end_ns - lane->start_ns);
	if (lane->kind == LANE_THREAD)
		put(s, lane->cpu_ns, "%u %lld cpu", lane->kind, id);
	for (size_t i = 0; i < lane->n_off_cpu; i++)
		put(s, lane->off_cpu[i].ns, "%u %lld waited for %s", lane->kind, id,
		    lane->off_cpu[i].reason);
	if (s->per_stack)
		add_rows(s, pic, lane, id);
}

static void check_slices(const struct picture *pic, const struct pic_lane *lane)
{
	uint64_t end = lane->start_ns;

	assert_true(lane->start_ns >= picture__session(pic)->start_ns);
	for (size_t i = 0; i < lane->n_slices; i++) {
		assert_int_equal(lane->slices[i].start_ns, end);
		end = lane->slices[i].end_ns;
	}
	assert_int_equal(end, lane->end_ns);
	assert_true(end <= picture__session(pic)->end_ns);
}

static void take(struct sums *s, const struct picture *pic)
{
	const struct pic_session *session = picture__session(pic);

	if (s->next_ns)
		assert_int_equal(session->start_ns, s->next_ns);
	s->next_ns = session->end_ns;
	s->windows++;
	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_target *t = picture__target(pic, i);

		for (unsigned kind = 0; kind < LANE_KINDS; kind++)
			for (size_t k = 0; k < t->lanes[kind].n; k++) {
				add_lane(s, pic, &t->lanes[kind].v[k]);
				check_slices(pic, &t->lanes[kind].v[k]);
			}
		for (size_t k = 0; k < t->n_calls; k++) {
			put(s, t->calls[k].calls, "calls %s %s", t->calls[k].site,
			    t->calls[k].function);
			put(s, t->calls[k].wall_ns + t->calls[k].open_wall_ns, "calls wall %s",
			    t->calls[k].site);
		}
		put(s, t->gc.pause_ns, "gc pause");
		put(s, t->gc.count, "gc count");
		put(s, t->quality.samples, "samples");
		put(s, t->ticks, "ticks");
		for (size_t k = 0; k < t->n_cost_centres; k++)
			put(s, t->cost_centres[k].self_ticks, "centre %s.%s",
			    t->cost_centres[k].module, t->cost_centres[k].label);
	}
}

static int take_window(void *ctx, struct picture *pic)
{
	take(ctx, pic);
	picture__free(pic);
	return 0;
}

static const char *data_dir(void)
{
	static char path[512];
	const char *slash = strrchr(__FILE__, '/');

	snprintf(path, sizeof(path), "%.*s/../data/capture", slash ? (int)(slash - __FILE__) : 1,
		 slash ? __FILE__ : ".");
	return path;
}

static struct replay *replay(const char *name, const struct replay_hooks *hooks)
{
	struct replay *r;
	char path[1024];
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", data_dir(), name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(replay__read(in, name, hooks, &r), 0);
	fclose(in);
	assert_int_equal(replay__notes(r)->refused_inputs, 0);
	return r;
}

static struct sums *sums_of(const char *name, uint64_t window_ns, bool per_stack)
{
	struct sums *s = calloc(1, sizeof(*s));
	const struct replay_hooks hooks = {.ctx = s, .window_ns = window_ns, .window = take_window};
	struct replay *r;

	assert_non_null(s);
	s->per_stack = per_stack;
	r = replay(name, &hooks);
	take(s, replay__picture(r));
	replay__free(r);
	return s;
}

static void sums_free(struct sums *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].name);
	free(s);
}

#define MS UINT64_C(1000000)

/*
 * Each window estimates by its own samples how a capability's time is divided; and it is not known
 * which capability was free during calls without a record.
 */
static bool is_estimate(const char *name)
{
	return name[0] == '0' && !strstr(name, "wall");
}

static void check_sum(const struct sums *one, const struct sums *many, const char *name,
		      uint64_t window_ns)
{
	uint64_t want = sum_of(one, name), have = sum_of(many, name);

	if (!is_estimate(name)) {
		if (have != want)
			print_message("          windows of %" PRIu64 " ns: %s\n", window_ns, name);
		assert_int_equal(have, want);
	} else if (window_ns >= 50 * MS &&
		   (strstr(name, "state idle") || strstr(name, "state preempted"))) {
		uint64_t off = have > want ? have - want : want - have;

		if (off > want / 100)
			print_message("          windows of %" PRIu64 " ns: %s is %" PRIu64
				      " and not %" PRIu64 "\n",
				      window_ns, name, have, want);
		assert_true(off <= want / 100);
	}
}

static void check(const char *name, const struct sums *one, uint64_t window_ns, size_t windows)
{
	struct sums *many = sums_of(name, window_ns, true);

	if (windows)
		assert_int_equal(many->windows, windows);
	assert_true(one->n > 100);
	for (size_t i = 0; i < one->n; i++)
		check_sum(one, many, one->v[i].name, window_ns);
	for (size_t i = 0; i < many->n; i++)
		check_sum(one, many, many->v[i].name, window_ns);
	sums_free(many);
}

/*
 * For OS threads: their time in all states off the CPU, and on it, their samples by stack, what
 * they waited for and the stacks of that; safe calls and collections, including those that go on at
 * a cut; ticks by cost centre.
 */
static void test_sums(void **state)
{
	struct sums *calls = sums_of("calls", 0, true), *centres = sums_of("centres", 0, true);

	(void)state;
	check("calls", calls, 500 * MS, 3);
	check("calls", calls, 50 * MS, 22);
	check("centres", centres, 500 * MS, 2);
	check("centres", centres, 300 * MS, 3);
	sums_free(calls);
	sums_free(centres);
}

static int is_capture(const struct dirent *entry)
{
	char path[1024], magic[sizeof(CAPTURE_MAGIC)] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", data_dir(), entry->d_name);
	in = fopen(path, "r");
	if (!in)
		return 0;
	if (!fread(magic, sizeof(magic) - 1, 1, in))
		magic[0] = '\0';
	fclose(in);
	return !strcmp(magic, CAPTURE_MAGIC);
}

/*
 * A session in windows reads the sites' counters at its own cuts, and the records up to a cut come
 * after that: a window that is shorter than the delay has calls of others.
 */
#define SHORTEST_OF_WINDOWS (10 * MS)

static bool is_too_short(const char *name, uint64_t window_ns)
{
	return strncmp(name, "windows-", 8) == 0 && window_ns < SHORTEST_OF_WINDOWS;
}

/* The same for cuts anywhere: windows between 0.6 ms and a second. SAFESCOPED_SEED: other cuts. */
static void test_lengths(void **state)
{
	static const uint64_t lengths[] = {700000,   1300000,	1684000,   2577000,   5783000,
					   7000000,  11000000,	22657000,  97300000,  98869683,
					   61000000, 300000000, 430000000, 238413798, 999999999,
					   15513163, 63911420};
	const char *given = getenv("SAFESCOPED_SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : 1;
	struct dirent **captures;
	int n = scandir(data_dir(), &captures, is_capture, alphasort);

	(void)state;
	assert_true(n >= 2);
	for (int i = 0; i < n; i++) {
		const char *name = captures[i]->d_name;
		struct sums *one = sums_of(name, 0, true);

		for (size_t k = 0; k < ARRAY_SIZE(lengths); k++)
			if (!is_too_short(name, lengths[k]))
				check(name, one, lengths[k], 0);
		for (int k = 0; k < 20; k++) {
			uint64_t length =
				(uint64_t)(600000 * pow(1600, (double)rand_r(&seed) / RAND_MAX));

			if (!is_too_short(name, length))
				check(name, one, length, 0);
		}
		sums_free(one);
		free(captures[i]);
	}
	free(captures);
}

struct memory {
	size_t used[512], n;
};

static int measure(void *ctx, struct picture *pic)
{
	struct memory *m = ctx;

	picture__free(pic);
	assert_true(m->n < ARRAY_SIZE(m->used));
	m->used[m->n++] = mallinfo2().uordblks;
	return 0;
}

/* Apart from the capture itself, nothing grows with the number of windows. */
static void test_memory(void **state)
{
	struct memory m = {.n = 0};
	const struct replay_hooks hooks = {.ctx = &m, .window_ns = 5 * MS, .window = measure};
	size_t most = 0;

	(void)state;
	replay__free(replay("calls", &hooks));
	assert_true(m.n > 200);
	for (size_t i = 100; i < 120; i++)
		most = MAX(most, m.used[i]);
	print_message("          %zu kB after 20 windows, %zu kB after 120, %zu kB after %zu\n",
		      m.used[19] >> 10, m.used[119] >> 10, m.used[m.n - 1] >> 10, m.n);
	assert_true(m.used[m.n - 1] < most + most / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
