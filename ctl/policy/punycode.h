// SPDX-License-Identifier: GPL-2.0-only
// The ASCII form of a host name with other letters, for hints only: such names are refused.
#pragma once

#include <stddef.h>

// "bücher.example" -> "xn--bcher-kva.example" (RFC 3492), labels in lower case. NULL when the text is
// not UTF-8, a label gets longer than 63, or `size` is too small; else ret.
const char *punycode_name(const char *text, size_t len, char *ret, size_t size);
