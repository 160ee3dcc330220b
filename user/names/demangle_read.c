/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle_read: demangles one symbol with GNU libiberty, which bounds its recursion and nothing
 * else. */
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "demangle_priv.h"

struct text {
	char *buf; /* as much as fits */
	size_t size, len;
	size_t total;
	jmp_buf too_long;
};

static void add(const char *part, size_t len, void *ctx)
{
	struct text *t = ctx;
	size_t room = t->size - 1 - t->len, n = len < room ? len : room;

	/* `part` may be NULL if the length is 0 */
	if (n)
		memcpy(t->buf + t->len, part, n);
	t->len += n;
	t->total += len;
	/* the only way to stop libiberty, which holds no memory here */
	if (t->total > DEMANGLE_MAX_TEXT)
		longjmp(t->too_long, 1);
}

int demangle_here(const char *name, char *buf, size_t size)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	struct text t = {.buf = buf, .size = size};

	if (setjmp(t.too_long))
		return -E2BIG;
	/* legacy Rust symbols first: they are C++ symbols with a hash */
	if (!rust_demangle_callback(name, options, add, &t)) {
		t.len = t.total = 0;
		if (!cplus_demangle_v3_callback(name, options, add, &t))
			return -ENOENT;
	}
	buf[t.len] = '\0';
	return 0;
}
