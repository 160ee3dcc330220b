/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processor-dependent parts of an archive's relocations. To support another processor, an
 * arch_NAME.c in this room implements the same. For the files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_ARCH_PRIV_H
#define SAFESCOPED_ARCHIVES_ARCH_PRIV_H

#include <stdbool.h>
#include <stdint.h>

/* True for the e_machine of members to be read. */
bool archives_arch__is_ours(uint16_t machine);

/* The bytes that the linker may write for a relocation: `len` of them, beginning `before` bytes
 * before its place. */
struct archives_field {
	uint8_t before, len;
};
/* False: the type, and so what is written, is unknown. */
bool archives_arch__field(uint32_t type, struct archives_field *ret_field);

/* The length of the no-op instruction that begins there; 0: another instruction. */
uint32_t archives_arch__padding(const uint8_t *code, uint32_t len);

/*
 * Where the symbol of a relocation is, judging by what the linker wrote. `field` has the bytes from
 * the relocation's place to the end of the type's field. False: the type does not show it.
 */
bool archives_arch__symbol(uint32_t type, const uint8_t *field, uint64_t place, int64_t addend,
			   uint64_t *ret_vaddr);

#endif
