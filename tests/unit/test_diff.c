/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --diff: reports are read whatever they contain, noise is not reported as a change, changes are
 * found, and the stacks of two sessions are combined.
 */
#include "test_diff_kit.h"

/* ── noise and change ────────────────────────────────────────────────────────────────────── */

/* One comparison in a hundred may report a spurious change: of 200, no more than chance allows. */
static void same_program(unsigned burst, const char *per)
{
	unsigned wrong = 0;

	for (int i = 0; i < 200; i++) {
		struct diff_report *a = session(3000, 1, burst);
		struct diff_report *b = session(i % 2 ? 900 : 3000, 1, burst);
		struct diff *d;

		assert_int_equal(diff__new(a, b, per, &d), 0);
		wrong += count_changes(d) > 0;
		diff__free(d);
		free(a);
		free(b);
	}
	assert_in_range(wrong, 0, 8);
}

static void test_same_program(void **state)
{
	(void)state;
	same_program(1, NULL);
	same_program(1, "fetch");
	/* samples in bursts, as in a program with phases */
	same_program(6, NULL);
}

static void check_change(const char *per, double factor)
{
	double a_want, whole = 0;

	for (unsigned i = 0; i < FUNCTIONS; i++)
		whole += cost_of(i);
	for (int i = 0; i < 20; i++) {
		struct diff_report *a = session(3000, 1, 1), *b = session(3000, factor, 1);
		const struct diff_row *row;
		struct diff *d;

		assert_int_equal(diff__new(a, b, per, &d), 0);
		row = find(d, DIFF_FUNCTIONS, "Mod3.f3");
		assert_int_equal(row->verdict, factor > 1 ? 1 : -1);
		/* per round, or per second of A's CPU time */
		a_want = cost_of(3) * S / (!per ? whole : !strcmp(per, "gc") ? 4 : 1);
		assert_true(fabs(row->a / a_want - 1) < 0.25);
		assert_true(fabs(row->b / row->a / factor - 1) < 0.4);
		/* the others have not changed, although their shares have */
		for (size_t k = 0; k < d->pairs[0].n_rows; k++) {
			const struct diff_row *other = &d->pairs[0].rows[k];

			if (other->section == DIFF_FUNCTIONS && other != row)
				assert_int_equal(other->verdict, 0);
		}
		diff__free(d);
		free(a);
		free(b);
	}
}

static void test_change(void **state)
{
	(void)state;
	check_change(NULL, 3);
	check_change("fetch", 3);
	check_change("gc", 3);
	check_change("fetch", 0.3);
}

static void check_allocation(const char *per, double factor)
{
	double whole = 0, all = 0;

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		whole += cost_of(i);
		all += ALLOC_ONE / (1 + i);
	}
	for (int i = 0; i < 20; i++) {
		struct diff_report *a = session(3000, 1, 1), *b = session(6000, 1, 1);
		double rounds = !per ? 1 / whole : !strcmp(per, "gc") ? 0.25 : 1;
		const struct diff_row *row;
		struct diff *d;

		allocate(b, 6000, factor);
		assert_int_equal(diff__new(a, b, per, &d), 0);
		row = find(d, DIFF_ALLOC_FUNCTIONS, "Mod0.f5");
		assert_int_equal(row->verdict, factor > 1 ? 1 : -1);
		assert_true(fabs(row->a / (ALLOC_ONE / 6 * rounds) - 1) < 0.5);
		assert_true(fabs(row->b / row->a / factor - 1) < 0.7);
		/* its time has not changed */
		assert_int_equal(find(d, DIFF_FUNCTIONS, "Mod0.f5")->verdict, 0);
		row = find(d, DIFF_ALLOC, "in all");
		assert_true(fabs(row->a / (all * rounds) - 1) < 0.2);
		for (size_t k = 0; k < d->pairs[0].n_rows; k++) {
			const struct diff_row *other = &d->pairs[0].rows[k];

			if (other->section == DIFF_ALLOC_FUNCTIONS &&
			    strcmp(other->name, "Mod0.f5") != 0)
				assert_int_equal(other->verdict, 0);
		}
		diff__free(d);
		free(a);
		free(b);
	}
}

static void test_allocation(void **state)
{
	(void)state;
	check_allocation(NULL, 3);
	check_allocation("fetch", 3);
	check_allocation("gc", 3);
	check_allocation("fetch", 0.3);
}

/* Allocation in all: an increase that matters, one that does not, none, and unknown in one
 * session. */
static void test_whole_allocation(void **state)
{
	struct diff_report *a = session(3000, 1, 1), *b = session(3000, 1, 1);
	struct diff *d;

	(void)state;
	b->programs[0].alloc_bytes = 2 * a->programs[0].alloc_bytes;
	b->programs[0].large_bytes = b->programs[0].large_of_bytes / 2;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	assert_int_equal(find(d, DIFF_ALLOC, "in all")->verdict, 1);
	assert_int_equal(find(d, DIFF_ALLOC, "in large objects")->verdict, 1);
	assert_true(
		fabs(find(d, DIFF_ALLOC, "in large objects")->b / find(d, DIFF_ALLOC, "in all")->b -
		     0.5) < 1e-6);
	diff__free(d);
	/* bytes per event do not depend on how busy the machine is */
	b->programs[0].preempted_ns = 2 * b->programs[0].cpu_ns;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	assert_int_equal(find(d, DIFF_ALLOC, "in all")->verdict, 1);
	diff__free(d);
	b->programs[0].alloc_bytes = a->programs[0].alloc_bytes / 10 * 15;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	assert_int_equal(find(d, DIFF_ALLOC, "in all")->verdict, 1);
	diff__free(d);
	assert_int_equal(diff__new(a, b, NULL, &d), 0);
	assert_int_equal(find(d, DIFF_ALLOC, "in all")->verdict, 0);
	diff__free(d);
	b->programs[0].preempted_ns = 0;
	/* with only two collections the uncertainty at the end is too large */
	b->programs[0].alloc_gcs = b->programs[0].alloc_samples = 2;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	assert_int_equal(find(d, DIFF_ALLOC, "in all")->verdict, 0);
	diff__free(d);
	/* a thousandth of what programs usually allocate takes no noticeable time */
	a->programs[0].alloc_bytes = 1000;
	b->programs[0].alloc_bytes = 3000;
	b->programs[0].alloc_gcs = b->programs[0].alloc_samples = 1000;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	assert_int_equal(find(d, DIFF_ALLOC, "in all")->verdict, 0);
	diff__free(d);
	b->programs[0].alloc_samples = 0;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	for (size_t i = 0; i < d->pairs[0].n_rows; i++)
		assert_true(d->pairs[0].rows[i].section < DIFF_ALLOC);
	diff__free(d);
	free(a);
	free(b);
}

static void test_calls_and_collections(void **state)
{
	struct diff_report *a = session(3000, 1, 1), *b = session(3000, 1, 1);
	struct diff *d;

	(void)state;
	b->calls[0].p50_ns *= 2;
	b->calls[0].cpu_ns *= 3;
	b->programs[0].gcs *= 2;
	assert_int_equal(diff__new(a, b, NULL, &d), 0);
	assert_int_equal(find(d, DIFF_CALLS, "fetch")->verdict, 0);
	assert_int_equal(find(d, DIFF_CALL_TIME, "fetch")->verdict, 1);
	assert_int_equal(find(d, DIFF_CALL_CPU, "fetch")->verdict,
			 0); /* 20 µs: too little to matter */
	assert_int_equal(find(d, DIFF_GCS, "")->verdict, 1);
	assert_int_equal(find(d, DIFF_GC_PAUSE, "")->verdict, -1);
	diff__free(d);
	/* on a busy machine waiting is not compared, and neither is spinning */
	b->programs[0].preempted_ns = b->programs[0].cpu_ns / 2;
	assert_int_equal(diff__new(a, b, NULL, &d), 0);
	assert_int_equal(find(d, DIFF_GC_PAUSE, "")->verdict, 0);
	assert_int_equal(find(d, DIFF_GC_CPU, "")->verdict, -1);
	diff__free(d);
	b->programs[0].parallel = true;
	assert_int_equal(diff__new(a, b, NULL, &d), 0);
	assert_int_equal(find(d, DIFF_GC_CPU, "")->verdict, 0);
	diff__free(d);
	free(a);
	free(b);
}

static void test_pairs(void **state)
{
	struct diff_report *a = session(300, 1, 1), *b = session(300, 1, 1);
	struct diff *d;

	(void)state;
	strcpy(b->programs[0].comm, "other");
	assert_int_equal(diff__new(a, b, NULL, &d), 0);
	diff__free(d);
	assert_int_equal(diff__new(a, b, "nosuch", &d), -ERANGE);
	/* with several programs names must match */
	b->programs[1] = b->programs[0];
	b->n_programs = 2;
	assert_int_equal(diff__new(a, b, NULL, &d), -ENOENT);
	strcpy(b->programs[1].comm, "made up");
	b->programs[1].cpu_ns = S;
	/* the program with that name has no functions */
	assert_int_equal(diff__new(a, b, NULL, &d), -ENOENT);
	memset(a->functions, 0, sizeof(a->functions));
	a->n_functions = 0;
	b->n_programs = 1;
	assert_int_equal(diff__new(a, b, NULL, &d), -ERANGE);
	free(a);
	free(b);
}

/* ── reports ─────────────────────────────────────────────────────────────────────────────── */

static void test_report(void **state)
{
	static const char json[] =
		"{\"safescope\":{},\"session\":{\"duration_ns\":5e9,\"frequency_hz\":99},"
		"\"targets\":["
		"{\"comm\":\"x\",\"capabilities\":2,\"gc\":{\"count\":7,\"pause_ns\":70},\"lanes\":"
		"["
		"{\"kind\":\"thread\",\"cpu_ns\":300,\"states\":{\"preempted\":5,\"gc_work\":6}},"
		"{\"kind\":\"capability\",\"cpu_ns\":999},{\"kind\":\"thread\",\"cpu_ns\":null}],"
		"\"functions\":[{\"name\":\"A.f\",\"module\":\"A\",\"kind\":\"haskell\","
		"\"self_samples\":3,\"self_ns\":30},{\"name\":\"g\",\"module\":null,\"kind\":"
		"\"gc\","
		"\"self_samples\":1,\"self_ns\":10},{\"name\":\"[s]\",\"kind\":\"state\",\"self_"
		"ns\":1},"
		"{\"name\":7,\"kind\":\"foreign\",\"self_ns\":1e300,\"self_samples\":-5}],"
		"\"safe_calls\":[{\"function\":\"c\",\"caller\":null,\"calls\":4,\"p50_ns\":null}],"
		"\"allocation\":{\"bytes\":900,\"sampled_bytes\":800,\"samples\":4,\"large_bytes\":"
		"5,"
		"\"large_of_bytes\":50,\"collections\":{\"nursery\":3,\"large\":2},\"functions\":["
		"{\"name\":\"A.f\",\"module\":\"A\",\"kind\":\"haskell\",\"self_samples\":4,"
		"\"self_bytes\":800,\"self_ns\":1},{\"name\":\"[s]\",\"kind\":\"state\","
		"\"self_bytes\":1}]},"
		"\"unsafe_calls\":[{\"function\":\"u\",\"caller\":\"A.f\",\"samples\":2,\"cpu_ns\":"
		"20}]},"
		"{\"comm\":\"x\",\"lanes\":[{\"kind\":\"thread\",\"cpu_ns\":100}]},{\"comm\":\"y\"}"
		"]}";
	struct diff_report *r;

	(void)state;
	assert_int_equal(read(json, &r), 0);
	assert_int_equal(r->duration_ns, 5 * S);
	assert_int_equal(r->n_programs, 2);
	assert_string_equal(r->programs[0].comm, "x");
	assert_int_equal(r->programs[0].processes, 2);
	assert_int_equal(r->programs[0].cpu_ns, 400);
	assert_int_equal(r->programs[0].preempted_ns, 5);
	assert_int_equal(r->programs[0].gc_cpu_ns, 6);
	assert_int_equal(r->programs[0].gcs, 7);
	assert_true(r->programs[0].parallel);
	assert_int_equal(r->n_functions, 3);
	assert_string_equal(r->functions[0].name, "A.f");
	assert_int_equal(r->functions[0].sum, 30);
	assert_int_equal(r->functions[1].kind, DIFF_GC);
	assert_string_equal(r->functions[2].name, "");
	assert_int_equal(r->functions[2].samples, 0);
	assert_true(r->functions[2].sum <= (uint64_t)1 << 48);
	assert_int_equal(r->programs[0].alloc_bytes, 900);
	assert_int_equal(r->programs[0].alloc_sampled, 800);
	assert_int_equal(r->programs[0].alloc_samples, 4);
	assert_int_equal(r->programs[0].alloc_gcs, 5);
	assert_int_equal(r->programs[0].large_bytes, 5);
	assert_int_equal(r->programs[0].large_of_bytes, 50);
	assert_int_equal(r->n_allocators, 1);
	assert_string_equal(r->allocators[0].module, "A");
	assert_int_equal(r->allocators[0].sum, 800);
	assert_int_equal(r->allocators[0].samples, 4);
	assert_int_equal(r->n_calls, 2);
	assert_true(r->calls[0].safe && !r->calls[1].safe);
	assert_string_equal(r->calls[1].caller, "A.f");
	diff_report__free(r);
}

/* A single process is as long as its threads were observed, not as the session that looked for
 * it. */
static void test_length(void **state)
{
	static const char seen[] =
		"{\"comm\":\"x\",\"cost\":{\"probes_paused_ns\":1e9},\"lanes\":["
		"{\"kind\":\"thread\",\"tid\":7,\"start_ns\":2e9,\"end_ns\":4e9,\"cpu_ns\":300},"
		"{\"kind\":\"thread\",\"tid\":8,\"start_ns\":3e9,\"end_ns\":6e9,\"cpu_ns\":300},"
		"{\"kind\":\"thread\",\"tid\":0,\"start_ns\":1e9,\"end_ns\":9e12,\"cpu_ns\":1},"
		"{\"kind\":\"capability\",\"cap\":0,\"start_ns\":0,\"end_ns\":9e9}]}";
	struct diff_report *r;
	char json[2048];

	(void)state;
	for (int n = 1; n <= 2; n++) {
		snprintf(
			json, sizeof(json),
			"{\"safescope\":{},\"session\":{\"duration_ns\":9e9},\"targets\":[%s%s%s]}",
			seen, n > 1 ? "," : "", n > 1 ? seen : "");
		assert_int_equal(read(json, &r), 0);
		assert_int_equal(r->duration_ns, n > 1 ? 9 * S : 4 * S);
		assert_int_equal(r->programs[0].calls_unsure, DIFF_WHOLE / 4);
		diff_report__free(r);
	}
}

static void test_no_report(void **state)
{
	struct diff_report *r;

	(void)state;
	assert_int_equal(read("", &r), -EBADMSG);
	assert_int_equal(read("{", &r), -EBADMSG);
	assert_int_equal(read("[]", &r), -EBADMSG);
	assert_int_equal(read("{\"safescope\":{},\"targets\":3}", &r), -EBADMSG);
	assert_int_equal(read("{\"safescope\":{},\"targets\":[]}", &r), -EINVAL);
	assert_int_equal(read("{\"safescope\":{},\"targets\":[1,[],{\"lanes\":[5,{}]}]}", &r),
			 -EINVAL);
	diff_report__free(NULL);
}

/* A name that is too long is truncated at a character boundary. */
static void test_long_name(void **state)
{
	static const char head[] =
		"{\"safescope\":{},\"targets\":[{\"lanes\":[{\"kind\":\"thread\",\"cpu_ns\":1}],"
		"\"functions\":[{\"kind\":\"haskell\",\"self_ns\":1,\"name\":\"a";
	char json[sizeof(head) + 1024];
	struct diff_report *r;
	size_t len = sizeof(head) - 1;
	uint32_t cp;

	(void)state;
	memcpy(json, head, len);
	for (int i = 0; i < 200; i++, len += strlen("λ"))
		memcpy(json + len, "λ", strlen("λ"));
	memcpy(json + len, "\"}]}]}", sizeof("\"}]}]}"));
	assert_int_equal(read(json, &r), 0);
	assert_in_range(strlen(r->functions[0].name), 200, sizeof(r->functions[0].name) - 1);
	for (const char *s = r->functions[0].name; *s;) {
		len = text__decode(s, strlen(s), &cp);
		assert_true(len > 0);
		s += len;
	}
	diff_report__free(r);
}

/* ── output ──────────────────────────────────────────────────────────────────────────────── */

static void test_stacks(void **state)
{
	static const char *const folded[2] = {
		"made_up-12;worker-13;Main.main;Mod3.f3 "
		"1000\nmade_up-12;other-14;Main.main;Mod3.f3 500\n"
		"made_up-12;worker-13;Main.main 10\nmade_up-12;worker-13;gone 4\n",
		"made_up-77;w-1;Main.main;Mod3.f3 4000\nmade_up-77;w-1;Main.main;new one "
		"7\nnonsense\n"};
	static const char *const names[2] = {"a", "b"};
	struct diff_report *a = session(3000, 1, 1), *b = session(6000, 1, 1);
	struct diff_stacks *stacks;
	char *text = NULL, *each;
	size_t len = 0;
	struct diff *d;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(diff__new(a, b, "fetch", &d), 0);
	assert_true(fabs(d->pairs[0].work - 2) < 1e-9);
	assert_int_equal(diff_stacks__new(d, folded, false, &stacks), 0);
	assert_int_equal(diff_stacks__put_folded(out, stacks), 0);
	fclose(out);
	/* threads are added up; A's figures are doubled, since B did twice the work */
	assert_string_equal(text, "made_up;Main.main 20 0\nmade_up;Main.main;Mod3.f3 3000 4000\n"
				  "made_up;Main.main;new one 0 7\nmade_up;gone 8 0\n");
	free(text);
	diff_stacks__free(stacks);
	/* in bytes: a sample then stands for a number of bytes */
	assert_int_equal(diff_stacks__new(d, folded, true, &stacks), 0);
	out = open_memstream(&text, &len);
	assert_int_equal(diff__put_page(out, d, stacks, names), 0);
	fclose(out);
	each = strstr(text, "\"bytes\":true");
	assert_non_null(each);
	each = strstr(each, "\"each\":[");
	assert_non_null(each);
	assert_in_range(strtod(each + strlen("\"each\":["), NULL), NURSERY, 5 * NURSERY);
	free(text);
	diff_stacks__free(stacks);
	diff__free(d);
	free(a);
	free(b);
}

/* In each line that has both, the change is larger than the noise beside it exactly if it is beyond
 * noise. */
static void check_columns(const struct diff *d, const char *text)
{
	unsigned seen = 0;

	for (size_t i = 0; i < d->pairs[0].n_rows; i++) {
		const struct diff_row *row = &d->pairs[0].rows[i];
		const char *at = strstr(text, "\nFunctions, by own CPU time\n");
		char line[256], *change, *noise;

		if (row->section != DIFF_FUNCTIONS)
			continue;
		at = strstr(at, row->name);
		assert_non_null(at);
		while (at[-1] != '\n')
			at--;
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		change = strpbrk(line, "+-");
		noise = change ? strchr(change, '%') : NULL;
		if (!noise || !strchr(noise + 1, '%'))
			continue;
		seen++;
		/* by one when rounded */
		if (fabs(row->b - row->a) > row->noise)
			assert_true(fabs(strtod(change, NULL)) + 1 >= strtod(noise + 1, NULL));
		else
			assert_true(fabs(strtod(change, NULL)) <= strtod(noise + 1, NULL) + 1);
	}
	assert_true(seen > 2);
}

static void test_columns(void **state)
{
	static const char *const names[2] = {"a", "b"};

	(void)state;
	for (int i = 1; i < 40; i++) {
		/* among them changes that are just noise, and just beyond it */
		struct diff_report *a = session(3000, 1, 1);
		struct diff_report *b = session(3000, 0.05 * i + 0.3, 1);
		char *text = NULL;
		size_t len = 0;
		struct diff *d;
		FILE *out = open_memstream(&text, &len);

		assert_int_equal(diff__new(a, b, NULL, &d), 0);
		assert_int_equal(diff__put_text(out, d, names, true, false, 160), 0);
		fclose(out);
		check_columns(d, text);
		free(text);
		diff__free(d);
		free(a);
		free(b);
	}
}

static void spoil(struct diff_function *f)
{
	size_t len = strlen(f->name);

	snprintf(f->name + len, sizeof(f->name) - len, "\033[2J<b>");
}

/* Names of programs and functions are escaped in all output. */
static void test_hostile(void **state)
{
	static const char *const folded[2] = {"made_up-1;t-1;</script><b>&\"\\;f 100000\n",
					      "made_up-1;t-1;</script><b>&\"\\;f 900000\n"};
	static const char *const names[2] = {"a\033[2J", "<b>"};
	struct diff_report *a = session(3000, 1, 1), *b = session(3000, 5, 1);
	struct diff_stacks *stacks;
	char *text = NULL;
	size_t len = 0;
	struct diff *d;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	for (int i = 0; i < FUNCTIONS; i++) {
		spoil(&a->functions[i]);
		spoil(&b->functions[i]);
	}
	assert_int_equal(diff__new(a, b, NULL, &d), 0);
	assert_int_equal(diff_stacks__new(d, folded, false, &stacks), 0);
	assert_int_equal(diff__put_text(out, d, names, true, false, 100), 0);
	assert_int_equal(diff__put_page(out, d, stacks, names), 0);
	fclose(out);
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "slower: Mod3.f3\\u{1b}[2J<b>"));
	assert_non_null(strstr(text, "slower: Mod3.f3\\u{1b}[2J&lt;b&gt;"));
	/* the page itself has only the ends of its own two scripts */
	assert_null(strstr(strstr(text, "<!DOCTYPE"), "</script><b>"));
	assert_null(strstr(strstr(text, "<!DOCTYPE"), "<b>"));
	free(text);
	diff_stacks__free(stacks);
	diff__free(d);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_program),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_allocation),
		cmocka_unit_test(test_whole_allocation),
		cmocka_unit_test(test_calls_and_collections),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_no_report),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
