/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * decode: the payload of one event as a struct. A payload longer than expected is fine (later
 * releases append fields); a shorter one is refused.
 */
#include "base/base.h"
#include "private.h"

/* What is left of a payload; `bad` once something did not fit. */
struct rest {
	const uint8_t *p, *end;
	bool bad;
};

static const uint8_t *take(struct rest *r, size_t n)
{
	const uint8_t *p = r->p;

	if ((size_t)(r->end - p) < n) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	return p;
}

static uint8_t take8(struct rest *r)
{
	const uint8_t *p = take(r, 1);

	return p ? *p : 0;
}

static uint16_t take16(struct rest *r)
{
	const uint8_t *p = take(r, 2);

	return p ? be16_at(p) : 0;
}

static uint32_t take32(struct rest *r)
{
	const uint8_t *p = take(r, 4);

	return p ? be32_at(p) : 0;
}

static uint64_t take64(struct rest *r)
{
	const uint8_t *p = take(r, 8);

	return p ? be64_at(p) : 0;
}

/* Up to a NUL, which is taken too. */
static struct el_str take_string(struct rest *r)
{
	const uint8_t *nul = memchr(r->p, 0, (size_t)(r->end - r->p));
	struct el_str s = {"", 0};

	if (!nul) {
		r->bad = true;
		return s;
	}
	s.s = (const char *)r->p;
	s.len = (uint32_t)(nul - r->p);
	r->p = nul + 1;
	return s;
}

static struct el_str take_rest(struct rest *r)
{
	struct el_str s = {(const char *)r->p, (uint32_t)(r->end - r->p)};

	r->p = r->end;
	return s;
}

static struct el_u32s take_ids(struct rest *r, uint32_t n)
{
	struct el_u32s ids = {take(r, (size_t)n * 4), n};

	if (!ids.p)
		ids.n = 0;
	return ids;
}

/* Text in a message may end in NULs that writers of their own add. */
static struct el_str take_text(struct rest *r)
{
	struct el_str s = take_rest(r);

	while (s.len && !s.s[s.len - 1])
		s.len--;
	return s;
}

static void decode_counters(struct el_event *ev, struct rest *r)
{
	switch (ev->id) {
	case EL_TICKY_COUNTER_DEF:
		ev->ticky_def.id = take64(r);
		ev->ticky_def.arity = take16(r);
		ev->ticky_def.kinds = take_string(r);
		ev->ticky_def.name = take_string(r);
		/* From 9.4 on. */
		ev->ticky_def.info = 0;
		ev->ticky_def.json = (struct el_str){"", 0};
		if (r->p < r->end) {
			ev->ticky_def.info = take64(r);
			ev->ticky_def.json = take_string(r);
		}
		break;
	case EL_TICKY_COUNTER_SAMPLE:
		ev->ticky.id = take64(r);
		ev->ticky.entries = take64(r);
		ev->ticky.allocs = take64(r);
		ev->ticky.allocated = take64(r);
		break;
	case EL_NONMOVING_HEAP_CENSUS:
		/* The size of the first field changed with 9.8.3. */
		ev->census.block_size = ev->len >= 14 ? take16(r) : take8(r);
		ev->census.active = take32(r);
		ev->census.filled = take32(r);
		ev->census.live = take32(r);
		break;
	case EL_NONMOVING_PRUNED_SEGMENTS:
		ev->pruned.pruned = take32(r);
		ev->pruned.freed = take32(r);
		break;
	case EL_CONC_MARK_END:
		ev->marked = take32(r);
		break;
	default:
		break;
	}
}

static void decode_profile(struct el_event *ev, struct rest *r)
{
	switch (ev->id) {
	case EL_HEAP_PROF_BEGIN:
		ev->heap_prof_begin.profile = take8(r);
		ev->heap_prof_begin.period = take64(r);
		ev->heap_prof_begin.breakdown = take32(r);
		for (int i = 0; i < 7; i++)
			ev->heap_prof_begin.filters[i] = take_string(r);
		break;
	case EL_HEAP_PROF_COST_CENTRE:
		ev->cc.id = take32(r);
		ev->cc.label = take_string(r);
		ev->cc.module = take_string(r);
		ev->cc.srcloc = take_string(r);
		ev->cc.is_caf = take8(r);
		break;
	case EL_HEAP_PROF_SAMPLE_BEGIN:
	case EL_HEAP_PROF_SAMPLE_END:
		ev->heap_prof_sample.era = take64(r);
		ev->heap_prof_sample.time = 0;
		break;
	case EL_HEAP_BIO_PROF_SAMPLE_BEGIN:
		ev->heap_prof_sample.era = take64(r);
		ev->heap_prof_sample.time = take64(r);
		break;
	case EL_HEAP_PROF_SAMPLE_COST_CENTRE:
		ev->heap_prof_entry.profile = take8(r);
		ev->heap_prof_entry.bytes = take64(r);
		ev->heap_prof_entry.ccs = take_ids(r, take8(r));
		ev->heap_prof_entry.name = (struct el_str){"", 0};
		break;
	case EL_HEAP_PROF_SAMPLE_STRING:
		ev->heap_prof_entry.profile = take8(r);
		ev->heap_prof_entry.bytes = take64(r);
		ev->heap_prof_entry.name = take_string(r);
		ev->heap_prof_entry.ccs = (struct el_u32s){NULL, 0};
		break;
	case EL_PROF_SAMPLE_COST_CENTRE:
		ev->prof_sample.cap = take32(r);
		ev->prof_sample.tick = take64(r);
		ev->prof_sample.ccs = take_ids(r, take8(r));
		break;
	case EL_PROF_BEGIN:
		ev->prof_interval = take64(r);
		break;
	case EL_IPE:
		ev->ipe.info = take64(r);
		ev->ipe.table = take_string(r);
		ev->ipe.closure = take_string(r);
		ev->ipe.type = take_string(r);
		ev->ipe.label = take_string(r);
		ev->ipe.module = take_string(r);
		ev->ipe.src = take_string(r);
		break;
	default:
		decode_counters(ev, r);
		break;
	}
}

static void decode_process(struct el_event *ev, struct rest *r)
{
	switch (ev->id) {
	case EL_CAPSET_CREATE:
	case EL_CAPSET_DELETE:
	case EL_CAPSET_ASSIGN_CAP:
	case EL_CAPSET_REMOVE_CAP:
		ev->capset.set = take32(r);
		ev->capset.type = ev->id == EL_CAPSET_CREATE ? take16(r) : 0;
		ev->capset.cap = 0;
		if (ev->id == EL_CAPSET_ASSIGN_CAP || ev->id == EL_CAPSET_REMOVE_CAP)
			ev->capset.cap = take16(r);
		break;
	case EL_RTS_IDENTIFIER:
	case EL_PROGRAM_ARGS:
	case EL_PROGRAM_ENV:
		ev->capset_text.set = take32(r);
		ev->capset_text.text = take_rest(r);
		break;
	case EL_OSPROCESS_PID:
	case EL_OSPROCESS_PPID:
		ev->process.set = take32(r);
		ev->process.pid = take32(r);
		break;
	case EL_WALL_CLOCK_TIME:
		ev->wall.set = take32(r);
		ev->wall.sec = take64(r);
		ev->wall.ns = take32(r);
		break;
	case EL_CAP_CREATE:
	case EL_CAP_DELETE:
	case EL_CAP_DISABLE:
	case EL_CAP_ENABLE:
	case EL_SPARK_STEAL:
	case EL_CONC_UPD_REM_SET_FLUSH:
		ev->cap_no = take16(r);
		break;
	case EL_TASK_CREATE:
		ev->task.task = take64(r);
		ev->task.cap = take16(r);
		ev->task.new_cap = ev->task.cap;
		ev->task.tid = take64(r);
		break;
	case EL_TASK_MIGRATE:
		ev->task.task = take64(r);
		ev->task.cap = take16(r);
		ev->task.new_cap = take16(r);
		ev->task.tid = 0;
		break;
	case EL_TASK_DELETE:
		ev->task.task = take64(r);
		ev->task.cap = ev->task.new_cap = 0;
		ev->task.tid = 0;
		break;
	default:
		break;
	}
}

static void decode_heap(struct el_event *ev, struct rest *r)
{
	switch (ev->id) {
	case EL_HEAP_ALLOCATED:
	case EL_HEAP_SIZE:
	case EL_HEAP_LIVE:
	case EL_BLOCKS_SIZE:
		ev->heap.set = take32(r);
		ev->heap.bytes = take64(r);
		break;
	case EL_HEAP_INFO_GHC:
		ev->heap_info.set = take32(r);
		ev->heap_info.gens = take16(r);
		ev->heap_info.max_heap = take64(r);
		ev->heap_info.alloc_area = take64(r);
		ev->heap_info.mblock = take64(r);
		ev->heap_info.block = take64(r);
		break;
	case EL_GC_STATS_GHC:
		ev->gc_stats.set = take32(r);
		ev->gc_stats.gen = take16(r);
		ev->gc_stats.copied = take64(r);
		ev->gc_stats.slop = take64(r);
		ev->gc_stats.frag = take64(r);
		ev->gc_stats.par_threads = take32(r);
		ev->gc_stats.par_max = take64(r);
		ev->gc_stats.par_total = take64(r);
		ev->gc_stats.par_balanced = take64(r);
		break;
	case EL_MEM_RETURN:
		ev->mem_return.set = take32(r);
		ev->mem_return.current = take32(r);
		ev->mem_return.needed = take32(r);
		ev->mem_return.returned = take32(r);
		break;
	default:
		break;
	}
}

static void decode_intern(struct el_event *ev, struct rest *r)
{
	ev->intern.text = take_string(r);
	ev->intern.id = take32(r);
}

bool decode__other(struct el_event *ev)
{
	struct rest r = {ev->payload, ev->payload + ev->len, false};

	switch (ev->id) {
	case EL_MIGRATE_THREAD:
	case EL_THREAD_WAKEUP:
		ev->thread.tid = take32(&r);
		ev->thread.cap = take16(&r);
		break;
	case EL_BLOCK_MARKER:
		ev->block.size = take32(&r);
		ev->block.end_time = take64(&r);
		ev->block.cap = take16(&r);
		break;
	case EL_LOG_MSG:
	case EL_USER_MSG:
	case EL_USER_MARKER:
		ev->text = take_text(&r);
		break;
	case EL_USER_BINARY_MSG:
		ev->text = take_rest(&r);
		break;
	case EL_INTERN_STRING:
		decode_intern(ev, &r);
		break;
	case EL_THREAD_LABEL:
		ev->label.tid = take32(&r);
		ev->label.label = take_text(&r);
		break;
	case EL_SPARK_COUNTERS:
		for (int i = 0; i < 7; i++)
			ev->sparks[i] = take64(&r);
		break;
	default:
		if (ev->id >= EL_HEAP_PROF_BEGIN)
			decode_profile(ev, &r);
		else if (ev->id >= EL_HEAP_ALLOCATED && ev->id != EL_TASK_CREATE &&
			 ev->id != EL_TASK_MIGRATE && ev->id != EL_TASK_DELETE)
			decode_heap(ev, &r);
		else
			decode_process(ev, &r);
		break;
	}
	return !r.bad;
}

static const char *const names[EL_IDS] = {
#define N(x) [EL_##x] = #x
	N(CREATE_THREAD),
	N(RUN_THREAD),
	N(STOP_THREAD),
	N(THREAD_RUNNABLE),
	N(MIGRATE_THREAD),
	N(THREAD_WAKEUP),
	N(GC_START),
	N(GC_END),
	N(REQUEST_SEQ_GC),
	N(REQUEST_PAR_GC),
	N(CREATE_SPARK_THREAD),
	N(LOG_MSG),
	N(BLOCK_MARKER),
	N(USER_MSG),
	N(GC_IDLE),
	N(GC_WORK),
	N(GC_DONE),
	N(CAPSET_CREATE),
	N(CAPSET_DELETE),
	N(CAPSET_ASSIGN_CAP),
	N(CAPSET_REMOVE_CAP),
	N(RTS_IDENTIFIER),
	N(PROGRAM_ARGS),
	N(PROGRAM_ENV),
	N(OSPROCESS_PID),
	N(OSPROCESS_PPID),
	N(SPARK_COUNTERS),
	N(SPARK_CREATE),
	N(SPARK_DUD),
	N(SPARK_OVERFLOW),
	N(SPARK_RUN),
	N(SPARK_STEAL),
	N(SPARK_FIZZLE),
	N(SPARK_GC),
	N(INTERN_STRING),
	N(WALL_CLOCK_TIME),
	N(THREAD_LABEL),
	N(CAP_CREATE),
	N(CAP_DELETE),
	N(CAP_DISABLE),
	N(CAP_ENABLE),
	N(HEAP_ALLOCATED),
	N(HEAP_SIZE),
	N(HEAP_LIVE),
	N(HEAP_INFO_GHC),
	N(GC_STATS_GHC),
	N(GC_GLOBAL_SYNC),
	N(TASK_CREATE),
	N(TASK_MIGRATE),
	N(TASK_DELETE),
	N(USER_MARKER),
	N(HACK_BUG_T9003),
	N(MEM_RETURN),
	N(BLOCKS_SIZE),
	N(HEAP_PROF_BEGIN),
	N(HEAP_PROF_COST_CENTRE),
	N(HEAP_PROF_SAMPLE_BEGIN),
	N(HEAP_PROF_SAMPLE_COST_CENTRE),
	N(HEAP_PROF_SAMPLE_STRING),
	N(HEAP_PROF_SAMPLE_END),
	N(HEAP_BIO_PROF_SAMPLE_BEGIN),
	N(PROF_SAMPLE_COST_CENTRE),
	N(PROF_BEGIN),
	N(IPE),
	N(USER_BINARY_MSG),
	N(CONC_MARK_BEGIN),
	N(CONC_MARK_END),
	N(CONC_SYNC_BEGIN),
	N(CONC_SYNC_END),
	N(CONC_SWEEP_BEGIN),
	N(CONC_SWEEP_END),
	N(CONC_UPD_REM_SET_FLUSH),
	N(NONMOVING_HEAP_CENSUS),
	N(NONMOVING_PRUNED_SEGMENTS),
	N(TICKY_COUNTER_DEF),
	N(TICKY_COUNTER_SAMPLE),
	N(TICKY_COUNTER_BEGIN_SAMPLE),
#undef N
};

const char *el_id__name(unsigned id)
{
	return id < EL_IDS ? names[id] : NULL;
}

const char *el_stop__name(unsigned status)
{
	static const char *const stops[] = {
		[EL_STOP_HEAP_OVERFLOW] = "heap overflow",
		[EL_STOP_STACK_OVERFLOW] = "stack overflow",
		[EL_STOP_YIELDING] = "yielding",
		[EL_STOP_BLOCKED] = "blocked",
		[EL_STOP_FINISHED] = "finished",
		[EL_STOP_FOREIGN_CALL] = "making a foreign call",
		[EL_STOP_MVAR] = "blocked on an MVar",
		[EL_STOP_BLACKHOLE] = "blocked on a black hole",
		[EL_STOP_READ] = "blocked on read",
		[EL_STOP_WRITE] = "blocked on write",
		[EL_STOP_DELAY] = "blocked on delay",
		[EL_STOP_STM] = "blocked on STM",
		[EL_STOP_DO_PROC] = "blocked on an asynchronous call",
		[EL_STOP_CCALL] = "blocked in a foreign call",
		[EL_STOP_CCALL_NO_UNBLOCK] = "blocked in a foreign call",
		[EL_STOP_MSG_THROW_TO] = "blocked on throwTo",
		[EL_STOP_MIGRATING] = "migrating",
		[EL_STOP_MVAR_READ] = "blocked reading an MVar",
	};

	if (status >= ARRAY_SIZE(stops) || !stops[status])
		return "unknown reason";
	return stops[status];
}
