/* SPDX-License-Identifier: GPL-2.0-or-later */
/* post: one request with libcurl, and its answer. Runs in the sender. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/base.h"
#include "push_priv.h"

#define CONNECT_TIMEOUT_MS 10000L
/* The limit for an answer's body; the rest of a longer one is not awaited. */
#define ANSWER_MAX 65536

struct post {
	const struct sender_opts *opts;
	CURL *curl;
	struct curl_slist *headers;
	/* the request at hand */
	int fd;
	off_t begin, size, at; /* of the body, within the file */
	char query[PUSH_QUERY_MAX];
	uint8_t answer[ANSWER_MAX];
	size_t answer_len;
	char error[CURL_ERROR_SIZE];
};

/* ── what libcurl asks for ───────────────────────────────────────────────────────────────── */

static size_t read_body(char *to, size_t size, size_t n, void *ctx)
{
	struct post *p = ctx;
	size_t want = MIN(size * n, (size_t)(p->size - p->at));
	ssize_t got = want ? pread(p->fd, to, want, p->begin + p->at) : 0;

	if (got < 0 || (want && !got))
		return CURL_READFUNC_ABORT;
	p->at += got;
	return (size_t)got;
}

/* libcurl rewinds the body when it has to send it again on a new connection. */
static int seek_body(void *ctx, curl_off_t offset, int origin)
{
	struct post *p = ctx;

	if (origin != SEEK_SET || offset < 0 || offset > p->size)
		return CURL_SEEKFUNC_CANTSEEK;
	p->at = offset;
	return CURL_SEEKFUNC_OK;
}

static size_t take_answer(char *data, size_t size, size_t n, void *ctx)
{
	struct post *p = ctx;
	size_t len = MIN(size * n, ANSWER_MAX - p->answer_len);

	memcpy(p->answer + p->answer_len, data, len);
	p->answer_len += len;
	/* a short count makes libcurl end the transfer */
	return len;
}

/* ── the request ─────────────────────────────────────────────────────────────────────────── */

static int add_line(struct post *p, const char *line)
{
	struct curl_slist *list = curl_slist_append(p->headers, line);

	if (!list)
		return -ENOMEM;
	p->headers = list;
	return 0;
}

static int add_header(struct post *p, const char *name, const char *value)
{
	char line[256];

	snprintf(line, sizeof(line), "%s: %s", name, value);
	return add_line(p, line);
}

/* A line of the file. libcurl leaves a header out if nothing follows its colon, and sends it
 * without a value if its name ends with a semicolon. */
static int add_own(struct post *p, const char *line)
{
	size_t name = strcspn(line, ":");
	char *empty;
	int err;

	if (line[name + strspn(line + name, ": \t")])
		return add_line(p, line);
	if (asprintf(&empty, "%.*s;", (int)name, line) < 0)
		return -ENOMEM;
	err = add_line(p, empty);
	free(empty);
	return err;
}

static int make_headers(struct post *p)
{
	const struct sender_opts *o = p->opts;
	int err = add_header(p, "Content-Type", o->content_type);

	if (!err && o->content_encoding)
		err = add_header(p, "Content-Encoding", o->content_encoding);
	/* without an Expect header: many servers never send the "100 Continue" that curl would
	 * wait for */
	if (!err)
		err = add_header(p, "Expect", "");
	for (size_t i = 0; !err && i < o->headers->n; i++)
		err = add_own(p, o->headers->lines[i]);
	return err;
}

#define SET(what, value) (bad |= curl_easy_setopt(p->curl, (what), (value)) != CURLE_OK)

static int set_options(struct post *p)
{
	const struct sender_opts *o = p->opts;
	bool bad = false;

	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_HTTPHEADER, p->headers);
	SET(CURLOPT_USERAGENT, "safescoped/" SAFESCOPED_VERSION);
	SET(CURLOPT_READFUNCTION, read_body);
	SET(CURLOPT_READDATA, p);
	SET(CURLOPT_SEEKFUNCTION, seek_body);
	SET(CURLOPT_SEEKDATA, p);
	SET(CURLOPT_WRITEFUNCTION, take_answer);
	SET(CURLOPT_WRITEDATA, p);
	SET(CURLOPT_ERRORBUFFER, p->error);
	SET(CURLOPT_NOSIGNAL, 1L);
	/* whatever curl can decode: servers and proxies compress even without being asked to */
	SET(CURLOPT_ACCEPT_ENCODING, "");
	SET(CURLOPT_CONNECTTIMEOUT_MS, MIN((long)o->timeout_ms, CONNECT_TIMEOUT_MS));
	SET(CURLOPT_TIMEOUT_MS, (long)o->timeout_ms);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	if (o->ca) {
		struct curl_blob ca = {
			.data = (void *)o->ca, .len = strlen(o->ca), .flags = CURL_BLOB_NOCOPY};

		SET(CURLOPT_CAINFO_BLOB, &ca);
		SET(CURLOPT_CAINFO, NULL);
		SET(CURLOPT_CAPATH, NULL);
	}
	return bad ? -ENOMEM : 0;
}

struct post *post__new(const struct sender_opts *opts)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->opts = opts;
	if (curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK)
		p->curl = curl_easy_init();
	if (!p->curl || make_headers(p) || set_options(p)) {
		curl_slist_free_all(p->headers);
		curl_easy_cleanup(p->curl);
		free(p);
		return NULL;
	}
	return p;
}

/* The form that push_labels__query() produces. A damaged file may have anything here, and
 * libcurl would refuse it as a URL at every attempt. */
static bool is_query(const char *text)
{
	while (*text > ' ' && *text < 127)
		text++;
	return !*text;
}

/* The file's first line is the query. */
static int open_file(struct post *p, int fd)
{
	ssize_t n = pread(fd, p->query, sizeof(p->query) - 1, 0);
	char *end = n > 0 ? memchr(p->query, '\n', (size_t)n) : NULL;
	struct stat st;

	if (!end || fstat(fd, &st))
		return -EINVAL;
	*end = '\0';
	if (!is_query(p->query))
		return -EINVAL;
	p->fd = fd;
	p->begin = end + 1 - p->query;
	p->size = st.st_size - p->begin;
	p->at = 0;
	p->answer_len = 0;
	p->error[0] = '\0';
	return 0;
}

static CURLcode perform(struct post *p)
{
	char *url = NULL;
	CURLcode code = CURLE_OUT_OF_MEMORY;

	if (asprintf(&url, "%s%s%s", p->opts->url, *p->query ? "?" : "", p->query) < 0)
		return code;
	if (curl_easy_setopt(p->curl, CURLOPT_URL, url) == CURLE_OK &&
	    curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->size) == CURLE_OK)
		code = curl_easy_perform(p->curl);
	free(url);
	return code;
}

/* ── the answer ──────────────────────────────────────────────────────────────────────────── */

static void read_answer(struct post *p, struct sender_answer *a)
{
	char *type = NULL;

	if (curl_easy_getinfo(p->curl, CURLINFO_CONTENT_TYPE, &type) != CURLE_OK)
		type = NULL;
	answer__read(&(struct answer_body){.otlp = p->opts->otlp,
					   .type = type,
					   .data = p->answer,
					   .len = p->answer_len},
		     a);
}

/*
 * True if the headers decide the outcome although the rest of the answer is missing: its body was
 * cut off, too long or too late. A request whose body was not read completely does not count as
 * accepted.
 */
static bool is_decided(const struct post *p, long status)
{
	return status >= 300 || (status >= 200 && p->at == p->size);
}

void post__file(struct post *p, int fd, struct sender_answer *ret_answer)
{
	struct sender_answer *a = ret_answer;
	curl_off_t retry_after = 0;
	CURLcode code;
	long status = 0;

	*a = (struct sender_answer){.outcome = SENDER_BAD_FILE};
	if (open_file(p, fd))
		return;
	code = perform(p);
	/* only read_body() returns that */
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return;
	curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK && !is_decided(p, status)) {
		a->outcome = SENDER_FAILED;
		answer__keep_text(a, p->error[0] ? p->error : curl_easy_strerror(code), SIZE_MAX);
		return;
	}
	a->outcome = SENDER_ANSWERED;
	a->status = (uint32_t)status;
	if (curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &retry_after) == CURLE_OK &&
	    retry_after > 0)
		a->retry_after_s = (uint64_t)retry_after;
	/* if the body is too long, its beginning is enough */
	if (code == CURLE_OK || code == CURLE_WRITE_ERROR)
		read_answer(p, a);
	else
		answer__keep_text(a, p->error[0] ? p->error : curl_easy_strerror(code), SIZE_MAX);
}
