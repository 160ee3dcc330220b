/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The finder for files without symbols: safe calls by their bytes, and the vote; and on GHC's own
 * stripped programs, compared with the symbols of their unstripped twins.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "rts/callsites.h"
#include "rts/insn.h"
#include "rts/rts_find_priv.h"
#include "rts/rts_text.h"
#include "elf_files.h"

/* ── one call, by its bytes ──────────────────────────────────────────────────────────────── */

/* Code by GHC 9.0.2; the displacements of the calls are filled in. */
static const uint8_t shape[] = {
	0x4c, 0x89, 0xef,			  /* mov %r13,%rdi */
	0x31, 0xf6,				  /* xor %esi,%esi */
	0x31, 0xc0,				  /* xor %eax,%eax */
	0xe8, 0,    0,	  0,	0,		  /* 7: call suspendThread */
	0x48, 0x83, 0xc4, 0x08,			  /* add $8,%rsp */
	0x48, 0x83, 0xec, 0x08,			  /* sub $8,%rsp */
	0x48, 0x89, 0xc3,			  /* mov %rax,%rbx */
	0x31, 0xc0,				  /* 23: xor %eax,%eax */
	0xe8, 0,    0,	  0,	0,		  /* 25: call foreign */
	0x48, 0x89, 0xdf,			  /* mov %rbx,%rdi */
	0xe8, 0,    0,	  0,	0,		  /* 33: call resumeThread */
	0x49, 0x89, 0xc5,			  /* 38: mov %rax,%r13 */
	0x49, 0x8b, 0x85, 0x68, 0x03, 0x00, 0x00, /* mov 0x368(%r13),%rax */
	0x48, 0x8b, 0x58, 0x18,			  /* 48: mov 0x18(%rax),%rbx */
	0x48, 0x8b, 0x6b, 0x10,			  /* mov 0x10(%rbx),%rbp */
};

#define SHAPE_AT 0x400000ULL
#define SUSPEND	 0x500000ULL
#define FOREIGN	 0x600000ULL
#define RESUME	 0x700000ULL

static void put_call(uint8_t *code, size_t at, uint64_t target)
{
	int32_t rel = (int32_t)(target - (SHAPE_AT + at + 5));

	memcpy(code + at + 1, &rel, sizeof(rel));
}

static void make_shape(uint8_t code[sizeof(shape)])
{
	memcpy(code, shape, sizeof(shape));
	put_call(code, 7, SUSPEND);
	put_call(code, 25, FOREIGN);
	put_call(code, 33, RESUME);
}

static int decode(const uint8_t *code, size_t len, struct insn_safe_call *ret_call)
{
	struct insn *insn;
	int err;

	assert_int_equal(insn__new(&insn), 0);
	err = insn__safe_call(insn, code, len, SHAPE_AT, ret_call);
	insn__free(insn);
	return err;
}

static void safe_call_is_recognised(void **state)
{
	uint8_t code[sizeof(shape)];
	struct insn_safe_call call;

	(void)state;
	make_shape(code);
	assert_int_equal(decode(code, sizeof(code), &call), 0);
	assert_int_equal(call.suspend, SUSPEND);
	assert_int_equal(call.resume, RESUME);
	assert_int_equal(call.site, SHAPE_AT + 12);
	assert_int_equal(call.foreign.kind, INSN_CALL_DIRECT);
	assert_int_equal(call.foreign.target, FOREIGN);
	assert_false(call.interruptible);
	assert_int_equal(call.current_tso, 0x368);
	assert_int_equal(call.stackobj, 0x18);
	assert_int_equal(call.sp, 0x10);

	for (size_t len = 0; len < sizeof(code); len++)
		assert_int_equal(decode(code, len, &call), -ENOENT);
}

static void interruptible_and_slot(void **state)
{
	static const uint8_t head[] = {0x4c, 0x89, 0xef, 0xbe, 1, 0, 0, 0}; /* mov $1,%esi */
	uint8_t code[sizeof(shape) + 8];
	struct insn_safe_call call;
	int32_t rel;

	(void)state;
	/* `xor %esi,%esi` becomes `mov $1,%esi`; the foreign call goes through a GOT slot */
	memcpy(code, head, sizeof(head));
	memcpy(code + 8, shape + 5, 20);		  /* up to the foreign call */
	memcpy(code + 28, "\xff\x15\x00\x10\x00\x00", 6); /* call *0x1000(%rip) */
	memcpy(code + 34, shape + 30, sizeof(shape) - 30);
	put_call(code, 10, SUSPEND);
	put_call(code, 37, RESUME);
	assert_int_equal(decode(code, sizeof(shape) + 4, &call), 0);
	assert_true(call.interruptible);
	assert_int_equal(call.foreign.kind, INSN_CALL_SLOT);
	assert_int_equal(call.foreign.target, SHAPE_AT + 34 + 0x1000);

	/* suspendThread's second argument is a bool: any other value is rejected */
	rel = 2;
	memcpy(code + 4, &rel, sizeof(rel));
	assert_int_equal(decode(code, sizeof(shape) + 4, &call), -ENOENT);
}

static void other_code_is_not(void **state)
{
	struct insn_safe_call call;
	uint8_t code[sizeof(shape)];

	(void)state;
	make_shape(code);
	code[2] = 0xee; /* mov %r13,%rsi */
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);

	make_shape(code);
	memcpy(code + 5, "\xeb\x00", 2); /* a jump */
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);

	make_shape(code);
	memcpy(code + 3, "\x31\xff", 2); /* xor %edi,%edi: no BaseReg, no second argument */
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);

	make_shape(code);
	put_call(code, 33, SUSPEND); /* the same function twice */
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);

	make_shape(code);
	code[38 + 2] = 0xc4; /* the result goes to %r12 */
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);

	make_shape(code);
	code[48 + 2] = 0x5b; /* mov 0x18(%rbx),%rbx: not from the TSO */
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);

	memset(code, 0x90, sizeof(code));
	assert_int_equal(decode(code, sizeof(code), &call), -ENOENT);
}

/* ── the vote ────────────────────────────────────────────────────────────────────────────── */

static void majority(void **state)
{
	(void)state;
	assert_true(callsites__clear(162, 0));
	assert_true(callsites__clear(79, 4));
	assert_true(callsites__clear(3, 0));
	assert_true(callsites__clear(8, 2));
	assert_false(callsites__clear(7, 2));
	assert_false(callsites__clear(2, 0));
	assert_false(callsites__clear(0, 0));
	assert_false(callsites__clear(100, 100));
	assert_false(callsites__clear(UINT32_MAX, UINT32_MAX));
}

/* ── GHC's programs ──────────────────────────────────────────────────────────────────────── */

static const char source[] =
	"{-# LANGUAGE InterruptibleFFI #-}\n"
	"module Main (main) where\n"
	"import Foreign.C\n"
	"foreign import ccall safe \"usleep\" c_safe :: CUInt -> IO CInt\n"
	"foreign import ccall interruptible \"usleep\" c_intr :: CUInt -> IO CInt\n"
	"foreign import ccall safe \"strtod\" c_args :: CString -> CString -> IO CDouble\n"
	"main :: IO ()\n"
	"main = do\n"
	"  _ <- c_safe 1\n"
	"  _ <- c_intr 1\n"
	"  withCString \"1.5\" (\\s -> c_args s s) >>= print\n";

static const struct {
	const char *name, *flags, *rts;
} ways[] = {
	{"v", "", "rts_v"},
	{"thr", "-threaded", "rts_thr"},
	{"p", "-prof", "rts_p"},
};

struct programs {
	char dir[64];
	bool have[ARRAY_SIZE(ways)];
};

static int make_programs(void **state)
{
	struct programs *p = calloc(1, sizeof(*p));
	char command[512], path[128];
	FILE *f;

	*state = p;
	if (!p || system("command -v ghc strip >/dev/null 2>&1") != 0)
		return p ? 0 : -1;
	snprintf(p->dir, sizeof(p->dir), "/tmp/test_callsites.XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(path, sizeof(path), "%s/T.hs", p->dir);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fputs(source, f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		/* -prof is not installed everywhere */
		snprintf(command, sizeof(command),
			 "cd %s && ghc -v0 -O %s -outputdir o_%s T.hs -o %s >/dev/null 2>&1 && "
			 "strip -o %s.stripped %s",
			 p->dir, ways[i].flags, ways[i].name, ways[i].name, ways[i].name,
			 ways[i].name);
		p->have[i] = system(command) == 0;
	}
	return 0;
}

static int remove_programs(void **state)
{
	struct programs *p = *state;
	char command[128];

	if (p->dir[0]) {
		snprintf(command, sizeof(command), "rm -rf %s", p->dir);
		assert_int_equal(system(command), 0);
	}
	free(p);
	return 0;
}

/*
 * Finds the sites in another way: every call to suspendThread, as the twin's symbol gives it, in
 * code without unwind rows. Fails unless they are the sites that the scan found.
 */
static void check_sites(const struct callsites *c, struct elf_file *twin, uint64_t suspend)
{
	struct elf_code ranges[64];
	size_t n = elf__code_ranges(twin, ranges, 64), found = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = ranges[i].end - ranges[i].start;
		const uint8_t *code = elf__at(twin, ranges[i].start, len);

		assert_non_null(code);
		for (size_t at = 0; at + 5 <= len; at++) {
			uint64_t next = ranges[i].start + at + 5;
			int32_t rel;

			memcpy(&rel, code + at + 1, sizeof(rel));
			if (code[at] != 0xe8 || next + (uint64_t)(int64_t)rel != suspend ||
			    elf__has_fde(twin, next - 5))
				continue;
			found++;
			assert_non_null(callsites__at(c, next));
			assert_null(callsites__at(c, next + 1));
		}
	}
	assert_int_equal(found, c->n);
}

static void stripped_programs(void **state)
{
	const struct programs *p = *state;
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char path[160], stripped[176];
		struct elf_file *elf, *twin;
		struct callsites c = {0};
		size_t interruptible = 0;

		if (!p->have[i])
			continue;
		any = true;
		snprintf(path, sizeof(path), "%s/%s", p->dir, ways[i].name);
		twin = open_path(path);
		snprintf(stripped, sizeof(stripped), "%s.stripped", path);
		elf = open_path(stripped);
		assert_int_equal(elf__n_symbols(elf, ELF_SYMTAB), 0);
		assert_int_equal(callsites__scan(elf, &c), 0);
		assert_int_equal(c.suspend, address(twin, "suspendThread"));
		assert_int_equal(c.resume, address(twin, "resumeThread"));
		assert_int_equal(c.runner_up, 0);
		assert_int_equal(c.votes, c.n);
		check_sites(&c, twin, c.suspend);
		for (size_t s = 0; s < c.n; s++)
			interruptible += c.sites[s].interruptible;
		assert_int_equal(interruptible, 1);
		assert_int_equal(c.offset_votes, c.n);
		assert_int_equal(c.offsets.current_tso, 0x368);
		assert_int_equal(c.offsets.stackobj, ways[i].name[0] == 'p' ? 0x28 : 0x18);
		assert_int_equal(c.offsets.sp, ways[i].name[0] == 'p' ? 0x20 : 0x10);
		callsites__free(&c);
		elf__free(elf);
		elf__free(twin);
	}
	if (!any)
		skip();
}

struct wanted {
	uint64_t vaddr;
	const char *name;
	bool seen;
};

/* Parts that the compiler split off a function count as the function: "evacuate.part.0". */
static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct wanted *w = ctx;
	size_t len = strcspn(sym->name, ".");

	w->seen |= sym->value == w->vaddr && len == strlen(w->name) &&
		   !strncmp(sym->name, w->name, len);
	return 0;
}

/*
 * Classifies the runtime's C functions without symbols: all but a few at the edges must be found,
 * and no others. Those that get a name must have that of the twin's symbol.
 */
static void check_classes(struct rts rts[2])
{
	size_t n, own = 0, missed = 0, named = 0, gc = 0;
	const struct elf_fde *fdes;
	struct rts_text *text[2];
	uint64_t at;

	assert_int_equal(elf__fdes(rts[0].image->elf, &fdes, &n), 0);
	for (size_t k = 0; k < 2; k++)
		assert_int_equal(rts_text__new(&rts[k], &text[k]), 0);
	for (size_t i = 0; i < n; i++) {
		enum rts_part by_name = rts_text__part(text[0], fdes[i].start, "");
		enum rts_part by_calls = rts_text__part(text[1], fdes[i].start, "");

		struct wanted w = {.vaddr = fdes[i].start};

		w.name = rts_text__name(text[1], w.vaddr);
		assert_null(rts_text__name(text[0], w.vaddr));
		if (w.name) {
			elf__symbols(rts[0].image->elf, ELF_SYMTAB, on_symbol, &w);
			assert_true(w.seen);
			named++;
			gc += by_calls == RTS_PART_GC;
		}
		if (by_name == RTS_PART_RTS || by_name == RTS_PART_GC) {
			own++;
			missed += by_calls != RTS_PART_RTS && by_calls != RTS_PART_GC;
		} else {
			assert_int_equal(by_calls, by_name);
		}
	}
	assert_true(own > 300);
	assert_true(missed * 50 <= own);
	assert_true(rts_text__is_cmm(text[1], address(rts[0].image->elf, "stg_upd_frame_info")));
	assert_true(rts_text__is_cmm(text[1], address(rts[0].image->elf, "stg_ap_p_fast")));
	assert_false(
		rts_text__is_cmm(text[1], address(rts[0].image->elf, "base_GHCziBase_map_info")));
	assert_false(rts_text__is_cmm(text[1], address(rts[0].image->elf, "suspendThread")));
	assert_true(named > 70);
	assert_true(gc > 5);
	/* a label within StgRun */
	at = address(rts[0].image->elf, "StgReturn");
	assert_string_equal(rts_text__name(text[1], at), "StgReturn");
	assert_string_equal(rts_text__name(text[1], at - 1), "StgRun");
	for (size_t k = 0; k < 2; k++)
		rts_text__free(text[k]);
}

/* Everything that the finder learns of a file, compared without and with symbols. */
static void same_with_and_without_symbols(void **state)
{
	const struct programs *p = *state;
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct image image[2];
		struct rts rts[2];

		if (!p->have[i])
			continue;
		any = true;
		for (size_t k = 0; k < 2; k++) {
			char path[160];

			snprintf(path, sizeof(path), "%s/%s%s", p->dir, ways[i].name,
				 k ? ".stripped" : "");
			image[k] =
				(struct image){.elf = open_path(path), .base = "T", .is_exe = true};
			memset(&rts[k], 0, sizeof(rts[k]));
			rts[k].image = &image[k];
			assert_true(rts_strings__read(image[k].elf, "T", &rts[k]));
			rts_symbols__find(&rts[k]);
			rts_callsites__find(&rts[k]);
			rts_stgrun__find(&rts[k]);
			rts_tick__find(&rts[k]);
		}
		assert_string_equal(rts[0].way, ways[i].rts);
		assert_string_equal(rts[1].way, ways[i].rts);
		assert_string_equal(rts[0].version, rts[1].version);
		assert_int_equal(rts[0].suspend.found, FOUND_SYMTAB);
		assert_int_equal(rts[1].suspend.found, FOUND_CALLSITES);
		assert_int_equal(rts[0].suspend.addr, rts[1].suspend.addr);
		assert_int_equal(rts[0].resume.addr, rts[1].resume.addr);
		assert_int_equal(rts[0].stgrun.addr, rts[1].stgrun.addr);
		assert_true(rts[0].stgrun_ret != 0);
		assert_int_equal(rts[0].stgrun_ret, rts[1].stgrun_ret);
		/* the threaded runtime has a thread for its timer */
		if (!rts[0].threaded)
			assert_int_equal(rts[0].tick.addr, rts[1].tick.addr);
		check_classes(rts);
		for (size_t k = 0; k < 2; k++) {
			rts__free(&rts[k]);
			elf__free(image[k].elf);
		}
	}
	if (!any)
		skip();
}

/*
 * Debian's pandoc has suspendThread in .dynsym, so that the vote can be checked against it. Its
 * linker put the version's string elsewhere than others do.
 */
static void pandoc(void **state)
{
	static const char path[] = "/usr/bin/pandoc";
	struct image image = {.base = "pandoc", .is_exe = true};
	struct callsites c = {0};
	struct rts rts = {.image = &image};
	struct elf_sym sym = {0};

	(void)state;
	if (access(path, R_OK) != 0)
		skip();
	image.elf = open_path(path);
	if (elf__n_symbols(image.elf, ELF_SYMTAB) > 0 ||
	    elf__find_symbol(image.elf, "suspendThread", &sym, NULL) != 0) {
		elf__free(image.elf);
		skip(); /* another version of Debian */
	}
	assert_int_equal(callsites__scan(image.elf, &c), 0);
	assert_int_equal(c.suspend, sym.value);
	assert_int_equal(c.resume, address(image.elf, "resumeThread"));
	assert_true(c.votes > 100);
	assert_int_equal(c.runner_up, 0);
	callsites__free(&c);
	assert_true(rts_strings__read(image.elf, "pandoc", &rts));
	assert_string_equal(rts.way, "rts_thr");
	assert_int_equal(strncmp(rts.version, "9.", 2), 0);
	elf__free(image.elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(safe_call_is_recognised),
		cmocka_unit_test(interruptible_and_slot),
		cmocka_unit_test(other_code_is_not),
		cmocka_unit_test(majority),
		cmocka_unit_test(stripped_programs),
		cmocka_unit_test(same_with_and_without_symbols),
		cmocka_unit_test(pandoc),
	};

	return cmocka_run_group_tests(tests, make_programs, remove_programs);
}
