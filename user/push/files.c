/* SPDX-License-Identifier: GPL-2.0-or-later */
/* files: the request headers and trusted certificates of a destination. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "push_priv.h"

#define CA_MAX (4U << 20)
/* What the first line of each certificate ends with, after "BEGIN " or "BEGIN TRUSTED ". */
#define PEM_MARK "CERTIFICATE-----"

uint64_t push_files__stamp(uint64_t stamp, const struct push_to *to)
{
	return push_file__stamp(push_file__stamp(stamp, to->headers), to->ca);
}

int push_files__read(const struct push_to *to, uid_t user, struct push_files *ret_files)
{
	/* taken first, so that a change during the reading is noticed later */
	struct push_files f = {.to = to, .stamp = push_files__stamp(0, to)};
	size_t len;
	int err = push_headers__read(to->headers, user, &f.headers), ca_err = 0;

	/* even if the headers are wrong: both are reported */
	if (to->ca)
		ca_err = push_file__read(to->ca, CA_MAX, user, &f.ca, &len);
	if (f.ca && !strstr(f.ca, PEM_MARK)) {
		log_error("%s: has no certificate in PEM", to->ca);
		ca_err = -EINVAL;
	}
	err = err ? err : ca_err;
	if (err)
		push_files__free(&f);
	f.lacking = err != 0;
	*ret_files = f;
	return err;
}

bool push_files__have_changed(const struct push_files *files)
{
	return push_files__stamp(0, files->to) != files->stamp;
}

void push_files__free(struct push_files *files)
{
	push_headers__free(&files->headers);
	free(files->ca);
	files->ca = NULL;
}
