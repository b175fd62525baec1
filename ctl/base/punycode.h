// SPDX-License-Identifier: GPL-2.0-only
// The ASCII form of a host name with other letters, for hints: such names are refused.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/text.h"

// Adds "xn--bcher-kva.example" for "bücher.example" (RFC 3492), labels in lower case; an ASCII
// label is not changed. False, with a part added, when the text is not UTF-8, has control
// characters, or a label gets longer than 63.
bool punycode_name(const char *text, size_t len, struct text *ret);
