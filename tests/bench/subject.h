// SPDX-License-Identifier: GPL-2.0-only
// Programs under test: Weir with a policy, and its peers with the same addresses. A subject can be
// the target of a tail call or attached. If the kernel refuses one, the bench ends, except for
// peers that may be missing.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/instance.h"
#include "tests/bench/draw.bpf.h"
#include "tests/bench/sets.h"

// The place in memory that the kernel gives a program changes its time by up to a third. So each is
// loaded several times, with the same maps where it is a peer, and measured in each place.
#define SUBJECT_LOADS 3

struct subject {
	const char *name;
	size_t loads;
	int programs[SUBJECT_LOADS]; // -1: nothing to run
	char *skipped;               // the reason; NULL: not skipped
	void *own;
	void (*choose)(void *own,
		       size_t load); // makes the load the one that runs; NULL: nothing to do
	void (*release)(void *own);
};

void subject_free(struct subject *s);
#define CLEANUP_SUBJECT CLEANUP(subject_free)
// The program of one load, ready to run.
int subject_load(const struct subject *s, size_t load);

// Returns XDP_DROP.
void subject_empty(struct subject *ret);
// Moves the head by `grow` bytes and returns XDP_TX.
void subject_sender(uint8_t grow, struct subject *ret);

// Weir as attached: root program, jump, policy. The policy file is compiled by the real compiler;
// NULL: the empty policy. Packets arrive on interface 1, the first one of the policy.
struct weir_options {
	const char *policy;
	const char *quick;         // a quick rule before its rules; NULL: none
	const struct set *blocked; // hosts in the overlay; NULL: empty overlay
	bool armed;                // a trial is running, its deadline is a day away
	bool root_only;            // a program that only returns XDP_DROP instead of the policy
	bool changing;             // all slots of its services are changing
	uint32_t sample;           // packets that are sampled, of 2^32
};
// Skipped with the message if Weir refuses it.
void subject_weir(const struct weir_options *o, struct subject *ret);
// Packets arrive on this device, in the namespace of the caller; default: the loopback device, 1.
void subject_weir_iface(struct subject *s, uint32_t ifindex);
// The program that the root program jumps to, of the first load; the caller closes it.
int subject_weir_policy(const struct subject *s);
// From now on so many of 2^32 packets are sampled, for a day; 0: none.
void subject_weir_sample(const struct subject *s, uint32_t share);

// One look-up in a kernel map with the set: BPF_MAP_TYPE_HASH of hosts, LPM_TRIE of prefixes.
void subject_hash(const struct set *s, struct subject *ret);
void subject_lpm(const struct set *s, struct subject *ret);
// A counter for each IPv4 source in a BPF_MAP_TYPE_LRU_HASH.
void subject_lru(uint32_t entries, struct subject *ret);
// Linear scan of the rules.
void subject_linear(const struct bench_rule *rules, size_t n, struct subject *ret);
// xdp-filter in "deny" mode from the objects of Debian's package; what: "all" or "ip". It does not
// support prefixes and gets the first address of each. Skipped if the package is missing.
void subject_xdp_filter(const char *what, const struct set *const *sets, size_t n,
			struct subject *ret);

// Katran's balancer, from FOLDER/MODE.o (ipip or gue), with one VIP, 64 backends, and a table of
// flows for the CPU.
void subject_katran(const char *folder, const char *mode, int cpu, struct subject *ret);

// Bounds: programs written for one row, with the least that its task needs.
// The source in a table of the same kind as Weir's, hosts or prefixes, and one counter.
void subject_floor_filter(const struct set *s, struct subject *ret);
// The same for IPv4 hosts, with instructions that do nothing: as many as Weir executes.
void subject_floor_padded(const struct set *s, struct subject *ret);
// An IPv4 host in a table, and a counter of its own beside the common one.
void subject_floor_overlay(const struct set *s, struct subject *ret);
// The line of an IPv4 source, in which the time of its last packet is written.
void subject_floor_limit(struct subject *ret);
// A balancer: ipip to `backends` backends, 10.0.1.1 and following, by a keyed hash of the flow;
// three counters.
void subject_floor_ipip(size_t backends, struct subject *ret);
// One random bucket in as many pins as the service has room for, and the frame back as in ipip.
void subject_pins_read(size_t pins, struct subject *ret);
