// SPDX-License-Identifier: GPL-2.0-only
// Hosts of one origin that are matched as one prefix: `weir block --group N`. Pure: uses only
// memory.
//
// A reference to a host whose owner has a group of N is a *member*. Where an origin has N members
// of a kind in one /24 (IPv6: /64), its *net*, the records have a *group* too: a record of the net
// with an owner of that origin and the same N, which ends with the last member. While it exists,
// its members are not entries (records_hidden), but the group is. So a group is stored as any
// record, and a look-up finds it by its prefix. Members of different N: the largest counts.
//
// Nothing else has an owner with a group: a reference of the user to the net itself has none, and
// prevents the group.
#pragma once

#include "ctl/control/entries/records.h"

// Returns the /24 or /64 that contains or equals the prefix; false: the prefix is wider.
bool records_net(const struct prefix *p, struct prefix *ret);
// Is the record a member, a group?
bool records_is_member(const struct records *r, const struct reference *record);
bool records_is_group(const struct records *r, const struct reference *record);
// Returns the group in the list (of records of r) that has this member; NULL: the record is no
// member, or has no group.
const struct reference *records_group_of(const struct records *r, const struct record_list *list,
					 const struct reference *member);
// Counts the members of the group in the list.
size_t records_group_size(const struct records *r, const struct record_list *list,
			  const struct reference *group);

// May a group of this prefix be formed?
typedef bool records_may(const void *ctx, const struct prefix *net);
// Forms and ends the groups of these nets (sorted, without duplicates); all records inside the nets
// are loaded. A new group needs `may` (NULL: no group is formed). An existing group ends if `may`
// returns false, if its net has an allow record, or if it has too few members. A repetition changes
// nothing.
void records_regroup(struct records *r, const struct prefix *nets, size_t n, records_may *may,
		     const void *ctx);
// Marks the members of the marked groups (by index in r->list), too, for a removal.
void records_mark_members(const struct records *r, bool *marked);
