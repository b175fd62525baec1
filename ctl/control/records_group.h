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

#include "ctl/control/records.h"

// The /24 or /64 that a prefix is in, or is; false: the prefix is wider.
bool records_net(const struct prefix *p, struct prefix *ret);
// Is the record a member, a group?
bool records_is_member(const struct records *r, const struct record *record);
bool records_is_group(const struct records *r, const struct record *record);
// The group in the list (of records of r) that has this member; NULL: it has none, or is no member.
const struct record *records_group_of(const struct records *r, const struct record_list *list,
				      const struct record *member);
// How many members of the list the group has.
size_t records_group_size(const struct records *r, const struct record_list *list,
			  const struct record *group);

// May a group of this prefix be formed?
typedef bool records_may(const void *ctx, const struct prefix *net);
// Makes the groups of these nets (sorted, each once) what they must be; all records inside of the
// nets are loaded. A new group needs `may` (NULL: none is formed), an existing one ends where `may`
// says no, where its net has an allow record, or where it has too few members. Repeating it changes
// nothing.
void records_regroup(struct records *r, const struct prefix *nets, size_t n, records_may *may,
		     const void *ctx);
// Marks the members of groups that are marked (by index in r->list), for a removal.
void records_mark_members(const struct records *r, bool *marked);
