/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's first lines: the findings, most time first, each as a paragraph; if there are
 * several processes, each with its process's name.
 */
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

/* The part of the place that is not in the text yet: all of it, its source line, or nothing. */
static const char *rest_of_place(const struct pic_finding *finding)
{
	const char *where = finding->where, *src = strstr(where, " (");
	char *name;
	bool known;

	if (!src)
		return strstr(finding->text, where) ? "" : where;
	name = strndup(where, (size_t)(src - where));
	known = name && strstr(finding->text, name);
	free(name);
	return known ? src + 1 : where;
}

static int put_finding(const struct text *t, const char *bullet, const struct pic_finding *finding)
{
	const char *place = rest_of_place(finding);
	const struct pic_moment *m = &finding->longest;
	struct buf text;
	int err;

	buf__init(&text, STRTAB_MAX_STRING);
	buf__adds(&text, finding->text);
	if (*place)
		buf__addf(&text, *place == '(' ? " %s" : " [%s]", place);
	/* with several processes there is no room for it */
	if (m->end_ns && (t->n_of <= 1 || t->opts->verbose))
		buf__addf(&text, " (the longest at %.3f s of the session)",
			  (double)(m->start_ns - MIN(m->start_ns, t->session->start_ns)) / 1e9);
	err = buf__addc(&text, '\0');
	if (!err)
		err = text__paragraph(t, bullet, text.data);
	buf__free(&text);
	return err;
}

struct ref {
	const struct pic_target *target;
	const struct pic_finding *finding;
};

static int by_ns(const void *pa, const void *pb)
{
	const struct ref *a = pa, *b = pb;

	return CMP(b->finding->ns, a->finding->ns)
		       ?: CMP(a->target->pid, b->target->pid)
		       ?: CMP(a->finding, b->finding);
}

static int put_ref(const struct text *t, const struct ref *ref)
{
	char *bullet;
	int err;

	if (t->n_of <= 1)
		return put_finding(t, "  · ", ref->finding);
	if (asprintf(&bullet, "  · %s: ", pic_target__name(ref->target).s) < 0)
		return -ENOMEM;
	err = put_finding(t, bullet, ref->finding);
	free(bullet);
	return err;
}

int text__findings(const struct text *t)
{
	size_t n = 0, shown;
	struct ref *v;
	int err = 0;

	for (size_t i = 0; i < t->n_of; i++)
		n += t->of[i]->n_findings;
	if (!n)
		return 0;
	v = calloc(n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < t->n_of; i++)
		for (size_t k = 0; k < t->of[i]->n_findings; k++)
			v[n++] = (struct ref){t->of[i], &t->of[i]->findings[k]};
	qsort(v, n, sizeof(*v), by_ns);
	shown = t->opts->verbose ? n : MIN(n, t->rows);
	text__section(t, "What stands out");
	for (size_t i = 0; i < shown && !err; i++)
		err = put_ref(t, &v[i]);
	free(v);
	if (shown < n)
		fprintf(t->out, "  … and %zu more (-v, or the JSON report)\n", n - shown);
	return err;
}
