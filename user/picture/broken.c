/* SPDX-License-Identifier: GPL-2.0-or-later */
/* broken: names of the causes of broken stacks, for the JSON report and for people. */
#include "base/base.h"
#include "picture.h"
#include "wire.h"

struct words {
	const char *name, *title;
};

static const struct words causes[] = {
	[WIRE_CAUSE_NO_SP] = {"no_sp", "stack pointer not found"},
	[WIRE_CAUSE_NO_FRAME] = {"no_frame", "no frame near the stack pointer"},
	[WIRE_CAUSE_BAD_TYPE] = {"bad_type", "no frame in mid-stack"},
	[WIRE_CAUSE_FAULT] = {"fault", "memory not readable"},
	[WIRE_CAUSE_SP_RANGE] = {"sp_range", "left its stack"},
	[WIRE_CAUSE_STOP_NOT_END] = {"stop_not_end", "ended before its stack's end"},
	[WIRE_CAUSE_BAD_SIZE] = {"bad_size", "frame larger than its stack"},
	[WIRE_CAUSE_GC_RACE] = {"gc_race", "moved during the walk"},
	[WIRE_CAUSE_NO_TSO] = {"no_tso", "Haskell thread not known"},
	[WIRE_CAUSE_C_NO_MAP] = {"c_no_map", "in code of no known file"},
	[WIRE_CAUSE_C_NO_ROW] = {"c_no_row", "in code without unwind rows"},
	[WIRE_CAUSE_C_RULE] = {"c_rule", "by an unknown unwind rule"},
	[WIRE_CAUSE_C_FAULT] = {"c_fault", "C stack not readable"},
	[WIRE_CAUSE_C_TOO_DEEP] = {"c_too_deep", "too many C frames"},
};

const char *broken__name(unsigned cause)
{
	return cause < ARRAY_SIZE(causes) ? causes[cause].name : NULL;
}

const char *broken__title(unsigned cause)
{
	return cause < ARRAY_SIZE(causes) ? causes[cause].title : NULL;
}
