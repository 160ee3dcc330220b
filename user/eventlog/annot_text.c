/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annot_text: parses the words of an annotation. hs-safescope's tool and its documentation disagree
 * on them, and programs write either: both are accepted.
 */
#include <errno.h>
#include <string.h>

#include "annot_priv.h"
#include "base/base.h"

static struct el_str trim(struct el_str s)
{
	while (s.len && (s.s[0] == ' ' || s.s[0] == '\t'))
		s.s++, s.len--;
	while (s.len && (s.s[s.len - 1] == ' ' || s.s[s.len - 1] == '\t' ||
			 s.s[s.len - 1] == '\n' || s.s[s.len - 1] == '\r'))
		s.len--;
	return s;
}

static struct el_str first_word(struct el_str s)
{
	const char *blank = memchr(s.s, ' ', s.len);

	if (blank)
		s.len = (uint32_t)(blank - s.s);
	return s;
}

static bool number(struct el_str s, unsigned base, uint64_t *ret)
{
	uint64_t n = 0;

	if (base == 16 && s.len > 2 && s.s[0] == '0' && (s.s[1] == 'x' || s.s[1] == 'X')) {
		s.s += 2;
		s.len -= 2;
	}
	if (!s.len)
		return false;
	for (uint32_t i = 0; i < s.len; i++) {
		char c = s.s[i];
		unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
			     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
						    : 16;

		if (d >= base || __builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, d, &n))
			return false;
	}
	*ret = n;
	return true;
}

/* [n] label: the number is optional; a number alone is the label. */
static void number_and_label(struct el_str s, struct annot_words *w)
{
	struct el_str word = first_word(s), rest = s;
	uint64_t n;

	rest.s += word.len;
	rest.len -= word.len;
	rest = trim(rest);
	w->n = 0;
	w->label = s;
	if (rest.len && number(word, 10, &n)) {
		w->n = n;
		w->label = rest;
	}
}

static bool call_words(struct el_str s, struct annot_words *w)
{
	uint64_t *out[] = {&w->fn, &w->site, &w->tid};

	for (unsigned i = 0; i < 3; i++) {
		struct el_str word;

		s = trim(s);
		word = first_word(s);
		if (!number(word, i == 2 ? 10 : 16, out[i]))
			return false;
		s.s += word.len;
		s.len -= word.len;
	}
	return true;
}

static bool thread_words(struct el_str s, struct annot_words *w)
{
	const char *blank = memrchr(s.s, ' ', s.len);
	struct el_str last, before = s;

	if (!blank)
		return false;
	last = (struct el_str){blank + 1, (uint32_t)(s.s + s.len - blank - 1)};
	before.len = (uint32_t)(blank - s.s);
	if (!number(last, 10, &w->tid))
		return false;
	number_and_label(trim(before), w);
	return true;
}

static bool stack_words(struct el_str s, struct annot_words *w)
{
	const char *list = memchr(s.s, '[', s.len);
	struct el_str before = s;

	if (!list)
		return false;
	w->stack = (struct el_str){list, (uint32_t)(s.s + s.len - list)};
	before.len = (uint32_t)(list - s.s);
	number_and_label(trim(before), w);
	return true;
}

enum annot_verb annot__verb(struct el_str text, struct el_str *ret_rest)
{
	static const struct {
		const char *word;
		uint32_t len;
		enum annot_verb verb;
	} verbs[] = {
		{"START", 5, AV_START},
		{"STOP", 4, AV_STOP},
		{"END", 3, AV_STOP},
		{"ANN_SCC", 7, AV_STACK},
		{"ANN_CCS", 7, AV_STACK},
		{"ANN_TH", 6, AV_THREAD},
		{"ANN_CALL_TO", 11, AV_CALL_TO},
		{"ANN_CALL_RET", 12, AV_CALL_RET},
	};
	struct el_str word;

	text = trim(text);
	if (!text.len || (text.s[0] != 'S' && text.s[0] != 'E' && text.s[0] != 'A'))
		return AV_NONE;
	/* No verb is longer. */
	word = first_word((struct el_str){text.s, MIN(text.len, 13u)});
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		/* Nearly all of the same length differ in the last letter. */
		if (word.len != verbs[i].len ||
		    word.s[word.len - 1] != verbs[i].word[word.len - 1] ||
		    memcmp(word.s, verbs[i].word, word.len) != 0)
			continue;
		*ret_rest = trim((struct el_str){text.s + word.len, text.len - word.len});
		return verbs[i].verb;
	}
	return AV_NONE;
}

enum annot_verb annot__words(struct el_str text, struct annot_words *w)
{
	struct el_str rest;
	enum annot_verb verb = annot__verb(text, &rest);
	bool good = true;

	if (verb == AV_NONE)
		return AV_NONE;
	*w = (struct annot_words){.label = rest};
	switch (verb) {
	case AV_CALL_TO:
	case AV_CALL_RET:
		good = call_words(rest, w);
		break;
	case AV_THREAD:
		good = thread_words(rest, w);
		break;
	case AV_STACK:
		good = stack_words(rest, w);
		break;
	default:
		number_and_label(rest, w);
		good = rest.len > 0;
		break;
	}
	return good ? verb : AV_MALFORMED;
}

/* ── a stack as Haskell shows it ─────────────────────────────────────────────────────────── */

/* Reads one string of the list and resolves its escapes. Returns where to go on; NULL: no more. */
static const char *next_string(const char *p, const char *end, char *out, size_t size)
{
	size_t n = 0;

	p = memchr(p, '"', (size_t)(end - p));
	if (!p)
		return NULL;
	for (p++; p < end && *p != '"'; p++) {
		char c = *p;

		if (c == '\\' && p + 1 < end) {
			c = *++p;
			if (c == '&')
				continue;
			/* Bytes beyond ASCII are shown as decimal code points. */
			if (c >= '0' && c <= '9') {
				while (p + 1 < end && p[1] >= '0' && p[1] <= '9')
					p++;
				c = '?';
			}
		}
		if (n + 1 < size)
			out[n++] = c;
	}
	out[n] = 0;
	return p < end ? p + 1 : end;
}

/*
 * "Module.label (loc)": labels of local functions contain dots, and operators consist of them, so
 * the module is the longest part that makes a known centre with its label.
 */
static int centre(struct cctree *tree, char *text, uint32_t *ret_cc)
{
	char *loc = strstr(text, " ("), *dot, *name_end;
	const char *srcloc = "";
	uint32_t cc;

	if (loc) {
		char *close = strrchr(loc, ')');

		*loc = 0;
		srcloc = loc + 2;
		if (close > loc + 1)
			*close = 0;
	}
	name_end = text + strlen(text);
	for (int pass = 0; pass < 2; pass++) {
		for (dot = name_end; dot > text; dot--) {
			if (*dot != '.' || !dot[1] || dot == text)
				continue;
			*dot = 0;
			cc = cctree__find_cc(tree, dot + 1, text, pass ? NULL : srcloc);
			*dot = '.';
			if (cc != CC_NO_NODE) {
				*ret_cc = cc;
				return 0;
			}
		}
	}
	/* Unknown: the module is the leading words with a capital. */
	dot = NULL;
	for (char *word = text;;) {
		char *next = strchr(word, '.');

		if (*word < 'A' || *word > 'Z' || !next || !next[1])
			break;
		dot = next;
		word = next + 1;
	}
	if (!dot)
		return cctree__cc_by_name(tree, text, "", srcloc, ret_cc);
	*dot = 0;
	return cctree__cc_by_name(tree, dot + 1, text, srcloc, ret_cc);
}

int annot__stack_node(struct cctree *tree, const char *list, size_t len, uint32_t *ret_node)
{
	const char *p = list, *end = list + len;
	uint32_t node = CC_ROOT, cc;
	char text[4096];
	int err;

	while ((p = next_string(p, end, text, sizeof(text)))) {
		err = centre(tree, text, &cc);
		if (!err)
			err = cctree__child(tree, node, cc, &node);
		if (err)
			return err;
		if (p >= end)
			break;
	}
	*ret_node = node;
	return 0;
}
