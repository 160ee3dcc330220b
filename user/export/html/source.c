/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of the folder page, included verbatim by the assembler: the build runs in the top
 * folder. */
#include "html_priv.h"

#define PART(file) ".incbin \"user/export/html/page/" file "\"\n"

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl html_page, html_css, html_js\n"
	"html_page: " PART("page.html")
	".byte 0\n"
	"html_css: " PART("page.css")
	".byte 0\n"
	"html_js: "
	PART("base.js")
	PART("data.js")
	PART("view.js")
	PART("sums.js")
	PART("paint.js")
	PART("bins.js")
	PART("lanes.js")
	PART("axis.js")
	PART("slice.js")
	PART("flame.js")
	PART("tables.js")
	PART("keys.js")
	PART("page.js")
	".byte 0\n"
	".popsection\n");
/* clang-format on */
