/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of collections. */
#ifndef SAFESCOPED_TEST_TIMELINE_GC_H
#define SAFESCOPED_TEST_TIMELINE_GC_H

#include "test_timeline_kit.h"

static inline void put_gc(struct kit *kit, pid_t tid, unsigned point, uint64_t ns)
{
	union rec r;

	mk_gc(&r, tid, point, ns);
	r.gc.generation = 1;
	r.gc.number = 41;
	put(kit, &r);
}

static inline void put_end(struct kit *kit, pid_t tid, uint64_t sync, uint64_t start, uint64_t end)
{
	union rec r;

	mk_gc(&r, tid, WIRE_GC_END, end);
	r.gc.sync_ns = sync;
	r.gc.start_ns = start;
	put(kit, &r);
}

#endif
