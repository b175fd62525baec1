// SPDX-License-Identifier: GPL-2.0-only
// Regular expressions for untrusted text: the cost of a match is bounded for any text.
//
// The language is PCRE2's (pcre2pattern(3)), on bytes, without UTF. ^ and $ match at each line. The
// matcher tries one way after the other, so there are texts for which it takes exponential time.
// PCRE2 bounds its steps (match limit) for each position where a match may begin, and not for all
// positions together: "ok.*ready" and 16 KiB of "ok" before a "y" take 0.8 s. So the steps of all
// positions are counted here: they take 2 ms of the processor, and never much more than 3.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

struct pattern;

enum pattern_result {
	PATTERN_DIFFERS,
	PATTERN_MATCHES,
	PATTERN_TOO_LONG, // a limit was reached before it was known
};

// 0; -EINVAL with err set: the error in `text` and its position; or another -errno with err set:
// PCRE2 is not installed.
int pattern_new(const char *text, struct pattern **ret, struct err *err);
void pattern_free(struct pattern *p); // NULL is allowed

// Is there a match anywhere in the len bytes of `text`? They need not end with a zero byte, and may
// contain some.
enum pattern_result pattern_match(const struct pattern *p, const char *text, size_t len);
