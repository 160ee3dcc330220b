/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hs_name: suffixes, uniques and modules in GHC's human-readable names. */
#include "hs_name_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static bool cut_suffix(char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);

	if (len <= n || strcmp(s + len - n, suffix) != 0)
		return false;
	s[len - n] = '\0';
	return true;
}

/*
 * GHC.Types.Unique: a letter for the origin, then base-62 digits. Those that occur in labels:
 * top-level bindings (r, g since 9.4), made by the simplifier (s), blocks (c).
 */
static bool is_unique(const char *s)
{
	size_t len = strlen(s);

	if (!strchr("rscg", s[0]) || len < (s[0] == 'g' ? 4 : 3))
		return false;
	for (s++; *s; s++)
		if (!isalnum((unsigned char)*s))
			return false;
	return true;
}

/* Names that belong to no binding: only the unique, or a number, tells them apart. */
bool hs_name__is_anonymous(const char *name)
{
	static const char *const stems[] = {"sat", "lvl", "ds", "block"};

	for (size_t i = 0; i < ARRAY_SIZE(stems); i++) {
		size_t len = strlen(stems[i]);

		if (strncmp(name, stems[i], len) == 0 &&
		    (name[len] == '\0' || name[len] == '_' ||
		     strspn(name + len, "0123456789") == strlen(name + len)))
			return true;
	}
	return false;
}

/* Any letter or digit for the origin: known names have 0. */
static bool is_any_unique(const char *s)
{
	size_t len = 0;

	while (isalnum((unsigned char)s[len]))
		len++;
	return len >= 2 && !s[len];
}

/*
 * @full: the name always has a unique, of any origin and as short as "r3" (a compiler that finds an
 * old interface file numbers that module's names first). With a package all names have one; before
 * 9.6 the module is there if the name is not exported, and only those have one (closureDescription
 * in GHC.StgToCmm.Closure).
 */
static void cut_unique(char *s, bool full)
{
	char *last = strrchr(s, '_');

	if (!last || last == s)
		return;
	/* otherwise any trailing word would look like a unique: real ones contain a digit or a
	 * capital */
	if (full ? !is_any_unique(last + 1)
		 : !is_unique(last + 1) ||
			    !strpbrk(last + 2, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
		return;
	*last = '\0';
	/* what a module defines has the origin "r": GHC makes no such "sat" or "block" */
	if (full && last[1] == 'r' && (strcmp(s, "sat") == 0 || strcmp(s, "block") == 0))
		return;
	/* keep the unique, unless a number tells them apart */
	if (hs_name__is_anonymous(s) && !isdigit((unsigned char)last[-1]))
		*last = '_';
}

static void cut_kind(const char *label, char *out)
{
	snprintf(out, HS_NAME_LEN, "%s", label);
	if (!cut_suffix(out, "_con_info") && !cut_suffix(out, "_info"))
		cut_suffix(out, "_entry");
}

void hs_name__occurrence(const char *label, char *out)
{
	cut_kind(label, out);
	cut_unique(out, false);
}

static size_t word_length(const char *s)
{
	size_t len = 0;

	while (isalnum((unsigned char)s[len]) || s[len] == '_' || s[len] == '\'' ||
	       (unsigned char)s[len] >= 0x80)
		len++;
	return len;
}

/* The part after the last separating dot: an operator may itself contain dots. */
static const char *last_part(const char *binding)
{
	size_t len;

	while ((len = word_length(binding)) > 0 && binding[len] == '.' && binding[len + 1])
		binding += len + 1;
	return binding;
}

void hs_name__combine(const char *binding, const char *occurrence, char *out)
{
	const char *part = last_part(binding), *stem = NULL;

	if (!binding[0]) {
		snprintf(out, HS_NAME_LEN, "%s", occurrence);
		return;
	}
	if (occurrence[0] == '$' && islower((unsigned char)occurrence[1]))
		stem = occurrence + 2;
	/* a worker of a specialisation: $w$sgo */
	while (stem && stem[0] == '$' && islower((unsigned char)stem[1]) && strcmp(stem, part) != 0)
		stem += 2;
	if (stem && strcmp(stem, part) == 0)
		snprintf(out, HS_NAME_LEN, "%.*s%s", (int)(part - binding), binding, occurrence);
	else
		snprintf(out, HS_NAME_LEN, "%s", binding);
}

/*
 * Cuts a unique that looks like a word: "go1_samc". The names of specialisations and instances are
 * left alone, since their last word may be the source's: "$sread_rows". Workers of named functions
 * do not come here, since they have a binding.
 */
static void cut_word(char *s)
{
	const char *name = s;
	char *last;

	while (strncmp(name, "$w", 2) == 0)
		name += 2;
	last = strrchr(s, '_');
	if (name[0] == '$' || !last || last <= name || hs_name__is_anonymous(name))
		return;
	if (strlen(last + 1) >= 4 && strlen(last + 1) <= 5 && is_unique(last + 1))
		*last = '\0';
}

void hs_name__of_table(const char *table, const char *binding, char *out)
{
	char occurrence[HS_NAME_LEN];

	/* exported names have no unique: "$wcopy_r3" is the worker of "copy_r3" */
	cut_kind(table, occurrence);
	if (binding[0]) {
		hs_name__combine(binding, occurrence, out);
		if (strcmp(out, binding) != 0)
			return;
	}
	/* what is cut too much from a name that is not the binding's worker is not shown */
	cut_unique(occurrence, binding[0] != '\0');
	if (!binding[0])
		cut_word(occurrence);
	hs_name__combine(binding, occurrence, out);
}

bool hs_name__is_made_up(const char *name, const char *block)
{
	size_t len = strlen(name), digits = strspn(name + (len > 0), "0123456789");

	/* GHC.Cmm.CLabel's local block labels, and their printed keys since 9.4 */
	if (name[0] == 'L')
		return digits >= 8 && digits == len - 1;
	/* "c1Tx" is one, but so may "copy" and "cjzv" be, and "checkAll" */
	if (name[0] != 'c' || len < 4 || len > 8 || !is_unique(name))
		return false;
	if (!block)
		return len <= 5 && strpbrk(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	block += block[0] == '_';
	return strlen(block) == len && strncmp(block, name, len - 2) == 0;
}

static size_t module_length(const char *s)
{
	size_t colon = s[0] == ':', len = colon; /* ":Main" holds a program's main */

	/* a name is never followed by a dot: any letter beyond ASCII is taken for a capital */
	while (isupper((unsigned char)s[len]) || (unsigned char)s[len] >= 0x80) {
		size_t end = len + word_length(s + len);

		if (s[end] != '.' || !s[end + 1])
			break;
		len = end + 1;
	}
	return len > colon ? len : 0;
}

/*
 * The length of "main:" before a qualified name (pprFullName of GHC.Types.Name, since 9.6). Not for
 * the data constructor of a class, "Main.D:Show".
 */
static size_t package_length(const char *s)
{
	size_t len = strcspn(s, ":");

	for (size_t i = 0; i < len; i++)
		if ((!isalnum((unsigned char)s[i]) && !strchr("-._", s[i])) ||
		    (s[i] == '.' && isupper((unsigned char)s[i + 1])))
			return 0;
	return len && s[len] == ':' && module_length(s + len + 1) ? len + 1 : 0;
}

static bool is_utf8(const char *s)
{
	uint32_t cp;

	while (*s) {
		size_t len = text__decode(s, strnlen(s, 4), &cp);

		if (!len || cp < 0x20)
			return false;
		s += len;
	}
	return true;
}

/* A character of which GHC wrote only the low byte: a letter of Latin-1, or what could be anything
 * beyond, such as a Greek letter or "∘". */
static uint32_t from_low_byte(unsigned char c)
{
	bool latin = c >= 0xc0 && c != 0xd7 && c != 0xf7;

	return (c >= 0x20 && c < 0x7f) || latin ? c : 0xfffd;
}

/* Makes UTF-8 of len bytes of a description. False: it does not fit. */
static bool to_utf8(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (size - n <= 4)
			return false;
		n += text__encode(from_low_byte((unsigned char)text[i]), out + n);
	}
	out[n] = '\0';
	return true;
}

bool hs_name__description(const char *text, struct hs_description *ret)
{
	char plain[HS_NAME_LEN];
	size_t len = strlen(text), package, module;
	const char *inner;

	if (len < 3 || len >= sizeof(plain) || text[0] != '<' || text[len - 1] != '>')
		return false;
	memcpy(plain, text + 1, len - 2);
	plain[len - 2] = '\0';
	if (!is_utf8(plain) && !to_utf8(text + 1, len - 2, plain, sizeof(plain)))
		return false;
	package = package_length(plain);
	inner = plain + package;
	module = module_length(inner);
	if (package > sizeof(ret->package) || module > sizeof(ret->module))
		return false;
	snprintf(ret->package, sizeof(ret->package), "%.*s", package ? (int)package - 1 : 0, plain);
	snprintf(ret->module, sizeof(ret->module), "%.*s", module ? (int)module - 1 : 0, inner);
	snprintf(ret->name, sizeof(ret->name), "%s", inner + module);
	cut_unique(ret->name, package > 0 || module > 0);
	return true;
}
