// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: data of name servers and names that users type. The first byte selects: an answer to
// a query for A or AAAA of x.test, or a name.
#include "ctl/base/text.h"
#include "ctl/net/dns_message.h"
#include "ctl/net/dns_name.h"
#include "tests/fuzz/fuzz.h"

static void check_found(const struct dns_found *found, uint8_t family, size_t before)
{
	fuzz_check(found->addrs.n > before && found->canonical[0]);
	fuzz_check(strlen(found->canonical) < sizeof(found->canonical));
	for (size_t i = before; i < found->addrs.n; i++)
		fuzz_check(found->addrs.at[i].family == family);
}

// Parses the data twice, as both families are queried: the second answer is added to the first one.
static void fuzz_message(const uint8_t *bytes, size_t size, uint16_t type)
{
	uint8_t *message = fuzz_copy(bytes, size), family = type == DNS_TYPE_A ? 4 : 6;
	struct dns_found found = {0};
	size_t before = 0;

	for (int i = 0; i < 2; i++, before = found.addrs.n)
		if (dns_message_read(message, size, "x.test", type, &found) == 0)
			check_found(&found, family, before);
		else
			fuzz_check(found.addrs.n == before);
	vec_free(&found.addrs);
	free(message);
}

static void fuzz_name(const uint8_t *bytes, size_t size)
{
	char *name = fuzz_copy(bytes, size), buf[512];
	const char *problem = dns_name_problem(name, size, buf, sizeof(buf));

	fuzz_check(!problem || (problem[0] && strlen(problem) < sizeof(buf)));
	for (size_t at = 0, n; problem && problem[at]; at += n) { // printable
		n = problem[at] == '\t' ? 1 : text_shown(problem + at, strlen(problem + at));
		fuzz_check(n);
	}
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 3 == 2)
		fuzz_name(data + 1, size - 1);
	else
		fuzz_message(data + 1, size - 1, data[0] % 3 ? DNS_TYPE_AAAA : DNS_TYPE_A);
	return 0;
}
