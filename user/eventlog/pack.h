/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack: models as bytes, and back. Logs and reports are read in a process without rights, which
 * hands over its results like this. Part of the room's public interface.
 *
 * Both sides are the same program, so numbers have their memory layout. Unpacking trusts nothing:
 * what the functions below return has every property of a model that this process has read itself
 * (indices and states within bounds, slices disjoint and in order, terminated texts, no more of
 * anything than the model's limit), or it is refused. Its contents may still be wrong, as the log
 * itself may be.
 */
#ifndef SAFESCOPED_EVENTLOG_PACK_H
#define SAFESCOPED_EVENTLOG_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cctree;
struct el_annot;
struct el_heap;
struct el_info;
struct el_match;
struct el_profile;
struct el_sched;
struct eventlog_stats;
struct prof_info;

/* ── bytes ───────────────────────────────────────────────────────────────────────────────── */

/* The output: `size` bytes, owned by the caller. `full`: something did not fit and is left out. */
struct pack {
	uint8_t *data;
	size_t len, size;
	bool full;
};

/* The input that is left. `bad`: it is refused, and everything taken from now on is zero. */
struct unpack {
	const uint8_t *data;
	size_t left;
	bool bad;
};

void pack__bytes(struct pack *p, const void *bytes, size_t len);
void unpack__bytes(struct unpack *u, void *ret_bytes, size_t len);
/* Marks the input as bad unless `good`. Returns true if it is not bad. */
bool unpack__require(struct unpack *u, bool good);
/* A bool taken as part of a struct may have any value; one that is not 0 or 1 is bad. */
void unpack__flag(struct unpack *u, const bool *flag);

#define PACK(p, what)	(pack__bytes((p), &(what), sizeof(what)))
#define UNPACK(u, what) (unpack__bytes((u), &(what), sizeof(what)))

/* ── models, finished ────────────────────────────────────────────────────────────────────── */

/*
 * X__unpack() returns 0, and the caller frees *ret; -EBADMSG: refused; -ENOMEM. Models that refer
 * to a tree must be unpacked with the tree that was packed before them.
 */
void cctree__pack(const struct cctree *tree, struct pack *p);
int cctree__unpack(struct unpack *u, struct cctree **ret_tree);

void el_profile__pack(const struct el_profile *profile, struct pack *pack);
int el_profile__unpack(struct unpack *u, struct el_profile **ret_profile);

void el_sched__pack(const struct el_sched *sched, struct pack *p);
int el_sched__unpack(struct unpack *u, struct el_sched **ret_sched);

void el_annot__pack(const struct el_annot *annot, struct pack *p);
int el_annot__unpack(struct unpack *u, struct cctree *tree, struct el_annot **ret_annot);

void el_heap__pack(const struct el_heap *heap, struct pack *p);
int el_heap__unpack(struct unpack *u, struct el_heap **ret_heap);

void el_info__pack(const struct el_info *info, struct pack *p);
int el_info__unpack(struct unpack *u, struct el_info **ret_info);

void el_match__pack(const struct el_match *match, struct pack *p);
int el_match__unpack(struct unpack *u, struct el_match **ret_match);

void eventlog_stats__pack(const struct eventlog_stats *stats, struct pack *p);
int eventlog_stats__unpack(struct unpack *u, struct eventlog_stats *ret_stats);

/* A report: its tree and everything else in it. */
void prof__pack(const struct cctree *tree, const struct prof_info *info, struct pack *p);
int prof__unpack(struct unpack *u, struct cctree **ret_tree, struct prof_info *ret_info);

#endif
