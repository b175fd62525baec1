// SPDX-License-Identifier: GPL-2.0-only
// Judges a request by the headers that a browser sets itself, so that no page can change them.
#include "ctl/agent/api_origin.h"

#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "ctl/base/addr.h"
#include "ctl/base/num.h"

#define LABEL_MAX 63 // RFC 1035 section 2.3.4
#define PORT_MAX  5  // digits

// ---- the host -----------------------------------------------------------------------------------

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits <= PORT_MAX && !text[digits];
}

static bool is_label(const char *text, size_t len)
{
	static const char may[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	return len && len <= LABEL_MAX && strspn(text, may) >= len;
}

static bool is_address(const char *text, size_t len, uint8_t family)
{
	struct addr addr;
	bool mapped;

	return !addr_parse(text, len, &addr, &mapped) && (mapped ? 6 : addr.family) == family;
}

bool api_origin_is_local(const char *host)
{
	bool bracket = host[0] == '[';
	const char *name = host + bracket;
	size_t len = strcspn(name, bracket ? "]" : ":");
	const char *rest = name + len;

	if (bracket && *rest++ != ']')
		return false;
	if (*rest && (*rest != ':' || !is_port(rest + 1)))
		return false;
	if (bracket)
		return is_address(name, len, 6);
	return is_label(name, len) || is_address(name, len, 4);
}

// ---- a request ----------------------------------------------------------------------------------

static bool is_old(const struct evhttp_request *request)
{
	return request->major < 1 || (request->major == 1 && !request->minor);
}

// HTTP/1.0 has no Host. A request may also name the host in its first line.
static bool host_is_local(struct evhttp_request *request, const char *host, unsigned hosts)
{
	const char *named = evhttp_uri_get_host(evhttp_request_get_evhttp_uri(request));

	if (named && !api_origin_is_local(named))
		return false;
	if (!hosts)
		return is_old(request);
	return hosts == 1 && api_origin_is_local(host);
}

const char *api_origin_refused(struct evhttp_request *request)
{
	const struct evkeyval *header;
	const char *host = NULL;
	unsigned hosts = 0;

	TAILQ_FOREACH(header, evhttp_request_get_input_headers(request), next)
	{
		if (!strcasecmp(header->key, "Origin"))
			return "a request with Origin is refused: it may come from a web page";
		if (!strcasecmp(header->key, "Sec-Fetch-Site") &&
		    strcmp(header->value, "none") != 0)
			return "a request that a web page caused is refused (Sec-Fetch-Site)";
		if (!strcasecmp(header->key, "Host")) {
			host = header->value;
			hosts++;
		}
	}
	if (host_is_local(request, host, hosts))
		return NULL;
	return "Host must be an address, or a name without a dot, such as localhost";
}
