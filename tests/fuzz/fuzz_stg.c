/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk over memory that an attacker chose: it must end, stay inside its room for frames, and
 * call a stack complete only at a STOP_FRAME. The input is the memory, from one base address up;
 * its first words are the registers. Depending on the input, all code has unwind rows, or none has.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "walk.bpf.h"

struct bytes {
	struct mem mem;
	const uint8_t *data;
	size_t size;
};

#define BASE 0x4200000000ULL

static int bytes_read(struct mem *mem, void *dst, u32 size, u64 addr)
{
	struct bytes *b = (struct bytes *)mem;

	/* only the low bits count, so that most pointers lead somewhere */
	addr &= 0xffff;
	if (addr > b->size || size > b->size - addr)
		return -14;
	memcpy(dst, b->data + addr, size);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {.mem = {bytes_read}, .data = data, .size = size};
	struct wire_target t = {.flags = WIRE_TARGET_THREADED | WIRE_TARGET_UPDATEES,
				.my_task_tls = -8};
	u64 frames[STG_FRAMES_ROOM] = {}, regs[5], rows[16];
	struct stg_walk w = {};
	struct cstack_scan scan;
	static struct unw_file files[WIRE_UNWIND_FILES];
	struct wire_unwind_maps maps = {.n = 1};
	struct walk_state state;
	struct unw unw = {};
	struct stg g = {.mem = &b.mem,
			.w = &w,
			.frames = frames,
			.scan = &scan,
			.unw = &unw,
			.maps = &maps,
			.files = files};
	struct rts_thread th = {.tid = 1, .tgid = 1};
	struct wire_stack s = {};
	struct wire_rts rts;

	if (size < sizeof(regs))
		return 0;
	memcpy(regs, data, sizeof(regs));
	/* GHC 9.0.2, threaded */
	t.layout = (struct wire_layout){.cap_r = 24,
					.cap_no = 944,
					.cap_running_task = 952,
					.cap_in_haskell = 960,
					.cap_current_tso = 896,
					.task_cap = 112,
					.task_incall = 120,
					.incall_suspended_tso = 8,
					.incall_suspended_cap = 16,
					.tso_stackobj = 24,
					.tso_why_blocked = 34,
					.tso_id = 48,
					.tso_id_size = 8,
					.tso_why_size = 2,
					.tso_bound = 64,
					.stack_size = 8,
					.stack_sp = 16,
					.stack_stack = 24,
					.bco_bitmap = 40,
					.updframe_updatee = 8};
	t.stgrun_ret = regs[4];
	th.fsbase = regs[0];
	rts_read(&b.mem, &t, &th, &rts);
	/* whatever was read, each kind of walk gets its turn */
	rts.where = 1 + regs[0] % 6;
	rts.tso = regs[1];
	stg_init(&g, &t.layout, 1 + regs[1] % WIRE_FRAMES_LEAF, 1 + regs[2] % WIRE_FRAMES_ROOT);
	w.updatees = 1;
	/* rows as the input has them, unordered and with buckets that point anywhere */
	memset(rows, 0x5a, sizeof(rows));
	memcpy(rows, data, size < sizeof(rows) ? size : sizeof(rows));
	files[1] = (struct unw_file){.rows = rows, .n = 16};
	maps.v[0] = (struct wire_unwind_map){.end = regs[4], .file = 1, .buckets = regs[2] % 16};
	walk_thread(&g, &t, &th, &state, &rts, regs[3],
		    &(struct walk_regs){.ip = regs[1], .sp = regs[2], .fp = regs[3]});
	stg_result(&w, &s);
	if (s.nframes > STG_FRAMES_ROOM)
		abort();
	if (s.elided && s.turn >= WIRE_FRAMES_ROOT)
		abort();
	return 0;
}
