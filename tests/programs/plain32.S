/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A 32-bit process without any library (so that no 32-bit compiler runtime is needed): says
 * "ready" and reads its input until it ends.
 */
	.code32
	.globl _start
	.text
_start:
	movl $4, %eax /* write */
	movl $1, %ebx
	movl $message, %ecx
	movl $6, %edx
	int $0x80
1:
	movl $3, %eax /* read */
	xorl %ebx, %ebx
	movl $buffer, %ecx
	movl $1, %edx
	int $0x80
	testl %eax, %eax
	jg 1b
	movl $1, %eax /* exit */
	xorl %ebx, %ebx
	int $0x80

	.data
message:
	.ascii "ready\n"
	.bss
buffer:
	.space 4
	.section .note.GNU-stack, "", @progbits
