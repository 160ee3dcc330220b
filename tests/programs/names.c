/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The C++ side of Names.hs: names::spin(int), under the symbol that a C++ compiler gives it. */
int names_spin(int n) __asm__("_ZN5names4spinEi");

__attribute__((noinline)) int names_spin(int n)
{
	volatile unsigned int x = (unsigned int)n;

	for (int i = 0; i < 40000; i++)
		x = x * 1664525u + 1013904223u;
	return (int)(x & 1023);
}
