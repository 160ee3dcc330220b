/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ledger: the table of bookings, and the difference of two tables. */
#include "ledger_priv.h"

#define RECENT_FROM_LINES 128

int ledger__new(const struct ledger_opts *opts, struct ledger **ret_ledger)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->opts = *opts;
	if (!l->opts.max_rows)
		l->opts.max_rows = LEDGER_MAX_ROWS;
	*ret_ledger = l;
	return 0;
}

void ledger__free(struct ledger *ledger)
{
	struct booking *b, *next;

	if (!ledger)
		return;
	HASH_ITER (hh, ledger->table, b, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(ledger->table, b);
		free(b);
	}
	free(ledger->recent);
	free(ledger);
}

void ledger__set_period(struct ledger *ledger, uint64_t period_ns)
{
	ledger->opts.period_ns = period_ns;
}

uint64_t ledger__left_out(const struct ledger *ledger)
{
	return ledger->left_out;
}

int booking__compare(const struct booking_key *a, const struct booking_key *b)
{
	const uint32_t x[] = {a->owner, a->class, a->detail, a->kind, a->state, a->stack};
	const uint32_t y[] = {b->owner, b->class, b->detail, b->kind, b->state, b->stack};

	for (size_t i = 0; i < ARRAY_SIZE(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

/* ── booking ─────────────────────────────────────────────────────────────────────────────── */

/* The cache slot of a booking. */
static struct booking **recent_of(struct ledger *l, const struct booking_key *key)
{
	uint32_t rest = key->kind | (uint32_t)key->class << 8 | (uint32_t)key->state << 16;
	uint32_t mix = (key->owner * 0x85ebca6bU + key->detail * 0xc2b2ae35U +
			key->stack * 0x27d4eb2fU + rest) *
		       0x9e3779b1U;

	return l->recent ? &l->recent[mix >> (32 - RECENT_BOOKINGS_BITS)]
			 : &l->few[mix >> (32 - FEW_BOOKINGS_BITS)];
}

/* Call before the booking is freed. */
static void forget_recent(struct ledger *l, const struct booking *b)
{
	struct booking **recent = recent_of(l, &b->key);

	if (*recent == b)
		*recent = NULL;
}

/* Compares by members: reading as a whole what was just written in parts stalls the CPU. */
static bool is_same(const struct booking_key *a, const struct booking_key *b)
{
	return a->stack == b->stack && a->owner == b->owner && a->detail == b->detail &&
	       a->kind == b->kind && a->class == b->class && a->state == b->state;
}

static struct booking *find(struct ledger *l, const struct booking_key *key)
{
	struct booking **recent = recent_of(l, key), *b;

	if (*recent && is_same(&(*recent)->key, key))
		return *recent;
	HASH_FIND(hh, l->table, key, sizeof(*key), b);
	if (b)
		*recent = b;
	return b;
}

/* Most ledgers of short programs never get the larger cache. */
static void add_recent(struct ledger *l)
{
	if (!l->recent && HASH_COUNT(l->table) >= RECENT_FROM_LINES)
		l->recent = calloc(RECENT_BOOKINGS, sizeof(struct booking *));
}

/* Makes the key less specific when there is no room for another line; the sums stay right. */
static void generalize(struct ledger *l, struct booking_key *key)
{
	l->left_out++;
	switch ((enum booking_kind)key->kind) {
	case BOOKING_SAMPLE:
	case BOOKING_GUESS:
	case BOOKING_OFF:
	case BOOKING_WEIGHT:
		key->stack = l->opts.full_stack;
		break;
	case BOOKING_REASON:
		key->stack = key->detail = UINT32_MAX;
		return;
	case BOOKING_TIME:
		break;
	}
	if (key->class == LEDGER_CALL)
		key->detail = UINT32_MAX;
}

/* Adds `from`, times `sign`, under `key`. */
static int add(struct ledger *l, const struct booking_key *key, const struct booking *from,
	       int sign)
{
	struct booking_key general;
	struct booking *b;

	if (!from->n)
		return 0;
	b = find(l, key);
	if (!b && HASH_COUNT(l->table) >= l->opts.max_rows) {
		general = *key;
		generalize(l, &general);
		key = &general;
		b = find(l, key);
	}
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->key = *key;
		HASH_ADD(hh, l->table, key, sizeof(b->key), b);
		if (!b->hh.tbl) {
			free(b);
			return -ENOMEM;
		}
		add_recent(l);
	}
	b->n += sign * from->n;
	b->times += sign * from->times;
	b->longest = MAX(b->longest, from->longest);
	return 0;
}

static int book(struct ledger *l, const struct booking_key *key, int64_t n)
{
	struct booking b = {.n = n};

	if (key->kind == BOOKING_OFF) {
		b.times = n > 0 ? 1 : -1;
		b.longest = n > 0 ? (uint64_t)n : 0;
	}
	return add(l, key, &b, 1);
}

static struct booking_key class_key(enum booking_kind kind, const struct ledger_place *place,
				    uint32_t state, uint32_t stack)
{
	return (struct booking_key){.owner = place->owner,
				    .detail = place->detail,
				    .stack = stack,
				    .kind = (uint8_t)kind,
				    .class = (uint8_t)place->class,
				    .state = (uint8_t)state};
}

static int book_class(struct ledger *l, enum booking_kind kind, const struct ledger_place *place,
		      uint32_t state, uint32_t stack, int64_t n)
{
	const struct booking_key key = class_key(kind, place, state, stack);

	return book(l, &key, n);
}

int ledger__time(struct ledger *ledger, const struct ledger_place *place, int64_t ns)
{
	return book_class(ledger, BOOKING_TIME, place, 0, 0, ns);
}

int ledger__sample(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
		   uint32_t stack, int64_t samples)
{
	return book_class(ledger, BOOKING_SAMPLE, place, state, stack, samples);
}

int ledger__guess(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
		  uint32_t stack, int64_t ns)
{
	return book_class(ledger, BOOKING_GUESS, place, state, stack, ns);
}

int ledger__guessed_time(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
			 uint32_t stack, int64_t ns)
{
	const struct booking_key key = class_key(BOOKING_GUESS, place, state, stack);
	const struct booking b = {.n = ns, .times = ns};

	return add(ledger, &key, &b, 1);
}

int ledger__off(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t stack, int64_t ns)
{
	const struct ledger_place off = {.owner = owner, .class = LEDGER_CLASSES};

	return book_class(ledger, BOOKING_OFF, &off, state, stack, ns);
}

int ledger__on(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t stack, int64_t ns)
{
	const struct ledger_place on = {
		.owner = owner, .detail = BOOKING_ON_CPU, .class = LEDGER_CLASSES};

	return book_class(ledger, BOOKING_OFF, &on, state, stack, ns);
}

int ledger__reason(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t syscall,
		   uint32_t function, int64_t ns)
{
	const struct ledger_place off = {
		.owner = owner, .detail = syscall, .class = LEDGER_CLASSES};

	return book_class(ledger, BOOKING_REASON, &off, state, function, ns);
}

int ledger__weight(struct ledger *ledger, uint32_t owner, uint32_t stack, int64_t n,
		   int64_t samples)
{
	const struct booking_key key = {
		.owner = owner, .stack = stack, .kind = BOOKING_WEIGHT, .class = LEDGER_CLASSES};
	const struct booking b = {.n = n, .times = samples};

	return add(ledger, &key, &b, 1);
}

int ledger__merge_owners(struct ledger *ledger, const uint32_t *to, uint32_t n)
{
	struct booking *b, *next;
	int err = 0;

	HASH_ITER (hh, ledger->table, b, next) {
		struct booking_key key = b->key;

		if (key.owner >= n || to[key.owner] == UINT32_MAX || to[key.owner] == key.owner)
			continue;
		key.owner = to[key.owner];
		err = add(ledger, &key, b, 1);
		if (err)
			return err;
		forget_recent(ledger, b);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(ledger->table, b);
		free(b);
	}
	return 0;
}

/* ── readings ────────────────────────────────────────────────────────────────────────────── */

int ledger__add(struct ledger *ledger, const struct ledger *other, int sign)
{
	struct booking *b, *next;
	int err;

	HASH_ITER (hh, other->table, b, next) {
		err = add(ledger, &b->key, b, sign < 0 ? -1 : 1);
		if (err)
			return err;
	}
	return 0;
}

int ledger__copy(const struct ledger *ledger, struct ledger **ret_copy)
{
	struct ledger *copy;
	int err = ledger__new(&ledger->opts, &copy);

	if (err)
		return err;
	err = ledger__add(copy, ledger, 1);
	if (err) {
		ledger__free(copy);
		return err;
	}
	copy->left_out = ledger->left_out;
	*ret_copy = copy;
	return 0;
}
