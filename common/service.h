/* SPDX-License-Identifier: GPL-2.0-only */
/* Services and backends as the datapath sees them, slots of rings, and pins of flows.
 *
 * A ring is an array of slots; the hash of a flow selects its slot. A slot has an owner and, while
 * the ring changes, a former owner: the table in docs/ring.md defines which of the two gets a
 * packet. Pins remember the backends of single flows, and only in slots that are not stable.
 *
 * Slots and pins are words of 64 bits in mapped arrays. User space writes a slot with one store,
 * under the lock of the instance; programs only read it. A pin is changed by compare-and-swap on
 * both sides. */
#pragma once

#include <linux/types.h>

#include "common/counters.h"
#include "common/flowhash.h"
#include "common/limits-service.h"
#include "common/words.h"

#define SERVICE_INLINE static inline __attribute__((always_inline))

/* ---- services and backends ------------------------------------------------------------------- */

/* Protocols of a service: bits. */
#define SERVICE_TCP  (1u << 0)
#define SERVICE_UDP  (1u << 1)
#define SERVICE_SCTP (1u << 2)

enum backend_state {
	BACKEND_UP,
	/* no new flows; old ones stay as long as they speak. To the datapath also: gets none now */
	BACKEND_DRAIN,
	BACKEND_DOWN, /* its flows move */
	/* its checks fail: as drain, but a packet that opens leaves its pin at once */
	BACKEND_FAILING,
};

#define BACKEND_NONE 0 /* the number of no backend */

/* A stable slot and IPv4 need only the first of its two cache lines. */
struct service {
	__u32 size;       /* slots: a prime */
	__u32 first_slot; /* in the array of slots */
	__u16 id;         /* index of its counters, in the range of backends */
	__u16 path_ticks; /* pin_ticks() of SERVICE_PATH_S */
	__u8 mode;        /* enum service_mode */
	__u8 hash;        /* enum service_hash */
	__u8 udp_move;    /* udp goes to the owner immediately, in any state of the slot */
	__u8 pin_shift;   /* pin_shift(HZ) */
	struct flow_key key;
	__u32 buckets;    /* of pins */
	__u32 hold_ticks; /* slot_ticks(): how long a slot is changing; the one field that moves */
	__u16 life_tcp;   /* pin_life() of the idle: older pins are expired; of sctp too */
	__u16 life_udp;   /* the same */
	__u16 life_most;  /* the longer of those that count: for the pins of others in a bucket */
	__u16 linger;     /* pin_linger(): a closed pin lives no longer */
};
_Static_assert(sizeof(struct service) == 128, "layout");

/* One cache line; its index in the array is its number. `state` is set with one store. A
 * number is one backend of one service; the numbers of services come from the same array, their
 * elements are free. MAC addresses and addresses are as in the frame, so that headers are copied in
 * pieces of eight bytes. */
struct backend {
	__u8 mac[6];     /* of the next hop */
	__u8 mac_own[6]; /* of the egress */
	__u16 vlan;      /* tag of the egress, host order, 0: none */
	__u16 mtu;       /* MTU of the egress, bytes of IP; 0: no next hop is known, or `here` */
	__u32 addr[4];   /* network order; IPv4 in [0], the rest zero */
	__u32 source[4]; /* outer source: the same; bits that are not given are zero */
	__u32 ifindex;   /* egress: the device that frames leave by; 0: no next hop is known */
	__u16 sum;       /* constant part of the outer checksum: lb_backend_complete() */
	__u16 port;      /* host order; 0: the port of the packet */
	__u8 family;     /* 4 or 6; 0: a free number, or `here` */
	__u8 state;      /* enum backend_state */
	__u8 source_len; /* bits of `source` that are given; the others come from the flow's hash */
	__u8 here : 1;   /* this host: the packet is passed up */
	__u8 no_xmit : 1;    /* the egress loses frames redirected to it in native mode */
	__u8 source_set : 1; /* by the policy; else it is the host's own address */
	__u32 path;          /* path_pack(): written only by the datapath */
};
_Static_assert(sizeof(struct backend) == 64, "layout");

/* Constants of the outer header of IPv4, in host order: version and length, DF. */
#define OUTER_FIRST 0x4500
#define OUTER_DF    0x4000
#define OUTER_TTL   64

/* Bytes of the headers that a mode puts around a packet. family: of the outer header. */
SERVICE_INLINE __u32 outer_bytes(__u32 mode, __u32 family)
{
	const unsigned int does = service_mode_does((enum service_mode)mode);

	if (!(does & MODE_TUNNEL))
		return 0;
	return (family == 4 ? 20u : 40u) + (does & MODE_UDP ? 8u : 0u);
}

/* ---- ways to backends ------------------------------------------------------------------------ */

/* {mtu 16, time 16}: the path MTU to a backend, as a router reported it at that time; 0: no report.
 * Time has the unit of pins and wraps in the same way: the first packet that an expired word would
 * stop frees it. */
SERVICE_INLINE __u32 path_pack(__u32 mtu, __u32 time)
{
	return mtu << 16 | (time & 0xffff);
}

SERVICE_INLINE __u32 path_mtu(__u32 path)
{
	return path >> 16;
}

/* Ticks since it was learned; 0 also when its time is a little ahead. */
SERVICE_INLINE __u32 path_age(__u32 path, __u32 time)
{
	__u32 age = (time - path) & 0xffff;

	return age > 0xffff - SERVICE_PIN_AHEAD ? 0 : age;
}

SERVICE_INLINE int path_lives(__u32 path, __u32 time, __u32 ticks)
{
	return path && path_age(path, time) <= ticks;
}

/* The number of the backend with this address, to follow a router's quote of a tunnel packet. All
 * services that have the backend are a chain, which begins at the service TUNNEL_FIRST. */
#define TUNNEL_FIRST 0xffffffff

struct tunnel_key {
	__u32 addr[4]; /* as in struct backend */
	__u32 family;
	__u32 service; /* number in the policy, or TUNNEL_FIRST */
};

struct tunnel_end {
	__u32 backend; /* BACKEND_NONE in TUNNEL_FIRST */
	__u32 next;    /* another service that has it, TUNNEL_FIRST: the last */
};

/* ---- counters -------------------------------------------------------------------------------- */

/* Events besides the packets that were sent: X(SYMBOL, "name", "what it means"). */
/* clang-format off */
#define SERVICE_EVENTS(X) \
	X(OPENED, "opened", "packets that open a connection") \
	X(PINNED_HALF, "pinned-half", "pins written for flows that opened") \
	X(PINNED_FOUND, "pinned-found", "pins written for flows that were there before") \
	X(PINNED_CLOSED, "pinned-closed", "pins written for flows that closed") \
	X(MOVED, "moved", "pins moved from a backend that is down") \
	X(REOPENED, "reopened", "new connections with the addresses and ports of an ended one") \
	X(PUSHED_HALF, "pushed-half", "living pins of flows that only opened, pushed out by others") \
	X(PUSHED_FOUND, "pushed-found", "living pins of flows heard once, pushed out by others") \
	X(PUSHED_TALKS, "pushed-talks", "living pins of flows heard twice, pushed out by others") \
	X(PUSHED_CLOSED, "pushed-closed", "living pins of flows that closed, pushed out by others") \
	X(UNPINNED, "unpinned", "flows that found no place for a pin") \
	X(COMPLETED, "checksum-completed", "partial checksums of local senders that were completed") \
	X(QUOTED, "quoted", "ICMP errors that followed the flow they quote") \
	X(PATH_LEARNED, "path-learned", "path MTUs that were lowered because a router said 'too big' of a tunnel packet") \
	X(PATH_REFUSED, "path-refused", "the same, not believed: no packet of ours, no size that can be, or within a second")
/* clang-format on */

enum service_event {
#define X(symbol, name, text) SERVICE_##symbol,
	SERVICE_EVENTS(X)
#undef X
		SERVICE_EVENT_COUNT,
};

/* The reasons of the balancer to drop a packet are contiguous. */
#define SERVICE_DROPS (REASON_DROP_FORWARD - REASON_DROP_NO_BACKEND + 1)

/* A value of the per-CPU array, of a backend, or of a service: then with its drops. Bytes are of
 * IP, in the received packet. */
struct service_counter {
	__u64 packets, bytes;           /* sent to the backend */
	__u64 back_packets, back_bytes; /* answers that nat and fullnat have sent to clients */
	/* OPENED first: with packets and bytes in one cache line */
	__u64 event[SERVICE_EVENT_COUNT];
	__u64 dropped[SERVICE_DROPS];
};

/* ---- slots ----------------------------------------------------------------------------------- */

/* {owner 14, former 14, since 36}, the owner on top.
 *
 * `former` 0: stable, and `since` is 0 too. former = owner: pins only; a slot is written so after
 * its hold has expired. Otherwise the slot is changing from `since` on, and becomes pins only
 * hold_ticks later without a write.
 *
 * `since` is in ticks of 16 jiffies. In jiffies its 36 bits would come round after 795 days at 1000
 * Hz; a slot that no command had closed since would be changing once more, and send flows to its
 * former owner that the owner has accepted in between. In ticks they last 34 years, longer than a
 * jiffies64 that begins at boot will count. The upper half of the ages is the future: a packet on
 * another CPU may still see the jiffy before the one that a change was written with, and must not
 * take that slot for an old one. Rounding: a slot is changing for more than the hold asked for, by
 * less than 31 jiffies. */
#define SLOT_SINCE_BITS 36
#define SLOT_SINCE      ((1ull << SLOT_SINCE_BITS) - 1)
#define SLOT_ID         (SERVICE_BACKENDS - 1u)

enum slot_phase {
	SLOT_STABLE,
	SLOT_CHANGING,
	SLOT_PINS_ONLY,
};

SERVICE_INLINE __u64 slot_pack(__u32 owner, __u32 former, __u64 since)
{
	return (__u64)(owner & SLOT_ID) << (SLOT_SINCE_BITS + SERVICE_BACKEND_BITS) |
	       (__u64)(former & SLOT_ID) << SLOT_SINCE_BITS | (since & SLOT_SINCE);
}

SERVICE_INLINE __u32 slot_owner(__u64 slot)
{
	return (__u32)(slot >> (SLOT_SINCE_BITS + SERVICE_BACKEND_BITS));
}

SERVICE_INLINE __u32 slot_former(__u64 slot)
{
	return (__u32)(slot >> SLOT_SINCE_BITS) & SLOT_ID;
}

SERVICE_INLINE __u64 slot_since(__u64 slot)
{
	return slot & SLOT_SINCE;
}

/* A time for `since`. */
SERVICE_INLINE __u64 slot_time(__u64 jiffies)
{
	return jiffies >> SERVICE_SLOT_SHIFT & SLOT_SINCE;
}

/* How long slots of a service are changing: `idle` × hold. The idle is the longest of the service's
 * protocols, for the packets of each: phases must be the same for all readers and writers of a
 * slot. At most SERVICE_IDLE_MAX_MS and SERVICE_HOLD_MAX: 2^25 ticks at 1000 Hz. */
SERVICE_INLINE __u32 slot_ticks(__u64 idle_jiffies, __u32 hold)
{
	return (__u32)((idle_jiffies * hold + (1u << SERVICE_SLOT_SHIFT) - 1) >>
		       SERVICE_SLOT_SHIFT);
}

SERVICE_INLINE enum slot_phase slot_phase(__u64 slot, __u64 jiffies, __u32 hold_ticks)
{
	__u32 former = slot_former(slot);
	__u64 age = (slot_time(jiffies) - slot) & SLOT_SINCE;

	if (!former)
		return SLOT_STABLE;
	if (former == slot_owner(slot))
		return SLOT_PINS_ONLY;
	if (age > hold_ticks && age <= SLOT_SINCE / 2)
		return SLOT_PINS_ONLY;
	return SLOT_CHANGING;
}

/* The slot of a flow: 0 … size - 1. */
SERVICE_INLINE __u32 slot_of(__u64 hash, __u32 size)
{
	return hash_scale((__u32)hash, size);
}

/* ---- pins ------------------------------------------------------------------------------------ */

/* {flow 32, backend 14, level 2, time 16}, the flow on top; all zero is a free slot of the bucket.
 * A flow is known by the hash of its whole tuple, also in services with `hash source`: the upper 32
 * bits select the bucket, the lower 32 are in the pin. With `hash tuple` the lower ones select the
 * slot too, so that a walk over the pins knows the slot of each.
 *
 * `time` is in ticks of one to two seconds, when the pin was last written. It wraps after 65536
 * ticks, 18 hours: a pin that has not been used since then seems young again for one life. Two
 * rules make that harmless. A look-up that finds an expired pin of its own flow frees it: so such a
 * pin belongs to a flow without packets since then, and the flow returns to its backend. A command
 * that gives the number of a backend to another one frees all pins that name it, expired or not. */
enum pin_level {
	PIN_HALF,  /* opened, and not heard again */
	PIN_FOUND, /* its first packet here opened nothing */
	PIN_TALKS, /* heard again with a packet that opens nothing */
	/* its client has closed it: lives for `linger` at most, and the next SYN is another
	 * flow's */
	PIN_CLOSED,
};

#define PIN_TIME_BITS   16
#define PIN_TIME        ((1u << PIN_TIME_BITS) - 1)
#define PIN_LEVEL_BITS  2
#define PIN_LEVEL       ((1u << PIN_LEVEL_BITS) - 1)
#define PIN_LEVEL_SHIFT PIN_TIME_BITS
#define PIN_ID_SHIFT    (PIN_TIME_BITS + PIN_LEVEL_BITS)
#define PIN_FLOW_SHIFT  32
_Static_assert(PIN_ID_SHIFT + SERVICE_BACKEND_BITS == PIN_FLOW_SHIFT, "layout");

struct pin_bucket {
	__u64 pin[SERVICE_PIN_WORDS];
};
_Static_assert(sizeof(struct pin_bucket) == 64, "layout");

SERVICE_INLINE __u64 pin_pack(__u32 flow, __u32 backend, __u32 level, __u32 time)
{
	return (__u64)flow << PIN_FLOW_SHIFT | (__u64)(backend & SLOT_ID) << PIN_ID_SHIFT |
	       (level & PIN_LEVEL) << PIN_LEVEL_SHIFT | (time & PIN_TIME);
}

SERVICE_INLINE __u32 pin_flow(__u64 pin)
{
	return (__u32)(pin >> PIN_FLOW_SHIFT);
}

SERVICE_INLINE __u32 pin_backend(__u64 pin)
{
	return (__u32)(pin >> PIN_ID_SHIFT) & SLOT_ID;
}

SERVICE_INLINE enum pin_level pin_level(__u64 pin)
{
	return (enum pin_level)(pin >> PIN_LEVEL_SHIFT & PIN_LEVEL);
}

/* A closed pin makes room for any other, then a pin of a lower level for one of a higher level. */
SERVICE_INLINE __u32 pin_worth(__u32 level)
{
	return (level + 1) & PIN_LEVEL;
}

SERVICE_INLINE __u32 pin_time_of(__u64 pin)
{
	return (__u32)pin & PIN_TIME;
}

SERVICE_INLINE __u32 pin_flow_of(__u64 hash)
{
	return (__u32)hash;
}

/* 0 … buckets - 1. */
SERVICE_INLINE __u32 pin_bucket_of(__u64 hash, __u32 buckets)
{
	return hash_scale((__u32)(hash >> 32), buckets);
}

/* A tick is 2^shift jiffies, one to two seconds: the same for all services and generations of a
 * kernel. */
SERVICE_INLINE __u32 pin_shift(__u32 hz)
{
	__u32 shift = 0;

	while (shift < 31 && 1u << shift < hz)
		shift++;
	return shift;
}

/* A time for a pin, modulo 2^16. */
SERVICE_INLINE __u32 pin_time(__u64 jiffies, __u32 shift)
{
	return (__u32)(jiffies >> shift) & PIN_TIME;
}

/* Ticks of pin time, rounded up. At most SERVICE_IDLE_MAX_MS. */
SERVICE_INLINE __u32 pin_ticks(__u64 idle_jiffies, __u32 shift)
{
	return (__u32)((idle_jiffies + (1ull << shift) - 1) >> shift);
}

/* How long a pin lives without being written. The time of a pin is written only when an eighth of
 * its life has passed, so the life is a seventh of the idle longer: a flow that speaks within its
 * idle finds its pin. */
SERVICE_INLINE __u32 pin_life(__u64 idle_jiffies, __u32 shift)
{
	__u32 ticks = pin_ticks(idle_jiffies, shift);

	return ticks + ticks / 7;
}

/* From this age on the time of a pin is written. */
SERVICE_INLINE __u32 pin_fresh(__u32 life)
{
	return life >> 3;
}

/* The life of a closed pin. idle_jiffies: of TCP, the only protocol whose pins close. */
SERVICE_INLINE __u32 pin_linger(__u64 idle_jiffies, __u32 hz, __u32 shift)
{
	__u64 linger = (__u64)SERVICE_LINGER_S * hz;

	return pin_life(linger < idle_jiffies ? linger : idle_jiffies, shift);
}

/* Ticks since the pin was written; 0 also when its time is a little ahead. The flow has been silent
 * for less than pin_fresh() ticks less. */
SERVICE_INLINE __u32 pin_age(__u64 pin, __u32 time)
{
	__u32 age = (time - (__u32)pin) & PIN_TIME;

	return age > PIN_TIME - SERVICE_PIN_AHEAD ? 0 : age;
}

/* A pin lives for more than its life, or its linger if it is closed, by less than two ticks. A free
 * slot of the bucket does not live. */
SERVICE_INLINE int pin_lives(__u64 pin, __u32 time, __u32 life, __u32 linger)
{
	return pin_backend(pin) != BACKEND_NONE &&
	       pin_age(pin, time) <= (pin_level(pin) == PIN_CLOSED ? linger : life);
}
