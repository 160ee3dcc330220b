/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `safescoped --diff A B`: compares two sessions; needs no kernel and no privileges. */
#include "modes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "capture/capture.h"
#include "diff/diff.h"

/* One of the two sessions. */
struct side {
	const char *path;
	struct diff_report *report;
	char *folded; /* NULL: a report, which has no stacks */
};

struct diff_mode {
	const struct options *options;
	struct side sides[2];
	struct diff *diff;
};

static void complain(const struct side *side, int err)
{
	const char *why = strerror(-err);

	switch (err) {
	case -EINVAL:
		why = "it has no CPU time";
		break;
	case -EBADMSG:
		why = "neither a capture (--save) nor a JSON report";
		break;
	case -EFBIG:
		why = "it is too large";
		break;
	case -EISDIR:
		why = "it is not a regular file";
		break;
	}
	log_error("%s: cannot be compared: %s", side->path, why);
}

/* ── what is read ────────────────────────────────────────────────────────────────────────── */

static int render(const struct picture *pic, const struct export_format *format,
		  const struct export_opts *opts, char **ret_text, size_t *ret_len)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err;

	if (!out)
		return -ENOMEM;
	err = format->write(out, pic, opts);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err) {
		free(text);
		return err;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

/* -ECANCELED: the reason has been printed. */
static int read_capture(const struct options *options, FILE *in, struct side *side)
{
	const struct export_opts opts = {.lanes = EXPORT_LANES_THREAD,
					 .weight = options->output.weight,
					 .verbose = options->output.verbose};
	struct replay *replay;
	char *json = NULL;
	size_t len;
	int err = replay__read(in, side->path, NULL, &replay);

	if (err)
		return -ECANCELED;
	if (!replay__notes(replay)->complete)
		log_warn("%s: incomplete capture; comparing what it has", side->path);
	if (replay__notes(replay)->damaged_blocks)
		log_warn("%s: damaged capture; leaving out what could not be read", side->path);
	err = render(replay__picture(replay), &export_json, &opts, &json, &len);
	if (!err)
		err = diff_report__read(json, len, &side->report);
	free(json);
	if (!err)
		err = render(replay__picture(replay), &export_folded, &opts, &side->folded, &len);
	replay__free(replay);
	return err;
}

static int read_json(FILE *in, struct side *side)
{
	struct stat st;
	char *json;
	size_t len;
	int err;

	if (fstat(fileno(in), &st))
		return -errno;
	if ((uint64_t)st.st_size > DIFF_MAX_REPORT)
		return -EFBIG;
	json = malloc((size_t)st.st_size + 1);
	if (!json)
		return -ENOMEM;
	len = fread(json, 1, (size_t)st.st_size, in);
	err = ferror(in) ? -EIO : diff_report__read(json, len, &side->report);
	free(json);
	return err;
}

static int read_side(const struct options *options, struct side *side)
{
	int fd = -1, first, err = fd__open_regular(side->path, &fd);
	FILE *in = err ? NULL : fdopen(fd, "r");

	if (err == -EINVAL)
		err = -EISDIR;
	else if (!err && !in)
		err = -errno;
	if (err) {
		fd__close(&fd);
		complain(side, err);
		return err;
	}
	first = fgetc(in);
	rewind(in);
	err = first == '{' ? read_json(in, side) : read_capture(options, in, side);
	fclose(in);
	if (err && err != -ECANCELED)
		complain(side, err);
	return err;
}

/* ── what is written ─────────────────────────────────────────────────────────────────────── */

static int put(void *ctx, const struct export_format *format, FILE *out,
	       const struct export_opts *opts)
{
	const struct diff_mode *mode = ctx;
	const char *const names[2] = {mode->sides[0].path, mode->sides[1].path};
	const char *const folded[2] = {mode->sides[0].folded, mode->sides[1].folded};
	struct diff_stacks *stacks;
	int err;

	if (format == &export_text)
		return diff__put_text(out, mode->diff, names, opts->verbose, opts->colour,
				      opts->width);
	err = diff_stacks__new(mode->diff, folded, opts->weight == WEIGHT_ALLOC, &stacks);
	if (err)
		return err;
	err = format == &export_html ? diff__put_page(out, mode->diff, stacks, names)
				     : diff_stacks__put_folded(out, stacks);
	diff_stacks__free(stacks);
	return err;
}

/* Folded stacks and the page need both captures. */
static int check_stacks(const struct diff_mode *mode)
{
	const struct output_opts *out = &mode->options->output;

	for (size_t i = 0; i < out->n_formats; i++)
		for (int side = 0; side < 2 && out->formats[i] != &export_text; side++)
			if (!mode->sides[side].folded) {
				log_error("%s: a report has no stacks; %s needs captures (--save)",
					  mode->sides[side].path, out->formats[i]->name);
				return -EINVAL;
			}
	return 0;
}

/* Explains why there is nothing to compare per `per`. */
static void report_none(const struct diff_mode *mode, const char *per)
{
	for (int side = 0; side < 2 && !strcmp(per, "gc"); side++) {
		const struct diff_report *r = mode->sides[side].report;

		for (uint32_t i = 0; i < r->n_programs; i++)
			if (r->programs[i].gcs_missed) {
				log_error("--per gc: the number of collections in %s is unknown: "
					  "their probes came off (--max-overhead)",
					  mode->sides[side].path);
				return;
			}
	}
	log_error("--per %s: one of the sessions has none, or no samples", per);
}

static int compare(struct diff_mode *mode)
{
	const char *per = mode->options->per;
	int err = diff__new(mode->sides[0].report, mode->sides[1].report, per, &mode->diff);

	if (err == -ENOENT)
		log_error("--diff: the sessions have no program in common");
	else if (err == -ERANGE && per)
		report_none(mode, per);
	else if (err == -ERANGE)
		log_error("--diff: one of the sessions has no samples");
	else if (err)
		log_error("--diff: %s", strerror(-err));
	return err;
}

int diff_mode__run(const struct options *options)
{
	struct diff_mode mode = {.options = options};
	struct outputs *outputs = NULL;
	int err = 0;

	signals__ignore_pipe();
	for (int side = 0; side < 2 && !err; side++) {
		mode.sides[side].path = options->diff[side];
		err = read_side(options, &mode.sides[side]);
	}
	if (!err)
		err = check_stacks(&mode);
	if (!err)
		err = compare(&mode);
	if (!err)
		err = outputs__plan(&options->output, "diff", 0, &outputs);
	if (!err)
		err = outputs__write_by(outputs, put, &mode);
	outputs__free(outputs);
	diff__free(mode.diff);
	for (int side = 0; side < 2; side++) {
		diff_report__free(mode.sides[side].report);
		free(mode.sides[side].folded);
	}
	return err ? EXIT_FAILED : EXIT_COMPLETE;
}
