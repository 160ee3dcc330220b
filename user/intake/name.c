/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name: names the addresses and call sites of a target, each of them once. */
#include <stdio.h>

#include "intake_priv.h"

#define MAX_ADDRS (1U << 20) /* distinct named addresses per target */
#define MAX_SITES (1U << 16) /* per target */

/*
 * Frames of the RTS's own Cmm code that mean nothing to a reader: update, catch and mask frames,
 * the generic apply, selector and return frames (rts/StgMiscClosures.cmm, rts/Exception.cmm,
 * rts/Apply.cmm, rts/StgStartup.cmm in GHC 9.0).
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

static enum pic_frame_kind frame_kind(enum code_class code, unsigned kind)
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

static const char *group(enum pic_frame_kind kind, const struct code_name *name)
{
	if (kind == TF_RTS)
		return "RTS";
	if (kind == TF_GC)
		return "GC";
	if (kind == TF_KERNEL)
		return "kernel";
	return name->module[0] ? name->module : name->file;
}

/* Names from these sources may be those of a neighbour. */
static bool is_near(enum name_source source)
{
	return source == NAME_NEAREST || source == NAME_MODULE_NEAR ||
	       source == NAME_DESCRIPTION_NEAR;
}

/* Whether the name is shown as it is, without the module in front. */
static bool has_module(enum name_source source)
{
	return source == NAME_NONE || source == NAME_MODULE || source == NAME_MODULE_NEAR;
}

/* "Data.Map.insert", with ~ in front if it is only near. */
static int qualified(const struct code_name *name, struct buf *buf)
{
	buf__reset(buf);
	if (is_near(name->source))
		buf__addc(buf, '~');
	if (name->module[0] && !has_module(name->source)) {
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

static int add_named(struct intake *in, const struct code_name *name, unsigned kind,
		     uint32_t *ret_frame)
{
	struct pic_frame frame = {
		.module = name->module,
		.package = name->package,
		.src = name->src,
		.kind = frame_kind(name->code, kind),
		.approximate = is_near(name->source),
	};
	const struct pic_place place = {
		.address = name->at.address,
		.start = name->at.start,
		.end = name->at.end,
		.offset = name->at.offset,
		.path = name->at.path,
		.build_id = name->at.build_id,
	};
	struct buf buf;
	int err;

	/* Cmm code of the RTS gets its package from its symbols */
	if (frame.kind == TF_RTS || frame.kind == TF_GC)
		frame.package = "rts";
	buf__init(&buf, STRTAB_MAX_STRING);
	err = qualified(name, &buf);
	if (!err) {
		frame.name = buf.data;
		frame.file = group(frame.kind, name);
		err = picture__add_frame(in->pic, &frame, ret_frame);
	}
	if (!err && place.end)
		err = picture__set_place(in->pic, *ret_frame, &place);
	buf__free(&buf);
	return err;
}

/* NULL if the source has no count. */
static uint64_t *count_of(struct pic_names *names, enum name_source source)
{
	uint64_t *const counts[] = {
		[NAME_IPE] = &names->ipe,
		[NAME_DWARF] = &names->dwarf,
		[NAME_EXACT] = &names->exact,
		[NAME_NEAREST] = &names->nearest,
		[NAME_DESCRIPTION] = &names->description,
		[NAME_DESCRIPTION_NEAR] = &names->description,
		[NAME_MODULE] = &names->module,
		[NAME_MODULE_NEAR] = &names->module,
		[NAME_STRINGS] = &names->strings,
		[NAME_ARCHIVE] = &names->archive,
		[NAME_NONE] = &names->none,
	};

	return (unsigned)source < ARRAY_SIZE(counts) ? counts[source] : NULL;
}

void name__count(struct seen *s, const struct seen_addr *addr, bool leaf)
{
	uint64_t *count = count_of(leaf ? &s->pub->leaf_names : &s->pub->names,
				   (enum name_source)addr->source);

	if (count)
		++*count;
	if (addr->kept)
		addr->kept->counted[leaf]++;
}

/* Moves the counts under the previous source to the source of the better name. */
static void recount(struct seen *s, const struct seen_addr *addr, enum name_source was)
{
	for (int leaf = 0; leaf < 2; leaf++) {
		struct pic_names *names = leaf ? &s->pub->leaf_names : &s->pub->names;
		uint64_t *from = count_of(names, was);
		uint64_t *to = count_of(names, (enum name_source)addr->source);
		uint64_t n = from && to ? MIN(*from, (uint64_t)addr->counted[leaf]) : 0;

		if (n) {
			*from -= n;
			*to += n;
		}
	}
}

static void ask_name(struct intake *in, struct seen *s, uint64_t frame, struct code_name *ret_name)
{
	const struct intake_input input = {
		.kind = TI_NAME, .target = s->no, .a = frame, .name = ret_name};

	if (!s->namer.name)
		return;
	s->namer.name(s->namer.ctx, frame, ret_name);
	tap__report(in, 0, &input);
}

static int ask_site(struct intake *in, struct seen *s, uint64_t addr, struct target_site *ret_site)
{
	struct intake_input input = {.kind = TI_SITE, .target = s->no, .a = addr};
	int err;

	if (!s->namer.site)
		return -ENOENT;
	err = s->namer.site(s->namer.ctx, addr, ret_site);
	input.n = (uint32_t)(err < 0 ? -err : 0);
	input.site = err < 0 ? NULL : ret_site;
	tap__report(in, 0, &input);
	return err;
}

/* Without symbols of its own only a file that came later names the executable's code so. */
static void note_symbols(struct seen *s, const struct code_name *name)
{
	const char *exe = s->pub->exe;

	if (s->has_symbols || name->code != CODE_HASKELL || !exe ||
	    (name->source != NAME_EXACT && name->source != NAME_DWARF) ||
	    strcmp(name->file, path__base(exe)) != 0)
		return;
	s->has_symbols = true;
	if (picture__drop_missing(s->pub, INTAKE_NO_SYMBOLS) && s->n_missing)
		s->n_missing--;
}

static int fill_addr(struct intake *in, struct seen *s, uint64_t frame, struct seen_addr *addr)
{
	unsigned kind = (unsigned)(frame >> WIRE_FRAME_KIND_SHIFT);
	struct code_name name = {.source = NAME_NONE};

	ask_name(in, s, frame, &name);
	complete_name(&name);
	note_symbols(s, &name);
	addr->code = (uint8_t)name.code;
	addr->source = (uint8_t)name.source;
	addr->fold = !in->opts.plumbing &&
		     (kind == WIRE_FRAME_HS_RET || kind == WIRE_FRAME_UPDATEE) &&
		     (name.plumbing || is_folded(name.name));
	addr->gc_sync = is_gc_sync(name.name);
	addr->signal_return = !strcmp(name.name, NAMES_SIGNAL_RETURN);
	if (name.code == CODE_KERNEL)
		addr->kernel = kframe__of(name.name);
	addr->partial = name.partial;
	return add_named(in, &name, kind, &addr->frame);
}

static int new_addr(struct intake *in, struct seen *s, uint64_t frame, struct seen_addr **ret_addr)
{
	struct seen_addr *addr = calloc(1, sizeof(*addr));
	int err;

	if (!addr)
		return -ENOMEM;
	addr->key = frame;
	err = fill_addr(in, s, frame, addr);
	if (err) {
		free(addr);
		return err;
	}
	addr->used = true;
	err = addrs__add(s, addr);
	if (!err)
		*ret_addr = addr;
	return err;
}

/* True the 1st, 2nd, 4th, 8th… time that the address is met. */
static bool is_time_to_ask(struct seen_addr *addr)
{
	if (!addr->partial)
		return false;
	addr->met++;
	return (addr->met & (addr->met - 1)) == 0;
}

int name__again(struct intake *in, struct seen *s, struct seen_addr *addr)
{
	const struct seen_addr old = *addr;
	int err = fill_addr(in, s, addr->key, addr);

	if (err)
		return err;
	recount(s, addr, (enum name_source)old.source);
	if (addr->frame == old.frame && addr->fold == old.fold)
		return 0;
	if (!addr->changed) {
		addr->was = old.frame;
		addr->was_folded = old.fold;
	}
	addr->changed = true;
	return 0;
}

int name__addr(struct intake *in, struct seen *s, uint64_t frame, struct seen_addr *ret_name)
{
	struct seen_addr *addr = addrs__find(s, frame);
	int err = 0;

	if (!addr && HASH_COUNT(s->addrs) >= MAX_ADDRS) {
		*ret_name = (struct seen_addr){.frame = picture__mark(in->pic, MARK_TOO_MANY)};
		return 0;
	}
	if (!addr)
		err = new_addr(in, s, frame, &addr);
	else if (is_time_to_ask(addr))
		err = name__again(in, s, addr);
	if (err)
		return err;
	addr->used = true;
	*ret_name = *addr;
	ret_name->kept = addr;
	return 0;
}

static const struct pic_frame *frame_of(const struct intake *in, uint32_t frame)
{
	return picture__frame(in->pic, frame);
}

static int fill_site(struct intake *in, struct seen_site *site, struct target_site *found)
{
	struct pic_frame frame = {.kind = TF_FOREIGN};
	struct buf buf;
	int err;

	frame.name = found->function && found->function[0] ? found->function : "[unknown function]";
	frame.file = found->library ? found->library : "";
	err = picture__add_frame(in->pic, &frame, &site->function);
	if (err)
		return err;
	site->caller = UINT32_MAX;
	site->partial = found->caller.partial;
	site->function_name = frame_of(in, site->function)->name;
	site->library = frame_of(in, site->function)->file;
	site->caller_name = "";
	if (found->caller.name) {
		complete_name(&found->caller);
		site->manager = managers__have(found->caller.module);
		err = add_named(in, &found->caller, WIRE_FRAME_HS_RET, &site->caller);
		if (err)
			return err;
		site->caller_name = frame_of(in, site->caller)->name;
		site->caller_approximate = frame_of(in, site->caller)->approximate;
	}
	buf__init(&buf, STRTAB_MAX_STRING);
	err = buf__addf(&buf, "%s+0x%llx", found->file ? found->file : "",
			(unsigned long long)found->offset);
	site->place = err ? "" : picture__string(in->pic, buf.data);
	buf__free(&buf);
	return err;
}

static int first_name(struct intake *in, struct seen *s, struct seen_site *site)
{
	struct target_site found = {0};
	char place[64];
	int err = site->addr ? ask_site(in, s, site->addr, &found) : -ENOENT;

	if (err >= 0)
		return fill_site(in, site, &found);
	snprintf(place, sizeof(place), "0x%llx", (unsigned long long)site->addr);
	site->place = picture__string(in->pic, place);
	site->caller = UINT32_MAX;
	site->function_name = "[unknown function]";
	site->library = site->caller_name = "";
	/* there may be time to read it later */
	site->partial = err == -EBUSY;
	return picture__add_text(in->pic, TF_FOREIGN, site->function_name, &site->function);
}

int name__site_again(struct intake *in, struct seen *s, struct seen_site *site)
{
	struct target_site found = {0};

	/* keep what was known */
	if (ask_site(in, s, site->addr, &found) < 0)
		return 0;
	return fill_site(in, site, &found);
}

int name__site(struct intake *in, struct seen *s, uint64_t addr, struct seen_site **ret_site)
{
	struct seen_site *site;
	int err;

	HASH_FIND(hh, s->sites, &addr, sizeof(addr), site);
	if (site) {
		*ret_site = site;
		return 0;
	}
	err = ARRAY_RESERVE(s->site_v, s->sites_cap, s->n_sites + 1, MAX_SITES);
	if (err)
		return err;
	site = calloc(1, sizeof(*site));
	if (!site)
		return -ENOMEM;
	site->addr = addr;
	site->index = (uint32_t)s->n_sites;
	err = first_name(in, s, site);
	if (err) {
		free(site);
		return err;
	}
	err = HASH_INSERT(s->sites, addr, sizeof(site->addr), site);
	if (err)
		return err;
	s->site_v[s->n_sites++] = site;
	*ret_site = site;
	return 0;
}

void site__calls_back(struct seen_site *site)
{
	site->called_back = true;
	site->shorts_apart = true;
}

const struct seen_site *seen__site(const struct seen *s, uint32_t no)
{
	return no && no <= s->n_sites ? s->site_v[no - 1] : NULL;
}

const struct seen_site *seen__site_at(const struct seen *s, uint64_t addr)
{
	const struct seen_site *site;

	HASH_FIND(hh, s->sites, &addr, sizeof(addr), site);
	return site;
}
