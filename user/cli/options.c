/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line, parsed with glibc's argp, and the configuration file that it names. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "completion.h"
#include "config.h"
#include "metrics/server.h"
#include "output/output.h"
#include "options_priv.h"

#define MAX_SETTINGS 4096

const char *argp_program_version = "safescoped " SAFESCOPED_VERSION;

static const char doc[] =
	"Shows where every moment of a running Haskell program went: Haskell functions with their "
	"real stacks, safe and unsafe foreign calls, waiting for a capability, GC, blocked, idle. "
	"Attaches to running, unmodified programs compiled by GHC.\v"
	"Formats: speedscope, folded, json, text, chrome, pprof, html, otlp. PATH of -o is a "
	"directory, a stem (PATH.speedscope.json, PATH.folded, ...; a suffix that it already has "
	"is not added again) or - for standard output (one format); with --window a directory or "
	"-.\n\n"
	"Exit codes: 0 complete, 1 finished but something was lost or something requested is "
	"missing, 2 failed, 64 wrong usage.\n\n"
	"Examples:\n"
	"  safescoped --pid 1234 -d 10\n"
	"  safescoped -p 1234,1235 -F 887 -f speedscope,folded,text -o out/\n"
	"  safescoped -d 60 -f json -o host.json\n"
	"  safescoped -e prog.eventlog --from 'START load' --to 10s\n"
	"  safescoped -- hledger -f big.journal balance";

static const char args_doc[] =
	"\n-- COMMAND [ARG...]\n--eventlog FILE\n--replay FILE\n--diff A B\n--list\n--doctor";

struct setting {
	int key;
	const char *arg; /* NULL: none */
};

/* As given. It is applied again after each reading of the configuration. */
struct command_line {
	struct setting *v;
	size_t n, cap;
	char **command;
	const char *diff_with; /* the argument after --diff A; NULL: none */
	bool dashes;	       /* there was a -- */
};

/* ── the command line ────────────────────────────────────────────────────────────────────── */

static _Noreturn void exit_wrong(const char *text)
{
	log_error("%s", text);
	exit(EX_USAGE);
}

static _Noreturn void exit_without_memory(void)
{
	log_error("no memory");
	exit(EXIT_FAILED);
}

static void take_setting(struct command_line *line, int key, const char *arg)
{
	int err = ARRAY_RESERVE(line->v, line->cap, line->n + 1, MAX_SETTINGS);

	if (err == -E2BIG)
		exit_wrong("too many options");
	if (err)
		exit_without_memory();
	line->v[line->n++] = (struct setting){key, arg};
}

static bool has_key(const struct command_line *line, int key)
{
	for (size_t i = 0; i < line->n; i++)
		if (line->v[i].key == key)
			return true;
	return false;
}

static error_t take_argument(struct command_line *line, struct argp_state *state, const char *arg)
{
	char text[512];

	/* arguments after -- are taken all at once, by ARGP_KEY_ARGS */
	if (state->quoted && state->next > state->quoted)
		return ARGP_ERR_UNKNOWN;
	if (has_key(line, OPT_DIFF) && !line->diff_with) {
		line->diff_with = arg;
		return 0;
	}
	snprintf(text, sizeof(text),
		 "%s: unexpected argument; use --pid PID for a process, or -- before a command",
		 arg);
	exit_wrong(text);
}

/* True while argp reads the command line: it ends the program after --help, --usage and --version,
 * whether they could be written or not. */
static bool may_print_and_exit;

static void check_what_was_printed(void)
{
	int err = may_print_and_exit ? output__flush(stdout) : 0;

	if (!err)
		return;
	log_error("standard output: %s", strerror(-err));
	_exit(EXIT_FAILED);
}

static error_t take_option(int key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		/* getopt has printed the error; argp would add a line of advice */
		state->err_stream = fopen("/dev/null", "we") ?: state->err_stream;
		return 0;
	case 'h':
		argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
		return 0;
	case OPT_COMPLETION:
		exit(completion__print(arg));
	case ARGP_KEY_ARG:
		return take_argument(line, state, arg);
	case ARGP_KEY_ARGS:
		line->command = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		line->dashes = state->quoted != 0;
		return 0;
	default:
		if (!option_table__of_key(key))
			return ARGP_ERR_UNKNOWN;
		take_setting(line, key, arg);
		return 0;
	}
}

/* The row's explanation, with its default. The texts are never freed. */
static const char *explain(const struct option_row *row)
{
	char *text;

	if (!row->def)
		return row->doc;
	return asprintf(&text, "%s (default %s)", row->doc, row->def) < 0 ? row->doc : text;
}

static void make_argp_options(struct argp_option *out, size_t room)
{
	size_t n = 0;

	for (const struct option_row *row = option_rows; row->doc && n + 1 < room; row++)
		out[n++] = (struct argp_option){.name = row->name,
						.key = row->key,
						.arg = row->arg,
						.doc = explain(row),
						.group = row->group};
	out[n] = (struct argp_option){0};
}

/* Called once: a process has one command line, and argp keeps pointers to the rows. */
static const struct command_line *read_command_line(int argc, char **argv)
{
	static struct argp_option options[OPTION_MAX_ROWS];
	static const struct argp argp = {options, take_option, args_doc, doc, NULL, NULL, NULL};
	static struct command_line line;

	make_argp_options(options, ARRAY_SIZE(options));
	may_print_and_exit = !atexit(check_what_was_printed);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	may_print_and_exit = false;
	return &line;
}

/* ── what the options are ────────────────────────────────────────────────────────────────── */

static void set_defaults(struct option_input *in)
{
	for (const struct option_row *row = option_rows; row->doc; row++)
		if (row->def)
			options__set(in, row->key, row->def);
}

static size_t place_of(int key)
{
	return (size_t)(option_table__of_key(key) - option_rows);
}

bool options__given(const struct option_input *in, int key)
{
	return in->given[place_of(key)];
}

bool options__in_file(const struct option_input *in, int key)
{
	return in->in_line[place_of(key)] != 0;
}

/* An option that was explicitly given: the table's defaults do not count as changing a replay. */
static int set_given(struct option_input *in, const struct option_row *row, const char *arg)
{
	in->given[place_of(row->key)] = true;
	if (row->flags & OPTION_LIVE)
		in->o->live = row->name;
	return options__set(in, row->key, arg);
}

static int set_line(struct option_input *in, const struct config_line *line)
{
	const struct option_row *row = option_table__find(line->name);
	unsigned *earlier;

	in->line = line->number;
	if (!row)
		return options__wrong(in, "%s: no such option", line->name);
	if (row->flags & OPTION_NOT_IN_FILE)
		return options__wrong(in, "%s: only allowed on the command line", line->name);
	if (row->arg && !line->value)
		return options__wrong(in, "%s: needs a value: %s %s", line->name, line->name,
				      row->arg);
	if (!row->arg && line->value)
		return options__wrong(in, "%s: takes no value", line->name);
	earlier = &in->in_line[place_of(row->key)];
	if (*earlier && !(row->flags & OPTION_MANY))
		return options__wrong(in, "%s: already set in line %u", line->name, *earlier);
	*earlier = line->number;
	return set_given(in, row, line->value);
}

/* Records all errors in the file. */
static int set_file(struct option_input *in)
{
	struct options *o = in->o;
	int err, wrong = 0;

	in->file = o->config_path;
	in->line = 0;
	err = config__read(o->config_path, o->push.owner, &o->config);
	if (err == -ENOMEM)
		return err;
	if (err) {
		options__wrong(in, "cannot be read: %s",
			       err == -EINVAL	? "not a regular file"
			       : err == -EPERM	? "another user can write to it"
			       : err == -EFBIG	? "too large for a configuration file"
			       : err == -EILSEQ ? "not a text file"
						: strerror(-err));
		/* a file that could be read but is not a configuration counts as wrong, not as
		 * unreadable */
		return err == -EFBIG || err == -EILSEQ ? -EINVAL : -EIO;
	}
	for (size_t i = 0; i < o->config->n; i++)
		wrong |= set_line(in, &o->config->lines[i]);
	/* conflicts between options are reported for the file as a whole */
	in->line = 0;
	return wrong ? -EINVAL : 0;
}

static const char *config_of(const struct command_line *line)
{
	const char *path = NULL;

	for (size_t i = 0; i < line->n; i++)
		if (line->v[i].key == OPT_CONFIG)
			path = line->v[i].arg;
	return path;
}

static int set_command_line(struct option_input *in, const struct command_line *line)
{
	const char *file = in->file;
	int err = 0;

	in->file = NULL;
	for (size_t i = 0; i < line->n && !err; i++)
		err = set_given(in, option_table__of_key(line->v[i].key), line->v[i].arg);
	/* otherwise a script whose command is an empty variable would profile the whole host */
	if (!err && line->dashes && !line->command)
		err = options__wrong(in, "--: needs a command after it");
	in->file = file;
	return err;
}

static int make_options(const struct command_line *line, struct option_input *in)
{
	struct options *o = in->o;
	int err = 0;

	gid_t group;

	o->line = line;
	o->command = line->command;
	o->diff[1] = line->diff_with;
	o->config_path = config_of(line);
	/* an owner that cannot be found is reported where files are written; the service's own
	 * file is read as the service reads it, whoever runs sudo */
	if (output__find_owner(&o->push.owner, &group) ||
	    (o->config_path && !strcmp(o->config_path, OPTIONS_CONFIG_PATH)))
		o->push.owner = (uid_t)-1;
	set_defaults(in);
	if (o->config_path)
		err = set_file(in);
	if (!err)
		err = set_command_line(in, line);
	if (!err)
		options__daemon(in);
	o->push_stamp = push__stamp(&o->push);
	if (!err)
		err = options__check(in);
	/* the check decides the mode: --eventlog without a process is a log alone */
	o->output.of_this_host =
		o->mode == MODE_SYSTEM || o->mode == MODE_PID || o->mode == MODE_COMMAND;
	return err;
}

/* -EINVAL: the errors are in `wrong`; -EIO: `wrong` has the reason why the file cannot be read. */
static int make(const struct command_line *line, struct buf *wrong, struct options **ret_options)
{
	struct option_input in = {.o = calloc(1, sizeof(*in.o)), .wrong = *wrong};
	int err;

	if (!in.o)
		return -ENOMEM;
	err = make_options(line, &in);
	*wrong = in.wrong;
	if (err)
		options__free(in.o);
	else
		*ret_options = in.o;
	return err;
}

int options__read_config(const char *path, struct buf *wrong, struct options **ret_options)
{
	static struct setting file = {.key = OPT_CONFIG};
	static const struct command_line line = {.v = &file, .n = 1};

	file.arg = path;
	return make(&line, wrong, ret_options);
}

/* make(), and prints the errors. */
static int make_loudly(const struct command_line *line, struct options **ret_options)
{
	struct buf wrong = {};
	int err = has_key(line, OPT_CHECK_CONFIG)
			  ? options__read_config(config_of(line) ?: OPTIONS_CONFIG_PATH, &wrong,
						 ret_options)
			  : make(line, &wrong, ret_options);
	char *rest = wrong.data;

	while (rest && *rest)
		log_error("%s", strsep(&rest, "\n"));
	/* there are errors, but no memory to record them */
	if (err && wrong.err)
		err = -ENOMEM;
	buf__free(&wrong);
	return err;
}

struct options *options__parse(int argc, char **argv)
{
	/* messages begin with the program's name, not with the path used to start it */
	static char name[] = "safescoped";
	const struct command_line *line;
	struct options *o;
	int err;

	if (argc > 0)
		argv[0] = name;
	program_invocation_name = program_invocation_short_name = name;
	line = read_command_line(argc, argv);
	err = make_loudly(line, &o);
	if (err == -ENOMEM)
		exit_without_memory();
	if (err)
		exit(err == -EIO ? EXIT_FAILED : EX_USAGE);
	if (has_key(line, OPT_CHECK_CONFIG)) {
		/* these files are part of the configuration; output directories may only exist
		 * once the service runs */
		err = push__check(&o->push);
		if (o->metrics && metrics_server__needs_right(o->metrics))
			log_warn("metrics %s: its port needs CAP_NET_BIND_SERVICE, which the "
				 "service's user does not have",
				 o->metrics);
		options__free(o);
		exit(err ? EX_USAGE : EXIT_COMPLETE);
	}
	return o;
}

int options__again(const struct options *old, struct options **ret_options)
{
	return make_loudly(old->line, ret_options);
}

bool options__same(const struct options *a, const struct options *b)
{
	const struct config *x = a->config, *y = b->config;

	if (a->line != b->line || x->n != y->n || a->push_stamp != b->push_stamp)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (strcmp(x->lines[i].name, y->lines[i].name) != 0 ||
		    strcmp(x->lines[i].value ?: "", y->lines[i].value ?: "") != 0)
			return false;
	return true;
}

void options__set_log_level(const struct options *o)
{
	log__set_level(o->quiet		? LOG_LVL_QUIET
		       : o->verbose > 1 ? LOG_LVL_DEBUG
		       : o->verbose	? LOG_LVL_VERBOSE
					: LOG_LVL_INFO);
}

void options__free(struct options *options)
{
	if (!options)
		return;
	config__free(options->config);
	free(options);
}

const char *options__mode(enum mode mode)
{
	static const char *const names[] = {
		[MODE_SYSTEM] = "system", [MODE_PID] = "pid",	    [MODE_COMMAND] = "command",
		[MODE_LIST] = "list",	  [MODE_DOCTOR] = "doctor", [MODE_EVENTLOG] = "eventlog",
		[MODE_REPLAY] = "replay", [MODE_DIFF] = "diff",
	};

	return names[mode];
}
