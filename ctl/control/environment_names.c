// SPDX-License-Identifier: GPL-2.0-only
// The answers for host names of a policy: changes by another answer. Pure: uses only memory.
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/environment.h"

struct environment_name *environment_find_name(const struct environment *w, const char *name)
{
	vec_each (&w->names, one)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

static struct addr *copy_addrs(const struct addr *addrs, size_t n)
{
	struct addr *copy = mem_zalloc(n, sizeof(*copy));

	if (n)
		memcpy(copy, addrs, n * sizeof(*copy));
	return copy;
}

struct environment_name environment_copy_name(const struct environment_name *name)
{
	struct environment_name copy = {
		.name = mem_strdup(name->name),
		.use = name->use,
		.refused_s = name->refused_s,
		.addrs = copy_addrs(name->addrs, name->n),
		.n = name->n,
		.ttl_s = name->ttl_s,
		.answered_s = name->answered_s,
	};

	vec_each (&name->leaving, one)
		vec_push(&copy.leaving, *one);
	vec_each (&name->left_out, addr)
		vec_push(&copy.left_out, *addr);
	return copy;
}

void environment_free_name(struct environment_name *name)
{
	free(name->name);
	free(name->addrs);
	vec_free(&name->leaving);
	vec_free(&name->left_out);
	*name = (struct environment_name){0};
}

bool environment_has_addresses(const struct environment_name *name)
{
	return name->n || name->leaving.n;
}

struct addr *environment_name_addresses(const struct environment_name *name, size_t *ret_n)
{
	struct addr *all = mem_zalloc(name->n + name->leaving.n, sizeof(*all));
	size_t n = name->n;

	if (n)
		memcpy(all, name->addrs, n * sizeof(*all));
	vec_each (&name->leaving, one)
		all[n++] = one->addr;
	*ret_n = n;
	return all;
}

static int compare_addrs(const void *a, const void *b)
{
	return addr_compare(a, b);
}

static bool has(const struct addr *addrs, size_t n, const struct addr *addr)
{
	return n && bsearch(addr, addrs, n, sizeof(*addrs), compare_addrs);
}

bool environment_same_answer(const struct environment_name *a, const struct environment_name *b)
{
	if (a->n != b->n)
		return false;
	for (size_t n = 0; n < a->n; n++)
		if (addr_compare(&a->addrs[n], &b->addrs[n]))
			return false;
	return true;
}

bool environment_same_name(const struct environment_name *a, const struct environment_name *b)
{
	if (a->use != b->use || !a->refused_s != !b->refused_s || !environment_same_answer(a, b))
		return false;
	for (size_t n = 0; n < a->n; n++)
		if (environment_leaves_out(a, &a->addrs[n]) !=
		    environment_leaves_out(b, &a->addrs[n]))
			return false;
	return true;
}

// ---- another answer -----------------------------------------------------------------------------

static bool is_unknown(const struct dns_answer *answer, const struct addr *addr)
{
	return addr->family == 4 ? answer->v4_failed : answer->v6_failed;
}

// The addresses of the answer, and previous addresses of a family without an answer.
static struct addr *merge(const struct environment_name *name, const struct dns_answer *answer,
			  size_t *ret_n)
{
	struct addr *merged = mem_zalloc(answer->n + name->n, sizeof(*merged));
	size_t n = answer->n;

	if (n)
		memcpy(merged, answer->addrs, n * sizeof(*merged));
	for (size_t a = 0; a < name->n; a++)
		if (is_unknown(answer, &name->addrs[a]))
			merged[n++] = name->addrs[a];
	if (n)
		qsort(merged, n, sizeof(*merged), compare_addrs);
	*ret_n = n;
	return merged;
}

static bool leaves(const struct environment_name *name, const struct addr *addr)
{
	vec_each (&name->leaving, one)
		if (!addr_compare(&one->addr, addr))
			return true;
	return false;
}

static uint64_t grace_of(const struct environment_name *name, const struct dns_answer *answer)
{
	uint64_t ttl = name->ttl_s > answer->ttl_s ? name->ttl_s : answer->ttl_s;
	uint64_t grace = 2 * (ttl < NAME_TTL_S ? ttl : NAME_TTL_S);

	return grace > NAME_GRACE_S ? grace : NAME_GRACE_S;
}

// An address that has left before returns, is released, or stays: at most its grace time from now,
// if the clock was set back.
static void review_leaving(struct environment_name *name, const struct addr *addrs, size_t n,
			   uint64_t now_s, uint64_t grace_s, struct environment_followed *ret)
{
	size_t kept = 0;

	for (size_t l = 0; l < name->leaving.n; l++) {
		struct environment_leaving one = name->leaving.at[l];

		if (one.until_s > now_s + grace_s)
			one.until_s = now_s + grace_s;
		if (has(addrs, n, &one.addr))
			ret->back++;
		else if (one.until_s <= now_s)
			ret->released++;
		else
			name->leaving.at[kept++] = one;
	}
	name->leaving.n = kept;
}

static int compare_ends(const void *a, const void *b)
{
	const struct environment_leaving *x = a, *y = b;

	if (x->until_s != y->until_s)
		return x->until_s < y->until_s ? 1 : -1;
	return addr_compare(&x->addr, &y->addr);
}

// Those that leave last are kept: a zone with another answer each time must not fill the tables.
static void limit_leaving(struct environment_name *name, struct environment_followed *ret)
{
	if (name->leaving.n <= NAME_LEAVING_MAX)
		return;
	qsort(name->leaving.at, name->leaving.n, sizeof(*name->leaving.at), compare_ends);
	ret->released += name->leaving.n - NAME_LEAVING_MAX;
	name->leaving.n = NAME_LEAVING_MAX;
}

void environment_follow(struct environment_name *name, const struct dns_answer *answer,
			uint64_t now_s, struct environment_followed *ret)
{
	uint64_t grace_s = grace_of(name, answer);
	size_t n;
	struct addr *addrs = merge(name, answer, &n);

	*ret = (struct environment_followed){0};
	for (size_t a = 0; a < n; a++)
		ret->added += !has(name->addrs, name->n, &addrs[a]) && !leaves(name, &addrs[a]);
	review_leaving(name, addrs, n, now_s, grace_s, ret);
	for (size_t a = 0; a < name->n; a++) {
		if (has(addrs, n, &name->addrs[a]))
			continue;
		ret->leaving++;
		vec_push(&name->leaving,
			 ((struct environment_leaving){name->addrs[a], now_s + grace_s}));
	}
	limit_leaving(name, ret);
	free(name->addrs);
	name->addrs = addrs;
	name->n = n;
	name->ttl_s = answer->ttl_s;
	name->answered_s = now_s;
}

uint64_t environment_name_ends(const struct environment_name *name, uint64_t now_s)
{
	uint64_t in = UINT64_MAX;

	vec_each (&name->leaving, one) {
		uint64_t left = one->until_s > now_s ? one->until_s - now_s : 0;

		in = left < in ? left : in;
	}
	return in;
}

void environment_release(struct environment *w, uint64_t now_s)
{
	vec_each (&w->names, name) {
		size_t kept = 0;

		for (size_t l = 0; l < name->leaving.n; l++)
			if (name->leaving.at[l].until_s > now_s)
				name->leaving.at[kept++] = name->leaving.at[l];
		name->leaving.n = kept;
	}
}
