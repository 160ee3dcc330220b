/* SPDX-License-Identifier: GPL-2.0-or-later */
/* packed: a stream of protobuf messages, gzipped. Part of the export room. */
#ifndef SAFESCOPED_EXPORT_PACKED_H
#define SAFESCOPED_EXPORT_PACKED_H

#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

struct packed;

int packed__new(FILE *out, struct packed **ret_packed);
/* What protobuf-c packs into. Errors are kept until packed__finish(). */
ProtobufCBuffer *packed__buffer(struct packed *packed);
/* The error, if there was one so far: what would still be packed is not worth it. */
int packed__error(const struct packed *packed);
/* What was packed so far, before it is gzipped. */
uint64_t packed__bytes(const struct packed *packed);
/* Writes the rest. */
int packed__finish(struct packed *packed);
void packed__free(struct packed *packed);

#endif
