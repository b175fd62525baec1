// SPDX-License-Identifier: GPL-2.0-only
// The form of host names.
#pragma once

#include <stddef.h>

#define DNS_NAME_MAX 253 // characters without the final dot (RFC 1035 section 2.3.4)

// Is text a host name: labels of 1..63 letters, digits, '-', '_', at most 253 in all, at least one
// letter; a final dot is allowed? NULL, or buf with the error (with the punycode form if the name
// has non-ASCII letters, RFC 3492). 512 bytes are enough.
const char *dns_name_problem(const char *text, size_t len, char *buf, size_t size);
