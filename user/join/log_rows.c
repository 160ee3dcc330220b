/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_rows: converts a log's times to the session's axis, and makes the rows of its lanes. */
#include <errno.h>
#include <stdlib.h>

#include "join_priv.h"

uint64_t elog__time(const struct log_build *b, uint64_t log_ns)
{
	int64_t offset = b->in.offset_ns;

	if (offset < 0)
		return log_ns > -(uint64_t)offset ? log_ns - -(uint64_t)offset : 0;
	return log_ns > UINT64_MAX - (uint64_t)offset ? UINT64_MAX : log_ns + (uint64_t)offset;
}

bool elog__clip(const struct log_build *b, uint64_t *start_ns, uint64_t *end_ns)
{
	*start_ns = MAX(*start_ns, b->from_ns);
	*end_ns = MIN(*end_ns, b->to_ns);
	return *start_ns < *end_ns;
}

int elog__fit_rows(struct log_build *b, const struct pic_row *rows, size_t n,
		   const uint32_t *stacks, struct pic_lane *lane)
{
	bool had[LEDGER_STATES] = {false};
	struct pic_row *fit;
	size_t n_fit;
	int err = ledger_rows__fit(rows, n, lane->states_ns, LANE_STATES, stacks, &fit, &n_fit);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		had[rows[i].state % LEDGER_STATES] |= rows[i].ns != 0;
	for (size_t i = 0; i < n_fit; i++)
		if (!had[fit[i].state % LEDGER_STATES])
			fit[i].on_cpu = state__on_cpu(lane->kind, fit[i].state);
	if (!picture__keep(b->pic, fit)) {
		free(fit);
		return -ENOMEM;
	}
	lane->rows = fit;
	lane->n_rows = n_fit;
	return 0;
}

int elog__fill_rows(struct log_build *b, enum lane_kind kind, struct pic_lane *lanes, size_t n)
{
	static const uint32_t none[LANE_STATES];
	struct ledger_account *accounts;
	int err = ledger__accounts(b->ledger[kind], (uint32_t)n, &accounts);

	if (err)
		return err;
	for (size_t i = 0; i < n && !err; i++)
		err = elog__fit_rows(b, accounts[i].rows, accounts[i].n, none, &lanes[i]);
	ledger_accounts__free(accounts, (uint32_t)n);
	return err;
}
