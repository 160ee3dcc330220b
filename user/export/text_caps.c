/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's table of capabilities: what each was used for. */
#include <string.h>

#include "text_priv.h"

/* In the order of the columns. */
static const struct {
	enum tl_cap_state state;
	const char *title;
} columns[] = {
	{CS_HASKELL, "Haskell"},   {CS_UNSAFE_CALL, "unsafe"}, {CS_GC, "GC"},
	{CS_RTS, "RTS"},	   {CS_PREEMPTED, "no CPU"},   {CS_IDLE, "idle"},
	{CS_DISABLED, "disabled"}, {CS_UNKNOWN, "unknown"},
};

static void add_row(struct table *table, const char *name, uint64_t wall,
		    const uint64_t states_ns[CS_MAX], uint32_t shown)
{
	table__cell(table, name);
	text__cell_duration(table, wall);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		if (shown >> columns[c].state & 1)
			text__cell_share(table, human__percent(states_ns[columns[c].state], wall));
		else
			table__cell(table, "");
	}
}

int text__capabilities(const struct text *t)
{
	const struct tl_target *target = t->target;
	uint64_t total[CS_MAX] = {0}, wall = 0;
	uint32_t shown = 0, sampled = 0;
	char titles[ARRAY_SIZE(columns)][16];
	struct table *table;
	int err;

	if (!target->n_cap_lanes)
		return 0;
	for (size_t i = 0; i < target->n_cap_lanes; i++) {
		const struct tl_cap_lane *lane = &target->cap_lanes[i];

		for (int s = 0; s < CS_MAX; s++) {
			total[s] += lane->states_ns[s];
			if (human__percent(lane->states_ns[s], lane->end_ns - lane->start_ns) >=
			    TEXT_SHARE_SHOWN)
				shown |= 1u << s;
		}
		wall += lane->end_ns - lane->start_ns;
		sampled |= lane->sampled_states;
	}
	err = table__new(2 + ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	table__column(table, 0, "capability", "", COL_FLEX);
	table__column(table, 1, "wall", "", COL_RIGHT);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		snprintf(titles[c], sizeof(titles[c]), "%s%s",
			 sampled >> columns[c].state & 1 ? "~" : "", columns[c].title);
		table__column(table, 2 + c, titles[c], "", COL_RIGHT);
		table__worth(table, 2 + c, total[columns[c].state]);
	}
	for (size_t i = 0; i < MIN(target->n_cap_lanes, t->rows); i++) {
		const struct tl_cap_lane *lane = &target->cap_lanes[i];
		char name[16];

		snprintf(name, sizeof(name), "%u", lane->no);
		add_row(table, name, lane->end_ns - lane->start_ns, lane->states_ns, shown);
	}
	if (target->n_cap_lanes > 1)
		add_row(table, "all", wall, total, shown);
	text__section(t, "What each capability was used for, in % of its wall time");
	err = text__print(table, t);
	text__more(t, target->n_cap_lanes, "capabilities");
	text__sampled(t, sampled & shown);
	return err;
}
