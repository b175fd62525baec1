// SPDX-License-Identifier: GPL-2.0-only
// The functions of libcurl, found when it is loaded.
#include "ctl/net/curl_calls.h"

#include <stddef.h>

#include "ctl/base/library.h"
#include "ctl/base/mem.h"

static const struct library_call calls[] = {
#define X(call) {"curl_" #call, offsetof(struct curl_calls, call)},
	CURL_CALLS(X)
#undef X
};

static struct curl_calls found;

const struct curl_calls *curl_calls(void)
{
	return &found;
}

int curl_calls_load(struct err *err)
{
	if (found.easy_init)
		return 0;
	return library_load("libcurl.so.4", calls, ARRAY_SIZE(calls), &found, sizeof(found), err);
}
