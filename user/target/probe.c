/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of a probe in a function, and the file that it is set in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "rts/insn.h"
#include "target_priv.h"

/*
 * The path may refer to another file by now, so the file that is opened is compared with the one
 * that was analysed. That is done only on a file system that answers without a server.
 */
void probe__open_file(struct target *target)
{
	const struct image *image = target->rts.image;
	struct target_info *info = &target->info;
	struct origin origin = {0};
	char process[64];
	struct stat st;
	uid_t uid = 0;
	int fd;

	info->reach = ORIGIN_FOREIGN;
	info->in_overlay = false;
	fd = image ? open(image->path, O_PATH | O_CLOEXEC) : -1;
	if (fd < 0) {
		info->no_probes =
			"its executable, or the library that holds the runtime, cannot be "
			"opened again";
		return;
	}
	snprintf(process, sizeof(process), "/proc/%d", info->pid ? info->pid : getpid());
	if (stat(process, &st) == 0)
		uid = st.st_uid;
	origin__of(info->pid, fd, uid, &origin);
	if (origin.reach == ORIGIN_FOREIGN) {
		snprintf(target->why_no_probes, sizeof(target->why_no_probes),
			 "its runtime is in a file on a file system that is not known to be local "
			 "(%s): its server could block the host while a probe is placed",
			 origin.fs[0] ? origin.fs : "its mount cannot be seen");
		info->no_probes = target->why_no_probes;
	} else if (fstat(fd, &st) || st.st_dev != image->dev || st.st_ino != image->ino) {
		info->no_probes = "the file that holds its runtime was replaced";
	} else {
		info->reach = origin.reach;
		info->in_overlay = origin.overlay;
		info->probe_file = fd;
		return;
	}
	close(fd);
}

/*
 * The address of the place in the file. It is relative to the runtime's image, and never derived
 * from what is mapped at the address: a program can map any file there.
 */
static bool place_in_file(const struct target *target, const struct rts_place *place,
			  uint64_t *ret_vaddr)
{
	const struct image *image = target->rts.image;
	const struct image_map *map = place->addr ? images__at(&target->images, place->addr) : NULL;

	if (!map || map->image != image || map->bias != image->bias || !image->elf)
		return false;
	*ret_vaddr = place->addr - image->bias;
	return true;
}

void probe__place(const struct target *target, enum rts_probed which, bool entry_state,
		  struct target_probe *ret_probe)
{
	const struct rts_place *place = rts__probed(&target->rts, which);
	const struct rts_probe *chosen = &target->rts.probes[which];
	const struct image *image = target->rts.image;
	struct insn_choice choice = chosen->choice;
	struct target_probe p = {0};
	uint64_t vaddr, offset;
	const uint8_t *code;
	size_t len;

	memset(ret_probe, 0, sizeof(*ret_probe));
	if (target->info.probe_file < 0 || !place_in_file(target, place, &vaddr))
		return;
	/* must be inside the function, whatever the child that read the file has chosen */
	code = chosen->known ? rts__function_code(image->elf, vaddr, &len, &offset) : NULL;
	if (!code || choice.offset >= len)
		return;
	if (entry_state && (choice.stack != 0 || !choice.args_intact)) {
		/* Better an expensive probe than a wrong argument. */
		memset(&choice, 0, sizeof(choice));
		snprintf(choice.text, sizeof(choice.text), "(first instruction)");
	}
	p.addr = place->addr + choice.offset;
	p.offset = offset + choice.offset;
	p.dev = image->dev;
	p.ino = image->ino;
	p.found = place->found;
	p.emulated = choice.emulated;
	memcpy(p.path, image->path, sizeof(p.path));
	memcpy(p.insn, choice.text, sizeof(p.insn));
	*ret_probe = p;
}
