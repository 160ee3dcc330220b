/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GHC's linker symbols taken apart: `base_GHCziBase_zpzp_info` is `++` of GHC.Base in base.
 * Source: GHC's libraries/ghc-boot/GHC/Utils/Encoding.hs (zEncodeString) and
 * compiler/GHC/Cmm/CLabel.hs (pprCLabel), 8.10 to 9.14.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_ZNAME_PRIV_H
#define SAFESCOPED_NAMES_ZNAME_PRIV_H

#include <stdbool.h>
#include <stddef.h>

enum zname_kind {
	ZNAME_OTHER = 0, /* no suffix that GHC gives */
	ZNAME_INFO,
	ZNAME_CON_INFO,
	ZNAME_STATIC_INFO,
	ZNAME_ENTRY,
	ZNAME_CON_ENTRY,
	ZNAME_SLOW,
	ZNAME_FAST,
	ZNAME_RET,
	ZNAME_CLOSURE,
	ZNAME_CLOSURE_TBL,
	ZNAME_BYTES,
	ZNAME_SRT,
	ZNAME_TICKY,
	ZNAME_CC,
	ZNAME_CCS,
	ZNAME_IPE,
};

struct zname {
	bool is_haskell; /* package, module and name could be separated */
	bool is_rts;	 /* a Cmm label of the RTS: stg_ap_p_info */
	bool truncated;	 /* a part was longer than its buffer */
	enum zname_kind kind;
	char package[160]; /* "base", "text-1.2.5.0" (without a hash); "" for main, "rts" */
	char module[256];  /* "Data.Map.Internal" */
	char name[512];	   /* "$wgo"; all of the symbol if it is not Haskell's */
	char unique[24];   /* "s3g1" of a local binding (-fexpose-internal-symbols); else "" */
};

/*
 * Always fills *out. 0: a label that GHC made (is_haskell or is_rts); -ENOENT: any other symbol,
 * whose name is kept. A C symbol that looks like a label (Foo_bar_info) cannot be distinguished
 * from one.
 */
int zname__decode(const char *sym, struct zname *out);

/* "text-1.2.5.0-2zQ…": without what Cabal adds to the version. In place. */
void zname__drop_hash(char *package);

/*
 * Decodes len bytes of z-encoded text into out (size > 0), NUL-terminated, in UTF-8. Returns
 * false if it was cut to fit. What is no valid escape stands for itself, as in GHC's decoder.
 */
bool zname__zdecode(const char *enc, size_t len, char *out, size_t size);

#endif
