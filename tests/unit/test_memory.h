/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_memory: the peak resident memory of a test. Include after cmocka.h. */
#ifndef SAFESCOPED_TEST_MEMORY_H
#define SAFESCOPED_TEST_MEMORY_H

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

/* The value of a line of /proc/self/status, in MB. */
static inline size_t status_mb(const char *key)
{
	FILE *in = fopen("/proc/self/status", "r");
	unsigned long kb = 0;
	char line[256];

	assert_non_null(in);
	while (!kb && fgets(line, sizeof(line), in))
		if (!strncmp(line, key, strlen(key)))
			kb = strtoul(line + strlen(key), NULL, 10);
	fclose(in);
	assert_true(kb > 0);
	return kb >> 10;
}

/* Returns the current resident size, in MB, and resets the peak, which getrusage() reports too. */
static inline size_t memory_begin(void)
{
	FILE *out = fopen("/proc/self/clear_refs", "w");

	/* first return the memory that earlier tests freed */
	malloc_trim(0);
	assert_non_null(out);
	assert_true(fputs("5", out) >= 0);
	assert_int_equal(fclose(out), 0);
	return status_mb("VmRSS:");
}

/* Fails if the peak exceeds `before` by limit_mb or more. Only reported with the address
 * sanitizer, which keeps freed memory. */
static inline void assert_bounded(size_t before, size_t limit_mb)
{
	size_t now = status_mb("VmHWM:");

	print_message("          %zu MB at most\n", now > before ? now - before : 0);
#ifndef SANITIZED
	assert_true(now < before + limit_mb);
#else
	(void)limit_mb;
#endif
}

#endif
