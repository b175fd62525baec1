// SPDX-License-Identifier: GPL-2.0-only
// Options and counts of the translation of rules.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A condition of another tool, for which a rule tests a mark of the packet.
struct import_mark {
	char *text;    // the whole line, for comments
	bool rewrites; // a target of table nat that is not known
};

// A device of this host, and the interfaces of the policy whose frames it may receive: itself, or
// those below it. Bits of the interfaces.
struct import_device {
	const char *name;
	uint64_t on;
};

// Effects of tables of iptables that are not translated.
struct import_facts {
	bool untracks, helpers, zones; // of connection tracking
	bool masquerades;              // rewrites sources
	bool ttl, dscp, macs;          // rewrites them before the hook
	bool diverts;                  // takes packets from the hook forward
};

struct import_options {
	const char *source;            // where the text comes from, for the head of the policy
	const char *const *interfaces; // by their names in the ruleset
	size_t n_interfaces;           // at most 63; 0: conditions on interfaces are omitted
	const struct import_device *devices; // all of this host; what is not here may appear later
	size_t n_devices;
	// For `forward`: addresses of this host, and of broadcasts that it receives.
	const char *const *own, *const *broadcasts;
	size_t n_own, n_broadcasts;
	bool forward;                    // translate the chains of the hook forward, not of input
	const struct import_mark *marks; // IMPORT_MARK + index
	size_t n_marks;
	struct import_facts facts;
	uint64_t now_s; // the time, for elements that expire
};

#define IMPORT_MARK 0x77650000u

struct import_counts {
	size_t translated; // rules that decide as the original does
	size_t widened;    // rules that pass more than the original
	size_t omitted;    // rules that are left to nft
	size_t lacking;    // those in `widened` without a condition or set elements that Weir lacks
};
