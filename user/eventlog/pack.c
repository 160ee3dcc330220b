/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pack: the bytes, and what several models need to pack. */
#include "pack_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "eventlog.h"

/* ── bytes ───────────────────────────────────────────────────────────────────────────────── */

void pack__bytes(struct pack *p, const void *bytes, size_t len)
{
	if (p->full || len > p->size - p->len) {
		p->full = true;
		return;
	}
	if (len)
		memcpy(p->data + p->len, bytes, len);
	p->len += len;
}

bool unpack__require(struct unpack *u, bool good)
{
	u->bad = u->bad || !good;
	return !u->bad;
}

void unpack__bytes(struct unpack *u, void *ret_bytes, size_t len)
{
	if (!unpack__require(u, len <= u->left)) {
		memset(ret_bytes, 0, len);
		return;
	}
	memcpy(ret_bytes, u->data, len);
	u->data += len;
	u->left -= len;
}

void unpack__flag(struct unpack *u, const bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, sizeof(byte));
	unpack__require(u, byte <= 1);
}

void unpack__parts(struct unpack *u, const uint64_t *parts, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		unpack__require(u, !__builtin_add_overflow(sum, parts[i], &sum));
}

/* ── arrays ──────────────────────────────────────────────────────────────────────────────── */

void pack__array(struct pack *p, const void *array, size_t n, size_t elem)
{
	PACK(p, n);
	pack__bytes(p, array, n * elem);
}

int unpack__array(struct unpack *u, void **ret_array, size_t *ret_n, size_t max, size_t elem)
{
	size_t n;

	*ret_array = NULL;
	*ret_n = 0;
	UNPACK(u, n);
	if (!unpack__require(u, n <= max && n <= u->left / elem))
		return -EBADMSG;
	if (!n)
		return 0;
	*ret_array = malloc(n * elem);
	if (!*ret_array)
		return -ENOMEM;
	unpack__bytes(u, *ret_array, n * elem);
	*ret_n = n;
	return 0;
}

/* ── texts ───────────────────────────────────────────────────────────────────────────────── */

void pack__text(struct pack *p, const char *text)
{
	uint32_t len = (uint32_t)strnlen(text, STRTAB_MAX_STRING);

	PACK(p, len);
	pack__bytes(p, text, len);
}

const char *unpack__text(struct unpack *u, size_t *ret_len)
{
	const char *text;
	uint32_t len;

	*ret_len = 0;
	UNPACK(u, len);
	text = (const char *)u->data;
	if (!unpack__require(u, len <= STRTAB_MAX_STRING && len <= u->left) ||
	    !unpack__require(u, !memchr(text, 0, len)))
		return "";
	u->data += len;
	u->left -= len;
	*ret_len = len;
	return text;
}

void pack__strings(struct pack *p, const struct strtab *strings)
{
	uint32_t n = strtab__count(strings);

	PACK(p, n);
	/* number 0 is "" in every table */
	for (uint32_t i = 1; i < n; i++)
		pack__text(p, strtab__get(strings, i));
}

int unpack__strings(struct unpack *u, struct strtab *strings)
{
	uint32_t n;
	int err = 0;

	UNPACK(u, n);
	for (uint32_t i = 1; i < n && !err && !u->bad; i++) {
		size_t len;
		const char *text = unpack__text(u, &len);
		uint32_t id = 0;

		err = strtab__add(strings, text, len, &id);
		/* a duplicate would get a different number */
		unpack__require(u, err == -ENOMEM || (!err && id == i));
	}
	if (u->bad)
		return -EBADMSG;
	return err;
}

/* ── slices ──────────────────────────────────────────────────────────────────────────────── */

void pack__slices(struct pack *p, const struct slices *slices)
{
	PACK(p, slices->merged_ns);
	pack__array(p, slices->v, slices->n, sizeof(*slices->v));
}

int unpack__slices(struct unpack *u, const struct slices_kind *kind, struct slices *ret_slices)
{
	struct slices s = {0};
	uint64_t at = 0;
	int err;

	UNPACK(u, s.merged_ns);
	err = UNPACK_ARRAY(u, s.v, s.n, kind->max);
	s.cap = s.n;
	for (size_t i = 0; i < s.n; i++) {
		const struct pic_slice *v = &s.v[i];

		unpack__require(u, v->start_ns >= at && v->end_ns > v->start_ns &&
					   v->state < kind->states && v->stack < kind->stacks &&
					   v->exact <= 1 && !v->tid);
		at = v->end_ns;
	}
	*ret_slices = s;
	return u->bad ? -EBADMSG : err;
}

/* ── the reader's accounts ───────────────────────────────────────────────────────────────── */

void eventlog_stats__pack(const struct eventlog_stats *stats, struct pack *p)
{
	PACK(p, *stats);
}

int eventlog_stats__unpack(struct unpack *u, struct eventlog_stats *ret_stats)
{
	struct eventlog_stats s;

	UNPACK(u, s);
	unpack__flag(u, &s.header);
	unpack__flag(u, &s.ended);
	/* so that no sum of these can overflow */
	unpack__require(u, s.bytes_in < INT64_MAX && s.header_bytes <= s.bytes_in &&
				   s.event_bytes <= s.bytes_in && s.lost_bytes <= s.bytes_in &&
				   s.events <= s.bytes_in && s.blocks <= s.bytes_in);
	if (u->bad)
		return -EBADMSG;
	*ret_stats = s;
	return 0;
}
