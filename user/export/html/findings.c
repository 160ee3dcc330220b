/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The findings, each with the moment to look at. */
#include "html_priv.h"

#define FINDINGS 64

static int number_of(const struct html *h, const struct pic_lane *lane)
{
	for (size_t i = 0; lane && i < h->n_lanes; i++)
		if (h->lanes[i].view && h->lanes[i].view->lane == lane)
			return (int)i;
	return -1;
}

void html__put_findings(const struct html *h, const struct pic_target *target)
{
	fputs(",\"findings\":[", h->out);
	for (size_t i = 0; i < target->n_findings && i < FINDINGS; i++) {
		const struct pic_finding *finding = &target->findings[i];
		const struct pic_moment *m = &finding->longest;

		fputs(i ? ",\n{\"text\":" : "\n{\"text\":", h->out);
		json__put_in_html(h->out, finding->text);
		fputs(",\"id\":", h->out);
		json__put_in_html(h->out, or_empty(finding->id));
		fputs(",\"kind\":", h->out);
		json__put_in_html(h->out, or_empty(finding->kind));
		fputs(",\"where\":", h->out);
		json__put_in_html(h->out, or_empty(finding->where));
		fputs(",\"ns\":", h->out);
		put_u64(h->out, finding->ns);
		if (m->end_ns) {
			fputs(",\"at\":[", h->out);
			html__put_int(h->out, html__time(h, m->start_ns));
			fputc(',', h->out);
			html__put_int(h->out, html__time(h, m->end_ns));
			fprintf(h->out, ",%d]", number_of(h, m->lane));
		}
		fputc('}', h->out);
	}
	fputc(']', h->out);
}
