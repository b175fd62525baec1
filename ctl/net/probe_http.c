// SPDX-License-Identifier: GPL-2.0-only
// Probes by http and https: one request over a new connection; its status and the first bytes of
// its body are judged.
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/pattern.h"
#include "ctl/net/crypto.h"
#include "ctl/net/probe_parts.h"

// ---- the request --------------------------------------------------------------------------------

typedef char bracket_text[ADDR_TEXT + 2];

// "[2001:db8::1]", "192.0.2.1"
static const char *bracketed(const struct addr *a, bracket_text buf)
{
	addr_text text;

	snprintf(buf, sizeof(bracket_text), a->family == 6 ? "[%s]" : "%s", addr_format(a, text));
	return buf;
}

// The name in the URL, which TLS asks for and verifies; without the port that a Host header may
// have.
static char *name_of(const struct probe_spec *s)
{
	bracket_text address;
	const char *name = s->sni ? s->sni : s->host;

	if (!s->tls || !name)
		return mem_printf("%s", bracketed(&s->addr, address));
	return mem_printf("%.*s", (int)strcspn(name, ":"), name);
}

static void set_url(struct probe *p)
{
	const struct probe_spec *s = &p->spec;
	CLEANUP_FREE char *name = name_of(s);
	CLEANUP_FREE char *url =
		mem_printf("%s://%s:%u%s", s->tls ? "https" : "http", name, s->port, s->path);

	curl_easy_setopt(p->easy, CURLOPT_URL, url);
	curl_easy_setopt(p->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(p->easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(p->easy, CURLOPT_PROXY, ""); // also against the environment
}

// The connection goes to the backend, independently of the name.
static void set_destination(struct probe *p)
{
	bracket_text address;
	CLEANUP_FREE char *to =
		mem_printf("::%s:%u", bracketed(&p->spec.addr, address), p->spec.port);

	p->connect_to = curl_slist_append(NULL, to);
	curl_easy_setopt(p->easy, CURLOPT_CONNECT_TO, p->connect_to);
}

// libcurl does not pass on an error of this function: the reason is kept for the end.
static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct probe *p = ctx;
	int fd = p->spec.open(p->spec.open_ctx, p->spec.port, address->socktype);

	if (fd >= 0)
		return fd;
	p->no_socket = -fd;
	return CURL_SOCKET_BAD;
}

static void set_way(struct probe *p)
{
	const struct probe_spec *s = &p->spec;
	addr_text source;
	CLEANUP_FREE char *from = NULL;

	if (s->tls)
		set_destination(p);
	if (s->open) {
		curl_easy_setopt(p->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
		curl_easy_setopt(p->easy, CURLOPT_OPENSOCKETDATA, p);
	}
	// Addresses need no cache, and libcurl would search a large one after each transfer.
	curl_easy_setopt(p->easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
	if (s->device)
		from = mem_printf("if!%s", s->device);
	else if (s->source.family)
		from = mem_printf("host!%s", addr_format(&s->source, source));
	if (from)
		curl_easy_setopt(p->easy, CURLOPT_INTERFACE, from);
}

static void set_headers(struct probe *p)
{
	bracket_text address;
	CLEANUP_FREE char *host = mem_printf(
		"Host: %s", p->spec.host ? p->spec.host : bracketed(&p->spec.addr, address));

	p->headers = curl_slist_append(NULL, host);
	curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
	curl_easy_setopt(p->easy, CURLOPT_USERAGENT, "weir");
	curl_easy_setopt(p->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
}

static void set_tls(struct probe *p)
{
	if (p->spec.insecure) {
		curl_trust_all(p->easy);
		return;
	}
	curl_trust(p->easy, p->spec.ca);
	// A session that continues shows no certificate, so one that has expired since would pass.
	curl_easy_setopt(p->easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
}

// ---- the answer ---------------------------------------------------------------------------------

// Ends the transfer when enough of the body is there.
static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
	struct probe *p = ctx;
	size_t len = size * n, room = PROBE_BODY_MAX - p->body_len;
	size_t taken = len < room ? len : room;

	if (p->spec.body && !p->body)
		p->body = mem_zalloc(1, PROBE_BODY_MAX + 1);
	if (p->body)
		memcpy(p->body + p->body_len, bytes, taken);
	p->body_len += taken;
	p->body_full = taken < len;
	return taken;
}

static bool is_expected(const struct probe_spec *s, long status)
{
	for (size_t i = 0; i < s->n_statuses; i++)
		if (status >= s->statuses[i].first && status <= s->statuses[i].last)
			return true;
	return false;
}

static enum pattern_result match_body(const struct probe *p)
{
	if (!p->spec.body)
		return PATTERN_MATCHES;
	return pattern_match(p->spec.body, p->body ? p->body : "", p->body_len);
}

static void judge(struct probe *p)
{
	enum pattern_result body;
	long status = 0;

	curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!is_expected(&p->spec, status)) {
		probe_fail(p, "status %ld", status);
		return;
	}
	body = match_body(p);
	if (body == PATTERN_TOO_LONG)
		probe_fail(p, "body: the expression took too long");
	else if (body == PATTERN_DIFFERS)
		probe_fail(p, "status %ld, but the body does not match", status);
	else
		probe_pass(p);
}

// A connection that fails has the error of its socket; without one there was no socket.
static bool is_ours(CURLcode code)
{
	return code == CURLE_COULDNT_CONNECT || code == CURLE_OUT_OF_MEMORY ||
	       code == CURLE_FAILED_INIT || code == CURLE_INTERFACE_FAILED ||
	       code == CURLE_SSL_CACERT_BADFILE;
}

// libcurl itself compares the name, with no reason of OpenSSL.
static void fail_certificate(struct probe *p)
{
	CLEANUP_FREE char *name = name_of(&p->spec);
	long reason = X509_V_OK;

	curl_easy_getinfo(p->easy, CURLINFO_SSL_VERIFYRESULT, &reason);
	if (reason == X509_V_OK || reason == X509_V_ERR_UNSPECIFIED)
		probe_fail(p, "bad certificate: not valid for '%.44s'", name);
	else
		probe_fail(p, "bad certificate: %s", crypto_certificate_error(reason));
}

static void fail(struct probe *p, CURLcode code)
{
	p->result.unknown = is_ours(code);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		fail_certificate(p);
	else if (code == CURLE_SSL_CACERT_BADFILE)
		probe_fail(p, "cannot read the certificates of '%s'",
			   p->spec.ca ? p->spec.ca : "this host");
	else
		probe_fail(p, "%s", curl_easy_strerror(code));
}

static void on_end(void *ctx, CURL *easy, CURLcode code)
{
	struct probe *p = ctx;
	long os = 0;

	curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os);
	if (p->no_socket)
		probe_fail_errno(p, p->no_socket);
	else if (code == CURLE_COULDNT_CONNECT && os)
		probe_fail_errno(p, (int)os);
	else if (code && !(code == CURLE_WRITE_ERROR && p->body_full))
		fail(p, code);
	else
		judge(p);
}

// ---- start and end ------------------------------------------------------------------------------

static void make(struct probe *p)
{
	p->easy = curl_easy_init();
	if (!p->easy)
		mem_exhausted();
	curl_easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
	// A server that no longer accepts connections must not pass the check by an old one.
	curl_easy_setopt(p->easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(p->easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, p);
	set_url(p);
	set_way(p);
	set_headers(p);
	set_tls(p);
}

static int start(struct probe *p)
{
	struct err err = {0};

	if (!p->easy)
		make(p);
	p->body_len = 0;
	p->body_full = false;
	p->no_socket = 0;
	if (curl_loop_start(p->all->curl, p->easy, on_end, p, &err))
		return probe_fail(p, "%s", err.text);
	return 0;
}

static void stop(struct probe *p)
{
	curl_loop_stop(p->all->curl, p->easy);
	free(TAKE_PTR(p->body));
}

static void forget(struct probe *p)
{
	curl_easy_cleanup(p->easy);
	curl_slist_free_all(p->headers);
	curl_slist_free_all(p->connect_to);
}

const struct probe_form probe_http = {.start = start, .stop = stop, .free = forget};
