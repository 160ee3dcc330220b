/* SPDX-License-Identifier: GPL-2.0-or-later */
/* answer: interprets a server's answer. Runs in the sender. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "otlp.pb-c.h"
#include "push_priv.h"

static bool is_type(const struct answer_body *body, const char *wanted)
{
	return body->type && !strncasecmp(body->type, wanted, strlen(wanted));
}

void answer__keep_text(struct sender_answer *a, const char *text, size_t len)
{
	snprintf(a->text, sizeof(a->text), "%.*s", (int)MIN(len, sizeof(a->text) - 1), text);
}

static void read_success(const struct answer_body *body, struct sender_answer *a)
{
	Otlp__ExportResponse *r;

	/* an empty body is an empty message, whose type some servers do not give */
	if (!body->otlp || !body->len)
		return;
	r = is_type(body, "application/x-protobuf")
		    ? otlp__export_response__unpack(NULL, body->len, body->data)
		    : NULL;
	if (!r) {
		answer__keep_text(a, "an answer that is not OTLP", SIZE_MAX);
		return;
	}
	if (r->partial_success) {
		a->rejected = MAX(r->partial_success->rejected_profiles, (int64_t)0);
		answer__keep_text(a, r->partial_success->error_message, SIZE_MAX);
	}
	otlp__export_response__free_unpacked(r, NULL);
}

/* The reason, if it is given in a known format. */
static void read_error(const struct answer_body *body, struct sender_answer *a)
{
	Otlp__Status *status = is_type(body, "application/x-protobuf")
				       ? otlp__status__unpack(NULL, body->len, body->data)
				       : NULL;

	if (status)
		answer__keep_text(a, status->message, SIZE_MAX);
	else if (is_type(body, "text/plain") || is_type(body, "application/json"))
		answer__keep_text(a, (const char *)body->data, body->len);
	if (status)
		otlp__status__free_unpacked(status, NULL);
}

void answer__read(const struct answer_body *body, struct sender_answer *a)
{
	if (a->status >= 200 && a->status < 300)
		read_success(body, a);
	else
		read_error(body, a);
}
