// SPDX-License-Identifier: GPL-2.0-only
// The answers with rates, for the API and for the page.
#pragma once

#include <stdbool.h>

#include "ctl/agent/live.h"

struct agent;
struct evhttp_request;

#define API_LIVE    "/v1/live"
#define API_HISTORY "/v1/history"

// The path of the socket; the caller frees it.
char *api_path(const char *instance);
bool api_rates_has(const char *path);
// Answers a request for one of these paths.
void api_rates(struct agent *a, struct evhttp_request *request, enum live_from from);
