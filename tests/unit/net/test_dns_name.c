// SPDX-License-Identifier: GPL-2.0-only
// Which words are host names, and the messages about the others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/dns_name.h"

#define REPEAT10(s) s s s s s s s s s s
#define LABEL60     REPEAT10("abcdef")

static const char *problem(const char *text)
{
	static char buf[512];

	return dns_name_problem(text, strlen(text), buf, sizeof(buf));
}

static void accepts_names(void **state)
{
	static const char *const good[] = {
		"a",
		"localhost",
		"x.com",
		"X.Com.",
		"_dmarc.x-1.example",
		"-x.example",
		"3com.com",
		"1.2.3.4a",
		"xn--bcher-kva.example",
		LABEL60 "abc.example",
		// 253 characters, without and with the final dot
		LABEL60 "." LABEL60 "." LABEL60 "." LABEL60 ".abcdefghi",
		LABEL60 "." LABEL60 "." LABEL60 "." LABEL60 ".abcdefghi.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(problem(good[i]));
}

static void refuses_what_is_none(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "missing"},
		{".", "between two dots"},
		{"..", "between two dots"},
		{"a..b", "between two dots"},
		{".a", "between two dots"},
		{"a..", "between two dots"},
		{"a b", "has ' '"},
		{"a,b", "has ','"},
		{"a@b", "has '@'"},
		{"name/24", "has '/'"},
		{"name:24", "has ':'"},
		{"2001:db8::g", "is not an IPv6 address"},
		{"*.x.com", "has '*'"},
		{"http://x.com/", "write only the host name"},
		{"a\x1b[31mb", "has '?'"},
		{"1.2.3.4", "no letter"},
		{"80", "no letter"},
		{"-_-", "no letter"},
		{LABEL60 "abcd.example", "more than 63"},
		{LABEL60 "." LABEL60 "." LABEL60 "." LABEL60 ".abcdefghij", "longer than 253"},
		{"\xff.example", "bytes that no host name has"},
		{"\xc0\xae.example", "bytes that no host name has"},     // overlong
		{"\xed\xa0\x80.example", "bytes that no host name has"}, // surrogate
		{"\xf4\x90\x80\x80.example", "bytes that no host name has"},
		{"b\xc3", "bytes that no host name has"},             // cut
		{"b\xc2\x9b.example", "bytes that no host name has"}, // C1 control
		{"b\xc3\xbc cher.example", "bytes that no host name has"},
		{"b\xc3\xbc" LABEL60 "abc.example", "bytes that no host name has"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *said = problem(bad[i].text);

		if (!said || !strstr(said, bad[i].says))
			fail_msg("'%s': %s", bad[i].text, said ? said : "accepted");
		for (; *said; said++)
			assert_false((uint8_t)*said < 0x20);
	}
}

static void shows_punycode(void **state)
{
	assert_string_equal(problem("b\xc3\xbc"
				    "cher.example"),
			    "'b\xc3\xbc"
			    "cher.example' has letters beyond ASCII: write "
			    "xn--bcher-kva.example");
	// upper case is folded, ASCII or not
	assert_non_null(strstr(problem("WWW.B\xc3\x9c"
				       "CHER.example."),
			       "write www.xn--bcher-kva.example."));
	// Greek, Cyrillic, and a letter beyond 16 bits
	assert_non_null(strstr(problem("\xce\x95\xce\xbb"), "write xn--qxam"));
	assert_non_null(strstr(problem("\xd0\x9f\xd1\x80\xd0\xb8.x"), "write xn--h1and.x"));
	assert_non_null(strstr(problem("\xf0\x9f\x92\xa9.la"), "write xn--ls8h.la"));
}

static void cuts_a_long_quotation(void **state)
{
	// '...' replaces the rest, and no character is cut
	static const char *const texts[] = {LABEL60 LABEL60 "..", "/" LABEL60 LABEL60,
					    REPEAT10(REPEAT10("\xc3\xbc")) " ",
					    "x" REPEAT10(REPEAT10("\xe4\xbb\x96")) " "};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *said = problem(texts[i]), *dots = strstr(said, "...' ");

		assert_non_null(dots);
		assert_true(dots - said > 90 && dots - said < 100);
		for (size_t at = 0, n; at < strlen(said); at += n) {
			n = text_utf8(said + at, strlen(said) - at);
			assert_true(n > 0);
		}
	}
}

static void cuts_in_a_small_buffer(void **state)
{
	char buf[8];

	assert_non_null(dns_name_problem("a..b", 4, buf, sizeof(buf)));
	assert_int_equal(strlen(buf), sizeof(buf) - 1);
	// only len bytes are read
	assert_null(dns_name_problem("ab..", 2, buf, sizeof(buf)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_names),          cmocka_unit_test(refuses_what_is_none),
		cmocka_unit_test(shows_punycode),         cmocka_unit_test(cuts_a_long_quotation),
		cmocka_unit_test(cuts_in_a_small_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
