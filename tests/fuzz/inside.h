/* SPDX-License-Identifier: GPL-2.0-or-later */
/* inside: what otherwise runs in a child runs in the fuzzer itself, where errors are found. */
#ifndef SAFESCOPED_FUZZ_INSIDE_H
#define SAFESCOPED_FUZZ_INSIDE_H

#include "confine/confine.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	confine__run_inside();
	return 0;
}

#endif
