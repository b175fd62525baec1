// SPDX-License-Identifier: GPL-2.0-only
// The names that are resolved again, and their answers.
#include "ctl/control/refresh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/entries/store.h"

void refresh_free(struct refresh *r)
{
	vec_each (r, one)
		free(one->name);
	records_free(&r->held);
	vec_free(r);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct refresh_name *)a)->name,
		      ((const struct refresh_name *)b)->name);
}

struct refresh_name *refresh_find(const struct refresh *r, const char *name)
{
	struct refresh_name key = {.name = (char *)name};

	return r->n ? bsearch(&key, r->at, r->n, sizeof(key), compare) : NULL;
}

void refresh_guard_free(struct refresh_guard *g)
{
	guard_free(&g->guard);
}

int refresh_guard_get(struct refresh_guard *g, const struct guard **ret, struct err *err)
{
	int code;

	*ret = &g->guard;
	if (g->collected)
		return 0;
	if ((code = guard_collect(g->session, g->dns, &g->guard, err)))
		return code;
	g->collected = true;
	return guard_add_logins(&g->guard, GUARD_REFUSE, err);
}

// ---- which are wanted ---------------------------------------------------------------------------

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_who(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void refresh_wanted_make(const char *const *only, size_t n, struct refresh_wanted *ret)
{
	*ret = (struct refresh_wanted){.n = n};
	if (!n)
		return;
	ret->names = mem_zalloc(n, sizeof(*ret->names));
	ret->who = mem_zalloc(n, sizeof(*ret->who));
	for (size_t i = 0; i < n; i++) {
		ret->names[i] = only[i];
		ret->who[i] = journal_who("", only[i]);
	}
	qsort(ret->names, n, sizeof(*ret->names), compare_texts);
	qsort(ret->who, n, sizeof(*ret->who), compare_who);
}

void refresh_wanted_free(struct refresh_wanted *wanted)
{
	free(wanted->names);
	free(wanted->who);
}

bool refresh_is_wanted(const struct refresh_wanted *wanted, const char *name)
{
	return !wanted->n ||
	       bsearch(&name, wanted->names, wanted->n, sizeof(*wanted->names), compare_texts);
}

bool refresh_is_who(const struct refresh_wanted *wanted, uint64_t who)
{
	return !wanted->n ||
	       bsearch(&who, wanted->who, wanted->n, sizeof(*wanted->who), compare_who);
}

// ---- asking -------------------------------------------------------------------------------------

void refresh_answers_free(struct refresh_answers *a)
{
	if (a->answers)
		dns_answers_free(a->answers, a->n);
	free(a->answers);
	free(a->at);
	*a = (struct refresh_answers){0};
}

static void take_answer(struct refresh_name *one, const struct dns_answer *answer)
{
	one->ttl_s = answer->ttl_s;
	one->hosts = answer->hosts;
	one->addresses = answer->n;
	if (!answer->error)
		return;
	one->error = answer->error;
	dns_describe(answer, one->why, sizeof(one->why));
}

void refresh_refuse(struct refresh_name *name)
{
	name->error = -EPERM;
	snprintf(name->why, sizeof(name->why), "all addresses of '%.200s' are protected",
		 name->name);
}

void refresh_keep(struct refresh_name *name, enum refresh_where where, int code,
		  const struct err *why)
{
	name->kept |= where;
	if (name->error)
		return;
	name->error = code;
	snprintf(name->why, sizeof(name->why), "%.255s", why->text);
}

bool refresh_is_other_command(int code)
{
	return code == -EBUSY || code == -EAGAIN || code == -ESTALE;
}

int refresh_ask(struct refresh *r, enum refresh_where where, const struct dns_options *dns,
		struct refresh_answers *ret, struct err *err)
{
	CLEANUP_REFRESH_ANSWERS struct refresh_answers a = {
		.at = mem_zalloc(r->n, sizeof(struct refresh_name *))};
	CLEANUP_FREE const char **names = mem_zalloc(r->n, sizeof(*names));
	int code;

	vec_each (r, one)
		if (where == REFRESH_POLICY ? one->policy : one->entries && !one->place) {
			names[a.n] = one->name;
			a.at[a.n++] = one;
		}
	if (!a.n)
		return 0;
	a.answers = mem_zalloc(a.n, sizeof(*a.answers));
	if ((code = dns_resolve(names, a.n, dns, a.answers, err)))
		return code;
	for (size_t n = 0; n < a.n; n++) {
		take_answer(a.at[n], &a.answers[n]);
		a.good += !a.answers[n].error;
	}
	*ret = a;
	a = (struct refresh_answers){0};
	return 0;
}
