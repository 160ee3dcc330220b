/* SPDX-License-Identifier: GPL-2.0-or-later */
/* divide: turns bookings into the rows that reports show. */
#include "ledger_priv.h"

/*
 * A sample stands for its class's time divided by the class's samples, but for at most this many
 * periods of the sampler: otherwise a class that happens to have few samples would be inflated.
 */
#define MAX_PERIODS 2

struct divider {
	const struct ledger *ledger;
	struct ledger_account *account;
	size_t rows_cap, reasons_cap;
};

struct line {
	struct booking_key key;
	int64_t n, times;
	uint64_t longest;
};

/* The lines of one class of an owner: its time, its samples and its guesses. */
struct class_lines {
	const struct line *v;
	size_t n;
	int64_t ns; /* to be divided */
	int64_t samples, guessed;
};

static int by_key(const void *pa, const void *pb)
{
	return booking__compare(&((const struct line *)pa)->key, &((const struct line *)pb)->key);
}

static int add_row(struct ledger_account *a, size_t *cap, const struct pic_row *row)
{
	int err;

	if (!row->ns && !row->samples)
		return 0;
	err = ARRAY_RESERVE(a->rows, *cap, a->n + 1, 2 * LEDGER_MAX_ROWS);
	if (!err) {
		a->rows[a->n++] = *row;
		*(row->on_cpu ? &a->on_ns : &a->off_ns) += row->ns;
	}
	return err;
}

/* The part of `whole` in proportion to part / total, for running sums without rounding losses. */
static uint64_t share(uint64_t whole, int64_t part, int64_t total)
{
	return total > 0 ? (uint64_t)((__int128)whole * part / total) : 0;
}

/* Divides ns of a class into rows for its lines of that kind, in proportion to their numbers. */
static int divide(struct divider *d, const struct class_lines *c, enum booking_kind kind,
		  uint64_t ns, int64_t total)
{
	uint64_t given = 0;
	int64_t sum = 0;
	int err = 0;

	for (size_t i = 0; !err && i < c->n; i++) {
		const struct line *l = &c->v[i];
		struct pic_row row = {.stack = l->key.stack,
				      .state = l->key.state,
				      .on_cpu = true,
				      .unsampled = kind == BOOKING_GUESS};

		if (l->key.kind != kind || l->n <= 0)
			continue;
		sum += l->n;
		row.ns = share(ns, sum, total) - given;
		given += row.ns;
		if (kind == BOOKING_SAMPLE)
			row.samples = (uint64_t)l->n;
		err = add_row(d->account, &d->rows_cap, &row);
	}
	if (!err && given < ns) {
		/* nothing shows what it was */
		struct pic_row row = {.stack = d->ledger->opts.full_stack,
				      .ns = ns - given,
				      .on_cpu = true,
				      .unsampled = true};

		err = add_row(d->account, &d->rows_cap, &row);
	}
	return err;
}

static int divide_class(struct divider *d, const struct class_lines *c)
{
	uint64_t period = d->ledger->opts.period_ns;
	uint64_t ns = c->ns > 0 ? (uint64_t)c->ns : 0, sampled = 0;
	int err = 0;

	if (c->samples > 0)
		sampled = period ? MIN(ns, (uint64_t)c->samples * MAX_PERIODS * period) : ns;
	if (c->samples > 0)
		err = divide(d, c, BOOKING_SAMPLE, sampled, c->samples);
	if (!err && ns > sampled)
		err = divide(d, c, BOOKING_GUESS, ns - sampled, c->guessed);
	return err;
}

/*
 * In the difference of two readings a class may have negative time: what was booked to it before
 * turned out to belong to another class, which has it as well. The sum of all is right.
 */
static void settle(struct class_lines *classes, size_t n)
{
	int64_t owed = 0;

	for (size_t i = 0; i < n; i++) {
		if (classes[i].ns >= 0)
			continue;
		owed -= classes[i].ns;
		classes[i].ns = 0;
	}
	for (size_t i = 0; owed && i < n; i++) {
		int64_t taken = MIN(owed, classes[i].ns);

		classes[i].ns -= taken;
		owed -= taken;
	}
}

static struct class_lines class_at(const struct line *v, size_t n)
{
	struct class_lines c = {.v = v};

	while (c.n < n && v[c.n].key.class == v[0].key.class &&
	       v[c.n].key.detail == v[0].key.detail) {
		const struct line *l = &v[c.n++];

		if (l->key.kind == BOOKING_TIME)
			c.ns += l->n;
		else if (l->key.kind == BOOKING_SAMPLE)
			c.samples += MAX(l->n, 0);
		else
			c.guessed += MAX(l->n, 0);
		if (l->key.kind == BOOKING_GUESS)
			c.ns += l->times;
	}
	return c;
}

/* The same for time off the CPU, and for its reasons. */
static void settle_off(struct line *v, size_t n, enum booking_kind kind)
{
	int64_t owed = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].key.kind == kind && v[i].n < 0)
			owed -= v[i].n;
	for (size_t i = 0; owed && i < n; i++) {
		int64_t taken = MIN(owed, MAX(v[i].n, 0));

		if (v[i].key.kind != kind)
			continue;
		v[i].n -= taken;
		owed -= taken;
	}
}

static int take_off(struct divider *d, const struct line *l)
{
	struct ledger_account *a = d->account;
	struct pic_row row = {.stack = l->key.stack, .state = l->key.state};
	int err;

	if (l->n <= 0 || l->key.kind == BOOKING_WEIGHT)
		return 0;
	if (l->key.kind == BOOKING_OFF) {
		row.ns = (uint64_t)l->n;
		row.times = (uint64_t)MAX(l->times, 0);
		row.longest_ns = MIN(l->longest, row.ns);
		row.on_cpu = l->key.detail == BOOKING_ON_CPU;
		return add_row(a, &d->rows_cap, &row);
	}
	err = ARRAY_RESERVE(a->reasons, d->reasons_cap, a->n_reasons + 1, LEDGER_MAX_ROWS);
	if (!err)
		a->reasons[a->n_reasons++] = (struct ledger_reason){(uint64_t)l->n, l->key.state,
								    l->key.detail, l->key.stack};
	return err;
}

static int divide_owner(struct divider *d, struct line *v, size_t n)
{
	struct class_lines *classes = calloc(n, sizeof(*classes));
	size_t n_classes = 0, i = 0;
	int err = 0;

	if (!classes)
		return -ENOMEM;
	while (i < n && v[i].key.class != LEDGER_CLASSES) {
		classes[n_classes] = class_at(v + i, n - i);
		i += classes[n_classes++].n;
	}
	settle(classes, n_classes);
	settle_off(v + i, n - i, BOOKING_OFF);
	settle_off(v + i, n - i, BOOKING_REASON);
	for (size_t k = 0; !err && k < n_classes; k++)
		err = divide_class(d, &classes[k]);
	for (; !err && i < n; i++)
		err = take_off(d, &v[i]);
	free(classes);
	return err;
}

static int sorted_lines(const struct ledger *ledger, struct line **ret_lines, size_t *ret_n)
{
	struct line *v = calloc(HASH_COUNT(ledger->table) + 1, sizeof(*v));
	struct booking *b, *next;
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	HASH_ITER (hh, ledger->table, b, next)
		/* cppcheck-suppress uninitvar ; set by the loop's head */
		v[n++] = (struct line){b->key, b->n, b->times, b->longest};
	qsort(v, n, sizeof(*v), by_key);
	*ret_lines = v;
	*ret_n = n;
	return 0;
}

int ledger__accounts(const struct ledger *ledger, uint32_t n_owners,
		     struct ledger_account **ret_accounts)
{
	struct ledger_account *accounts = calloc((size_t)n_owners + 1, sizeof(*accounts));
	struct line *lines = NULL;
	size_t n = 0;
	int err;

	if (!accounts)
		return -ENOMEM;
	err = sorted_lines(ledger, &lines, &n);
	for (size_t i = 0; !err && i < n;) {
		uint32_t owner = lines[i].key.owner;
		struct divider d = {.ledger = ledger};
		size_t end = i;

		while (end < n && lines[end].key.owner == owner)
			end++;
		if (owner < n_owners) {
			d.account = &accounts[owner];
			err = divide_owner(&d, lines + i, end - i);
		}
		i = end;
	}
	free(lines);
	if (err) {
		ledger_accounts__free(accounts, n_owners);
		return err;
	}
	*ret_accounts = accounts;
	return 0;
}

int ledger__weights(const struct ledger *ledger, struct ledger_weight **ret_weights, size_t *ret_n)
{
	struct ledger_weight *weights;
	struct line *lines = NULL;
	size_t n = 0, kept = 0;
	int err = sorted_lines(ledger, &lines, &n);

	if (err)
		return err;
	weights = calloc(n + 1, sizeof(*weights));
	for (size_t i = 0; weights && i < n; i++) {
		const struct line *l = &lines[i];

		if (l->key.kind == BOOKING_WEIGHT && l->n > 0)
			weights[kept++] =
				(struct ledger_weight){(uint64_t)l->n, (uint64_t)MAX(l->times, 0),
						       l->key.owner, l->key.stack};
	}
	free(lines);
	if (!weights)
		return -ENOMEM;
	*ret_weights = weights;
	*ret_n = kept;
	return 0;
}

void ledger_accounts__free(struct ledger_account *accounts, uint32_t n_owners)
{
	for (uint32_t i = 0; accounts && i < n_owners; i++) {
		free(accounts[i].rows);
		free(accounts[i].reasons);
	}
	free(accounts);
}

int ledger_rows__fit(const struct pic_row *rows, size_t n, const uint64_t *states_ns,
		     unsigned n_states, const uint32_t *stacks, struct pic_row **ret_rows,
		     size_t *ret_n)
{
	uint64_t want[LEDGER_STATES] = {0}, have[LEDGER_STATES] = {0};
	uint64_t seen[LEDGER_STATES] = {0}, given[LEDGER_STATES] = {0};
	struct pic_row *v = calloc(n + LEDGER_STATES, sizeof(*v));
	size_t kept = 0;

	if (!v)
		return -ENOMEM;
	n_states = MIN(n_states, (unsigned)LEDGER_STATES);
	memcpy(want, states_ns, n_states * sizeof(*want));
	for (size_t i = 0; i < n; i++)
		have[rows[i].state % LEDGER_STATES] += rows[i].ns;
	for (size_t i = 0; i < n; i++) {
		unsigned s = rows[i].state % LEDGER_STATES;

		v[kept] = rows[i];
		seen[s] += rows[i].ns;
		if (have[s])
			v[kept].ns = share(want[s], (int64_t)seen[s], (int64_t)have[s]) - given[s];
		given[s] += v[kept].ns;
		kept += v[kept].ns || v[kept].samples;
	}
	for (unsigned s = 0; s < n_states; s++)
		if (!have[s] && want[s])
			v[kept++] = (struct pic_row){
				.stack = stacks[s], .state = (uint8_t)s, .ns = want[s]};
	*ret_rows = v;
	*ret_n = kept;
	return 0;
}
