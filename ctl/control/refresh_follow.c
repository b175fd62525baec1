// SPDX-License-Identifier: GPL-2.0-only
// Changes the references of names according to new answers. Pure: uses only memory.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/entries/targets.h"
#include "ctl/control/environment.h"
#include "ctl/control/refresh.h"

struct reference_list {
	struct reference *at;
	size_t n, cap;
};

// The references of one owner, which have the same origin, list and name.
struct group {
	const struct records *records;
	const struct guard *guard;
	const struct refresh_wish *wish;
	const uint32_t *own; // indexes in the records
	size_t n;
	uint32_t owner; // for new references
	uint64_t now_s, until[OVERLAY_KINDS];
	struct reference_list fresh;
};

static const struct reference *own_record(const struct group *g, size_t n)
{
	return &g->records->list.at[g->own[n]];
}

static void add(struct group *g, const struct prefix *p, uint8_t kind, uint64_t until_s,
		uint32_t owner)
{
	vec_push(&g->fresh,
		 ((struct reference){
			 .prefix = *p, .kind = kind, .until_s = until_s, .owner = owner}));
}

// Finds the expiry that the owner requests, which is the latest of its references.
static void find_ends(struct group *g)
{
	for (size_t n = 0; n < g->n; n++) {
		const struct reference *r = own_record(g, n);

		if (r->until_s > g->until[r->kind])
			g->until[r->kind] = r->until_s;
	}
}

// ---- host names ---------------------------------------------------------------------------------

// Was --wide given? Addresses that only --wide adds prove it.
static bool is_wide(const struct group *g)
{
	for (size_t n = 0; n < g->n; n++) {
		const struct addr *a = &own_record(g, n)->prefix.addr;

		if (!guard_answer_problem(g->guard, a, true) &&
		    guard_answer_problem(g->guard, a, false))
			return true;
	}
	return false;
}

// The addresses of the answer that are used for a kind. The caller frees them.
struct usable {
	struct addr *at;
	size_t n;
};

static struct usable find_usable(const struct group *g, uint8_t kind)
{
	const struct dns_answer *answer = g->wish->answer;
	struct usable u = {.at = mem_zalloc(answer->n, sizeof(*u.at))};
	struct guard_sieve sieve = {.guard = g->guard, .wide = is_wide(g)};

	for (size_t a = 0; a < answer->n && u.n < GUARD_ANSWERS_MAX; a++)
		if (overlay_is_allow(kind) || !guard_sift(&sieve, &answer->addrs[a]))
			u.at[u.n++] = answer->addrs[a];
	return u;
}

static int compare_addrs(const void *a, const void *b)
{
	return addr_compare(a, b);
}

static bool has(const struct usable *u, const struct prefix *p)
{
	return p->len == addr_bits(&p->addr) && u->n &&
	       bsearch(&p->addr, u->at, u->n, sizeof(*u->at), compare_addrs);
}

// A family whose query failed has no answer, and its addresses do not change.
static bool is_unknown(const struct dns_answer *answer, const struct reference *r)
{
	return r->prefix.addr.family == 4 ? answer->v4_failed : answer->v6_failed;
}

static uint64_t grace_of(const struct dns_answer *answer)
{
	uint64_t grace = 2 * (uint64_t)(answer->ttl_s < NAME_TTL_S ? answer->ttl_s : NAME_TTL_S);

	return grace > NAME_GRACE_S ? grace : NAME_GRACE_S;
}

// Sorts the addresses that leave last to the front: these are kept.
static int compare_ends(const void *a, const void *b)
{
	const struct reference *x = a, *y = b;

	return x->until_s < y->until_s ? 1 : -(x->until_s > y->until_s);
}

static void add_leaving(struct group *g, uint8_t kind, const struct usable *u)
{
	CLEANUP_VEC VEC(struct reference) leaving = {0};
	uint64_t end = g->now_s + grace_of(g->wish->answer);

	for (size_t n = 0; n < g->n; n++) {
		struct reference r = *own_record(g, n);

		if (r.kind != kind || has(u, &r.prefix))
			continue;
		if (is_unknown(g->wish->answer, &r)) {
			add(g, &r.prefix, kind, r.until_s, r.owner);
			continue;
		}
		if (!overlay_is_allow(kind) && guard_answer_problem(g->guard, &r.prefix.addr, true))
			continue; // the address belongs to this host or its gateway now
		r.until_s = r.until_s < end ? r.until_s : end;
		vec_push(&leaving, r);
	}
	if (leaving.n)
		qsort(leaving.at, leaving.n, sizeof(*leaving.at), compare_ends);
	for (size_t n = 0; n < leaving.n && n < NAME_LEAVING_MAX; n++)
		add(g, &leaving.at[n].prefix, kind, leaving.at[n].until_s, leaving.at[n].owner);
}

static void follow_answer(struct group *g, uint8_t kind, const struct usable *u)
{
	for (size_t a = 0; a < u->n; a++) {
		struct prefix host = prefix_of(&u->at[a], (uint8_t)addr_bits(&u->at[a]));

		add(g, &host, kind, g->until[kind], g->owner);
	}
	add_leaving(g, kind, u);
}

static int follow_host(struct group *g)
{
	struct refresh_name *name = g->wish->name;

	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		struct usable u;

		if (!g->until[kind])
			continue;
		u = find_usable(g, kind);
		name->addresses = u.n;
		if (u.n)
			follow_answer(g, kind, &u);
		free(u.at);
		if (!name->addresses) {
			refresh_refuse(name);
			return -EPERM;
		}
	}
	return 0;
}

// ---- places -------------------------------------------------------------------------------------

// Returns the prefixes' share of all addresses of a family.
static double share_of(const struct prefix *p)
{
	double share = 1;

	for (unsigned bit = 0; bit < p->len; bit++)
		share /= 2;
	return share;
}

struct family_shares {
	double v4, v6;
};

static void add_share(struct family_shares *to, const struct prefix *p)
{
	*(p->addr.family == 4 ? &to->v4 : &to->v6) += share_of(p);
}

static bool shrinks(double before, double after)
{
	return before > 0 && after * 2 <= before;
}

static bool is_covered(const struct group *g, const struct prefix *host)
{
	for (size_t n = 0; n < g->n; n++)
		if (prefix_contains(&own_record(g, n)->prefix, host))
			return true;
	return false;
}

// A database must not cut off addresses that its previous prefixes did not contain.
static int check_guarded(const struct group *g, const struct prefix *p)
{
	struct refresh_name *name = g->wish->name;
	const struct guarded *hit = guard_find(g->guard, p, GUARD_REFUSE);
	struct prefix host;
	addr_text where;

	if (!hit)
		return 0;
	host = prefix_of(&hit->addr, (uint8_t)addr_bits(&hit->addr));
	if (is_covered(g, &host))
		return 0;
	name->error = -EPERM;
	snprintf(name->why, sizeof(name->why), "blocking %s would now cut off %s, %s", name->name,
		 addr_format(&hit->addr, where), hit->what);
	return -EPERM;
}

static int check_prefixes(const struct group *g, uint8_t kind)
{
	struct refresh_name *name = g->wish->name;
	struct family_shares before = {0}, after = {0};
	int code = 0;

	for (size_t n = 0; n < g->n; n++)
		if (own_record(g, n)->kind == kind)
			add_share(&before, &own_record(g, n)->prefix);
	vec_each (&g->wish->ranges->prefixes, p) {
		add_share(&after, p);
		if (!overlay_is_allow(kind) && (code = check_guarded(g, p)))
			return code;
	}
	if (!shrinks(before.v4, after.v4) && !shrinks(before.v6, after.v6))
		return 0;
	name->error = -EPERM;
	snprintf(name->why, sizeof(name->why),
		 "%s would shrink to half its addresses or less with the new database; repeat the "
		 "command that added it to accept that",
		 name->name);
	return -EPERM;
}

static int follow_place(struct group *g)
{
	g->wish->name->addresses = g->wish->ranges->prefixes.n;
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		int code = g->until[kind] ? check_prefixes(g, kind) : 0;

		if (code)
			return code;
		vec_each (&g->wish->ranges->prefixes, p)
			if (g->until[kind])
				add(g, p, kind, g->until[kind], g->owner);
	}
	return 0;
}

// ---- all owners ---------------------------------------------------------------------------------

struct follow {
	struct records *records;
	const struct refresh_wish *wishes;
	size_t n_wishes;
	const struct guard *guard;
	uint64_t now_s;
	uint32_t *first; // by owner: the first one with its origin, list and name
	// Records of the owners whose first is o: sorted[begin[o]] up to begin[o + 1].
	uint32_t *begin, *sorted;
	bool *owned; // by owner: gets new references
	struct reference_list fresh;
};

static void follow_free(struct follow *f)
{
	free(f->first);
	free(f->begin);
	free(f->sorted);
	free(f->owned);
	vec_free(&f->fresh);
}

struct numbered_owner {
	const struct owner *owner;
	uint32_t number;
};

static int compare_owners(const void *a, const void *b)
{
	const struct numbered_owner *x = a, *y = b;
	int order = records_compare_owners(x->owner, y->owner);

	return order ? order : x->number < y->number ? -1 : 1;
}

static void find_first(struct follow *f)
{
	size_t n = f->records->owners.n;
	CLEANUP_FREE struct numbered_owner *all = mem_zalloc(n, sizeof(*all));

	f->first = mem_zalloc(n, sizeof(*f->first));
	for (size_t o = 0; o < n; o++)
		all[o] = (struct numbered_owner){&f->records->owners.at[o], (uint32_t)o};
	if (n)
		qsort(all, n, sizeof(*all), compare_owners);
	for (size_t o = 0; o < n; o++)
		f->first[all[o].number] =
			o && !records_compare_owners(all[o - 1].owner, all[o].owner)
				? f->first[all[o - 1].number]
				: all[o].number;
}

// A sort by counting.
static void sort_records(struct follow *f)
{
	const struct records *r = f->records;
	CLEANUP_FREE uint32_t *next = mem_zalloc(r->owners.n + 1, sizeof(*next));

	f->begin = mem_zalloc(r->owners.n + 1, sizeof(*f->begin));
	f->sorted = mem_zalloc(r->list.n, sizeof(*f->sorted));
	vec_each (&r->list, record)
		f->begin[f->first[record->owner] + 1]++;
	for (size_t o = 0; o < r->owners.n; o++)
		f->begin[o + 1] += f->begin[o];
	memcpy(next, f->begin, (r->owners.n + 1) * sizeof(*next));
	for (size_t i = 0; i < r->list.n; i++)
		f->sorted[next[f->first[r->list.at[i].owner]]++] = (uint32_t)i;
}

static int compare_wishes(const void *a, const void *b)
{
	return strcmp(((const struct refresh_wish *)a)->name->name,
		      ((const struct refresh_wish *)b)->name->name);
}

static const struct refresh_wish *find_wish(const struct follow *f, const char *name)
{
	struct refresh_name named = {.name = (char *)name};
	struct refresh_wish key = {.name = &named};

	return f->n_wishes ? bsearch(&key, f->wishes, f->n_wishes, sizeof(key), compare_wishes)
			   : NULL;
}

static void follow_owner(struct follow *f, uint32_t o)
{
	struct group g = {
		.records = f->records,
		.guard = f->guard,
		.wish = find_wish(f, f->records->owners.at[o].name),
		.own = &f->sorted[f->begin[o]],
		.n = f->begin[o + 1] - f->begin[o],
		.owner = o,
		.now_s = f->now_s,
	};

	if (!g.n || !g.wish)
		return;
	find_ends(&g);
	f->owned[o] = !(g.wish->ranges ? follow_place(&g) : follow_host(&g));
	for (size_t n = 0; f->owned[o] && n < g.fresh.n; n++)
		vec_push(&f->fresh, g.fresh.at[n]);
	vec_free(&g.fresh);
}

static size_t count(struct refresh_name *name, const struct records_change *change)
{
	name->added += change->added;
	name->leaving += change->shortened;
	name->back += change->extended;
	name->released += change->removed;
	return change->added + change->shortened + change->extended + change->removed;
}

static size_t replace(struct follow *f)
{
	size_t n = f->records->owners.n, sum = 0;
	CLEANUP_FREE struct records_change *changes = mem_zalloc(n, sizeof(*changes));

	for (size_t o = 0; o < n; o++)
		f->owned[o] = f->owned[f->first[o]];
	records_replace_owners(f->records, f->owned, f->fresh.at, f->fresh.n, changes);
	for (size_t o = 0; o < n; o++)
		if (f->owned[o])
			sum += count(find_wish(f, f->records->owners.at[o].name)->name,
				     &changes[o]);
	return sum;
}

size_t refresh_follow(struct records *records, const struct refresh_wish *wishes, size_t n,
		      const struct guard *guard, uint64_t now_s)
{
	CLEANUP(follow_free)
	struct follow f = {
		.records = records,
		.wishes = wishes,
		.n_wishes = n,
		.guard = guard,
		.now_s = now_s,
		.owned = mem_zalloc(records->owners.n, sizeof(bool)),
	};

	find_first(&f);
	sort_records(&f);
	for (uint32_t o = 0; o < records->owners.n; o++)
		follow_owner(&f, o);
	return replace(&f);
}
