/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `safescoped --top`: a session, or a replay, on a live screen. */
#include "modes.h"

#include "base/base.h"
#include "picture/picture.h"
#include "top/top.h"

struct top_mode {
	const struct options *options; /* as given, for reports */
	struct options screen;	       /* the same, with the screen as its only output */
	int (*run)(struct options **options);
};

static int run(void *ctx)
{
	struct top_mode *mode = ctx;
	struct options *screen = &mode->screen;

	return mode->run(&screen);
}

static int write_report(void *ctx, const struct picture *pic)
{
	const struct top_mode *mode = ctx;
	size_t n = picture__n_targets(pic);
	const struct pic_target *first = picture__target(pic, 0);
	struct outputs *outputs;
	int err = outputs__plan(&mode->options->output, first && n == 1 ? first->comm : "",
				first && n == 1 ? first->pid : 0, &outputs);

	if (err)
		return err;
	err = outputs__write_window(outputs, pic);
	if (!err)
		log_info("a report was written to %s", mode->options->output.path
							       ? mode->options->output.path
							       : "the working directory");
	outputs__free(outputs);
	return err;
}

int top_mode__run(const struct options *options, int (*run_inside)(struct options **options))
{
	struct top_mode mode = {.options = options, .screen = *options, .run = run_inside};
	const struct top_opts opts = {
		.run = run,
		.report = write_report,
		.ctx = &mode,
		.every_ns = options->window_ns,
		.replay = options->mode == MODE_REPLAY,
		.stay = !options->duration_ns,
		.colour = output__has_colour(output__terminal_width(1)),
	};
	struct outputs *outputs;

	/* checks where reports would go before the screen is taken */
	if (outputs__plan(&options->output, "", 0, &outputs))
		return EXIT_FAILED;
	outputs__free(outputs);
	mode.screen.output.formats[0] = &export_top;
	mode.screen.output.n_formats = 1;
	mode.screen.output.path = "-";
	/* reading the configuration again would bring back other outputs */
	mode.screen.config_path = NULL;
	return top__run(&opts);
}
