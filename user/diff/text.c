/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The comparison for people: what changed, and the largest rows of each section. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "diff.h"
#include "export/export.h"

#define WIDTH 160 /* if the page's width is not known */
/* The rows that may be noise in a section: of functions, of others. */
#define FUNCTIONS 10
#define OTHERS	  5
/* Noise beyond this part of the value is "much". */
#define MOST_NOISE 1
/* A change from this many times the first value on is shown as a multiple of it. */
#define MOST_PERCENT 10
#define LOAD_SHOWN   0.1
/* Part of the number of calls, in millionths. */
#define UNSURE_SHOWN 10000

/* The texts of each section. */
static const struct section {
	const char *title;
	const char *first, *second; /* columns */
	const char *more, *less;    /* printf formats for the name and the place */
	enum unit { NS, COUNT, BYTES } unit;
} sections[DIFF_SECTIONS] = {
	[DIFF_FUNCTIONS] = {"Functions, by own CPU time", "function", "module", "slower: %s%s%s",
			    "faster: %s%s%s", NS},
	[DIFF_MODULES] = {"Modules, by their functions' own CPU time", "module", "",
			  "slower: module %s%s%s", "faster: module %s%s%s", NS},
	[DIFF_UNSAFE] = {"Unsafe calls, by CPU time", "function", "called from",
			 "more time in unsafe calls of %s%s%s",
			 "less time in unsafe calls of %s%s%s", NS},
	[DIFF_CALLS] = {"Safe calls: number", "function", "called from", "more calls of %s%s%s",
			"fewer calls of %s%s%s", COUNT},
	[DIFF_CALL_TIME] = {"Safe calls: median time per call", "function", "called from",
			    "calls take longer: %s%s%s", "calls take less time: %s%s%s", NS},
	[DIFF_CALL_CPU] = {"Safe calls: CPU time per call", "function", "called from",
			   "calls take more CPU time: %s%s%s", "calls take less CPU time: %s%s%s",
			   NS},
	[DIFF_GCS] = {"Collections: number", "", "", "more collections%s%s%s",
		      "fewer collections%s%s%s", COUNT},
	[DIFF_GC_CPU] = {"Collections: CPU time per collection", "", "",
			 "collections take more CPU time%s%s%s",
			 "collections take less CPU time%s%s%s", NS},
	[DIFF_GC_PAUSE] = {"Collections: pause per collection", "", "", "longer pauses%s%s%s",
			   "shorter pauses%s%s%s", NS},
	[DIFF_ALLOC] = {"Allocation", "", "", "more is allocated %s%s%s",
			"less is allocated %s%s%s", BYTES},
	[DIFF_ALLOC_FUNCTIONS] = {"Functions, by own allocation", "function", "module",
				  "allocates more: %s%s%s", "allocates less: %s%s%s", BYTES},
	[DIFF_ALLOC_MODULES] = {"Modules, by their functions' own allocation", "module", "",
				"allocates more: module %s%s%s", "allocates less: module %s%s%s",
				BYTES},
};

struct shown {
	char s[48];
};

static struct shown show(const struct section *section, double v)
{
	struct shown out;

	switch (section->unit) {
	case COUNT:
		snprintf(out.s, sizeof(out.s), v < 100 ? "%.3g" : "%.0f", v);
		break;
	case BYTES:
		snprintf(out.s, sizeof(out.s), "%s", human__bytes(human__whole(v + 0.5)).s);
		break;
	case NS:
		snprintf(out.s, sizeof(out.s), "%s", human__duration(human__whole(v + 0.5)).s);
		break;
	}
	return out;
}

static bool is_in_percent(double a, double b)
{
	return a > 0 && b < MOST_PERCENT * a;
}

static struct shown change(double a, double b)
{
	struct shown out;

	if (a <= 0)
		snprintf(out.s, sizeof(out.s), b > 0 ? "new" : "");
	else if (b <= 0)
		snprintf(out.s, sizeof(out.s), "gone");
	else if (is_in_percent(a, b))
		snprintf(out.s, sizeof(out.s), "%+.0f %%", (b - a) / a * 100);
	else
		snprintf(out.s, sizeof(out.s), "%.3g times", b / a);
	return out;
}

/* The noise. Relative to the first value if the change beside it is, since readers compare the two;
 * else to the second. */
static struct shown noise(const struct diff_row *row)
{
	double whole = MAX(row->a, row->b);
	struct shown out = {""};

	if (whole > 0 && row->noise < MOST_NOISE * whole)
		snprintf(out.s, sizeof(out.s), "%.0f %%",
			 row->noise / (is_in_percent(row->a, row->b) ? row->a : whole) * 100);
	else if (whole > 0)
		snprintf(out.s, sizeof(out.s), "much");
	return out;
}

static int cmp_effects(const void *pa, const void *pb)
{
	const struct diff_row *a = *(const struct diff_row *const *)pa,
			      *b = *(const struct diff_row *const *)pb;
	double x = fabs(a->effect), y = fabs(b->effect);

	/* rows of one pair, in one array: equal ones stay in the sections' order */
	return CMP(y, x) ?: CMP(a, b);
}

static int put_change(FILE *out, const struct diff_row *row)
{
	const struct section *section = &sections[row->section];
	char *name = text__escaped(row->name), *at = text__escaped(row->at);
	/* do not repeat a module that the name begins with */
	bool from = row->section != DIFF_FUNCTIONS && row->section != DIFF_ALLOC_FUNCTIONS;
	bool place = *row->at;

	if (!name || !at) {
		free(name);
		free(at);
		return -ENOMEM;
	}
	if (!from && !strncmp(at, name + (*name == '~'), strlen(at)))
		place = false;
	fputs("  · ", out);
	/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): they are in the table above */
	fprintf(out, row->verdict > 0 ? section->more : section->less, name,
		!place ? ""
		: from ? ", called from "
		       : "  ",
		place ? at : "");
	fprintf(out, ": %s → %s (%s; noise is below %s)\n", show(section, row->a).s,
		show(section, row->b).s, change(row->a, row->b).s, noise(row).s);
	free(name);
	free(at);
	return 0;
}

/* True if the change is listed. A module's is not, as its functions' are, unless some of them have
 * no names. */
static bool is_listed(const struct diff_row *row)
{
	bool module = row->section == DIFF_MODULES || row->section == DIFF_ALLOC_MODULES;

	return row->verdict && (!module || row->no_names);
}

static int put_changes(FILE *out, const struct diff_pair *pair)
{
	const struct diff_row **changed = calloc(pair->n_rows + 1, sizeof(*changed));
	size_t n = 0;
	int err = changed ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < pair->n_rows; i++)
		if (is_listed(&pair->rows[i]))
			changed[n++] = &pair->rows[i];
	if (!err && n)
		qsort(changed, n, sizeof(*changed), cmp_effects);
	if (!err && !n)
		fputs("  nothing: all differences may be noise\n", out);
	for (size_t i = 0; i < n && !err; i++)
		err = put_change(out, changed[i]);
	free(changed);
	return err;
}

static int put_rows(FILE *out, const struct section *section, const struct diff_row *rows, size_t n,
		    unsigned width, bool colour)
{
	const struct table_column columns[] = {{"A", COL_RIGHT, NULL, 0},
					       {"B", COL_RIGHT, NULL, 0},
					       {"change", COL_RIGHT, NULL, 0},
					       {"noise", COL_RIGHT | COL_SPARE, NULL, 1},
					       {"", COL_LEFT, NULL, 0},
					       {section->first, COL_FLEX, NULL, 0},
					       {section->second, COL_FLEX, NULL, 0}};
	struct table *t;
	int err = table__new(columns, ARRAY_SIZE(columns), &t);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		const struct diff_row *row = &rows[i];

		table__cell(t, show(section, row->a).s);
		table__cell(t, show(section, row->b).s);
		table__cell(t, change(row->a, row->b).s);
		table__cell(t, noise(row).s);
		table__cell(t, row->verdict > 0 ? "more" : row->verdict < 0 ? "less" : "");
		table__cell(t, row->name);
		table__cell(t, row->at);
	}
	err = table__print(t, out, width, colour);
	table__free(t);
	return err;
}

/* Copies the rows that changed, and up to `most` of the others, the largest first. */
static size_t choose(const struct diff_row *rows, size_t n, size_t most, struct diff_row *to)
{
	size_t k = 0, others = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].verdict || (MAX(rows[i].a, rows[i].b) > 0 && others++ < most))
			to[k++] = rows[i];
	return k;
}

static int put_section(FILE *out, const struct diff_pair *pair, enum diff_section which,
		       bool verbose, bool colour, unsigned width)
{
	const struct section *section = &sections[which];
	size_t first = 0, n = 0, shown;
	struct diff_row *rows;
	int err;

	while (first < pair->n_rows && pair->rows[first].section != which)
		first++;
	while (first + n < pair->n_rows && pair->rows[first + n].section == which)
		n++;
	if (!n)
		return 0;
	rows = calloc(n, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	shown = choose(&pair->rows[first], n,
		       verbose							  ? n
		       : which == DIFF_FUNCTIONS || which == DIFF_ALLOC_FUNCTIONS ? FUNCTIONS
										  : OTHERS,
		       rows);
	fprintf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", section->title,
		colour ? "\033[0m" : "");
	err = put_rows(out, section, rows, shown, width, colour);
	if (!err && shown < n)
		fprintf(out, "  … and %zu more\n", n - shown);
	free(rows);
	return err;
}

static int put_head(FILE *out, const struct diff *d, const char *const names[2])
{
	static const char letters[2] = {'A', 'B'};
	const struct diff_report *reports[2] = {d->a, d->b};

	fputs("safescoped: what changed from A to B\n", out);
	for (int side = 0; side < 2; side++) {
		char *name = text__escaped(names[side]);
		uint64_t cpu_ns = 0;

		if (!name)
			return -ENOMEM;
		for (uint32_t i = 0; i < reports[side]->n_programs; i++)
			cpu_ns += reports[side]->programs[i].cpu_ns;
		fprintf(out, "  %c  %s: %s at %u Hz, %s of CPU time%s\n", letters[side], name,
			human__duration(reports[side]->duration_ns).s,
			(unsigned)reports[side]->frequency_hz, human__duration(cpu_ns).s,
			reports[side]->cut ? " (only part of it: it is too large)" : "");
		free(name);
	}
	return 0;
}

static int put_basis(FILE *out, const struct diff *d, const struct diff_pair *pair)
{
	char *before = text__escaped(pair->a->comm), *comm = text__escaped(pair->b->comm);
	char *per = text__escaped(d->per ? d->per : "");
	bool per_call = d->per && strcmp(d->per, "gc") != 0;

	if (!before || !comm || !per) {
		free(before);
		free(comm);
		free(per);
		return -ENOMEM;
	}
	if (strcmp(before, comm) != 0)
		fprintf(out, "\n%s → %s: ", before, comm);
	else
		fprintf(out, "\n%s: ", comm);
	free(before);
	if (!d->per)
		fputs("per second of A's CPU time\n", out);
	else if (!strcmp(d->per, "gc"))
		fputs("per collection\n", out);
	else
		fprintf(out, "per call of %s\n", per);
	if (pair->scale < 0.995 || pair->scale > 1.005)
		fprintf(out,
			"  the same work took B %.2f times the CPU time, by the median function\n",
			pair->scale);
	if (pair->load > LOAD_SHOWN)
		fputs("  the machine was busier in one of them: waiting and collecting can hardly "
		      "be compared\n",
		      out);
	if (pair->no_names)
		fputs("  functions without a name are compared by module or by file: they are at "
		      "other places in another build\n",
		      out);
	for (int side = 0; side < 2; side++)
		if ((side ? pair->b : pair->a)->calls_unsure >= UNSURE_SHOWN)
			fprintf(out,
				"  not all safe calls of %s were counted: their number is "
				"estimated%s\n",
				side ? "B" : "A",
				per_call ? ", and so are all figures per call" : "");
	if (pair->a->alloc_in_part || pair->b->alloc_in_part)
		fprintf(out, "  allocation is not compared: only part of it was seen in %s\n",
			!pair->b->alloc_in_part	  ? "A"
			: !pair->a->alloc_in_part ? "B"
						  : "both");
	else if (!pair->a->alloc_samples != !pair->b->alloc_samples)
		fprintf(out, "  allocation is not compared: %s has no samples of it\n",
			pair->a->alloc_samples ? "B" : "A");
	free(comm);
	free(per);
	return 0;
}

int diff__put_text(FILE *out, const struct diff *d, const char *const names[2], bool verbose,
		   bool colour, unsigned width)
{
	int err = put_head(out, d, names);

	for (size_t i = 0; i < d->n_pairs && !err; i++) {
		const struct diff_pair *pair = &d->pairs[i];

		err = put_basis(out, d, pair);
		fprintf(out, "\n%sWhat changed%s\n", colour ? "\033[1m" : "",
			colour ? "\033[0m" : "");
		if (!err)
			err = put_changes(out, pair);
		for (unsigned s = 0; s < DIFF_SECTIONS && !err; s++)
			err = put_section(out, pair, (enum diff_section)s, verbose, colour,
					  width ? width : WIDTH);
	}
	return err ? err : ferror(out) ? -EIO : 0;
}
