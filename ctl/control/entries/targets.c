// SPDX-License-Identifier: GPL-2.0-only
// Resolves names to addresses and makes references to the addresses.
#include "ctl/control/entries/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/control/entries/store_parts.h"

unsigned kinds_of(bool allow, bool from, bool to)
{
	return (from ? 1u << (allow ? OVERLAY_ALLOW_FROM : OVERLAY_BLOCK_FROM) : 0) |
	       (to ? 1u << (allow ? OVERLAY_ALLOW_TO : OVERLAY_BLOCK_TO) : 0);
}

unsigned kinds_out(bool allow)
{
	unsigned kinds = 0;

	for (uint8_t kind = OVERLAY_PACKET_KINDS; kind < OVERLAY_KINDS; kind++)
		if (overlay_is_allow(kind) == allow)
			kinds |= 1u << kind;
	return kinds;
}

unsigned kinds_all(bool allow)
{
	return kinds_of(allow, true, true) | kinds_out(allow);
}

char *target_name(const char *name)
{
	char *copy = mem_strdup(name);
	size_t len = strlen(copy);

	if (geo_is_name(name))
		return copy;
	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	if (len > 1 && copy[len - 1] == '.')
		copy[len - 1] = '\0';
	return copy;
}

void targets_free(struct targets *t)
{
	if (t->answers)
		dns_answers_free(t->answers, t->names_n);
	free(t->answers);
	for (size_t n = 0; n < t->names_n; n++)
		free((char *)t->names[n]);
	free(t->names);
	targets_free_ranges(t);
	items_free(&t->items);
	*t = (struct targets){0};
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorts n names and keeps each once; the others are freed if they are the caller's own. Returns how
// many are kept.
static size_t sort_names(const char **names, size_t n, bool own)
{
	size_t kept = 0;

	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n; i++) {
		if (!kept || strcmp(names[kept - 1], names[i]))
			names[kept++] = names[i];
		else if (own)
			free((char *)names[i]);
	}
	return kept;
}

// Collects each name once, sorted, in the form of the records.
static void collect_names(struct targets *t)
{
	size_t n = 0;

	t->names = mem_zalloc(t->items.names, sizeof(*t->names));
	vec_each (&t->items.items, item)
		if (item->name && !geo_is_name(item->name))
			t->names[n++] = target_name(item->name);
	t->names_n = sort_names(t->names, n, true);
}

int targets_check_answers(const struct targets *t, struct err *err)
{
	size_t failed = 0;
	const struct dns_answer *first = NULL;
	char why[512];
	int code = targets_check_ranges(t, err);

	if (code)
		return code;
	for (size_t n = 0; n < t->names_n; n++) {
		failed += t->answers[n].error != 0;
		if (t->answers[n].error && !first)
			first = &t->answers[n];
	}
	if (!first)
		return 0;
	dns_describe(first, why, sizeof(why));
	if (first->error == -ETIMEDOUT || first->error == -ECONNREFUSED || first->error == -EIO)
		err_stated(err, -first->error, "%s", why);
	else
		err_input(err, "%s", why);
	if (failed > 1)
		err_hint(err, "%zu more of %zu names failed", failed - 1, t->names_n);
	return first->error;
}

// The answers for the names of several targets.
struct answers {
	VEC(const char *) names;
	struct dns_answer *at;
};

static void answers_free(struct answers *a)
{
	if (a->at)
		dns_answers_free(a->at, a->names.n);
	free(a->at);
	vec_free(&a->names);
}

static const struct dns_answer *find_answer(const char *const *names, size_t n,
					    const struct dns_answer *answers, const char *name)
{
	const char *const *found =
		n ? bsearch(&name, names, n, sizeof(*names), compare_names) : NULL;

	return found ? &answers[found - names] : NULL;
}

static void copy_answers(struct targets *t, const struct answers *a)
{
	t->asked = true;
	t->answers = mem_zalloc(t->names_n, sizeof(*t->answers));
	for (size_t i = 0; i < t->names_n; i++) {
		const struct dns_answer *from =
			find_answer(a->names.at, a->names.n, a->at, t->names[i]);

		t->answers[i] = *from;
		t->answers[i].name = t->names[i];
		t->answers[i].addrs = mem_zalloc(from->n, sizeof(*from->addrs));
		if (from->n)
			memcpy(t->answers[i].addrs, from->addrs, from->n * sizeof(*from->addrs));
	}
}

int targets_resolve(struct targets *const *list, size_t n, const struct dns_options *options,
		    struct err *err)
{
	CLEANUP(answers_free) struct answers all = {0};
	int code = targets_find_ranges(list, n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++) {
		collect_names(list[i]);
		for (size_t k = 0; k < list[i]->names_n; k++)
			vec_push(&all.names, list[i]->names[k]);
	}
	for (size_t i = 0; !all.names.n && i < n; i++)
		list[i]->asked = true;
	if (!all.names.n)
		return 0;
	all.names.n = sort_names(all.names.at, all.names.n, false);
	all.at = mem_zalloc(all.names.n, sizeof(*all.at));
	if ((code = dns_resolve(all.names.at, all.names.n, options, all.at, err)))
		return code;
	for (size_t i = 0; i < n; i++)
		copy_answers(list[i], &all);
	return 0;
}

// Does --wide leave anything of an answer of which nothing is left?
static bool wide_helps(const struct guard *g, const struct dns_answer *answer)
{
	struct guard_sieve sieve = {.guard = g, .wide = true};

	for (size_t a = 0; a < answer->n; a++)
		if (!guard_sift(&sieve, &answer->addrs[a]))
			return true;
	return false;
}

int targets_skip(struct targets *t, const struct guard *g, bool wide,
		 void (*skipped)(void *ctx, const char *name, const struct addr *a,
				 const char *why),
		 void *ctx, struct err *err)
{
	for (size_t n = 0; n < t->names_n; n++) {
		struct dns_answer *answer = &t->answers[n];
		struct guard_sieve sieve = {.guard = g, .wide = wide};
		size_t kept = 0;

		for (size_t a = 0; a < answer->n; a++) {
			const char *why = guard_sift(&sieve, &answer->addrs[a]);

			if (why)
				skipped(ctx, t->names[n], &answer->addrs[a], why);
			else
				answer->addrs[kept++] = answer->addrs[a];
		}
		if (!kept) {
			err_refused(err,
				    "all addresses of '%s' are protected from blocking by name",
				    t->names[n]);
			if (!wide && wide_helps(g, answer))
				err_hint(
					err,
					"--wide allows private, link-local and multicast addresses");
			return -EPERM;
		}
		answer->n = kept;
	}
	return 0;
}

const struct dns_answer *targets_answer(const struct targets *t, const char *name)
{
	CLEANUP_FREE char *key = target_name(name);

	return find_answer(t->names, t->names_n, t->answers, key);
}

static unsigned item_kinds(const struct item *item, const struct intent *intent)
{
	if (item->both)
		return kinds_of(intent->allow, true, true);
	return item->to ? kinds_of(intent->allow, false, true) : intent->kinds;
}

static uint64_t item_until(const struct item *item, const struct intent *intent)
{
	return item->for_ms ? intent->now_s + (item->for_ms + 999) / 1000 : intent->until_s;
}

static struct owner make_owner(const struct intent *intent, const char *name, const char *note)
{
	return (struct owner){
		.origin = (char *)intent->origin,
		.list = (char *)intent->list,
		.name = (char *)name,
		.note = (char *)(note ? note : intent->note),
		.by = (char *)intent->by,
		.since_s = intent->now_s,
		.fleeting = intent->fleeting,
		.group = name[0] ? 0 : intent->group,
	};
}

struct references {
	struct reference *at;
	size_t n, cap;
};

static void add_references(struct references *references, const struct prefix *p, unsigned kinds,
			   uint64_t until, uint32_t owner)
{
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
		if (kinds & 1u << kind)
			*vec_add(references) = (struct reference){
				.prefix = *p, .kind = kind, .until_s = until, .owner = owner};
}

static void add_answer(struct references *references, const struct dns_answer *answer,
		       unsigned kinds, uint64_t until, uint32_t owner)
{
	for (size_t a = 0; answer && a < answer->n; a++) {
		struct prefix host =
			prefix_of(&answer->addrs[a], (uint8_t)addr_bits(&answer->addrs[a]));

		add_references(references, &host, kinds, until, owner);
	}
}

// Adds the addresses of a host name, or the prefixes of a country.
static void add_named(const struct targets *t, struct references *references, const char *name,
		      unsigned kinds, uint64_t until, uint32_t owner)
{
	const struct geo_ranges *ranges = targets_ranges(t, name);

	if (!ranges)
		return add_answer(references, targets_answer(t, name), kinds, until, owner);
	vec_each (&ranges->prefixes, prefix)
		add_references(references, prefix, kinds, until, owner);
}

static void tally(struct records_change *sum, const struct records_change *one)
{
	sum->added += one->added;
	sum->extended += one->extended;
	sum->unchanged += one->unchanged;
	sum->removed += one->removed;
	sum->replaced += one->replaced;
	sum->beside += one->beside;
}

// ---- repeated blocks of outgoing connections ----------------------------------------------------

static bool is_everywhere(uint8_t kind)
{
	return kind >= OVERLAY_BLOCK_OUT_ALL;
}

// Does the new reference replace the old one of its owner, whose error or namespaces differ? A
// block of all namespaces, a saved one, and one that lasts longer than a wider one remain.
static bool supersedes(const struct records *r, const struct reference *fresh,
		       const struct reference *old)
{
	if (r->owners.at[fresh->owner].fleeting && !r->owners.at[old->owner].fleeting)
		return false;
	if (is_everywhere(fresh->kind) == is_everywhere(old->kind))
		return true;
	return is_everywhere(fresh->kind) && fresh->until_s >= old->until_s;
}

// As for a repeated entry, the later expiry applies, and a note remains.
static void inherit(const struct records *r, struct reference *fresh, const struct reference *old)
{
	const struct owner *now = &r->owners.at[fresh->owner], *was = &r->owners.at[old->owner];

	if (old->until_s > fresh->until_s)
		fresh->until_s = old->until_s;
	if (!now->note[0] && now->fleeting == was->fleeting)
		fresh->owner = old->owner;
}

// The references of the same owner to the same prefix, of another kind.
static void supersede(const struct records *r, struct reference *fresh, uint8_t kind, bool *marked,
		      struct records_change *ret)
{
	size_t n;
	const struct reference *old = records_find(r, &fresh->prefix, kind, &n);

	for (size_t k = 0; old && k < n; k++) {
		if (marked[old + k - r->list.at] ||
		    records_compare_owners(&r->owners.at[old[k].owner],
					   &r->owners.at[fresh->owner]))
			continue;
		if (!supersedes(r, fresh, &old[k])) {
			ret->beside++;
			continue;
		}
		inherit(r, fresh, &old[k]);
		marked[old + k - r->list.at] = true;
		ret->replaced++;
	}
}

// An address that is blocked again with another error, or for more namespaces, changes its kind.
static void drop_other_out(const struct intent *intent, struct references *references,
			   struct records *r, struct records_change *ret)
{
	unsigned out = kinds_out(intent->allow), others = out & ~intent->kinds;
	CLEANUP_FREE bool *marked = NULL;

	if (!(intent->kinds & out) || !others)
		return;
	marked = mem_zalloc(r->list.n + 1, sizeof(*marked));
	vec_each (references, fresh)
		for (uint8_t kind = 0; overlay_is_out(fresh->kind) && kind < OVERLAY_KINDS; kind++)
			if (others >> kind & 1)
				supersede(r, fresh, kind, marked, ret);
	records_drop(r, marked);
}

// The kinds that an answer for a name replaces: also those with another error or narrower, unless
// an address of the name has one that must remain.
static unsigned replaced_kinds(const struct records *r, const struct owner *who, unsigned kinds,
			       const struct reference *fresh, unsigned out,
			       struct records_change *ret)
{
	unsigned remain = 0;

	if (!(kinds & out))
		return kinds;
	vec_each (&r->list, old) {
		if (!((out & ~kinds) >> old->kind & 1) ||
		    records_compare_owners(&r->owners.at[old->owner], who) ||
		    supersedes(r, fresh, old))
			continue;
		remain |= 1u << old->kind;
		ret->beside++;
	}
	return kinds | (out & ~remain);
}

// Replaces the addresses of a name outside of a list by the addresses of the answer.
static void record_name(const struct targets *t, const struct item *item,
			const struct intent *intent, struct store *b, struct records_change *ret)
{
	CLEANUP_FREE char *name = target_name(item->name);
	struct owner owner = make_owner(intent, name, item->note);
	CLEANUP_VEC struct references references = {0};
	struct records_change change;
	unsigned kinds = item_kinds(item, intent), out = kinds_out(intent->allow);
	struct reference call = {.until_s = item_until(item, intent),
				 .owner = records_owner(&b->records, &owner)};

	add_named(t, &references, item->name, kinds, call.until_s, call.owner);
	while (call.kind + 1 < OVERLAY_KINDS && !((kinds & out) >> call.kind & 1))
		call.kind++;
	kinds = replaced_kinds(&b->records, &owner, kinds, &call, out, ret);
	records_replace(&b->records, &owner, kinds, references.at, references.n, &change);
	tally(ret, &change);
}

// Owners of items without a note: one for hosts, which may become a group, and one for others.
struct common {
	uint32_t host, other; // UINT32_MAX: not made yet
};

static uint32_t owner_of(struct store *b, const struct intent *intent, const struct item *item,
			 struct common *common)
{
	bool host = !item->name && prefix_is_host(&item->prefix);
	uint32_t *one = host ? &common->host : &common->other;
	struct owner owner = make_owner(intent, "", item->note);

	owner.group = host ? owner.group : 0;
	if (item->note)
		return records_owner(&b->records, &owner);
	if (*one == UINT32_MAX)
		*one = records_owner(&b->records, &owner);
	return *one;
}

// Loads the references of the list, and of each name.
static int load_owners(const struct targets *t, const struct intent *intent, struct store *b,
		       struct err *err)
{
	CLEANUP_VEC VEC(uint64_t) who = {0};

	if (intent->list[0])
		vec_push(&who, journal_who(intent->list, ""));
	vec_each (&t->items.items, item) {
		CLEANUP_FREE char *name = item->name ? target_name(item->name) : NULL;

		if (name)
			vec_push(&who, journal_who(intent->list, name));
	}
	return store_load_who(b, who.at, who.n, err);
}

int targets_load(const struct targets *t, const struct intent *intent, struct store *b,
		 struct err *err)
{
	CLEANUP_VEC VEC(struct prefix) prefixes = {0};
	int code = load_owners(t, intent, b, err);

	if (code)
		return code;
	vec_each (&t->items.items, item)
		if (!item->name)
			vec_push(&prefixes, item->prefix);
	for (size_t n = 0; t->answers && n < t->names_n; n++)
		for (size_t a = 0; a < t->answers[n].n; a++)
			vec_push(&prefixes, prefix_of(&t->answers[n].addrs[a],
						      (uint8_t)addr_bits(&t->answers[n].addrs[a])));
	for (size_t n = 0; t->ranges && n < t->geos_n; n++)
		vec_each (&t->ranges[n].prefixes, prefix)
			vec_push(&prefixes, *prefix);
	return store_load(b, prefixes.at, prefixes.n, err);
}

void targets_record(const struct targets *t, const struct intent *intent, struct store *b,
		    struct records_change *ret)
{
	CLEANUP_VEC struct references references = {0};
	struct records_change change = {0};
	struct owner who = make_owner(intent, "", NULL);
	bool list = intent->list[0];
	struct common common = {UINT32_MAX, UINT32_MAX};

	*ret = (struct records_change){0};
	vec_each (&t->items.items, item) {
		unsigned kinds = item_kinds(item, intent);
		uint64_t until = item_until(item, intent);

		if (item->name && !list)
			record_name(t, item, intent, b, ret);
		else if (item->name)
			add_named(t, &references, item->name, kinds, until,
				  owner_of(b, intent, item, &common));
		else
			add_references(&references, &item->prefix, kinds, until,
				       owner_of(b, intent, item, &common));
	}
	if (!list)
		drop_other_out(intent, &references, &b->records, ret);
	if (list)
		// A list is replaced as a whole, whatever directions its lines have.
		records_replace(&b->records, &who, kinds_all(intent->allow), references.at,
				references.n, &change);
	else if (references.n)
		records_add(&b->records, references.at, references.n, &change);
	tally(ret, &change);
}

void targets_unrecord(const struct targets *t, const struct intent *intent, struct store *b,
		      size_t *ret_removed)
{
	struct owner who = make_owner(intent, "", NULL);
	CLEANUP_VEC VEC(struct prefix) prefixes = {0};
	size_t removed;

	*ret_removed = 0;
	vec_each (&t->items.items, item) {
		if (item->name) {
			CLEANUP_FREE char *name = target_name(item->name);
			struct owner named = make_owner(intent, name, NULL);

			records_remove(&b->records, &named, intent->kinds, NULL, 0, &removed);
			*ret_removed += removed;
		} else {
			vec_push(&prefixes, item->prefix);
		}
	}
	if (prefixes.n) {
		records_remove(&b->records, &who, intent->kinds, prefixes.at, prefixes.n, &removed);
		*ret_removed += removed;
	}
}

// ---- countries and autonomous systems -----------------------------------------------------------

struct geos {
	struct geo *at;
	size_t n, cap;
};

static void add_geo(struct geos *to, const struct geo *geo)
{
	vec_each (to, other)
		if (geo_equal(other, geo))
			return;
	*vec_add(to) = *geo;
}

static void collect(const struct targets *t, struct geos *ret)
{
	struct geo geo;

	vec_each (&t->items.items, item)
		if (item->name && geo_parse_name(item->name, &geo))
			add_geo(ret, &geo);
}

static void copy_ranges(struct targets *t, const struct geos *all, const struct geo_ranges *found)
{
	struct geos own = {0};

	collect(t, &own);
	t->geos = own.at;
	t->geos_n = own.n;
	t->ranges = mem_zalloc(own.n, sizeof(*t->ranges));
	for (size_t i = 0; i < own.n; i++)
		for (size_t k = 0; k < all->n; k++) {
			if (!geo_equal(&own.at[i], &all->at[k]))
				continue;
			t->ranges[i].source = mem_strdup(found[k].source);
			vec_each (&found[k].prefixes, prefix)
				vec_push(&t->ranges[i].prefixes, *prefix);
		}
}

int targets_find_ranges(struct targets *const *list, size_t n, struct err *err)
{
	CLEANUP_VEC struct geos all = {0};
	CLEANUP_FREE struct geo_ranges *found = NULL;
	int code;

	for (size_t i = 0; i < n; i++)
		collect(list[i], &all);
	if (!all.n)
		return 0;
	found = mem_zalloc(all.n, sizeof(*found));
	if ((code = geo_find(all.at, all.n, found, err)))
		return code;
	for (size_t i = 0; i < n; i++)
		copy_ranges(list[i], &all, found);
	geo_ranges_free(found, all.n);
	return 0;
}

int targets_check_ranges(const struct targets *t, struct err *err)
{
	geo_text name;

	for (size_t i = 0; i < t->geos_n; i++)
		if (!t->ranges[i].prefixes.n)
			return err_input(err, "no prefix of %s in '%s'",
					 geo_format(&t->geos[i], name), t->ranges[i].source);
	return 0;
}

const struct geo_ranges *targets_ranges(const struct targets *t, const char *name)
{
	struct geo geo;

	if (!geo_is_name(name) || !geo_parse_name(name, &geo))
		return NULL;
	for (size_t i = 0; i < t->geos_n; i++)
		if (geo_equal(&t->geos[i], &geo))
			return &t->ranges[i];
	return NULL;
}

void targets_free_ranges(struct targets *t)
{
	if (t->ranges)
		geo_ranges_free(t->ranges, t->geos_n);
	free(t->ranges);
	free(t->geos);
}
