// SPDX-License-Identifier: GPL-2.0-only
// Reads URLs: the hosts that a transfer connects to, and the target of a redirect.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct curl_slist;
struct dns_answer;

// NULL, or the error in a URL: "is not an http or https URL".
const char *fetch_url_problem(const char *url);
// Is this the name of a text that is fetched, rather than a path?
bool fetch_is_url(const char *text);

// The host names whose addresses a transfer needs: of the server, or of the proxy that the
// environment names.
struct fetch_hosts {
	char *proxy; // NULL: none
	char *names[2], *ports[2];
	size_t n; // 0: the hosts are addresses
};

// Of a valid URL.
struct fetch_hosts fetch_hosts_of(const char *url);
void fetch_hosts_free(struct fetch_hosts *h);
// The addresses in the form of CURLOPT_RESOLVE, for answers without an error; the caller frees the
// list.
struct curl_slist *fetch_hosts_addresses(const struct fetch_hosts *h,
					 const struct dns_answer *answers);

// Where the answer of a server leads; the caller frees it. The user and password of `from` stay on
// the same server.
char *fetch_redirect(const char *from, const char *to);
// "https://example.net", of a URL that may have secrets after that; the caller frees it.
char *fetch_url_origin(const char *url);
