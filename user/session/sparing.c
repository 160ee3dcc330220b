/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sparing: limits safescoped's own CPU use to --max-cpu. Above the limit one sample in two is
 * taken, then one in four, and so on. Below a fourth of the limit the number is doubled at once,
 * which cannot be too much. But not all of the CPU use shrinks with the samples, so it may never
 * fall that low: after a number of calm looks in a row, well below the limit, doubling is tried,
 * and each time that this proves too much, the next try waits for twice as many.
 */
#include "session_priv.h"

/* Long enough to include the end of a window, which takes more CPU than the time between two. */
#define LOOK_EVERY_NS 5000000000ULL
/* Upper limit of the ratio: so few samples are of little use, but show that the session goes on. */
#define MOST_SPARING 64U
#define SURE_SHARE   0.25
#define CALM_SHARE   0.7
/* Calm looks in a row before doubling is tried, initially and at most, and the number of looks in a
 * try. */
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
	/* the try has succeeded */
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
		/* from now on, when attaching to everything that runs is finished */
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
		log_warn("safescoped itself uses %.1f %% of a CPU, more than --max-cpu %g: fewer "
			 "samples are taken",
			 percent, max);
	log_verbose("one sample in %u is taken: %.1f %% of a CPU", sp->every, percent);
	kernel__sample_every(s->kernel, sp->every);
	timeline__set_period(s->tl, sp->every * 1000000000ULL / MAX(s->opts->frequency_hz, 1U));
}
