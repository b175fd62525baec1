// SPDX-License-Identifier: GPL-2.0-only
// The form of host names.
#pragma once

#include <stddef.h>

// NULL when the word is a host name (labels of 1..63 letters, digits, '-' and '_', at most 253
// bytes, a letter in the last label; a final dot is allowed), else the error: "is not a host name:
// …".
const char *host_problem(const char *word, char *buf, size_t size);
// Writes the name in small letters without its final dot; the buffer has room for strlen(word) + 1.
void host_normal(const char *word, char *ret);
