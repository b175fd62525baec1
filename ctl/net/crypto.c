// SPDX-License-Identifier: GPL-2.0-only
// Loads libcrypto and calls it.
#include "ctl/net/crypto.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/x509_vfy.h>

#include "ctl/base/library.h"
#include "ctl/base/mem.h"

static struct {
	__typeof__(EVP_Digest) *digest;
	__typeof__(EVP_sha256) *sha256;
	__typeof__(X509_verify_cert_error_string) *certificate_error;
} found;

static const struct library_call calls[] = {
	{"EVP_Digest", offsetof(__typeof__(found), digest)},
	{"EVP_sha256", offsetof(__typeof__(found), sha256)},
	{"X509_verify_cert_error_string", offsetof(__typeof__(found), certificate_error)},
};

static int load(struct err *err)
{
	if (found.digest)
		return 0;
	return library_load("libcrypto.so.3", calls, ARRAY_SIZE(calls), &found, sizeof(found), err);
}

int crypto_sha256(const void *bytes, size_t len, unsigned char ret[CRYPTO_SHA256], struct err *err)
{
	int code = load(err);

	if (code)
		return code;
	if (!found.digest(bytes, len, ret, NULL, found.sha256(), NULL))
		return err_stated(err, ENOTSUP, "libcrypto computes no SHA-256");
	return 0;
}

const char *crypto_certificate_error(long reason)
{
	return load(NULL) ? "not valid" : found.certificate_error(reason);
}
