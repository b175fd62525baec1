// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/args.h: accepted forms; refusals with their object and hint.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <string.h>

#include "ctl/cmd/args.h"

static const struct args_option own[] = {
	{.name = "iface", .letter = 'i', .arg = "IFACE", .help = "where"},
	{.name = "for", .arg = "TIME", .help = "how long"},
	{.name = "file", .letter = 'f', .arg = "FILE", .help = "a list", .repeated = true},
	{.name = "confirm", .letter = 'c', .arg = "TIME", .help = "on trial", .optional = true},
	{.name = "force", .help = "even so"},
	{0},
};

static const struct args_option common[] = {
	{.name = "json", .letter = 'j', .help = "JSON"},
	{.name = "pretty", .letter = 'p', .help = "indented"},
	{.name = "namespace", .letter = 'n', .arg = "NAME", .help = "where"},
	{0},
};

static const struct args_foreign foreign[] = {
	{.name = "timeout", .letter = 't', .hint = "use --for TIME"},
	{0},
};

// One parsed command line. Words are separated by blanks; "''" is an empty one.
struct line {
	char text[256];
	char *argv[16];
	size_t n, used;
	struct args args;
	struct err err;
	int code;
};

static void read_line(struct line *l, const char *text, bool until_word)
{
	char *rest = l->text, *word;

	*l = (struct line){
		.args = {.tables = {own, common}, .foreign = foreign, .command = "block"}};
	assert_true(strlen(text) < sizeof(l->text));
	memcpy(l->text, text, strlen(text) + 1);
	while ((word = strsep(&rest, " "))) {
		assert_true(l->n < ARRAY_SIZE(l->argv));
		l->argv[l->n++] = strcmp(word, "''") ? word : word + 2;
	}
	if (!text[0])
		l->n = 0;
	l->code = args_parse(&l->args, l->argv, l->n, until_word, &l->used, &l->err);
}

static void parse(struct line *l, const char *text)
{
	read_line(l, text, false);
	if (l->code)
		fail_msg("'%s': %s", text, l->err.text);
	assert_int_equal(l->used, l->n);
}

static void assert_words(const struct line *l, const char *want)
{
	char got[256] = "";

	vec_each (&l->args.words, word) {
		strncat(got, got[0] ? " " : "", sizeof(got) - strlen(got) - 1);
		strncat(got, *word, sizeof(got) - strlen(got) - 1);
	}
	assert_string_equal(got, want);
}

static void assert_value(const char *text, const char *name, const char *want)
{
	struct line l;

	parse(&l, text);
	assert_true(args_has(&l.args, name));
	if (want)
		assert_string_equal(args_value(&l.args, name), want);
	else
		assert_null(args_value(&l.args, name));
	args_free(&l.args);
}

static void test_nothing(void **state)
{
	struct line l;

	parse(&l, "");
	assert_int_equal(l.args.words.n + l.args.given.n, 0);
	assert_false(args_has(&l.args, "force"));
	assert_null(args_value(&l.args, "for"));
	args_free(&l.args);
}

static void test_forms_of_a_value(void **state)
{
	assert_value("--iface eth0", "iface", "eth0");
	assert_value("--iface=eth0", "iface", "eth0");
	assert_value("-i eth0", "iface", "eth0");
	assert_value("-ieth0", "iface", "eth0");
	assert_value("--iface=", "iface", "");
	assert_value("--iface ''", "iface", "");
	assert_value("--iface=a=b", "iface", "a=b");
	assert_value("-i=b", "iface", "=b");
	assert_value("-iforce", "iface", "force"); // one dash: letters
	// The next word is the value, whatever it looks like.
	assert_value("--iface --force", "iface", "--force");
	assert_value("-i --", "iface", "--");
	assert_value("--for -5", "for", "-5");
}

static void test_switches_together(void **state)
{
	struct line l;

	parse(&l, "-jp");
	assert_true(args_has(&l.args, "json") && args_has(&l.args, "pretty"));
	args_free(&l.args);
	parse(&l, "-jpi eth0 word");
	assert_string_equal(args_value(&l.args, "iface"), "eth0");
	assert_words(&l, "word");
	args_free(&l.args);
	parse(&l, "-jipx");
	assert_string_equal(args_value(&l.args, "iface"), "px");
	assert_false(args_has(&l.args, "pretty"));
	args_free(&l.args);
	parse(&l, "--force -j --force");
	assert_true(args_has(&l.args, "force"));
	args_free(&l.args);
}

static void test_words_among_options(void **state)
{
	struct line l;

	parse(&l, "192.0.2.1 --force 192.0.2.2 -i eth0 ''");
	assert_int_equal(l.args.words.n, 3);
	assert_string_equal(l.args.words.at[2], "");
	args_free(&l.args);
	parse(&l,
	      "- -5 -1/s"); // standard input, and words that begin like a number, are not options
	assert_words(&l, "- -5 -1/s");
	args_free(&l.args);
	parse(&l, "a -- --force -j -- b");
	assert_words(&l, "a --force -j -- b");
	assert_false(args_has(&l.args, "force"));
	args_free(&l.args);
}

static void test_stops_at_the_first_word(void **state)
{
	static const struct {
		const char *text;
		size_t used;
	} cases[] = {
		{"-j block --nonsense", 1}, {"block", 0},       {"-n a block -j", 2},
		{"-na -- block", 2},        {"-j --pretty", 2}, {"-j -- -p", 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct line l;

		read_line(&l, cases[i].text, true);
		assert_int_equal(l.code, 0);
		assert_int_equal(l.used, cases[i].used);
		assert_int_equal(l.args.words.n, 0);
		args_free(&l.args);
	}
}

static void test_repeated(void **state)
{
	const char *values[3] = {NULL, NULL, "untouched"};
	struct line l;

	parse(&l, "-f a --file b -fc");
	assert_string_equal(args_value(&l.args, "file"), "c");
	assert_int_equal(args_values(&l.args, "file", values, 2), 2);
	assert_string_equal(values[0], "a");
	assert_string_equal(values[1], "b");
	assert_string_equal(values[2], "untouched");
	assert_int_equal(args_values(&l.args, "iface", values, 3), 0);
	args_free(&l.args);
}

static void test_optional_value(void **state)
{
	struct line l;

	assert_value("--confirm", "confirm", NULL);
	assert_value("--confirm=30s", "confirm", "30s");
	assert_value("-c", "confirm", NULL);
	parse(&l, "--confirm near.weir"); // no time: a word of its own
	assert_null(args_value(&l.args, "confirm"));
	assert_words(&l, "near.weir");
	args_free(&l.args);
	parse(&l, "-cj");
	assert_true(args_has(&l.args, "confirm") && args_has(&l.args, "json"));
	args_free(&l.args);
}

// Refusals: text and hint contain these. The wording may change, the object must stay.
static void test_refused(void **state)
{
	static const struct {
		const char *text, *object, *hint;
	} cases[] = {
		{"--nonsense", "'--nonsense'", "weir help block"},
		{"--forse", "'--forse'", "'--force'"},
		{"--forse=3", "'--forse=3'", "'--force'"},
		{"--jsn", "'--jsn'", "'--json'"},
		{"-x", "'-x'", "weir help block"},
		{"-jx", "'-jx'", "weir help block"},
		{"---", "'---'", "weir help block"},
		{"--=x", "'--=x'", "weir help block"},
		{"--fo", "'--fo'", "'--for'"}, // no abbreviations
		{"--FORCE", "'--FORCE'", ""},
		{"--timeout 5", "'--timeout'", "use --for TIME"},
		{"--timeout=5", "'--timeout=5'", "use --for TIME"},
		{"-t5", "'-t5'", "use --for TIME"},
		{"-for 1h", "'-for'", "'--for'"}, // not the list "or"
		{"-timeout=5", "'-timeout=5'", "use --for TIME"},
		{"-json", "'-json'", "'--json'"},
		{"-namespace=x", "'-namespace=x'", "'--namespace'"},
		{"--iface", "'--iface'", ""},
		{"a --for", "'--for'", ""},
		{"-i", "'-i'", ""},
		{"-ji", "'-i'", ""},
		{"--force=yes", "'--force'", ""},
		{"--json=", "'--json'", ""},
		{"--for 1m --for 2m", "'--for'", ""},
		{"-i a --iface=b", "'--iface'", ""},
		{"--confirm 30s", "'--confirm'", "--confirm=30s"},
		{"--confirm=1s --confirm=2s", "'--confirm'", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct line l;

		read_line(&l, cases[i].text, false);
		if (l.code != -EINVAL || l.err.kind != ERR_INPUT ||
		    !strstr(l.err.text, cases[i].object) || !strstr(l.err.hint, cases[i].hint))
			fail_msg("'%s': %d '%s' (%s)", cases[i].text, l.code, l.err.text,
				 l.err.hint);
		args_free(&l.args);
	}
}

static void test_hint_before_the_command(void **state)
{
	char *argv[] = {(char *)"--nonsense"};
	struct args args = {.tables = {NULL, common}};
	struct err err = {0};
	size_t used;

	assert_int_equal(args_parse(&args, argv, 1, true, &used, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "weir help lists"));
	args_free(&args);
}

static void test_knows(void **state)
{
	struct args args = {.tables = {own, common}}, bare = {.tables = {NULL, common}};

	assert_true(args_knows(&args, "force"));
	assert_false(args_knows(&args, "json")); // of all commands
	assert_false(args_knows(&args, "forc"));
	assert_false(args_knows(&bare, "force"));
}

static void test_number_of_words(void **state)
{
	static const struct {
		const char *text;
		size_t min, max;
		const char *object; // text of the refusal; NULL: accepted
	} cases[] = {
		{"", 0, 0, NULL},         {"a", 1, 1, NULL},         {"a b", 1, 3, NULL},
		{"", 1, 1, "an address"}, {"a", 2, 2, "an address"}, {"a b", 1, 1, "'b'"},
		{"a", 0, 0, "'a'"},       {"a b c d", 0, 2, "'c'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {0};
		struct line l;
		int code;

		parse(&l, cases[i].text);
		code = args_expect_words(&l.args, cases[i].min, cases[i].max, "an address", &err);
		assert_int_equal(code, cases[i].object ? -EINVAL : 0);
		if (cases[i].object && !strstr(err.text, cases[i].object))
			fail_msg("'%s': %s", cases[i].text, err.text);
		args_free(&l.args);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_forms_of_a_value),
		cmocka_unit_test(test_switches_together),
		cmocka_unit_test(test_words_among_options),
		cmocka_unit_test(test_stops_at_the_first_word),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_optional_value),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_hint_before_the_command),
		cmocka_unit_test(test_knows),
		cmocka_unit_test(test_number_of_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
