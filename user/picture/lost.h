/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lost: the causes of losses, and what they count. */
#ifndef SAFESCOPED_PICTURE_LOST_H
#define SAFESCOPED_PICTURE_LOST_H

#include "picture.h"

#define PIC_LOST_BEYOND_LIMIT "records beyond the memory limit"
#define PIC_LOST_OF_LOG	      "eventlog_" /* the beginning of such causes */

/* True if it is counted for one process. Other causes count for the session, in each process. */
bool pic_lost__is_own(const char *cause);
/* True if what was lost is not records, but parts of an eventlog. */
bool pic_lost__is_log(const char *cause);
/* True if `lost` and `lost_share` are all that the process lost. */
bool pic_target__lost_known(const struct pic_target *target);

#endif
