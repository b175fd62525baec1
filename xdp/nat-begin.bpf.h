/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections of nat and fullnat that are not in their own bucket: found elsewhere, or new. */
#pragma once

#include "xdp/nat-peers.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/test.bpf.h"

/* Slots in which a backend is looked for that does not clash: the flow's, and the next ones. */
#define NAT_RING_STEPS 16

/* A packet, as far as its connection depends on it. */
struct nat_ask {
	struct nat_key key;
	struct nat_peer peer; /* where it has arrived from */
	__u64 hash;           /* of client, port and protocol */
	__u32 src[4], dst[4];
	__u32 ports;
	__u32 end;            /* its number */
	__u32 event;          /* enum nat_event */
	__u32 length;         /* of IP */
	__u32 room;           /* written if it is too long for its backend: the MTU there */
	struct nat_held held; /* written by nat_in_groups4() and nat_in_groups6(): the connection */
};

/* In a map, because the chain of calls needs the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nat_ask);
} nat_asks SEC(".maps");

static __always_inline struct nat_ask *nat_ask_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&nat_asks, &zero);
}

/* The place of a connection that a test packet would begin: in a block that has no source. Its
 * lower half is the backend's number. */
#define NAT_OF_TEST (1ull << 62 | (__u64)NAT_BLOCKS << NAT_PLACES_LOG2)

static __always_inline __u8 nat_proto(const struct nat_end *end)
{
	return end->port_proto >> 16;
}

/* Has another connection of this client and port the backend? Its answers could not be told
 * apart. */
static __always_inline bool nat_clashes(const int family, const struct nat_ask *a,
					const struct nat_end *end, const struct backend *to)
{
	struct nat_side side = {
		.port_proto = nat_backend_port(to, end),
		.not_end = a->end,
	};

	__builtin_memcpy(side.addr, to->addr, sizeof(side.addr));
	return nat_elsewhere(family, a->hash, false, &a->key, &side) != NAT_NOWHERE;
}

static __always_inline __u64 nat_too_long_for(const struct backend *to)
{
	struct nat_ask *a = nat_ask_get();

	if (a)
		a->room = to->mtu;
	return NAT_NO(NAT_LEAVE);
}

/* The backend of slot `index`, or NAT_NO of the outcome. */
static __always_inline __u64 nat_owner(const int family, const struct nat_ask *a, __u64 index)
{
	const struct nat_end *end = nat_end_at(a->end);
	const __u64 *slot = slot_at(index);
	__u64 id = slot ? slot_owner(read_word(slot)) : BACKEND_NONE;
	const struct backend *to = id ? backend_at(id) : NULL;

	if (!to)
		return NAT_NO(REASON_DROP_NO_BACKEND);
	if (to->family != family || to->here || !to->ifindex)
		return NAT_NO(REASON_DROP_NO_NEXT_HOP);
	if (a->length > to->mtu)
		return nat_too_long_for(to);
	if (nat_use_of(a->end)->mode != NAT_USE_FULLNAT && nat_clashes(family, a, end, to))
		return NAT_NO(REASON_DROP_NAT_CLASH);
	return id;
}

__noinline __u64 nat_owner4(const struct nat_ask *a, __u64 index)
{
	return a ? nat_owner(4, a, index) : NAT_NO(REASON_DROP_FORWARD);
}

__noinline __u64 nat_owner6(const struct nat_ask *a, __u64 index)
{
	return a ? nat_owner(6, a, index) : NAT_NO(REASON_DROP_FORWARD);
}

/* The backend of a new connection: the owner of its slot, or of the first slot after it whose
 * owner does not clash. NAT_NO: the reason that there is no such. */
static __always_inline __u64 nat_backend_for(const int family, const struct nat_ask *a)
{
	const struct nat_end *end = nat_end_at(a->end);
	const struct service *s = service_at(nat_use_of(a->end)->service);
	__u64 id = NAT_NO(REASON_DROP_NO_BACKEND);
	__u64 slot;

	if (!s || !s->size)
		return id;
	slot = slot_of(flow_tuple(&s->key, family, a->src, a->dst, a->ports, nat_proto(end)),
		       s->size);
	for (int i = 0; i < NAT_RING_STEPS; i++) {
		id = family == 4 ? nat_owner4(a, s->first_slot + slot)
				 : nat_owner6(a, s->first_slot + slot);
		if (id != NAT_NO(REASON_DROP_NAT_CLASH))
			break;
		slot = (slot + 1) * is_less(slot + 1, s->size);
	}
	return id;
}

__noinline __u64 nat_backend_for4(const struct nat_ask *a)
{
	return a ? nat_backend_for(4, a) : NAT_NO(REASON_DROP_FORWARD);
}

__noinline __u64 nat_backend_for6(const struct nat_ask *a)
{
	return a ? nat_backend_for(6, a) : NAT_NO(REASON_DROP_FORWARD);
}

/* The word of a connection that begins with this packet, or NAT_NO. */
static __always_inline __u64 nat_first_word(const int family, const struct nat_ask *a)
{
	__u64 id = family == 4 ? nat_backend_for4(a) : nat_backend_for6(a);

	if ((__s64)id < 0)
		return id;
	return nat_pack(NAT_OPENING, nat_now(), id, nat_peer_number(&a->peer));
}

static __always_inline __u64 nat_begin(const int family, const struct nat_ask *a)
{
	const struct nat_use *use = nat_use_of(a->end);
	bool fullnat = use->mode == NAT_USE_FULLNAT;
	__u64 word;

	if (use->mode == NAT_USE_FORMER)
		return NAT_NO(NAT_LEAVE);
	if (a->event != NAT_OPENS && a->event != NAT_OF_UDP)
		return NAT_NO(REASON_DROP_NAT_UNKNOWN);
	word = nat_first_word(family, a);
	if ((__s64)word < 0)
		return word;
	if (is_test())
		return NAT_OF_TEST | nat_backend(word);
	return family == 4 ? nat_claim4(a->hash, fullnat, &a->key, word)
			   : nat_claim6(a->hash, fullnat, &a->key, word);
}

/* The place of a connection that is not in its own bucket: also of the other mode, because a
 * connection is served as it began. NAT_NO: the reason that there is no such. */
static __always_inline __u64 nat_find_or_begin(const int family, const struct nat_ask *a)
{
	bool fullnat = nat_use_of(a->end)->mode == NAT_USE_FULLNAT;
	__u64 place = nat_elsewhere(family, a->hash, fullnat, &a->key, NULL);

	if (place == NAT_NOWHERE)
		place = nat_elsewhere(family, a->hash, !fullnat, &a->key, NULL);
	return place == NAT_NOWHERE ? nat_begin(family, a) : place;
}

__noinline __u64 nat_find_or_begin4(const struct nat_ask *a)
{
	return a ? nat_find_or_begin(4, a) : NAT_NO(REASON_DROP_FORWARD);
}

__noinline __u64 nat_find_or_begin6(const struct nat_ask *a)
{
	return a ? nat_find_or_begin(6, a) : NAT_NO(REASON_DROP_FORWARD);
}

/* ---- a connection that is there -------------------------------------------------------------- */

/* Does the packet begin another connection? Of UDP each can. */
static __always_inline bool nat_begins_again(__u32 event, __u64 word)
{
	bool expired = nat_expired(word, nat_now(), nat()->lives);

	return event == NAT_OPENS ? expired || nat_state(word) == NAT_CLOSED
				  : event == NAT_OF_UDP && expired;
}

/* Would it take a place in the block of this one? */
static __always_inline bool nat_is_newest(const int family, const struct nat_ask *a, __u64 place)
{
	const struct nat_use *use = nat_use_of(a->end);
	bool fullnat = use->mode == NAT_USE_FULLNAT;
	__u64 block = (place >> NAT_PLACES_LOG2) + 1;

	return use->mode != NAT_USE_FORMER &&
	       (block == (nat_cell_of(family, fullnat, a->hash) & 0xff) ||
		block == (nat_cell_of(family, fullnat, a->hash >> 32) & 0xff));
}

static __always_inline __u64 nat_changed(const int family, __u64 place, __u64 old, __u64 new)
{
	__u64 *word = nat_word_at(family, place);

	if (!word)
		return NAT_NO(REASON_DROP_FORWARD);
	if (is_test())
		return new;
	return __sync_val_compare_and_swap(word, old, new) == old ? new
								  : NAT_NO(REASON_DROP_NAT_BUSY);
}

/* The word after a packet of the client that changes it, or NAT_NO. */
static __always_inline __u64 nat_follow(const int family, const struct nat_ask *a, __u64 place,
					__u64 word)
{
	__u64 new, after;

	if (nat_begins_again(a->event, word)) {
		new = nat_first_word(family, a);
		return (__s64) new < 0 ? new : nat_changed(family, place, word, new);
	}
	new = nat_heard(word, a->event, 0, nat_now(), nat()->lives);
	if ((a->event != NAT_OPENS || nat_state(new) == NAT_OPENING) &&
	    !nat_is_peer(nat_peer(word), &a->peer))
		new = (new & ~(0xffffull << NAT_PEER_SHIFT)) | (__u64)nat_peer_number(&a->peer)
								       << NAT_PEER_SHIFT;
	/* Another CPU has changed it: the next packet will. */
	after = new == word ? word : nat_changed(family, place, word, new);
	return (__s64)after < 0 ? word : after;
}

/* Frees the place of a connection that has ended if the next one belongs elsewhere. 1: it is
 * free. */
static __always_inline int nat_leave_place(const int family, const struct nat_ask *a, __u64 place)
{
	struct nat_held h = {};

	if (is_test() || !nat_hold(family, place, &h) || !nat_begins_again(a->event, h.word) ||
	    nat_is_newest(family, a, place))
		return 0;
	return nat_changed(family, place, h.word, 0) == 0;
}

__noinline int nat_leave_place4(const struct nat_ask *a, __u64 place)
{
	return a ? nat_leave_place(4, a, place) : 0;
}

__noinline int nat_leave_place6(const struct nat_ask *a, __u64 place)
{
	return a ? nat_leave_place(6, a, place) : 0;
}

static __always_inline __u64 nat_find_fresh(const int family, const struct nat_ask *a)
{
	__u64 place = family == 4 ? nat_find_or_begin4(a) : nat_find_or_begin6(a);
	int leaves;

	if ((__s64)place < 0 || (a->event != NAT_OPENS && a->event != NAT_OF_UDP))
		return place;
	leaves = family == 4 ? nat_leave_place4(a, place) : nat_leave_place6(a, place);
	if (!leaves)
		return place;
	return family == 4 ? nat_find_or_begin4(a) : nat_find_or_begin6(a);
}

/* The place of the connection, after it has heard the packet; or NAT_NO. */
static __always_inline __u64 nat_place_of(const int family, const struct nat_ask *a)
{
	__u64 place = nat_find_fresh(family, a), word;
	struct nat_held h = {};

	if ((__s64)place < 0 || (is_test() && place >= NAT_OF_TEST))
		return place;
	if (!nat_hold(family, place, &h) || nat_keys_differ(&h.key, &a->key, ~0ull))
		return NAT_NO(REASON_DROP_NAT_BUSY);
	word = nat_follow(family, a, place, h.word);
	return (__s64)word < 0 ? word : place;
}

__noinline __u64 nat_place_of4(const struct nat_ask *a)
{
	return a ? nat_place_of(4, a) : NAT_NO(REASON_DROP_FORWARD);
}

__noinline __u64 nat_place_of6(const struct nat_ask *a)
{
	return a ? nat_place_of(6, a) : NAT_NO(REASON_DROP_FORWARD);
}

/* A packet of the backend. */
__noinline int nat_answered(__u64 place, __u32 family, __u64 word, __u32 event)
{
	__u64 new = nat_heard(word, event, 1, nat_now(), nat()->lives);

	if (new == word || is_test())
		return 0;
	if (family == 4)
		nat_changed(4, place, word, new);
	else
		nat_changed(6, place, word, new);
	return 1;
}
