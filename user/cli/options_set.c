/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each option sets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfod/debuginfod.h"
#include "options_priv.h"

/* The limit of hostname(7), including the domain. */
#define HOST_NAME_LENGTH 253

#define BLANKS " \t"

static int set_pids(struct option_input *in, const char *arg)
{
	struct options *o = in->o;
	const char *p = arg;

	do {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (errno || end == p || pid < 1 || pid > 0x3fffffff || (*end && *end != ','))
			return options__wrong(in, "--pid %s: not a list of process ids", arg);
		for (size_t i = 0; i < o->n_pids; i++)
			if (o->pids[i] == pid)
				pid = 0;
		if (pid && o->n_pids == OPTIONS_MAX_PIDS)
			return options__wrong(in, "--pid: more than %d processes",
					      OPTIONS_MAX_PIDS);
		if (pid)
			o->pids[o->n_pids++] = (pid_t)pid;
		p = *end ? end + 1 : NULL;
	} while (p);
	return 0;
}

/* The index of the word in the list, which ends with NULL. */
static int parse_word(struct option_input *in, const char *what, const char *arg, size_t len,
		      const char *const *words, unsigned *ret_number)
{
	char all[64] = "";

	for (unsigned i = 0; words[i]; i++) {
		if (strlen(words[i]) == len && !strncmp(words[i], arg, len)) {
			*ret_number = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 !i		? ""
			 : words[i + 1] ? ", "
					: " or ",
			 words[i]);
	}
	return options__wrong(in, "%s %.*s: %s", what, (int)len, arg, all);
}

/* Takes the next part of a comma-separated list, without blanks around it; false: none is left. */
static bool next_part(const char **list, const char **ret_part, size_t *ret_len)
{
	const char *part = *list, *end;

	if (!part)
		return false;
	end = part + strcspn(part, ",");
	*list = *end ? end + 1 : NULL;
	part += strspn(part, BLANKS);
	while (end > part && strchr(BLANKS, end[-1]))
		end--;
	*ret_part = part;
	*ret_len = (size_t)(end - part);
	return true;
}

static int set_formats(struct option_input *in, const char *arg)
{
	struct output_opts *o = &in->o->output;
	const char *name;
	size_t len;

	o->n_formats = 0;
	while (next_part(&arg, &name, &len)) {
		const struct export_format *format = export__find(name, len);

		if (!format)
			return options__wrong(in,
					      "--format %.*s: no such format; the formats are %s",
					      (int)len, name, export__names().s);
		for (size_t i = 0; i < o->n_formats; i++)
			if (o->formats[i] == format)
				format = NULL;
		if (format && o->n_formats < OUTPUT_MAX_FORMATS)
			o->formats[o->n_formats++] = format;
	}
	return 0;
}

static int set_lanes(struct option_input *in, const char *arg)
{
	static const char *const words[] = {[LANE_CAPABILITY] = "capability",
					    [LANE_THREAD] = "thread",
					    [LANE_HASKELL] = "haskell",
					    NULL};
	const char *name;
	unsigned kind = 0, lanes = 0;
	size_t len;

	while (next_part(&arg, &name, &len)) {
		int err = parse_word(in, "--lanes", name, len, words, &kind);

		if (err)
			return err;
		lanes |= 1U << kind;
	}
	in->o->output.lanes = lanes;
	return 0;
}

static int set_weight(struct option_input *in, const char *arg)
{
	static const char *const words[] = {[WEIGHT_WALL] = "wall",
					    [WEIGHT_CPU] = "cpu",
					    [WEIGHT_SAMPLES] = "samples",
					    [WEIGHT_ALLOC] = "alloc",
					    NULL};
	unsigned weight = 0;
	int err = parse_word(in, "--weight", arg, strlen(arg), words, &weight);

	if (!err)
		in->o->output.weight = (enum export_weight)weight;
	return err;
}

static int set_stacks(struct option_input *in, const char *arg)
{
	static const char *const words[] = {[STACKS_AUTO] = "auto",
					    [STACKS_STG] = "stg",
					    [STACKS_CCS] = "ccs",
					    [STACKS_BOTH] = "both",
					    NULL};
	unsigned stacks = 0;
	int err = parse_word(in, "--stacks", arg, strlen(arg), words, &stacks);

	if (!err)
		in->o->stacks = (enum intake_stacks)stacks;
	return err;
}

/* One end of the part of a log: a time, or otherwise the beginning of a marker. */
static int set_end(struct option_input *in, const char *what, const char *arg, uint64_t *ns,
		   const char **marker)
{
	if (!*arg)
		return options__wrong(in, "%s: an empty text", what);
	*ns = 0;
	*marker = NULL;
	if (!options__parse_time(arg, ns))
		*marker = arg;
	return 0;
}

static int set_to(struct option_input *in, const char *arg)
{
	struct log_part *part = &in->o->part;
	int err = set_end(in, "--to", arg, &part->to_ns, &part->to_marker);

	/* 0 stands for the log's end */
	if (!err && !part->to_ns && !part->to_marker)
		return options__wrong(in, "--to %s: nothing comes before that", arg);
	return err;
}

static int add_glob(struct option_input *in, const char *what, const char *arg, const char **globs,
		    size_t *n)
{
	if (*n == OPTIONS_MAX_GLOBS)
		return options__wrong(in, "%s: given more than %d times", what, OPTIONS_MAX_GLOBS);
	globs[(*n)++] = arg;
	return 0;
}

static int add_server(struct option_input *in, const char *url)
{
	struct options *o = in->o;
	const char *why = debuginfod__url_error(url);

	if (why)
		return options__wrong(in, "--debuginfod %s: %s", url, why);
	if (o->n_debuginfod == OPTIONS_MAX_SERVERS)
		return options__wrong(in, "--debuginfod: given more than %d times",
				      OPTIONS_MAX_SERVERS);
	o->debuginfod[o->n_debuginfod++] = url;
	return 0;
}

static int add_archives(struct option_input *in, const char *dir)
{
	struct options *o = in->o;

	if (!*dir)
		return options__wrong(in, "--archives: an empty path");
	if (o->n_archives == OPTIONS_MAX_DIRS)
		return options__wrong(in, "--archives: given more than %d times", OPTIONS_MAX_DIRS);
	o->archives[o->n_archives++] = dir;
	return 0;
}

static int set_mode(struct option_input *in, enum mode mode)
{
	if (in->o->mode != MODE_SYSTEM)
		return options__wrong(in, "use only one of --list, --doctor, --replay and --diff");
	in->o->mode = mode;
	return 0;
}

static int set_freeze(struct option_input *in, const char *arg)
{
	uint64_t ns = 0;

	if (!options__parse_time(arg, &ns) || ns < 1000000 || ns > 10000000000ULL)
		return options__wrong(in, "--freeze %s: not a time from 1ms to 10s", arg);
	in->o->freeze_ms = (int)(ns / 1000000);
	return 0;
}

/* Options for what is written and shown; passes others on to options__set_service(). -ENOENT:
 * unknown key. */
static int set_view(struct option_input *in, int key, const char *arg)
{
	struct options *o = in->o;

	switch (key) {
	case OPT_HEAP_CENSUS:
		o->heap_census = true;
		return 0;
	case OPT_FREEZE:
		return set_freeze(in, arg);
	case OPT_KERNEL_STACKS:
		o->kernel_stacks = true;
		return 0;
	case OPT_STACKS:
		return set_stacks(in, arg);
	case OPT_LANES:
		return set_lanes(in, arg);
	case OPT_WEIGHT:
		return set_weight(in, arg);
	case OPT_FROM:
		return set_end(in, "--from", arg, &o->part.from_ns, &o->part.from_marker);
	case OPT_TO:
		return set_to(in, arg);
	case OPT_HIDE:
		return add_glob(in, "--hide", arg, o->hide, &o->n_hide);
	case OPT_ONLY:
		return add_glob(in, "--only", arg, o->only, &o->n_only);
	case 'f':
		return set_formats(in, arg);
	case 'o':
		o->output.path = arg;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose++;
		o->output.verbose = true;
		return 0;
	default:
		return options__set_service(in, key, arg);
	}
}

static int set_host_name(struct option_input *in, const char *arg)
{
	if (!*arg || strlen(arg) > HOST_NAME_LENGTH)
		return options__wrong(in, "--host-name: not 1 to %d bytes long", HOST_NAME_LENGTH);
	in->o->output.host_name = arg;
	return 0;
}

int options__set(struct option_input *in, int key, const char *arg)
{
	struct options *o = in->o;
	uint64_t count = 0;
	int err;

	switch (key) {
	case 'p':
		return set_pids(in, arg);
	case 'd':
		return options__parse_duration(in, "--duration", arg, &o->duration_ns);
	case 'F':
		err = options__parse_count(in, "--frequency", arg, 1, 9999, &count);
		if (!err)
			o->frequency_hz = (uint32_t)count;
		return err;
	case 'e':
		o->eventlog = arg;
		return 0;
	case OPT_SYMBOLS:
		o->symbols = arg;
		return 0;
	case OPT_SYMBOLS_DIR:
		o->symbols_dir = arg;
		return 0;
	case OPT_DEBUGINFOD:
		return add_server(in, arg);
	case OPT_ARCHIVES:
		return add_archives(in, arg);
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_MAX_OVERHEAD:
		return options__parse_number(in, "--max-overhead", arg, 0, 1e6,
					     &o->max_overhead_percent);
	case OPT_MAX_CPU:
		return options__parse_number(in, "--max-cpu", arg, 0.01, 1e6, &o->max_cpu_percent);
	case OPT_HOST_NAME:
		return set_host_name(in, arg);
	case OPT_SAVE:
		o->save = arg;
		return 0;
	case OPT_PROPAGATE_EXIT:
		o->propagate_exit = true;
		return 0;
	case OPT_REPLAY:
		o->replay = arg;
		return set_mode(in, MODE_REPLAY);
	case OPT_LIST:
		return set_mode(in, MODE_LIST);
	case OPT_DOCTOR:
		return set_mode(in, MODE_DOCTOR);
	case OPT_DIFF:
		o->diff[0] = arg;
		return set_mode(in, MODE_DIFF);
	case OPT_PER:
		o->per = arg;
		return 0;
	case OPT_TOP:
		o->top = true;
		return 0;
	case OPT_CONFIG:
		/* handled before the other options */
		return 0;
	default:
		return set_view(in, key, arg);
	}
}
