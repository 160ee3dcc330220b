// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An ordinary user's program that looks like a GHC program by its strings and symbols, but whose
 * suspendThread and resumeThread lie in another file, which it maps at PLACE itself: probing them
 * would probe that file, in all processes.
 *
 *   fake_runtime FILE OFFSET     the file, and the offset of the page to map
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef PLACE
#define PLACE 0x20000000
#endif
#ifndef TARGET
#define TARGET 0
#endif
#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

/* rts/RtsMessages.c and rts/RtsUtils.c have these next to each other. */
__attribute__((used)) static const char strings[] =
	"\0009.0.2\000    (GHC version %s for %s)\n\000rts_thr\000RTS way\000";

__asm__(".globl suspendThread, resumeThread, stat_endGC\n"
	".set suspendThread, " TEXT(PLACE) " + " TEXT(
		TARGET) "\n"
			".set resumeThread, " TEXT(PLACE) " + " TEXT(
				TARGET) "\n"
					".set stat_endGC, " TEXT(PLACE) " + " TEXT(TARGET) "\n");

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	void *at;

	if (fd < 0)
		return 2;
	at = mmap((void *)PLACE, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
		  strtol(argv[2], NULL, 0));
	if (at == MAP_FAILED)
		return 3;
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
