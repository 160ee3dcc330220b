/* SPDX-License-Identifier: GPL-2.0-or-later */
/* safescoped: where every moment of a running Haskell program went. */
#include <locale.h>

#include "base/base.h"
#include "doctor.h"
#include "list.h"
#include "log_mode.h"
#include "options.h"
#include "replay_mode.h"
#include "session.h"

int main(int argc, char **argv)
{
	struct options options;

	setlocale(LC_CTYPE, "");
	options__parse(argc, argv, &options);
	if (options.quiet)
		log__set_level(LOG_LVL_QUIET);
	else if (options.verbose > 1)
		log__set_level(LOG_LVL_DEBUG);
	else if (options.verbose == 1)
		log__set_level(LOG_LVL_VERBOSE);
	switch (options.mode) {
	case MODE_LIST:
		return list__run(&options);
	case MODE_DOCTOR:
		return doctor__run(&options);
	case MODE_EVENTLOG:
		return log_mode__run(&options);
	case MODE_REPLAY:
		return replay_mode__run(&options);
	default:
		return session__run(&options);
	}
}
