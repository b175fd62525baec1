/* SPDX-License-Identifier: GPL-2.0-only */
/* Selects the backend of a packet: by the slot of its flow and, while the slot changes, by the pin
 * of the flow.
 *
 * docs/ring.md has the table and the rules of pins. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/service.bpf.h"

#define PIN_TRIES 4

static __always_inline __u64 hash_of_tuple(const struct service *s, const struct packet *pkt)
{
	return flow_tuple(&s->key, pkt->family, pkt->src, pkt->dst,
			  flow_ports(pkt->sport, pkt->dport), pkt->proto);
}

static __always_inline __u64 hash_of_source(const struct service *s, const struct packet *pkt)
{
	return flow_source(&s->key, pkt->family, pkt->src);
}

/* A SYN without ACK, an INIT; but not in a quote. */
static __always_inline bool opens(const struct packet *pkt)
{
	if (pkt->quoted || !pkt->has_l4)
		return false;
	if (pkt->proto == IPPROTO_TCP)
		return (pkt->tcp_flags & 0x12) == 0x02;
	return pkt->proto == IPPROTO_SCTP && !pkt->sctp_tag;
}

/* How a packet changes its flow. Two bits and HEARD_UDP are a number, for a global function. */
enum flow_event { FLOW_GOES_ON, FLOW_OPENS, FLOW_CLOSES };

#define HEARD_EVENT 3u
#define HEARD_UDP   4u

/* The client's FIN or RST. SCTP is not read: its chunks may be anywhere. */
static __always_inline bool closes(const struct packet *pkt)
{
	return !pkt->quoted && pkt->has_l4 && pkt->proto == IPPROTO_TCP && pkt->tcp_flags & 0x05;
}

static __always_inline __u32 heard(const struct packet *pkt)
{
	__u32 event = opens(pkt) ? FLOW_OPENS : closes(pkt) ? FLOW_CLOSES : FLOW_GOES_ON;

	return event | (pkt->proto == IPPROTO_UDP ? HEARD_UDP : 0);
}

static __always_inline enum backend_state state_of(__u32 id)
{
	const struct backend *b = backend_at(id);

	return b ? *(volatile __u8 *)&b->state : BACKEND_DOWN;
}

static __always_inline bool is_down(__u32 id)
{
	return state_of(id) == BACKEND_DOWN;
}

static __always_inline __u64 read_pin(const struct pin_bucket *bucket, int i)
{
	return *(volatile __u64 *)&bucket->pin[i & (SERVICE_PIN_WORDS - 1)];
}

static __always_inline struct pin_bucket *bucket_at(const struct service *s, __u32 service,
						    __u64 hash)
{
	void *table = bpf_map_lookup_elem(&pins, &service);
	__u32 bucket = pin_bucket_of(hash, s->buckets);

	return table ? bpf_map_lookup_elem(table, &bucket) : NULL;
}

/* How early a pin must make room: the least valuable first, then the older one; before all others a
 * place that is free or whose pin has expired. */
static __always_inline __u64 pin_rank(const struct service *s, __u64 pin, __u32 time)
{
	const __u64 last = (1ull << (PIN_TIME_BITS + PIN_LEVEL_BITS + 1)) - 1;
	__u64 age = (time - (__u32)pin) & PIN_TIME, rank;
	__u64 worth = pin_worth(pin >> PIN_LEVEL_SHIFT & PIN_LEVEL), most = s->life_most;

	most ^= (most ^ s->linger) * is_less(worth, 1);        /* closed */
	age *= is_less(age, PIN_TIME - SERVICE_PIN_AHEAD + 1); /* as pin_age() */
	rank = (PIN_LEVEL - worth) << PIN_TIME_BITS | age;
	return rank | last * (is_less(most, age) | is_less(pin_backend(pin), 1));
}

/* The place that a pin may take; the first of equals. */
static __always_inline int pin_place(const struct service *s, const struct pin_bucket *bucket,
				     __u32 time)
{
	__u64 best = 0;

#pragma unroll
	for (int i = 0; i < SERVICE_PIN_WORDS; i++) {
		__u64 rank =
			pin_rank(s, read_pin(bucket, i), time) << 3 | (SERVICE_PIN_WORDS - 1 - i);

		best ^= (best ^ rank) * is_less(best, rank);
	}
	return SERVICE_PIN_WORDS - 1 - (int)(best & (SERVICE_PIN_WORDS - 1));
}

enum pin_outcome {
	PIN_STORED,
	PIN_NO_PLACE,
	PIN_DISTURBED, /* another CPU has changed the place in the meantime */
};

/* `pin` has its flow, backend, level and time. */
static __always_inline enum pin_outcome pin_try(const struct service *s, struct pin_bucket *at,
						__u64 pin)
{
	__u32 time = pin & PIN_TIME;
	int place = pin_place(s, at, time) & (SERVICE_PIN_WORDS - 1);
	__u64 old = read_pin(at, place);
	bool lives = pin_lives(old, time, s->life_most, s->linger);

	if (lives && pin_worth(pin_level(old)) > pin_worth(pin_level(pin)))
		return PIN_NO_PLACE;
	if (__sync_val_compare_and_swap(&at->pin[place], old, pin) != old)
		return PIN_DISTURBED;
	if (lives)
		service_tally(s->id, SERVICE_PUSHED_HALF + pin_level(old));
	service_tally(s->id, pin_level(pin) == PIN_CLOSED ? SERVICE_PINNED_CLOSED
							  : SERVICE_PINNED_HALF + pin_level(pin));
	return PIN_STORED;
}

static __always_inline void pin_store(const struct service *s, struct pin_bucket *at, __u64 pin)
{
	enum pin_outcome outcome = PIN_DISTURBED;

	for (int i = 0; i < PIN_TRIES && outcome == PIN_DISTURBED; i++)
		outcome = pin_try(s, at, pin);
	if (outcome != PIN_STORED)
		service_tally(s->id, SERVICE_UNPINNED);
}

/* It differs from the flow by backend, level and time, which are not all zero: a free place belongs
 * to no flow. */
static __always_inline bool pin_is_of(__u64 pin, __u32 flow)
{
	return (pin ^ (__u64)flow << PIN_FLOW_SHIFT) - 1 < ~0u;
}

/* The pin, or 0: it does not live, and is freed. */
static __always_inline __u64 pin_if_lives(const struct service *s, __u64 *at, __u64 pin, __u32 time,
					  __u32 life)
{
	if (likely(pin_lives(pin, time, life, s->linger)))
		return pin;
	if (!is_test())
		__sync_val_compare_and_swap(at, pin, 0);
	return 0;
}

/* The flow's living pin, the first of several, or 0. */
static __always_inline __u64 pin_find(const struct service *s, struct pin_bucket *bucket,
				      __u32 flow, __u32 time, __u32 life)
{
#pragma unroll
	for (int i = 0; i < SERVICE_PIN_WORDS; i++) {
		__u64 pin = read_pin(bucket, i);

		if (pin_is_of(pin, flow))
			return pin_if_lives(s, &bucket->pin[i], pin, time, life);
	}
	return 0;
}

/* Its connection has ended, or as good as: a packet that opens begins another one. One that speaks
 * must not be cut by a SYN that anybody can forge; but one whose backend is failing hardly
 * speaks. */
static __always_inline bool is_given_up(const struct service *s, __u64 pin, __u32 time,
					enum backend_state state)
{
	return pin_level(pin) == PIN_CLOSED || state == BACKEND_FAILING ||
	       (pin_age(pin, time) > s->linger && state != BACKEND_UP);
}

static __always_inline enum pin_level level_after(enum pin_level level, enum flow_event event)
{
	if (event == FLOW_CLOSES)
		return PIN_CLOSED;
	return event == FLOW_OPENS || level == PIN_CLOSED ? level : PIN_TALKS;
}

/* A pin that only becomes younger is written when it is no longer fresh by the shortest life that
 * counts: a flow that may open again by its linger too. */
static __always_inline bool is_due(const struct service *s, __u64 old, __u64 new, __u32 time,
				   bool udp)
{
	__u32 life = udp ? s->life_udp : s->linger;

	if ((old ^ new) >> PIN_TIME_BITS)
		return true;
	return old != new &&pin_age(old, time) >= pin_fresh(life);
}

/* The backend of a packet, and the change of its flow's pin: the lower half of a pin, of which only
 * the backend counts if none is written, and bits. It is decided first and written last: in between
 * a program may leave the packet to another one. 0: the service never had a backend. */
#define CHOICE_SHIFT    32           /* the bits above belong to the written value */
#define CHOICE_STORE    (1ull << 32) /* the flow has no pin and gets this one */
#define CHOICE_UPDATE   (1ull << 33) /* the pin of the flow becomes this one */
#define CHOICE_REOPENED (1ull << 34) /* events, to be counted */
#define CHOICE_MOVED    (1ull << 35)

/* The flow was heard. Moves it to the owner when its backend is down, and when it is another
 * connection that opens. */
static __always_inline __u64 pin_follow(const struct service *s, __u64 pin, __u32 heard,
					__u32 owner, __u32 time)
{
	enum flow_event event = heard & HEARD_EVENT;
	__u32 backend = pin_backend(pin);
	enum backend_state state = state_of(backend);
	bool again = event == FLOW_OPENS && is_given_up(s, pin, time, state);
	bool down = state == BACKEND_DOWN;
	__u64 new = pin_pack(pin_flow(pin), again || down ? owner : backend,
			     again ? PIN_HALF : level_after(pin_level(pin), event), time);
	__u64 choice = (__u32) new;

	if (is_due(s, pin, new, time, heard & HEARD_UDP))
		choice |= CHOICE_UPDATE;
	if (again)
		return choice | CHOICE_REOPENED;
	return down ? choice | CHOICE_MOVED : choice;
}

static __always_inline void test_pinned(void)
{
	struct policy_test *t = is_test() ? test_get() : NULL;

	if (t)
		t->pinned = 1;
}

static __always_inline enum pin_level first_level(enum flow_event event)
{
	return event == FLOW_OPENS ? PIN_HALF : event == FLOW_CLOSES ? PIN_CLOSED : PIN_FOUND;
}

/* A slot that is not stable. hash: of the flow's tuple; heard: its event, HEARD_UDP; *ret_pin: the
 * pin of the flow that was found. Global, because it is verified once for all callers. */
__noinline __u64 choose_unstable(__u32 service, __u64 slot, __u64 hash, __u32 heard, __u64 *ret_pin)
{
	const struct service *s = service_at(service);
	struct pin_bucket *bucket = s ? bucket_at(s, service, hash) : NULL;
	__u32 owner = slot_owner(slot), former = slot_former(slot), time;
	__u64 now = now_jiffies(), pin;

	if (!bucket || !ret_pin)
		return 0;
	time = pin_time(now, s->pin_shift & 31);
	pin = pin_find(s, bucket, pin_flow_of(hash), time,
		       heard & HEARD_UDP ? s->life_udp : s->life_tcp);
	if (likely(pin)) {
		test_pinned();
		*ret_pin = pin;
		return pin_follow(s, pin, heard, owner, time);
	}
	if (slot_phase(slot, now, s->hold_ticks) != SLOT_CHANGING)
		return pin_pack(0, owner, 0, 0);
	if ((heard & HEARD_EVENT) != FLOW_OPENS && !is_down(former))
		owner = former;
	return pin_pack(0, owner, first_level(heard & HEARD_EVENT), time) | CHOICE_STORE;
}

/* Replaces a pin, unless it has changed in the meantime. */
static __always_inline void pin_update(struct pin_bucket *bucket, __u64 old, __u64 new)
{
	__u64 place = SERVICE_PIN_WORDS;

#pragma unroll
	for (int i = SERVICE_PIN_WORDS - 1; i >= 0; i--)
		if (read_pin(bucket, i) == old)
			place = i;
	if (place < SERVICE_PIN_WORDS)
		__sync_val_compare_and_swap(&bucket->pin[BOUND(place, SERVICE_PIN_WORDS - 1)], old,
					    new);
}

/* Puts a choice into effect. hash: of the flow's tuple; old: its pin. Global as well. */
__noinline int choice_write(__u32 service, __u64 hash, __u64 choice, __u64 old)
{
	__u64 new = (__u64)pin_flow_of(hash) << PIN_FLOW_SHIFT | (__u32)choice;
	const struct service *s = service_at(service);
	struct pin_bucket *bucket = s ? bucket_at(s, service, hash) : NULL;

	if (!bucket || is_test())
		return 0;
	if (choice & CHOICE_STORE)
		pin_store(s, bucket, new);
	if (choice & CHOICE_UPDATE)
		pin_update(bucket, old, new);
	if (unlikely(choice & CHOICE_REOPENED))
		service_tally(s->id, SERVICE_REOPENED);
	if (unlikely(choice & CHOICE_MOVED))
		service_tally(s->id, SERVICE_MOVED);
	return 0;
}

static __always_inline void test_slot(__u32 index, __u64 slot)
{
	struct policy_test *t = is_test() ? test_get() : NULL;

	if (t) {
		t->slot = index;
		t->slot_word = slot;
	}
}

/* The number of the packet's backend; BACKEND_NONE: the service never had one. *ret_hash: of the
 * flow, as its service hashes. */
static __always_inline __u32 choose(struct packet *pkt, const struct service *s, __u64 *ret_hash)
{
	bool source = s->hash == SERVICE_HASH_SOURCE;
	__u64 hash = source ? hash_of_source(s, pkt) : hash_of_tuple(s, pkt);
	__u32 index = slot_of(hash, s->size), at = s->first_slot + index;
	const __u64 *slot = slot_at(at);
	__u64 word, choice, pin = 0;

	*ret_hash = hash;
	if (!slot)
		return BACKEND_NONE;
	word = *(volatile __u64 *)slot;
	test_slot(index, word);
	if (likely(!slot_former(word)) || (s->udp_move && pkt->proto == IPPROTO_UDP))
		return slot_owner(word);
	if (source)
		hash = hash_of_tuple(s, pkt);
	choice = choose_unstable(pkt->service, word, hash, heard(pkt), &pin);
	/* A quoted packet does not belong to the flow. */
	if (choice >> CHOICE_SHIFT && !pkt->quoted)
		choice_write(pkt->service, hash, choice, pin);
	return pin_backend(choice);
}
