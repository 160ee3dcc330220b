/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns the options into those of a session, without what concerns only the command line. */
#include <string.h>

#include "base/base.h"
#include "metrics/server.h"
#include "modes.h"
#include "notify.h"
#include "service.h"
#include "session/session.h"

void session_mode__opts(const struct options *o, struct session_opts *ret_opts)
{
	const char *log = o->eventlog;
	bool none = log && !strcmp(log, "none"), automatic = !log || !strcmp(log, "auto");

	*ret_opts = (struct session_opts){
		.off_path = o->off_path,
		.select = o->select.n ? &o->select : NULL,
		.kind = o->mode == MODE_PID	  ? SESSION_PIDS
			: o->mode == MODE_COMMAND ? SESSION_COMMAND
						  : SESSION_SYSTEM,
		.mode = options__mode(o->mode),
		.pids = o->pids,
		.n_pids = o->n_pids,
		.command = o->command,
		.duration_ns = o->duration_ns,
		.window_ns = o->window_ns,
		.frequency_hz = o->frequency_hz,
		.max_overhead_percent = o->max_overhead_percent,
		.max_cpu_percent = o->max_cpu_percent,
		.stacks = o->stacks,
		.kernel_stacks = o->kernel_stacks,
		.heap_census = o->heap_census,
		.freeze_ms = o->freeze_ms,
		.plumbing = o->verbose > 0,
		.symbols = o->symbols,
		.force = o->force,
		.archives = o->archives,
		.n_archives = o->n_archives,
		.debuginfod = o->debuginfod,
		.n_debuginfod = o->n_debuginfod,
		.no_eventlogs = none || o->window_ns,
		.eventlog = none || automatic ? NULL : log,
		.eventlog_asked = log && automatic,
		.save = o->save,
		.propagate_exit = o->propagate_exit,
		.output = &o->output,
		.push = o->push.n ? &o->push : NULL,
		.quiet = o->quiet,
	};
}

/* A service manager may also have started a session that is not a service of ours. */
static void report_alive(void *ctx)
{
	bool *was_ready = ctx;

	if (!*was_ready)
		notify__ready("Profiling");
	else
		notify__alive();
	*was_ready = true;
}

int session_mode__run(struct options **options)
{
	struct metrics_server *metrics = NULL;
	struct session_opts opts;
	bool was_ready = false;
	int code;

	if (service__wanted(*options))
		return service__run(options);
	if ((*options)->metrics && metrics_server__open((*options)->metrics, &metrics))
		return EXIT_FAILED;
	session_mode__opts(*options, &opts);
	opts.metrics = metrics;
	opts.alive = report_alive;
	opts.alive_ctx = &was_ready;
	code = session__run(&opts);
	metrics_server__free(metrics);
	return code & SESSION_SWITCHED_OFF ? EXIT_PARTIAL : code;
}
