/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eventlog_models: shared by the tests of the models that are built from a log's events. */
#ifndef SAFESCOPED_TEST_EVENTLOG_MODELS_H
#define SAFESCOPED_TEST_EVENTLOG_MODELS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog_writer.h"

static inline struct eventlog *log_new(void)
{
	struct eventlog *log;

	assert_int_equal(eventlog__new(NULL, &log), 0);
	return log;
}

static inline void log_read(struct eventlog *log, const struct writer *w)
{
	assert_int_equal(eventlog__feed(log, w->data, w->len), 0);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	assert_int_equal(eventlog__stats(log)->misfits, 0);
}

static const struct {
	uint32_t id;
	const char *label, *module, *src;
	int caf;
} centres[] = {
	{20, "IDLE", "IDLE", "<built-in>", 0},
	{19, "GC", "GC", "<built-in>", 0},
	{18, "SYSTEM", "SYSTEM", "<built-in>", 0},
	{17, "MAIN", "MAIN", "<built-in>", 0},
	{16, "OVERHEAD_of", "PROFILING", "<built-in>", 0},
	{5, "CAF", "Main", "<entire-module>", 1},
	{4, "main", "Main", "Main.hs:1:1-9", 0},
	{3, "fib", "Main", "Main.hs:2:1-9", 0},
	{2, "$wgo", "Data.Thing", "Data/Thing.hs:3:1", 0},
	{1, "GC", "Main", "Main.hs:9:1-9",
	 0}, /* the program's own, despite the name of a built-in centre */
};

static inline void write_centres(struct writer *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(centres); i++)
		w_event(w, EL_HEAP_PROF_COST_CENTRE, 10, "wsssb", centres[i].id, centres[i].label,
			centres[i].module, centres[i].src, centres[i].caf);
}

#endif
