// SPDX-License-Identifier: GPL-2.0-only
// libevent answers a request that it cannot read with a page of HTML; clients of the API get a
// document instead.
#pragma once

struct bufferevent;

// For a new connection, before any other callback for its output is added: these see the final
// output.
void api_pages_replace(struct bufferevent *stream);
