/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tap: reports inputs to the listener. */
#include "intake_priv.h"

const char *intake_input__name(enum intake_input_kind kind)
{
	static const char *const names[TI_MAX] = {
		[TI_NONE] = "",
		[TI_TARGET] = "target",
		[TI_UPDATE_TARGET] = "update_target",
		[TI_RECORD] = "record",
		[TI_SNAPSHOT] = "snapshot",
		[TI_SITE_COUNTERS] = "site_counters",
		[TI_THREAD_STATE] = "thread_state",
		[TI_OFF_STACK] = "off_stack",
		[TI_COST] = "cost",
		[TI_LOST] = "lost",
		[TI_LOST_SHARE] = "lost_share",
		[TI_MISSING] = "missing",
		[TI_EXIT_CODE] = "exit_code",
		[TI_END_TARGET] = "end_target",
		[TI_FINISH] = "finish",
		[TI_NAME] = "name",
		[TI_SITE] = "site",
		[TI_CCS] = "ccs",
		[TI_LOG_BYTES] = "log_bytes",
		[TI_LOG] = "log",
		[TI_FORGET_TARGET] = "forget_target",
		[TI_SETTLE_TARGET] = "settle_target",
		[TI_RETIRE_SETTLED] = "retire_settled",
		[TI_CUT] = "cut",
		[TI_CENSUS] = "census",
		[TI_RENAME] = "rename",
		[TI_RETAKEN] = "retaken",
		[TI_LIVING] = "living",
	};

	return (unsigned)kind < TI_MAX ? names[kind] : "";
}

void intake__set_tap(struct intake *in, intake_tap tap, void *ctx)
{
	in->tap = tap;
	in->tap_ctx = ctx;
}

int tap__report(struct intake *in, int err, const struct intake_input *input)
{
	if (in->tap && err != -EINVAL && err != -ENOENT && err != -EBADMSG)
		in->tap(in->tap_ctx, input);
	return err;
}
