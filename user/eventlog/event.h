/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event: one decoded event of a GHC eventlog. Part of the room's public interface; include
 * eventlog.h, which includes this.
 *
 * Numbers and payloads: GHC 9.0 includes/rts/EventLogFormat.h, GHC 9.4 and later
 * rts/gen_event_types.py; union of 8.10 to 9.14.
 */
#ifndef SAFESCOPED_EVENTLOG_EVENT_H
#define SAFESCOPED_EVENTLOG_EVENT_H

#include <stdint.h>

/* The events that are used. */
enum el_id {
	EL_CREATE_THREAD = 0,
	EL_RUN_THREAD = 1,
	EL_STOP_THREAD = 2,
	EL_THREAD_RUNNABLE = 3,
	EL_MIGRATE_THREAD = 4,
	EL_THREAD_WAKEUP = 8,
	EL_GC_START = 9,
	EL_GC_END = 10,
	EL_REQUEST_SEQ_GC = 11,
	EL_REQUEST_PAR_GC = 12,
	EL_BLOCK_MARKER = 18,
	EL_USER_MSG = 19,
	EL_RTS_IDENTIFIER = 29,
	EL_PROGRAM_ARGS = 30,
	EL_OSPROCESS_PID = 32,
	EL_WALL_CLOCK_TIME = 43,
	EL_THREAD_LABEL = 44,
	EL_CAP_CREATE = 45,
	EL_CAP_DELETE = 46,
	EL_CAP_DISABLE = 47,
	EL_CAP_ENABLE = 48,
	EL_HEAP_ALLOCATED = 49,
	EL_HEAP_SIZE = 50,
	EL_HEAP_LIVE = 51,
	EL_GC_STATS_GHC = 53,
	EL_GC_GLOBAL_SYNC = 54,
	EL_USER_MARKER = 58,
	EL_BLOCKS_SIZE = 91,
	EL_HEAP_PROF_COST_CENTRE = 161,
	EL_HEAP_PROF_SAMPLE_BEGIN = 162,
	EL_HEAP_PROF_SAMPLE_COST_CENTRE = 163,
	EL_HEAP_PROF_SAMPLE_STRING = 164,
	EL_HEAP_PROF_SAMPLE_END = 165,
	EL_HEAP_BIO_PROF_SAMPLE_BEGIN = 166,
	EL_PROF_SAMPLE_COST_CENTRE = 167,
	EL_PROF_BEGIN = 168,
	EL_TICKY_COUNTER_DEF = 210,
	EL_TICKY_COUNTER_SAMPLE = 211,
};

/* Ids from here on are skipped and counted; GHC reserves nothing above 255. */
#define EL_IDS 256

/* The buffer of no capability: profiling, capset and task events. */
#define EL_CAP_GLOBAL 0xffff

/*
 * STOP_THREAD's status: 1 to 5 are StgRun's return codes, 6 is a safe foreign call; the rest is
 * why_blocked + 6 (rts/Trace.c, rts/include/rts/Constants.h). For a message to another thread the
 * code writes 18, although EventLogFormat.h has 16.
 */
enum el_stop {
	EL_STOP_HEAP_OVERFLOW = 1,
	EL_STOP_STACK_OVERFLOW = 2,
	EL_STOP_YIELDING = 3,
	EL_STOP_BLOCKED = 4,
	EL_STOP_FINISHED = 5,
	EL_STOP_FOREIGN_CALL = 6,
	EL_STOP_MVAR = 7,
	EL_STOP_BLACKHOLE = 8,
	EL_STOP_READ = 9,
	EL_STOP_WRITE = 10,
	EL_STOP_DELAY = 11,
	EL_STOP_STM = 12,
	EL_STOP_DO_PROC = 13,
	EL_STOP_CCALL = 16,
	EL_STOP_CCALL_NO_UNBLOCK = 17,
	EL_STOP_MSG_THROW_TO = 18,
	EL_STOP_MIGRATING = 19,
	EL_STOP_MVAR_READ = 20,
};

/* Bytes inside the reader's buffer: valid during the callback, not NUL-terminated. */
struct el_str {
	const char *s;
	uint32_t len;
};

/* Big-endian 32-bit numbers inside the reader's buffer; read one with el_u32s__get. */
struct el_u32s {
	const uint8_t *p;
	uint32_t n;
};

static inline uint32_t el_u32s__get(struct el_u32s a, uint32_t i)
{
	const uint8_t *p = a.p + (uint64_t)i * 4;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct el_event {
	uint64_t time; /* ns since the RTS started */
	uint16_t id;   /* enum el_id */
	uint16_t cap;  /* the buffer that it was in, or EL_CAP_GLOBAL */
	uint32_t len;  /* of the payload, without the length field */
	const uint8_t *payload;
	union {
		/* CREATE_THREAD, RUN_THREAD, THREAD_RUNNABLE; with `cap`: MIGRATE_THREAD (new
		 * capability), THREAD_WAKEUP (other capability) */
		struct {
			uint32_t tid;
			uint16_t cap;
		} thread;
		struct {
			uint32_t tid, info; /* thread blocked on; with STACK_OVERFLOW: size */
			uint16_t status;    /* enum el_stop */
		} stop;
		struct el_str text; /* messages, RTS_IDENTIFIER; PROGRAM_ARGS: NUL-separated */
		uint16_t cap_no;    /* CAP_* */
		uint32_t pid;	    /* OSPROCESS_PID */
		struct {
			uint64_t sec;
			uint32_t ns;
		} wall;
		struct {
			uint32_t tid;
			struct el_str label;
		} label;
		uint64_t bytes; /* HEAP_ALLOCATED, HEAP_SIZE, HEAP_LIVE, BLOCKS_SIZE */
		uint16_t gen;	/* GC_STATS_GHC */
		struct {
			uint32_t id;
			uint8_t is_caf;
			struct el_str label, module, srcloc;
		} cc;
		uint64_t sample_time; /* HEAP_BIO_PROF_SAMPLE_BEGIN */
		struct {
			uint64_t bytes;
			struct el_u32s ccs; /* ids, innermost first: SAMPLE_COST_CENTRE */
			struct el_str name; /* SAMPLE_STRING */
		} band;			    /* HEAP_PROF_SAMPLE_* */
		struct {
			uint32_t cap;
			struct el_u32s ccs; /* ids, innermost first, without MAIN */
		} prof_sample;
		uint64_t prof_interval; /* PROF_BEGIN, ns */
		struct {
			uint64_t id, entries, allocs;
			struct el_str kinds, name; /* TICKY_COUNTER_DEF */
		} ticky;
	};
};

#endif
