/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names a safe call's foreign function, and its caller. GHC compiles every safe call to the same
 * three calls in a row: suspendThread, the foreign function, resumeThread
 * (compiler/GHC/Cmm/LayoutStack.hs, lowerSafeForeignCall).
 */
#include "names.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "decode_priv.h"
#include "names_priv.h"

struct suspend_ctx {
	const struct names *names;
	const struct image_map *map; /* the site's mapping */
};

/* Whether addr is suspendThread, or a PLT entry that leads to it. */
static bool is_suspend(void *ctx, uint64_t addr)
{
	const struct suspend_ctx *c = ctx;
	const char *name;

	if (addr == c->names->of.rts->suspend.addr && addr != 0)
		return true;
	name = elf__plt_symbol(c->map->image->elf, addr - c->map->bias);
	return name && strcmp(name, "suspendThread") == 0;
}

int names__find_site(const struct names *names, uint64_t ret_addr, uint64_t *ret_site)
{
	/* The byte before it is certain to be in the code; the return address itself may be the
	 * end. */
	const struct image_map *map =
		ret_addr ? images__ever_at(names->of.images, ret_addr - 1) : NULL;
	struct suspend_ctx ctx = {.names = names, .map = map};
	size_t len, before;
	const uint8_t *code;

	if (!map || !map->image || !map->image->elf)
		return -ENOENT;
	/* The runtime's call sites may have been decoded already. */
	if (map->image == names->of.rts->image &&
	    callsites__at(&names->of.rts->callsites, ret_addr - map->bias)) {
		*ret_site = ret_addr;
		return 0;
	}
	code = images__code(names->of.images, ret_addr - 1, &len, &before);
	if (!code)
		return -ENOENT;
	before = MIN(before + 1, (size_t)INSN_SITE_WINDOW);
	return decode__site_back(names->of.helpers->decoder, names->user, code + 1 - before, before,
				 ret_addr, is_suspend, &ctx, ret_site);
}

static void imported(struct names *names, const struct image *image, const char *symbol,
		     struct target_site *s)
{
	char plain[256], buf[256];
	size_t len = strcspn(symbol, "@");

	len = MIN(len, sizeof(plain) - 1);
	memcpy(plain, symbol, len);
	plain[len] = '\0';
	s->library = intern(names, names__library_of(names, plain, image));
	s->function = intern(names, names__capi(plain, buf, sizeof(buf)));
}

static void name_callee(struct names *names, const struct image_map *map,
			const struct insn_call *call, struct target_site *s)
{
	const struct elf_file *elf = map->image->elf;
	const char *symbol = NULL;
	struct code_name name;
	char buf[256];

	s->function = "[indirect]";
	s->library = "";
	if (call->kind == INSN_CALL_DIRECT)
		symbol = elf__plt_symbol(elf, call->target - map->bias);
	else if (call->kind == INSN_CALL_SLOT)
		symbol = elf__got_symbol(elf, call->target - map->bias);
	if (symbol && symbol[0]) {
		imported(names, map->image, symbol, s);
	} else if (call->kind == INSN_CALL_DIRECT) {
		names__code(names, call->target, false, &name);
		s->function = intern(names, names__capi(name.name, buf, sizeof(buf)));
		s->library = name.file;
	}
}

/* Finds the target of a call through a register. `code`: the len bytes before the call. */
static void follow_register(struct names *names, const uint8_t *code, size_t len,
			    struct insn_call *call)
{
	struct insn_call set = *call;
	int err;

	if (call->kind != INSN_CALL_REGISTER)
		return;
	err = decode__set_before(names->of.helpers->decoder, names->user, code, len, &set);
	names->incomplete |= err == -EBUSY;
	if (!err && (set.kind == INSN_CALL_SLOT || images__ever_at(names->of.images, set.target)))
		*call = set;
}

int names__callee(struct names *names, uint64_t ret_addr, struct code_name *ret_name)
{
	const struct image_map *map =
		ret_addr ? images__ever_at(names->of.images, ret_addr - 1) : NULL;
	struct target_site s = {.library = "", .function = ""};
	struct insn_call call;
	size_t len, before;
	const uint8_t *code;
	int err;

	if (!map || !map->image || !map->image->elf)
		return -ENOENT;
	code = images__code(names->of.images, ret_addr - 1, &len, &before);
	if (!code)
		return -ENOENT;
	before = MIN(before + 1, (size_t)INSN_SITE_WINDOW);
	err = decode__call_before(names->of.helpers->decoder, names->user, code + 1 - before,
				  before, ret_addr, &call);
	names->incomplete |= err == -EBUSY;
	if (err < 0)
		return err;
	follow_register(names, code + 1 - before, before - (size_t)(ret_addr - call.at), &call);
	if (call.kind == INSN_CALL_DIRECT &&
	    !elf__plt_symbol(map->image->elf, call.target - map->bias)) {
		names__code(names, call.target, false, ret_name);
		return 0;
	}
	name_callee(names, map, &call, &s);
	if (s.function[0] == '[')
		return -ENOENT;
	*ret_name = (struct code_name){.name = intern(names, s.function),
				       .module = intern(names, ""),
				       .package = intern(names, ""),
				       .file = intern(names, s.library),
				       .src = intern(names, ""),
				       .source = NAME_EXACT,
				       .code = CODE_C};
	return 0;
}

int names__site(struct names *names, uint64_t ret_addr, struct target_site *ret_site)
{
	struct target_site s = {.library = "", .file = "", .function = "[indirect]"};
	const struct image_map *map;
	struct insn_call call;
	size_t len, before;
	const uint8_t *code;
	uint64_t offset;
	int err;

	names->incomplete = false;
	names__want_mapped(names, ret_addr);
	err = names__find_site(names, ret_addr, &s.site);
	names->incomplete |= err == -EBUSY;
	if (err < 0)
		return err;
	map = images__ever_at(names->of.images, s.site);
	code = images__code(names->of.images, s.site, &len, &before);
	if (!map || !code)
		return -ENOENT;
	err = decode__call_target(names->of.helpers->decoder, names->user, code,
				  MIN(len, (size_t)INSN_SITE_WINDOW), s.site, &call);
	names->incomplete |= err == -EBUSY;
	if (!err) {
		follow_register(names, code - before, before + (call.at - s.site), &call);
		name_callee(names, map, &call, &s);
	}
	s.function = intern(names, s.function);
	s.library = intern(names, s.library);
	names__caller(names, s.site, &s.caller);
	s.file = names__intern(names, map->image->base, strlen(map->image->base));
	if (elf__vaddr_to_offset(map->image->elf, s.site - map->bias, &offset))
		s.offset = offset;
	/* includes failures to name the callee */
	s.caller.partial = names->incomplete;
	*ret_site = s;
	return 0;
}
