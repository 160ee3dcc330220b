/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `safescoped --replay FILE`: the output of a session that was kept; no kernel, no privilege. */
#include "modes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "capture/capture.h"
#include "logs/logs.h"

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

static int write_outputs(const struct options *options, const struct timeline *tl)
{
	size_t n = timeline__n_targets(tl);
	const struct tl_target *first = n ? timeline__target(tl, 0) : NULL;
	struct outputs *outputs;
	int err;

	if (outputs__plan(&options->output, first ? first->comm : "",
			  first && n == 1 ? first->pid : 0, &outputs))
		return EXIT_FAILED;
	err = outputs__write(outputs, tl, NULL, NULL);
	outputs__free(outputs);
	return err ? EXIT_FAILED : timeline__session(tl)->exit_code;
}

int replay_mode__run(const struct options *options)
{
	struct joined_logs logs = {.n = 0};
	const struct replay_logs joiner = {.ctx = &logs, .join = joined_logs__join};
	struct replay *replay;
	FILE *in;
	int code, err;

	signals__ignore_pipe();
	if (open_capture(options->replay, &in))
		return EXIT_FAILED;
	err = replay__read(in, options->replay, &joiner, &replay);
	fclose(in);
	if (err) {
		joined_logs__free(&logs);
		return EXIT_FAILED;
	}
	if (!replay__notes(replay)->complete)
		log_warn("%s: was not finished: it is shown as far as it goes", options->replay);
	if (replay__notes(replay)->damaged_blocks)
		log_warn("%s: is damaged: what could not be read is left out", options->replay);
	code = write_outputs(options, replay__timeline(replay));
	replay__free(replay);
	joined_logs__free(&logs);
	return code;
}
