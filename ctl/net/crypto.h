// SPDX-License-Identifier: GPL-2.0-only
// Functions of libcrypto, which is loaded on first use: its relocations would take a fifth of the
// time of `weir block`.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

#define CRYPTO_SHA256 32 // bytes

// FIPS 180-4. 0, or -errno with err set: libcrypto is not installed.
int crypto_sha256(const void *bytes, size_t len, unsigned char ret[CRYPTO_SHA256], struct err *err);
// The sentence of an X509_V_ERR_…, why a certificate was refused. Static.
const char *crypto_certificate_error(long reason);
