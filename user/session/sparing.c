/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sparing: what safescoped itself uses of the processors, held against --max-cpu. Beyond it one
 * sample in two is taken, then one in four, and so on; when it is down to a fourth of that, which
 * twice as many samples cannot make too much, twice as many are taken again.
 */
#include "session_priv.h"

/* Long enough to have a window's end in it, which takes more than the time between two. */
#define LOOK_EVERY_NS 5000000000ULL
/* As many are far from any use, and yet show that the session goes on. */
#define MOST_SPARING 64U
#define CALM_SHARE   0.25

uint32_t sparing__next(uint32_t every, double percent, double max_percent)
{
	if (percent > max_percent)
		return MIN(2 * every, MOST_SPARING);
	if (percent < CALM_SHARE * max_percent)
		return MAX(every / 2, 1U);
	return every;
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
	uint64_t cpu, hz = s->opts->frequency_hz;
	double percent;
	uint32_t every;

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
	every = sparing__next(sp->every, percent, max);
	if (every == sp->every)
		return;
	if (every == 1)
		log_info("all samples are taken again");
	else if (sp->every == 1)
		log_warn("safescoped itself takes %.1f %% of a CPU, more than --max-cpu %g: fewer "
			 "samples are taken",
			 percent, max);
	log_verbose("one sample in %u is taken: %.1f %% of a CPU", every, percent);
	sp->every = every;
	kernel__sample_every(s->kernel, every);
	timeline__set_frequency(s->tl, MAX((uint32_t)(hz / every), 1U));
}
