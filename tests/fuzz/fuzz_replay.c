/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A capture from anybody, replayed and written in every format. The first byte selects whether the
 * input is the whole file, one block's raw bytes in an otherwise valid file, so that checksums do
 * not keep the fuzzer out, or the eventlog of a process with some records. Its other bits select
 * how much is kept at once, Haskell threads' lanes, and cuts in between.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "capture/codec_priv.h"
#include "logs/logs.h"
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

enum { ONE_BLOCK = 1, FEW_RECORDS = 2, HASKELL_LANES = 4, CUTS = 8 };

static void put_file(FILE *file, unsigned how, const uint8_t *data, size_t size)
{
	const struct timeline_opts opts = {
		.frequency_hz = 99,
		.start_ns = 1000000,
		.start_unix_ns = 1,
		.max_records = how & FEW_RECORDS ? 16 : 0,
		.haskell_lanes = how & HASKELL_LANES,
	};
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

static void put_call(struct buf *block, pid_t tid, uint64_t start, uint64_t end)
{
	struct wire_call call = {.h = {.type = WIRE_CALL,
				       .tgid = 7,
				       .tid = (uint32_t)tid,
				       .ns = end,
				       .size = sizeof(call)},
				 .start_ns = start};
	const struct intake_input in = {.kind = TI_RECORD, .data = &call, .size = sizeof(call)};

	call.rts.tso = 0x1000;
	call.rts.tso_id = 1;
	call.rts.where = WIRE_WHERE_SAFE_CALL;
	if (code__put(block, &in))
		abort();
}

/* A process that was seen for 1 s, and its log. */
static void put_log(FILE *file, const uint8_t *data, size_t size)
{
	static const struct intake_log_join how = {.session_ns = 1000000,
						   .observed_ns = 1000001,
						   .now_ns = 1001000000,
						   .now_wall_ns = 1795270033001000000};
	const struct target_info info = {.pid = 7,
					 .comm = "c",
					 .exe = "",
					 .build_id = "",
					 .ghc_version = "9.0.2",
					 .way = "rts_thr",
					 .threaded = true,
					 .capabilities = 2};
	const struct intake_input inputs[] = {
		{.kind = TI_LOG_BYTES, .pid = 7, .data = data, .size = size},
		{.kind = TI_LOG,
		 .pid = 7,
		 .text = "l",
		 .data = &how,
		 .size = sizeof(how),
		 .a = size},
		{.kind = TI_FINISH, .a = 1001000000}};
	const struct intake_input target = {
		.kind = TI_TARGET, .pid = 7, .info = &info, .a = 1000000, .b = 1};
	struct buf block;

	buf__init(&block, CAPTURE_MAX_BLOCK);
	if (code__put(&block, &target))
		abort();
	for (unsigned i = 0; i < 20; i++)
		put_call(&block, 8, 2000000 + i * 50000, 2020000 + i * 50000);
	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
		if (code__put(&block, &inputs[i]))
			abort();
	put_file(file, ONE_BLOCK, (const uint8_t *)block.data, block.len);
	buf__free(&block);
}

static void write_all(const struct picture *pic)
{
	static const char *const formats[] = {"speedscope", "folded", "json", "text",
					      "chrome",	    "pprof",  "html"};
	const struct export_opts opts = {.verbose = true};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct export_format *f = export__find(formats[i], strlen(formats[i]));
		FILE *out = fopen("/dev/null", "w");

		if (!out || f->write(out, pic, &opts))
			abort();
		fclose(out);
	}
}

static unsigned records;

/* Makes some cuts, each as if the session ended there. */
static void cut(void *ctx, struct timeline *tl, uint64_t ns, bool last)
{
	struct timeline_cut cut;

	(void)ctx;
	if (!last && ++records % 16)
		return;
	if (timeline__cut(tl, ns, &cut))
		abort();
	timeline_cut__free(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct joined_logs logs = {.n = 0};
	struct replay_hooks hooks = {.ctx = &logs, .join = joined_logs__join};
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
	if (data[0] == 'L')
		put_log(file, data + 1, size - 1);
	else if (data[0] & ONE_BLOCK)
		put_file(file, data[0], data + 1, size - 1);
	else
		fwrite(data + 1, 1, size - 1, file);
	fclose(file);
	if (data[0] & CUTS)
		hooks.at = cut;
	records = 0;
	file = fmemopen(bytes, len, "r");
	if (!file)
		abort();
	if (!replay__read(file, "fuzz", &hooks, &replay)) {
		write_all(replay__picture(replay));
		replay__free(replay);
	}
	fclose(file);
	joined_logs__free(&logs);
	free(bytes);
	return 0;
}
