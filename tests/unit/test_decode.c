/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding of instructions by a helper, and validation of its answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "names/decode_priv.h"
#include "site_code.h"

static struct decoder *decoder;

static int begin(void **state)
{
	(void)state;
	return decoder__new(&decoder);
}

static int end(void **state)
{
	(void)state;
	decoder__free(decoder);
	return 0;
}

static bool is_suspend(void *ctx, uint64_t target)
{
	(void)ctx;
	return target == SITE_SUSPEND;
}

static void calls(void **state)
{
	const size_t at = SITE_RET - SITE_ADDR;
	struct insn_call call;

	(void)state;
	assert_int_equal(decode__call_target(decoder, 1, site_code + at, sizeof(site_code) - at,
					     SITE_RET, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_DIRECT);
	assert_int_equal(call.target, 0x403520);
	assert_int_equal(call.at, 0x40c644);
	assert_int_equal(call.next, 0x40c649);
	assert_int_equal(
		decode__call_before(decoder, 1, site_code, 0x40c65e - SITE_ADDR, 0x40c65e, &call),
		0);
	assert_int_equal(call.target, 0x475790);
	/* an instruction that is not a call */
	assert_int_equal(
		decode__call_before(decoder, 1, site_code, 0x40c64d - SITE_ADDR, 0x40c64d, &call),
		-ENOENT);
	assert_int_equal(decode__call_before(decoder, 1, site_code, 0, 0x40c64d, &call), -ENOENT);
	/* the code ends before any call */
	assert_int_equal(decode__call_target(decoder, 1, site_code + at, 4, SITE_RET, &call),
			 -ENOENT);
}

static void sites(void **state)
{
	static const uint64_t rets[] = {SITE_RET, 0x40c649, 0x40c65e};
	uint8_t code[sizeof(site_code)];
	uint64_t site;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rets); i++) {
		site = 0;
		assert_int_equal(decode__site_back(decoder, 1, site_code, rets[i] - SITE_ADDR,
						   rets[i], is_suspend, NULL, &site),
				 0);
		assert_int_equal(site, SITE_RET);
	}
	/* not at an instruction's start; and with a ret in between */
	assert_int_equal(decode__site_back(decoder, 1, site_code, 0x40c64a - SITE_ADDR, 0x40c64a,
					   is_suspend, NULL, &site),
			 -ENOENT);
	memcpy(code, site_code, sizeof(code));
	code[22] = 0xc3;
	code[23] = code[24] = 0x90;
	assert_int_equal(decode__site_back(decoder, 1, code, 0x40c649 - SITE_ADDR, 0x40c649,
					   is_suspend, NULL, &site),
			 -ENOENT);
}

/* Answers that a helper could give to a question, valid and forged. */
static void answers(void **state)
{
	const struct decode_question before = {
		.what = DECODE_CALL_BEFORE, .len = 9, .addr = 0x1000};
	const struct decode_question target = {
		.what = DECODE_CALL_TARGET, .len = 20, .addr = 0x1000};
	const struct decode_answer good = {
		.call = {.kind = INSN_CALL_DIRECT, .target = 7, .at = 0xffb, .next = 0x1000}};
	struct decode_answer a = good;

	(void)state;
	assert_true(decode__check(&before, &a, sizeof(a)));
	assert_false(decode__check(&before, &a, sizeof(a) - 1));
	assert_false(decode__check(&before, &a, 0));
	a.err = -ENOENT;
	assert_true(decode__check(&before, &a, sizeof(a)));
	a.err = 1;
	assert_false(decode__check(&before, &a, sizeof(a)));
	a = good;
	a.call.kind = 0;
	assert_false(decode__check(&before, &a, sizeof(a)));
	a.call.kind = 4;
	assert_false(decode__check(&before, &a, sizeof(a)));
	a = good;
	a.call.next++;
	assert_false(decode__check(&before, &a, sizeof(a)));
	a = good;
	a.call.at = a.call.next;
	assert_false(decode__check(&before, &a, sizeof(a)));
	a.call.at = a.call.next - 10;
	assert_false(decode__check(&before, &a, sizeof(a)));
	/* forward: the whole call must be within the code */
	a = good;
	assert_false(decode__check(&target, &a, sizeof(a)));
	a.call.at = 0x100f;
	a.call.next = 0x1014;
	assert_true(decode__check(&target, &a, sizeof(a)));
	a.call.next++;
	assert_false(decode__check(&target, &a, sizeof(a)));
	a.call.at = 0x1014;
	a.call.next = 0x1015;
	assert_false(decode__check(&target, &a, sizeof(a)));
	a.call.at = UINT64_MAX;
	a.call.next = 1;
	assert_false(decode__check(&target, &a, sizeof(a)));
}

/* A process that is itself confined decodes without a helper, with the same result. */
static int fn_inside(void *ctx, void *out)
{
	(void)ctx;
	return decode__site_back(decoder, 1, site_code, 0x40c649 - SITE_ADDR, 0x40c649, is_suspend,
				 NULL, out);
}

static void inside(void **state)
{
	const struct confine how = {.name = "test", .user = CONFINE_NOBODY};
	void *out;

	(void)state;
	assert_int_equal(confine__aside(&how, 60000, 0, fn_inside, NULL, 8, &out), 0);
	assert_int_equal(*(uint64_t *)out, SITE_RET);
	confine__free_out(out, 8);
}

/* If a user's time is used up, the result is -EBUSY and not an answer about his code. */
static void without_time(void **state)
{
	const size_t at = SITE_RET - SITE_ADDR;
	const uid_t slow = 70003;
	struct insn_call call;
	uint64_t site;

	(void)state;
	confine__waited(slow, 1000000000000ULL, 0);
	assert_int_equal(decode__call_target(decoder, slow, site_code + at, sizeof(site_code) - at,
					     SITE_RET, &call),
			 -EBUSY);
	assert_int_equal(decode__site_back(decoder, slow, site_code, 0x40c649 - SITE_ADDR, 0x40c649,
					   is_suspend, NULL, &site),
			 -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(calls), cmocka_unit_test(sites),
					   cmocka_unit_test(answers), cmocka_unit_test(inside),
					   cmocka_unit_test(without_time)};

	return cmocka_run_group_tests(tests, begin, end);
}
