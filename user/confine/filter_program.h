/* SPDX-License-Identifier: GPL-2.0-or-later */
/* filter_program: programs of seccomp, made by libseccomp in a process of its own. */
#ifndef SAFESCOPED_CONFINE_FILTER_PROGRAM_H
#define SAFESCOPED_CONFINE_FILTER_PROGRAM_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stdint.h>

/* Adds rules. 0, or a negative errno as libseccomp has it. */
typedef int (*filter_rules_fn)(scmp_filter_ctx f, const void *arg);

/*
 * `otherwise` is the action for calls that no rule is about (SCMP_ACT_…). ret_program->filter is
 * the caller's to free. -ENOMEM where the rules cannot be made into a program or memory is short,
 * -EINVAL for a program that the kernel would not take, -EIO, -EBUSY: there can be no other process
 * now; and the errors of memfd_create().
 */
int filter_program__make(uint32_t otherwise, filter_rules_fn rules, const void *arg,
			 struct sock_fprog *ret_program);

#endif
