/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_kit: captures a test kit's timeline and reads the capture back. */
#ifndef SAFESCOPED_TEST_CAPTURE_KIT_H
#define SAFESCOPED_TEST_CAPTURE_KIT_H

#include "capture/capture.h"
#include "capture_folder.h"
#include "picture/make.h"
#include "test_timeline_kit.h"

static inline void kit_capture(struct kit *kit, const struct timeline_opts *opts,
			       struct capture **ret_capture)
{
	unlink(path);
	kit_new_timeline(kit, opts);
	assert_int_equal(
		capture__create(path, (uid_t)-1, (gid_t)-1, opts, "0.1.0", "pid", ret_capture), 0);
	intake__set_tap(kit->in, capture__take, *ret_capture);
}

static inline int read_capture(const struct replay_hooks *hooks, struct replay **ret_replay)
{
	FILE *in = fopen(path, "r");
	int err;

	assert_non_null(in);
	err = replay__read(in, "c", hooks, ret_replay);
	fclose(in);
	return err;
}

/* The capture's bytes; the caller frees. */
static inline char *load(size_t *ret_size)
{
	FILE *in = fopen(path, "r");
	char *data;

	assert_non_null(in);
	fseek(in, 0, SEEK_END);
	*ret_size = (size_t)ftell(in);
	rewind(in);
	data = malloc(*ret_size + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *ret_size, in), *ret_size);
	fclose(in);
	return data;
}

static inline int read_bytes(const char *data, size_t size, const struct replay_hooks *hooks,
			     struct replay **ret_replay)
{
	FILE *in = fmemopen((void *)data, size ? size : 1, "r");
	int err;

	assert_non_null(in);
	err = replay__read(in, "c", hooks, ret_replay);
	fclose(in);
	return err;
}

/* Where block number n begins. */
static inline size_t find_block(const char *data, size_t size, unsigned n)
{
	const char *at = data - 1;

	for (unsigned i = 0; i <= n; i++) {
		at = memmem(at + 1, size - (size_t)(at + 1 - data), "SCBK", 4);
		assert_non_null(at);
	}
	return (size_t)(at - data);
}

/* Reads the capture; every input in it must be accepted. */
static inline struct replay *replay_all(const struct replay_hooks *hooks)
{
	struct replay *r;

	assert_int_equal(read_capture(hooks, &r), 0);
	assert_int_equal(replay__notes(r)->refused_inputs, 0);
	assert_int_equal(replay__notes(r)->unknown_inputs, 0);
	return r;
}

/* What is done with the picture of each window. */
struct kit_windows {
	void (*add)(void *ctx, const struct picture *pic);
	void *ctx;
};

static inline int kit_take_window(void *ctx, struct picture *pic)
{
	const struct kit_windows *windows = ctx;

	windows->add(windows->ctx, pic);
	picture__free(pic);
	return 0;
}

/* Replays the capture in windows of this length (0: as a whole), and calls `add` for each. */
static inline void replay_windows(uint64_t window_ns, bool haskell_lanes,
				  void (*add)(void *ctx, const struct picture *pic), void *ctx)
{
	struct kit_windows windows = {.add = add, .ctx = ctx};
	const struct replay_hooks hooks = {.ctx = &windows,
					   .window_ns = window_ns,
					   .window = kit_take_window,
					   .haskell_lanes = haskell_lanes};
	struct replay *r = replay_all(&hooks);

	add(ctx, replay__picture(r));
	replay__free(r);
}

#endif
