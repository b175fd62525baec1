// SPDX-License-Identifier: GPL-2.0-only
// Transfers of libcurl, whose result is a text, or a sentence with the reason of a failure.
//
// A fetch is a chain of hops: to the URL, and to where each redirect leads. A hop asks our resolver
// for the host, since libcurl would do that in a thread and knows nothing of --resolver, and hands
// libcurl the addresses.
#include "ctl/net/fetch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/addr.h"
#include "ctl/base/mem.h"
#include "ctl/base/progress.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/net/crypto.h"
#include "ctl/net/curl_loop.h"
#include "ctl/net/dns.h"
#include "ctl/net/fetch_body.h"
#include "ctl/net/fetch_url.h"
#include "ctl/net/loop.h"

enum {
	REDIRECTS_MAX = 5,
	RESOLVE_MS = 10000, // limit for a hop; --resolver-timeout may be shorter
	CONNECT_MS = 10000,
	HEADER_MAX = 1024,  // bytes of an ETag or a time that is kept
	PAGE_MAX = 1 << 20, // body of an error, which is not read
	// libcurl reads this much a hundred times in a turn of the loop, and gzip may expand it a
	// hundred times.
	READ_BYTES = 1024,
};

// How near to this host an address is. A redirect must not lead nearer than the server that sent
// it. Otherwise the server of a feed could send requests to a service that is reachable only from
// this host, or from its link (server-side request forgery, CWE-918).
enum nearness { NEAR_NOTHING, NEAR_LINK, NEAR_HOST };

struct fetch {
	struct curl_loop *loop;
	CURL *easy;
	struct curl_slist *headers, *addresses;
	struct fetch_body *body;
	struct fetch_result result;
	char *url;                // as asked for
	char *at;                 // of the present hop
	struct fetch_hosts hosts; // of `at`
	struct dns_ask *ask;      // for them
	const struct dns_options *dns;
	bool has_copy; // the caller has a copy: the server may answer that it is the same
	unsigned redirects;
	enum nearness may;  // of the present hop
	struct addr denied; // where it led, which it may not; family 0: nowhere
	size_t page;        // bytes of an error or a redirect
	int64_t deadline_ms;
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

int fetch_digest(const char *text, size_t len, char ret[FETCH_DIGEST], struct err *err)
{
	unsigned char digest[CRYPTO_SHA256];
	int code = crypto_sha256(text, len, digest, err);

	if (code)
		return code;
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

static void fetch_free(struct fetch *f)
{
	dns_ask_stop(f->ask);
	curl_easy_cleanup(f->easy);
	curl_slist_free_all(f->headers);
	curl_slist_free_all(f->addresses);
	fetch_body_free(f->body);
	fetch_result_free(&f->result);
	fetch_hosts_free(&f->hosts);
	free(f->url);
	free(f->at);
	free(f);
}

void fetch_cancel(struct fetch *f)
{
	if (!f)
		return;
	curl_loop_stop(f->loop, f->easy);
	fetch_free(f);
}

// ---- how near it may go -------------------------------------------------------------------------

static enum nearness nearness_of(const struct addr *mapped)
{
	struct addr a = addr_unmapped(mapped);

	if (addr_is_loopback(&a) || addr_is_unspecified(&a))
		return NEAR_HOST;
	return addr_is_link_local(&a) ? NEAR_LINK : NEAR_NOTHING;
}

static struct addr address_of(const struct sockaddr *to)
{
	if (to->sa_family == AF_INET)
		return addr_from_v4(((const struct sockaddr_in *)to)->sin_addr.s_addr);
	return addr_from_v6(((const struct sockaddr_in6 *)to)->sin6_addr.s6_addr);
}

// Gets the address itself, however the URL is written: as a name, or as 0x7f.1. The connections of
// a proxy are not checked.
static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct fetch *f = ctx;
	struct addr addr = address_of(&to->addr);

	if (f->hosts.proxy || nearness_of(&addr) <= f->may)
		return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
	f->denied = addr;
	return CURL_SOCKET_BAD;
}

// Where the hop that has ended was.
static enum nearness was_near(const struct fetch *f)
{
	struct addr addr;
	char *text = NULL;

	curl_easy_getinfo(f->easy, CURLINFO_PRIMARY_IP, &text);
	if (f->hosts.proxy || !text || addr_parse(text, strlen(text), &addr, NULL))
		return NEAR_NOTHING;
	return nearness_of(&addr);
}

// ---- the response -------------------------------------------------------------------------------

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

// One header line. Headers of an interim response (100) or a redirect precede the final headers.
static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct fetch *f = ctx;
	CLEANUP_FREE char *encoding = NULL;
	size_t len = size * n;

	if (len > 5 && !memcmp(line, "HTTP/", 5)) {
		fetch_result_free(&f->result);
		fetch_body_begin(f->body, false);
	} else if (take_header(line, len, "content-encoding", &encoding) && encoding) {
		bool gzip = !strcasecmp(encoding, "gzip") || !strcasecmp(encoding, "x-gzip");

		fetch_body_begin(f->body, gzip);
		if (!gzip && strcasecmp(encoding, "identity") != 0)
			fetch_body_refuse(f->body, "has an encoding other than gzip");
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
	if (status != 200) {
		f->page += size * n;
		return f->page > PAGE_MAX ? 0 : size * n;
	}
	return fetch_body_add(f->body, data, size * n) ? 0 : size * n;
}

// ---- the end ------------------------------------------------------------------------------------

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
	err_stated(&f->result.err, code, "cannot fetch '%s': %s", f->url, why);
}

static void fail_denied(struct fetch *f)
{
	addr_text address;
	char why[160];

	snprintf(why, sizeof(why), "a redirect leads to %s, an address of this host or its link",
		 addr_format(&f->denied, address));
	fail(f, EACCES, why);
}

static void judge_status(struct fetch *f)
{
	char why[64];
	long status = 0;

	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 304 && f->has_copy) {
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

	if (code == CURLE_COULDNT_CONNECT && f->denied.family) {
		fail_denied(f);
		return;
	}
	if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && f->page > PAGE_MAX))
		judge_status(f);
	else if (code == CURLE_WRITE_ERROR && problem)
		fail(f, EBADMSG, problem);
	else
		fail(f, errno_of(code), f->why[0] ? f->why : curl_easy_strerror(code));
}

static void end(struct fetch *f)
{
	struct fetch_result result = f->result;
	fetch_done *done = f->done;
	void *caller = f->ctx;

	f->result = (struct fetch_result){0};
	fetch_free(f);
	done(caller, &result);
}

// ---- a hop --------------------------------------------------------------------------------------

static bool is_https(const char *url)
{
	return !strncasecmp(url, "https:", 6);
}

static int64_t left_ms(const struct fetch *f)
{
	int64_t left = f->deadline_ms - (int64_t)time_ms(CLOCK_MONOTONIC);

	return left > 1 ? left : 1;
}

static void on_done(void *ctx, CURL *easy, CURLcode code);

// Called before libcurl would resolve a name.
static int refuse_to_resolve(void *resolver, void *reserved, void *ctx)
{
	return 1;
}

static int transfer(struct fetch *f, struct err *err)
{
	bool named = f->hosts.n && !f->hosts.proxy;

	curl_easy_setopt(f->easy, CURLOPT_RESOLVER_START_FUNCTION,
			 named ? refuse_to_resolve : NULL);
	curl_easy_setopt(f->easy, CURLOPT_URL, f->at);
	curl_easy_setopt(f->easy, CURLOPT_PROXY, f->hosts.proxy ? f->hosts.proxy : "");
	curl_easy_setopt(f->easy, CURLOPT_RESOLVE, f->addresses);
	curl_easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, (long)left_ms(f));
	f->why[0] = '\0';
	f->page = 0;
	return curl_loop_start(f->loop, f->easy, on_done, f, err);
}

static int take_answers(struct fetch *f, const struct dns_answer *answers, size_t n)
{
	char why[512];

	for (size_t i = 0; i < n; i++) {
		if (!answers[i].error)
			continue;
		dns_describe(&answers[i], why, sizeof(why));
		fail(f, -answers[i].error, why);
		return answers[i].error;
	}
	f->addresses = fetch_hosts_addresses(&f->hosts, answers);
	return 0;
}

static void on_answers(void *ctx, const struct dns_answer *answers, size_t n)
{
	struct fetch *f = ctx;

	f->ask = NULL;
	if (!take_answers(f, answers, n))
		f->result.code = transfer(f, &f->result.err);
	if (f->result.code)
		end(f);
}

static int resolve(struct fetch *f, struct err *err)
{
	struct dns_options options = f->dns ? *f->dns : (struct dns_options){0};
	int64_t most = left_ms(f) < RESOLVE_MS ? left_ms(f) : RESOLVE_MS;

	if (!options.timeout_ms || options.timeout_ms > most)
		options.timeout_ms = (unsigned)most;
	options.search = true; // as any program does with a URL
	return dns_ask_start(curl_loop_base(f->loop), (const char *const *)f->hosts.names,
			     f->hosts.n, &options, on_answers, f, &f->ask, err);
}

static int hop(struct fetch *f, char *url, struct err *err)
{
	fetch_hosts_free(&f->hosts);
	curl_slist_free_all(f->addresses);
	free(f->at);
	f->addresses = NULL;
	f->at = url;
	f->hosts = fetch_hosts_of(url);
	return f->hosts.n ? resolve(f, err) : transfer(f, err);
}

// A redirect may lead to another host, but not away from HTTPS, or nearer to this host (on_open).
static int follow(struct fetch *f, const char *to)
{
	CLEANUP_FREE char *url = fetch_redirect(f->at, to);
	CLEANUP_FREE char *origin = fetch_url_origin(url);
	char why[512];

	if (f->redirects++ == REDIRECTS_MAX) {
		snprintf(why, sizeof(why), "more than %d redirects", REDIRECTS_MAX);
	} else if (fetch_url_problem(url)) {
		snprintf(why, sizeof(why), "a redirect leads to '%s', which %s", origin,
			 fetch_url_problem(url));
	} else if (is_https(f->at) && !is_https(url)) {
		snprintf(why, sizeof(why), "a redirect leads from https to '%s'", origin);
	} else {
		fetch_result_free(&f->result);
		f->may = was_near(f);
		f->result.code = hop(f, TAKE_PTR(url), &f->result.err);
		return f->result.code;
	}
	fail(f, EIO, why);
	return -EIO;
}

static const char *redirect_of(const struct fetch *f, CURLcode code)
{
	char *to = NULL;
	long status = 0;

	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &to);
	return code == CURLE_OK && status != 304 ? to : NULL;
}

static void on_done(void *ctx, CURL *easy, CURLcode code)
{
	struct fetch *f = ctx;
	const char *to = redirect_of(f, code);

	if (to && !follow(f, to))
		return;
	if (!to)
		judge(f, code);
	end(f);
}

// ---- the request --------------------------------------------------------------------------------

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

static void set_options(struct fetch *f, const struct fetch_request *r)
{
	CURL *easy = f->easy;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); // fetch_url.c has decided
	// The next fetch is an hour away: no idle connection, and the certificate is checked each
	// time.
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, f->headers);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, f);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, f->why);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, f);
	curl_trust(easy, r->ca);
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
			    .dns = r->dns,
			    .may = NEAR_HOST, // the URL is the user's
			    .has_copy = r->etag || r->modified,
			    .deadline_ms = (int64_t)time_ms(CLOCK_MONOTONIC) +
					   (r->timeout_ms ? r->timeout_ms : FETCH_TIMEOUT_MS),
			    .done = done,
			    .ctx = ctx};
	if (!f->easy)
		mem_exhausted();
	add_headers(f, r);
	set_options(f, r);
	code = hop(f, mem_strdup(r->url), err);
	if (code)
		fetch_free(f);
	else
		*ret = f;
	return code;
}

// ---- all at once --------------------------------------------------------------------------------

struct all {
	struct event_base *base;
	const struct fetch_request *requests;
	struct waiting *waiting;
	size_t n, left;
};

struct waiting {
	struct all *all;
	struct fetch_result *result;
	bool ended;
};

// Tells the user what the command is waiting for.
static void tell(const struct all *all)
{
	size_t first = 0;

	while (first < all->n && all->waiting[first].ended)
		first++;
	if (all->left > 1)
		progress_change("fetching '%s' and %zu more", all->requests[first].url,
				all->left - 1);
	else if (all->left)
		progress_change("fetching '%s'", all->requests[first].url);
}

static void on_result(void *ctx, struct fetch_result *result)
{
	struct waiting *w = ctx;

	*w->result = *result;
	w->ended = true;
	if (!--w->all->left)
		event_base_loopbreak(w->all->base);
	tell(w->all);
}

static int wait_for(struct all *all, struct err *err)
{
	tell(all);
	if (event_base_dispatch(all->base) < 0)
		return err_system(err, EIO, "the event loop failed");
	return 0;
}

static int fetch_on(struct event_base *base, struct curl_loop *loop,
		    const struct fetch_request *requests, size_t n, struct fetch_result *results,
		    struct err *err)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("fetching lists");
	CLEANUP_FREE struct waiting *waiting = mem_zalloc(n, sizeof(*waiting));
	struct all all = {
		.base = base, .requests = requests, .waiting = waiting, .n = n, .left = n};

	for (size_t i = 0; i < n; i++) {
		struct fetch *f;
		int code;

		waiting[i] = (struct waiting){.all = &all, .result = &results[i]};
		code = fetch_start(loop, &requests[i], on_result, &waiting[i], &f, &results[i].err);
		results[i].code = code;
		waiting[i].ended = code;
		all.left -= code != 0;
	}
	return all.left ? wait_for(&all, err) : 0;
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
