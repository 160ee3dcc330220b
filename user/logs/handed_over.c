/* SPDX-License-Identifier: GPL-2.0-or-later */
/* handed_over: transfers the models of a log from the process without rights that has read it. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "eventlog/pack.h"
#include "logs_priv.h"

/* The models' own state that is known once the log has been read. */
struct packed_models {
	uint64_t from_ns, to_ns;
	int64_t guess_ns, other_ns;
	uint8_t opened, closed, guessed, has_match;
	uint8_t wall_seen, unsure, early;
};

void log_models__pack(const struct log_models *m, struct pack *p)
{
	const struct packed_models packed = {.from_ns = m->window.from,
					     .to_ns = m->window.to,
					     .guess_ns = m->guess_ns,
					     .other_ns = m->other_ns,
					     .opened = m->window.opened,
					     .closed = m->window.closed,
					     .guessed = m->guessed,
					     .has_match = m->match != NULL,
					     .wall_seen = m->wall_seen,
					     .unsure = m->unsure,
					     .early = m->early};

	PACK(p, packed);
	eventlog_stats__pack(log_models__stats(m), p);
	el_profile__pack(m->profile, p);
	el_sched__pack(m->sched, p);
	el_info__pack(m->info, p);
	el_annot__pack(m->annot, p);
	el_heap__pack(m->heap, p);
	if (m->match)
		el_match__pack(m->match, p);
}

static int unpack_models(struct log_models *m, struct unpack *u, bool has_match)
{
	int err = eventlog_stats__unpack(u, &m->stats);

	if (!err)
		err = el_profile__unpack(u, &m->profile);
	if (!err)
		err = el_sched__unpack(u, &m->sched);
	if (!err)
		err = el_info__unpack(u, &m->info);
	if (!err)
		err = el_annot__unpack(u, el_profile__tree(m->profile), &m->annot);
	if (!err)
		err = el_heap__unpack(u, &m->heap);
	if (!err && has_match)
		err = el_match__unpack(u, &m->match);
	/* nothing may follow */
	return err || unpack__require(u, !u->left) ? err : -EBADMSG;
}

int log_models__unpack(struct unpack *u, const struct log_part *part,
		       struct log_models **ret_models)
{
	struct log_models *m = calloc(1, sizeof(*m));
	struct packed_models packed;
	int err;

	if (!m)
		return -ENOMEM;
	m->bytes = log_models__heap_in_use();
	UNPACK(u, packed);
	m->window = (struct el_window){.from = packed.from_ns,
				       .to = packed.to_ns,
				       .from_marker = part ? part->from_marker : NULL,
				       .to_marker = part ? part->to_marker : NULL,
				       .opened = packed.opened,
				       .closed = packed.closed,
				       .attached = true};
	m->guess_ns = packed.guess_ns;
	m->other_ns = packed.other_ns;
	m->guessed = packed.guessed;
	m->wall_seen = packed.wall_seen;
	m->unsure = packed.unsure;
	m->early = packed.early;
	/* bounded, so that sums made by the join cannot overflow */
	unpack__require(u, packed.guess_ns >= -INT64_MAX / 2 && packed.guess_ns <= INT64_MAX / 2 &&
				   packed.other_ns >= -INT64_MAX / 2 &&
				   packed.other_ns <= INT64_MAX / 2 && packed.has_match == !part);
	err = unpack_models(m, u, !part);
	if (err) {
		log_models__free(m);
		return err;
	}
	m->bytes = log_models__heap_in_use() - MIN(m->bytes, log_models__heap_in_use());
	*ret_models = m;
	return 0;
}
