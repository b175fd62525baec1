/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of services and backends that each program which sends to backends needs. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "common/abi.h"
#include "common/service.h"
#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STAGES);
	__type(key, __u32);
	__type(value, __u32);
} stages SEC(".maps");

/* Arrays of one value each, which is a whole table: a marker has its address, another one its
 * number of elements. */
struct one_value {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* set at load */
};

struct one_value services SEC(".maps"); /* struct service, by number in the policy */
struct one_value rings SEC(".maps");    /* __u64: the slots of all services, one after the other */
/* struct backend, by number; kept over policies as the two maps below. */
struct one_value backends SEC(".maps");

static __always_inline const struct service *service_at(__u64 number)
{
	return MARKER_ELEMENT(const struct service, MARK_SERVICES, MARK_SERVICES_N, number);
}

static __always_inline struct backend *backend_at(__u64 id)
{
	return MARKER_ELEMENT(struct backend, MARK_BACKENDS, MARK_BACKENDS_N, id);
}

static __always_inline const __u64 *slot_at(__u64 index)
{
	return MARKER_ELEMENT(const __u64, MARK_SLOTS, MARK_SLOTS_N, index);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct service_counter);
} balanced SEC(".maps");

/* By interface index. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} egress SEC(".maps");

static __always_inline struct service_counter *service_counter(__u32 id)
{
	return bpf_map_lookup_elem(&balanced, &id);
}

static __always_inline void count_sent(__u32 id, __u32 bytes, bool opens, bool quoted)
{
	struct service_counter *c = service_counter(id);

	if (!c)
		return;
	c->packets++;
	c->bytes += bytes;
	if (opens)
		c->event[SERVICE_OPENED]++;
	if (unlikely(quoted))
		c->event[SERVICE_QUOTED]++;
}
