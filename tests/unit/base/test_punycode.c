// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of punycode: the samples of RFC 3492, whole names, and names without such a form.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/punycode.h"

struct sample {
	const char *utf8, *encoded;
};

static void check(const struct sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct text out = {0};

		assert_true(punycode_name(samples[i].utf8, strlen(samples[i].utf8), &out));
		assert_string_equal(text_get(&out), samples[i].encoded);
		text_free(&out);
	}
}

// RFC 3492 section 7.1, in lower case: Arabic (A), Chinese (B), Czech (D), Russian (I), Japanese
// (L, P).
static void encodes_the_samples_of_the_rfc(void **state)
{
	static const struct sample samples[] = {
		{"ليهمابتكلموشعربي؟", "xn--egbpdaj6bu4bxfgehfvwxn"},
		{"他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"},
		{"Pročprostěnemluvíčesky", "xn--proprostnemluvesky-uyb24dma41a"},
		{"почемужеонинеговорятпорусски", "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l"},
		{"3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"},
		{"maji\xe3\x81\xa7koi\xe3\x81\x99\xe3\x82\x8b"
		 "5\xe7\xa7\x92\xe5\x89\x8d",
		 "xn--majikoi5-783gue6qz075azm5e"},
		{"plain-Ascii", "plain-ascii"},
	};

	check(samples, ARRAY_SIZE(samples));
}

static void encodes_names(void **state)
{
	static const struct sample samples[] = {
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"},
		{"münchen.de", "xn--mnchen-3ya.de"},
		{"пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"},
		{"例え.テスト", "xn--r8jz45g.xn--zckzah"},
		{"παράδειγμα.δοκιμή", "xn--hxajbheg2az3al.xn--jxalpdlp"},
		{"plain.example", "plain.example"},
		{"ЀЏ.example", "xn--51a4a.example"},
		{"a..b.", "a..b."},
		{"", ""},
	};

	check(samples, ARRAY_SIZE(samples));
}

static void refuses_what_has_no_form(void **state)
{
	static const char long_label[] =
		"\xc3\xbc"
		"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij";
	static const char *const bad[] = {
		"\xff",           "\xc3",       "\xc0\x80",   "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"b\xc2\x9b.test", "b\x7f.test", "ok.\xff.ok", long_label,
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct text out = {0};

		assert_false(punycode_name(bad[i], strlen(bad[i]), &out));
		text_free(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodes_the_samples_of_the_rfc),
		cmocka_unit_test(encodes_names),
		cmocka_unit_test(refuses_what_has_no_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
