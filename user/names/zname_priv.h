/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes GHC's linker symbols: `base_GHCziBase_zpzp_info` is `++` of GHC.Base in base. Source:
 * GHC's libraries/ghc-boot/GHC/Utils/Encoding.hs (zEncodeString) and compiler/GHC/Cmm/CLabel.hs
 * (pprCLabel), 8.10 to 9.14.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_ZNAME_PRIV_H
#define SAFESCOPED_NAMES_ZNAME_PRIV_H

#include <stdbool.h>
#include <stddef.h>

enum zname_kind {
	ZNAME_OTHER = 0, /* no suffix of GHC's */
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
	char name[512];	   /* "$wgo"; the whole symbol if it is not Haskell's */
	char unique[24];   /* "s3g1" for a local binding (-fexpose-internal-symbols); else "" */
};

/*
 * Always fills *out. 0: a label of GHC's (is_haskell or is_rts); -ENOENT: any other symbol, whose
 * name is kept. A C symbol of the same form (Foo_bar_info) cannot be distinguished.
 */
int zname__decode(const char *sym, struct zname *out);

/*
 * The C function through which C code calls what a `foreign import ccall "wrapper"` made,
 * "zdmainzdMainzdMainzuwrap" (compiler/GHC/HsToCore/Foreign/Decl.hs, dsFExportDynamic): the
 * import's package, module and name. False: any other symbol, or one too long; *ret_z is unchanged.
 */
bool zname__wrapper(const char *sym, struct zname *ret_z);

/* Removes what Cabal appends to the version, in place: "text-1.2.5.0-2zQ…". */
void zname__drop_hash(char *package);

/*
 * Decodes len bytes of z-encoded text into out (size > 0), NUL-terminated, in UTF-8. False: it was
 * cut to fit. An invalid escape stands for itself, as in GHC's decoder.
 */
bool zname__zdecode(const char *enc, size_t len, char *out, size_t size);

#endif
