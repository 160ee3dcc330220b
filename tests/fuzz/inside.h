/* SPDX-License-Identifier: GPL-2.0-or-later */
/* inside: what runs in a child else runs in the fuzzer itself, where its mistakes are found. */
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
