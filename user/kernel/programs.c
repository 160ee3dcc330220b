/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs: the executables that kernel__learn() learnt, as they are in the map `programs`, and
 * each user's share of that map. A program is forgotten when it is the oldest of a user who has
 * reached the limit, or when its call probes come off its file, since its next process would not be
 * covered from its first instruction.
 */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "base/hash.h"
#include "base/shares.h"
#include "kernel_priv.h"

struct program {
	struct wire_program_key key;
	uid_t uid; /* whose account it is on */
	const struct probe *suspend, *resume;
	UT_hash_handle hh; /* in the order in which they were last learnt */
};

struct programs {
	int map;
	struct program *all;
	struct shares *shares; /* of `all`, by address */
};

int programs__new(int map, uint32_t max, struct programs **ret_programs)
{
	struct programs *programs = calloc(1, sizeof(*programs));
	int err;

	if (!programs)
		return -ENOMEM;
	err = shares__new(max, UINT64_MAX, &programs->shares);
	if (err) {
		free(programs);
		return err;
	}
	programs->map = map;
	*ret_programs = programs;
	return 0;
}

void programs__free(struct programs *programs)
{
	if (!programs)
		return;
	HASH_FREE(programs->all);
	shares__free(programs->shares);
	free(programs);
}

static void forget(struct programs *programs, struct program *p)
{
	bpf_map_delete_elem(programs->map, &p->key);
	shares__leave(programs->shares, (uintptr_t)p, p->uid);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc,clang-analyzer-core.NullDereference): uthash */
	HASH_DEL(programs->all, p);
	free(p);
}

static struct program *find(const struct programs *programs, const struct wire_program_key *key)
{
	struct program *p;

	HASH_FIND(hh, programs->all, key, sizeof(*key), p);
	return p;
}

static struct program *oldest_of(const struct programs *programs, uid_t uid)
{
	struct program *p = programs->all;

	while (p && p->uid != uid)
		p = p->hh.next;
	return p;
}

/* Makes room for one more program of the user's, at the expense of the user's oldest ones if
 * need be. */
static int make_room(struct programs *programs, uid_t uid)
{
	struct program *oldest;
	int err;

	while ((err = shares__ask(programs->shares, uid, 0)) == -EDQUOT &&
	       (oldest = oldest_of(programs, uid)))
		forget(programs, oldest);
	return err;
}

/* -ENOMEM: `p` has been freed. */
static int insert(struct programs *programs, struct program *p)
{
	HASH_ADD(hh, programs->all, key, sizeof(p->key), p);
	if (p->hh.tbl)
		return 0;
	/* uthash ran out of memory */
	bpf_map_delete_elem(programs->map, &p->key);
	shares__leave(programs->shares, (uintptr_t)p, p->uid);
	free(p);
	return -ENOMEM;
}

static int add(struct programs *programs, const struct wire_program_key *key, uid_t uid,
	       struct program **ret_program)
{
	int err = make_room(programs, uid);
	struct program *p;

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->key = *key;
	p->uid = uid;
	err = shares__use(programs->shares, (uintptr_t)p, uid, 0);
	if (err) {
		free(p);
		return err;
	}
	err = insert(programs, p);
	if (!err)
		*ret_program = p;
	return err;
}

int programs__learn(struct programs *programs, const struct wire_program_key *key,
		    const struct wire_target *wire, uid_t uid, const struct probe *suspend,
		    const struct probe *resume)
{
	struct program *p = find(programs, key);
	int err;

	/* a known program needs no room and stays on its account, and is now the last to be
	 * forgotten */
	if (p) {
		HASH_DEL(programs->all, p);
		err = insert(programs, p);
	} else {
		err = add(programs, key, uid, &p);
	}
	if (err)
		return err;
	p->suspend = suspend;
	p->resume = resume;
	if (bpf_map_update_elem(programs->map, key, wire, BPF_ANY) == 0)
		return 0;
	err = -errno;
	forget(programs, p);
	return err;
}

void programs__unlearn(struct programs *programs, const struct wire_program_key *key)
{
	struct program *p = find(programs, key);

	if (p)
		forget(programs, p);
}

void programs__probe_gone(struct programs *programs, const struct probe *probe)
{
	struct program *p, *next;

	for (p = programs->all; p; p = next) {
		next = p->hh.next;
		if (p->suspend == probe || p->resume == probe)
			forget(programs, p);
	}
}
