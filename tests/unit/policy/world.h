// SPDX-License-Identifier: GPL-2.0-only
// Shared by the unit tests of ctl/policy: an environment in memory, and a policy loaded from a
// string.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/base/unit.h"

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/policy/resolve.h"

struct environment_file {
	const char *path, *text;
	size_t len; // 0: strlen
};

struct environment {
	const char *policy;
	const struct environment_file *files; // up to one without a path
	const char *last;                     // last good content of every list, NULL: none
	unsigned resolves;                    // calls of the resolver
	size_t names;                         // in the last call
	bool names_may_fail;
	const struct policy_quick *quick;
	size_t n_quick;
	struct diag *diag;
	char *messages; // what was printed
};

static int environment_read(void *ctx, const char *path, size_t max, char **ret_text,
			    size_t *ret_len, struct err *err)
{
	const struct environment *w = ctx;
	const char *text = strcmp(path, "main") ? NULL : w->policy;
	size_t len = text ? strlen(text) : 0;

	for (const struct environment_file *f = w->files; !text && f && f->path; f++)
		if (!strcmp(f->path, path)) {
			text = f->text;
			len = f->len ? f->len : strlen(text);
		}
	if (!text || len > max)
		return err_system(err, ENOENT, "cannot open '%s'", path);
	*ret_text = mem_realloc(NULL, len + 1, 1);
	memcpy(*ret_text, text, len);
	(*ret_text)[len] = '\0';
	*ret_len = len;
	return 0;
}

static int environment_glob(void *ctx, const char *pattern, char ***ret, size_t *ret_n,
			    struct err *err)
{
	return err_system(err, EIO, "cannot list '%s'", pattern);
}

// "gone…" does not resolve, "four…" and "six…" have one family; the first letter makes the
// addresses.
static int environment_resolve(void *ctx, const struct policy_question *questions, size_t n,
			       struct policy_answer *answers, struct err *err)
{
	struct environment *w = ctx;

	w->resolves++;
	w->names = n;
	for (size_t i = 0; i < n; i++) {
		const char *name = questions[i].name;
		struct policy_answer *a = &answers[i];
		uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)name[0]};

		a->error = strncmp(name, "gone", 4) ? 0 : -ENOENT;
		if (a->error)
			continue;
		a->addrs = mem_zalloc(2, sizeof(*a->addrs));
		a->v4_missing = !strncmp(name, "six", 3);
		a->v6_missing = !strncmp(name, "four", 4);
		if (!a->v6_missing)
			a->addrs[a->n++] = addr_from_v6(v6);
		if (!a->v4_missing)
			a->addrs[a->n++] = addr_from_v4((uint32_t)name[0] << 24 | 0x000002c0);
	}
	return 0;
}

static int environment_last(void *ctx, const char *path, char **ret_text, size_t *ret_len)
{
	const struct environment *w = ctx;

	if (!w->last)
		return -ENOENT;
	*ret_text = mem_strdup(w->last);
	*ret_len = strlen(w->last);
	return 0;
}

static void environment_free(struct environment *w)
{
	diag_free(w->diag);
	free(w->messages);
	w->diag = NULL;
	w->messages = NULL;
}

// The policy, or NULL; w->messages has the diagnostics. Places are valid until environment_free.
static inline struct resolved *environment_load(struct environment *w, const char *policy)
{
	struct source_reader files = {.read = environment_read, .glob = environment_glob, .ctx = w};
	struct policy_env env = {
		.ctx = w,
		.files = &files,
		.services = "services",
		.resolve = environment_resolve,
		.last_list = environment_last,
		.may_be_empty = true, // tests of a part have nothing else
		.names_may_fail = w->names_may_fail,
		.quick = w->quick,
		.n_quick = w->n_quick,
	};
	struct resolved *r;
	size_t len;
	FILE *f;

	environment_free(w);
	w->policy = policy;
	w->diag = diag_new();
	r = policy_load("main", &env, NULL, 0, w->diag);
	f = open_memstream(&w->messages, &len);
	diag_print(w->diag, f, false);
	fclose(f);
	return r;
}

static inline void environment_wants(const struct environment *w, const char *text)
{
	if (!strstr(w->messages, text))
		fail_msg("no '%s' in:\n%s", text, w->messages);
}
