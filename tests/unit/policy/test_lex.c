// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/policy/lex.c: tokens, locations, line ends, and bytes that are no token.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/policy/lex.h"

static const char signs[] = {
	[TOKEN_COMMA] = ',', [TOKEN_EQUALS] = '=', [TOKEN_OPEN] = '{',
	[TOKEN_CLOSE] = '}', [TOKEN_EOF] = '.',    [TOKEN_BAD] = '?',
};

// One word a token: w:TEXT, s:TEXT, $TEXT, @TEXT, NL, ; or the sign.
static void describe(const struct token *t, struct text *out)
{
	text_add(out, out->len ? " " : "");
	if (t->kind == TOKEN_WORD || t->kind == TOKEN_STRING)
		text_addf(out, "%c:%s", t->kind == TOKEN_WORD ? 'w' : 's', t->text);
	else if (t->kind == TOKEN_DEFINE || t->kind == TOKEN_SET)
		text_addf(out, "%c%s", t->kind == TOKEN_DEFINE ? '$' : '@', t->text);
	else if (t->kind == TOKEN_END)
		text_add(out, t->newline ? "NL" : ";");
	else
		text_addc(out, signs[t->kind]);
}

struct lexed {
	struct diag *diag;
	struct arena arena;
	struct tokens tokens;
};

static struct lexed run(const char *text, size_t len)
{
	struct lexed l = {.diag = diag_new()};

	lex(diag_add_file(l.diag, "f", text, len), l.diag, &l.arena, &l.tokens);
	return l;
}

static void done(struct lexed *l)
{
	tokens_free(&l->tokens);
	arena_free(&l->arena);
	diag_free(l->diag);
}

static void gives_n(const char *text, size_t len, const char *want, size_t errors)
{
	CLEANUP(text_free) struct text got = {0};
	struct lexed l = run(text, len);

	vec_each (&l.tokens.all, t)
		describe(t, &got);
	if (strcmp(text_get(&got), want) != 0 || diag_errors(l.diag) != errors)
		fail_msg("'%s': %s (%zu errors), not %s", text, text_get(&got), diag_errors(l.diag),
			 want);
	done(&l);
}

static void gives(const char *text, const char *want)
{
	gives_n(text, strlen(text), want, 0);
}

static void fails(const char *text, const char *want, size_t errors)
{
	gives_n(text, strlen(text), want, errors);
}

static void test_words(void **state)
{
	gives("", ".");
	gives("drop", "w:drop .");
	gives("  a\tb\r", "w:a w:b .");
	gives("10.0.0.0/8 2001:db8::/32 a-b_c.d veth* 50% +1",
	      "w:10.0.0.0/8 w:2001:db8::/32 w:a-b_c.d w:veth* w:50% w:+1 .");
	gives("20000/s fin/fin,psh", "w:20000/s w:fin/fin , w:psh .");
	gives("a=b{c}d", "w:a = w:b { w:c } w:d .");
	gives("$web @set $a-b@c_d", "$web @set $a-b @c_d .");
	gives("10.0.0.1$x", "w:10.0.0.1 $x .");
}

static void test_strings(void **state)
{
	char text[300] = "\"", want[300] = "s:";

	gives("\"a b#c;d\" x", "s:a b#c;d w:x .");
	gives("\"a\\\"", "s:a\\ .");
	fails("\"\"", "? .", 1);
	fails("\"abc", "? .", 1);
	fails("\"abc\ndrop", "? NL w:drop .", 1);
	fails("\"a\tb\"", "? .", 1);
	fails("\"a\x80"
	      "b\"",
	      "? .", 1);
	memset(text + 1, 'x', 255);
	memcpy(want + 2, text + 1, 255);
	memcpy(want + 257, " .", 3);
	text[256] = '"';
	gives(text, want);
	memcpy(text + 256, "x\"", 3);
	fails(text, "? .", 1);
}

static void test_line_ends(void **state)
{
	gives("a\nb", "w:a NL w:b .");
	gives("a\r\nb\r\n", "w:a NL w:b NL .");
	gives("\n\n a \n\n\n b", "w:a NL w:b .");
	gives("a;b;;c\n", "w:a ; w:b ; ; w:c NL .");
	gives("a;\nb", "w:a ; NL w:b .");
	gives("a # b\nc", "w:a NL w:c .");
	gives("# only", ".");
	gives("a,\nb", "w:a , w:b .");
	gives("a,  # why\n\n # more\n b", "w:a , w:b .");
	gives("a\n,b", "w:a NL , w:b .");
	gives("a \\\n b", "w:a w:b .");
	gives("a \\\r\n b", "w:a w:b .");
	gives("a\\\nb", "w:a w:b .");
	gives("a # \\\nb", "w:a NL w:b .");
	gives("{\n a\n b\n}", "{ NL w:a NL w:b NL } .");
	gives("\xef\xbb\xbf"
	      "a",
	      "w:a .");
}

static void test_bad(void **state)
{
	fails("a & b", "w:a ? w:b .", 1);
	fails("&&&", "? .", 1);
	fails("&|", "? ? .", 2);
	fails("$", "? .", 1);
	fails("@9", "? .", 1);
	fails("$abcdefghijklmnopqrstuvwxyz12345", "$abcdefghijklmnopqrstuvwxyz12345 .", 0);
	fails("$abcdefghijklmnopqrstuvwxyz123456", "? .", 1);
	fails("b\xc3\xbc"
	      "cher.de x",
	      "? w:x .", 1);
	fails("\xff\xfe", "? .", 1);
	fails("a \\ b", "w:a ? w:b .", 1);
	fails("a \\", "w:a ? .", 1);
	gives_n("a\0b", 3, "w:a ? w:b .", 1);
	gives_n("\x01\x01\x7f", 3, "? ? .", 2);
}

static void test_places(void **state)
{
	static const char text[] = "ab \"c\"\n\t$d,\n e # x\nf";
	struct lexed l = run(text, strlen(text));
	const struct {
		uint32_t offset, len, line;
		bool first;
	} want[] = {
		{0, 2, 1, true},   {3, 3, 1, false},  {6, 0, 1, false},
		{8, 2, 2, true},   {10, 1, 2, false}, {13, 1, 3, true},
		{14, 0, 3, false}, {19, 1, 4, true},  {20, 0, 4, false},
	};

	assert_int_equal(l.tokens.all.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct token *t = &l.tokens.all.at[i];

		if (t->at.offset != want[i].offset || t->at.len != want[i].len ||
		    t->line != want[i].line || t->first != want[i].first)
			fail_msg("token %zu: offset %u len %u line %u first %d", i, t->at.offset,
				 t->at.len, t->line, t->first);
	}
	done(&l);
}

static void test_names(void **state)
{
	assert_true(lex_is_name("a"));
	assert_true(lex_is_name("a9_-Z"));
	assert_false(lex_is_name(""));
	assert_false(lex_is_name("9a"));
	assert_false(lex_is_name("-a"));
	assert_false(lex_is_name("a.b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),     cmocka_unit_test(test_strings),
		cmocka_unit_test(test_line_ends), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_places),    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
