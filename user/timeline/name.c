/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name: addresses and call sites of one target, each named once. */
#include <stdio.h>

#include "private.h"

const char *tl__string(struct timeline *tl, const char *s)
{
	uint32_t id;

	if (!s ||
	    strtab__add(tl->frames.strings, s, MIN(strlen(s), (size_t)STRTAB_MAX_STRING), &id))
		return "";
	return strtab__get(tl->frames.strings, id);
}

/*
 * Frames of the RTS's own Cmm code that say nothing of the program: updates, catch and mask
 * frames, the generic apply, selector and return frames (rts/StgMiscClosures.cmm,
 * rts/Exception.cmm, rts/Apply.cmm, rts/StgStartup.cmm in GHC 9.0).
 */
static bool is_folded(const char *name)
{
	static const char *const exact[] = {
		"stg_upd_frame",	"stg_bh_upd_frame", "stg_catch_frame",
		"stg_marked_upd_frame", "stg_stop_thread",  "stg_enter",
		"stg_forceIO",		"stg_noforceIO",    "stg_unmaskAsyncExceptionszh_ret"};
	static const char *const prefix[] = {"stg_ap_",	 "stg_ret_",	       "stg_unmask",
					     "stg_mask", "stg_restore_cccs",   "stg_sel_",
					     "stg_gc_",	 "stg_keepAlive_frame"};
	size_t len = strlen(name), i;

	if (strncmp(name, "stg_", 4) != 0)
		return false;
	if (len > 5 && !strcmp(name + len - 5, "_info"))
		len -= 5;
	for (i = 0; i < ARRAY_SIZE(exact); i++)
		if (strlen(exact[i]) == len && !strncmp(name, exact[i], len))
			return true;
	for (i = 0; i < ARRAY_SIZE(prefix); i++)
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return true;
	return false;
}

/* Where a thread waits for the others before a collection (rts/Schedule.c, rts/sm/GC.c). */
static bool is_gc_sync(const char *name)
{
	static const char *const names[] = {"requestSync",	   "acquireAllCapabilities",
					    "stopAllCapabilities", "stopAllCapabilitiesWith",
					    "waitForGcThreads",	   "shutdown_gc_threads",
					    "releaseGCThreads",	   "wakeup_gc_threads",
					    "gcWorkerThread"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static enum tl_frame_kind frame_kind(enum code_class code, unsigned kind)
{
	switch (code) {
	case CODE_HASKELL:
		return TF_HASKELL;
	case CODE_RTS:
		return TF_RTS;
	case CODE_GC:
		return TF_GC;
	case CODE_KERNEL:
		return TF_KERNEL;
	case CODE_C:
		return TF_FOREIGN;
	case CODE_UNKNOWN:
		break;
	}
	switch (kind) {
	case WIRE_FRAME_KERNEL:
		return TF_KERNEL;
	case WIRE_FRAME_C_IP:
	case WIRE_FRAME_C_RET:
	case WIRE_FRAME_SITE:
		return TF_FOREIGN;
	default:
		return TF_HASKELL;
	}
}

static const char *group(enum tl_frame_kind kind, const struct code_name *name)
{
	if (kind == TF_RTS)
		return "RTS";
	if (kind == TF_GC)
		return "GC";
	if (kind == TF_KERNEL)
		return "kernel";
	return name->module[0] ? name->module : name->file;
}

/* "Data.Map.insert", with ~ in front if it is only the nearest symbol. */
static int qualified(const struct code_name *name, struct buf *buf)
{
	buf__reset(buf);
	if (name->source == NAME_NEAREST)
		buf__addc(buf, '~');
	if (name->module[0] && name->source != NAME_NONE) {
		buf__adds(buf, name->module);
		buf__addc(buf, '.');
	}
	return buf__adds(buf, name->name);
}

static void complete_name(struct code_name *name)
{
	name->name = name->name ? name->name : "[unknown]";
	name->module = name->module ? name->module : "";
	name->package = name->package ? name->package : "";
	name->file = name->file ? name->file : "";
	name->src = name->src ? name->src : "";
}

static int add_named(struct timeline *tl, const struct code_name *name, unsigned kind,
		     uint32_t *ret_frame)
{
	struct tl_frame frame = {
		.module = name->module,
		.package = name->package,
		.src = name->src,
		.kind = frame_kind(name->code, kind),
		.approximate = name->source == NAME_NEAREST,
	};
	struct buf buf;
	int err;

	buf__init(&buf, STRTAB_MAX_STRING);
	err = qualified(name, &buf);
	if (!err) {
		frame.name = buf.data;
		frame.file = group(frame.kind, name);
		err = frames__add(&tl->frames, &frame, ret_frame);
	}
	buf__free(&buf);
	return err;
}

void name__count(struct tl_names *names, enum name_source source)
{
	switch (source) {
	case NAME_IPE:
		names->ipe++;
		break;
	case NAME_DWARF:
		names->dwarf++;
		break;
	case NAME_EXACT:
		names->exact++;
		break;
	case NAME_NEAREST:
		names->nearest++;
		break;
	case NAME_DESCRIPTION:
		names->description++;
		break;
	case NAME_NONE:
		names->none++;
		break;
	}
}

static int new_addr(struct timeline *tl, struct target_state *tg, uint64_t frame,
		    struct addr_name **ret_addr)
{
	unsigned kind = (unsigned)(frame >> WIRE_FRAME_KIND_SHIFT);
	struct code_name name = {.source = NAME_NONE};
	struct addr_name *addr = calloc(1, sizeof(*addr));
	int err;

	if (!addr)
		return -ENOMEM;
	namer__name(tl, tg, frame, &name);
	complete_name(&name);
	addr->key = frame;
	addr->code = (uint8_t)name.code;
	addr->source = (uint8_t)name.source;
	addr->fold = !tl->opts.plumbing &&
		     (kind == WIRE_FRAME_HS_RET || kind == WIRE_FRAME_UPDATEE) &&
		     (name.plumbing || is_folded(name.name));
	addr->gc_sync = is_gc_sync(name.name);
	if (name.code == CODE_KERNEL)
		addr->kernel = kframe__of(name.name);
	err = add_named(tl, &name, kind, &addr->frame);
	if (err) {
		free(addr);
		return err;
	}
	HASH_ADD(hh, tg->addrs, key, sizeof(addr->key), addr);
	if (!addr->hh.tbl) {
		free(addr);
		return -ENOMEM;
	}
	*ret_addr = addr;
	return 0;
}

int name__addr(struct timeline *tl, struct target_state *tg, uint64_t frame,
	       const struct addr_name **ret_name)
{
	struct addr_name *addr;
	int err;

	HASH_FIND(hh, tg->addrs, &frame, sizeof(frame), addr);
	if (!addr) {
		if (HASH_COUNT(tg->addrs) >= TL_MAX_ADDRS)
			return -E2BIG;
		err = new_addr(tl, tg, frame, &addr);
		if (err)
			return err;
	}
	*ret_name = addr;
	return 0;
}

/* base, GHC.Event.Manager, .TimerManager, .EPoll, .Poll, .KQueue; since 9.10 GHC.Internal.Event. */
static bool is_manager(const char *module)
{
	return strncmp(module, "GHC.Event.", 10) == 0 ||
	       strncmp(module, "GHC.Internal.Event.", 19) == 0;
}

static int fill_site(struct timeline *tl, struct target_state *tg, struct site *site)
{
	struct target_site found = {0};
	struct tl_frame frame = {.kind = TF_FOREIGN};
	char place[64];
	struct buf buf;
	int err;

	site->caller = UINT32_MAX;
	if (!site->addr || namer__site(tl, tg, site->addr, &found) < 0) {
		snprintf(place, sizeof(place), "0x%llx", (unsigned long long)site->addr);
		site->place = tl__string(tl, place);
		site->function_name = "[unknown function]";
		site->library = site->caller_name = "";
		return frames__add_text(&tl->frames, TF_FOREIGN, site->function_name,
					&site->function);
	}
	frame.name = found.function && found.function[0] ? found.function : "[unknown function]";
	frame.file = found.library ? found.library : "";
	err = frames__add(&tl->frames, &frame, &site->function);
	if (err)
		return err;
	site->function_name = tl->frames.v[site->function].name;
	site->library = tl->frames.v[site->function].file;
	site->caller_name = "";
	if (found.caller.name) {
		complete_name(&found.caller);
		site->manager = is_manager(found.caller.module);
		err = add_named(tl, &found.caller, WIRE_FRAME_HS_RET, &site->caller);
		if (err)
			return err;
		site->caller_name = tl->frames.v[site->caller].name;
		site->caller_approximate = tl->frames.v[site->caller].approximate;
	}
	buf__init(&buf, STRTAB_MAX_STRING);
	err = buf__addf(&buf, "%s+0x%llx", found.file ? found.file : "",
			(unsigned long long)found.offset);
	site->place = err ? "" : tl__string(tl, buf.data);
	buf__free(&buf);
	return err;
}

int name__site(struct timeline *tl, struct target_state *tg, uint64_t addr, struct site **ret_site)
{
	struct site *site;
	int err;

	HASH_FIND(hh, tg->sites, &addr, sizeof(addr), site);
	if (site) {
		*ret_site = site;
		return 0;
	}
	err = TL_RESERVE(tg->site_v, tg->sites_cap, tg->n_sites + 1, TL_MAX_SITES);
	if (err)
		return err;
	site = calloc(1, sizeof(*site));
	if (!site)
		return -ENOMEM;
	site->addr = addr;
	site->index = (uint32_t)tg->n_sites;
	err = fill_site(tl, tg, site);
	if (err)
		goto fail;
	HASH_ADD(hh, tg->sites, addr, sizeof(site->addr), site);
	err = -ENOMEM;
	if (!site->hh.tbl)
		goto fail;
	tg->site_v[tg->n_sites++] = site;
	*ret_site = site;
	return 0;
fail:
	free(site);
	return err;
}
