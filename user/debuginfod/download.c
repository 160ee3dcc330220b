/* SPDX-License-Identifier: GPL-2.0-or-later */
/* download: downloads one file at a time with libcurl. Runs in the process that has the network. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/base.h"
#include "debuginfod_priv.h"

#define CONNECT_TIMEOUT_MS 10000L
#define MAX_REDIRECTS	   5L
#define NEWS_EVERY_NS	   500000000ULL
/* A server that sends less than this while others could be asked hangs: as for debuginfod's client
 * library. */
#define LEAST_BYTES 102400L

struct download {
	const struct debuginfod_opts *opts;
	CURL *curl;
	int out, file;
	uint64_t at, told_ns, until_ns;
	uint32_t hung; /* bit i: server i let the last request to it time out */
	char error[CURL_ERROR_SIZE];
};

static bool send_news(const struct download *d, const struct download_news *news)
{
	return write(d->out, news, sizeof(*news)) == sizeof(*news);
}

static size_t take_bytes(char *data, size_t size, size_t n, void *ctx)
{
	struct download *d = ctx;
	size_t len = size * n, done = 0;

	/* curl looks at the time only after many of these, which compressed are gigabytes */
	if (len > DEBUGINFOD_MAX_FILE - d->at || time__monotonic_ns() >= d->until_ns)
		return 0;
	while (done < len) {
		ssize_t put = pwrite(d->file, data + done, len - done, (off_t)(d->at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return 0;
		done += (size_t)put;
	}
	d->at += len;
	return len;
}

static int report_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total,
			   curl_off_t up)
{
	struct download *d = ctx;
	uint64_t ns = time__monotonic_ns();
	struct download_news news = {.bytes = (uint64_t)MAX(now, (curl_off_t)0),
				     .total = (uint64_t)MAX(total, (curl_off_t)0)};

	(void)up_total;
	(void)up;
	if (ns - d->told_ns < NEWS_EVERY_NS)
		return 0;
	d->told_ns = ns;
	return send_news(d, &news) ? 0 : 1;
}

#define SET(what, value) (bad |= curl_easy_setopt(d->curl, (what), (value)) != CURLE_OK)

static int set_options(struct download *d)
{
	bool bad = false;

	SET(CURLOPT_USERAGENT, "safescoped/" SAFESCOPED_VERSION);
	SET(CURLOPT_WRITEFUNCTION, take_bytes);
	SET(CURLOPT_WRITEDATA, d);
	SET(CURLOPT_XFERINFOFUNCTION, report_progress);
	SET(CURLOPT_XFERINFODATA, d);
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_ERRORBUFFER, d->error);
	SET(CURLOPT_FAILONERROR, 1L);
	SET(CURLOPT_FOLLOWLOCATION, 1L);
	SET(CURLOPT_MAXREDIRS, MAX_REDIRECTS);
	SET(CURLOPT_NOSIGNAL, 1L);
	/* whatever curl can decode: a proxy may compress without being asked to, and the file is
	 * kept as it comes */
	SET(CURLOPT_ACCEPT_ENCODING, "");
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	SET(CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	return bad ? -ENOMEM : 0;
}

/*
 * Sets the time limits of one request. A server that sends the file may use all the time that is
 * left; one that hangs may use its share only, as `others` are still to be asked.
 */
static bool set_times(struct download *d, uint64_t now, size_t others)
{
	long left_ms = (long)((d->until_ns - now) / 1000000ULL) + 1;
	long part_ms = left_ms / (long)(others + 1);
	long part_s = others ? MAX(part_ms / 1000, 1L) : 0;
	bool bad = false;

	SET(CURLOPT_TIMEOUT_MS, left_ms);
	SET(CURLOPT_CONNECTTIMEOUT_MS, MAX(MIN(part_ms, CONNECT_TIMEOUT_MS), 1L));
	SET(CURLOPT_LOW_SPEED_TIME, part_s);
	SET(CURLOPT_LOW_SPEED_LIMIT, part_s ? MAX(LEAST_BYTES / part_s, 1L) : 0);
	return !bad;
}

/* Messages go to journals that others read. */
static void note_failure(struct download_news *news, const char *server, const char *why)
{
	const char *host = strstr(server, "://") + 3;
	const char *at = memrchr(host, '@', strcspn(host, "/?#"));

	snprintf(news->text, sizeof(news->text), "%.*s%s%.80s: %s", (int)(host - server), server,
		 at ? "…" : "", at ? at : host, why);
}

/* -ENOENT: this server does not have it. `others`: how many can be asked after it. */
static int from_one(struct download *d, const char *server, const struct download_task *task,
		    size_t others, struct download_news *news)
{
	char url[DEBUGINFOD_URL_MAX + BUILD_ID_MAX + 32];
	uint64_t now = time__monotonic_ns();
	size_t len = strlen(server);
	long status = 0;
	CURLcode code;

	if (now >= d->until_ns)
		return -ETIMEDOUT;

	while (len && server[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s/buildid/%s/%s", (int)len, server, task->build_id,
		 debuginfod_kind__name((enum debuginfod_kind)task->kind));
	d->at = 0;
	d->error[0] = '\0';
	if (curl_easy_setopt(d->curl, CURLOPT_URL, url) != CURLE_OK || !set_times(d, now, others))
		return -ENOMEM;
	code = curl_easy_perform(d->curl);
	curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK)
		return 0;
	if (status == 404)
		return -ENOENT;
	note_failure(news, server, d->error[0] ? d->error : curl_easy_strerror(code));
	return code == CURLE_OPERATION_TIMEDOUT || time__monotonic_ns() >= d->until_ns ? -ETIMEDOUT
										       : -EIO;
}

/* Those that hung come last, so that they do not hold up each file. Returns their number. */
static size_t order(const struct download *d, const struct download_task *task,
		    uint32_t ret_servers[DEBUGINFOD_MAX_URLS])
{
	size_t n = 0;

	for (int hung = 0; hung < 2; hung++)
		for (uint32_t i = 0; i < d->opts->n; i++)
			if (!(task->skip >> i & 1) && (int)(d->hung >> i & 1) == hung)
				ret_servers[n++] = i;
	return n;
}

static void from_all(struct download *d, const struct download_task *task,
		     struct download_news *news)
{
	uint32_t servers[DEBUGINFOD_MAX_URLS];
	size_t n;

	news->done = 1;
	news->err = -ENOENT;
	d->until_ns = time__monotonic_ns() +
		      (uint64_t)d->opts->timeout_ms * 1000000ULL * machine__slowness();
	n = order(d, task, servers);
	for (size_t i = 0; i < n; i++) {
		uint32_t no = servers[i];
		int err = from_one(d, d->opts->urls[no], task, n - i - 1, news);

		d->hung = err == -ETIMEDOUT ? d->hung | 1U << no : d->hung & ~(1U << no);
		/* a server that failed may have had the file */
		if (err != -ENOENT)
			news->err = err;
		news->server = no;
		if (!err)
			break;
	}
	news->bytes = news->total = d->at;
}

void download__run(const struct debuginfod_opts *opts, int in, int out, int file)
{
	struct download d = {.opts = opts, .out = out, .file = file, .curl = curl_easy_init()};
	struct download_task task;
	ssize_t n;

	if (!d.curl || set_options(&d))
		return;
	for (;;) {
		struct download_news news = {0};

		do
			n = recv(in, &task, sizeof(task), 0);
		while (n < 0 && errno == EINTR);
		if (n != sizeof(task))
			break;
		task.build_id[sizeof(task.build_id) - 1] = '\0';
		from_all(&d, &task, &news);
		if (!send_news(&d, &news))
			break;
	}
	curl_easy_cleanup(d.curl);
}
