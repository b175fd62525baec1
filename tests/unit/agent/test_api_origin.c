// SPDX-License-Identifier: GPL-2.0-only
// The Host headers that the API takes.
#include "ctl/agent/api_origin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/base/mem.h"

static void test_local(void **state)
{
	static const char *const hosts[] = {
		"localhost",
		"localhost:8080",
		"weir",
		"my-host_1:1",
		"127.0.0.1",
		"192.0.2.7",
		"192.0.2.7:65535",
		"[::1]",
		"[::1]:8080",
		"[fe80::1]:80",
		"LOCALHOST",
		"[::ffff:10.0.0.1]",
		"0x7f000001",
		"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabc",
	};

	for (size_t n = 0; n < ARRAY_SIZE(hosts); n++)
		if (!api_origin_is_local(hosts[n]))
			fail_msg("'%s' is refused", hosts[n]);
}

static void test_foreign(void **state)
{
	static const char *const hosts[] = {
		"",
		":80",
		"evil.example",
		"evil.example:8080",
		"localhost.",
		"localhost:",
		"localhost:80x",
		"localhost:-1",
		"localhost:123456",
		"localhost:80:80",
		"127.0.0.1.evil.example",
		"127.0.0.1@evil.example",
		"127.0.0.256",
		"127.1",
		"::1",
		"[::1",
		"[::1]x",
		"[::1]:",
		"[]",
		"[127.0.0.1]",
		"[evil.example]",
		"we ir",
		"weir, evil.example",
		"weir\t",
		"w\xc3\xa9ir",
		"weir/",
		"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd",
	};

	for (size_t n = 0; n < ARRAY_SIZE(hosts); n++)
		if (api_origin_is_local(hosts[n]))
			fail_msg("'%s' is taken", hosts[n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
