/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gunzip: decompresses gzip data. Include after cmocka.h. */
#ifndef SAFESCOPED_TEST_GUNZIP_H
#define SAFESCOPED_TEST_GUNZIP_H

#include <zlib.h>

/* Decompresses all of it into `raw`; returns the number of bytes. */
static inline size_t gunzip(const void *gz, size_t len, void *raw, size_t size)
{
	z_stream z = {.next_in = (Bytef *)gz,
		      .avail_in = (uInt)len,
		      .next_out = raw,
		      .avail_out = (uInt)size};

	/* + 16: expect a gzip header */
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return size - z.avail_out;
}

#endif
