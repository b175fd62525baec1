// SPDX-License-Identifier: GPL-2.0-only
// Hosts of one origin that are matched as one prefix: `weir block --group N`.
//
// A reference to a host whose owner has a group of N is a *member*. Where an origin has N members
// of a kind in one /24 (IPv6: /64), its *net*, the records have a *group* too: a record of the net
// with an owner of that origin and the same N, which ends with the last member. While it exists,
// its members are not entries (records_entries), but the group is. So a group is stored as any
// record, and a look-up finds it by its prefix. Members of different N: the largest counts.
//
// Nothing else has an owner with a group: a reference of the user to the net itself has none, and
// prevents the group. A group also ends if its net has an allow record, or an address that must not
// be blocked.
//
// If one record of a group is loaded, all are, and a change of members or of allow entries decides
// about the group again.
#include <stdlib.h>
#include <string.h>

#include "ctl/control/entries/store_parts.h"

// ---- the groups of a net ------------------------------------------------------------------------

static bool is_plain(const struct owner *o)
{
	return !o->list[0] && !o->name[0];
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

// *ret_allowed: the net has an allow record.
static void find_claims(const struct records *r, const struct prefix *net, struct claims *ret,
			bool *ret_allowed)
{
	for (size_t i = records_first_in(&r->list, net); i < r->list.n; i++) {
		const struct reference *record = &r->list.at[i];
		const struct owner *o = &r->owners.at[record->owner];

		if (!prefix_contains(net, &record->prefix))
			break;
		if (overlay_is_out(record->kind))
			continue; // calls have no groups
		if (overlay_is_allow(record->kind))
			*ret_allowed = true;
		else if (records_is_member(r, record))
			add_member(r, claim_of(ret, o, record->kind), record);
		else if (is_plain(o) && record->prefix.len == net->len) {
			claim_of(ret, o, record->kind)->record = (uint32_t)i;
			claim_of(ret, o, record->kind)->of_user = !o->group;
		}
	}
}

// guard NULL: no new group is formed.
static bool is_wanted(const struct claim *c, const struct prefix *net, bool allowed,
		      const struct guard *guard)
{
	if (allowed || c->of_user || !c->members || c->members < c->group)
		return false;
	return guard ? !guard->partial && !guard_find(guard, net, GUARD_NAME)
		     : c->record != UINT32_MAX;
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

static void write_group(struct records *r, struct regrouping *g, const struct prefix *net,
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
			const struct guard *guard)
{
	CLEANUP_VEC struct claims claims = {0};
	bool allowed = false;

	find_claims(r, net, &claims, &allowed);
	vec_each (&claims, c)
		write_group(r, g, net, c, is_wanted(c, net, allowed, guard));
}

// Forms and ends the groups of these nets (sorted, without duplicates); all records inside the nets
// are loaded. A repetition changes nothing.
static void regroup(struct records *r, const struct prefix_list *nets, const struct guard *guard)
{
	CLEANUP_FREE bool *dropped = mem_zalloc(r->list.n, sizeof(bool));
	struct regrouping g = {.dropped = dropped};
	struct records_change change;

	vec_each (nets, net)
		regroup_net(r, &g, net, guard);
	records_drop(r, dropped);
	if (g.added.n)
		records_add(r, g.added.at, g.added.n, &change);
	vec_free(&g.added);
}

// ---- all nets that were changed -----------------------------------------------------------------

static int compare_nets(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

bool store_nets_have(const struct prefix_list *nets, const struct prefix *p)
{
	struct prefix net;

	return nets->n && records_net(p, &net) &&
	       bsearch(&net, nets->at, nets->n, sizeof(*nets->at), compare_nets);
}

static bool any_group(const struct store *b)
{
	vec_each (&b->records.owners, owner)
		if (owner->group)
			return true;
	return journal_index_grouped(b->journal.index);
}

// A record inside a net can be a member, a group, an allow entry, or a reference of the user to the
// net.
static void add_nets(const struct record_list *list, struct prefix_list *ret)
{
	struct prefix net;

	vec_each (list, record)
		if (records_net(&record->prefix, &net) &&
		    (!ret->n || prefix_compare(vec_last(ret), &net)))
			vec_push(ret, net);
}

// If all records are loaded, the index may be empty and have no file, so any_group also searches
// the loaded owners.
int store_regroup(struct store *b, struct err *err)
{
	CLEANUP_VEC struct prefix_list nets = {0};
	int code;

	if (!any_group(b))
		return 0;
	add_nets(&b->before, &nets);
	add_nets(&b->records.list, &nets);
	prefixes_sort(&nets);
	if ((code = store_load_inside(b, &nets, err)))
		return code;
	regroup(&b->records, &nets, b->guard);
	return 0;
}
