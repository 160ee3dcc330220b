/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle: the helper processes that demangle symbols, a cache of their answers, and who may use
 * them. */
#include "demangle_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "confine/confine.h"

#define HELPER_MEMORY  (16ULL << 20)
#define HELPER_CPU_S   20
#define HELPER_IDLE_MS 5000
/*
 * An honest symbol takes microseconds, but the helper has to start. libiberty takes exponential
 * time for some Rust symbols of 40 bytes: fuzz_demangle finds them.
 */
#define ANSWER_MS  1000
#define HONEST_NS  (20000000ULL * machine__slowness())
#define CACHED_MAX 65536

/* ── the helper ──────────────────────────────────────────────────────────────────────────── */

/* Answers "" on failure. */
static size_t answer(void *ctx, const void *question, size_t len, void *ret_answer)
{
	char name[DEMANGLE_MAX_MANGLED + 1], *plain = ret_answer;

	(void)ctx;
	memcpy(name, question, MIN(len, sizeof(name) - 1));
	name[MIN(len, sizeof(name) - 1)] = '\0';
	if (demangle_here(name, plain, DEMANGLE_MAX_PLAIN))
		plain[0] = '\0';
	return strlen(plain) + 1;
}

static const struct confine_service service = {
	.how = {.name = "safescoped:name", .memory = HELPER_MEMORY, .cpu_s = HELPER_CPU_S},
	.answer = answer,
	.max_question = DEMANGLE_MAX_MANGLED,
	.max_answer = DEMANGLE_MAX_PLAIN,
	.idle_ms = HELPER_IDLE_MS,
};

/* ── what it answered ────────────────────────────────────────────────────────────────────── */

struct cached {
	UT_hash_handle hh;
	char *plain; /* stored after the key; NULL: show the symbol */
	/* Answers are kept per user, since his helper may have been taken over: user id, then the
	 * name. */
	char key[];
};

struct demangler {
	struct confine_pool *pool;
	struct cached *cache;
};

int demangler__new(struct demangler **ret_demangler)
{
	struct demangler *d = calloc(1, sizeof(*d));
	int err = d ? confine_pool__new(&service, NULL, &d->pool) : -ENOMEM;

	if (err) {
		free(d);
		return err;
	}
	*ret_demangler = d;
	return 0;
}

static void clear_cache(struct demangler *d)
{
	struct cached *c, *next;

	HASH_ITER (hh, d->cache, c, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of next */
		HASH_DEL(d->cache, c);
		free(c);
	}
	d->cache = NULL;
}

void demangler__free(struct demangler *d)
{
	if (!d)
		return;
	clear_cache(d);
	confine_pool__free(d->pool);
	free(d);
}

/* The cache's key. */
struct key {
	size_t len;
	char bytes[sizeof(uid_t) + DEMANGLE_MAX_MANGLED];
};

static void make_key(struct key *key, uid_t user, const char *name, size_t len)
{
	memcpy(key->bytes, &user, sizeof(user));
	memcpy(key->bytes + sizeof(user), name, len);
	key->len = sizeof(user) + len;
}

static void keep(struct demangler *d, const struct key *key, const char *plain)
{
	size_t plain_size = plain ? strlen(plain) + 1 : 0;
	struct cached *c;

	if (HASH_COUNT(d->cache) >= CACHED_MAX)
		clear_cache(d);
	c = malloc(sizeof(*c) + key->len + plain_size);
	if (!c)
		return;
	memcpy(c->key, key->bytes, key->len);
	c->plain = plain ? memcpy(c->key + key->len, plain, plain_size) : NULL;
	HASH_ADD(hh, d->cache, key, (unsigned int)key->len, c);
	if (!c->hh.tbl)
		free(c);
}

/* ── asking it ───────────────────────────────────────────────────────────────────────────── */

static int ask(struct demangler *d, uid_t user, const char *name, size_t len,
	       char ret_plain[DEMANGLE_MAX_PLAIN])
{
	size_t got = 0;
	int err =
		confine_pool__ask(d->pool, user, name, len, ANSWER_MS, HONEST_NS, ret_plain, &got);

	if (err)
		return err;
	/* must be exactly one string */
	if (got == 0 || strnlen(ret_plain, got) != got - 1)
		return -EIO;
	return ret_plain[0] ? 0 : -ENOENT;
}

const char *demangle(struct demangler *d, uid_t user, const char *name, char *buf, size_t size,
		     bool *later)
{
	uint64_t began = time__monotonic_ns();
	char plain[DEMANGLE_MAX_PLAIN];
	struct cached *c;
	struct key key;
	size_t len;
	int err;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return name;
	len = strnlen(name, DEMANGLE_MAX_MANGLED);
	if (len == DEMANGLE_MAX_MANGLED)
		return name;
	make_key(&key, user, name, len);
	HASH_FIND(hh, d->cache, key.bytes, (unsigned int)key.len, c);
	if (!c) {
		err = ask(d, user, name, len, plain);
		/* another user may still be served, or there may be room for a helper later */
		if (err == -EBUSY || err == -ETIMEDOUT) {
			*later |= confine_pool__had_no_time(err, began, ANSWER_MS);
			return name;
		}
		if (!err)
			snprintf(buf, size, "%s", plain);
		keep(d, &key, err ? NULL : plain);
		return err ? name : buf;
	}
	if (!c->plain)
		return name;
	snprintf(buf, size, "%s", c->plain);
	return buf;
}
