/* SPDX-License-Identifier: GPL-2.0-or-later */
/* filter_program: builds seccomp programs with libseccomp, in a separate process. */
#ifndef SAFESCOPED_CONFINE_FILTER_PROGRAM_H
#define SAFESCOPED_CONFINE_FILTER_PROGRAM_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stdint.h>

/* Adds rules to the filter. Returns 0 or a negative errno, as libseccomp does. */
typedef int (*filter_rules_fn)(scmp_filter_ctx f, const void *arg);

/*
 * `otherwise` is the action for system calls without a rule (SCMP_ACT_…). The caller frees
 * ret_program->filter. -ENOMEM if the rules cannot be compiled or memory is short, -EINVAL for a
 * program that the kernel would not accept, -EIO, -EBUSY: no process can be created at the moment;
 * and the errors of memfd_create().
 */
int filter_program__make(uint32_t otherwise, filter_rules_fn rules, const void *arg,
			 struct sock_fprog *ret_program);

#endif
