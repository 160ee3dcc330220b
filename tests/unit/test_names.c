/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names and classes of code, in this test's own executable and at its addresses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "names/kallsyms.h"
#include "names/names.h"
#include "names/names_priv.h"
#include "process/image.h"
#include "rts/rts.h"
#include "wire.h"

/*
 * Code without unwind rows and without a symbol of its own, and a signal handler's return address,
 * which is preceded by a nop as in glibc.
 */
__asm__(".text\n"
	".balign 16\n"
	"ud2\n"
	".Lbare: .fill 64, 1, 0x90\n"
	"ret\n"
	".balign 16\n"
	"nop\n"
	".Lreturn: mov $15, %rax\n"
	"syscall\n"
	".section .data.rel.ro\n"
	"bare_at: .quad .Lbare + 8\n"
	"return_at: .quad .Lreturn\n"
	".previous\n");
extern const uint64_t bare_at, return_at;

struct fixture {
	struct images images;
	struct rts rts;
	struct names *names;
};

static void make(struct fixture *f, bool stgrun)
{
	struct names_of of = {.pid = getpid(), .images = &f->images, .rts = &f->rts};

	memset(f, 0, sizeof(*f));
	assert_int_equal(images__refresh(&f->images, getpid()), 0);
	f->rts.image = images__exe(&f->images);
	assert_non_null(f->rts.image);
	f->rts.stgrun_ret = stgrun ? 0x1000 : 0;
	assert_int_equal(names__new(&of, &f->names), 0);
}

static void end(struct fixture *f)
{
	names__free(f->names);
	images__free(&f->images);
}

static struct code_name name(struct fixture *f, enum wire_frame_kind kind, uint64_t addr)
{
	struct code_name n;

	names__frame(f->names, (uint64_t)kind << WIRE_FRAME_KIND_SHIFT | addr, &n);
	return n;
}

/* Without rows and without a symbol the frame's kind decides. */
static void test_class_without_rows(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, true);
	assert_int_equal(name(&f, WIRE_FRAME_HS_IP, bare_at).code, CODE_HASKELL);
	assert_int_equal(name(&f, WIRE_FRAME_HS_RET, bare_at).code, CODE_HASKELL);
	assert_int_equal(name(&f, WIRE_FRAME_C_IP, bare_at).code, CODE_C);
	assert_int_equal(name(&f, WIRE_FRAME_C_RET, bare_at).code, CODE_C);
	end(&f);
	/* the kernel side did not know either */
	make(&f, false);
	assert_int_equal(name(&f, WIRE_FRAME_C_IP, bare_at).code, CODE_HASKELL);
	end(&f);
}

/* Code that has rows is C, whatever the frame's kind. */
static void test_class_with_rows(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, true);
	assert_int_equal(name(&f, WIRE_FRAME_HS_IP, (uintptr_t)test_class_with_rows + 1).code,
			 CODE_C);
	end(&f);
}

static void test_signal_return(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, true);
	assert_string_equal(name(&f, WIRE_FRAME_C_RET, return_at).name, NAMES_SIGNAL_RETURN);
	assert_int_equal(name(&f, WIRE_FRAME_C_RET, return_at).code, CODE_C);
	assert_string_not_equal(name(&f, WIRE_FRAME_C_RET, return_at + 1).name,
				NAMES_SIGNAL_RETURN);
	/* a thread may be at either of the two instructions, or in the system call */
	assert_string_equal(name(&f, WIRE_FRAME_C_IP, return_at).name, NAMES_SIGNAL_RETURN);
	assert_string_equal(name(&f, WIRE_FRAME_C_IP, return_at + 7).name, NAMES_SIGNAL_RETURN);
	assert_string_equal(name(&f, WIRE_FRAME_C_IP, return_at + 9).name, NAMES_SIGNAL_RETURN);
	assert_string_not_equal(name(&f, WIRE_FRAME_C_IP, return_at + 1).name, NAMES_SIGNAL_RETURN);
	assert_string_not_equal(name(&f, WIRE_FRAME_C_RET, return_at + 7).name,
				NAMES_SIGNAL_RETURN);
	end(&f);
}

/* While a process's info table map cannot be read, its names are not final. */
static void test_map_later(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, true);
	names_pause__begin(&f.names->ipe_pause, time__monotonic_ns(), -ETIMEDOUT);
	assert_true(name(&f, WIRE_FRAME_HS_IP, bare_at).partial);
	assert_int_equal(f.names->ipe_images, 0);
	/* until that is accepted as permanent */
	for (int n = 1; n < NAMES_PAUSE_LASTING; n++)
		names_pause__begin(&f.names->ipe_pause, time__monotonic_ns(), -ETIMEDOUT);
	assert_false(name(&f, WIRE_FRAME_HS_IP, bare_at).partial);
	end(&f);
}

/* An endless supply of names takes up bounded room, and names that were handed out stay valid. */
static void test_ever_new(void **state)
{
	const uint32_t max = 300000;
	struct code_name first, last = {0};
	char was[64] = "";
	struct fixture f;
	uint32_t most = 0;

	(void)state;
	make(&f, true);
	first = name(&f, WIRE_FRAME_HS_IP, (uintptr_t)test_ever_new + 1);
	for (uint64_t i = 1; i <= 2 * max; i++) {
		if (last.name)
			assert_string_equal(last.name, was);
		last = name(&f, WIRE_FRAME_ELIDED, i);
		snprintf(was, sizeof(was), "%s", last.name);
		most = MAX(most, strtab__count(f.names->strings));
		/* stays in use all the time */
		if (i % 1000 == 0)
			first = name(&f, WIRE_FRAME_HS_IP, (uintptr_t)test_ever_new + 1);
	}
	assert_string_equal(first.name, "test_ever_new");
	assert_in_range(most, 1, max);
	end(&f);
}

/* ── the kernel's ────────────────────────────────────────────────────────────────────────── */

#define KERNEL_OWN    (0xffffffff81000010 & WIRE_FRAME_ADDR_MASK)
#define KERNEL_MODULE (0xffffffffc0001010 & WIRE_FRAME_ADDR_MASK)

static struct names_kernel the_kernel;
static unsigned kernel_asked;

static void give_kernel(void *ctx, uint64_t addr, struct names_kernel *ret)
{
	(void)ctx;
	kernel_asked++;
	*ret = the_kernel;
	ret->early &= !kallsyms__stays(the_kernel.syms, addr);
}

static struct kallsyms *kallsyms_of(const char *text)
{
	FILE *in = fmemopen((void *)(size_t)text, strlen(text), "r");
	struct kallsyms *syms;

	assert_non_null(in);
	assert_int_equal(kallsyms__read(in, &syms), 0);
	fclose(in);
	return syms;
}

/* A module that is loaded after the names around it were looked up: the next table has it. */
static void test_module_later(void **state)
{
	struct kallsyms *first = kallsyms_of("ffffffff81000000 T own\n"
					     "ffffffff81001000 T last\n"
					     "ffffffffc0000000 t before\t[a]");
	struct kallsyms *second = kallsyms_of("ffffffff81000000 T own\n"
					      "ffffffff81001000 T last\n"
					      "ffffffffc0000000 t before\t[a]\n"
					      "ffffffffc0001000 t later\t[b]");
	struct names_of of = {.kernel = give_kernel};
	struct fixture f = {0};
	struct code_name n;

	(void)state;
	assert_int_equal(names__new(&of, &f.names), 0);
	the_kernel = (struct names_kernel){.syms = first, .no = 1, .early = true};
	n = name(&f, WIRE_FRAME_KERNEL, KERNEL_OWN);
	assert_string_equal(n.name, "own");
	assert_false(n.partial);
	n = name(&f, WIRE_FRAME_KERNEL, KERNEL_MODULE);
	assert_string_equal(n.name, "before");
	assert_true(n.partial);
	/* the same table has no more to offer */
	assert_true(name(&f, WIRE_FRAME_KERNEL, KERNEL_MODULE).partial);
	the_kernel = (struct names_kernel){.syms = second, .no = 2, .early = true};
	kallsyms__free(first);
	n = name(&f, WIRE_FRAME_KERNEL, KERNEL_MODULE);
	assert_string_equal(n.name, "later");
	assert_string_equal(n.file, "b");
	assert_false(n.partial);
	/* the kernel's symbols need not be read again */
	kernel_asked = 0;
	assert_string_equal(name(&f, WIRE_FRAME_KERNEL, KERNEL_MODULE).name, "later");
	assert_string_equal(name(&f, WIRE_FRAME_KERNEL, KERNEL_OWN).name, "own");
	assert_int_equal(kernel_asked, 0);
	kallsyms__free(second);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_class_without_rows), cmocka_unit_test(test_class_with_rows),
		cmocka_unit_test(test_signal_return),	   cmocka_unit_test(test_map_later),
		cmocka_unit_test(test_ever_new),	   cmocka_unit_test(test_module_later),
	};

	confine__run_inside();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
