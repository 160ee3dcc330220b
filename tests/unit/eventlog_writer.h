/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eventlog_writer: writes eventlogs for the tests, event by event, valid or malformed. */
#ifndef SAFESCOPED_TEST_EVENTLOG_WRITER_H
#define SAFESCOPED_TEST_EVENTLOG_WRITER_H

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "eventlog/eventlog.h"

struct writer {
	uint8_t *data;
	size_t len, cap;
	size_t block; /* offset of the open block; 0: none */
};

/* The event types of GHC 9.10, by id: payload size, or 0xffff if variable. */
static const struct {
	uint16_t id, size;
} writer_types[] = {
	{0, 4},	       {1, 4},	      {2, 10},	     {3, 4},	    {4, 6},	   {8, 6},
	{9, 0},	       {10, 0},	      {11, 0},	     {12, 0},	    {15, 4},	   {16, 0xffff},
	{18, 14},      {19, 0xffff},  {20, 0},	     {21, 0},	    {22, 0},	   {25, 6},
	{26, 4},       {27, 6},	      {28, 6},	     {29, 0xffff},  {30, 0xffff},  {31, 0xffff},
	{32, 8},       {33, 8},	      {34, 56},	     {35, 0},	    {36, 0},	   {37, 0},
	{38, 0},       {39, 2},	      {40, 0},	     {41, 0},	    {42, 0xffff},  {43, 16},
	{44, 0xffff},  {45, 2},	      {46, 2},	     {47, 2},	    {48, 2},	   {49, 12},
	{50, 12},      {51, 12},      {52, 38},	     {53, 58},	    {54, 0},	   {55, 18},
	{56, 12},      {57, 8},	      {58, 0xffff},  {59, 0},	    {90, 16},	   {91, 12},
	{160, 0xffff}, {161, 0xffff}, {162, 8},	     {163, 0xffff}, {164, 0xffff}, {165, 8},
	{166, 16},     {167, 0xffff}, {168, 8},	     {169, 0xffff}, {181, 0xffff}, {200, 0},
	{201, 4},      {202, 0},      {203, 0},	     {204, 0},	    {205, 0},	   {206, 2},
	{207, 14},     {208, 8},      {210, 0xffff}, {211, 32},	    {212, 0},
};

static inline void w_bytes(struct writer *w, const void *p, size_t n)
{
	if (w->len + n > w->cap) {
		w->cap = 2 * (w->len + n) + 4096;
		w->data = realloc(w->data, w->cap);
		assert(w->data);
	}
	memcpy(w->data + w->len, p, n);
	w->len += n;
}

static inline void w_8(struct writer *w, uint8_t v)
{
	w_bytes(w, &v, 1);
}

static inline void w_16(struct writer *w, uint16_t v)
{
	v = htobe16(v);
	w_bytes(w, &v, 2);
}

static inline void w_32(struct writer *w, uint32_t v)
{
	v = htobe32(v);
	w_bytes(w, &v, 4);
}

static inline void w_64(struct writer *w, uint64_t v)
{
	v = htobe64(v);
	w_bytes(w, &v, 8);
}

static inline void w_type(struct writer *w, uint16_t id, uint16_t size)
{
	w_bytes(w, "etb\0", 4);
	w_16(w, id);
	w_16(w, size);
	w_32(w, 4);
	w_bytes(w, "name", 4);
	w_32(w, 0);
	w_bytes(w, "ete\0", 4);
}

static inline int w_size(uint16_t id)
{
	for (size_t i = 0; i < sizeof(writer_types) / sizeof(writer_types[0]); i++)
		if (writer_types[i].id == id)
			return writer_types[i].size;
	return -1;
}

static inline void w_header_begin(struct writer *w)
{
	w_bytes(w, "hdrbhetb", 8);
}

static inline void w_header_end(struct writer *w)
{
	w_bytes(w, "hetehdredatb", 12);
}

static inline void w_header(struct writer *w)
{
	w_header_begin(w);
	for (size_t i = 0; i < sizeof(writer_types) / sizeof(writer_types[0]); i++)
		w_type(w, writer_types[i].id, writer_types[i].size);
	w_header_end(w);
}

static inline void w_block(struct writer *w, uint16_t cap, uint64_t time)
{
	w->block = w->len;
	w_16(w, EL_BLOCK_MARKER);
	w_64(w, time);
	w_32(w, 0);
	w_64(w, 0);
	w_16(w, cap);
}

static inline void w_block_end(struct writer *w, uint64_t end)
{
	uint32_t size = htobe32((uint32_t)(w->len - w->block));
	uint64_t t = htobe64(end);

	memcpy(w->data + w->block + 10, &size, 4);
	memcpy(w->data + w->block + 14, &t, 8);
	w->block = 0;
}

static inline void w_end(struct writer *w)
{
	w_16(w, 0xffff);
}

/*
 * Writes one event; `fmt` has a letter for each field: b u8, h u16, w u32, l u64, s string with its
 * NUL, t text without it. The length of variable-size events is filled in.
 */
static inline void w_event(struct writer *w, uint16_t id, uint64_t time, const char *fmt, ...)
{
	bool variable = w_size(id) == 0xffff;
	size_t at;
	va_list ap;

	w_16(w, id);
	w_64(w, time);
	if (variable)
		w_16(w, 0);
	at = w->len;
	va_start(ap, fmt);
	for (; *fmt; fmt++) {
		const char *s;

		switch (*fmt) {
		case 'b':
			w_8(w, (uint8_t)va_arg(ap, int));
			break;
		case 'h':
			w_16(w, (uint16_t)va_arg(ap, int));
			break;
		case 'w':
			w_32(w, va_arg(ap, uint32_t));
			break;
		case 'l':
			w_64(w, va_arg(ap, uint64_t));
			break;
		default:
			s = va_arg(ap, const char *);
			w_bytes(w, s, strlen(s) + (*fmt == 's'));
			break;
		}
	}
	va_end(ap);
	if (variable) {
		uint16_t len = htobe16((uint16_t)(w->len - at));

		memcpy(w->data + at - 2, &len, 2);
	} else {
		assert(w_size(id) < 0 || w->len - at == (size_t)w_size(id));
	}
}

static inline void w_free(struct writer *w)
{
	free(w->data);
	*w = (struct writer){0};
}

/* Subscribes to the events of all types. */
static inline int w_subscribe_all(struct eventlog *log, eventlog_fn fn, void *ctx)
{
	uint16_t ids[EL_IDS];

	for (unsigned i = 0; i < EL_IDS; i++)
		ids[i] = (uint16_t)i;
	return eventlog__subscribe(log, ids, EL_IDS, fn, ctx);
}

static inline int w_open(const char *path, struct el_input **ret_in)
{
	int fd = el_input__open_path(path, NULL, NULL);

	return fd < 0 ? fd : el_input__take(fd, NULL, NULL, ret_in);
}

static inline int w_read_path(struct eventlog *log, const char *path)
{
	struct el_input *in;
	int err = w_open(path, &in);

	if (!err) {
		err = eventlog__read(log, in);
		el_input__free(in);
	}
	return err;
}

/* Returns an anonymous file with these bytes. */
static inline int w_file(const void *data, size_t len)
{
	int fd = memfd_create("eventlog", MFD_CLOEXEC);

	assert(fd >= 0);
	while (len) {
		ssize_t n = write(fd, data, len);

		assert(n > 0);
		data = (const char *)data + n;
		len -= (size_t)n;
	}
	return fd;
}

#endif
