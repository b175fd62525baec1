// SPDX-License-Identifier: GPL-2.0-only
// Programs under test: Weir with a policy, and its peers with the same addresses. Each can be jumped into or
// attached; each ends the bench when the kernel refuses it, but for those that a machine may lack.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/instance.h"
#include "tests/bench/draw.bpf.h"
#include "tests/bench/sets.h"

struct subject {
	const char *name;
	int program;   // -1: skipped
	char *skipped; // why; NULL: it is here
	void *own;
	void (*release)(void *own);
};

void subject_free(struct subject *s);
#define CLEANUP_SUBJECT CLEANUP(subject_free)

// Returns XDP_DROP.
void subject_empty(struct subject *ret);
// Moves the head by so many bytes, if any, and returns XDP_TX.
void subject_sender(uint8_t grow, struct subject *ret);

// Weir as it is attached: entry, jump, policy. The policy is compiled from the file by the real compiler;
// NULL: the empty one. Interface 1 is the one that packets come in on, and the first one of the policy.
struct weir_options {
	const char *policy;
	const struct set *blocked; // hosts in the overlay; NULL: none
	bool armed;                // a trial is running, an hour before its deadline
	bool entry_only;           // in place of the policy a program that only returns XDP_DROP
	bool changing;             // every slot of its services
};
void subject_weir(const struct weir_options *o, struct subject *ret);
// Packets come in on this device, in the namespace of the caller; default: the loopback device, 1.
void subject_weir_iface(struct subject *s, uint32_t ifindex);

// One look-up in a map of the kernel that holds the set: BPF_MAP_TYPE_HASH of hosts, LPM_TRIE of prefixes.
void subject_hash(const struct set *s, struct subject *ret);
void subject_lpm(const struct set *s, struct subject *ret);
// A counter for each IPv4 source in a BPF_MAP_TYPE_LRU_HASH.
void subject_lru(uint32_t entries, struct subject *ret);
// The rules one after the other.
void subject_linear(const struct bench_rule *rules, size_t n, struct subject *ret);
// xdp-filter in "deny" mode from the objects of Debian's package; what: "all" or "ip". Of prefixes, for which
// it has no words, it gets the first address. Skipped where the package is missing.
void subject_xdp_filter(const char *what, const struct set *const *sets, size_t n,
			struct subject *ret);
