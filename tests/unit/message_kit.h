/* SPDX-License-Identifier: GPL-2.0-or-later */
/* message_kit: builds a model's message by hand and opens it for reading. Include after
 * cmocka.h. */
#ifndef SAFESCOPED_TEST_MESSAGE_KIT_H
#define SAFESCOPED_TEST_MESSAGE_KIT_H

#include <stdlib.h>

#include "eventlog/pack_priv.h"

struct message {
	struct pack p;
};

static inline struct message message_new(void)
{
	struct message m = {.p = {.size = 1 << 20}};

	m.p.data = calloc(1, m.p.size);
	assert_non_null(m.p.data);
	return m;
}

static inline struct unpack message_end(const struct message *m)
{
	assert_false(m->p.full);
	return (struct unpack){.data = m->p.data, .left = m->p.len};
}

#endif
