/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of profiles: the head, and stacks. */
#include <inttypes.h>

#include "speedscope_priv.h"

void speedscope__put_head(struct speedscope *w, const char *name, const char *unit, uint64_t end)
{
	fputs("{\"type\":\"sampled\",\"name\":", w->out);
	json__put_string(w->out, name);
	fprintf(w->out,
		",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n\"samples\":[", unit,
		end);
}

void speedscope__put_stack(struct speedscope *w, struct pic_stack stack, bool comma)
{
	struct stack_text *t = &w->texts[((uintptr_t)stack.frames / 16 + stack.n) % STACK_TEXTS];

	if (!stack.n || w->err)
		return;
	if (t->frames != stack.frames || t->n != stack.n) {
		t->frames = stack.frames;
		t->n = stack.n;
		buf__reset(&t->text);
		for (uint32_t i = 0; i < stack.n; i++)
			buf__addf(&t->text, ",%" PRIu32, w->map[stack.frames[i]]);
		if (t->text.err) {
			w->err = t->text.err;
			return;
		}
	}
	fwrite_unlocked(t->text.data + !comma, 1, t->text.len - !comma, w->out);
}

struct pic_stack speedscope__below_state(const struct speedscope *w, uint32_t id)
{
	struct pic_stack stack = picture__stack(w->pic, id);

	if (stack.n && picture__frame(w->pic, stack.frames[stack.n - 1])->kind == TF_STATE)
		stack.n--;
	return stack;
}
