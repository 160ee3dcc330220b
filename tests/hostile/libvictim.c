// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lea 0x1(%rdi),%eax: a breakpoint on its last byte is not at the start of an instruction, and
 * makes the sum x - 52 without any signal.
 */
__attribute__((noinline)) int add_one(int x)
{
	return x + 1;
}
