/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * archives: finds the functions of static archives (libc.a, libgmp.a, GHC's libHSbase-….a) by their
 * bytes in programs that were linked from them and have been stripped of symbols.
 *
 * The linker copies each section of an archive's members whole, and writes only where there are
 * relocations. So a section can be recognised by all of its other bytes, and with it all functions
 * in it. Ambiguous or short matches name nothing: see place_priv.h.
 *
 * Archives are parsed, and a program's code is compared, in a process without rights, once per
 * file.
 */
#ifndef SAFESCOPED_ARCHIVES_ARCHIVES_H
#define SAFESCOPED_ARCHIVES_ARCHIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVES_MAX_FILES 2048
#define ARCHIVES_MAX_BYTES (2ULL << 30) /* for all files together */

struct archives;
struct confine_job;
struct elf_file;
struct symbols_hit;

/*
 * Maps all archives (lib….a) in the directories and their subdirectories. Archives that cannot be
 * read are left out, and a log line reports how many. -ENOENT: a directory cannot be read, or has
 * no archive, which is printed; -ENOMEM.
 */
int archives__open(const char *const *dirs, size_t n, struct archives **ret_archives);
/* True if archives__open() would find archives in each directory; prints nothing. */
bool archives__are_there(const char *const *dirs, size_t n);
void archives__free(struct archives *archives);

/* The functions of archives found in one file. */
struct archives_known;

/*
 * Starts a child that searches the file's code for them; `profiled`: use the profiled way of GHC's
 * libraries instead of the others. Does not wait. The archives and the file must outlive the job.
 * Errors of confine__start().
 */
int archives__start(const struct archives *archives, const struct elf_file *elf, bool profiled,
		    struct confine_job **ret_job);
/*
 * The job's result; waits for as long as the file's owner may be waited for. -EBUSY: not finished,
 * and may be called again. Otherwise the job is over and must be freed with confine_job__free().
 * -ENOENT: the file has none of the functions; -EIO, -ETIMEDOUT, -ENOMEM, -E2BIG: unknown.
 */
int archives__await(const struct archives *archives, const struct elf_file *elf,
		    struct confine_job *job, struct archives_known **ret_known);

void archives_known__free(struct archives_known *known);
/*
 * The function at vaddr, as from symbols__lookup(); the name lives as long as `known`. If not
 * exact: the nearest one below it in the same section of the archive. -ENOENT: none is known.
 */
int archives_known__lookup(const struct archives_known *known, uint64_t vaddr,
			   struct symbols_hit *ret_hit);
/* The i-th function in order of address, and an upper bound for the end of its code. -ENOENT:
 * there are fewer. */
int archives_known__at(const struct archives_known *known, size_t i, struct symbols_hit *ret_hit,
		       uint64_t *ret_end);
/* True if the function found there is the runtime's. */
bool archives_known__is_rts(const struct archives_known *known, uint64_t vaddr);
/* The next function after vaddr in the same section, skipping `skip` of them, like
 * symbols__after(). */
int archives_known__after(const struct archives_known *known, uint64_t vaddr, size_t skip,
			  struct symbols_hit *ret_hit);

#endif
