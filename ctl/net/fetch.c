// SPDX-License-Identifier: GPL-2.0-only
// Transfers of libcurl that end in a text, or in a sentence that says why not.
#include "ctl/net/fetch.h"

#include <errno.h>
#include <event2/event.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/curl_calls.h"
#include "ctl/net/curl_loop.h"
#include "ctl/net/fetch_body.h"

enum {
	REDIRECTS_MAX = 5,
	CONNECT_MS = 10000,
	HEADER_MAX = 1024, // bytes of an ETag or a time that is kept
};

struct fetch {
	struct curl_loop *loop;
	CURL *easy;
	struct curl_slist *headers;
	struct fetch_body *body;
	struct fetch_result result;
	char *url;
	char why[CURL_ERROR_SIZE];
	fetch_done *done;
	void *ctx;
};

void fetch_result_free(struct fetch_result *r)
{
	free(r->text);
	free(r->etag);
	free(r->modified);
	*r = (struct fetch_result){0};
}

bool fetch_is_url(const char *text)
{
	return !strncasecmp(text, "http://", 7) || !strncasecmp(text, "https://", 8);
}

void fetch_digest(const char *text, size_t len, char ret[FETCH_DIGEST])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!EVP_Digest(text, len, digest, &n, EVP_sha256(), NULL))
		mem_exhausted();
	for (unsigned i = 0; i < n && 2 * i + 2 < FETCH_DIGEST; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

const char *fetch_url_problem(const char *url)
{
	const char *problem = NULL;
	char *host = NULL;
	CURLU *parsed;

	if (curl_calls_load(NULL))
		return "cannot be fetched: libcurl is not installed";
	if (!(parsed = curl_url()))
		mem_exhausted();
	if (!fetch_is_url(url))
		problem = "is not an http or https URL";
	else if (curl_url_set(parsed, CURLUPART_URL, url, 0) ||
		 curl_url_get(parsed, CURLUPART_HOST, &host, 0))
		problem = "is not a valid URL";
	curl_free(host);
	curl_url_cleanup(parsed);
	return problem;
}

static void fetch_free(struct fetch *f)
{
	curl_easy_cleanup(f->easy);
	curl_slist_free_all(f->headers);
	fetch_body_free(f->body);
	fetch_result_free(&f->result);
	free(f->url);
	free(f);
}

void fetch_cancel(struct fetch *f)
{
	if (!f)
		return;
	curl_loop_stop(f->loop, f->easy);
	fetch_free(f);
}

// ---- what comes -----------------------------------------------------------------------------------

// The value of a header line if it is that header; allocated.
static bool take_header(const char *line, size_t len, const char *name, char **ret)
{
	size_t n = strlen(name);

	if (len <= n + 1 || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	for (line += n + 1, len -= n + 1; len && (*line == ' ' || *line == '\t'); line++)
		len--;
	while (len && (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' '))
		len--;
	if (len > HEADER_MAX)
		return true;
	free(*ret);
	*ret = mem_strndup(line, len);
	return true;
}

// One header line; the headers of a redirect come before those that count.
static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct fetch *f = ctx;
	CLEANUP_FREE char *encoding = NULL;
	size_t len = size * n;

	if (len > 5 && !memcmp(line, "HTTP/", 5)) {
		fetch_result_free(&f->result);
		fetch_body_begin(f->body, false);
	} else if (take_header(line, len, "content-encoding", &encoding) && encoding) {
		fetch_body_begin(f->body,
				 !strcasecmp(encoding, "gzip") || !strcasecmp(encoding, "x-gzip"));
	} else if (!take_header(line, len, "etag", &f->result.etag)) {
		take_header(line, len, "last-modified", &f->result.modified);
	}
	return len;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct fetch *f = ctx;
	long status = 0;

	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return size * n; // the page of an error
	return fetch_body_add(f->body, data, size * n) ? 0 : size * n;
}

// ---- the end --------------------------------------------------------------------------------------

static int errno_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return ETIMEDOUT;
	case CURLE_COULDNT_CONNECT:
		return ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
		return ENOENT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return EACCES;
	default:
		return EIO;
	}
}

static void fail(struct fetch *f, int code, const char *why)
{
	f->result.code = -code;
	err_system(&f->result.err, code, "cannot fetch '%s': %s", f->url, why);
}

static void judge_status(struct fetch *f)
{
	char why[64];
	long status = 0;

	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 304) {
		f->result.same = true;
	} else if (status != 200) {
		snprintf(why, sizeof(why), "the server answered %ld", status);
		fail(f, EIO, why);
	} else if (fetch_body_end(f->body, &f->result.text, &f->result.len)) {
		fail(f, EBADMSG, fetch_body_problem(f->body));
	}
}

static void judge(struct fetch *f, CURLcode code)
{
	const char *problem = fetch_body_problem(f->body);

	if (code == CURLE_OK)
		judge_status(f);
	else if (code == CURLE_WRITE_ERROR && problem)
		fail(f, EBADMSG, problem);
	else
		fail(f, errno_of(code), f->why[0] ? f->why : curl_easy_strerror(code));
}

static void on_done(void *ctx, CURL *easy, CURLcode code)
{
	struct fetch *f = ctx;
	struct fetch_result result;
	fetch_done *done = f->done;
	void *caller = f->ctx;

	(void)easy;
	judge(f, code);
	result = f->result;
	f->result = (struct fetch_result){0};
	fetch_free(f);
	done(caller, &result);
}

// ---- the request ----------------------------------------------------------------------------------

static void add_header(struct fetch *f, const char *name, const char *value)
{
	CLEANUP_FREE char *line = mem_printf("%s: %s", name, value);
	struct curl_slist *longer = curl_slist_append(f->headers, line);

	if (!longer)
		mem_exhausted();
	f->headers = longer;
}

static void add_headers(struct fetch *f, const struct fetch_request *r)
{
	// libcurl does not notice when a packed body is cut, so it is unpacked here.
	add_header(f, "Accept-Encoding", "gzip");
	if (r->etag)
		add_header(f, "If-None-Match", r->etag);
	if (r->modified)
		add_header(f, "If-Modified-Since", r->modified);
}

// A redirect may not leave HTTPS.
static const char *protocols_of(const char *url)
{
	return strncasecmp(url, "https:", 6) ? "http,https" : "https";
}

static void set_options(struct fetch *f, const struct fetch_request *r)
{
	CURL *easy = f->easy;

	curl_easy_setopt(easy, CURLOPT_URL, r->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, protocols_of(r->url));
	curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, protocols_of(r->url));
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
			 r->timeout_ms ? (long)r->timeout_ms : (long)FETCH_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, f->headers);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, f);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, f->why);
	// A resolver that does not answer must not keep a cancelled transfer.
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	if (r->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, r->ca);
}

int fetch_start(struct curl_loop *loop, const struct fetch_request *r, fetch_done *done, void *ctx,
		struct fetch **ret, struct err *err)
{
	const char *problem = fetch_url_problem(r->url);
	struct fetch *f;
	int code;

	if (problem)
		return err_input(err, "'%s' %s", r->url, problem);
	f = mem_new(struct fetch);
	*f = (struct fetch){.loop = loop,
			    .easy = curl_easy_init(),
			    .body = fetch_body_new(r->bytes_max ? r->bytes_max : FETCH_BYTES_MAX),
			    .url = mem_strdup(r->url),
			    .done = done,
			    .ctx = ctx};
	if (!f->easy)
		mem_exhausted();
	add_headers(f, r);
	set_options(f, r);
	code = curl_loop_start(loop, f->easy, on_done, f, err);
	if (code)
		fetch_free(f);
	else
		*ret = f;
	return code;
}

// ---- all at once ----------------------------------------------------------------------------------

struct waiting {
	struct event_base *base;
	struct fetch_result *result;
	size_t *left;
};

static void on_result(void *ctx, struct fetch_result *result)
{
	struct waiting *w = ctx;

	*w->result = *result;
	if (!--*w->left)
		event_base_loopbreak(w->base);
}

static int fetch_on(struct event_base *base, struct curl_loop *loop,
		    const struct fetch_request *requests, size_t n, struct fetch_result *results,
		    struct err *err)
{
	CLEANUP_FREE struct waiting *waiting = mem_zalloc(n, sizeof(*waiting));
	size_t left = n;

	for (size_t i = 0; i < n; i++) {
		struct fetch *f;
		int code;

		waiting[i] = (struct waiting){base, &results[i], &left};
		code = fetch_start(loop, &requests[i], on_result, &waiting[i], &f, &results[i].err);
		results[i].code = code;
		left -= code != 0;
	}
	if (left && event_base_dispatch(base) < 0)
		return err_system(err, EIO, "the event loop failed");
	return 0;
}

int fetch_all(const struct fetch_request *requests, size_t n, struct fetch_result *results,
	      struct err *err)
{
	struct event_base *base = event_base_new();
	struct curl_loop *loop = NULL;
	int code;

	if (!base)
		return err_system(err, ENOMEM, "cannot make an event loop");
	code = curl_loop_new(base, &loop, err);
	code = code ? code : fetch_on(base, loop, requests, n, results, err);
	curl_loop_free(loop);
	event_base_free(base);
	return code;
}
