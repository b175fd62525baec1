// SPDX-License-Identifier: GPL-2.0-only
// Prints what a policy is to the compiler: its diagnostics, then (without errors) the resolved
// form.
//
// usage: policy-run [-q] [-i IFACE]… [-w NAMES] [-s SERVICES] FILE     (-q: diagnostics only)
//
// NAMES is the environment, a line a name: "NAME ADDRESS…"; "NAME !SENTENCE" does not resolve;
// "NAME ~ADDRESS…" is a last good answer; "NAME +ADDRESS…" means that the query for AAAA failed.
// The last line of a name counts, also of several -w.
// The names self, gateway, resolver and peer have the addresses of this host, its gateway, its
// resolver and the peer of a login. "country-DE PREFIX…" and "asn-64500 PREFIX…" are the ranges of
// a country and an autonomous system, "~PREFIX…" a last good answer.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/control/guard.h"
#include "ctl/policy/resolve.h"
#include "tests/golden/policy-print.h"

#define IFACES_MAX 64

struct line {
	char *name, *rest;
};

struct environment {
	VEC(struct line) lines;
	char *text;
};

static void read_environment(struct environment *w, const char *path)
{
	struct err err = {0};
	size_t len = 0;
	char *next, *line;

	if (file_read(path, 1u << 20, &w->text, &len, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(2);
	}
	for (next = w->text; (line = strsep(&next, "\n"));) {
		char *name = strsep(&line, " ");

		if (name[0] && name[0] != '#')
			vec_push(&w->lines,
				 ((struct line){name, line ? line : name + strlen(name)}));
	}
}

static const char *find(const struct environment *w, const char *name)
{
	for (size_t i = w->lines.n; i--;)
		if (!strcmp(w->lines.at[i].name, name))
			return w->lines.at[i].rest;
	return NULL;
}

static void parse_addresses(const char *text, struct addr **ret, size_t *ret_n)
{
	VEC(struct addr) addrs = {0};
	CLEANUP_FREE char *copy = mem_strdup(text);
	char *next = copy, *word;

	while ((word = strsep(&next, " "))) {
		struct addr a;

		if (addr_parse(word, strlen(word), &a, NULL) == 0)
			vec_push(&addrs, a);
	}
	*ret = addrs.at;
	*ret_n = addrs.n;
}

static void answer(const struct environment *w, const char *name, struct policy_answer *a)
{
	const char *text = find(w, name);

	if (!text || text[0] == '!') {
		a->error = -ENOENT;
		snprintf(a->why, sizeof(a->why), "'%s': %s", name,
			 text ? text + 1 : "no such name (NXDOMAIN)");
		return;
	}
	if (text[0] == '~') {
		a->stale = true;
		snprintf(a->why, sizeof(a->why), "'%s': timed out", name);
		text++;
	}
	if (text[0] == '+') {
		a->v6_failed = true;
		text++;
	}
	parse_addresses(text, &a->addrs, &a->n);
	a->ttl_s = 300;
	a->v4_missing = a->v6_missing = true;
	for (size_t i = 0; i < a->n; i++)
		*(a->addrs[i].family == 4 ? &a->v4_missing : &a->v6_missing) = false;
}

static void guard_words(const struct environment *w, const char *name, const char *what,
			struct guard *to)
{
	const char *text = find(w, name);
	struct addr *addrs = NULL;
	size_t n = 0;

	if (text)
		parse_addresses(text, &addrs, &n);
	for (size_t i = 0; i < n; i++) {
		struct guarded *one = vec_add(to);

		*one = (struct guarded){.addr = addrs[i]};
		snprintf(one->what, sizeof(one->what), "%s", what);
	}
	free(addrs);
}

static void leave_out(const struct guard *g, struct policy_answer *a)
{
	struct guard_sieve sieve = {.guard = g};

	a->left_out = mem_zalloc(a->n, sizeof(*a->left_out));
	for (size_t i = 0; i < a->n; i++) {
		const char *why = guard_sift(&sieve, &a->addrs[i]);
		struct policy_left_out *one = &a->left_out[a->n_left_out];

		if (!why)
			continue;
		one->addr = a->addrs[i];
		snprintf(one->why, sizeof(one->why), "%s", why);
		a->n_left_out++;
	}
}

static int resolve(void *ctx, const struct policy_question *questions, size_t n,
		   struct policy_answer *answers, struct err *err)
{
	CLEANUP(guard_free) struct guard guard = {0};

	guard_words(ctx, "self", "an address of this host", &guard);
	guard_words(ctx, "gateway", "the default gateway", &guard);
	guard_words(ctx, "resolver", "the resolver of this host", &guard);
	guard_words(ctx, "peer", "the peer of a login", &guard);
	for (size_t i = 0; i < n; i++) {
		answer(ctx, questions[i].name, &answers[i]);
		if (questions[i].use != POLICY_WHOLE && !answers[i].error)
			leave_out(&guard, &answers[i]);
	}
	return 0;
}

static void parse_prefixes(const char *text, struct prefix **ret, size_t *ret_n)
{
	VEC(struct prefix) prefixes = {0};
	CLEANUP_FREE char *copy = mem_strdup(text);
	char *next = copy, *word;

	while ((word = strsep(&next, " "))) {
		struct prefix p;

		if (prefix_parse_quiet(word, strlen(word), &p, NULL) == 0)
			vec_push(&prefixes, p);
	}
	*ret = prefixes.at;
	*ret_n = prefixes.n;
}

static int ranges(void *ctx, const struct geo *wanted, size_t n, struct policy_ranges *answers,
		  struct err *err)
{
	if (find(ctx, "no-database"))
		return err_input(err, "no database of countries");
	for (size_t i = 0; i < n; i++) {
		geo_text name, key;
		const char *text;

		geo_format(&wanted[i], name);
		memcpy(key, name, sizeof(key));
		*strchr(key, ' ') = '-';
		text = find(ctx, key);
		snprintf(answers[i].why, sizeof(answers[i].why), "no prefix of %s in 'test.mmdb'",
			 name);
		answers[i].stale = text && text[0] == '~';
		if (text)
			parse_prefixes(text + answers[i].stale, &answers[i].prefixes,
				       &answers[i].n);
	}
	return 0;
}

static int addresses(void *ctx, struct addr **ret, size_t *ret_n, struct err *err)
{
	const char *text = find(ctx, "self");

	if (text)
		parse_addresses(text, ret, ret_n);
	return 0;
}

// "https://lists.example/X" is the file accept/X.
static int read_text(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	static const char feeds[] = "https://lists.example/";
	CLEANUP_FREE char *file = NULL;

	if (strncmp(path, feeds, strlen(feeds)) != 0)
		return source_system.read(source_system.ctx, path, max, ret_text, ret_len, err);
	file = mem_printf("accept/%s", path + strlen(feeds));
	return source_system.read(source_system.ctx, file, max, ret_text, ret_len, err);
}

int main(int argc, char **argv)
{
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_RESOLVED struct resolved *resolved = NULL;
	struct environment environment = {0};
	struct policy_env env = {
		.ctx = &environment, .resolve = resolve, .ranges = ranges, .addresses = addresses};
	struct source_reader files = source_system;
	const char *ifaces[IFACES_MAX];
	size_t n_ifaces = 0;
	bool quiet = false;
	int option;

	files.read = read_text;
	env.files = &files;
	while ((option = getopt(argc, argv, "i:w:s:q")) != -1) {
		if (option == 'i' && n_ifaces < IFACES_MAX)
			ifaces[n_ifaces++] = optarg;
		else if (option == 'w')
			read_environment(&environment, optarg);
		else if (option == 's')
			env.services = optarg;
		else if (option == 'q')
			quiet = true;
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	resolved = policy_load(argv[optind], &env, ifaces, n_ifaces, diag);
	diag_print(diag, stdout, false);
	if (resolved && !quiet)
		policy_print(resolved, stdout);
	vec_free(&environment.lines);
	free(environment.text);
	return resolved ? 0 : 1;
}
