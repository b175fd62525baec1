// SPDX-License-Identifier: GPL-2.0-only
// Parses long and short options, in any order with the words.
#include "ctl/cmd/args.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/num.h"

static const struct args_option *find(const struct args *args, const char *name, size_t len,
				      char letter)
{
	for (size_t t = 0; t < ARRAY_SIZE(args->tables); t++)
		for (const struct args_option *o = args->tables[t]; o && o->name; o++) {
			if (name && strlen(o->name) == len && !memcmp(o->name, name, len))
				return o;
			if (letter && o->letter == letter)
				return o;
		}
	return NULL;
}

static const char *foreign_hint(const struct args *args, const char *word, const char *bare)
{
	for (const struct args_foreign *f = args->foreign; f && f->name; f++)
		if (!strcmp(f->name, bare) || (word[1] != '-' && word[1] == f->letter))
			return f->hint;
	return NULL;
}

static int unknown(const struct args *args, const char *word, struct err *err)
{
	CLEANUP_FREE char *bare = mem_strdup(word + strspn(word, "-"));
	CLEANUP_VEC VEC(const char *) names = {0};
	const struct args_option *exact;
	const char *near;

	bare[strcspn(bare, "=")] = '\0';
	exact = find(args, bare, strlen(bare), 0);
	for (size_t t = 0; t < ARRAY_SIZE(args->tables); t++)
		for (const struct args_option *o = args->tables[t]; o && o->name; o++)
			vec_push(&names, o->name);
	near = word[1] == '-' ? diag_nearest(bare, names.at, names.n) : NULL;
	err_input(err, "unknown option '%s'", word);
	if (exact)
		return err_hint(err, "did you mean '--%s'?", exact->name);
	if (foreign_hint(args, word, bare))
		return err_hint(err, "%s", foreign_hint(args, word, bare));
	if (near)
		return err_hint(err, "did you mean '--%s'?", near);
	return err_hint(err, "weir help%s%s lists the options", args->command ? " " : "",
			args->command ? args->command : "");
}

static int give(struct args *args, const struct args_option *o, const char *value, struct err *err)
{
	if (!o->repeated && o->arg && args_value(args, o->name))
		return err_input(err, "duplicate option '--%s'", o->name);
	vec_push(&args->given, ((struct args_given){o, value}));
	return 0;
}

// Options with an optional argument take a time; no interface, service or file has such a name.
static bool is_time(const char *word)
{
	uint64_t ms;

	return !num_parse_time_ms(word, strlen(word), 0, UINT64_MAX, &ms);
}

// Parses one long option. *ret_next: the next word is its argument.
static int long_option(struct args *args, const char *word, const char *next, bool *ret_next,
		       struct err *err)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct args_option *o = find(args, name, len, 0);

	*ret_next = false;
	if (!o)
		return unknown(args, word, err);
	if (!o->arg && equals)
		return err_input(err, "option '--%s' takes no argument", o->name);
	if (o->optional && !equals && next && is_time(next)) {
		err_input(err, "option '--%s' takes its argument after '=' only", o->name);
		return err_hint(err, "write --%s=%s", o->name, next);
	}
	if (!o->arg || equals || o->optional)
		return give(args, o, equals ? equals + 1 : NULL, err);
	if (!next)
		return err_input(err, "option '--%s' needs %s", o->name, o->arg);
	*ret_next = true;
	return give(args, o, next, err);
}

// Parses "-jp", "-nNAME" or "-n NAME". *ret_next: the next word is an argument.
static int short_options(struct args *args, const char *word, const char *next, bool *ret_next,
			 struct err *err)
{
	*ret_next = false;
	for (const char *c = word + 1; *c; c++) {
		const struct args_option *o = find(args, NULL, 0, *c);

		if (!o)
			return unknown(args, word, err);
		if (!o->arg || o->optional) {
			int code = give(args, o, NULL, err);

			if (code)
				return code;
			continue;
		}
		if (c[1])
			return give(args, o, c + 1, err);
		if (!next)
			return err_input(err, "option '-%c' needs %s", o->letter, o->arg);
		*ret_next = true;
		return give(args, o, next, err);
	}
	return 0;
}

// "-5" is a number.
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]);
}

static int parse_option(struct args *args, const char *word, const char *next, bool *ret_next,
			struct err *err)
{
	if (word[1] == '-')
		return long_option(args, word, next, ret_next, err);
	// "-for 1h" is not -f with the file "or".
	if (word[2] && find(args, word + 1, strcspn(word + 1, "="), 0))
		return unknown(args, word, err);
	return short_options(args, word, next, ret_next, err);
}

int args_parse(struct args *args, char **argv, size_t n, bool until_word, size_t *ret_used,
	       struct err *err)
{
	bool options = true;
	size_t a;

	for (a = 0; a < n; a++) {
		const char *word = argv[a], *next = a + 1 < n ? argv[a + 1] : NULL;
		bool took_next = false;
		int code = 0;

		if (options && !strcmp(word, "--"))
			options = false;
		else if (options && is_option(word))
			code = parse_option(args, word, next, &took_next, err);
		else if (until_word)
			break;
		else
			vec_push(&args->words, word);
		if (code)
			return code;
		a += took_next;
	}
	*ret_used = a;
	return 0;
}

void args_free(struct args *args)
{
	vec_free(&args->words);
	vec_free(&args->given);
}

static const struct args_given *last(const struct args *args, const char *name)
{
	const struct args_given *found = NULL;

	assert(find(args, name, strlen(name), 0));
	vec_each (&args->given, given)
		if (!strcmp(given->option->name, name))
			found = given;
	return found;
}

bool args_knows(const struct args *args, const char *name)
{
	for (const struct args_option *o = args->tables[0]; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

bool args_has(const struct args *args, const char *name)
{
	return last(args, name);
}

const char *args_value(const struct args *args, const char *name)
{
	const struct args_given *given = last(args, name);

	return given ? given->value : NULL;
}

const char *args_value_or(const struct args *args, const char *name, const char *variable)
{
	const char *value = args_value(args, name);

	return value ? value : getenv(variable);
}

size_t args_values(const struct args *args, const char *name, const char **ret, size_t max)
{
	size_t n = 0;

	vec_each (&args->given, given)
		if (n < max && !strcmp(given->option->name, name))
			ret[n++] = given->value;
	return n;
}

int args_expect_words(const struct args *args, size_t min, size_t max, const char *what,
		      struct err *err)
{
	if (args->words.n < min)
		return err_input(err, "missing %s", what);
	if (args->words.n > max)
		return err_input(err, "unexpected argument '%s'", args->words.at[max]);
	return 0;
}

static bool is_among(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = options; (at = strstr(at, name)); at += len)
		if ((at == options || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

int args_expect_options(const struct args *args, const char *word, const char *options,
			struct err *err)
{
	vec_each (&args->given, given) {
		const char *name = given->option->name;

		if (args_knows(args, name) && !is_among(options, name))
			return err_input(err, "'%s' has no option --%s", word, name);
	}
	return 0;
}
