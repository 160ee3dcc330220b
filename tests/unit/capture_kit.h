/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_kit: captures a test kit's timeline and reads the capture back. */
#ifndef SAFESCOPED_TEST_CAPTURE_KIT_H
#define SAFESCOPED_TEST_CAPTURE_KIT_H

#include "capture/capture.h"
#include "capture_folder.h"
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

/* Reads the capture; every input in it must be accepted. */
static inline struct replay *replay_all(const struct replay_hooks *hooks)
{
	struct replay *r;

	assert_int_equal(read_capture(hooks, &r), 0);
	assert_int_equal(replay__notes(r)->refused_inputs, 0);
	assert_int_equal(replay__notes(r)->unknown_inputs, 0);
	return r;
}

#endif
