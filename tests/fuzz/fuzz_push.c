/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a server's answer, and as the sender's message about it. The first three bytes
 * select the protocol, the status and the media type.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "push/push_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_answer(const struct sender_answer *a)
{
	check(a->rejected >= 0 && strnlen(a->text, sizeof(a->text)) < sizeof(a->text));
}

/* A server's answer: only the status decides whether the server has accepted the file. */
static void read_answer(const uint8_t *data, size_t size)
{
	static const char *const types[] = {NULL, "application/x-protobuf", "text/plain",
					    "application/json; charset=utf-8"};
	static const uint32_t statuses[] = {200, 204, 400, 429, 500, 503, 999, 0};
	struct sender_answer a = {.outcome = SENDER_ANSWERED, .status = statuses[data[1] % 8]};
	struct answer_body body = {
		.otlp = data[0] & 1, .type = types[data[2] % 4], .len = size - 3};
	/* it ends where the memory does, so that a read beyond it is detected */
	uint8_t *copy = malloc(body.len + !body.len);

	check(copy != NULL);
	memcpy(copy, data + 3, body.len);
	body.data = copy;
	answer__read(&body, &a);
	free(copy);
	check(a.outcome == SENDER_ANSWERED && a.status == statuses[data[1] % 8]);
	check_answer(&a);
}

/* Messages from a sender that may be compromised. */
static void take_message(const uint8_t *data, size_t size)
{
	struct sender_answer a;
	size_t n = size < sizeof(a) ? size : sizeof(a);

	memset(&a, 0xff, sizeof(a));
	memcpy(&a, data, n);
	if (!sender__check(&a, size))
		return;
	check(size == sizeof(a) && a.outcome < SENDER_OUTCOMES);
	check_answer(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 3)
		read_answer(data, size);
	take_message(data, size);
	return 0;
}
