// SPDX-License-Identifier: GPL-2.0-only
// The policy as values: made by resolve, compiled by ctl/table, without names, text or open
// defaults.
//
// Contract:
// - Everything belongs to the struct resolved and is freed by resolved_free. Members of type struct
//   diag_at point into texts of the diag that parsed the policy, which must live as long.
// - `rules` are in evaluation order: all `always` rules first, then the quick rules, then the
//   others, each in text order.
// - A field that is absent (given == false, RESOLVED_ANY) is satisfied by every packet the rule can
//   see. A field that is given is satisfied only by packets that *have* the field: "not" is
//   applied.
// - What a field implies is applied: a rule with ports has `proto` given, within {6, 17, 132}; with
//   flags, {6}; with types, the protocols of its families (1, 58); with established, within {6,
//   17}.
// - A rule without `ethertype` sees IP packets only, and never neighbour discovery unless it has
//   `icmp`; a rule with `ethertype` sees every frame. These two are left to the compiler.
// - Nothing here depends on the order of hash tables: the same texts and answers give the same
//   bytes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/words.h"
#include "ctl/base/addr.h"
#include "ctl/base/diag.h"
#include "ctl/policy/arena.h"
#include "ctl/policy/rule_fields.h"

struct place {         // where something was written
	uint16_t file; // index into resolved.files
	uint32_t line; // from 1; 0: no line (an interface of -i)
};

// ---- address sets -------------------------------------------------------------------------------

// Sorted by (address, len), each prefix once. The longest prefix that contains an address decides
// by `in`; no prefix: out. Minimal: each prefix decides differently from the nearest one around it
// (the first level is all `in`). Host bits are zero. Addresses are in host order: compare as
// numbers.
struct resolved_prefix4 {
	uint32_t addr;
	uint32_t line; // place.line
	uint16_t file; // place.file
	uint8_t len;
	bool in;
};

struct resolved_prefix6 {
	uint64_t hi, lo;
	uint32_t line;
	uint16_t file;
	uint8_t len;
	bool in;
};

struct resolved_addresses {
	const char *name; // name of the set; NULL: a list in a rule or service
	struct diag_at at;
	struct place place;
	bool fixed;  // has only literal addresses: the next resolve gives the same
	bool listed; // list files are in it
	// host names or own addresses are in it: they may be others at the next resolve of the same
	// texts
	bool asked;
	// contains no address; "not" of an empty list is empty too (its rules match nothing)
	bool empty;
	const struct resolved_prefix4 *v4;
	const struct resolved_prefix6 *v6;
	size_t n4, n6;
};

struct resolved_pair {
	struct addr addr;
	uint16_t first, last; // ports
};

struct resolved_dynamic {
	const char *name;
	struct diag_at at;
	struct place place;
	uint32_t max;
	uint64_t expire_ms; // 0: never
	uint8_t mask4, mask6;
	bool count; // packets of each entry
};

// ---- fields of a rule ---------------------------------------------------------------------------

struct range16 {
	uint16_t first, last;
};

struct resolved_ranges { // sorted, disjoint, not adjacent; at least one where it is given
	bool given;
	const struct range16 *at;
	size_t n;
};

struct resolved_pair_set {
	const char *name;
	uint32_t addresses;             // list of all addresses: index into resolved.addresses
	const struct resolved_pair *at; // sorted by address and port, ports disjoint, not adjacent
	size_t n;
	struct resolved_ranges ports; // of all pairs
};

enum resolved_address_kind { RESOLVED_ANY, RESOLVED_SET, RESOLVED_DYNAMIC };

struct resolved_address {
	uint8_t kind;   // enum resolved_address_kind
	uint32_t index; // into resolved.addresses or resolved.dynamics
};

struct resolved_bits { // a bit for each value: protocols, interfaces, DSCP values
	bool given;
	uint64_t bits[4];
};

static inline bool bits_has(const uint64_t bits[4], unsigned value)
{
	return bits[value / 64] >> value % 64 & 1;
}

static inline void bits_set(uint64_t bits[4], unsigned value)
{
	bits[value / 64] |= (uint64_t)1 << value % 64;
}

struct resolved_icmp {  // one type of one family
	uint8_t family; // 4: ICMP, 6: ICMPv6
	uint8_t type;
	uint8_t code_first, code_last;
};

struct resolved_types {
	bool given;
	const struct resolved_icmp *at; // sorted by family, type
	size_t n;
};

struct resolved_flags { // (packet's flags & mask) == set
	bool given;
	uint8_t set, mask;
};

struct resolved_word { // the packet has the property; negated: it could have, and has not
	bool given, negated;
};

struct resolved_edges {     // a set of numbers: those with an odd number of edges not above
	const uint64_t *at; // sorted
	size_t n;           // even
};

struct resolved_macs {
	bool given;
	uint32_t index; // into resolved.macs
};

struct resolved_pairs { // address and port of one end are a pair of the set, or not
	bool given, negated;
	uint32_t index; // into resolved.pairs
};

struct resolved_span {
	bool given;
	uint32_t first, last;
};

struct resolved_probability {
	bool given;
	uint64_t share; // of 2^32
};

struct resolved_limit { // a condition: the packet exceeds the rate (or, `under`, does not)
	bool given, under;
	bool connections; // not a rate: so many connections that are open, in `count`
	bool bits;        // count and burst are bits of the frame, else packets
	uint64_t count;   // a period
	uint32_t period_ms;
	uint64_t burst;       // at least 1
	uint8_t per;          // enum policy_per
	uint8_t mask4, mask6; // per source or destination
	uint32_t max;         // entries of that table
};

struct resolved_log {
	bool given;
	uint64_t count;
	uint32_t period_ms;
	uint32_t snap;
};

struct resolved_add {
	bool given, destination;
	uint32_t dynamic; // index
	uint64_t for_ms;  // the set's expire if the rule has no `for`; 0: never
};

#define RULE_TYPE(form, type)                  typedef type form_##form;
#define RULE_MEMBER(symbol, member, form, ...) form_##form member;

RULE_FORMS(RULE_TYPE)

struct resolved_rule {
	const char *identity; // counters follow it; unique in the policy
	bool named;           // the identity is the rule's own name
	struct diag_at at;
	struct place place;
	uint32_t text_index; // its number among the rules of the text, from 0
	bool always;
	bool quick;           // `place` has its number
	bool never;           // earlier rules match all its packets (there was a warning)
	bool service;         // not of the text: the packets of a service, for the compiler
	bool impossible;      // some field is empty: it matches nothing (there was a warning)
	uint8_t action;       // enum policy_action
	const char *redirect; // interface name

	RULE_FIELDS(RULE_MEMBER) // fields and conditions

	// Modifiers.
	struct resolved_log log;
	struct resolved_add add;
};

// ---- the whole ----------------------------------------------------------------------------------

struct resolved_interface {
	const char
		*name; // may end in '*': it then means every device that begins like it and has no
	// longer match among the interfaces (the exact name first, then longer patterns)
	struct diag_at at;
	struct place place;
	uint8_t mode; // enum attach_mode
	bool pattern, optional;
	bool default_drop;
	struct diag_at default_at; // location of the statement that sets it; file NULL: no
				   // statement does
	struct place default_place;
};

struct resolved_file {    // a text with locations: policy files first, then list files
	const char *name; // as it is written, seen from the main file's folder
	bool list;
	uint64_t entries, skipped; // for a list: valid lines; invalid lines that `lax` ignores
	bool stale;                // its last good content was used
};

struct resolved_name { // a host name and its addresses, without those that no packet has
	const char *name;
	struct place place;       // where it was written first
	const struct addr *addrs; // sorted, each once
	size_t n;
	uint32_t ttl_s;
	bool stale;
};

struct resolved {
	struct arena memory; // owns the memory of all pointers

	struct resolved_interface *interfaces;
	size_t n_interfaces;
	// for interfaces without a specific default, and without any interface
	bool default_drop;
	struct diag_at default_at;
	bool malformed_pass;
	bool essentials_filter;
	uint8_t fragments[256]; // enum policy_treatment of later fragments, by protocol
	struct place fragments_place[256];
	const char *seed; // NULL: made once and kept

	struct resolved_addresses *addresses;
	size_t n_addresses; // the named sets in text order, then the lists
	size_t n_sets;      // of these are named
	struct resolved_dynamic *dynamics;
	size_t n_dynamics;
	struct resolved_rule *rules;
	size_t n_rules, n_always, n_quick;
	struct resolved_pair_set *pairs; // the sets of pairs, in text order
	size_t n_pairs;
	struct resolved_edges *macs; // the lists of MAC addresses, each once
	size_t n_macs;
	struct resolved_service *services;
	size_t n_services;
	struct resolved_expect *expects;
	size_t n_expects;

	struct resolved_file *files;
	size_t n_files;
	struct resolved_name *names;
	size_t n_names;
};

void resolved_free(struct resolved *r);
void resolved_cleanup(struct resolved **r);
#define CLEANUP_RESOLVED CLEANUP(resolved_cleanup)

// Does the set contain the address? *ret_place is the location of the prefix that decides, also of
// an exception; it is not set if no prefix decides. ret_place may be NULL.
bool resolved_contains(const struct resolved_addresses *s, const struct addr *a,
		       struct place *ret_place);

struct resolved_service;
// Is there a packet that service s of a and service t of b would both claim?
bool resolved_services_meet(const struct resolved *a, const struct resolved_service *s,
			    const struct resolved *b, const struct resolved_service *t);

// ---- expect -------------------------------------------------------------------------------------

struct resolved_packet {
	uint16_t ethertype; // 0x0800, 0x86dd, or as in the line
	bool ip;            // from here to the last line but one: an IP packet
	uint8_t proto;
	struct addr from, to;  // of one family
	uint16_t sport, dport; // tcp, udp, sctp
	uint8_t flags;         // tcp
	uint8_t type, code;    // icmp, icmp6
	uint8_t ttl;
	bool fragment; // a later fragment
	// IP length, frame length without IP; 0: the smallest that holds the headers
	uint32_t length;
	uint16_t vlan;  // 0: untagged
	bool mac_given; // else the source is 02:00:00:00:00:01
	uint64_t mac;
	uint32_t iface; // index into interfaces
	bool over, established, unroutable;
};

struct resolved_expect {
	struct diag_at at;
	struct place place;
	uint8_t verdict;      // enum expect_verdict
	const char *redirect; // EXPECT_REDIRECT
	uint32_t service;     // EXPECT_SERVICE
	// a backend of the service sends the packets: resolve_answer() has compared them with the
	// policy, and no rule meets them
	bool answer;
	uint8_t via;                           // enum expect_via
	uint32_t rule;                         // VIA_RULE: index into rules
	const struct resolved_packet *packets; // at least one
	size_t n_packets;
};

// ---- services -----------------------------------------------------------------------------------

struct resolved_backend {
	struct diag_at at;
	struct place place;
	bool here; // this host; addr is not set
	struct addr addr;
	uint16_t port;   // 0: the packet's
	uint32_t weight; // 0: drained
	bool backup;
};

struct resolved_check {
	struct diag_at at;
	uint8_t kind; // enum check_kind
	// http and https. host NULL: the backend's address; sni NULL: host; body NULL: any; ca
	// NULL: the authorities of the system.
	const char *path, *host, *sni, *ca, *body;
	const struct range16 *statuses;
	size_t n_statuses;
	bool insecure;                // certificates are not verified
	const char *name;             // dns: the question
	uint16_t type;                // its type
	const char *const *arguments; // exec, with a final NULL
	uint16_t port;                // 0: the backend's, or the service's first
	uint64_t every_ms, timeout_ms;
	uint32_t rise;     // good checks in a row
	uint32_t fall, of; // `fall` failed checks of the last `of`, at most POLICY_FALL_OF
	bool via_path;
};

struct resolved_service {
	const char *name;
	struct diag_at at;
	struct place place;
	uint32_t vip; // index into addresses
	struct resolved_bits proto;
	bool any_port;
	struct resolved_ranges ports;      // given unless any_port
	uint8_t mode;                      // enum service_mode
	uint64_t idle_tcp_ms, idle_udp_ms; // idle_tcp_ms for sctp too
	uint64_t lost_ms;                  // from "failing" to "down"
	uint64_t ramp_ms;                  // from "up" to the whole weight
	uint32_t keep; // share of the weight that is kept despite failing checks, in 1/10,000
	bool udp_move, hash_source;
	const struct prefix *source;
	const struct diag_at *source_at; // where each is written
	size_t n_source;
	uint32_t ring;
	uint64_t pins;        // 0 in modes nat and fullnat
	uint64_t connections; // 0 in other modes than nat
	bool pins_given;      // by the policy; else they are the default for its number of services
	struct resolved_check check;
	const struct resolved_backend *backends;
	size_t n_backends;
};
