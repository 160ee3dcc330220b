/* SPDX-License-Identifier: GPL-2.0-or-later */
/* twin: uses the names room without a process: on one file, at its own addresses. */
#include "twin.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "names_priv.h"
#include "wire.h"

#define PAGE 4096ULL

struct twin {
	struct images images;
	struct rts rts; /* empty: the class of code is known already */
	struct names *names;
	struct elf_file *elf; /* the image's */
};

static int has_symbols(const struct elf_file *elf)
{
	return elf__n_symbols(elf, ELF_SYMTAB) > 1 ? 0 : -ENODATA;
}

static int open_image(struct twin *twin, const char *path)
{
	int fd = -1, err = fd__open_regular(path, &fd);

	if (!err)
		err = images__of_file(&twin->images, fd, path, path__base(path), true);
	fd__close(&fd);
	if (err)
		return err;
	twin->elf = twin->images.images[0]->elf;
	if (!twin->elf)
		return twin->images.images[0]->elf_err ?: -ENOEXEC;
	return has_symbols(twin->elf);
}

int twin__open(const char *path, struct names_helpers *helpers, struct twin **ret_twin)
{
	struct twin *twin = calloc(1, sizeof(*twin));
	int err;

	if (!twin)
		return -ENOMEM;
	err = open_image(twin, path);
	if (!err)
		err = names__new(&(struct names_of){.images = &twin->images,
						    .rts = &twin->rts,
						    .helpers = helpers,
						    .ctx = twin},
				 &twin->names);
	if (err) {
		twin__free(twin);
		return err;
	}
	*ret_twin = twin;
	return 0;
}

void twin__free(struct twin *twin)
{
	if (!twin)
		return;
	names__free(twin->names);
	images__free(&twin->images);
	free(twin);
}

bool twin__build_id(const struct twin *twin, char out[41])
{
	return elf__build_id(twin->elf, out);
}

int twin__bias(const struct twin *twin, const struct twin_marks *marks, uint64_t *ret_bias)
{
	const struct {
		const char *name;
		uint64_t addr;
	} places[] = {{"suspendThread", marks->suspend}, {"resumeThread", marks->resume}};

	if (!elf__is_pie_or_dso(twin->elf)) {
		*ret_bias = 0;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct elf_sym sym;

		if (!places[i].addr || elf__find_symbol(twin->elf, places[i].name, &sym, NULL) ||
		    places[i].addr < sym.value)
			continue;
		/* executables are moved by whole pages; a probe is less than a page into its
		 * function */
		*ret_bias = (places[i].addr - sym.value) & ~(PAGE - 1);
		return 0;
	}
	return -ENOENT;
}

static bool take(const struct code_name *found, struct code_name *name)
{
	const char *file = name->file;

	if (found->source == NAME_NONE)
		return false;
	*name = *found;
	name->file = file;
	return true;
}

bool twin__name(struct twin *twin, uint64_t bias, uint64_t frame, struct code_name *name)
{
	uint64_t kind = frame >> WIRE_FRAME_KIND_SHIFT, addr = frame & WIRE_FRAME_ADDR_MASK;
	struct code_name found;

	if (addr < bias)
		return false;
	twin->names->code_as = name->code;
	names__frame(twin->names, kind << WIRE_FRAME_KIND_SHIFT | (addr - bias), &found);
	found.code = name->code;
	found.plumbing = name->plumbing;
	return take(&found, name);
}

bool twin__caller(struct twin *twin, uint64_t bias, uint64_t addr, struct code_name *name)
{
	struct code_name found;

	if (addr < bias)
		return false;
	twin->names->code_as = CODE_HASKELL;
	names__caller(twin->names, addr - bias, &found);
	return take(&found, name);
}

bool twin__function(struct twin *twin, uint64_t offset, struct code_name *name)
{
	struct code_name found;
	uint64_t vaddr;

	if (!elf__offset_to_vaddr(twin->elf, offset, &vaddr))
		return false;
	twin->names->code_as = CODE_C;
	names__c_code(twin->names, vaddr, false, &found);
	return take(&found, name);
}
