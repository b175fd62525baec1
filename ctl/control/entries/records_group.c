// SPDX-License-Identifier: GPL-2.0-only
// Counts the members in a net, and adds, changes or removes the record of their group.
#include "ctl/control/entries/records_group.h"

#include <string.h>

#define NET4 24
#define NET6 64

bool records_net(const struct prefix *p, struct prefix *ret)
{
	uint8_t len = p->addr.family == 4 ? NET4 : NET6;

	if (p->len < len)
		return false;
	*ret = prefix_of(&p->addr, len);
	return true;
}

static bool is_plain(const struct owner *o)
{
	return !o->list[0] && !o->name[0];
}

bool records_is_member(const struct records *r, const struct reference *record)
{
	return r->owners.at[record->owner].group && prefix_is_host(&record->prefix);
}

bool records_is_group(const struct records *r, const struct reference *record)
{
	return r->owners.at[record->owner].group && !prefix_is_host(&record->prefix);
}

// Returns the first record of the list inside the net, or the place where it would be.
static size_t first_in(const struct record_list *list, const struct prefix *net)
{
	size_t from = 0, to = list->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (prefix_compare(&list->at[middle].prefix, net) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_in(const struct record_list *list, size_t i, const struct prefix *net)
{
	return i < list->n && prefix_contains(net, &list->at[i].prefix);
}

static bool same_origin(const struct records *r, const struct reference *a,
			const struct reference *b)
{
	return !strcmp(r->owners.at[a->owner].origin, r->owners.at[b->owner].origin);
}

const struct reference *records_group_of(const struct records *r, const struct record_list *list,
					 const struct reference *member)
{
	struct prefix net;

	if (!records_is_member(r, member) || !records_net(&member->prefix, &net))
		return NULL;
	for (size_t i = first_in(list, &net);
	     is_in(list, i, &net) && list->at[i].prefix.len == net.len; i++)
		if (list->at[i].kind == member->kind && records_is_group(r, &list->at[i]) &&
		    same_origin(r, &list->at[i], member))
			return &list->at[i];
	return NULL;
}

static bool has_member(const struct records *r, const struct reference *group,
		       const struct reference *record)
{
	return record->kind == group->kind && records_is_member(r, record) &&
	       same_origin(r, record, group);
}

size_t records_group_size(const struct records *r, const struct record_list *list,
			  const struct reference *group)
{
	size_t n = 0;

	for (size_t i = first_in(list, &group->prefix); is_in(list, i, &group->prefix); i++)
		n += has_member(r, group, &list->at[i]);
	return n;
}

void records_mark_members(const struct records *r, bool *marked)
{
	for (size_t g = 0; g < r->list.n; g++) {
		const struct reference *group = &r->list.at[g];

		if (!marked[g] || !records_is_group(r, group))
			continue;
		for (size_t i = g; is_in(&r->list, i, &group->prefix); i++)
			marked[i] = marked[i] || has_member(r, group, &r->list.at[i]);
	}
}

// The references of an origin in a net, of one kind.
struct claim {
	uint8_t kind;
	const char *origin;
	size_t members;
	uint32_t group;   // the largest of its members
	uint64_t until_s; // the latest of its members
	uint32_t last;    // the owner of the newest one
	uint32_t record;  // the net's index in the list; UINT32_MAX: none
	bool of_user;     // the record is a reference of the user
};

struct claims {
	struct claim *at;
	size_t n, cap;
};

static struct claim *claim_of(struct claims *claims, const struct owner *o, uint8_t kind)
{
	vec_each (claims, c)
		if (c->kind == kind && !strcmp(c->origin, o->origin))
			return c;
	*vec_add(claims) = (struct claim){.kind = kind, .origin = o->origin, .record = UINT32_MAX};
	return vec_last(claims);
}

static void add_member(const struct records *r, struct claim *c, const struct reference *record)
{
	const struct owner *o = &r->owners.at[record->owner];

	if (!c->members++ || o->since_s >= r->owners.at[c->last].since_s)
		c->last = record->owner;
	c->group = o->group > c->group ? o->group : c->group;
	c->until_s = record->until_s > c->until_s ? record->until_s : c->until_s;
}

static bool is_allow(uint8_t kind)
{
	return kind == OVERLAY_ALLOW_FROM || kind == OVERLAY_ALLOW_TO;
}

// *ret_allowed: the net has an allow record.
static void find_claims(const struct records *r, const struct prefix *net, struct claims *ret,
			bool *ret_allowed)
{
	for (size_t i = first_in(&r->list, net); is_in(&r->list, i, net); i++) {
		const struct reference *record = &r->list.at[i];
		const struct owner *o = &r->owners.at[record->owner];

		if (is_allow(record->kind))
			*ret_allowed = true;
		else if (records_is_member(r, record))
			add_member(r, claim_of(ret, o, record->kind), record);
		else if (is_plain(o) && record->prefix.len == net->len) {
			claim_of(ret, o, record->kind)->record = (uint32_t)i;
			claim_of(ret, o, record->kind)->of_user = !o->group;
		}
	}
}

static bool is_wanted(const struct claim *c, const struct prefix *net, bool allowed,
		      records_may *may, const void *ctx)
{
	if (allowed || c->of_user || !c->members || c->members < c->group)
		return false;
	return may ? may(ctx, net) : c->record != UINT32_MAX;
}

// A group is never fleeting: a restart decides again whether enough members are left.
static uint32_t owner_of(struct records *r, const struct claim *c)
{
	const struct owner *last = &r->owners.at[c->last];
	uint32_t now = c->record == UINT32_MAX ? UINT32_MAX : r->list.at[c->record].owner;

	if (now != UINT32_MAX && r->owners.at[now].group == c->group)
		return now;
	return records_owner(r, &(struct owner){.origin = (char *)c->origin,
						.by = last->by,
						.since_s = last->since_s,
						.group = c->group});
}

// Records that are added and removed.
struct regrouping {
	bool *dropped;
	VEC(struct reference) added;
};

static void settle(struct records *r, struct regrouping *g, const struct prefix *net,
		   const struct claim *c, bool wanted)
{
	struct reference *record = c->record == UINT32_MAX ? NULL : &r->list.at[c->record];

	if (wanted && record) {
		record->owner = owner_of(r, c);
		record->until_s = c->until_s;
	} else if (wanted) {
		vec_push(&g->added, ((struct reference){.prefix = *net,
							.kind = c->kind,
							.until_s = c->until_s,
							.owner = owner_of(r, c)}));
	} else if (record && !c->of_user) {
		g->dropped[c->record] = true;
	}
}

static void regroup_net(struct records *r, struct regrouping *g, const struct prefix *net,
			records_may *may, const void *ctx)
{
	CLEANUP_VEC struct claims claims = {0};
	bool allowed = false;

	find_claims(r, net, &claims, &allowed);
	vec_each (&claims, c)
		settle(r, g, net, c, is_wanted(c, net, allowed, may, ctx));
}

void records_regroup(struct records *r, const struct prefix *nets, size_t n, records_may *may,
		     const void *ctx)
{
	CLEANUP_FREE bool *dropped = mem_zalloc(r->list.n, sizeof(bool));
	struct regrouping g = {.dropped = dropped};
	struct records_change change;

	for (size_t i = 0; i < n; i++)
		regroup_net(r, &g, &nets[i], may, ctx);
	records_drop(r, dropped);
	if (g.added.n)
		records_add(r, g.added.at, g.added.n, &change);
	vec_free(&g.added);
}
