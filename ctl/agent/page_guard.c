// SPDX-License-Identifier: GPL-2.0-only
// Reads each header that counts once, and refuses one that is there twice.
#include "ctl/agent/page_guard.h"

#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#define BEARER "Bearer "

// The value; NULL: it is not there, or twice.
static const char *find_header(struct evhttp_request *request, const char *name, bool *ret_twice)
{
	const struct evkeyval *header;
	const char *value = NULL;

	TAILQ_FOREACH(header, evhttp_request_get_input_headers(request), next)
	{
		if (strcasecmp(header->key, name) != 0)
			continue;
		*ret_twice = *ret_twice || value;
		value = header->value;
	}
	return *ret_twice ? NULL : value;
}

// One of the names, with a port or without. A tunnel may have another port.
static bool is_here(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "[::1]", "localhost"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		size_t len = strlen(names[n]);
		const char *port = host + len;

		if (strncasecmp(host, names[n], len) != 0)
			continue;
		if (!port[0])
			return true;
		if (port[0] == ':' && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1))
			return true;
	}
	return false;
}

const char *page_guard_refused(struct evhttp_request *request, bool here)
{
	bool twice = false;
	const char *site = find_header(request, "Sec-Fetch-Site", &twice);
	const char *host = find_header(request, "Host", &twice);
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);

	if (twice)
		return "Host and Sec-Fetch-Site can each be given once";
	if (site && strcasecmp(site, "cross-site") == 0)
		return "a request that a page of another site caused is refused (Sec-Fetch-Site)";
	if (here && (!host || !is_here(host) || evhttp_uri_get_host(uri)))
		return "Host must be 127.0.0.1, [::1] or localhost";
	return NULL;
}

// The time depends on the length of what the client has sent, not on its content.
static bool is_same(const char *given, const char *token)
{
	size_t len = strlen(token);
	unsigned differ = strlen(given) != len;

	for (size_t n = 0; given[n]; n++)
		differ |= (unsigned char)given[n] ^ (unsigned char)token[n < len ? n : 0];
	return !differ;
}

enum page_token page_guard_token(struct evhttp_request *request, const char *token)
{
	bool twice = false;
	const char *value = find_header(request, "Authorization", &twice);

	if (!value && !twice)
		return PAGE_TOKEN_MISSING;
	if (twice || strncasecmp(value, BEARER, strlen(BEARER)) != 0)
		return PAGE_TOKEN_WRONG;
	return is_same(value + strlen(BEARER), token) ? PAGE_TOKEN_RIGHT : PAGE_TOKEN_WRONG;
}
