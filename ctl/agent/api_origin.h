// SPDX-License-Identifier: GPL-2.0-only
// Could a web page have sent a request to the API? A browser reaches the socket where a port is
// forwarded to it (ssh -L 8080:/run/weir/main/api), and sends what any page asks for.
//
// A page of another site is known by Origin, which browsers add to each POST, and by Sec-Fetch-Site
// (W3C Fetch Metadata). By DNS rebinding a page is of the same site, under a name of its owner:
// that name is in Host.
#pragma once

#include <stdbool.h>

struct evhttp_request;

// NULL: no page has sent it; else why it is refused, one sentence for the client.
const char *api_origin_refused(struct evhttp_request *request);
// Is `host`, the value of a Host header, no name of a foreign owner: an IPv4 address, an IPv6
// address in brackets, or a name without a dot; each with a port or without?
bool api_origin_is_local(const char *host);
