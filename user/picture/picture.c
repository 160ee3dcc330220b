/* SPDX-License-Identifier: GPL-2.0-or-later */
/* picture: the container of a session's result, and the functions that fill it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "lost.h"
#include "make.h"

#define MAX_TARGETS 65536
#define MAX_KEPT    ((size_t)1 << 24)
#define MAX_MISSING 1024
/* Programs whose ended processes have sums of their own. */
#define MAX_ENDED 1024

struct target_entry {
	struct pic_target pub;
	const char **missing;
	size_t missing_cap;
};

struct picture {
	struct pic_session session;
	struct frame_table frames;
	struct stack_table stacks;
	uint32_t marks[MARK_MAX];
	uint32_t state_frames[ST_MAX];
	struct target_entry **targets;
	size_t n_targets, targets_cap;
	void **kept; /* freed with the picture */
	size_t n_kept, kept_cap;
	struct pic_ended *ended;
	size_t ended_cap;
};

/* ── its life ────────────────────────────────────────────────────────────────────────────── */

static int make_marks(struct picture *pic)
{
	static const struct {
		enum pic_frame_kind kind;
		const char *name;
	} marks[MARK_MAX] = {
		[MARK_GC] = {TF_STATE, "[GC]"},
		[MARK_RTS] = {TF_STATE, "[RTS]"},
		[MARK_FOREIGN] = {TF_STATE, "[foreign code]"},
		[MARK_NO_STACK] = {TF_MARK, "[no stack]"},
		[MARK_NO_SAMPLE] = {TF_MARK, "[no sample]"},
		[MARK_TRUNCATED] = {TF_MARK, "[truncated]"},
		[MARK_TOO_MANY] = {TF_MARK, "[too many different frames]"},
		[MARK_STG] = {TF_MARK, "[Haskell stack]"},
	};
	char name[64];
	int err = 0;

	for (unsigned i = 0; !err && i < MARK_MAX; i++)
		err = picture__add_text(pic, marks[i].kind, marks[i].name, &pic->marks[i]);
	for (unsigned i = 0; !err && i < ST_MAX; i++) {
		pic->state_frames[i] = UINT32_MAX;
		/* states on the CPU need no frame, and idleness has no stack */
		if (state__on_cpu(LANE_THREAD, i) || i == ST_IDLE || i == ST_SAFE_CALL)
			continue;
		snprintf(name, sizeof(name), "[%s]", state__title(LANE_THREAD, i));
		err = picture__add_text(pic, TF_STATE, name, &pic->state_frames[i]);
	}
	return err;
}

int picture__new(size_t max_stacks, struct picture **ret_picture)
{
	struct picture *pic = calloc(1, sizeof(*pic));
	uint32_t full;
	int err;

	if (!pic)
		return -ENOMEM;
	err = frames__new(&pic->frames);
	if (!err)
		err = make_marks(pic);
	if (!err)
		err = picture__add_text(pic, TF_MARK, "[too many different stacks]", &full);
	if (!err)
		err = stacks__new(&pic->stacks, max_stacks, full);
	if (err) {
		picture__free(pic);
		return err;
	}
	*ret_picture = pic;
	return 0;
}

static void free_target(struct target_entry *entry)
{
	free(entry->missing);
	free(entry);
}

void picture__free(struct picture *pic)
{
	if (!pic)
		return;
	for (size_t i = 0; i < pic->n_targets; i++)
		free_target(pic->targets[i]);
	free(pic->targets);
	for (size_t i = 0; i < pic->n_kept; i++)
		free(pic->kept[i]);
	free(pic->kept);
	free(pic->ended);
	stacks__free(&pic->stacks);
	frames__free(&pic->frames);
	free(pic);
}

/* ── making it ───────────────────────────────────────────────────────────────────────────── */

struct pic_session *picture__edit_session(struct picture *pic)
{
	return &pic->session;
}

void picture__set_period(struct picture *pic, uint64_t period_ns)
{
	uint64_t hz = period_ns ? (1000000000ULL + period_ns / 2) / period_ns : 0;

	pic->session.period_ns = period_ns;
	pic->session.frequency_hz = period_ns ? (uint32_t)MAX(hz, 1ULL) : 0;
}

int picture__add_target(struct picture *pic, struct pic_target **ret_target)
{
	struct target_entry *entry;
	int err = ARRAY_RESERVE(pic->targets, pic->targets_cap, pic->n_targets + 1, MAX_TARGETS);

	if (err)
		return err;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	pic->targets[pic->n_targets++] = entry;
	*ret_target = &entry->pub;
	return 0;
}

void picture__remove_target(struct picture *pic, struct pic_target *target)
{
	size_t i = pic->n_targets;

	while (i-- > 0)
		if (&pic->targets[i]->pub == target)
			break;
	if (i >= pic->n_targets)
		return;
	free_target(pic->targets[i]);
	pic->n_targets--;
	memmove(&pic->targets[i], &pic->targets[i + 1],
		(pic->n_targets - i) * sizeof(struct target_entry *));
}

size_t picture__n_kept(const struct picture *pic)
{
	return pic->n_kept;
}

/* Finds or adds the sums of a program. The last entry is shared by all programs beyond the
 * limit. */
static int get_ended(struct picture *pic, const char *exe, struct pic_ended **ret_ended)
{
	struct pic_session *session = &pic->session;
	size_t i = 0;
	int err;

	/* equal interned strings have the same address */
	while (i < session->n_ended && pic->ended[i].exe != exe)
		i++;
	if (i >= MAX_ENDED) {
		i = MAX_ENDED;
		exe = picture__string(pic, "");
	}
	if (i >= session->n_ended) {
		err = ARRAY_RESERVE(pic->ended, pic->ended_cap, i + 1, MAX_ENDED + 1);
		if (err)
			return err;
		pic->ended[i] = (struct pic_ended){.exe = exe};
		session->n_ended = i + 1;
		session->ended = pic->ended;
	}
	*ret_ended = &pic->ended[i];
	return 0;
}

static void add_up(struct pic_ended *ended, const struct pic_target *target)
{
	const struct pic_lanes *threads = &target->lanes[LANE_THREAD];

	ended->processes++;
	for (size_t i = 0; i < threads->n; i++) {
		const struct pic_lane *lane = &threads->v[i];

		ended->threads += lane->threads;
		if (lane->cpu_ns != UINT64_MAX)
			ended->cpu_ns += lane->cpu_ns;
		for (unsigned s = 0; s < LANE_STATES; s++)
			ended->states_ns[s] += lane->states_ns[s];
	}
	ended->samples += target->quality.samples;
	for (size_t i = 0; i < target->n_calls; i++) {
		ended->safe_calls += target->calls[i].calls;
		if (target->calls[i].wall_ns != UINT64_MAX)
			ended->safe_call_ns += target->calls[i].wall_ns;
	}
	if (target->gc.known && !target->gc.inferred) {
		ended->gcs += target->gc.count;
		ended->gc_pause_ns += target->gc.pause_ns;
	}
}

int picture__retire_target(struct picture *pic, struct pic_target *target, size_t n_kept)
{
	struct pic_ended *ended;
	int err = get_ended(pic, target->exe, &ended);

	if (!err)
		add_up(ended, target);
	picture__remove_target(pic, target);
	while (pic->n_kept > n_kept)
		free(pic->kept[--pic->n_kept]);
	return err;
}

const char *picture__string(struct picture *pic, const char *s)
{
	uint32_t id;

	if (!s ||
	    strtab__add(pic->frames.strings, s, MIN(strlen(s), (size_t)STRTAB_MAX_STRING), &id))
		return "";
	return strtab__get(pic->frames.strings, id);
}

int picture__add_frame(struct picture *pic, const struct pic_frame *frame, uint32_t *ret_frame)
{
	return frames__add(&pic->frames, frame, ret_frame);
}

int picture__set_place(struct picture *pic, uint32_t frame, const struct pic_place *place)
{
	return frames__set_place(&pic->frames, frame, place);
}

int picture__add_text(struct picture *pic, enum pic_frame_kind kind, const char *name,
		      uint32_t *ret_frame)
{
	const struct pic_frame frame = {
		.name = name,
		.file = kind == TF_STATE ? "state" : "",
		.kind = kind,
	};

	return frames__add(&pic->frames, &frame, ret_frame);
}

int picture__add_stack(struct picture *pic, const uint32_t *frames, uint32_t n, uint32_t *ret_stack)
{
	return stacks__add(&pic->stacks, frames, n, ret_stack);
}

uint32_t picture__full_stack(const struct picture *pic)
{
	return pic->stacks.full;
}

uint64_t picture__stacks_left_out(const struct picture *pic)
{
	return pic->stacks.left_out;
}

void *picture__keep(struct picture *pic, void *array)
{
	if (ARRAY_RESERVE(pic->kept, pic->kept_cap, pic->n_kept + 1, MAX_KEPT))
		return NULL;
	pic->kept[pic->n_kept++] = array;
	return array;
}

void *picture__alloc(struct picture *pic, size_t n, size_t size)
{
	void *array = calloc(n ? n : 1, size);

	if (array && !picture__keep(pic, array)) {
		free(array);
		return NULL;
	}
	return array;
}

int picture__add_missing(struct picture *pic, struct pic_target *target, const char *fmt, ...)
{
	struct target_entry *entry = (struct target_entry *)target; /* its first member */
	char text[1024];
	va_list args;
	int err = ARRAY_RESERVE(entry->missing, entry->missing_cap, target->n_missing + 1,
				MAX_MISSING);

	if (err)
		return err;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	entry->missing[target->n_missing++] = picture__string(pic, text);
	target->missing = entry->missing;
	return 0;
}

bool picture__drop_missing(struct pic_target *target, const char *text)
{
	struct target_entry *entry = (struct target_entry *)target; /* its first member */

	for (size_t i = 0; i < target->n_missing; i++) {
		if (strcmp(entry->missing[i], text) != 0)
			continue;
		target->n_missing--;
		memmove(&entry->missing[i], &entry->missing[i + 1],
			(target->n_missing - i) * sizeof(entry->missing[0]));
		return true;
	}
	return false;
}

int picture__set_lost(struct picture *pic, struct pic_target *target, const char *cause, uint64_t n)
{
	size_t i = 0;

	while (i < target->n_lost && strcmp(target->lost[i].cause, cause) != 0)
		i++;
	if (i == ARRAY_SIZE(target->lost))
		return -ENOSPC;
	if (i == target->n_lost)
		target->lost[target->n_lost++].cause = picture__string(pic, cause);
	target->lost[i].n = n;
	return 0;
}

void picture__mark_paused(const struct picture *pic, struct pic_target *target, uint64_t end_ns)
{
	uint64_t end = MIN(end_ns, pic->session.end_ns);
	uint64_t wall = end > target->attach_ns ? end - target->attach_ns : 0;
	/* a pause is over only when the daemon turns again, maybe after the process's end */
	uint64_t after = target->held_up_until_ns > end ? target->held_up_until_ns - end : 0;
	uint64_t paused = target->probes_paused_ns - MIN(target->probes_paused_ns, after);
	struct pic_call *calls = (struct pic_call *)target->calls; /* the picture's own */

	/* pauses and missed calls of a program are only known if nothing follows it under its pid,
	 * as after an exec */
	bool followed = target->pid_reused || (target->end && !strcmp(target->end, "exec"));
	bool unknown = !target->cost_known && followed;

	paused = MIN(paused, wall);
	for (size_t i = 0; i < target->n_calls; i++) {
		calls[i].exact =
			!paused && !target->calls_missed && !target->calls_uncounted && !unknown;
		calls[i].observed_share = wall ? 1.0 - (double)paused / (double)wall : 1.0;
	}
}

uint32_t picture__mark(const struct picture *pic, enum pic_fixed_frame mark)
{
	return pic->marks[mark];
}

uint32_t picture__state_frame(const struct picture *pic, enum thread_state state)
{
	return pic->state_frames[state];
}

int picture__unsampled(struct picture *pic, const char *title, uint32_t *ret_stack)
{
	uint32_t frames[2] = {0, pic->marks[MARK_NO_SAMPLE]};
	char name[64];
	int err;

	snprintf(name, sizeof(name), "[%s]", title);
	err = picture__add_text(pic, TF_STATE, name, &frames[0]);
	return err ? err : picture__add_stack(pic, frames, ARRAY_SIZE(frames), ret_stack);
}

bool pic_lost__is_log(const char *cause)
{
	return !strncmp(cause, PIC_LOST_OF_LOG, strlen(PIC_LOST_OF_LOG));
}

bool pic_lost__is_own(const char *cause)
{
	return !strcmp(cause, PIC_LOST_BEYOND_LIMIT) || pic_lost__is_log(cause);
}

bool pic_target__lost_known(const struct pic_target *target)
{
	return target->cost_known && !target->lost_unknown;
}

uint64_t pic_target__gcs_missed(const struct pic_target *target)
{
	const struct pic_gc *gc = &target->gc;

	if (gc->logged)
		return 0;
	if (target->calls_missed && !gc->before_known)
		return PIC_GCS_UNKNOWN;
	/* the count reveals missed collections only once a later one has been seen */
	if (target->held_up_until_ns > MAX(gc->counted_ns, target->attach_ns))
		return PIC_GCS_UNKNOWN;
	/* until there was a count, nothing shows which of those before it are of this time */
	if (gc->before && !target->calls_missed && target->held_up_until_ns > target->attach_ns &&
	    gc->first_counted_ns >= target->held_up_until_ns)
		return PIC_GCS_UNKNOWN;
	return gc->missed + (target->calls_missed ? gc->before : 0);
}

/* ── readers ─────────────────────────────────────────────────────────────────────────────── */

uint64_t pic_alloc__rate(const struct pic_alloc *alloc)
{
	return human__per_second(alloc->bytes, alloc->to_ns - MIN(alloc->from_ns, alloc->to_ns));
}

const struct pic_session *picture__session(const struct picture *pic)
{
	return &pic->session;
}

size_t picture__n_targets(const struct picture *pic)
{
	return pic->n_targets;
}

const struct pic_target *picture__target(const struct picture *pic, size_t i)
{
	return i < pic->n_targets ? &pic->targets[i]->pub : NULL;
}

bool picture__is_rts(enum pic_frame_kind kind, const char *package)
{
	return kind == TF_RTS || kind == TF_GC || (package && !strcmp(package, "rts"));
}

const struct pic_frame *picture__frame(const struct picture *pic, uint32_t index)
{
	return index < pic->frames.n ? &pic->frames.v[index] : NULL;
}

const struct pic_place *picture__place(const struct picture *pic, uint32_t frame)
{
	return frames__place(&pic->frames, frame);
}

uint32_t picture__n_frames(const struct picture *pic)
{
	return (uint32_t)pic->frames.n;
}

struct pic_stack picture__stack(const struct picture *pic, uint32_t index)
{
	return stacks__get(&pic->stacks, index);
}
