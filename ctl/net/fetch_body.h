// SPDX-License-Identifier: GPL-2.0-only
// Receives the text of a fetch: bounds it, unpacks it, and refuses a text that is cut off.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct fetch_body;

struct fetch_body *fetch_body_new(size_t bytes_max);
void fetch_body_free(struct fetch_body *b);
// A new answer: what has come so far is another one's.
void fetch_body_begin(struct fetch_body *b, bool gzip);
// Nothing of this answer is taken; why: as fetch_body_problem, and it outlives the body.
void fetch_body_refuse(struct fetch_body *b, const char *why);
// 0, or -errno; then fetch_body_problem has the reason.
int fetch_body_add(struct fetch_body *b, const char *data, size_t len);
// Hands the text over. 0, or -EBADMSG: it is not whole.
int fetch_body_end(struct fetch_body *b, char **ret_text, size_t *ret_len);
// "is larger than 256 MB"; NULL: no problem.
const char *fetch_body_problem(const struct fetch_body *b);
