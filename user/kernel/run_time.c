/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_time: what the programs cost, by the kernel's own account of their run time. Keeping that
 * account doubles the cost of a context switch of a process that is not a target (the clock is read
 * twice for each program that runs), so it is kept for a tenth of the time, and scaled.
 */
#include <stdlib.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "sampled_sum_priv.h"
#include "safescope.skel.h"

/* The account is kept for the first PART of each WHOLE, … */
#define WHOLE_NS 1000000000ULL
#define PART_NS	 100000000ULL
/* (for less of the time in sparse sessions, which are long, to switch it on and off less often) */
#define SPARSE_WHOLE_NS 5000000000ULL
#define SPARSE_PART_NS	250000000ULL
/* … and for longer at the start, since a short session has little else. */
#define AT_FIRST_NS 500000000ULL

#define ASK_AGAIN_NS 10000000000ULL

struct run_time {
	struct bpf_object *object;
	struct keeper *keeper;
	bool kept;   /* at present, for certain */
	bool wanted; /* what the keeper was last asked for */
	bool failed; /* it cannot be kept (CAP_SYS_ADMIN, kernel/bpf/syscall.c, bpf_enable_stats())
		      */
	uint64_t asked; /* the keeper's number of the last request; 0: it is done, and was seen to
			   be */
	uint64_t whole_ns, part_ns;
	uint64_t next_ns;  /* when the part ends, or, where the account is not kept, the next one
			      begins */
	uint64_t since_ns; /* when the part began */
	bool first_over;   /* the first part, in which much is set up, has ended */
	struct sampled_sum sum;
};

static bool read_one(struct bpf_program *prog, uint64_t *ret_ns, uint64_t *ret_runs)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return false;
	*ret_ns = info.run_time_ns;
	*ret_runs = info.run_cnt;
	return true;
}

static uint64_t read_all(const struct run_time *r)
{
	struct bpf_program *prog;
	uint64_t sum = 0, ns, runs;

	bpf_object__for_each_program(prog, r->object) if (read_one(prog, &ns, &runs)) sum += ns;
	return sum;
}

/* The account is kept from here on. */
static void begin(struct run_time *r, uint64_t now)
{
	r->next_ns = now + (r->first_over ? r->part_ns : AT_FIRST_NS);
	r->kept = true;
	r->since_ns = now;
	sampled_sum__begin(&r->sum, time__monotonic_ns(), read_all(r));
}

static void end(struct run_time *r)
{
	r->next_ns = r->since_ns + r->whole_ns;
	r->kept = false;
	sampled_sum__end(&r->sum, time__monotonic_ns(), read_all(r));
}

/* A part of the usual length follows at once: nothing like the first one comes again, so it must
 * not stand for the time up to the next. */
static void end_first(struct run_time *r, uint64_t now)
{
	end(r);
	r->first_over = true;
	begin(r, now);
}

/* Does not wait for the keeper, which may be busy. False: it takes no messages at the moment and
 * will be asked again; an account kept on until then only costs time. */
static bool ask(struct run_time *r, bool wanted, uint64_t now)
{
	int err = keeper__account(r->keeper, wanted, &r->asked);

	r->failed = err && err != -ETIMEDOUT;
	if (err) {
		r->next_ns = now + ASK_AGAIN_NS;
		return false;
	}
	r->wanted = wanted;
	return true;
}

int run_time__new(struct bpf_object *object, struct keeper *keeper, bool sparse,
		  struct run_time **ret_run_time)
{
	struct run_time *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->object = object;
	r->keeper = keeper;
	r->whole_ns = sparse ? SPARSE_WHOLE_NS : WHOLE_NS;
	r->part_ns = sparse ? SPARSE_PART_NS : PART_NS;
	/* the keeper has nothing else to do yet, and the loop starts late */
	if (ask(r, true, time__monotonic_ns()) && keeper__await(r->keeper, r->asked))
		run_time__turn(r, time__monotonic_ns());
	*ret_run_time = r;
	return 0;
}

void run_time__free(struct run_time *r)
{
	free(r);
}

void run_time__turn(struct run_time *r, uint64_t now)
{
	bool wanted;

	if (r->failed || (r->asked && !keeper__is_done(r->keeper, r->asked)))
		return;
	if (r->asked && r->wanted) {
		r->failed = !keeper__accounts(r->keeper);
		if (r->failed)
			return;
		begin(r, now);
	}
	r->asked = 0;
	if (now < r->next_ns)
		return;
	if (r->kept && !r->first_over) {
		end_first(r, now);
		return;
	}
	wanted = !r->kept;
	if (ask(r, wanted, now) && !wanted)
		end(r);
}

bool run_time__sum(const struct run_time *r, uint64_t at_ns, uint64_t *ret_ns)
{
	uint64_t value = r->kept ? read_all(r) : 0;

	return sampled_sum__at(&r->sum, at_ns, time__monotonic_ns(), value, ret_ns);
}

uint64_t run_time__mean(const struct run_time *r, struct bpf_program *const *programs, size_t n)
{
	uint64_t ns = 0, runs = 0, one_ns, one_runs;

	for (size_t i = 0; i < n; i++) {
		if (r->failed || !read_one(programs[i], &one_ns, &one_runs))
			return 0;
		ns += one_ns;
		runs += one_runs;
	}
	return runs ? ns / runs : 0;
}
