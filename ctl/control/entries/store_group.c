// SPDX-License-Identifier: GPL-2.0-only
// Keeps groups consistent: if one record of a group is loaded, all are, and a change of members or
// of allow entries decides about the group again.
#include <stdlib.h>

#include "ctl/control/entries/records_group.h"
#include "ctl/control/entries/store_parts.h"

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

static bool is_unguarded(const void *guard, const struct prefix *net)
{
	const struct guard *g = guard;

	return !g->partial && !guard_find(g, net, GUARD_NAME);
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
	records_regroup(&b->records, nets.at, nets.n, b->guard ? is_unguarded : NULL, b->guard);
	return 0;
}
