// SPDX-License-Identifier: GPL-2.0-only
// Packets that show what a rule decides: those that it matches and that no earlier rule decides.
#pragma once

#include "ctl/import/steps.h"

struct probe_packet {
	address_number f[MATCH_FIELDS];
	uint8_t family, flags;
	unsigned on;
	bool established;
};

struct probing {
	const struct import_rules *steps;
	const struct import_options *options;
	address_number source[2]; // IPv4, IPv6: in no list of addresses, where that is possible
	size_t work;              // comparisons so far
};

void probe_begin(struct probing *p, const struct import_rules *steps,
		 const struct import_options *options);
// The destination has to be an address of this host; which, is known later.
bool probe_to_self(const struct probing *p);
// The value of packets that no rule asks for, with the protocol and type of the packet.
address_number probe_usual(const struct probing *p, enum match_field field,
			   const struct probe_packet *packet);
bool probe_is_icmp(const struct probe_packet *packet);
// NULL in *ret: the default. False: the address of this host decides, at the rule *ret.
bool probe_decide(const struct probing *p, const struct probe_packet *packet,
		  const struct import_rule **ret);
// False: no host sends the packet, or Weir decides it elsewhere.
bool probe_is_usable(const struct probing *p, const struct probe_packet *packet);
// Does the packet pass under `default drop`, unless a rule matches it?
bool probe_is_essential(const struct probe_packet *packet);
// A packet that the rule decides. False: none was found; *ret is one that the rule matches, and
// may be unusable.
bool probe_find(struct probing *p, const struct import_rule *rule, struct probe_packet *ret);
