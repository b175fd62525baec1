// SPDX-License-Identifier: GPL-2.0-only
// The comment of a captured packet: written by `weir capture`, read from files of anyone. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "ctl/base/text.h"

struct capture_comment {
	uint32_t reason; // enum weir_reason; a larger number is one that this version does not know
	uint32_t front;  // bytes of headers that Weir has put before the packet
	uint32_t share;  // by which the packet was chosen, of 2^32
};

// Adds "drop rule-drop, rule "ssh", share 1 of 1"; what: the words in the middle (", rule "ssh""),
// or "".
void capture_comment_write(const struct capture_comment *c, const char *what, struct text *to);
// False, and nothing in *ret: it is not such a comment.
bool capture_comment_read(const char *text, size_t len, struct capture_comment *ret);
