/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source of tests/data/tiny.elf, the ELF file that test_elf damages byte by byte. Made with
 *   gcc -O1 -fPIC -shared -nostdlib -fno-stack-protector -fcf-protection=none -Wl,--build-id=sha1 \
 *       -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,-z,lazy -Wl,--hash-style=both \
 *       -o tests/data/tiny.elf tests/data/tiny.c
 */
extern int imported(int);
extern int imported_data;

__thread long tiny_tls[3] = {1};
int tiny_object = 7;
const char tiny_string[] = "rts_thr_p";

static __attribute__((noinline, used)) int tiny_local(int x)
{
	return x * 3 + 1;
}

int tiny_calls(int x)
{
	return imported(tiny_local(x)) + imported_data;
}

long tiny_tls_sum(void)
{
	return tiny_tls[0] + tiny_tls[2];
}

/* Code without unwind rows, a label without type or size: what GHC's code looks like. */
__asm__(".text\n.globl tiny_Haskell_info\ntiny_Haskell_info:\n\tjmp *-16(%r13)\n");
