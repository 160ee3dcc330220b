/* SPDX-License-Identifier: GPL-2.0-or-later */
/* packed: a stream of protobuf messages, gzipped. Part of the export room. */
#ifndef SAFESCOPED_EXPORT_PACKED_H
#define SAFESCOPED_EXPORT_PACKED_H

#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

struct packed;

int packed__new(FILE *out, struct packed **ret_packed);
/* The buffer to give to protobuf-c. Errors are kept until packed__finish(). */
ProtobufCBuffer *packed__buffer(struct packed *packed);
/* The first error so far, or 0: after one there is no point in packing more. */
int packed__error(const struct packed *packed);
/* The bytes packed so far, before compression. */
uint64_t packed__bytes(const struct packed *packed);
/* Writes the rest and returns the first error. */
int packed__finish(struct packed *packed);
void packed__free(struct packed *packed);

#endif
