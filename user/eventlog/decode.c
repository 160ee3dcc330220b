/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * decode: turns the payload of one event into a struct. A payload longer than expected is fine
 * (later releases append fields); a shorter one is refused. Fields that are not used are not
 * decoded.
 */
#include <stddef.h>

#include "reader_priv.h"

enum field_kind {
	F_END,
	F_NUMBER, /* big-endian, of the member's own size */
	F_SKIP,	  /* `size` bytes */
	F_STRING, /* up to and including a NUL */
	F_REST,	  /* everything that is left */
	F_TEXT,	  /* the same without trailing NULs, which some other writers add */
	F_IDS,	  /* a count in one byte, and that many u32 */
};

struct field {
	uint8_t kind, size, at; /* size: of the number; at: offset of the member in el_event */
};

#define AT(member) offsetof(struct el_event, member)
#define NUMBER(member)                                                                             \
	{                                                                                          \
		F_NUMBER, sizeof(((struct el_event *)0)->member), AT(member)                       \
	}
#define SKIP(n)                                                                                    \
	{                                                                                          \
		F_SKIP, n, 0                                                                       \
	}
#define STRING(member)                                                                             \
	{                                                                                          \
		F_STRING, 0, AT(member)                                                            \
	}
#define REST(member)                                                                               \
	{                                                                                          \
		F_REST, 0, AT(member)                                                              \
	}
#define TEXT(member)                                                                               \
	{                                                                                          \
		F_TEXT, 0, AT(member)                                                              \
	}
#define IDS(member)                                                                                \
	{                                                                                          \
		F_IDS, 0, AT(member)                                                               \
	}

#define FIELDS_MAX 8
static const struct field fields[EL_IDS][FIELDS_MAX + 1] = {
	[EL_MIGRATE_THREAD] = {NUMBER(thread.tid), NUMBER(thread.cap)},
	[EL_THREAD_WAKEUP] = {NUMBER(thread.tid), NUMBER(thread.cap)},
	[EL_THREAD_LABEL] = {NUMBER(label.tid), TEXT(label.label)},
	[EL_USER_MSG] = {TEXT(text)},
	[EL_USER_MARKER] = {TEXT(text)},
	[EL_CAP_CREATE] = {NUMBER(cap_no)},
	[EL_CAP_DELETE] = {NUMBER(cap_no)},
	[EL_CAP_DISABLE] = {NUMBER(cap_no)},
	[EL_CAP_ENABLE] = {NUMBER(cap_no)},
	[EL_RTS_IDENTIFIER] = {SKIP(4), REST(text)},
	[EL_PROGRAM_ARGS] = {SKIP(4), REST(text)},
	[EL_OSPROCESS_PID] = {SKIP(4), NUMBER(pid)},
	[EL_WALL_CLOCK_TIME] = {SKIP(4), NUMBER(wall.sec), NUMBER(wall.ns)},
	[EL_HEAP_ALLOCATED] = {SKIP(4), NUMBER(bytes)},
	[EL_HEAP_SIZE] = {SKIP(4), NUMBER(bytes)},
	[EL_HEAP_LIVE] = {SKIP(4), NUMBER(bytes)},
	[EL_BLOCKS_SIZE] = {SKIP(4), NUMBER(bytes)},
	[EL_GC_STATS_GHC] = {SKIP(4), NUMBER(gen)},
	[EL_HEAP_PROF_COST_CENTRE] = {NUMBER(cc.id), STRING(cc.label), STRING(cc.module),
				      STRING(cc.srcloc), NUMBER(cc.is_caf)},
	[EL_HEAP_BIO_PROF_SAMPLE_BEGIN] = {SKIP(8), NUMBER(sample_time)},
	[EL_HEAP_PROF_SAMPLE_COST_CENTRE] = {SKIP(1), NUMBER(band.bytes), IDS(band.ccs)},
	[EL_HEAP_PROF_SAMPLE_STRING] = {SKIP(1), NUMBER(band.bytes), STRING(band.name)},
	[EL_PROF_SAMPLE_COST_CENTRE] = {NUMBER(prof_sample.cap), SKIP(8), IDS(prof_sample.ccs)},
	[EL_PROF_BEGIN] = {NUMBER(prof_interval)},
	[EL_TICKY_COUNTER_DEF] = {NUMBER(ticky.id), SKIP(2), STRING(ticky.kinds),
				  STRING(ticky.name)},
	[EL_TICKY_COUNTER_SAMPLE] = {NUMBER(ticky.id), NUMBER(ticky.entries), NUMBER(ticky.allocs)},
};

static uint64_t number_at(const uint8_t *p, size_t size)
{
	switch (size) {
	case 1:
		return *p;
	case 2:
		return be16_at(p);
	case 4:
		return be32_at(p);
	default:
		return be64_at(p);
	}
}

static void put_number(void *member, size_t size, uint64_t value)
{
	switch (size) {
	case 1:
		*(uint8_t *)member = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)member = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)member = (uint32_t)value;
		break;
	default:
		*(uint64_t *)member = value;
		break;
	}
}

/* Returns the size of the field at p; more than `left` if it does not fit. */
static size_t take(const struct field *f, const uint8_t *p, size_t left, struct el_event *ev)
{
	void *member = (char *)ev + f->at;
	struct el_str *text = member;
	const uint8_t *nul;

	switch (f->kind) {
	case F_NUMBER:
		if (f->size <= left)
			put_number(member, f->size, number_at(p, f->size));
		return f->size;
	case F_STRING:
		nul = memchr(p, 0, left);
		*text = (struct el_str){(const char *)p, nul ? (uint32_t)(nul - p) : 0};
		return nul ? text->len + 1u : left + 1;
	case F_REST:
	case F_TEXT:
		*text = (struct el_str){(const char *)p, (uint32_t)left};
		while (f->kind == F_TEXT && text->len && !text->s[text->len - 1])
			text->len--;
		return left;
	case F_IDS:
		*(struct el_u32s *)member = (struct el_u32s){p + 1, left ? *p : 0};
		return 1 + 4 * (size_t)(left ? *p : 0);
	default:
		return f->size;
	}
}

bool decode__other(struct el_event *ev)
{
	const uint8_t *p = ev->payload;
	size_t left = ev->len;

	for (const struct field *f = fields[ev->id]; f->kind != F_END; f++) {
		size_t n = take(f, p, left, ev);

		if (n > left)
			return false;
		p += n;
		left -= n;
	}
	return true;
}
