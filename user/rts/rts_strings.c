/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Version and way of a GHC runtime, from its strings. rts/RtsMessages.c has the version as an
 * argument, before its message's format; rts/RtsUtils.c (printRtsInfo) has the way before the key
 * "RTS way". Compilers emit the strings of one function side by side (seen with gold, bfd and lld,
 * from 9.0 to 9.10), and `strip` leaves them. mold orders them differently: see by_reference().
 */
#include <stdio.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "confine/confine.h"
#include "ghc_version.h"
#include "rts_find_priv.h"

#define STRING_RANGES 64
/* How many bytes of code apart two arguments of one call may be. */
#define REFERENCE_NEAR 48

static const char message[] = "    (GHC version %s for %s)\n";
static const char way_key[] = "RTS way";

static bool is_version(const char *s, size_t len)
{
	ghc_version_t version;

	return len < RTS_NAME_LEN && ghc_version__parse(s, len, &version) == 0;
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

/* The string that ends right before `at`, if good() accepts it. */
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

struct elf_range_at {
	const char *data;
	uint64_t size, vaddr;
};

/* Searches for `anchor` and takes the string before it that good() accepts. */
static bool search(const struct elf_range_at *range, const char *anchor, size_t anchor_len,
		   bool (*good)(const char *, size_t), char out[RTS_NAME_LEN], uint64_t *ret_anchor)
{
	const char *data = range->data;
	size_t from = 0;

	while (from + anchor_len <= range->size) {
		const char *hit = memmem(data + from, range->size - from, anchor, anchor_len);

		if (!hit)
			break;
		from = (size_t)(hit - data);
		/* A string of its own, not the end of a longer one. */
		if (from > 0 && hit[-1] == '\0' && !*ret_anchor)
			*ret_anchor = range->vaddr + from;
		if (string_before(data, from, good, out))
			return true;
		from++;
	}
	return false;
}

/* The string accepted by good() that an operand refers to. */
static bool refers_to_good(const struct elf_file *elf, const uint8_t *operand, uint64_t vaddr,
			   bool (*good)(const char *, size_t), char out[RTS_NAME_LEN])
{
	uint64_t targets[2];

	rts_arch__operand(operand, vaddr, targets);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		const char *s = (const char *)elf__at(elf, targets[i], RTS_NAME_LEN);
		const char *end = s ? memchr(s, '\0', RTS_NAME_LEN) : NULL;

		if (!end || !good(s, (size_t)(end - s)))
			continue;
		memcpy(out, s, (size_t)(end - s) + 1);
		return true;
	}
	return false;
}

/*
 * A linker that merges equal strings may put the version next to another user of the string (in
 * Debian's pandoc, next to base's System.Info). The function that loads the anchor's address also
 * loads that of its neighbour within a few instructions.
 */
static bool by_reference(struct elf_file *elf, uint64_t anchor, bool (*good)(const char *, size_t),
			 char out[RTS_NAME_LEN])
{
	const struct elf_fde *fdes;
	size_t n;

	if (elf__fdes(elf, &fdes, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t len = fdes[i].end - fdes[i].start;
		const uint8_t *code = elf__at(elf, fdes[i].start, len);

		for (size_t at = 0; code; at++) {
			size_t from, to;

			at = rts_arch__find_operand(code, len, fdes[i].start, anchor, at);
			if (at == len)
				break;
			from = at > REFERENCE_NEAR ? at - REFERENCE_NEAR : 0;
			to = MIN(at + REFERENCE_NEAR, len - RTS_ARCH_OPERAND);
			for (; from <= to; from++)
				if (refers_to_good(elf, code + from, fdes[i].start + from, good,
						   out))
					return true;
		}
	}
	return false;
}

void rts_strings__set_way(struct rts *rts, const char *way)
{
	snprintf(rts->way, sizeof(rts->way), "%s", way);
	rts->threaded = strstr(way, "_thr") != NULL;
	rts->debug = strstr(way, "_debug") != NULL;
	rts->profiled = false;
	/* "p" is a component of its own: rts_p, rts_thr_p, rts_thr_debug_p */
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

/* "GHC: (GNU…" strings of gcc are next to "GHC 9.0.2" in .comment; objects may be mixed. */
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

/*
 * Where the runtime's strings can be: .rodata and .rodata.str… (mold keeps mergeable strings in
 * sections of their own); if there are no such sections, or too many, all segments that are not
 * writable.
 */
static size_t string_ranges(const struct elf_file *elf, struct elf_range_at *ranges, size_t max)
{
	struct elf_section secs[STRING_RANGES];
	size_t n_secs = elf__constants(elf, ".rodata", secs, ARRAY_SIZE(secs)), n = 0;

	if (n_secs && n_secs <= MIN(max, ARRAY_SIZE(secs))) {
		for (; n < n_secs; n++)
			ranges[n] = (struct elf_range_at){(const char *)secs[n].data, secs[n].size,
							  secs[n].vaddr};
		return n;
	}
	for (size_t i = 0; i < elf__n_segments(elf) && n < max; i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		const char *data;

		if (seg->write || seg->filesz == 0)
			continue;
		data = (const char *)elf__at(elf, seg->vaddr, seg->filesz);
		if (data)
			ranges[n++] = (struct elf_range_at){data, seg->filesz, seg->vaddr};
	}
	return n;
}

/* search() in all ranges. */
static bool search_all(const struct elf_range_at *ranges, size_t n, const char *anchor, size_t len,
		       bool (*good)(const char *, size_t), char out[RTS_NAME_LEN],
		       uint64_t *ret_anchor)
{
	for (size_t i = 0; i < n; i++)
		if (search(&ranges[i], anchor, len, good, out, ret_anchor))
			return true;
	return false;
}

/* The first string in the range, from *at on, that ends in the tail; NULL: none. */
static const char *next_tail(const struct elf_range_at *range, size_t *at, const char *tail,
			     size_t size)
{
	const char *hit = NULL;

	if (*at + size <= range->size)
		hit = memmem(range->data + *at, range->size - *at, tail, size);
	*at = hit ? (size_t)(hit - range->data) + 1 : range->size;
	return hit;
}

uint64_t rts_strings__ending_in(const struct elf_file *elf, const char *tail, size_t size)
{
	struct elf_range_at ranges[STRING_RANGES];
	size_t n = string_ranges(elf, ranges, STRING_RANGES), found = 0;
	uint64_t vaddr = 0;

	for (size_t i = 0; i < n; i++) {
		const char *hit;
		size_t at = 0;

		while ((hit = next_tail(&ranges[i], &at, tail, size)) != NULL) {
			size_t start = (size_t)(hit - ranges[i].data);

			while (start > 0 && ranges[i].data[start - 1] != '\0')
				start--;
			vaddr = ranges[i].vaddr + start;
			found++;
		}
		elf__done_with(elf, ranges[i].vaddr, ranges[i].size);
	}
	return found == 1 ? vaddr : 0;
}

/* Up to this many bytes of strings are searched in this process, which takes a millisecond or
 * two. */
#define MAYBE_INLINE (8U << 20)

static int search_message(void *ctx, void *out)
{
	const struct elf_file *elf = ctx;
	struct elf_range_at ranges[STRING_RANGES];
	size_t n = string_ranges(elf, ranges, STRING_RANGES);
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		found = found ||
			memmem(ranges[i].data, ranges[i].size, message, sizeof(message)) != NULL;
		elf__done_with(elf, ranges[i].vaddr, ranges[i].size);
	}
	*(uint8_t *)out = found;
	return 0;
}

int rts__maybe_in(const struct elf_file *elf)
{
	struct elf_range_at ranges[STRING_RANGES];
	size_t n = string_ranges(elf, ranges, STRING_RANGES), bytes = 0;
	uint8_t found;
	void *out;
	int err;

	for (size_t i = 0; i < n; i++)
		bytes += ranges[i].size;
	/* this parses nothing: only the size, and so the time it takes, is under somebody else's
	 * control */
	if (bytes <= MAYBE_INLINE) {
		err = search_message((void *)elf, &found);
		return err ? err : found;
	}
	err = elf__aside(elf, search_message, (void *)elf, sizeof(found), &out);
	if (err)
		return err;
	found = *(uint8_t *)out;
	confine__free_out(out, sizeof(found));
	return found != 0;
}

bool rts_strings__read(struct elf_file *elf, const char *base, struct rts *rts)
{
	struct elf_range_at ranges[STRING_RANGES];
	uint64_t message_at = 0, key_at = 0;
	char way[RTS_NAME_LEN] = "";
	size_t n = string_ranges(elf, ranges, STRING_RANGES);
	struct elf_sym sym;

	if (!search_all(ranges, n, message, sizeof(message), is_version, rts->version,
			&message_at) &&
	    message_at)
		by_reference(elf, message_at, is_version, rts->version);
	if (message_at) {
		/* The key is short: it counts only with a NUL on both sides. */
		if (!search_all(ranges, n, way_key, sizeof(way_key), is_way, way, &key_at) &&
		    key_at)
			by_reference(elf, key_at, is_way, way);
	}
	for (size_t i = 0; i < n; i++)
		elf__done_with(elf, ranges[i].vaddr, ranges[i].size);
	/*
	 * A program other than GHC's may contain the format (ours does): it is the runtime only if
	 * the argument is next to it, or with the runtime's symbol.
	 */
	if (!message_at ||
	    (!rts->version[0] && !way[0] && elf__find_symbol(elf, "suspendThread", &sym, NULL) < 0))
		return false;
	if (way[0])
		rts_strings__set_way(rts, way);
	from_name(base, rts);
	from_comment(elf, rts);
	return true;
}
