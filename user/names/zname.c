/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zname: z-decoding, and splitting a label into package, module, name and suffix. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "names.h"
#include "zname_priv.h"

#define MAX_SYMBOL 8192 /* longer symbols are cut */
#define MAX_TOKENS 8
#define MAX_TUPLE  99

struct text {
	const char *s;
	size_t len;
};

struct out {
	char *s;
	size_t len, size; /* size > len: room for the NUL */
	bool cut;
};

static void put(struct out *out, const char *s, size_t len)
{
	if (out->cut || len >= out->size - out->len) {
		out->cut = true;
		return;
	}
	memcpy(out->s + out->len, s, len);
	out->len += len;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_alnum(char c)
{
	return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z');
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static void put_code_point(struct out *out, uint32_t c)
{
	char s[4] = {0};
	size_t len;

	/* control characters could end up on a terminal */
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		c = 0xfffd;
	len = text__encode(c, s);
	put(out, s, len);
}

/* z, hexadecimal digits, U. Returns the length of the escape, 0 if it is not one. */
static size_t put_hex(struct out *out, const char *s, size_t len)
{
	uint32_t value = 0;
	size_t i;

	for (i = 1; i < len && hex_value(s[i]) >= 0; i++) {
		if (value > 0x10ffff)
			return 0;
		value = value << 4 | (uint32_t)hex_value(s[i]);
	}
	if (i == len || s[i] != 'U')
		return 0;
	put_code_point(out, value);
	return i + 1;
}

/* Z, a number, T or H: a tuple. Z0T is (), Z2T is (,), Z0H is (##), Z1H is (# #), Z2H is (#,#). */
static size_t put_tuple(struct out *out, const char *s, size_t len)
{
	unsigned int n = 0, commas;
	size_t i;

	for (i = 1; i < len && is_digit(s[i]); i++) {
		n = n * 10 + (unsigned int)(s[i] - '0');
		if (n > MAX_TUPLE)
			return 0;
	}
	if (i == len || (s[i] != 'T' && s[i] != 'H'))
		return 0;
	put(out, s[i] == 'T' ? "(" : "(#", s[i] == 'T' ? 1 : 2);
	for (commas = n > 1 ? n - 1 : 0; commas > 0; commas--)
		put(out, ",", 1);
	if (s[i] == 'H' && n == 1)
		put(out, " ", 1);
	put(out, s[i] == 'T' ? ")" : "#)", s[i] == 'T' ? 1 : 2);
	return i + 1;
}

/* The meaning of a letter after z or Z; 0: none. */
static char simple_escape(char first, char letter)
{
	static const char lower[] = "z"
				    "a&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%";
	static const char upper[] = "L(R)M[N]C:";
	const char *pair;

	if (first == 'Z') {
		if (letter == 'Z')
			return 'Z';
		for (pair = upper; *pair; pair += 2) {
			if (pair[0] == letter)
				return pair[1];
		}
		return 0;
	}
	if (letter == 'z')
		return 'z';
	for (pair = lower + 1; *pair; pair += 2) {
		if (pair[0] == letter)
			return pair[1];
	}
	return 0;
}

bool zname__zdecode(const char *enc, size_t len, char *out_text, size_t size)
{
	struct out out = {.s = out_text, .size = size};
	size_t i = 0;

	while (i < len) {
		size_t used = 0;
		char c;

		if ((enc[i] == 'z' || enc[i] == 'Z') && i + 1 < len) {
			if (is_digit(enc[i + 1])) {
				used = enc[i] == 'z' ? put_hex(&out, enc + i, len - i)
						     : put_tuple(&out, enc + i, len - i);
			} else {
				c = simple_escape(enc[i], enc[i + 1]);
				/* an unknown letter stands for itself */
				c = c ? c : enc[i + 1];
				put(&out, &c, 1);
				used = 2;
			}
		}
		if (used == 0) {
			put(&out, enc + i, 1);
			used = 1;
		}
		i += used;
	}
	out.s[out.len] = '\0';
	return !out.cut;
}

static const struct suffix {
	const char *text;
	enum zname_kind kind;
} suffixes[] = {
	/* a suffix comes before those that it ends in */
	{"_con_info", ZNAME_CON_INFO},
	{"_static_info", ZNAME_STATIC_INFO},
	{"_info", ZNAME_INFO},
	{"_con_entry", ZNAME_CON_ENTRY},
	{"_entry", ZNAME_ENTRY},
	{"_closure", ZNAME_CLOSURE},
	{"_closure_tbl", ZNAME_CLOSURE_TBL},
	{"_slow", ZNAME_SLOW},
	{"_fast", ZNAME_FAST},
	{"_ret", ZNAME_RET},
	{"_bytes", ZNAME_BYTES},
	{"_str", ZNAME_BYTES},
	{"_srt", ZNAME_SRT},
	{"_ct", ZNAME_TICKY},
	{"_HPC_cc_ccs", ZNAME_CCS},
	{"_EXPR_cc_ccs", ZNAME_CCS},
	{"_DECL_cc_ccs", ZNAME_CCS},
	{"_LATE_cc_ccs", ZNAME_CCS},
	{"_cc_ccs", ZNAME_CCS},
	{"_ccs", ZNAME_CCS},
	{"_HPC_cc", ZNAME_CC},
	{"_EXPR_cc", ZNAME_CC},
	{"_DECL_cc", ZNAME_CC},
	{"_LATE_cc", ZNAME_CC},
	{"_cc", ZNAME_CC},
	{"_ipe_buf", ZNAME_IPE},
};

/* Removes the suffix from *t. */
static enum zname_kind take_suffix(struct text *t)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t len = strlen(suffixes[i].text);

		if (t->len > len && memcmp(t->s + t->len - len, suffixes[i].text, len) == 0) {
			t->len -= len;
			return suffixes[i].kind;
		}
	}
	return ZNAME_OTHER;
}

/* Splits at each `_`, which does not occur inside a z-encoded part. 0: not such a name. */
static size_t split(struct text t, struct text *tokens)
{
	size_t n = 0, i, start = 0;

	for (i = 0; i <= t.len; i++) {
		if (i < t.len && t.s[i] != '_') {
			if (!is_alnum(t.s[i]))
				return 0;
			continue;
		}
		if (i == start || n == MAX_TOKENS)
			return 0;
		tokens[n].s = t.s + start;
		tokens[n++].len = i - start;
		start = i + 1;
	}
	return n;
}

/*
 * "Data.Map.Internal": each component begins with a capital. ":Main" is the program's root module.
 */
static bool is_module(const char *s)
{
	bool first = true;

	if (*s == ':')
		s++;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (first && !is_upper(*s) && c < 0x80)
			return false;
		if (!is_alnum(*s) && c != '.' && c != '_' && c != '\'' && c < 0x80)
			return false;
		first = c == '.';
	}
	return !first;
}

/* Removes Cabal's hash, or its `inplace`, after a version: it means nothing to the user. */
void zname__drop_hash(char *package)
{
	char *last = strrchr(package, '-'), *version, *c;
	size_t len;

	if (!last || last == package)
		return;
	len = strspn(last + 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	if (last[1 + len] != '\0' || (len < 16 && strcmp(last + 1, "inplace") != 0))
		return;
	version = memrchr(package, '-', (size_t)(last - package));
	if (!version || version + 1 == last)
		return;
	for (c = version + 1; c < last; c++) {
		if (!is_digit(*c) && *c != '.')
			return;
	}
	*last = '\0';
}

void names__drop_hash(char *package)
{
	zname__drop_hash(package);
}

static bool is_number(struct text t)
{
	size_t i;

	for (i = 0; i < t.len; i++) {
		if (!is_digit(t.s[i]))
			return false;
	}
	return t.len > 0;
}

/* A base-62 unique: a letter for its origin, then digits and letters. */
static bool is_unique(struct text t)
{
	return t.len >= 2 && t.len < sizeof(((struct zname *)0)->unique) && t.s[0] >= 'a' &&
	       t.s[0] <= 'z';
}

static bool decode_part(struct text t, char *out, size_t size, struct zname *z)
{
	if (!zname__zdecode(t.s, t.len, out, size))
		z->truncated = true;
	return out[0] != '\0';
}

/* [unit, ] module, occurrence [, unique] */
static bool decode_tokens(struct text *tokens, size_t n, bool internal, struct zname *z)
{
	size_t unit = 0;

	/*
	 * -fdistinct-constructor-tables appends the place of use to a constructor's name:
	 * <unit>_<Module>_<Con>_<unit>_<Module>_<n>_con_info
	 */
	if (z->kind == ZNAME_CON_INFO && n >= 4 && is_number(tokens[n - 1]))
		n = n == 4 || (n == 5 && !is_upper(tokens[0].s[0])) ? n - 2 : n - 3;
	if (internal) {
		if (n < 3 || !is_unique(tokens[n - 1]))
			return false;
		n--;
		memcpy(z->unique, tokens[n].s, tokens[n].len);
	}
	if (z->kind == ZNAME_IPE) {
		/* one per module, without an occurrence */
		unit = n == 2;
		if (n < 1 || n > 2)
			return false;
	} else {
		unit = n == 3;
		if (n < 2 || n > 3)
			return false;
		decode_part(tokens[n - 1], z->name, sizeof(z->name), z);
	}
	if (!decode_part(tokens[unit], z->module, sizeof(z->module), z) || !is_module(z->module))
		return false;
	if (unit) {
		decode_part(tokens[0], z->package, sizeof(z->package), z);
		zname__drop_hash(z->package);
	}
	return true;
}

static void keep_name(struct text t, struct zname *z)
{
	struct out out = {.s = z->name, .size = sizeof(z->name)};

	put(&out, t.s, MIN(t.len, sizeof(z->name) - 1));
	z->name[out.len] = '\0';
	z->truncated = t.len >= sizeof(z->name);
}

int zname__decode(const char *sym, struct zname *out)
{
	struct text whole = {sym, strnlen(sym, MAX_SYMBOL)}, t;
	struct text tokens[MAX_TOKENS];
	enum zname_kind kind;
	bool internal;
	size_t n;

	memset(out, 0, sizeof(*out));
	/* aliases made by the LLVM back end */
	if (whole.len > 4 && memcmp(sym + whole.len - 4, "$def", 4) == 0)
		whole.len -= 4;
	t = whole;
	kind = take_suffix(&t);
	out->kind = kind;
	if (text__starts_with(whole.s, whole.len, "stg_") ||
	    text__starts_with(whole.s, whole.len, "__stg_")) {
		out->is_rts = true;
		memcpy(out->package, "rts", sizeof("rts"));
		keep_name(whole, out);
		return 0;
	}
	if (kind != ZNAME_OTHER) {
		internal = t.len > 0 && t.s[0] == '_';
		if (internal) {
			t.s++;
			t.len--;
		}
		n = split(t, tokens);
		if (n > 0 && decode_tokens(tokens, n, internal, out)) {
			out->is_haskell = true;
			return 0;
		}
	}
	memset(out, 0, sizeof(*out));
	out->kind = kind;
	/* the C wrapper of a `foreign import capi`: its name is z-encoded, but its code is C */
	if (text__starts_with(whole.s, whole.len, "ghczuwrapperZC"))
		out->truncated = !zname__zdecode(whole.s, whole.len, out->name, sizeof(out->name));
	else
		keep_name(whole, out);
	return -ENOENT;
}

bool zname__wrapper(const char *sym, struct zname *ret_z)
{
	char text[1024], *module, *label, *import;
	struct zname z = {0};
	bool fits;

	if (strncmp(sym, "zd", 2) != 0 || !zname__zdecode(sym, strlen(sym), text, sizeof(text)))
		return false;
	/* "$PACKAGE$MODULE$LABEL", of which the label is the import's own, encoded once more */
	module = strchr(text + 1, '$');
	label = module ? strchr(module + 1, '$') : NULL;
	import = label ? strrchr(label + 1, '_') : NULL;
	if (!import || strchr(label + 1, '$') || module == text + 1 || label == module + 1 ||
	    !import[1])
		return false;
	*module++ = *label = *import++ = '\0';
	if (!is_module(module))
		return false;
	fits = snprintf(z.package, sizeof(z.package), "%s", text + 1) < (int)sizeof(z.package) &&
	       snprintf(z.module, sizeof(z.module), "%s", module) < (int)sizeof(z.module) &&
	       zname__zdecode(import, strlen(import), z.name, sizeof(z.name));
	if (!fits)
		return false;
	if (strcmp(z.package, "main") == 0)
		z.package[0] = '\0';
	zname__drop_hash(z.package);
	z.is_haskell = true;
	*ret_z = z;
	return true;
}
