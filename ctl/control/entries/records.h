// SPDX-License-Identifier: GPL-2.0-only
// The records of the overlay: which owner asks for which entry. Pure: uses only memory.
//
// The kernel knows of an entry only its expiry. The records know the owners: a record is the
// reference of one owner to one entry. An entry exists as long as any record refers to it, with the
// latest expiry of all. journal.h describes the file of the records. A command loads the records
// that it touches (store.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/base/addr.h"
#include "ctl/base/vec.h"

#define RECORD_NEVER UINT64_MAX // `until` of an entry without end: always the later of two times

// The owner of a reference, and its note. Records share owners; two references to a prefix are the
// same if origin, list and name are equal. NULL counts as "" in the arguments of callers; in the
// records the five strings are one allocation that begins at origin.
struct owner {
	char *origin;     // --origin: the program or person that asks; "" by default
	char *list;       // --sync NAME; "" otherwise
	char *name;       // host name of the address; "" for an address
	char *note;       // --note; "" without
	char *by;         // "root (ssh 198.51.100.9)"
	uint64_t since_s; // wall clock
	bool fleeting;    // --volatile, --live: not restored at the next boot
	uint32_t group;   // --group (store_group.c); 0: none
};

// The wish of an owner for an entry.
struct reference {
	struct prefix prefix;
	uint8_t kind;     // enum overlay_kind
	uint32_t owner;   // index into records.owners; in lines of the journal its number there
	uint64_t until_s; // wall clock, RECORD_NEVER
};

// The wall clock, and a clock that cannot be set: within one boot, their difference shows how far
// the wall clock was set.
#define RECORDS_BOOT 36 // characters of /proc/sys/kernel/random/boot_id
struct records_clock {
	char boot[RECORDS_BOOT + 1]; // "" when it is not known
	uint64_t wall_s;             // seconds since 1970
	uint64_t up_s;               // seconds of jiffies64
};

struct prefix_list {
	struct prefix *at;
	size_t n, cap;
};
// Sorts them and removes duplicates.
void prefixes_sort(struct prefix_list *p);

struct record_list {
	struct reference *at;
	size_t n, cap;
};

struct records {
	struct records_clock clock; // clock of the records' times
	VEC(struct owner) owners;
	struct record_list list; // sorted by record_compare, no duplicates
};

void records_free(struct records *r);
#define CLEANUP_RECORDS CLEANUP(records_free)

// Order: prefix_compare, kind, origin, list, name.
int record_compare(const struct records *r, const struct reference *a, const struct reference *b);

// Adds an owner (copies its strings) and returns its index.
uint32_t records_owner(struct records *r, const struct owner *h);

struct records_change {
	size_t added, extended, unchanged; // distinct references
	size_t shortened, removed;         // by records_replace only
	// By targets_record, blocks of outgoing connections of the same owner with another error or
	// for other namespaces: they are replaced, or remain.
	size_t replaced, beside;
};

// Adds references (any order, repetitions allowed). The references of one command are passed
// together, so that 100,000 references cost a sort and a merge, not 100,000 searches. An existing
// reference gets the later expiry and, if the new owner has a note or another group, the new owner.
// A reference that survives reboots remains so if it is repeated as a fleeting one, and a fleeting
// reference becomes permanent if it is repeated as a permanent one. *ret is overwritten.
void records_add(struct records *r, const struct reference *references, size_t n,
		 struct records_change *ret);
// Replaces the references of this origin, list and name by these, expiries included (for --sync and
// for names whose addresses changed). Others of the same kinds (bit mask 1 << kind) are removed.
// The owners of the references have this origin, list and name.
void records_replace(struct records *r, const struct owner *who, unsigned kinds,
		     const struct reference *references, size_t n, struct records_change *ret);
// The same for many owners in one merge, with all kinds: owners with owned[index] true, and all
// that share origin, list and name with them (the caller marks these, too). changes[index of the
// owner] counts the changes.
void records_replace_owners(struct records *r, const bool *owned,
			    const struct reference *references, size_t n,
			    struct records_change *changes);
// Compares origin, list and name of two owners. Returns less than, equal to or greater than 0.
int records_compare_owners(const struct owner *a, const struct owner *b);
// Removes the references to exactly these prefixes (any order) with this origin. References of
// names and lists remain unless `who` names them. prefixes NULL: all references of who.
// *ret_removed counts the removed ones.
void records_remove(struct records *r, const struct owner *who, unsigned kinds,
		    const struct prefix *prefixes, size_t n, size_t *ret_removed);
// Removes all references of an origin, including its names and lists; origin NULL: of all origins.
void records_remove_origin(struct records *r, const char *origin, unsigned kinds,
			   size_t *ret_removed);
// Removes the records that are marked, by index in r->list, and returns how many they were.
size_t records_drop(struct records *r, const bool *marked);
// Returns how far the wall clock was set between the two readings, in seconds; 0 if within two
// seconds, or if the readings are of different boots and cannot be compared.
int64_t records_clock_set_by(const struct records_clock *then, const struct records_clock *now);
// Moves a time of a record by as much, so that the remaining time does not change.
uint64_t records_shifted(uint64_t wall_s, int64_t by_s);
// Merges further records into the list, whose prefixes the list does not have yet. Their owners
// belong to r.
void records_load(const struct records *r, struct record_list *list, const struct reference *more,
		  size_t n);

// Computes the entries that the kernel should have for a list of records of r: of each prefix and
// kind the reference with the latest expiry, in the order of the records; members of a group are
// left out. *ret is overwritten; the caller frees ret->at.
void records_entries(const struct records *r, const struct record_list *list,
		     struct record_list *ret);

// Returns the first record of exactly this prefix and kind, and how many such records follow each
// other; NULL if there are no records.
const struct reference *records_find(const struct records *r, const struct prefix *p, uint8_t kind,
				     size_t *ret_n);
// Calls visit for every record whose prefix contains p, widest first; not for members of a group.
void records_covering(const struct records *r, const struct prefix *p,
		      void (*visit)(void *ctx, const struct reference *record), void *ctx);

// ---- groups: store_group.c ----------------------------------------------------------------------

// Returns the /24 or /64 that contains or equals the prefix; false: the prefix is wider.
bool records_net(const struct prefix *p, struct prefix *ret);
// Is the record a member, a group?
bool records_is_member(const struct records *r, const struct reference *record);
bool records_is_group(const struct records *r, const struct reference *record);
// Returns the group in the list (of records of r) that has this member; NULL: the record is no
// member, or has no group.
const struct reference *records_group_of(const struct records *r, const struct record_list *list,
					 const struct reference *member);
// Returns the index of the first record of the list inside the net; the others inside follow it.
size_t records_first_in(const struct record_list *list, const struct prefix *net);
// Counts the members of the group in the list.
size_t records_group_size(const struct records *r, const struct record_list *list,
			  const struct reference *group);
// Marks the members of the marked groups (by index in r->list), too, for a removal.
void records_mark_members(const struct records *r, bool *marked);
