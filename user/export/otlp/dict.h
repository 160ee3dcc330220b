/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dict: OTLP's dictionary: tables of strings, attributes, mappings, functions, locations and stacks
 * that all profiles of a request refer to. Each entry occurs once; place 0 of each table is its
 * zero value, "none".
 *
 * Entries are added as they are requested. After an error (no memory, too many entries) place 0 is
 * returned, and the error is kept: dict__error().
 */
#ifndef SAFESCOPED_OTLP_DICT_H
#define SAFESCOPED_OTLP_DICT_H

#include "../export_priv.h"
#include "otlp.pb-c.h"

struct dict;

/* The picture must outlive the dictionary. */
int dict__new(const struct picture *pic, struct dict **ret_dict);
void dict__free(struct dict *dict);
int dict__error(const struct dict *dict);

/* Escaped by text__escape. NULL counts as "". */
int32_t dict__string(struct dict *dict, const char *s);
int32_t dict__text(struct dict *dict, const char *key, const char *value);
int32_t dict__number(struct dict *dict, const char *key, int64_t value);
/* A mapped file; build_id in hex, "" if not known. */
int32_t dict__mapping(struct dict *dict, const char *path, const char *build_id);
/* A stack of the picture, in a process whose executable has that file name and mapping. */
int32_t dict__stack(struct dict *dict, uint32_t stack, int32_t mapping, const char *exe);

/* The maximum size of its message in bytes. */
uint64_t dict__bytes(const struct dict *dict);
/* Fills in the message, which is valid until the dictionary is freed. */
int dict__message(struct dict *dict, Otlp__ProfilesDictionary *ret_message);

#endif
