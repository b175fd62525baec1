// SPDX-License-Identifier: GPL-2.0-only
// URLs by libcurl's parser, and the proxy that libcurl would use (libcurl-env(3)).
#include "ctl/net/fetch_url.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/curl_calls.h"
#include "ctl/net/dns.h"

static CURLU *parse(const char *url, unsigned flags)
{
	CURLU *parsed = curl_url();

	if (!parsed)
		mem_exhausted();
	if (!curl_url_set(parsed, CURLUPART_URL, url, flags))
		return parsed;
	curl_url_cleanup(parsed);
	return NULL;
}

// "" if the URL has no such part, or is not valid (parsed NULL); the caller frees it.
static char *part(CURLU *parsed, CURLUPart which)
{
	char *text = NULL, *copy;

	if (parsed)
		curl_url_get(parsed, which, &text, 0);
	copy = mem_strdup(text ? text : "");
	curl_free(text);
	return copy;
}

bool fetch_is_url(const char *text)
{
	return !strncasecmp(text, "http://", 7) || !strncasecmp(text, "https://", 8);
}

const char *fetch_url_problem(const char *url)
{
	CURLU *parsed;

	if (curl_calls_load(NULL))
		return "cannot be fetched: libcurl is not installed";
	if (!fetch_is_url(url))
		return "is not an http or https URL";
	if (!(parsed = parse(url, 0)))
		return "is not a valid URL";
	curl_url_cleanup(parsed);
	return NULL;
}

// ---- the proxy ----------------------------------------------------------------------------------

static const char *environment(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	value = value && value[0] ? value : upper ? getenv(upper) : NULL;
	return value && value[0] ? value : NULL;
}

static bool ends_with_domain(const char *host, const char *domain, size_t len)
{
	size_t host_len = strlen(host);

	if (!len || host_len < len || strncasecmp(host + host_len - len, domain, len) != 0)
		return false;
	return host_len == len || host[host_len - len - 1] == '.';
}

// no_proxy: "*", or hosts and domains with commas or blanks between them.
static bool goes_directly(const char *host)
{
	const char *at = environment("no_proxy", "NO_PROXY");

	if (!at || !strcmp(at, "*"))
		return at;
	for (; *at; at += strspn(at, ", ")) {
		size_t len = strcspn(at, ", ");
		const char *domain = at;

		at += len;
		if (*domain == '.') {
			domain++;
			len--;
		}
		if (ends_with_domain(host, domain, len))
			return true;
	}
	return false;
}

static const char *proxy_of(const char *scheme, const char *host)
{
	const char *proxy = strcmp(scheme, "https") ? environment("http_proxy", NULL)
						    : environment("https_proxy", "HTTPS_PROXY");

	proxy = proxy ? proxy : environment("all_proxy", "ALL_PROXY");
	return proxy && !goes_directly(host) ? proxy : NULL;
}

// ---- hosts --------------------------------------------------------------------------------------

static bool is_address(const char *host)
{
	struct addr addr;

	return host[0] == '[' || !addr_parse(host, strlen(host), &addr, NULL);
}

static void add_host(struct fetch_hosts *h, CURLU *parsed, const char *port)
{
	CLEANUP_FREE char *name = part(parsed, CURLUPART_HOST);
	CLEANUP_FREE char *own = part(parsed, CURLUPART_PORT);

	if (!name[0] || is_address(name))
		return;
	h->ports[h->n] = mem_strdup(own[0] ? own : port);
	h->names[h->n++] = TAKE_PTR(name);
}

// A proxy of SOCKS 4 or 5 (not 4a, 5h) wants the address of the server.
static bool add_proxy(struct fetch_hosts *h)
{
	CURLU *parsed = parse(h->proxy, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME);

	add_host(h, parsed, strncasecmp(h->proxy, "https:", 6) ? "1080" : "443");
	curl_url_cleanup(parsed);
	return !strncasecmp(h->proxy, "socks4://", 9) || !strncasecmp(h->proxy, "socks5://", 9);
}

struct fetch_hosts fetch_hosts_of(const char *url)
{
	CURLU *parsed = parse(url, 0);
	CLEANUP_FREE char *scheme = part(parsed, CURLUPART_SCHEME);
	CLEANUP_FREE char *host = part(parsed, CURLUPART_HOST);
	const char *proxy = proxy_of(scheme, host);
	struct fetch_hosts h = {.proxy = proxy ? mem_strdup(proxy) : NULL};

	if (!proxy || add_proxy(&h))
		add_host(&h, parsed, strcmp(scheme, "https") ? "80" : "443");
	curl_url_cleanup(parsed);
	return h;
}

void fetch_hosts_free(struct fetch_hosts *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->names[i]);
		free(h->ports[i]);
	}
	free(h->proxy);
	*h = (struct fetch_hosts){0};
}

static void add_addresses(struct text *line, const struct dns_answer *answer)
{
	for (size_t a = 0; a < answer->n; a++) {
		bool six = answer->addrs[a].family == 6;
		addr_text text;

		text_addf(line, "%s%s%s%s", a ? "," : "", six ? "[" : "",
			  addr_format(&answer->addrs[a], text), six ? "]" : "");
	}
}

// '+': libcurl forgets them again.
struct curl_slist *fetch_hosts_addresses(const struct fetch_hosts *h,
					 const struct dns_answer *answers)
{
	struct curl_slist *list = NULL;

	for (size_t i = 0; i < h->n; i++) {
		CLEANUP_TEXT struct text line = {0};

		text_addf(&line, "+%s:%s:", h->names[i], h->ports[i]);
		add_addresses(&line, &answers[i]);
		list = curl_slist_append(list, line.at);
		if (!list)
			mem_exhausted();
	}
	return list;
}

// ---- redirects ----------------------------------------------------------------------------------

static bool same_part(CURLU *a, CURLU *b, CURLUPart which)
{
	CLEANUP_FREE char *one = part(a, which);
	CLEANUP_FREE char *other = part(b, which);

	return !strcasecmp(one, other);
}

static bool same_server(CURLU *a, CURLU *b)
{
	return same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_HOST) &&
	       same_part(a, b, CURLUPART_PORT);
}

static void copy_part(CURLU *from, CURLU *to, CURLUPart which)
{
	CLEANUP_FREE char *text = part(from, which);

	curl_url_set(to, which, text[0] ? text : NULL, 0);
}

static char *keep_user(CURLU *from, CURLU *to)
{
	CLEANUP_FREE char *user = part(to, CURLUPART_USER);

	if (!user[0] && same_server(from, to)) {
		copy_part(from, to, CURLUPART_USER);
		copy_part(from, to, CURLUPART_PASSWORD);
	}
	return part(to, CURLUPART_URL);
}

char *fetch_redirect(const char *from, const char *to)
{
	CURLU *old = parse(from, 0), *new = parse(to, CURLU_NON_SUPPORT_SCHEME);
	char *url = old && new ? keep_user(old, new) : mem_strdup(to);

	curl_url_cleanup(old);
	curl_url_cleanup(new);
	return url;
}

char *fetch_url_origin(const char *url)
{
	CURLU *parsed = parse(url, CURLU_NON_SUPPORT_SCHEME);
	CLEANUP_FREE char *scheme = part(parsed, CURLUPART_SCHEME);
	CLEANUP_FREE char *host = part(parsed, CURLUPART_HOST);

	curl_url_cleanup(parsed);
	return mem_printf("%s://%s", scheme, host);
}
