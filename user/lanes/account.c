/* SPDX-License-Identifier: GPL-2.0-or-later */
/* account: the stacks for a lane's unsampled time, its rows in the picture, and what lanes lack. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "lanes_priv.h"

int lane__unsampled(struct lanes *l, enum lane_kind kind, unsigned state, uint32_t *ret_stack)
{
	uint32_t *stack = &l->unsampled[kind][state];
	int err = *stack ? 0 : picture__unsampled(l->pic, state__title(kind, state), stack);

	*ret_stack = *stack;
	return err;
}

int lane__take_account(struct lanes *l, struct ledger_account *account, struct pic_lane *lane)
{
	for (size_t i = 0; i < account->n; i++)
		lane->states_ns[account->rows[i].state] += account->rows[i].ns;
	if (account->n && !picture__keep(l->pic, account->rows))
		return -ENOMEM;
	lane->rows = account->rows;
	lane->n_rows = account->n;
	account->rows = NULL;
	return 0;
}

int lanes__lack(struct lanes *l, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int err;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	err = picture__add_missing(l->pic, l->seen->pub, "%s", text);
	return err == -E2BIG ? 0 : err;
}
