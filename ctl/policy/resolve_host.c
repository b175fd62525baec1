// SPDX-License-Identifier: GPL-2.0-only
// Resolves host names: collected over the whole policy, asked for in one call, filtered. Also reads
// the addresses of this host.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/host.h"
#include "ctl/policy/resolver.h"

#define LEFT_OUT_SHOWN 5 // addresses of a name

// ---- collecting ---------------------------------------------------------------------------------

// `name` is in normal form.
static uint32_t add_host(struct resolver *r, const char *name, const struct host *like)
{
	uint32_t number = index_find(&r->host_index, name);
	struct host *host;

	if (number != INDEX_NONE)
		return number;
	if (r->hosts.n == POLICY_NAMES)
		diag_error(r->diag, like->at, NULL, "more than %d host names in one policy",
			   POLICY_NAMES);
	number = (uint32_t)r->hosts.n;
	host = vec_add(&r->hosts);
	*host = *like;
	host->name = arena_strdup(&r->scratch, name);
	index_add(&r->host_index, host->name, number);
	return number;
}

uint32_t resolve_add_host(struct resolver *r, const struct ast_item *item)
{
	struct host like = {.at = item->at, .list = INDEX_NONE, .place = resolve_place(r, item)};
	char name[256];

	host_normal(item->word, name); // at most 254 bytes, see host_problem
	return add_host(r, name, &like);
}

void resolve_add_hosts(struct resolver *r, const struct ast_item *item, uint32_t list)
{
	const struct list_file *file = &r->lists.at[list];
	struct host like = {.at = item->at, .list = list, .tolerated = item->lax};

	vec_each (&file->list.names, name) {
		like.place = (struct place){.file = file->file, .line = name->line};
		add_host(r, name->name, &like);
	}
}

// ---- answers ------------------------------------------------------------------------------------

// "'list.txt' line 7: " for names of list files.
static const char *where(struct resolver *r, const struct host *h)
{
	if (h->list == INDEX_NONE)
		return "";
	return arena_printf(&r->scratch, "'%s' line %u: ", r->lists.at[h->list].item->word,
			    h->place.line);
}

static int compare_addrs(const void *a, const void *b)
{
	return addr_compare(a, b);
}

// Why no packet has an address of an answer, or NULL.
static const char *refusal(const struct addr *a)
{
	if (addr_is_unspecified(a))
		return "is the unspecified address";
	return addr_is_loopback(a) ? "is loopback" : NULL;
}

// Sorts, and leaves out duplicates and addresses that no packet has.
static void keep_addresses(struct resolver *r, struct host *h, struct policy_answer *answer)
{
	size_t n = 0;

	h->addrs = TAKE_PTR(answer->addrs);
	if (answer->n)
		qsort(h->addrs, answer->n, sizeof(*h->addrs), compare_addrs);
	for (size_t i = 0; i < answer->n; i++) {
		const struct addr a = h->addrs[i];
		const char *why;
		addr_text text;

		if (n && !addr_compare(&h->addrs[n - 1], &a))
			continue;
		why = refusal(&a);
		if (why)
			diag_warning(r->diag, h->at, NULL,
				     "%s'%s' has the address %s, which %s: not loaded", where(r, h),
				     h->name, addr_format(&a, text), why);
		else
			h->addrs[n++] = a;
	}
	h->n = n;
}

static void report_left_out(struct resolver *r, const struct host *h, const struct addr *a,
			    const char *why)
{
	addr_text text;

	diag_warning(r->diag, h->dropped_at,
		     h->list == INDEX_NONE ? "'wide' after the name drops it as well" : NULL,
		     "%s'%s' has the address %s, %s: not dropped", where(r, h), h->name,
		     addr_format(a, text), why);
}

// The first few are reported: a name may have thousands of addresses.
static void keep_open(struct resolver *r, struct host *h, const struct policy_answer *answer)
{
	struct policy_left_out *left = answer->left_out;
	size_t n = answer->n_left_out, reported = 0;

	h->open = mem_zalloc(h->n, sizeof(*h->open));
	if (n)
		qsort(left, n, sizeof(*left), compare_addrs); // by their first member
	for (size_t i = 0; i < h->n; i++) {
		const struct policy_left_out *found =
			n ? bsearch(&h->addrs[i], left, n, sizeof(*left), compare_addrs) : NULL;

		if (!found)
			h->open[h->n_open++] = h->addrs[i];
		else if (h->use == POLICY_DROPPED && found->why[0] && reported++ < LEFT_OUT_SHOWN)
			report_left_out(r, h, &h->addrs[i], found->why);
	}
	if (reported > LEFT_OUT_SHOWN)
		diag_warning(r->diag, h->dropped_at, NULL, "%s'%s': %zu more %s not dropped",
			     where(r, h), h->name, reported - LEFT_OUT_SHOWN,
			     num_plural(reported - LEFT_OUT_SHOWN, "address is", "addresses are"));
}

static void report_failure(struct resolver *r, struct host *h, const struct policy_answer *answer)
{
	enum diag_level level = r->env->names_may_fail || h->tolerated ? DIAG_WARNING : DIAG_ERROR;

	if (answer->why[0])
		diag_add(r->diag, level, h->at,
			 answer->error == -EPERM ? "'wide' after the name drops all its addresses"
						 : NULL,
			 "%s%s", where(r, h), answer->why);
	else
		diag_add(r->diag, level, h->at, NULL, "%s'%s' does not resolve", where(r, h),
			 h->name);
}

static void warn_families(struct resolver *r, const struct host *h,
			  const struct policy_answer *answer)
{
	if (answer->stale)
		diag_warning(r->diag, h->at, NULL, "%s%s: its last good answer is used",
			     where(r, h), answer->why[0] ? answer->why : h->name);
	if (answer->v4_failed || answer->v6_failed)
		diag_warning(r->diag, h->at, NULL, "%s'%s': the query for its %s records failed",
			     where(r, h), h->name, answer->v4_failed ? "A" : "AAAA");
	if (h->list != INDEX_NONE)
		return; // counted, see report_missing
	if (answer->v6_missing && !answer->v6_failed)
		diag_warning(r->diag, h->at, NULL, "'%s' has no AAAA record: only IPv4 is matched",
			     h->name);
	if (answer->v4_missing && !answer->v4_failed)
		diag_warning(r->diag, h->at, NULL, "'%s' has no A record: only IPv6 is matched",
			     h->name);
}

static void take_answer(struct resolver *r, struct host *h, struct policy_answer *answer)
{
	if (answer->error < 0) {
		free(TAKE_PTR(answer->addrs));
		free(TAKE_PTR(answer->left_out));
		report_failure(r, h, answer);
		h->failed = true;
		return;
	}
	h->ttl_s = answer->ttl_s;
	h->stale = answer->stale;
	keep_addresses(r, h, answer);
	keep_open(r, h, answer);
	free(TAKE_PTR(answer->left_out));
	warn_families(r, h, answer);
}

// One warning for a list file, not one for each name.
static void report_missing(struct resolver *r, const struct policy_answer *answers)
{
	CLEANUP_FREE uint32_t *missing = mem_zalloc(r->lists.n, sizeof(*missing));

	for (size_t i = 0; i < r->hosts.n; i++)
		if (r->hosts.at[i].list != INDEX_NONE && !answers[i].error)
			missing[r->hosts.at[i].list] +=
				answers[i].v6_missing && !answers[i].v6_failed;
	for (size_t i = 0; i < r->lists.n; i++)
		if (missing[i])
			diag_warning(
				r->diag, r->lists.at[i].item->at, NULL,
				"'%s': %u of its names %s no AAAA record: only IPv4 is matched",
				r->lists.at[i].item->word, missing[i],
				num_plural(missing[i], "has", "have"));
}

static void ask(struct resolver *r)
{
	size_t n = r->hosts.n;
	CLEANUP_FREE struct policy_question *questions = mem_zalloc(n, sizeof(*questions));
	CLEANUP_FREE struct policy_answer *answers = mem_zalloc(n, sizeof(*answers));
	struct err err = {0};

	for (size_t i = 0; i < n; i++)
		questions[i] = (struct policy_question){r->hosts.at[i].name, r->hosts.at[i].use};
	if (!r->env->resolve) {
		diag_error(r->diag, r->hosts.at[0].at, NULL, "names cannot be resolved here");
		return;
	}
	if (r->env->resolve(r->env->ctx, questions, n, answers, &err) < 0) {
		diag_error(r->diag, r->hosts.at[0].at, err.hint[0] ? err.hint : NULL, "%s",
			   err.text);
		return;
	}
	for (size_t i = 0; i < n; i++)
		take_answer(r, &r->hosts.at[i], &answers[i]);
	report_missing(r, answers);
}

void resolve_hosts(struct resolver *r)
{
	if (r->hosts.n && r->hosts.n <= POLICY_NAMES)
		ask(r);
}

const struct host *resolve_host(const struct resolver *r, const char *name)
{
	uint32_t number = index_find(&r->host_index, name);

	return number == INDEX_NONE ? NULL : &r->hosts.at[number];
}

// ---- own addresses ------------------------------------------------------------------------------

const struct addr *resolve_own(struct resolver *r, struct diag_at at, size_t *ret_n)
{
	struct err err = {0};

	if (!r->own_read && r->env->addresses &&
	    r->env->addresses(r->env->ctx, &r->own, &r->n_own, &err) < 0)
		diag_error(r->diag, at, err.hint[0] ? err.hint : NULL, "%s", err.text);
	r->own_read = true;
	*ret_n = r->n_own;
	return r->own;
}
