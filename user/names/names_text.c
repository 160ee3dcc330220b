/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names_text: the texts of names, and C functions' symbols as they were written. */
#include <string.h>

#include "base/base.h"
#include "demangle_priv.h"
#include "names_priv.h"

const char *names__intern(struct names *names, const char *text, size_t len)
{
	uint32_t id;

	if (strtab__add(names->strings, text, MIN(len, (size_t)STRTAB_MAX_STRING), &id) < 0)
		return "";
	return strtab__get(names->strings, id);
}

void names__intern_all(struct names *names, struct code_name *n)
{
	n->name = intern(names, n->name);
	n->module = intern(names, n->module);
	n->package = intern(names, n->package);
	n->file = intern(names, n->file);
	n->src = intern(names, n->src);
	n->at.path = n->at.end ? intern(names, n->at.path) : "";
	n->at.build_id = n->at.end ? intern(names, n->at.build_id) : "";
}

/*
 * A capi import calls a C function that GHC made: "ghczuwrapperZC1ZCmainZCMainZCusleep"
 * (compiler/GHC/HsToCore/Foreign/Decl.hs). Its last part is what the program wrote.
 */
const char *names__capi(const char *name, char *buf, size_t size)
{
	const char *last = NULL;

	if (strncmp(name, "ghczuwrapperZC", 14) != 0)
		return name;
	for (const char *p = name; (p = strstr(p, "ZC")); p += 2)
		last = p + 2;
	if (!last || !*last)
		return name;
	zname__zdecode(last, strlen(last), buf, size);
	return buf;
}

/* The name as it was written, without the version that .symtab has: clock_gettime@GLIBC_2.17 */
void names__c_symbol(struct names *names, const struct symbols_hit *hit, struct code_name *n)
{
	char buf[1024], plain[512];
	size_t len = MIN(hit->name_len, strcspn(hit->name, "@"));

	n->name = names__intern(names, hit->name, len);
	n->name = intern(names, names__capi(n->name, plain, sizeof(plain)));
	n->name = intern(names, names__demangled(names, n->name, buf, sizeof(buf)));
}
