// SPDX-License-Identifier: GPL-2.0-only
// Decides by the headers of a request whether its sender may read the page. A browser sets Host
// and Sec-Fetch-Site itself, so no page can change them; Host defeats DNS rebinding.
#pragma once

#include <stdbool.h>

struct evhttp_request;

// NULL: it may be answered; else why it is refused, one sentence for the client. here: Host must be
// 127.0.0.1, [::1] or localhost.
const char *page_guard_refused(struct evhttp_request *request, bool here);

enum page_token { PAGE_TOKEN_RIGHT, PAGE_TOKEN_WRONG, PAGE_TOKEN_MISSING };

// "Authorization: Bearer TOKEN", compared in constant time.
enum page_token page_guard_token(struct evhttp_request *request, const char *token);
