/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of an archive's relocations depends on the processor. For another one, an arch_NAME.c in
 * this room provides the same. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_ARCH_PRIV_H
#define SAFESCOPED_ARCHIVES_ARCH_PRIV_H

#include <stdbool.h>
#include <stdint.h>

/* e_machine of the members that are read. */
bool archives_arch__is_ours(uint16_t machine);

/* The bytes that the linker may write for a relocation: from so many before its place. */
struct archives_field {
	uint8_t before, len;
};
/* False: the type is not known, nor what is written. */
bool archives_arch__field(uint32_t type, struct archives_field *ret_field);

/* How long the instruction is that does nothing and begins there; 0: it is another one. */
uint32_t archives_arch__padding(const uint8_t *code, uint32_t len);

/*
 * Where the symbol of a relocation is, by what the linker wrote. `field` has the bytes at its
 * place, as many as the type's field is long after the place. False: the type does not show it.
 */
bool archives_arch__symbol(uint32_t type, const uint8_t *field, uint64_t place, int64_t addend,
			   uint64_t *ret_vaddr);

#endif
