/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A capture from anybody: replayed, and written in every format. The first byte chooses between the
 * input as the whole file and the input as one block's raw bytes in a file that is right otherwise,
 * so that checksums do not keep the fuzzer out.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "capture/codec.h"
#include "export/export.h"

static void put_block(FILE *file, const uint8_t *data, size_t size)
{
	struct block_header h = {.magic = CAPTURE_BLOCK_MAGIC,
				 .raw_size = (uint32_t)size,
				 .stored_size = (uint32_t)size,
				 .crc = (uint32_t)crc32(0, data, (uInt)size)};

	h.header_crc =
		(uint32_t)crc32(0, (const void *)&h, offsetof(struct block_header, header_crc));
	fwrite(&h, 1, sizeof(h), file);
	fwrite(data, 1, size, file);
}

static void put_file(FILE *file, const uint8_t *data, size_t size)
{
	const struct timeline_opts opts = {
		.frequency_hz = 99, .start_ns = 1000000, .start_unix_ns = 1};
	char *json = capture_header__make(&opts, "0.1.0", "pid");
	uint32_t crc;

	if (!json)
		abort();
	crc = (uint32_t)crc32(0, (const void *)CAPTURE_MAGIC, strlen(CAPTURE_MAGIC));
	crc = (uint32_t)crc32(crc, (const void *)json, (uInt)strlen(json));
	crc = (uint32_t)crc32(crc, (const void *)"\n", 1);
	fprintf(file, "%s%s\n%08x\n", CAPTURE_MAGIC, json, (unsigned)crc);
	put_block(file, data, size);
	free(json);
}

static void write_all(const struct timeline *tl)
{
	static const char *const formats[] = {"speedscope", "folded", "json",
					      "text",	    "chrome", "pprof"};
	const struct export_opts opts = {.verbose = true};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct export_format *f = export__find(formats[i], strlen(formats[i]));
		FILE *out = fopen("/dev/null", "w");

		if (!out || f->write(out, tl, &opts))
			abort();
		fclose(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replay *replay;
	char *bytes = NULL;
	size_t len = 0;
	FILE *file;

	log__set_level(LOG_LVL_QUIET);
	if (size < 2)
		return 0;
	file = open_memstream(&bytes, &len);
	if (!file)
		abort();
	if (data[0] & 1)
		put_file(file, data + 1, size - 1);
	else
		fwrite(data + 1, 1, size - 1, file);
	fclose(file);
	file = fmemopen(bytes, len, "r");
	if (!file)
		abort();
	if (!replay__read(file, "fuzz", NULL, &replay)) {
		write_all(replay__timeline(replay));
		replay__free(replay);
	}
	fclose(file);
	free(bytes);
	return 0;
}
