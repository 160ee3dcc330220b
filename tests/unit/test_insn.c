/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe offsets and calls, on code emitted by gcc and GHC 9.0.2, and on random bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "rts/insn.h"
#include "site_code.h"

#define ADDR 0x475670

static int new_insn(void **state)
{
	struct insn *insn = NULL;

	if (insn__new(&insn))
		return -1;
	*state = insn;
	return 0;
}

static int free_insn(void **state)
{
	insn__free(*state);
	insn__free(NULL);
	return 0;
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static const struct probe_case {
	const char *what;
	const uint8_t *code;
	size_t len;
	size_t offset;
	bool emulated;
	uint32_t stack;
	bool args_intact;
	const char *text;
} probe_cases[] = {
	{"suspendThread of 9.0.2", BYTES(0x41, 0x57, 0x41, 0x56, 0x41, 0x55), 0, true, 0, true,
	 "push %r15"},
	{"handle_tick of 9.0.2: sub $8,%rsp; call",
	 BYTES(0x48, 0x83, 0xec, 0x08, 0xe8, 0x27, 0x07, 0x02, 0x00, 0xc3), 4, true, 8, true,
	 "call 0x495da0"},
	{"endbr64; push %rbx", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0xc3), 4, true, 0, true,
	 "push %rbx"},
	{"endbr64; ret", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0xc3), 0, false, 0, true, "endbr64"},
	{"mov %rdi,%rbx; sub; push: arguments kept",
	 BYTES(0x48, 0x89, 0xfb, 0x48, 0x81, 0xec, 0x00, 0x01, 0x00, 0x00, 0x50), 10, true, 256,
	 true, "push %rax"},
	{"xor %edi,%edi; push: arguments lost", BYTES(0x31, 0xff, 0x55, 0xc3), 2, true, 0, false,
	 "push %rbp"},
	{"nop", BYTES(0x90, 0xc3), 0, true, 0, true, "nop"},
	{"ret", BYTES(0xc3), 0, false, 0, true, "ret"},
	{"nopl 0(%rax): stepped by older kernels", BYTES(0x0f, 0x1f, 0x40, 0x00, 0xc3), 0, false, 0,
	 true, "nopl (%rax)"},
	{"nopl; push", BYTES(0x0f, 0x1f, 0x40, 0x00, 0x55, 0xc3), 4, true, 0, true, "push %rbp"},
	{"pause is no nop", BYTES(0xf3, 0x90, 0xc3), 0, false, 0, true, "pause"},
	{"pushw does not count", BYTES(0x66, 0x50, 0xc3), 0, false, 0, true, "pushw %ax"},
	{"rex.w push: two bytes, but no REX.B", BYTES(0x48, 0x50, 0xc3), 0, false, 0, true,
	 "push %rax"},
	{"bnd jmp: a prefix", BYTES(0xf2, 0xe9, 0, 0, 0, 0), 0, false, 0, true, NULL},
	{"test; je near", BYTES(0x85, 0xff, 0x0f, 0x84, 0x10, 0, 0, 0), 2, true, 0, true,
	 "je 0x475688"},
	{"test; jne short", BYTES(0x85, 0xff, 0x75, 0x10), 2, true, 0, true, "jne 0x475684"},
	{"jmp *%rax; push: never reached", BYTES(0xff, 0xe0, 0x55), 0, false, 0, true, "jmp *%rax"},
	{"call *%rax; push: far too late", BYTES(0xff, 0xd0, 0x55), 0, false, 0, true,
	 "call *%rax"},
	{"and $-16,%rsp: depth not known", BYTES(0x48, 0x83, 0xe4, 0xf0, 0x55), 0, false, 0, true,
	 NULL},
	{"pop of what was not pushed", BYTES(0x5b, 0x55), 0, false, 0, true, "pop %rbx"},
	{"mov; L: push; jmp L: the push runs in a loop", BYTES(0x89, 0xfb, 0x50, 0xeb, 0xfd), 0,
	 false, 0, true, NULL},
	{"a bad byte after a mov", BYTES(0x89, 0xfb, 0x06, 0x50), 0, false, 0, true, NULL},
};

static void probe_places(void **state)
{
	struct insn_choice choice;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(probe_cases); i++) {
		const struct probe_case *c = &probe_cases[i];

		print_message("%s\n", c->what);
		memset(&choice, 0xee, sizeof(choice));
		assert_int_equal(insn__choose_probe(*state, c->code, c->len, ADDR, &choice), 0);
		assert_int_equal(choice.offset, c->offset);
		assert_int_equal(choice.emulated, c->emulated);
		assert_int_equal(choice.stack, c->stack);
		assert_int_equal(choice.args_intact, c->args_intact);
		if (c->text)
			assert_string_equal(choice.text, c->text);
	}
	assert_int_equal(insn__choose_probe(*state, probe_cases[0].code, 0, ADDR, &choice),
			 -EILSEQ);
	assert_int_equal(insn__choose_probe(*state, BYTES(0x06), ADDR, &choice), -EILSEQ);
}

static void probe_window_ends(void **state)
{
	uint8_t code[128];
	struct insn_choice choice;
	size_t i;

	for (i = 0; i + 2 <= sizeof(code); i += 2)
		memcpy(code + i, "\x89\xfb", 2); /* mov %edi,%ebx */
	code[62] = 0x55;
	assert_int_equal(insn__choose_probe(*state, code, sizeof(code), ADDR, &choice), 0);
	assert_true(choice.emulated);
	assert_int_equal(choice.offset, 62);
	memcpy(code + 62, "\x89\xfb\x55", 3);
	assert_int_equal(insn__choose_probe(*state, code, sizeof(code), ADDR, &choice), 0);
	assert_false(choice.emulated);
	assert_int_equal(choice.offset, 0);
}

static void next_call(void **state)
{
	struct insn_call call;

	/* mov %rbx,%rdi; xor %eax,%eax; call rel32 */
	assert_int_equal(insn__call_target(*state,
					   BYTES(0x48, 0x89, 0xdf, 0x31, 0xc0, 0xe8, 0x10, 0, 0, 0),
					   0x1000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_DIRECT);
	assert_int_equal(call.at, 0x1005);
	assert_int_equal(call.next, 0x100a);
	assert_int_equal(call.target, 0x101a);
	/* addr32 call: what a linker makes of call *slot(%rip) */
	assert_int_equal(
		insn__call_target(*state, BYTES(0x67, 0xe8, 0xfa, 0xff, 0xff, 0xff), 0x1000, &call),
		0);
	assert_int_equal(call.kind, INSN_CALL_DIRECT);
	assert_int_equal(call.target, 0x1000);
	/* call *0x20(%rip) */
	assert_int_equal(insn__call_target(*state, BYTES(0xff, 0x15, 0x20, 0, 0, 0), 0x1000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_SLOT);
	assert_int_equal(call.target, 0x1026);
	/* call *0x12345678 */
	assert_int_equal(insn__call_target(*state, BYTES(0xff, 0x14, 0x25, 0x78, 0x56, 0x34, 0x12),
					   0x1000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_SLOT);
	assert_int_equal(call.target, 0x12345678);
	/* call *%rbx; call *8(%rax); call *%fs:0x10 */
	assert_int_equal(insn__call_target(*state, BYTES(0xff, 0xd3), 0x1000, &call), 0);
	assert_int_equal(call.kind, INSN_CALL_REGISTER);
	assert_int_equal(call.target, 0);
	assert_int_equal(insn__call_target(*state, BYTES(0xff, 0x50, 0x08), 0x1000, &call), 0);
	assert_int_equal(call.kind, INSN_CALL_REGISTER);
	assert_int_equal(insn__call_target(*state, BYTES(0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0),
					   0x1000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_REGISTER);

	/* ret, jmp, je, a bad byte, half an instruction, the end */
	assert_int_equal(insn__call_target(*state, BYTES(0xc3, 0xff, 0xd3), 0x1000, &call),
			 -ENOENT);
	assert_int_equal(insn__call_target(*state, BYTES(0xeb, 0x00, 0xff, 0xd3), 0x1000, &call),
			 -ENOENT);
	assert_int_equal(insn__call_target(*state, BYTES(0x74, 0x00, 0xff, 0xd3), 0x1000, &call),
			 -ENOENT);
	assert_int_equal(insn__call_target(*state, BYTES(0x06, 0xff, 0xd3), 0x1000, &call),
			 -ENOENT);
	assert_int_equal(insn__call_target(*state, BYTES(0xe8, 0, 0, 0), 0x1000, &call), -ENOENT);
	assert_int_equal(insn__call_target(*state, BYTES(0x90), 0x1000, &call), -ENOENT);
}

static void call_before(void **state)
{
	struct insn_call call;

	assert_int_equal(insn__find_call_before(*state,
						BYTES(0x31, 0xc0, 0x90, 0xe8, 0x10, 0, 0, 0),
						0x2000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_DIRECT);
	assert_int_equal(call.target, 0x2010);
	assert_int_equal(call.at, 0x1ffb);
	assert_int_equal(call.next, 0x2000);
	assert_int_equal(insn__find_call_before(*state,
						BYTES(0x90, 0x90, 0xff, 0x15, 0x20, 0, 0, 0),
						0x2000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_SLOT);
	assert_int_equal(call.target, 0x2020);
	assert_int_equal(
		insn__find_call_before(*state, BYTES(0x90, 0x41, 0xff, 0xd4), 0x2000, &call), 0);
	assert_int_equal(call.kind, INSN_CALL_REGISTER);
	assert_int_equal(insn__find_call_before(*state, BYTES(0xff, 0x94, 0x24, 0x00, 0x01, 0, 0),
						0x2000, &call),
			 0);
	assert_int_equal(call.kind, INSN_CALL_REGISTER);
	assert_int_equal(call.at, 0x1ff9);
	/* jmp rel32, push, nothing */
	assert_int_equal(insn__find_call_before(*state, BYTES(0xe9, 0x10, 0, 0, 0), 0x2000, &call),
			 -ENOENT);
	assert_int_equal(insn__find_call_before(*state, BYTES(0x55), 0x2000, &call), -ENOENT);
	assert_int_equal(insn__find_call_before(*state, NULL, 0, 0x2000, &call), -ENOENT);
	assert_int_equal(insn__find_call_before(*state, BYTES(0xe8, 0, 0, 0, 0), 2, &call),
			 -ENOENT);
}

static bool is_suspend(void *ctx, uint64_t target)
{
	(*(size_t *)ctx)++;
	return target == SITE_SUSPEND;
}

/* Finds the site by both steps. */
static int site_back(struct insn *insn, const uint8_t *code, size_t len, uint64_t ret_addr,
		     bool (*accepts)(void *ctx, uint64_t target), void *ctx, uint64_t *ret_site)
{
	size_t back = 0;
	uint64_t site;

	while ((back = insn__site_candidate(code, len, ret_addr, back, accepts, ctx, &site))) {
		size_t after = (size_t)(ret_addr - site);

		if (!insn__is_straight(insn, code + len - after, after, site))
			continue;
		*ret_site = site;
		return 0;
	}
	return -ENOENT;
}

static void site_from_each_return_address(void **state)
{
	static const uint64_t rets[] = {SITE_RET, 0x40c649, 0x40c65e};
	struct insn_call call;
	uint64_t site;
	size_t i, asked = 0;

	for (i = 0; i < ARRAY_SIZE(rets); i++) {
		site = 0;
		assert_int_equal(site_back(*state, site_code, rets[i] - SITE_ADDR, rets[i],
					   is_suspend, &asked, &site),
				 0);
		assert_int_equal(site, SITE_RET);
	}
	assert_true(asked >= 3);
	/* and forward again: the foreign function, then resumeThread */
	i = SITE_RET - SITE_ADDR;
	assert_int_equal(
		insn__call_target(*state, site_code + i, sizeof(site_code) - i, SITE_RET, &call),
		0);
	assert_int_equal(call.target, 0x403520);
	assert_int_equal(call.next, 0x40c649);
	i = call.next - SITE_ADDR;
	assert_int_equal(
		insn__call_target(*state, site_code + i, sizeof(site_code) - i, call.next, &call),
		0);
	assert_int_equal(call.target, 0x475790);
	assert_int_equal(call.next, 0x40c65e);
}

static void no_site(void **state)
{
	uint8_t far[INSN_SITE_WINDOW + 64], code[sizeof(site_code)];
	size_t asked = 0;
	uint64_t site = 7;

	/* one byte off an instruction's start: forward decoding does not reach it */
	assert_int_equal(site_back(*state, site_code, 0x40c64a - SITE_ADDR, 0x40c64a, is_suspend,
				   &asked, &site),
			 -ENOENT);
	/* the call is not in the bytes */
	assert_int_equal(site_back(*state, site_code + 9, 0x40c649 - SITE_RET, 0x40c649, is_suspend,
				   &asked, &site),
			 -ENOENT);
	/* a ret in between */
	memcpy(code, site_code, sizeof(code));
	code[22] = 0xc3;
	code[23] = 0x90;
	code[24] = 0x90;
	assert_int_equal(
		site_back(*state, code, 0x40c649 - SITE_ADDR, 0x40c649, is_suspend, &asked, &site),
		-ENOENT);
	/* too far back */
	memset(far, 0x90, sizeof(far));
	memcpy(far, site_code + 4, 5);
	assert_int_equal(site_back(*state, far, 5 + 200, SITE_RET + 200, is_suspend, &asked, &site),
			 0);
	assert_int_equal(site, SITE_RET);
	site = 7;
	assert_int_equal(site_back(*state, far, 5 + 300, SITE_RET + 300, is_suspend, &asked, &site),
			 -ENOENT);
	assert_int_equal(site, 7);
}

/* Random bytes, in blocks of exactly their size for the sanitizer. */
static void bytes_at_random(void **state)
{
	uint32_t seed = 0x1badb002;
	size_t round, i, asked = 0;

	for (round = 0; round < 3000; round++) {
		struct insn_choice choice;
		struct insn_call call;
		uint64_t site;
		uint8_t *code;
		size_t len;

		seed = seed * 1664525 + 1013904223;
		len = 1 + (seed >> 24);
		code = malloc(len);
		assert_non_null(code);
		for (i = 0; i < len; i++) {
			seed = seed * 1664525 + 1013904223;
			code[i] = (uint8_t)(seed >> 24);
		}
		if (insn__choose_probe(*state, code, len, round, &choice) == 0) {
			assert_true(choice.offset < len);
			assert_true(choice.offset < INSN_PROBE_WINDOW);
			assert_true(strlen(choice.text) > 0);
			assert_true(choice.emulated || choice.offset == 0);
		}
		if (insn__call_target(*state, code, len, round, &call) == 0)
			assert_true(call.next > call.at && call.next <= round + len);
		if (insn__find_call_before(*state, code, len, UINT64_MAX, &call) == 0) {
			assert_int_equal(call.next, UINT64_MAX);
			insn__set_before(*state, code, len - (size_t)(UINT64_MAX - call.at), &call);
		}
		site_back(*state, code, len, round, is_suspend, &asked, &site);
		free(code);
	}
	assert_true(asked > 0);
}

/* A function's address in a callee-saved register: GHC 9.0.2 without optimisation. */
static const uint8_t by_register[] = {
	0xb8, 0x80, 0x36, 0x40, 0x00, 0x48, 0xc7, 0x45, 0x08, 0x60, 0xd0, 0x40, 0x00, 0x48,
	0x83, 0xc5, 0x08, 0x49, 0x8b, 0x9d, 0x68, 0x03, 0x00, 0x00, 0x48, 0x8b, 0x4b, 0x18,
	0x48, 0x83, 0xec, 0x08, 0x4c, 0x89, 0xef, 0x31, 0xf6, 0x48, 0x89, 0xc3, 0x31, 0xc0,
	0xe8, 0x45, 0x0a, 0x08, 0x00, 0x48, 0x83, 0xc4, 0x08, 0x48, 0x83, 0xec, 0x08, 0x48,
	0x89, 0xc1, 0xb8, 0x02, 0x00, 0x00, 0x00, 0x49, 0x89, 0xce};

struct set_case {
	const uint8_t *code;
	size_t len;
	const uint8_t *call;
	size_t call_len;
	int err;
	enum insn_call_kind kind;
	uint64_t target;
};

/* The code is at ADDR, followed by the call. */
static void set_before(void **state)
{
	const struct set_case cases[] = {
		/* call *%rbx, whose value came through %eax */
		{by_register, sizeof(by_register), BYTES(0xff, 0xd3), 0, INSN_CALL_DIRECT,
		 0x403680},
		/* unknown without the first instruction */
		{by_register + 5, sizeof(by_register) - 5, BYTES(0xff, 0xd3), -ENOENT, 0, 0},
		/* call *%rdi, which suspendThread has clobbered */
		{by_register, sizeof(by_register), BYTES(0xff, 0xd7), -ENOENT, 0, 0},
		/* lea 0x10(%rip),%r12; call *%r12 */
		{BYTES(0x4c, 0x8d, 0x25, 0x10, 0, 0, 0), BYTES(0x41, 0xff, 0xd4), 0,
		 INSN_CALL_DIRECT, ADDR + 7 + 0x10},
		/* mov 0x20(%rip),%rbx; call: the pointer is in memory */
		{BYTES(0x48, 0x8b, 0x1d, 0x20, 0, 0, 0, 0xe8, 1, 0, 0, 0), BYTES(0xff, 0xd3), 0,
		 INSN_CALL_SLOT, ADDR + 7 + 0x20},
		/* mov $0x403680,%ebx; jmp: control comes here from elsewhere */
		{BYTES(0xbb, 0x80, 0x36, 0x40, 0, 0xeb, 0), BYTES(0xff, 0xd3), -ENOENT, 0, 0},
		/* mov $0x403680,%ebx; add $8,%rbx */
		{BYTES(0xbb, 0x80, 0x36, 0x40, 0, 0x48, 0x83, 0xc3, 8), BYTES(0xff, 0xd3), -ENOENT,
		 0, 0},
		/* call *8(%rbx) */
		{BYTES(0xbb, 0x80, 0x36, 0x40, 0), BYTES(0xff, 0x53, 8), -ENOENT, 0, 0},
		{BYTES(0), BYTES(0xff, 0xd3), -ENOENT, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct set_case *c = &cases[i];
		struct insn_call call;
		uint64_t ret_addr = ADDR + c->len + c->call_len;

		assert_int_equal(
			insn__find_call_before(*state, c->call, c->call_len, ret_addr, &call), 0);
		assert_int_equal(call.kind, INSN_CALL_REGISTER);
		assert_int_equal(call.at, ADDR + c->len);
		assert_int_equal(insn__set_before(*state, c->code, c->len, &call), c->err);
		if (!c->err) {
			assert_int_equal(call.kind, c->kind);
			assert_int_equal(call.target, c->target);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_places), cmocka_unit_test(probe_window_ends),
		cmocka_unit_test(next_call),	cmocka_unit_test(call_before),
		cmocka_unit_test(set_before),	cmocka_unit_test(site_from_each_return_address),
		cmocka_unit_test(no_site),	cmocka_unit_test(bytes_at_random),
	};

	return cmocka_run_group_tests(tests, new_insn, free_insn);
}
