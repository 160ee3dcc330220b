/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows for C code without any, derived from its instructions. The reference: for libraries the rows
 * that the compiler wrote, which the derivation does not see; for single shapes this file's own
 * code, which has no rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "cfi_rule.h"
#include "unwind/cfi.h"
#include "unwind/cfi_graph_priv.h"
#include "wire.h"
#include "elf_files.h"

/* ── against the compiler's rows ─────────────────────────────────────────────────────────── */

struct compared {
	struct cfi_rows rows;
	uint64_t agree, differ, other, end;
};

/* True if the rules agree; where the caller's frame pointer has been popped, the compiler's rule
 * may still refer to its saved copy. */
static bool same_rule(uint32_t ours, uint32_t theirs)
{
	return WIRE_CFI_KIND(ours) == WIRE_CFI_KIND(theirs) &&
	       WIRE_CFI_OFFSET(ours) == WIRE_CFI_OFFSET(theirs) &&
	       (WIRE_CFI_BP(ours) == WIRE_CFI_BP(theirs) ||
		(WIRE_CFI_BP(ours) == 0 && WIRE_CFI_BP(theirs) <= WIRE_CFI_MAX_BP));
}

static int compare(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	struct compared *c = ctx;

	assert_true(start >= c->end && end > start);
	c->end = end;
	for (uint64_t at = start; at < end; at++) {
		uint32_t theirs = cfi_rule(&c->rows, at);
		enum wire_cfi kind = (enum wire_cfi)WIRE_CFI_KIND(theirs);

		if (same_rule(rule, theirs))
			c->agree++;
		else if (kind == WIRE_CFI_RSP ||
			 (kind == WIRE_CFI_RBP && WIRE_CFI_KIND(rule) == WIRE_CFI_RBP))
			c->differ++;
		else /* by another register, or code without a frame */
			c->other++;
	}
	return 0;
}

static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	if (sym->type == STT_FUNC && sym->shndx != SHN_UNDEF)
		assert_int_equal(cfi_graph__add(ctx, sym->value), 0);
	return 0;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	snprintf(path, 4096, "%s", info->dlpi_name);
	return 1;
}

static void test_library(void **state)
{
	char path[4096] = "";
	struct compared c = {0};
	struct cfi_graph *graph;
	struct elf_file *elf;

	(void)state;
	dl_iterate_phdr(find_library, path);
	elf = open_path(path);
	assert_int_equal(cfi__new(elf, true, &c.rows), 0);
	assert_int_equal(cfi_graph__new(elf, NULL, 0, 0, &graph), 0);
	assert_int_equal(elf__symbols(elf, ELF_DYNSYM, on_symbol, graph), 0);
	assert_int_equal(cfi_graph__run(graph, compare, &c), 0);
	/* of 1.3 MB of code two thirds are called by name */
	assert_true(c.agree > 500000);
	assert_true(c.differ < c.agree / 200);
	cfi_graph__free(graph);
	cfi_rows__free(&c.rows);
	elf__free(elf);
}

/* ── single shapes ───────────────────────────────────────────────────────────────────────── */

/*
 * No .cfi_ directives, hence no rows. `called` is called by C code of this file, the others by
 * `called`. `haskell` uses its Sp as Haskell code does.
 */
__asm__(".text\n"
	".balign 16\n"
	"called: push %rbx\n"
	/* enough C code that what Haskell code calls is examined too */
	".fill 300, 1, 0x90\n"
	"called_1: sub $16, %rsp\n"
	"called_2: call framed\n"
	"call table\n"
	"call nowhere\n"
	"test %eax, %eax\n"
	"jne called_3\n"
	"call dies\n"
	/* that call does not return: another function follows, known by its caller */
	"after_dies: push %rax\n"
	"after_dies_1: pop %rax\n"
	"ret\n"
	"called_3: add $16, %rsp\n"
	"pop %rbx\n"
	"called_4: ret\n"
	"framed: push %rbp\n"
	"mov %rsp, %rbp\n"
	"push %rbx\n"
	"framed_1: sub %rax, %rsp\n"
	"framed_2: call after_dies\n"
	"lea -8(%rbp), %rsp\n"
	"framed_3: pop %rbx\n"
	"leave\n"
	"framed_4: ret\n"
	"table: push %rbp\n"
	"xor %ebp, %ebp\n"
	"lea places(%rip), %rdx\n"
	"movslq (%rdx,%rdi,4), %rax\n"
	"add %rdx, %rax\n"
	"jmp *%rax\n"
	"table_1: push %rdi\n"
	"table_2: pop %rdi\n"
	"table_3: pop %rbp\n"
	"table_4: ret\n"
	/* partway through it both pointers are lost */
	"nowhere: push %rbp\n"
	"mov %rsp, %rbp\n"
	"nowhere_1: sub %rax, %rsp\n"
	"test %eax, %eax\n"
	"jne nowhere_3\n"
	"xor %ebp, %ebp\n"
	"nowhere_2: .fill 32, 1, 0x90\n"
	"hlt\n"
	"nowhere_3: leave\n"
	"nowhere_4: ret\n"
	"dies: sub $8, %rsp\n"
	"dies_1: hlt\n"
	/* calls a C function and continues as GHC's code does */
	"haskell: add $-8, %rsp\n"
	"call by_haskell\n"
	"add $8, %rsp\n"
	"haskell_1: mov 8(%rbp), %rbx\n"
	"add $16, %rbp\n"
	"jmp *(%rbp)\n"
	"by_haskell: push %r12\n"
	"by_haskell_1: pop %r12\n"
	"ret\n"
	/* C code with rows ends with a jump to it */
	"jumped_to: push %rbp\n"
	/* rbp has the address of a variable and is not a frame pointer */
	"sub $24, %rsp\n"
	"lea 12(%rsp), %rbp\n"
	"jumped_to_1: add $24, %rsp\n"
	"jumped_to_2: pop %rbp\n"
	"call bounded\n"
	"jumped_to_3: ret\n"
	/* after its two entries the table is followed by one that points into an instruction */
	"bounded: push %rbx\n"
	"cmp $1, %edi\n"
	"ja bounded_2\n"
	"lea two_places(%rip), %rdx\n"
	"movslq (%rdx,%rdi,4), %rax\n"
	"add %rdx, %rax\n"
	"jmp *%rax\n"
	"bounded_1: mov $0x9090c390, %eax\n"
	"bounded_2: pop %rbx\n"
	"ret\n"
	/* what looks like a call here leads into Haskell code */
	".byte 0xe8\n"
	".long haskell_1 - . - 4\n"
	"add $8, %rsp\n"
	".balign 16\n"
	".section .rodata\n"
	"places: .long table_1 - places\n"
	".long table_3 - places\n"
	".long 0x7fffffff\n"
	"two_places: .long bounded_1 - two_places\n"
	".long bounded_2 - two_places\n"
	".long bounded_1 + 1 - two_places\n"
	".previous\n");

#define NAMES(X)                                                                                   \
	X(called)                                                                                  \
	X(called_1)                                                                                \
	X(called_2)                                                                                \
	X(called_3)                                                                                \
	X(after_dies)                                                                              \
	X(after_dies_1)                                                                            \
	X(framed)                                                                                  \
	X(framed_1)                                                                                \
	X(framed_2)                                                                                \
	X(framed_3)                                                                                \
	X(framed_4)                                                                                \
	X(table_1)                                                                                 \
	X(table_2)                                                                                 \
	X(table_3)                                                                                 \
	X(table_4)                                                                                 \
	X(nowhere_1)                                                                               \
	X(nowhere_2)                                                                               \
	X(nowhere_3)                                                                               \
	X(nowhere_4)                                                                               \
	X(jumped_to)                                                                               \
	X(jumped_to_1)                                                                             \
	X(jumped_to_2)                                                                             \
	X(jumped_to_3)                                                                             \
	X(bounded)                                                                                 \
	X(bounded_1)                                                                               \
	X(bounded_2)                                                                               \
	X(haskell)                                                                                 \
	X(haskell_1)                                                                               \
	X(by_haskell)                                                                              \
	X(by_haskell_1)

#define DECLARE(name) extern const uint8_t name[];
NAMES(DECLARE)
extern const uint8_t __executable_start[];
void called_by_c(void);
/* Never called; only the place of its call matters. */
void called_by_c(void)
{
	__asm__ volatile("call called" ::: "memory", "rax");
}

void jumps(void);
/* Has an immediate that looks like a jump into the middle of `called`. */
void jumps(void)
{
	__asm__ volatile(".byte 0x48, 0xb8, 0x90, 0x90, 0xe9\n"
			 ".long called_3 - . - 4\n"
			 ".byte 0x90\n"
			 ".byte 0xe9\n"
			 ".long jumped_to - . - 4\n" ::
				 : "memory", "rax");
}

#define RSP(depth, slot)  (WIRE_CFI_RSP | (uint32_t)(depth) << 4 | (uint32_t)(slot) << 20)
#define RBP(offset, slot) (WIRE_CFI_RBP | (uint32_t)(offset) << 4 | (uint32_t)(slot) << 20)

static void test_shapes(void **state)
{
	const struct {
		const uint8_t *at;
		const char *name;
		uint32_t rule;
	} cases[] = {
		{called, "called", RSP(1, 0)},
		{called_1, "called_1", RSP(2, 0)},
		{called_2, "called_2", RSP(4, 0)},
		{called_3, "called_3", RSP(4, 0)},
		{after_dies, "after_dies", RSP(1, 0)},
		{after_dies_1, "after_dies_1", RSP(2, 0)},
		{framed, "framed", RSP(1, 0)},
		{framed_1, "framed_1", RSP(3, 2)},
		{framed_2, "framed_2", RBP(2, 2)},
		{framed_3, "framed_3", RSP(3, 2)},
		{framed_4, "framed_4", RSP(1, 0)},
		{table_1, "table_1", RSP(2, 2)},
		{table_2, "table_2", RSP(3, 2)},
		{table_3, "table_3", RSP(2, 2)},
		{table_4, "table_4", RSP(1, 0)},
		{nowhere_1, "nowhere_1", RSP(2, 2)},
		{nowhere_2, "nowhere_2", WIRE_CFI_NONE},
		{nowhere_3, "nowhere_3", RBP(2, 2)},
		{nowhere_4, "nowhere_4", RSP(1, 0)},
		{jumped_to, "jumped_to", RSP(1, 0)},
		{jumped_to_1, "jumped_to_1", RSP(5, 2)},
		{jumped_to_2, "jumped_to_2", RSP(2, 2)},
		{jumped_to_3, "jumped_to_3", RSP(1, 0)},
		{bounded, "bounded", RSP(1, 0)},
		{bounded_1, "bounded_1", RSP(2, 0)},
		{bounded_2, "bounded_2", RSP(2, 0)},
		{by_haskell, "by_haskell", RSP(1, 0)},
		{by_haskell_1, "by_haskell_1", RSP(2, 0)},
		/* not C: control gets here from Haskell code */
		{haskell, "haskell", WIRE_CFI_NONE},
		{haskell_1, "haskell_1", WIRE_CFI_NONE},
	};
	struct elf_file *elf = open_path("/proc/self/exe");
	struct cfi_rows rows;

	(void)state;
	assert_int_equal(cfi__new(elf, false, &rows), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t vaddr = (uint64_t)(cases[i].at - __executable_start);
		uint32_t rule = cfi_rule(&rows, vaddr);

		if (rule != cases[i].rule)
			fail_msg("%s: 0x%x, should be 0x%x", cases[i].name, rule, cases[i].rule);
	}
	cfi_rows__free(&rows);
	elf__free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_shapes),
	};

	confine__run_inside();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
