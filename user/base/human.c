/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers as people read them: three digits that count, a unit that fits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

/* With as many decimals as leave three digits. */
static void three_digits(char *out, size_t size, double value, const char *unit)
{
	/* 9.995 would be printed as "10.00" with two decimals: choose by the rounded value. */
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(out, size, "%.*f %s", decimals, value, unit);
}

void human__duration(char *out, size_t size, uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (!ns)
		snprintf(out, size, "0 s");
	else if (ns < 1000)
		snprintf(out, size, "%" PRIu64 " ns", ns);
	else if (ns < 999500)
		three_digits(out, size, (double)ns / 1e3, "µs");
	else if (ns < 999500000)
		three_digits(out, size, (double)ns / 1e6, "ms");
	else if (s < 600)
		three_digits(out, size, (double)ns / 1e9, "s");
	else if (s < 6000)
		snprintf(out, size, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s < 360000)
		snprintf(out, size, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
	else
		snprintf(out, size, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
}

void human__count(char *out, size_t size, uint64_t n)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

	for (size_t i = 0; i < len && at + 2 < size; i++) {
		if (i && (len - i) % 3 == 0)
			out[at++] = ' ';
		out[at++] = digits[i];
	}
	out[at] = '\0';
}

void human__bytes(char *out, size_t size, uint64_t bytes)
{
	if (bytes < 1000)
		snprintf(out, size, "%" PRIu64 " B", bytes);
	else if (bytes < 999500)
		three_digits(out, size, (double)bytes / 1e3, "kB");
	else if (bytes < 999500000)
		three_digits(out, size, (double)bytes / 1e6, "MB");
	else
		three_digits(out, size, (double)bytes / 1e9, "GB");
}

double human__percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}
