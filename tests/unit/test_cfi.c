/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind rows compared with libdw's results at random addresses of real files and of assembled
 * code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <cmocka.h>

#include "cfi_rule.h"
#include "unwind/cfi.h"
#include "unwind/cfi_asm_priv.h"
#include "wire.h"

#define PCS 3000
/* The input for evaluating a frame: registers far apart, and memory whose content is a function
 * of the address. */
#define RSP 0x7ffe00010000ULL
#define RBP 0x7fff00020000ULL
#define BAD UINT64_MAX

static uint64_t memory(uint64_t addr)
{
	return 0x700000000000ULL + ((addr * 0x9e3779b97f4a7c15ULL) >> 24 << 3);
}

struct file {
	const char *path;
	int fd;
	Elf *elf;
	Dwarf_CFI *cfi;
	struct elf_file *mine;
	struct cfi_rows rows;
	const struct elf_fde *fdes;
	size_t n_fdes;
};

static bool open_file(const char *path, bool c_only, struct file *f)
{
	memset(f, 0, sizeof(*f));
	f->path = path;
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return false;
	elf_version(EV_CURRENT);
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	assert_non_null(f->elf);
	f->cfi = dwarf_getcfi_elf(f->elf);
	assert_non_null(f->cfi);
	assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &f->mine), 0);
	assert_int_equal(cfi__new(f->mine, c_only, &f->rows), 0);
	assert_int_equal(elf__fdes(f->mine, &f->fdes, &f->n_fdes), 0);
	assert_true(f->n_fdes > 0);
	return true;
}

static void close_file(struct file *f)
{
	dwarf_cfi_end(f->cfi);
	elf_end(f->elf);
	close(f->fd);
	cfi_rows__free(&f->rows);
	elf__free(f->mine);
}

static uint64_t reg_value(unsigned long reg)
{
	return reg == 7 ? RSP : reg == 6 ? RBP : BAD;
}

/* An operation on two values. */
static bool combine(uint8_t atom, uint64_t *a, uint64_t b)
{
	switch (atom) {
	case DW_OP_and:
		*a &= b;
		return true;
	case DW_OP_ge:
		*a = (int64_t)*a >= (int64_t)b;
		return true;
	case DW_OP_shl:
		*a <<= b & 63;
		return true;
	case DW_OP_plus:
		*a += b;
		return true;
	default:
		return false;
	}
}

/* The value of a location expression: an address, or a value if *ret_is_value is set. BAD if it
 * uses something unsupported. */
static uint64_t evaluate(const Dwarf_Op *ops, size_t n, uint64_t pc, uint64_t cfa,
			 bool *ret_is_value)
{
	uint64_t s[16] = {0};
	size_t d = 0;

	*ret_is_value = false;
	for (size_t i = 0; i < n; i++) {
		const Dwarf_Op *op = &ops[i];

		if (d > 14)
			return BAD;
		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
			uint64_t r = op->atom - DW_OP_breg0 == 16
					     ? pc
					     : reg_value(op->atom - DW_OP_breg0);

			if (r == BAD)
				return BAD;
			s[d++] = r + op->number;
		} else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			s[d++] = op->atom - DW_OP_lit0;
		} else if (op->atom == DW_OP_bregx) {
			if (reg_value(op->number) == BAD)
				return BAD;
			s[d++] = reg_value(op->number) + op->number2;
		} else if (op->atom == DW_OP_call_frame_cfa) {
			s[d++] = cfa;
		} else if (op->atom == DW_OP_stack_value) {
			*ret_is_value = true;
		} else if (d >= 1 && op->atom == DW_OP_plus_uconst) {
			s[d - 1] += op->number;
		} else if (d >= 1 && op->atom == DW_OP_deref) {
			s[d - 1] = memory(s[d - 1]);
		} else if (d >= 2 && combine(op->atom, &s[d - 2], s[d - 1])) {
			d--;
		} else {
			return BAD;
		}
	}
	/* libdw pushes the CFA under the value of a register's expression */
	return d ? s[d - 1] : BAD;
}

struct answer {
	uint64_t cfa; /* rsp before the call; BAD */
	uint64_t ra;  /* its value; 0: undefined */
	uint64_t bp;  /* its value; BAD: not known */
};

static uint64_t libdw_reg(Dwarf_Frame *frame, int reg, uint64_t pc, uint64_t cfa, uint64_t same)
{
	Dwarf_Op mem[3], *ops;
	bool is_value;
	size_t n;
	uint64_t v;

	assert_int_equal(dwarf_frame_register(frame, reg, mem, &ops, &n), 0);
	if (n == 0)
		return ops == mem ? 0 : same; /* undefined, or unchanged */
	v = evaluate(ops, n, pc, cfa, &is_value);
	return v == BAD || is_value ? v : memory(v);
}

static bool ask_libdw(Dwarf_CFI *cfi, uint64_t pc, struct answer *ret)
{
	Dwarf_Frame *frame;
	bool is_value;
	Dwarf_Op *ops;
	uint64_t cfa;
	size_t n;

	if (dwarf_cfi_addrframe(cfi, pc, &frame))
		return false;
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	cfa = evaluate(ops, n, pc, 0, &is_value);
	ret->ra = libdw_reg(frame, 16, pc, cfa, BAD);
	ret->bp = libdw_reg(frame, 6, pc, cfa, RBP);
	ret->cfa = libdw_reg(frame, 7, pc, cfa, cfa);
	/* if the file has no rule for rsp, libdw returns the CFA or undefined */
	if (ret->cfa == 0)
		ret->cfa = cfa;
	if (cfa == BAD)
		*ret = (struct answer){BAD, BAD, BAD};
	free(frame);
	return true;
}

/* The same according to a row's rule, evaluated as in bpf/unwind.bpf.h. */
static void by_rule(uint32_t rule, uint64_t pc, struct answer *ret)
{
	uint64_t off = WIRE_CFI_OFFSET(rule), cfa = BAD, bp = WIRE_CFI_BP(rule);

	*ret = (struct answer){BAD, BAD, BAD};
	switch (WIRE_CFI_KIND(rule)) {
	case WIRE_CFI_RSP:
		cfa = RSP + off;
		break;
	case WIRE_CFI_RBP:
		cfa = RBP + off;
		break;
	case WIRE_CFI_PLT:
		cfa = RSP + 8 + ((pc & 15) >= off / 8 ? 8 : 0);
		break;
	case WIRE_CFI_RBP_DEREF:
		cfa = memory(RBP - off);
		break;
	case WIRE_CFI_RSP_DEREF:
		cfa = memory(RSP + off);
		break;
	case WIRE_CFI_RSP_DEREF8:
		cfa = memory(RSP + off) + 8;
		break;
	case WIRE_CFI_SIGNAL:
		*ret = (struct answer){memory(RSP + off + WIRE_CFI_SIGNAL_SP),
				       memory(RSP + off + WIRE_CFI_SIGNAL_IP),
				       memory(RSP + off + WIRE_CFI_SIGNAL_BP)};
		return;
	case WIRE_CFI_STGRUN:
		*ret = (struct answer){RSP + off + WIRE_CFI_STGRUN_IP + 8,
				       memory(RSP + off + WIRE_CFI_STGRUN_IP),
				       memory(RSP + off + WIRE_CFI_STGRUN_BP)};
		return;
	case WIRE_CFI_LEAF_RDI:
		*ret = (struct answer){RSP + off, BAD,
				       RBP}; /* evaluate() knows only two registers */
		return;
	case WIRE_CFI_END:
		ret->ra = 0;
		return;
	default:
		return;
	}
	ret->cfa = cfa;
	ret->ra = memory(cfa - 8);
	if (bp == 0)
		ret->bp = RBP;
	else if (bp == WIRE_CFI_BP_AT_BP)
		ret->bp = memory(RBP);
	else if (bp <= WIRE_CFI_MAX_BP)
		ret->bp = memory(cfa - 8 * bp);
}

static uint64_t random64(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void fail_at(const struct file *f, uint64_t pc, uint32_t rule, const struct answer *want,
		    const struct answer *got)
{
	print_error(
		"%s at 0x%llx: rule 0x%x gives cfa %llx ra %llx bp %llx, libdw cfa %llx ra %llx bp "
		"%llx\n",
		f->path, (unsigned long long)pc, rule, (unsigned long long)got->cfa,
		(unsigned long long)got->ra, (unsigned long long)got->bp,
		(unsigned long long)want->cfa, (unsigned long long)want->ra,
		(unsigned long long)want->bp);
	fail();
}

/* Every rule other than "none" agrees with libdw, and nearly all addresses have one. */
static void compare(const char *path)
{
	uint64_t seed = 0x5afe5c09e;
	unsigned unknown = 0;
	struct file f;

	if (!open_file(path, false, &f)) {
		print_message("no %s here\n", path);
		return;
	}
	for (unsigned i = 0; i < PCS; i++) {
		const struct elf_fde *fde = &f.fdes[random64(&seed) % f.n_fdes];
		uint64_t pc = fde->start + random64(&seed) % (fde->end - fde->start);
		uint32_t rule = cfi_rule(&f.rows, pc);
		struct answer want = {0}, got;

		if (!ask_libdw(f.cfi, pc, &want))
			fail_msg("%s: libdw knows nothing of 0x%llx", path, (unsigned long long)pc);
		by_rule(rule, pc, &got);
		assert_int_not_equal(WIRE_CFI_KIND(rule), WIRE_CFI_NONE);
		if (WIRE_CFI_KIND(rule) == WIRE_CFI_END) {
			assert_int_equal(want.ra, 0);
			continue;
		}
		if (WIRE_CFI_KIND(rule) == WIRE_CFI_UNKNOWN) {
			unknown++;
			continue;
		}
		if (got.cfa != want.cfa || got.ra != want.ra ||
		    (got.bp != BAD && got.bp != want.bp))
			fail_at(&f, pc, rule, &want, &got);
		unknown += got.bp == BAD;
	}
	print_message("%s: %zu functions, %u rows, %u of %u addresses unknown\n", path, f.n_fdes,
		      f.rows.n_rows, unknown, PCS);
	assert_true(unknown <= PCS / 50);
	close_file(&f);
}

/* The file from which this process has loaded a library's function. */
static const char *file_of(const char *library, const char *symbol, char buf[4096])
{
	void *handle = dlopen(library, RTLD_LAZY);
	void *at = handle ? dlsym(handle, symbol) : NULL;
	Dl_info info;

	snprintf(buf, 4096, "/nonexistent/%s", library);
	if (at && dladdr(at, &info) && realpath(info.dli_fname, buf))
		return buf;
	return buf;
}

static void test_libc(void **state)
{
	char buf[4096];

	(void)state;
	compare(file_of("libc.so.6", "printf", buf));
}

static void test_gmp(void **state)
{
	char buf[4096];

	(void)state;
	compare(file_of("libgmp.so.10", "__gmpn_mul", buf));
}

static void test_crypto(void **state)
{
	char buf[4096];

	(void)state;
	compare(file_of("libcrypto.so.3", "SHA256_Init", buf));
}

static void test_self(void **state)
{
	(void)state;
	compare("/proc/self/exe");
}

/* vfork() keeps its return address in a register while the child uses its stack. */
static void test_vfork(void **state)
{
	void *at = dlsym(RTLD_DEFAULT, "vfork");
	unsigned in_register = 0;
	char buf[4096];
	Dl_info info;
	struct file f;

	(void)state;
	assert_true(at && dladdr(at, &info));
	assert_true(open_file(file_of("libc.so.6", "vfork", buf), false, &f));
	for (size_t i = 0; i < f.n_fdes; i++) {
		uint64_t start = (uint64_t)at - (uint64_t)info.dli_fbase;

		for (uint64_t pc = f.fdes[i].start; start == f.fdes[i].start && pc < f.fdes[i].end;
		     pc++) {
			struct answer want = {0}, got;
			uint32_t rule = cfi_rule(&f.rows, pc);

			assert_true(ask_libdw(f.cfi, pc, &want));
			by_rule(rule, pc, &got);
			if (got.cfa != want.cfa || got.ra != want.ra)
				fail_at(&f, pc, rule, &want, &got);
			in_register += WIRE_CFI_KIND(rule) == WIRE_CFI_LEAF_RDI;
		}
	}
	assert_true(in_register > 0);
	close_file(&f);
}

static void test_outside(void **state)
{
	char buf[4096];
	struct file f;

	(void)state;
	assert_true(open_file(file_of("libc.so.6", "printf", buf), false, &f));
	assert_int_equal(cfi_rule(&f.rows, 0), WIRE_CFI_NONE);
	assert_int_equal(cfi_rule(&f.rows, f.fdes[f.n_fdes - 1].end), WIRE_CFI_NONE);
	assert_int_equal(cfi_rule(&f.rows, UINT64_MAX), WIRE_CFI_NONE);
	close_file(&f);
}

/* ── assembly ────────────────────────────────────────────────────────────────────────────── */

struct wanted {
	const struct file *f;
	unsigned same, other;
};

/* For functions that have rows, rules found by following the code must agree with the rows. */
static int on_range(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	struct wanted *w = ctx;
	uint32_t row = cfi_rule(&w->f->rows, start);

	(void)end;
	if (WIRE_CFI_KIND(row) != WIRE_CFI_RSP)
		return 0;
	/* compilers do not record that rbp has been popped */
	if (WIRE_CFI_OFFSET(row) == WIRE_CFI_OFFSET(rule) &&
	    (WIRE_CFI_BP(row) == WIRE_CFI_BP(rule) || !WIRE_CFI_BP(rule)))
		w->same++;
	else
		w->other++;
	return 0;
}

static void test_asm_agrees_with_rows(void **state)
{
	struct cfi_asm *a;
	struct wanted w = {0};
	char buf[4096];
	struct file f;
	unsigned followed = 0;

	(void)state;
	if (!open_file(file_of("libgmp.so.10", "__gmpn_mul", buf), false, &f))
		return;
	w.f = &f;
	assert_int_equal(cfi_asm__new(&a), 0);
	for (size_t i = 0; i < f.n_fdes; i++) {
		uint64_t len = f.fdes[i].end - f.fdes[i].start;
		const uint8_t *code = elf__at(f.mine, f.fdes[i].start, len);

		if (code && cfi_asm__run(a, code, len, f.fdes[i].start, on_range, &w) == 0)
			followed++;
	}
	print_message("%u of %zu functions followed: %u rows agree, %u do not\n", followed,
		      f.n_fdes, w.same, w.other);
	assert_true(followed > f.n_fdes / 3);
	assert_int_equal(w.other, 0);
	cfi_asm__free(a);
	close_file(&f);
}

struct ranges {
	unsigned n;
	uint64_t start[16];
	uint32_t rule[16];
};

static int keep(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	struct ranges *r = ctx;

	(void)end;
	if (r->n < 16) {
		r->start[r->n] = start;
		r->rule[r->n++] = rule;
	}
	return 0;
}

static int follow(const uint8_t *code, size_t len, struct ranges *r)
{
	struct cfi_asm *a;
	int err;

	memset(r, 0, sizeof(*r));
	assert_int_equal(cfi_asm__new(&a), 0);
	err = cfi_asm__run(a, code, len, 0x1000, keep, r);
	cfi_asm__free(a);
	return err;
}

#define FOLLOW(r, ...) follow((const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), r)

static void test_asm(void **state)
{
	struct ranges r;

	(void)state;
	/* push rbx; push rbp; xor ebp,ebp; pop rbp; pop rbx; ret */
	assert_int_equal(FOLLOW(&r, 0x53, 0x55, 0x31, 0xed, 0x5d, 0x5b, 0xc3), 0);
	assert_int_equal(r.n, 5);
	assert_int_equal(r.rule[0], WIRE_CFI_RSP | 1 << 4);
	assert_int_equal(r.rule[1], WIRE_CFI_RSP | 2 << 4);
	assert_int_equal(r.start[2], 0x1002);
	assert_int_equal(r.rule[2], WIRE_CFI_RSP | 3 << 4 | 3 << 20);
	assert_int_equal(r.rule[3], WIRE_CFI_RSP | 2 << 4);
	/* push rbx; jmp *rax; (unreached) pop rbx; ret */
	assert_int_equal(FOLLOW(&r, 0x53, 0xff, 0xe0, 0x5b, 0xc3), 0);
	assert_int_equal(r.rule[1], WIRE_CFI_RSP | 2 << 4);
	assert_int_equal(r.rule[2], WIRE_CFI_RSP | 1 << 4);
	/* push rbx; ret */
	assert_int_equal(FOLLOW(&r, 0x53, 0xc3), -EILSEQ);
	/* two paths of different depth to one place: je +1; push rbx; pop rbx; ret */
	assert_int_equal(FOLLOW(&r, 0x74, 0x01, 0x53, 0x5b, 0xc3), -EILSEQ);
	/* xor ebp,ebp; ret: the caller's rbp is lost */
	assert_int_equal(FOLLOW(&r, 0x31, 0xed, 0xc3), -EILSEQ);
	/* mov rsp,rax; ret */
	assert_int_equal(FOLLOW(&r, 0x48, 0x89, 0xc4, 0xc3), -EILSEQ);
	/* runs past the end: nop */
	assert_int_equal(FOLLOW(&r, 0x90), -EILSEQ);
	assert_int_equal(FOLLOW(&r, 0x06), -EILSEQ);
	assert_int_equal(follow(NULL, 0, &r), -EILSEQ);
}

/* The inner loops of gmp have no rows of their own. */
static void test_gmp_inner_loops(void **state)
{
	char buf[4096];
	struct elf_sym sym;
	struct file f;

	(void)state;
	if (!open_file(file_of("libgmp.so.10", "__gmpn_mul", buf), true, &f))
		return;
	if (elf__find_symbol(f.mine, "__gmpn_mul_basecase", &sym, NULL) == 0 &&
	    !elf__has_fde(f.mine, sym.value))
		assert_int_equal(cfi_rule(&f.rows, sym.value), WIRE_CFI_RSP | 1 << 4);
	close_file(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_gmp),
		cmocka_unit_test(test_crypto),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_vfork),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_asm_agrees_with_rows),
		cmocka_unit_test(test_asm),
		cmocka_unit_test(test_gmp_inner_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
