/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: the notes on safe calls in the text report and on the page, and what their order there
 * depends on.
 */
#ifndef SAFESCOPED_EXPORT_CALLS_H
#define SAFESCOPED_EXPORT_CALLS_H

#include "export_priv.h"

/* True for calls of the I/O manager, which waits all the time: they are listed last. */
bool call__is_io_manager(const struct pic_call *call);
/* The wall time of all calls, including the open ones so far. */
uint64_t call__ns(const struct pic_call *call);
/* "I/O manager, 3 open for 1.2 s" */
void call__add_notes(struct buf *notes, const struct pic_call *call);

#endif
