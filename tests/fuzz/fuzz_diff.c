/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_diff: any bytes as two JSON reports and the folded stacks of two sessions, separated by
 * NULs: what can be read is compared and written. A report compared with itself shows no change.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "confine/confine.h"
#include "diff/diff.h"

static void check(bool good)
{
	if (!good)
		abort();
}

static void write_all(const struct diff *diff, const char *const folded[2])
{
	static const char *const names[2] = {"a", "b"};
	struct diff_stacks *stacks = NULL;
	FILE *null = fopen("/dev/null", "w");

	check(null && !diff__put_text(null, diff, names, true, true, 100));
	for (int alloc = 0; alloc < 2; alloc++) {
		if (!diff_stacks__new(diff, folded, alloc, &stacks)) {
			check(!diff_stacks__put_folded(null, stacks));
			check(!diff__put_page(null, diff, stacks, names));
		}
		diff_stacks__free(stacks);
		stacks = NULL;
	}
	fclose(null);
}

static void compare(const struct diff_report *a, const struct diff_report *b, const char *per,
		    const char *const folded[2])
{
	struct diff *diff = NULL;

	if (diff__new(a, b, per, &diff))
		return;
	for (size_t i = 0; a == b && i < diff->n_pairs; i++)
		for (size_t k = 0; k < diff->pairs[i].n_rows; k++)
			check(!diff->pairs[i].rows[k].verdict);
	write_all(diff, folded);
	diff__free(diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diff_report *reports[2] = {NULL, NULL};
	char *parts[4] = {"", "", "", ""}, *text = calloc(size + 1, 1), *next = text;

	check(text != NULL);
	memcpy(text, data, size);
	confine__run_inside();
	for (size_t i = 0; i < 4 && next <= text + size; i++) {
		parts[i] = next;
		next += strlen(next) + 1;
	}
	for (size_t i = 0; i < 2; i++)
		if (diff_report__read(parts[i], strlen(parts[i]), &reports[i]))
			reports[i] = NULL;
	for (size_t i = 0; i < 2 && reports[i]; i++)
		compare(reports[i], reports[i], NULL, (const char *const[]){parts[2], parts[2]});
	if (reports[0] && reports[1]) {
		const char *const folded[2] = {parts[2], parts[3]};

		compare(reports[0], reports[1], NULL, folded);
		compare(reports[0], reports[1], "gc", folded);
		compare(reports[0], reports[1], "usleep", folded);
	}
	diff_report__free(reports[0]);
	diff_report__free(reports[1]);
	free(text);
	return 0;
}
