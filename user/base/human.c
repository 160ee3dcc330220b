/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as people read them: three significant digits, a suitable unit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

/* With enough decimals for three digits. */
static struct human three_digits(double value, const char *unit)
{
	/* 9.995 would be printed as "10.00" with two decimals: choose by the rounded value. */
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	struct human out;

	snprintf(out.s, sizeof(out.s), "%.*f %s", decimals, value, unit);
	return out;
}

struct human human__duration(uint64_t ns)
{
	uint64_t s = ns / 1000000000;
	struct human out;

	if (!ns)
		snprintf(out.s, sizeof(out.s), "0 s");
	else if (ns < 1000)
		snprintf(out.s, sizeof(out.s), "%" PRIu64 " ns", ns);
	else if (ns < 999500)
		out = three_digits((double)ns / 1e3, "µs");
	else if (ns < 999500000)
		out = three_digits((double)ns / 1e6, "ms");
	else if (s < 600)
		out = three_digits((double)ns / 1e9, "s");
	else if (s < 6000)
		snprintf(out.s, sizeof(out.s), "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s < 360000)
		snprintf(out.s, sizeof(out.s), "%" PRIu64 " h %" PRIu64 " min", s / 3600,
			 s / 60 % 60);
	else
		snprintf(out.s, sizeof(out.s), "%" PRIu64 " d %" PRIu64 " h", s / 86400,
			 s / 3600 % 24);
	return out;
}

struct human human__count(uint64_t n)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;
	struct human out;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out.s[at++] = ' ';
		out.s[at++] = digits[i];
	}
	out.s[at] = '\0';
	return out;
}

struct human human__bytes(uint64_t bytes)
{
	struct human out;

	if (bytes < 1000)
		snprintf(out.s, sizeof(out.s), "%" PRIu64 " B", bytes);
	else if (bytes < 999500)
		out = three_digits((double)bytes / 1e3, "kB");
	else if (bytes < 999500000)
		out = three_digits((double)bytes / 1e6, "MB");
	else
		out = three_digits((double)bytes / 1e9, "GB");
	return out;
}

double human__percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

uint64_t human__whole(double number)
{
	const double most = 1e18;

	return number > 0 ? (uint64_t)MIN(number, most) : 0;
}

uint64_t human__per_second(uint64_t n, uint64_t ns)
{
	return ns ? human__whole((double)n / ((double)ns / 1e9)) : 0;
}
