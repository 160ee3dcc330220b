/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What packers like UPX do: this program's file ends with a static program and its length, which is
 * copied into anonymous memory and run from there, in this same process.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096UL

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static const uint8_t *payload(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t size;
	uint8_t *copy;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) ||
	    pread(fd, &size, sizeof(size), st.st_size - 8) != sizeof(size))
		die("unpacker");
	copy = malloc(size);
	if (!copy || pread(fd, copy, size, st.st_size - 8 - (off_t)size) != (ssize_t)size)
		die("payload");
	close(fd);
	return copy;
}

static void load(const uint8_t *elf, const Elf64_Phdr *p)
{
	uint64_t start = p->p_vaddr & ~(PAGE - 1);
	uint64_t end = (p->p_vaddr + p->p_memsz + PAGE - 1) & ~(PAGE - 1);
	int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
		   (p->p_flags & PF_X ? PROT_EXEC : 0);

	if (mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		die("mmap");
	memcpy((void *)p->p_vaddr, elf + p->p_offset, p->p_filesz);
	if (mprotect((void *)start, end - start, prot))
		die("mprotect");
}

int main(int argc, char **argv, char **envp)
{
	const uint8_t *elf = payload();
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)elf;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(elf + h->e_phoff);
	uint64_t phdr = 0;
	Elf64_auxv_t *aux;

	(void)argc;
	for (int i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type != PT_LOAD)
			continue;
		load(elf, &p[i]);
		if (p[i].p_offset == 0)
			phdr = p[i].p_vaddr + h->e_phoff;
	}
	while (*envp)
		envp++;
	for (aux = (Elf64_auxv_t *)(envp + 1); aux->a_type != AT_NULL; aux++) {
		if (aux->a_type == AT_PHDR)
			aux->a_un.a_val = phdr;
		else if (aux->a_type == AT_PHNUM)
			aux->a_un.a_val = h->e_phnum;
		else if (aux->a_type == AT_ENTRY)
			aux->a_un.a_val = h->e_entry;
	}
	/* the stack as the kernel made it: argc precedes argv */
	__asm__ volatile("mov %0, %%rsp\n\txor %%edx, %%edx\n\tjmp *%1" ::"r"(argv - 1),
			 "r"(h->e_entry)
			 : "memory");
	__builtin_unreachable();
}
