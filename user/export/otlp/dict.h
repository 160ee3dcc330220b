/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dict: OTLP's dictionary: tables of strings, attributes, mappings, functions, locations and stacks
 * that all profiles of a request refer to. Each entry is there once; place 0 of each table is its
 * zero value, "none".
 *
 * Places are given out as they are asked for. An error (no memory, too many) is kept, and place 0
 * is given out then: dict__error().
 */
#ifndef SAFESCOPED_OTLP_DICT_H
#define SAFESCOPED_OTLP_DICT_H

#include "../export_priv.h"
#include "otlp.pb-c.h"

struct dict;

/* The picture must live as long. */
int dict__new(const struct picture *pic, struct dict **ret_dict);
void dict__free(struct dict *dict);
int dict__error(const struct dict *dict);

/* As people shall see it, by text__escape. NULL counts as "". */
int32_t dict__string(struct dict *dict, const char *s);
int32_t dict__text(struct dict *dict, const char *key, const char *value);
int32_t dict__number(struct dict *dict, const char *key, int64_t value);
/* A file that is mapped; build_id in hex, "" if it is not known. */
int32_t dict__mapping(struct dict *dict, const char *path, const char *build_id);
/* A stack of the picture's, in a process whose executable is the file of that name, and has that
 * mapping. */
int32_t dict__stack(struct dict *dict, uint32_t stack, int32_t mapping, const char *exe);

/* The most bytes that its message takes. */
uint64_t dict__bytes(const struct dict *dict);
/* Fills the message in, which is valid until the dictionary is freed. */
int dict__message(struct dict *dict, Otlp__ProfilesDictionary *ret_message);

#endif
