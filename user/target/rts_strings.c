/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Version and way of a GHC runtime from its strings. rts/RtsMessages.c has the version as the
 * argument before its message's format, rts/RtsUtils.c (printRtsInfo) the way before the key "RTS
 * way"; compilers emit the strings of one function side by side (seen with gold, bfd and lld, from
 * 9.0 to 9.10), and `strip` leaves them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rts_find.h"

/* Four spaces stand before it. They are not here: safescoped itself is no GHC program. */
static const char message[] = "(GHC version %s for %s)\n";
#define MESSAGE_INDENT 4
static const char way_key[] = "RTS way";

/* The runtime's message, indent included; NULL if it is not there. */
static const char *find_message(const char *data, size_t size)
{
	static const char indent[] = {' ', ' ', ' ', ' '};
	size_t from = MESSAGE_INDENT;

	while (from + sizeof(message) <= size) {
		const char *hit = memmem(data + from, size - from, message, sizeof(message));

		if (!hit)
			return NULL;
		if (memcmp(hit - MESSAGE_INDENT, indent, MESSAGE_INDENT) == 0)
			return hit - MESSAGE_INDENT;
		from = (size_t)(hit - data) + 1;
	}
	return NULL;
}

static const char *find_way_key(const char *data, size_t size)
{
	return memmem(data, size, way_key, sizeof(way_key));
}

static bool is_version(const char *s, size_t len)
{
	size_t dots = 0;

	if (len < 3 || len >= RTS_NAME_LEN || s[0] < '0' || s[0] > '9')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.')
			dots++;
		else if (s[i] < '0' || s[i] > '9')
			return false;
	}
	return dots >= 1 && dots <= 3 && s[len - 1] != '.';
}

static bool is_way(const char *s, size_t len)
{
	if (len < 5 || len >= RTS_NAME_LEN || memcmp(s, "rts_", 4) != 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((s[i] < 'a' || s[i] > 'z') && s[i] != '_')
			return false;
	return true;
}

/* The string that ends right before `at`, if it is a good one. */
static bool string_before(const char *data, size_t at, bool (*good)(const char *, size_t),
			  char out[RTS_NAME_LEN])
{
	size_t start, len;

	if (at < 2 || data[at - 1] != '\0')
		return false;
	for (start = at - 1; start > 0 && at - start <= RTS_NAME_LEN; start--)
		if (data[start - 1] == '\0')
			break;
	len = at - 1 - start;
	if (!good(data + start, len))
		return false;
	memcpy(out, data + start, len);
	out[len] = '\0';
	return true;
}

/* Looks for the anchor and takes the good string before it. */
static bool search(const char *data, size_t size,
		   const char *(*find)(const char *data, size_t size),
		   bool (*good)(const char *, size_t), char out[RTS_NAME_LEN], bool *ret_anchor)
{
	size_t from = 0;

	while (from < size) {
		const char *hit = find(data + from, size - from);

		if (!hit)
			break;
		*ret_anchor = true;
		if (string_before(data, (size_t)(hit - data), good, out))
			return true;
		from = (size_t)(hit - data) + 1;
	}
	return false;
}

void rts_strings__set_way(struct rts *rts, const char *way)
{
	snprintf(rts->way, sizeof(rts->way), "%s", way);
	rts->threaded = strstr(way, "_thr") != NULL;
	rts->debug = strstr(way, "_debug") != NULL;
	rts->profiled = false;
	/* "p" is a part of its own: rts_p, rts_thr_p, rts_thr_debug_p */
	for (const char *p = strchr(way, '_'); p; p = strchr(p + 1, '_'))
		if (strncmp(p, "_p", 2) == 0 && (p[2] == '\0' || p[2] == '_'))
			rts->profiled = true;
}

/* libHSrts_thr-ghc9.0.2.so (up to 9.2), libHSrts-1.0.2_thr-ghc9.6.6.so */
static void from_name(const char *base, struct rts *rts)
{
	const char *ghc = strstr(base, "-ghc"), *under = strchr(base, '_');
	char way[RTS_NAME_LEN];
	size_t len;

	if (strncmp(base, "libHSrts", 8) != 0 || !ghc)
		return;
	if (!rts->version[0]) {
		len = strspn(ghc + 4, "0123456789.");
		if (len > 0 && ghc[4 + len - 1] == '.')
			len--;
		if (is_version(ghc + 4, len)) {
			memcpy(rts->version, ghc + 4, len);
			rts->version[len] = '\0';
		}
	}
	if (!rts->way[0]) {
		if (under && under < ghc && (size_t)(ghc - under) < sizeof(way) - 4)
			snprintf(way, sizeof(way), "rts%.*s", (int)(ghc - under), under);
		else
			snprintf(way, sizeof(way), "rts_v");
		if (is_way(way, strlen(way)))
			rts_strings__set_way(rts, way);
	}
}

/* "GHC: (GNU…" strings of gcc stand beside "GHC 9.0.2" in .comment; objects may be mixed. */
static void from_comment(const struct elf_file *elf, struct rts *rts)
{
	struct elf_section sec;
	const char *p, *end;

	if (rts->version[0] || elf__section(elf, ".comment", &sec) < 0 || !sec.data)
		return;
	p = (const char *)sec.data;
	end = p + sec.size;
	while (p < end) {
		const char *nul = memchr(p, '\0', (size_t)(end - p));
		size_t len = (size_t)((nul ? nul : end) - p);

		if (len > 4 && memcmp(p, "GHC ", 4) == 0 && is_version(p + 4, len - 4)) {
			memcpy(rts->version, p + 4, len - 4);
			rts->version[len - 4] = '\0';
			return;
		}
		p += len + 1;
	}
}

bool rts_strings__in(const void *data, size_t size)
{
	return find_message(data, size) != NULL;
}

bool rts_strings__read(const struct elf_file *elf, const char *base, struct rts *rts)
{
	bool message_seen = false, key_seen = false;
	char way[RTS_NAME_LEN];
	bool way_found = false;
	struct elf_sym sym;

	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		const char *data;

		if (seg->write || seg->filesz == 0)
			continue;
		data = (const char *)elf__at(elf, seg->vaddr, seg->filesz);
		if (!data)
			continue;
		if (!rts->version[0])
			search(data, seg->filesz, find_message, is_version, rts->version,
			       &message_seen);
		/* The key is short: only with its terminating NULs on both sides is it the key. */
		if (!way_found && message_seen)
			way_found = search(data, seg->filesz, find_way_key, is_way, way, &key_seen);
	}
	if (!message_seen)
		return false;
	/* The read-only segment with the way may come before the one with the message. */
	for (size_t i = 0; !way_found && i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		const char *data;

		data = seg->write || seg->filesz == 0
			       ? NULL
			       : (const char *)elf__at(elf, seg->vaddr, seg->filesz);
		if (data)
			way_found = search(data, seg->filesz, find_way_key, is_way, way, &key_seen);
	}
	/*
	 * A program may hold the format without being GHC's (ours does): only with its argument
	 * beside it, or with the runtime's symbol, it is the runtime.
	 */
	if (!rts->version[0] && !way_found &&
	    elf__find_symbol(elf, "suspendThread", &sym, NULL) < 0)
		return false;
	if (way_found)
		rts_strings__set_way(rts, way);
	from_name(base, rts);
	from_comment(elf, rts);
	return true;
}
