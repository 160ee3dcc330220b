/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `safescoped --replay FILE`: the output of a saved session; needs no kernel and no privileges. */
#include "modes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "capture/capture.h"
#include "logs/logs.h"
#include "picture/make.h"
#include "twins.h"

static int open_capture(const char *path, FILE **ret_in)
{
	int fd = -1, err = fd__open_regular(path, &fd);

	if (!err) {
		*ret_in = fdopen(fd, "r");
		if (*ret_in)
			return 0;
		err = -errno;
	}
	log_error("%s: cannot be replayed: %s", path,
		  err == -EINVAL ? "it is not a regular file" : strerror(-err));
	fd__close(&fd);
	return err;
}

struct replay_mode {
	const struct options *options;
	struct joined_logs logs;
	struct twins *twins;	 /* NULL: none given */
	struct outputs *outputs; /* NULL: not planned yet */
	struct push *push;	 /* NULL: nothing is pushed */
	int exit_code;
};

static int join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		const struct intake_log_join *how)
{
	struct replay_mode *mode = ctx;

	return joined_logs__join(&mode->logs, tl, pid, path, fd, how);
}

static void name_frame(void *ctx, const struct target_info *info, uint64_t frame,
		       struct code_name *name)
{
	const struct replay_mode *mode = ctx;

	twins__name(mode->twins, info, frame, name);
}

static void name_site(void *ctx, const struct target_info *info, uint64_t addr,
		      struct target_site *site)
{
	const struct replay_mode *mode = ctx;

	twins__site(mode->twins, info, addr, site);
}

static int push_picture(struct replay_mode *mode, const struct picture *pic)
{
	const struct export_opts opts = outputs__export_opts(mode->outputs);
	_Atomic push_set queued_for = 0;
	int err = push__put(mode->push, pic, &opts, &queued_for);

	push__count_unqueued(mode->push, queued_for);
	push__look(mode->push);
	push__turn(mode->push, time__monotonic_ns());
	return err;
}

static void finish_push(struct replay_mode *mode)
{
	if (!mode->push)
		return;
	push__finish(mode->push, time__monotonic_ns() + PUSH_LAST_NS, -1);
	if (push__lost(mode->push) || push__has_more(mode->push))
		mode->exit_code = MAX(mode->exit_code, EXIT_PARTIAL);
	push__free(mode->push);
	mode->push = NULL;
}

/* -ECANCELED: nothing can be written, which has been reported. */
static int write_picture(struct replay_mode *mode, const struct picture *pic)
{
	size_t n = picture__n_targets(pic);
	const struct pic_target *first = picture__target(pic, 0);
	int err = 0;

	if (!mode->outputs)
		err = outputs__plan(&mode->options->output, first && n == 1 ? first->comm : "",
				    first && n == 1 ? first->pid : 0, &mode->outputs);
	if (err)
		return -ECANCELED;
	mode->exit_code = MAX(mode->exit_code, picture__session(pic)->exit_code);
	if (mode->options->window_ns)
		err = outputs__write_window(mode->outputs, pic);
	else
		err = outputs__write(mode->outputs, pic, NULL, NULL);
	/* the reader of a pipe has seen enough */
	if (err == -EPIPE)
		err = 0;
	if (!err && mode->push)
		err = push_picture(mode, pic);
	if (err)
		mode->exit_code = EXIT_FAILED;
	return 0;
}

static int take_window(void *ctx, struct picture *pic)
{
	int err = write_picture(ctx, pic);

	picture__free(pic);
	return err;
}

static void warn(const struct replay_notes *notes, const char *name)
{
	if (!notes->complete)
		log_warn("%s: incomplete capture; showing what it has", name);
	if (notes->damaged_blocks)
		log_warn("%s: damaged capture; leaving out what could not be read", name);
	if (notes->refused_inputs)
		log_warn("%s: leaving out records that contradict others", name);
	if (notes->no_room || notes->short_ahead)
		log_warn("%s: too large to be replayed as a whole; \"missing\" in the report lists "
			 "what is left out",
			 name);
	if (notes->too_far)
		log_warn("%s: leaving out records that come too many windows after the others; "
			 "longer windows may include them",
			 name);
	if (notes->no_haskell_lanes)
		log_warn("%s: made without --lanes haskell; there are no lanes of Haskell threads "
			 "to show",
			 name);
}

int replay_mode__run(const struct options *options)
{
	struct replay_mode mode = {.options = options};
	struct replay_hooks hooks = {
		.ctx = &mode,
		.join = options->window_ns ? NULL : join,
		.window_ns = options->window_ns,
		.window = take_window,
		.haskell_lanes = options->output.lanes & EXPORT_LANES_HASKELL,
	};
	struct replay *replay;
	FILE *in;
	int err;

	signals__ignore_pipe();
	/* checked first, since the first window may be minutes of reading away */
	if (outputs__check(&options->output) || twins__new(options, &mode.twins))
		return EXIT_FAILED;
	if (mode.twins) {
		hooks.name = name_frame;
		hooks.site = name_site;
	}
	if (options->push.n && push__open(&options->push, &mode.push)) {
		twins__free(mode.twins);
		return EXIT_FAILED;
	}
	if (open_capture(options->replay, &in)) {
		push__free(mode.push);
		twins__free(mode.twins);
		return EXIT_FAILED;
	}
	err = replay__read(in, options->replay, &hooks, &replay);
	fclose(in);
	if (err) {
		joined_logs__free(&mode.logs);
		outputs__free(mode.outputs);
		push__free(mode.push);
		twins__free(mode.twins);
		return EXIT_FAILED;
	}
	twins__report(mode.twins);
	warn(replay__notes(replay), options->replay);
	if (write_picture(&mode, replay__picture(replay)))
		mode.exit_code = EXIT_FAILED;
	finish_push(&mode);
	replay__free(replay);
	joined_logs__free(&mode.logs);
	outputs__free(mode.outputs);
	twins__free(mode.twins);
	return mode.exit_code;
}
