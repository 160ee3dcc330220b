/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sparing: what safescoped itself uses of the processors, held against --max-cpu. Beyond it one
 * sample in two is taken, then one in four, and so on. Below a fourth of it twice as many are taken
 * again at once, which cannot be too much. But not all that it uses shrinks with the samples, so
 * that it may never come so low: where it was well below the limit for some looks in a row, twice
 * as many are tried, and each time that this was too much the next try waits twice as long.
 */
#include "session_priv.h"

/* Long enough to have a window's end in it, which takes more than the time between two. */
#define LOOK_EVERY_NS 5000000000ULL
/* As many are far from any use, and yet show that the session goes on. */
#define MOST_SPARING 64U
#define SURE_SHARE   0.25
#define CALM_SHARE   0.7
/* Looks in a row before twice as many are tried, at first and at most, and looks of a try. */
#define CALM_LOOKS     10U
#define CALM_LOOKS_MAX (64 * CALM_LOOKS)
#define TRY_LOOKS      10U

void sparing__next(struct sparing *sp, double percent, double max_percent)
{
	bool calm = percent < CALM_SHARE * max_percent;

	sp->calm_needed = MAX(sp->calm_needed, CALM_LOOKS);
	if (percent > max_percent) {
		if (sp->try_left)
			sp->calm_needed = MIN(2 * sp->calm_needed, CALM_LOOKS_MAX);
		sp->try_left = sp->calm = 0;
		sp->every = MIN(2 * sp->every, MOST_SPARING);
		return;
	}
	/* it was not too much */
	if (sp->try_left && !--sp->try_left)
		sp->calm_needed = CALM_LOOKS;
	sp->calm = calm && sp->every > 1 ? sp->calm + 1 : 0;
	if (percent < SURE_SHARE * max_percent) {
		sp->every = MAX(sp->every / 2, 1U);
		sp->calm = 0;
	} else if (sp->calm >= sp->calm_needed) {
		sp->every /= 2;
		sp->calm = 0;
		sp->try_left = TRY_LOOKS;
	}
}

static uint64_t cpu_so_far(struct session *s)
{
	uint64_t cpu_ns, max_rss;

	usage__own(&cpu_ns, &max_rss);
	return cpu_ns + ending__helpers_cpu_ns(s);
}

void sparing__turn(struct session *s, uint64_t now)
{
	double max = s->opts->max_cpu_percent;
	struct sparing *sp = &s->sparing;
	uint64_t cpu;
	uint32_t before = sp->every;
	double percent;

	/* a replay would not know of it */
	if (max <= 0 || s->capture)
		return;
	if (!sp->every) {
		/* attaching to all that runs is over */
		*sp = (struct sparing){.every = 1, .looked_ns = now, .cpu_ns = cpu_so_far(s)};
		return;
	}
	if (now - sp->looked_ns < MAX(LOOK_EVERY_NS, s->opts->window_ns))
		return;
	cpu = cpu_so_far(s);
	percent = 100.0 * (double)(cpu - sp->cpu_ns) / (double)(now - sp->looked_ns);
	sp->looked_ns = now;
	sp->cpu_ns = cpu;
	sparing__next(sp, percent, max);
	if (sp->every == before)
		return;
	if (sp->every == 1)
		log_info("all samples are taken again");
	else if (before == 1)
		log_warn("safescoped itself takes %.1f %% of a CPU, more than --max-cpu %g: fewer "
			 "samples are taken",
			 percent, max);
	log_verbose("one sample in %u is taken: %.1f %% of a CPU", sp->every, percent);
	kernel__sample_every(s->kernel, sp->every);
	timeline__set_period(s->tl, sp->every * 1000000000ULL / MAX(s->opts->frequency_hz, 1U));
}
