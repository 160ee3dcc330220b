/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: what the text report and the page remark about safe calls, and in which order they list
 * them.
 */
#ifndef SAFESCOPED_EXPORT_CALLS_H
#define SAFESCOPED_EXPORT_CALLS_H

#include "export_priv.h"

/* The I/O manager waits all the time: its calls come last. */
bool call__is_io_manager(const struct pic_call *call);
/* With what the open ones took so far. */
uint64_t call__ns(const struct pic_call *call);
/* "I/O manager, 3 open for 1.2 s" */
void call__add_notes(struct buf *notes, const struct pic_call *call);

#endif
