/* SPDX-License-Identifier: GPL-2.0-or-later */
/* buf: a byte buffer that grows up to a maximum and remembers its first failure. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

void buf__init(struct buf *b, size_t max)
{
	memset(b, 0, sizeof(*b));
	b->max = max;
}

void buf__free(struct buf *b)
{
	size_t max;

	if (!b)
		return;
	max = b->max;
	free(b->data);
	buf__init(b, max);
}

void buf__reset(struct buf *b)
{
	b->len = 0;
	b->err = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Makes room for `more` bytes and a NUL after the contents. */
static int buf_room(struct buf *b, size_t more)
{
	size_t max = b->max ? b->max : BUF_DEFAULT_MAX;
	void *data = b->data;
	int err;

	if (b->err)
		return b->err;
	max = MIN(max, SIZE_MAX - 1);
	if (b->len > max || more > max - b->len) {
		b->err = -E2BIG;
		return b->err;
	}
	err = array__reserve(&data, &b->cap, b->len + more + 1, max + 1, 1);
	if (err) {
		b->err = err;
		return err;
	}
	b->data = data;
	return 0;
}

int buf__add(struct buf *b, const void *data, size_t len)
{
	int err = buf_room(b, len);

	if (err)
		return err;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf__adds(struct buf *b, const char *s)
{
	return buf__add(b, s, strlen(s));
}

int buf__addc(struct buf *b, char c)
{
	return buf__add(b, &c, 1);
}

int buf__addf(struct buf *b, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	int n, err;

	if (b->err)
		return b->err;
	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->err = -EINVAL;
		return b->err;
	}
	if ((size_t)n < sizeof(small))
		return buf__add(b, small, (size_t)n);

	err = buf_room(b, (size_t)n);
	if (err)
		return err;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}
