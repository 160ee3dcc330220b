/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/base.h"
#include "sampled_sum_priv.h"

/* The total at a time outside a part, or before the present one; extrapolated from the last one. */
static double extrapolated(const struct sampled_sum *s, uint64_t at_ns)
{
	double after =
		at_ns < s->mark_ns ? -(double)(s->mark_ns - at_ns) : (double)(at_ns - s->mark_ns);

	return MAX(s->mark + s->rate * after, 0.0);
}

static uint64_t grown(const struct sampled_sum *s, uint64_t value)
{
	return value > s->value ? value - s->value : 0;
}

void sampled_sum__begin(struct sampled_sum *s, uint64_t now_ns, uint64_t value)
{
	if (s->mark_ns)
		s->mark = extrapolated(s, now_ns);
	s->mark_ns = now_ns;
	s->value = value;
	s->measuring = true;
}

void sampled_sum__end(struct sampled_sum *s, uint64_t now_ns, uint64_t value)
{
	double part = (double)grown(s, value);

	if (now_ns > s->mark_ns)
		s->rate = part / (double)(now_ns - s->mark_ns);
	s->mark += part;
	s->mark_ns = now_ns;
	s->measuring = false;
}

bool sampled_sum__at(const struct sampled_sum *s, uint64_t at_ns, uint64_t now_ns, uint64_t value,
		     uint64_t *ret_total)
{
	double part;

	if (!s->mark_ns)
		return false;
	if (!s->measuring || at_ns <= s->mark_ns || now_ns <= s->mark_ns) {
		*ret_total = (uint64_t)extrapolated(s, at_ns);
		return true;
	}
	part = (double)grown(s, value) / (double)(now_ns - s->mark_ns);
	*ret_total = (uint64_t)(s->mark + part * (double)(MIN(at_ns, now_ns) - s->mark_ns));
	return true;
}
