/* SPDX-License-Identifier: GPL-2.0-only */
/* The pins and tunnels of services, and the test whether a packet belongs to one. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/service.h"
#include "xdp/classify.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/service-maps.bpf.h"

/* The pins of a service live as long as the service, across policies. */
struct pins_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct pin_bucket));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct pins_map);
} pins SEC(".maps");

/* For services with tunnels: the numbers of backends, by address and service. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct tunnel_key);
	__type(value, struct tunnel_end);
} tunnels SEC(".maps");

#define SERVED_BIT(symbol, name, verdict, group, text)                  \
	| (VERDICT_##verdict == VERDICT_PASS && GROUP_SERVES_##group && \
			   (int)REASON_##symbol < REASON_DROP_FIRST     \
		   ? 1u << ((int)REASON_##symbol & 31)                  \
		   : 0)
#define REASONS_SERVED (0 WEIR_REASONS(SERVED_BIT))
_Static_assert(REASON_DROP_FIRST <= 32, "a bit for each reason to pass");

/* Does a packet that passed for this reason go on to the services? The others are answered,
 * redirected, or were never understood. */
static __always_inline bool for_services(int reason)
{
	return (__u32)reason < REASON_DROP_FIRST && REASONS_SERVED >> reason & 1;
}

static __always_inline bool is_icmp(const struct packet *pkt)
{
	return pkt->has_l4 && !pkt->neighbour &&
	       (pkt->proto == IPPROTO_ICMP || pkt->proto == IPPROTO_ICMPV6);
}

/* May a packet of no service be one of nat or fullnat? Only its first fragment has its ports. */
static __always_inline bool is_fragment_of_nat(const struct packet *pkt)
{
	return !marker_is(MARK_NATS, 0) && pkt->fragment == FRAGMENT_LATER;
}

static __always_inline void service_tally(__u32 id, enum service_event event)
{
	struct service_counter *c = is_test() ? NULL : service_counter(id);

	if (c)
		c->event[event]++;
}

/* Which service? With only the destination: the service of the address; with the source: is it an
 * address of any service? */
enum service_by { BY_PACKET, BY_DESTINATION, BY_SOURCE };

#define MEMBERS(name) TABLE_NUMBER(NULL, MATRIX_CONSTANT(MATRIX_MEMBERS, name))

/* Copied first: the verifier follows one look-up for both ends. */
static __always_inline policy_row vip_row(const struct packet *pkt, enum service_by by)
{
	__u32 addr[4];

	__builtin_memcpy(addr, by == BY_SOURCE ? pkt->src : pkt->dst, sizeof(addr));
	return side_row(SIDE_MEMBER, pkt->family, addr);
}

/* A field of a packet; only the address if the other fields do not matter. */
static __always_inline bool add_member(struct packet *pkt, enum service_by by, struct matrix *m,
				       const int field)
{
	m->row[field] = m->row[FIELD_DESTINATION];
	return !matrix_uses(NULL, MATRIX_MEMBERS, field) || by != BY_PACKET ||
	       matrix_add(m, MATRIX_MEMBERS, field, field_row(pkt, MATRIX_MEMBERS, field));
}

/* The rows of the fields that make a packet a service's. */
static __always_inline bool member_rows(struct packet *pkt, enum service_by by, struct matrix *m)
{
	m->word = ~0ull;
	return matrix_add(m, MATRIX_MEMBERS, FIELD_DESTINATION, vip_row(pkt, by)) &&
	       add_member(pkt, by, m, FIELD_DPORT) && add_member(pkt, by, m, FIELD_PROTO);
}

static __always_inline __u64 member_word(const struct matrix *m, __u32 w)
{
	return MEMBERS(M_WORDS) == 1
		       ? m->word
		       : m->row[FIELD_DESTINATION][w + 1] & m->row[FIELD_DPORT][w + 1] &
				 m->row[FIELD_PROTO][w + 1];
}

/* Searches the buckets, for a packet with ports: the service's number and 1, or 0. */
static __always_inline __u32 vip_service(const struct packet *pkt)
{
	__u32 key = vip_key(bpf_htons(pkt->dport), pkt->proto);
	__u64 addr[2];

	if (pkt->family == 4)
		return vip_service4(NULL, pkt->dst[0], key);
	__builtin_memcpy(addr, pkt->dst, sizeof(addr));
	return vip_service6(NULL, addr, key);
}

/* The number of the service, or NO_SERVICE. Global, because it is verified once for all callers. */
__noinline int service_find(struct packet *pkt, __u32 by)
{
	struct matrix m = {};

	if (!pkt || !pkt->family || !policy.services)
		return NO_SERVICE;
	if (by == BY_PACKET && has_ports(pkt)) {
		__u32 service = vip_service(pkt);

		if (service || TABLE_IS(NULL, VIP_CONSTANT(VIPS_ALL), 1))
			return (int)service - 1;
	}
	if (!member_rows(pkt, by, &m))
		return NO_SERVICE;
	for (__u32 w = 0; w < POLICY_WORDS_MAX; w++) {
		__u64 word;

		/* Read here, so that the verifier knows it. */
		if (w >= MEMBERS(M_WORDS))
			break;
		word = member_word(&m, w);
		if (word)
			return w * 64 + lowest_bit(word);
	}
	return NO_SERVICE;
}
