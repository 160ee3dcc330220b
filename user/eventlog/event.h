/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event: one decoded event of a GHC eventlog. Part of the room's public face; include
 * eventlog.h, which includes this.
 *
 * Numbers and payloads: GHC 9.0 includes/rts/EventLogFormat.h, GHC 9.4 and later
 * rts/gen_event_types.py; union of 8.10 to 9.14.
 */
#ifndef SAFESCOPED_EVENTLOG_EVENT_H
#define SAFESCOPED_EVENTLOG_EVENT_H

#include <stdbool.h>
#include <stdint.h>

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
	EL_CREATE_SPARK_THREAD = 15,
	EL_LOG_MSG = 16,
	EL_BLOCK_MARKER = 18,
	EL_USER_MSG = 19,
	EL_GC_IDLE = 20,
	EL_GC_WORK = 21,
	EL_GC_DONE = 22,
	EL_CAPSET_CREATE = 25,
	EL_CAPSET_DELETE = 26,
	EL_CAPSET_ASSIGN_CAP = 27,
	EL_CAPSET_REMOVE_CAP = 28,
	EL_RTS_IDENTIFIER = 29,
	EL_PROGRAM_ARGS = 30,
	EL_PROGRAM_ENV = 31,
	EL_OSPROCESS_PID = 32,
	EL_OSPROCESS_PPID = 33,
	EL_SPARK_COUNTERS = 34,
	EL_SPARK_CREATE = 35,
	EL_SPARK_DUD = 36,
	EL_SPARK_OVERFLOW = 37,
	EL_SPARK_RUN = 38,
	EL_SPARK_STEAL = 39,
	EL_SPARK_FIZZLE = 40,
	EL_SPARK_GC = 41,
	EL_INTERN_STRING = 42,
	EL_WALL_CLOCK_TIME = 43,
	EL_THREAD_LABEL = 44,
	EL_CAP_CREATE = 45,
	EL_CAP_DELETE = 46,
	EL_CAP_DISABLE = 47,
	EL_CAP_ENABLE = 48,
	EL_HEAP_ALLOCATED = 49,
	EL_HEAP_SIZE = 50,
	EL_HEAP_LIVE = 51,
	EL_HEAP_INFO_GHC = 52,
	EL_GC_STATS_GHC = 53,
	EL_GC_GLOBAL_SYNC = 54,
	EL_TASK_CREATE = 55,
	EL_TASK_MIGRATE = 56,
	EL_TASK_DELETE = 57,
	EL_USER_MARKER = 58,
	EL_HACK_BUG_T9003 = 59,
	EL_MEM_RETURN = 90,
	EL_BLOCKS_SIZE = 91,
	EL_HEAP_PROF_BEGIN = 160,
	EL_HEAP_PROF_COST_CENTRE = 161,
	EL_HEAP_PROF_SAMPLE_BEGIN = 162,
	EL_HEAP_PROF_SAMPLE_COST_CENTRE = 163,
	EL_HEAP_PROF_SAMPLE_STRING = 164,
	EL_HEAP_PROF_SAMPLE_END = 165,
	EL_HEAP_BIO_PROF_SAMPLE_BEGIN = 166,
	EL_PROF_SAMPLE_COST_CENTRE = 167,
	EL_PROF_BEGIN = 168,
	EL_IPE = 169,
	EL_USER_BINARY_MSG = 181,
	EL_CONC_MARK_BEGIN = 200,
	EL_CONC_MARK_END = 201,
	EL_CONC_SYNC_BEGIN = 202,
	EL_CONC_SYNC_END = 203,
	EL_CONC_SWEEP_BEGIN = 204,
	EL_CONC_SWEEP_END = 205,
	EL_CONC_UPD_REM_SET_FLUSH = 206,
	EL_NONMOVING_HEAP_CENSUS = 207,
	EL_NONMOVING_PRUNED_SEGMENTS = 208,
	EL_TICKY_COUNTER_DEF = 210,
	EL_TICKY_COUNTER_SAMPLE = 211,
	EL_TICKY_COUNTER_BEGIN_SAMPLE = 212,
};

/* Ids from here on are skipped and counted; GHC reserves nothing above 255. */
#define EL_IDS 256

/* The buffer that belongs to no capability: profiling, capset and task events. */
#define EL_CAP_GLOBAL 0xffff

/*
 * STOP_THREAD's status: 1 to 5 are StgRun's return codes, 6 a safe foreign call; the rest is
 * why_blocked + 6 (rts/Trace.c, rts/include/rts/Constants.h). 18 is what the code writes for a
 * message to another thread, 16 what EventLogFormat.h says.
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
	uint16_t cap;  /* whose buffer it was in, or EL_CAP_GLOBAL */
	uint32_t len;  /* of the payload, without the length field */
	const uint8_t *payload;
	union {
		/* CREATE_THREAD, RUN_THREAD, THREAD_RUNNABLE, CREATE_SPARK_THREAD; with
		 * `cap`: MIGRATE_THREAD (new capability), THREAD_WAKEUP (the other one) */
		struct {
			uint32_t tid;
			uint16_t cap;
		} thread;
		struct {
			uint32_t tid, info; /* thread blocked on; with STACK_OVERFLOW: size */
			uint16_t status;    /* enum el_stop */
		} stop;
		struct {
			uint32_t size;
			uint16_t cap;
			uint64_t end_time;
		} block;
		struct el_str text; /* LOG_MSG, USER_MSG, USER_MARKER, USER_BINARY_MSG */
		struct {
			struct el_str text;
			uint32_t id;
		} intern;
		struct {
			uint32_t set;
			uint16_t type, cap; /* CREATE: type; ASSIGN_CAP, REMOVE_CAP: cap */
		} capset;
		struct {
			uint32_t set;
			struct el_str text; /* RTS_IDENTIFIER; ARGS, ENV: NUL-separated */
		} capset_text;
		struct {
			uint32_t set, pid;
		} process;
		uint64_t sparks[7]; /* created dud overflowed converted gcd fizzled remaining */
		uint16_t cap_no;    /* CAP_*, SPARK_STEAL (victim), CONC_UPD_REM_SET_FLUSH */
		struct {
			uint64_t sec;
			uint32_t set, ns;
		} wall;
		struct {
			uint32_t tid;
			struct el_str label;
		} label;
		struct {
			uint64_t bytes;
			uint32_t set;
		} heap; /* HEAP_ALLOCATED, HEAP_SIZE, HEAP_LIVE, BLOCKS_SIZE */
		struct {
			uint64_t max_heap, alloc_area, mblock, block;
			uint32_t set;
			uint16_t gens;
		} heap_info;
		struct {
			uint64_t copied, slop, frag, par_max, par_total, par_balanced;
			uint32_t set, par_threads;
			uint16_t gen;
		} gc_stats;
		struct {
			uint64_t task, tid; /* CREATE: kernel thread id */
			uint16_t cap, new_cap;
		} task;
		struct {
			uint32_t set, current, needed, returned; /* megablocks */
		} mem_return;
		struct {
			uint64_t period;
			uint32_t breakdown;
			uint8_t profile;
			/* module, closure, type, cc, ccs, retainer, biography */
			struct el_str filters[7];
		} heap_prof_begin;
		struct {
			uint32_t id;
			bool is_caf;
			struct el_str label, module, srcloc;
		} cc;
		struct {
			uint64_t era, time; /* BIO_ begins also carry a time */
		} heap_prof_sample;
		struct {
			uint64_t bytes;
			uint8_t profile;
			struct el_u32s ccs; /* ids, innermost first */
			struct el_str name;
		} heap_prof_entry;
		struct {
			uint64_t tick;
			uint32_t cap;
			struct el_u32s ccs; /* ids, innermost first, MAIN left out */
		} prof_sample;
		uint64_t prof_interval; /* PROF_BEGIN, ns */
		struct {
			uint64_t info;
			struct el_str table, closure, type, label, module, src;
		} ipe;
		uint32_t marked; /* CONC_MARK_END */
		struct {
			uint32_t block_size; /* log2 up to GHC 9.8.2, bytes from 9.8.3 */
			uint32_t active, filled, live;
		} census;
		struct {
			uint32_t pruned, freed;
		} pruned;
		struct {
			uint64_t id, info;
			uint16_t arity;
			struct el_str kinds, name, json;
		} ticky_def;
		struct {
			uint64_t id, entries, allocs, allocated;
		} ticky;
	};
};

/* "RUN_THREAD"; NULL for an id this program does not know. */
const char *el_id__name(unsigned id);
/* "making a foreign call"; "unknown reason" for the rest. */
const char *el_stop__name(unsigned status);

#endif
