// SPDX-License-Identifier: GPL-2.0-only
// Checks via path: headers for their packets by the functions of the datapath itself
// (xdp/outer.bpf.h), so that both write the same bytes, and the map `answers` for their flows.
#include "ctl/datapath/answers.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

int answers_await(const struct instance *i, const struct answer_key *key, uint64_t ms)
{
	struct err err = {0};
	struct clock clock;
	uint64_t until;
	int code = instance_clock(i, &clock, &err);

	if (code)
		return code;
	if (__atomic_load_n(&i->knobs->bypass, __ATOMIC_RELAXED) > clock.jiffies)
		return -EAGAIN;
	until = clock_after_ms(&clock, ms);
	return bpf_map_update_elem(i->answers, key, &until, BPF_ANY) ? -errno : 0;
}

void answers_forget(const struct instance *i, const struct answer_key *key)
{
	bpf_map_delete_elem(i->answers, key);
}

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
// The kernel's types are narrowed there without casts.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "xdp/outer.bpf.h"
#pragma GCC diagnostic pop

// Sum of the inner packet, as 16 bit words of the frame.
static uint32_t sum_words(const uint8_t *packet, size_t length)
{
	uint32_t sum = 0;
	uint16_t word;

	for (size_t i = 0; i < length; i += 2) {
		word = 0;
		memcpy(&word, packet + i, length - i < 2 ? 1 : 2);
		sum += word;
	}
	return (sum & 0xffff) + (sum >> 16);
}

static void write_tunnel(uint8_t *at, const struct backend *to, struct outer o, uint32_t mode)
{
	if (to->family == 4)
		write_tunnel4(at, to, o, mode);
	else
		write_tunnel6(at, to, o, mode);
}

uint8_t *wrap_packet(const struct backend *to, uint32_t mode, uint64_t hash, uint8_t *packet,
		     size_t length)
{
	uint32_t family = packet[0] >> 4, outer = outer_bytes(mode, to->family);
	uint8_t *link = packet - outer - link_bytes(to->vlan);
	uint32_t carried = mode == SERVICE_DR ? family : to->family;
	struct outer o = {
		.hash = hash, .length = (uint32_t)length, .proto = outer_proto(family, mode)};
	uint8_t head[LINK_BYTES];

	if (service_mode_does(mode) & MODE_NAT)
		return NULL;
	o.tos = family == 4 ? hop_less4((void *)packet) : hop_less6((void *)packet);
	o.inner = sum_words(packet, length);
	// Written elsewhere: it may write more than a header without a tag has.
	write_link(head, to, to->vlan, carried == 4 ? ETH_P_IP : ETH_P_IPV6);
	memcpy(link, head, link_bytes(to->vlan));
	if (outer)
		write_tunnel(packet - outer, to, o, mode);
	return link;
}
