/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads .eh_frame entry by entry. Format: Linux Standard Base Core 5.0, "Exception Frames", and
 * DWARF's Common and Frame Description Entries.
 */
#ifndef SAFESCOPED_ELF_EH_H
#define SAFESCOPED_ELF_EH_H

#include <stdbool.h>
#include <stdint.h>

#include "elf.h"

#define DW_EH_PE_ABSPTR	  0x00
#define DW_EH_PE_ULEB128  0x01
#define DW_EH_PE_UDATA2	  0x02
#define DW_EH_PE_UDATA4	  0x03
#define DW_EH_PE_UDATA8	  0x04
#define DW_EH_PE_SLEB128  0x09
#define DW_EH_PE_SDATA2	  0x0a
#define DW_EH_PE_SDATA4	  0x0b
#define DW_EH_PE_SDATA8	  0x0c
#define DW_EH_PE_FORMAT	  0x0f
#define DW_EH_PE_PCREL	  0x10
#define DW_EH_PE_APPLY	  0x70
#define DW_EH_PE_INDIRECT 0x80

/* A position in .eh_frame; `err` is sticky, and everything read after it is 0. */
struct eh_cursor {
	const uint8_t *data; /* of the section */
	uint64_t vaddr;	     /* of data[0] */
	uint64_t at, end;    /* offsets; end <= the section's size */
	bool err;
};

void eh_take(struct eh_cursor *c, void *out, size_t len);
uint8_t eh_take_u8(struct eh_cursor *c);
uint64_t eh_take_leb128(struct eh_cursor *c, bool is_signed);
/* Reads a value without adding its base. */
uint64_t eh_take_format(struct eh_cursor *c, uint8_t encoding);
/* Reads an address: absolute or relative to its own position, as code addresses always are. */
uint64_t eh_take_address(struct eh_cursor *c, uint8_t encoding);

struct eh_entry {
	uint64_t id_at; /* offset of the id field */
	uint32_t id;	/* 0: a CIE; else the distance from id_at back to its CIE */
	uint64_t body;	/* offset after the id */
	uint64_t end;
	bool terminator;
};

/* Reads the header of the entry at `at`; false if the entry does not fit into the section. */
bool eh_take_entry(const struct eh_cursor *section, uint64_t at, struct eh_entry *ret);

struct eh_cie {
	uint64_t at;	     /* offset of the entry */
	uint64_t code_align; /* factors of the instructions' operands */
	int64_t data_align;
	uint64_t ra;	    /* the column of the return address */
	uint64_t body, end; /* its instructions */
	uint8_t encoding;   /* of the FDEs' addresses */
	bool augmented;	    /* FDEs have augmentation data */
	bool valid;
};

struct eh_fde {
	uint64_t start, len; /* code covered, as in the file */
	uint64_t body, end;  /* its instructions */
};

/* Finds .eh_frame by its section, else by .eh_frame_hdr, then up to its segment's end. */
bool eh_find(const struct elf_file *elf, struct eh_cursor *ret_section);
/*
 * Reads an entry that is an FDE covering code. *cie caches the CIE read last, and is read again for
 * an FDE of another one; initialise it to {.at = UINT64_MAX}. False: not an FDE, or damaged.
 */
bool eh_take_fde(const struct elf_file *elf, const struct eh_cursor *section,
		 const struct eh_entry *entry, struct eh_cie *cie, struct eh_fde *ret_fde);

#endif
