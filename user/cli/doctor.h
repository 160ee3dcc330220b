/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --doctor. Private to the cli room. */
#ifndef SAFESCOPED_CLI_DOCTOR_H
#define SAFESCOPED_CLI_DOCTOR_H

#include "options.h"

/* Prints the findings; 0 if all that is needed is there, else 2. */
int doctor__run(const struct options *options);

#endif
