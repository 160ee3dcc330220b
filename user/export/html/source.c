/* SPDX-License-Identifier: GPL-2.0-or-later */
/* page.css and page.js as they lie beside this file, for the assembler to take in: the build is
 * made from the top folder. */
#include "html_priv.h"

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl html_css, html_js\n"
	"html_css: .incbin \"user/export/html/page.css\"\n"
	".byte 0\n"
	"html_js: .incbin \"user/export/html/page.js\"\n"
	".byte 0\n"
	".popsection\n");
/* clang-format on */
