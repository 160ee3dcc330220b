/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * archives: the functions of static archives (libc.a, libgmp.a, GHC's libHSbase-….a), found by
 * their bytes in programs that were linked from them and have no symbols any more.
 *
 * The linker copies each section of an archive's members whole, and writes only where there are
 * relocations. So a section is known again by all of its other bytes, and with it all the functions
 * in it. What matches in two ways, or too little, names nothing: see match_priv.h.
 *
 * Archives are parsed, and a program's code is compared, in a process without rights, once for a
 * file.
 */
#ifndef SAFESCOPED_ARCHIVES_ARCHIVES_H
#define SAFESCOPED_ARCHIVES_ARCHIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVES_MAX_DIRS  8
#define ARCHIVES_MAX_FILES 2048
#define ARCHIVES_MAX_BYTES (2ULL << 30) /* of all files together */

struct archives;
struct confine_job;
struct elf_file;
struct symbols_hit;

/*
 * Maps all archives (lib….a) in the directories and those below them. What cannot be read is left
 * out; a line reports how much that is. -ENOENT: a directory cannot be read, or none has an
 * archive, which is printed; -ENOMEM.
 */
int archives__open(const char *const *dirs, size_t n, struct archives **ret_archives);
void archives__free(struct archives *archives);

/* What one file has of their functions. */
struct archives_known;

/*
 * Looks for them in the file's code, in a child; `profiled`: GHC's libraries of the profiled way
 * are meant, and not the others. Waits for nothing. The archives and the file must outlive the job.
 * confine__start()'s errors.
 */
int archives__start(const struct archives *archives, const struct elf_file *elf, bool profiled,
		    struct confine_job **ret_job);
/*
 * Its result; waits as long as the file's owner may be waited for. -EBUSY: it goes on, and may be
 * asked for again. Otherwise it is over and is to be freed by confine_job__free(). -ENOENT: the
 * file has none of them; -EIO, -ETIMEDOUT, -ENOMEM, -E2BIG: it is not known.
 */
int archives__await(const struct archives *archives, const struct elf_file *elf,
		    struct confine_job *job, struct archives_known **ret_known);

void archives_known__free(struct archives_known *known);
/*
 * The function at vaddr, as symbols__lookup() has it; the name lives as long as `known`. Not exact:
 * the nearest one below it in the same section of the archive. -ENOENT: none is known.
 */
int archives_known__lookup(const struct archives_known *known, uint64_t vaddr,
			   struct symbols_hit *ret_hit);
/* The i-th in order of address, and where its code ends at the latest. -ENOENT: there are not so
 * many. */
int archives_known__at(const struct archives_known *known, size_t i, struct symbols_hit *ret_hit,
		       uint64_t *ret_end);
/* Whether the function that was found there is the runtime's. */
bool archives_known__is_rts(const struct archives_known *known, uint64_t vaddr);
/* The next one after vaddr in the same section, `skip` of them passed over, as symbols__after(). */
int archives_known__after(const struct archives_known *known, uint64_t vaddr, size_t skip,
			  struct symbols_hit *ret_hit);

#endif
