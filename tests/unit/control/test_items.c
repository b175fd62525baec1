// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/items.h: the meaning of lines, messages of refusals, bounds.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/control/entries/items.h"

static void add_word(struct items *b, const char *word)
{
	assert_int_equal(items_add_words(b, &word, 1), 1);
}

static struct items read_text(const char *text, bool wide)
{
	struct items b = {0};

	items_add_text(&b, text, strlen(text), wide);
	return b;
}

static const char *shown(const struct item *item, addr_text buf)
{
	return item->name ? item->name : prefix_format(&item->prefix, buf);
}

static const struct {
	const char *line, *what, *note;
	uint64_t for_ms;
	bool to, both;
} good_lines[] = {
	{.line = "192.0.2.1", .what = "192.0.2.1"},
	{.line = "\t 192.0.2.1 \t", .what = "192.0.2.1"},
	{.line = "192.0.2.1\r\n", .what = "192.0.2.1"},
	{.line = "\xef\xbb\xbf"
		 "192.0.2.1",
	 .what = "192.0.2.1"},
	{.line = "192.0.2.0/24", .what = "192.0.2.0/24"},
	{.line = "192.0.2.0/24 ; SBL4711", .what = "192.0.2.0/24"},
	{.line = "192.0.2.1#x", .what = "192.0.2.1"},
	{.line = "2001:db8::/32", .what = "2001:db8::/32"},
	{.line = "2001:DB8::1", .what = "2001:db8::1"},
	{.line = "X.Example", .what = "x.example"},
	{.line = "bad-host.example", .what = "bad-host.example"},
	{.line = "router", .what = "router"},
	{.line = "add for 1h", .what = "add", .for_ms = 3600000},
	{.line = "192.0.2.1 for 1h", .what = "192.0.2.1", .for_ms = 3600000},
	{.line = "192.0.2.1 to", .what = "192.0.2.1", .to = true},
	{.line = "192.0.2.1 both # x", .what = "192.0.2.1", .both = true},
	{.line = "192.0.2.1 note \"a\"", .what = "192.0.2.1", .note = "a"},
	{.line = "192.0.2.1 note \"# ; , for\";x", .what = "192.0.2.1", .note = "# ; , for"},
	{.line = "192.0.2.1 note \"\xc3\xa9\"", .what = "192.0.2.1", .note = "\xc3\xa9"},
	{.line = "192.0.2.1 for 2s to note \"a b\"",
	 .what = "192.0.2.1",
	 .for_ms = 2000,
	 .to = true,
	 .note = "a b"},
	{.line = "x.example note \"a b\"  both for 5m",
	 .what = "x.example",
	 .for_ms = 300000,
	 .both = true,
	 .note = "a b"},
	{.line = "192.0.2.1 for 36525d", .what = "192.0.2.1", .for_ms = ITEMS_FOR_MAX_MS},
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good_lines); i++) {
		struct items b = read_text(good_lines[i].line, false);
		addr_text buf;

		if (b.error_count)
			fail_msg("%s: %s", good_lines[i].line, b.errors.at[0].text);
		assert_int_equal(b.items.n, 1);
		assert_string_equal(shown(&b.items.at[0], buf), good_lines[i].what);
		assert_int_equal(b.items.at[0].line, 1);
		assert_int_equal(b.items.at[0].for_ms, good_lines[i].for_ms);
		assert_int_equal(b.items.at[0].to, good_lines[i].to);
		assert_int_equal(b.items.at[0].both, good_lines[i].both);
		assert_int_equal(!b.items.at[0].note, !good_lines[i].note);
		if (good_lines[i].note)
			assert_string_equal(b.items.at[0].note, good_lines[i].note);
		assert_int_equal(b.names, b.items.at[0].name ? 1 : 0);
		assert_int_equal(b.items.at[0].prefix.addr.family == 0, b.names);
		items_free(&b);
	}
}

static const struct {
	const char *line, *error;
} bad_lines[] = {
	{"10.0.0.5/8", "'10.0.0.5/8' has host bits set (write 10.0.0.0/8 for the network or "
		       "10.0.0.5 for the host)"},
	{"10/8", "'10/8' is not an address (write 10.0.0.0/8)"},
	{"300.1.2.3", "'300.1.2.3' is not an address (each part of an IPv4 address is 0 to "
		      "255)"},
	{"x.com/24", "'x.com/24' is a host name with a prefix length (a name has no prefix "
		     "length; a network is written with its address)"},
	{"a-b.com/24", "'a-b.com/24' is a host name with a prefix length (a name has no "
		       "prefix length; a network is written with its address)"},
	{"192.0.2.10-20", "'192.0.2.10-20' is not a range of addresses (write "
			  "192.0.2.10-192.0.2.20)"},
	{"192.0.2.9-192.0.2.1", "'192.0.2.9-192.0.2.1' ends before it begins (write "
				"192.0.2.1-192.0.2.9)"},
	{"192.0.2.1 - 192.0.2.9", "'192.0.2.1 - 192.0.2.9' has blanks (write "
				  "192.0.2.1-192.0.2.9)"},
	{"192.0.2.1 -192.0.2.9 to", "'192.0.2.1 -192.0.2.9' has blanks (write "
				    "192.0.2.1-192.0.2.9)"},
	{"0/0", "'0/0' is not an address (write 0.0.0.0/0 or ::/0)"},
	{"any", "'any' is every address (write 0.0.0.0/0 or ::/0)"},
	{"for 1h", "missing address before 'for'"},
	{"not 192.0.2.1", "'not' is a keyword of the policy language (write an address or a "
			  "host name)"},
	{"0.0.0.0/0", "'0.0.0.0/0' is shorter than /8 (--wide allows it)"},
	{"2000::/15", "'2000::/15' is shorter than /16 (--wide allows it)"},
	{"8.0.0.0-200.0.0.0", "'8.0.0.0-200.0.0.0' is shorter than /8 (--wide allows it)"},
	{"127.0.0.1", "'127.0.0.1' is loopback (--wide allows it)"},
	{"126.255.255.255-127.0.0.1", "'126.255.255.255-127.0.0.1' is loopback (--wide allows it)"},
	{"::1", "'::1' is loopback (--wide allows it)"},
	{"0.0.0.0", "'0.0.0.0' contains the unspecified address (--wide allows it)"},
	{"::/64", "'::/64' contains the unspecified address (--wide allows it)"},
	{"192.0.2.1 for", "'' is not a time (write for 30s, 10m, 12h, 7d)"},
	{"192.0.2.1 for 5", "'5' is not a time (write for 30s, 10m, 12h, 7d)"},
	{"192.0.2.1 for 0s", "'0s' is out of range (1ms to 36525d)"},
	{"192.0.2.1 for 36526d", "'36526d' is out of range (1ms to 36525d)"},
	{"192.0.2.1 for 1h for 1h", "duplicate 'for'"},
	{"192.0.2.1 to to", "duplicate direction (write one of to, both)"},
	{"192.0.2.1 both to", "duplicate direction (write one of to, both)"},
	{"192.0.2.1 from", "'from' is not written (it is the default direction)"},
	{"192.0.2.1 port 80", "'port' needs a rule in the policy (a list has addresses only)"},
	{"192.0.2.1 192.0.2.2", "unexpected second address '192.0.2.2' (write one per line)"},
	{"192.0.2.1 x.example",
	 "unexpected 'x.example' (after the address: for TIME, to, both, note \"TEXT\")"},
	{"192.0.2.1 note", "missing quotes around the note (write note \"TEXT\")"},
	{"192.0.2.1 note a", "missing quotes around the note (write note \"TEXT\")"},
	{"192.0.2.1 note # \"a\"", "missing quotes around the note (write note \"TEXT\")"},
	{"192.0.2.1 note \"a", "missing closing quote of the note"},
	{"192.0.2.1 note \"\"", "a note has 1 to 255 bytes"},
	{"192.0.2.1 note \"a\"b", "missing blank after the note"},
	{"192.0.2.1 note \"a\" note \"a\"", "duplicate 'note'"},
	{"192.0.2.1 note \"\x1b[2J\"", "the note contains unprintable bytes"},
	{"192.0.2.1 note \"\xc3\"", "the note contains unprintable bytes"},
	{"192.0.2.1 \x1b[2J",
	 "unexpected '?[2J' (after the address: for TIME, to, both, note \"TEXT\")"},
};

// Each is one error of line 2; the other lines are read.
static void test_bad_lines(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_lines); i++) {
		char text[256];
		struct items b;

		snprintf(text, sizeof(text), "192.0.2.7\n%s\n192.0.2.8", bad_lines[i].line);
		b = read_text(text, false);
		if (b.error_count != 1)
			fail_msg("%s: %zu errors", bad_lines[i].line, b.error_count);
		assert_int_equal(b.errors.n, 1);
		assert_int_equal(b.errors.at[0].line, 2);
		assert_string_equal(b.errors.at[0].text, bad_lines[i].error);
		assert_int_equal(b.items.n, 2);
		assert_int_equal(b.items.at[1].line, 3);
		items_free(&b);
	}
}

static void test_names_are_checked(void **state)
{
	static const char *const bad[] = {"a..b", "a,b", "-", "http://x.example/",
					  "m\xc3\xbcller.de"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct items b = {0};

		add_word(&b, bad[i]);
		assert_int_equal(b.error_count, 1);
		assert_int_equal(b.errors.at[0].line, 0);
		assert_non_null(strstr(b.errors.at[0].text, "'"));
		assert_int_equal(b.items.n, 0);
		items_free(&b);
	}
}

static void test_wide(void **state)
{
	static const char text[] = "0.0.0.0/0\n::/0\n127.0.0.0/8\n::1\n0.0.0.0\n::\n";
	struct items b = read_text(text, true);

	assert_int_equal(b.error_count, 0);
	assert_int_equal(b.items.n, 6);
	items_free(&b);

	b = read_text("10.0.0.0/8\n2000::/16\n126.0.0.0/8\n128.0.0.0/8", false);
	assert_int_equal(b.error_count, 0);
	assert_int_equal(b.items.n, 4);
	items_free(&b);
}

static void test_ranges(void **state)
{
	struct items b = read_text("192.0.2.1-192.0.2.4 for 1s note \"r\"\n"
				   "2001:db8::-2001:db8::1\n"
				   "192.0.2.9-192.0.2.9",
				   false);
	static const char *const want[] = {"192.0.2.1", "192.0.2.2/31", "192.0.2.4",
					   "2001:db8::/127", "192.0.2.9"};
	addr_text buf;

	assert_int_equal(b.error_count, 0);
	assert_int_equal(b.items.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(shown(&b.items.at[i], buf), want[i]);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(b.items.at[i].note, "r");
		assert_int_equal(b.items.at[i].for_ms, 1000);
		assert_int_equal(b.items.at[i].line, 1);
	}
	assert_null(b.items.at[3].note);
	assert_int_equal(b.items.at[4].line, 3);
	items_free(&b);
}

static void test_mapped_is_counted(void **state)
{
	struct items b =
		read_text("::ffff:192.0.2.1\n::ffff:192.0.2.0/120\n::ffff:192.0.2.1 x\n", false);
	addr_text buf;

	assert_int_equal(b.items.n, 2);
	assert_int_equal(b.mapped, 2);
	assert_string_equal(shown(&b.items.at[1], buf), "192.0.2.0/24");
	items_free(&b);
}

static void test_words(void **state)
{
	struct items b = {0};
	addr_text buf;

	add_word(&b, "192.0.2.1");
	add_word(&b, "10.0.0.0-10.0.0.2");
	add_word(&b, "0.0.0.0/0");
	add_word(&b, "X.COM");
	add_word(&b, "::ffff:192.0.2.1");
	assert_int_equal(b.error_count, 0);
	assert_int_equal(b.items.n, 6);
	assert_string_equal(shown(&b.items.at[3], buf), "0.0.0.0/0");
	assert_string_equal(shown(&b.items.at[4], buf), "x.com");
	assert_int_equal(b.items.at[0].line + b.items.at[4].line, 0);
	assert_int_equal(b.mapped, 1);
	assert_int_equal(b.names, 1);

	add_word(&b, "192.0.2.1 for 1h");
	add_word(&b, "192.0.2.1#");
	add_word(&b, "");
	assert_int_equal(b.error_count, 3);
	assert_int_equal(b.items.n, 6);
	assert_string_equal(b.errors.at[2].text,
			    "'' is not an address (an address is missing here)");
	items_free(&b);
	assert_int_equal(b.items.n + b.error_count, 0);
}

static void test_formats(void **state)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{"127.0.0.1\tlocalhost\n192.0.2.1 a\n", "a hosts file"},
		{"# comment\n\n0.0.0.0 ads.example.com # x\n", "a hosts file"},
		{"::1 ip6-localhost ip6-loopback\n", "a hosts file"},
		{"# edge\ninterface eth0\ndefault drop\n", "a policy"},
		{"create bl hash:ip family inet\nadd bl 192.0.2.1\n", "output of ipset save"},
		{"add bl 192.0.2.1\n", "output of ipset save"},
		{"table inet filter {\n set bl {\n", "a file of nft"},
		{"#!/usr/sbin/nft -f\nflush ruleset\n", "a file of nft"},
		{"add element inet filter bl { 192.0.2.1 }\n", "a file of nft"},
		{"create table inet filter\n", "a file of nft"},
		{"elements = { 192.0.2.1,\n", "a file of nft"},
		{"ip,country\n192.0.2.1,DE\n", "CSV"},
		{"192.0.2.1,DE\n", "CSV"},
		{"192.0.2.1, DE\n", "CSV"},
		{"\"192.0.2.1\";\"DE\"\n", "CSV"},
		{"{\"prefixes\": [\n", "JSON"},
		{"[\n\"192.0.2.1\"\n", "JSON"},
		{"<!DOCTYPE html>\n", "HTML"},
		{"\xff\xfe\x31\x30", "UTF-16"},
		{"\x1f\x8b\x08\x01", "compressed"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct items b = read_text(cases[i].text, false);
		char begin[64];

		snprintf(begin, sizeof(begin), "this is %s", cases[i].what);
		assert_int_equal(b.items.n, 0);
		assert_int_equal(b.error_count, 1);
		assert_int_equal(strncmp(b.errors.at[0].text, begin, strlen(begin)), 0);
		items_free(&b);
	}
}

// A word that resembles another format is an error of its line, not of the list.
static void test_no_formats(void **state)
{
	static const char *const texts[] = {"192.0.2.1 noet \"x\"\n192.0.2.2\n",
					    "192.0.2.1 tto\n192.0.2.2\n", "[::1]:80\n192.0.2.2\n",
					    "192.0.2.2\n127.0.0.1 localhost\n",
					    "192.0.2.2\nip,country\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct items b = read_text(texts[i], false);

		assert_int_equal(b.items.n, 1);
		assert_int_equal(b.error_count, 1);
		assert_null(strstr(b.errors.at[0].text, "this is"));
		items_free(&b);
	}
}

static void test_nothing(void **state)
{
	static const char *const texts[] = {"", "\n\n", "# x", " \t\r\n ; x\n", "\xef\xbb\xbf"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct items b = read_text(texts[i], false);

		assert_int_equal(b.items.n + b.error_count, 0);
		items_free(&b);
	}
}

static void test_nul_bytes(void **state)
{
	static const char text[] = "192.0.2.1\n192.0.2.2\0\n192.0.2.3 note \"a\0b\"\n192.0.2.4 \0";
	struct items b = {0};

	items_add_text(&b, text, sizeof(text) - 1, false);
	assert_int_equal(b.items.n, 1);
	assert_int_equal(b.error_count, 3);
	assert_string_equal(b.errors.at[0].text, "NUL byte in the line (is this a text file?)");
	items_free(&b);
}

static void test_errors_are_counted(void **state)
{
	struct text t = {0};
	struct items b;

	for (unsigned i = 0; i < 1000; i++)
		text_add(&t, i % 2 ? "10.0.0.1\n" : "10.0.0.256\n");
	b = read_text(text_get(&t), false);
	assert_int_equal(b.items.n, 500);
	assert_int_equal(b.error_count, 500);
	assert_int_equal(b.errors.n, ITEMS_ERRORS_MAX);
	for (unsigned i = 0; i < ITEMS_ERRORS_MAX; i++)
		assert_int_equal(b.errors.at[i].line, 2 * i + 1);
	items_free(&b);
	text_free(&t);
}

static void test_long_lines(void **state)
{
	static const size_t sizes[] = {100, 300, 5000, 200000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct text t = {0};
		struct items b;

		for (size_t k = 0; k < sizes[i]; k++)
			text_add(&t, "\xc3\xa9");
		b = read_text(text_get(&t), false);
		assert_int_equal(b.error_count, 1);
		assert_int_equal(b.items.n, 0);
		assert_int_equal(text_utf8(b.errors.at[0].text, strlen(b.errors.at[0].text)), 1);
		items_free(&b);
		text_free(&t);
	}
}

static void test_note_bounds(void **state)
{
	for (unsigned len = 254; len <= 256; len++) {
		struct text t = {0};
		struct items b;

		text_addf(&t, "192.0.2.1 note \"%0*u\"", (int)len, 7u);
		b = read_text(text_get(&t), false);
		assert_int_equal(b.error_count, len > 255);
		if (!b.error_count)
			assert_int_equal(strlen(b.items.at[0].note), len);
		items_free(&b);
		text_free(&t);
	}
}

// More strings than fit one chunk of memory; they outlive the text.
static void test_strings_stay(void **state)
{
	enum { NAMES = 5000 };
	struct text t = {0};
	struct items b = {0};
	char want[64];

	for (unsigned i = 0; i < NAMES; i++)
		text_addf(&t, "Host%u.example note \"note number %u\"\n", i, i);
	items_add_text(&b, t.at, t.len, false);
	text_free(&t);
	add_word(&b, "last.example");
	assert_int_equal(b.error_count, 0);
	assert_int_equal(b.names, NAMES + 1);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(want, sizeof(want), "host%u.example", i);
		assert_string_equal(b.items.at[i].name, want);
		snprintf(want, sizeof(want), "note number %u", i);
		assert_string_equal(b.items.at[i].note, want);
	}
	items_free(&b);
}

static void test_too_many_names(void **state)
{
	struct text t = {0};
	struct items b;

	for (unsigned i = 0; i < ITEMS_NAMES_MAX + 2; i++)
		text_addf(&t, "host%u.example\n", i);
	text_add(&t, "192.0.2.1\n");
	b = read_text(text_get(&t), false);
	assert_int_equal(b.names, ITEMS_NAMES_MAX);
	assert_int_equal(b.items.n, ITEMS_NAMES_MAX + 1);
	assert_int_equal(b.error_count, 2);
	assert_string_equal(b.errors.at[0].text, "more than 10000 host names");
	items_free(&b);
	text_free(&t);
}

static void test_too_many_items(void **state)
{
	static const char range[] = "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe\n";
	size_t fit = ITEMS_MAX / 254;
	struct text t = {0};
	struct items b;

	for (size_t i = 0; i < fit + 3; i++)
		text_add(&t, range);
	b = read_text(text_get(&t), true);
	assert_int_equal(b.items.n, fit * 254);
	assert_int_equal(b.error_count, 3);
	assert_string_equal(b.errors.at[0].text, "more than 4194304 prefixes and names");
	items_free(&b);
	text_free(&t);
}

static void test_too_many_bytes(void **state)
{
	struct items b = {0};

	// The length is refused before the text is read.
	items_add_text(&b, "192.0.2.1\n", (size_t)ITEMS_BYTES_MAX + 1, false);
	assert_int_equal(b.items.n, 0);
	assert_int_equal(b.error_count, 1);
	items_free(&b);
}

static struct prefix random_prefix(uint64_t *seed)
{
	struct addr a = {.family = unit_below(seed, 2) ? 4 : 6};
	unsigned bits = addr_bits(&a);

	for (unsigned i = 0; i < bits / 8; i++)
		a.bytes[i] = (uint8_t)unit_random(seed);
	a.bytes[0] = (uint8_t)(a.bytes[0] | 0x80); // not loopback, not mapped
	return prefix_of(&a, (uint8_t)(bits - unit_below(seed, bits / 2)));
}

static void print_random_item(struct text *t, struct item *item, uint64_t *seed)
{
	static const char *const notes[] = {"abuse 4711", "#", "for 1h to", "\xe2\x82\xac"};
	addr_text buf;

	*item = (struct item){.prefix = random_prefix(seed)};
	text_add(t, prefix_format(&item->prefix, buf));
	if (unit_below(seed, 2)) {
		item->for_ms = 1000 * (1 + unit_below(seed, 100000));
		text_addf(t, " for %us", (unsigned)(item->for_ms / 1000));
	}
	item->to = unit_below(seed, 3) == 0;
	item->both = !item->to && unit_below(seed, 3) == 0;
	text_add(t, item->to ? " to" : item->both ? " both" : "");
	if (unit_below(seed, 2)) {
		item->note = notes[unit_below(seed, ARRAY_SIZE(notes))];
		text_addf(t, " note \"%s\"", item->note);
	}
	text_add(t, unit_below(seed, 2) ? "\n" : " \r\n");
}

// `block -f` reads the output of `list --plain`.
static void test_random_round_trips(void **state)
{
	enum { ITEMS = 20000 };
	struct item *want = mem_zalloc(ITEMS, sizeof(*want));
	uint64_t seed = 3;
	struct text t = {0};
	struct items b;

	for (unsigned i = 0; i < ITEMS; i++)
		print_random_item(&t, &want[i], &seed);
	b = read_text(text_get(&t), false);
	if (b.error_count)
		fail_msg("line %u: %s", b.errors.at[0].line, b.errors.at[0].text);
	assert_int_equal(b.items.n, ITEMS);
	for (unsigned i = 0; i < ITEMS; i++) {
		const struct item *got = &b.items.at[i];

		assert_int_equal(prefix_compare(&got->prefix, &want[i].prefix), 0);
		assert_int_equal(got->line, i + 1);
		assert_int_equal(got->for_ms, want[i].for_ms);
		assert_int_equal(got->to, want[i].to);
		assert_int_equal(got->both, want[i].both);
		assert_int_equal(!got->note, !want[i].note);
		if (got->note)
			assert_string_equal(got->note, want[i].note);
	}
	items_free(&b);
	text_free(&t);
	free(want);
}

static void countries_and_numbers(void **state)
{
	static const char *const words[] = {"country", "de", "ASN", "asn", "64500", "country"};
	static const char text[] = "country DE for 1h note \"why\"\nasn 64500 both # x\ncountry\n"
				   "country UK\nasn AS1\ncountry DE FR\n";
	static const char *const joined[] = {"country FR", "asn 64500", "country FR DE", "host FR",
					     "country "};
	struct items b = {0};
	size_t at = 0;

	while (at < ARRAY_SIZE(words))
		at += items_add_words(&b, words + at, ARRAY_SIZE(words) - at);
	assert_int_equal(b.items.n, 3);
	assert_string_equal(b.items.at[0].name, "country DE");
	assert_string_equal(b.items.at[1].name,
			    "asn"); // a host of that name: keywords are in lower case
	assert_string_equal(b.items.at[2].name, "asn 64500");
	assert_int_equal(b.geos, 2);
	assert_int_equal(b.names, 1);
	for (size_t n = 0; n < ARRAY_SIZE(joined); n++)
		assert_int_equal(items_add_words(&b, &joined[n], ARRAY_SIZE(joined) - n), 1);
	assert_int_equal(b.geos, 4);
	assert_string_equal(b.items.at[3].name, "country FR");
	assert_string_equal(b.items.at[4].name, "asn 64500");
	assert_int_equal(b.error_count, 4);
	items_free(&b);
	items_add_words(&b, words + 5, 1);
	assert_string_equal(b.errors.at[0].text, "missing code after 'country' (write country DE)");
	items_free(&b);
	items_add_text(&b, text, strlen(text), false);
	assert_int_equal(b.items.n, 2);
	assert_int_equal(b.items.at[0].for_ms, 3600000);
	assert_string_equal(b.items.at[0].note, "why");
	assert_true(b.items.at[1].both);
	assert_int_equal(b.error_count, 4);
	assert_string_equal(b.errors.at[1].text,
			    "unknown country code 'UK' (did you mean GB, United Kingdom?)");
	assert_int_equal(b.errors.at[2].line, 5);
	assert_non_null(strstr(b.errors.at[3].text, "unexpected 'FR'"));
	items_free(&b);
}

static void test_mask(void **state)
{
	static const char text[] = "192.0.2.7/24\n2001:db8::1/64\n::ffff:192.0.2.7/120\n"
				   "192.0.2.7\n10.0.0.1/8\n1.2.3.4/33\n127.0.0.1/8\n0.0.0.1/0\n";
	static const char *const wants[] = {"192.0.2.0/24", "2001:db8::/64", "192.0.2.0/24",
					    "192.0.2.7", "10.0.0.0/8"};
	struct items b = {.mask = true};
	addr_text buf;

	items_add_text(&b, text, strlen(text), false);
	assert_int_equal(b.items.n, ARRAY_SIZE(wants));
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
		assert_string_equal(shown(&b.items.at[i], buf), wants[i]);
	assert_int_equal(b.error_count, 3);
	assert_int_equal(b.errors.at[0].line, 6);
	assert_non_null(strstr(b.errors.at[1].text, "loopback"));
	assert_non_null(strstr(b.errors.at[2].text, "shorter than"));
	items_free(&b);
	b = read_text("192.0.2.7/24\n", false);
	assert_int_equal(b.error_count, 1);
	items_free(&b);
}

static void wants_note(const char *note, const char *want)
{
	CLEANUP_TEXT struct text t = {0};
	bool same = items_add_note(&t, note);

	assert_string_equal(text_get(&t), want);
	assert_int_equal(same, !strcmp(note, want));
}

static void test_notes_are_cleaned(void **state)
{
	char many[600], want[ITEMS_NOTE_MAX + 1];

	wants_note("", "");
	wants_note("abuse 4711", "abuse 4711");
	wants_note("\xc3\xbc \xe2\x82\xac", "\xc3\xbc \xe2\x82\xac");
	wants_note("said \"hi\"", "said 'hi'");
	wants_note("a\tb\nc\x1b", "a b?c?");
	wants_note("a\xff\xc3", "a??");
	wants_note("a\xe2\x80\xae", "a???"); // a bidirectional mark
	memset(many, 'x', sizeof(many));
	many[sizeof(many) - 1] = '\0';
	memset(want, 'x', ITEMS_NOTE_MAX);
	want[ITEMS_NOTE_MAX] = '\0';
	wants_note(many, want);
	memcpy(many + ITEMS_NOTE_MAX - 2, "\xe2\x82\xac", 3); // no half a code point
	want[ITEMS_NOTE_MAX - 2] = '\0';
	wants_note(many, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_names_are_checked),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_mapped_is_counted),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_no_formats),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_nul_bytes),
		cmocka_unit_test(test_errors_are_counted),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_note_bounds),
		cmocka_unit_test(test_strings_stay),
		cmocka_unit_test(test_too_many_names),
		cmocka_unit_test(test_too_many_items),
		cmocka_unit_test(test_too_many_bytes),
		cmocka_unit_test(test_random_round_trips),
		cmocka_unit_test(countries_and_numbers),
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_notes_are_cleaned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
