/* SPDX-License-Identifier: GPL-2.0-or-later */
/* helpers: the helper processes of all kinds. */
#include <errno.h>
#include <stdlib.h>

#include "decode_priv.h"
#include "demangle_priv.h"
#include "dwarf_priv.h"
#include "names_priv.h"

int names_helpers__new(struct names_helpers **ret_helpers)
{
	struct names_helpers *h = calloc(1, sizeof(*h));
	int err = h ? demangler__new(&h->demangler) : -ENOMEM;

	if (!err)
		err = decoder__new(&h->decoder);
	if (!err)
		err = dwarf_helpers__new(&h->dwarf);
	if (err) {
		names_helpers__free(h);
		return err;
	}
	*ret_helpers = h;
	return 0;
}

void names_helpers__free(struct names_helpers *h)
{
	if (!h)
		return;
	demangler__free(h->demangler);
	decoder__free(h->decoder);
	dwarf_helpers__free(h->dwarf);
	free(h);
}

const char *names__demangled(struct names *names, const char *symbol, char *buf, size_t size)
{
	return demangle(names->of.helpers->demangler, names->user, symbol, buf, size,
			&names->incomplete);
}
