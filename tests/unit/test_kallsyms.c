/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's table of functions, and which kernel frames are the probes' own. */
#include "intake/intake_priv.h"
#include "names/kallsyms.h"
#include "names/names.h"
#include "target/target_priv.h"
#include "test_timeline_kit.h"

static int read_text(const char *text, struct kallsyms **ret_syms)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int err;

	assert_non_null(in);
	err = kallsyms__read(in, ret_syms);
	fclose(in);
	return err;
}

static void test_find(void **state)
{
	static const char text[] = "ffffffff81002000 T second\n"
				   "ffffffff81001000 t first\n"
				   "ffffffff81001800 D data\n"
				   "0000000000000000 A fixed_percpu_data\n"
				   "ffffffffc0000000 t in_module\t[ext4]\n"
				   "ffffffffc0001000 W weak_one\t[ext4]\n"
				   "ffffffffc0002000 t bpf_prog_0123456789abcdef_f\t[bpf]";
	const char *module;
	struct kallsyms *s;

	(void)state;
	assert_int_equal(read_text(text, &s), 0);
	assert_string_equal(kallsyms__find(s, 0xffffffff81001000, &module), "first");
	assert_string_equal(module, "");
	assert_string_equal(kallsyms__find(s, 0xffffffff81001fff, &module), "first");
	assert_string_equal(kallsyms__find(s, 0xffffffff81002000, &module), "second");
	assert_string_equal(kallsyms__find(s, 0xffffffffc0000010, &module), "in_module");
	assert_string_equal(module, "ext4");
	assert_string_equal(kallsyms__find(s, 0xffffffffc0001010, &module), "weak_one");
	assert_string_equal(module, "ext4");
	assert_string_equal(kallsyms__find(s, 0xffffffffc0002001, &module),
			    "bpf_prog_0123456789abcdef_f");
	assert_string_equal(module, "bpf");
	assert_null(kallsyms__find(s, 0xffffffff81000fff, &module));
	assert_null(kallsyms__find(s, 0xffffffff82002000, &module));
	assert_null(kallsyms__find(s, 0, &module));
	kallsyms__free(s);
}

/* With kernel.kptr_restrict every address is 0. */
static void test_hidden(void **state)
{
	struct kallsyms *s;

	(void)state;
	assert_int_equal(read_text("0000000000000000 T first\n0000000000000000 t second\n", &s),
			 -EPERM);
}

static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"\n",
		"nonsense",
		"ffffffff81000000",
		"ffffffff81000000 ",
		"ffffffff81000000 T",
		"ffffffff81000000 T ",
		"ffffffff81000000Tx",
		"fffffffffffffffffffffffff T x\n",
	};
	const char *module;
	struct kallsyms *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(read_text(texts[i], &s), -EBADMSG);
	/* not a valid module name */
	assert_int_equal(read_text("ffffffff81000000 T x\t[\n", &s), 0);
	assert_string_equal(kallsyms__find(s, 0xffffffff81000000, &module), "x");
	kallsyms__free(s);
}

static void test_live(void **state)
{
	struct kallsyms *s;
	int err = kallsyms__open(&s);

	(void)state;
	if (err) {
		assert_true(err == -EPERM || err == -ENOENT || err == -EACCES);
		skip();
	}
	kallsyms__free(s);
}

static struct names_kernel kernel_at(struct target_cache *cache, uint64_t addr, uint64_t now_ns)
{
	struct names_kernel kernel;

	target_cache__kernel(cache, addr, now_ns, &kernel);
	return kernel;
}

static void assert_kernel(struct names_kernel kernel, uint64_t no, bool early)
{
	assert_int_equal(kernel.no, no);
	assert_int_equal(kernel.early, early);
}

/* The table is read again for modules loaded since, at most once a minute. */
static void test_read_again(void **state)
{
	/* above all of the kernel's own addresses, and below */
	const uint64_t module = 0xfffffffffffff000, own = 0xffffffff80000000;
	const uint64_t second = 1000000000, now = 1000 * second;
	struct names_kernel kernel;
	struct target_cache *cache;

	(void)state;
	kernel = kernel_at(NULL, own, now);
	assert_null(kernel.syms);
	assert_int_equal(target_cache__new(&cache), 0);
	kernel = kernel_at(cache, module, now);
	if (!kernel.syms) {
		target_cache__free(cache);
		skip();
	}
	assert_kernel(kernel, 1, false);
	assert_kernel(kernel_at(cache, module, now + 59 * second), 1, true);
	assert_kernel(kernel_at(cache, own, now + 70 * second), 1, false);
	assert_kernel(kernel_at(cache, module, now + 70 * second), 2, false);
	assert_kernel(kernel_at(cache, module, now + 71 * second), 2, true);
	target_cache__free(cache);
}

static void test_stays(void **state)
{
	struct kallsyms *s;

	(void)state;
	assert_int_equal(read_text("ffffffffc0000000 t in_module\t[ext4]\n"
				   "ffffffff81001000 T last\n"
				   "ffffffff81000000 T first\n",
				   &s),
			 0);
	assert_true(kallsyms__stays(s, 0xffffffff81000000));
	assert_true(kallsyms__stays(s, 0xffffffff81001000));
	assert_false(kallsyms__stays(s, 0xffffffff81001001));
	assert_false(kallsyms__stays(s, 0xffffffffc0000000));
	kallsyms__free(s);
}

static void test_frames(void **state)
{
	static const struct {
		const char *name;
		enum kernel_frame want;
	} names[] = {
		{"bpf_prog_0123456789abcdef_on_switch", KERNEL_OURS},
		{"bpf_prog_0123456789abcdef_on_switching", KERNEL_PLAIN},
		{"bpf_prog_0123456789abcdef_other", KERNEL_PLAIN},
		{"bpf_prog_012345", KERNEL_PLAIN},
		{"bpf_prog_0123456789abcdxf_on_switch", KERNEL_PLAIN},
		{"uprobe_notify_resume", KERNEL_OURS},
		{"asm_exc_int3", KERNEL_OURS},
		{"bpf_trace_run4", KERNEL_PROBE},
		{"__traceiter_sched_switch", KERNEL_PROBE},
		{"__schedule", KERNEL_PLAIN},
		{"do_nanosleep", KERNEL_PLAIN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(kframe__of(names[i].name), names[i].want);
}

/* ── on stacks ───────────────────────────────────────────────────────────────────────────── */

#define KERNEL(n) FR(WIRE_FRAME_KERNEL, (uint64_t)(n))

static void name_kernel(void *ctx, uint64_t frame, struct code_name *ret)
{
	static const char *const names[] = {"",
					    "__schedule",
					    "do_nanosleep",
					    "bpf_prog_0123456789abcdef_on_switch",
					    "bpf_trace_run4",
					    "helper"};

	if (frame >> WIRE_FRAME_KIND_SHIFT != WIRE_FRAME_KERNEL) {
		kit_name(ctx, frame, ret);
		return;
	}
	*ret = (struct code_name){.name = names[frame & 7],
				  .code = CODE_KERNEL,
				  .module = "",
				  .package = "",
				  .file = "kernel",
				  .src = "",
				  .source = NAME_EXACT};
}

static void test_stacks(void **state)
{
	struct namer namer = {.name = name_kernel, .site = kit_site};
	struct target_info info = {.pid = PID + 1};
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	namer.ctx = &kit;
	assert_int_equal(intake__add_target(kit.in, &info, &namer, T0, 0), 0);
	/* asleep in a safe call: the functions called by the tracepoint are not shown */
	mk_off(&r, 1, T0 + 100, T0 + 900, T0 + 1000, WIRE_WHERE_SAFE_CALL, KERNEL(5), KERNEL(3),
	       KERNEL(4), KERNEL(1), KERNEL(2), CIP(CFN(4)), FR(WIRE_FRAME_SITE, SITE(4)),
	       RET(HS(4)), STOP);
	r.h.tgid = PID + 1;
	r.off.ip = CFN(4);
	r.off.site = SITE(4);
	put(&kit, &r);
	/* on the CPU, in Haskell code with a page fault: it counts as Haskell code */
	mk_sample(&r, 1, T0 + 2000, WIRE_WHERE_HASKELL, HS(1), KERNEL(4), KERNEL(1), IP(HS(1)),
		  RET(HS(2)), STOP);
	r.h.tgid = PID + 1;
	put(&kit, &r);
	finish(&kit);
	t = picture__target(kit.pic, 1);
	lane = lane_of(t, 1);
	assert_true(lane->states_ns[ST_SAFE_CALL_BLOCKED] > 0);
	for (size_t i = 0; i < lane->n_slices; i++) {
		const char *text = stack_text(kit.pic, lane->slices[i].stack);

		if (lane->slices[i].state == ST_SAFE_CALL_BLOCKED)
			assert_string_equal(
				text, "Main.h4;c4;do_nanosleep;__schedule;[safe call, blocked]");
		if (lane->slices[i].samples) {
			assert_int_equal(lane->slices[i].state, ST_HASKELL);
			assert_string_equal(text, "Main.h2;Main.h1;__schedule;bpf_trace_run4");
		}
	}
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	   cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_damaged),	   cmocka_unit_test(test_live),
		cmocka_unit_test(test_read_again), cmocka_unit_test(test_stays),
		cmocka_unit_test(test_frames),	   cmocka_unit_test(test_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
