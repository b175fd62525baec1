// SPDX-License-Identifier: GPL-2.0-only
// The policy as written: one node for each statement, with its location; nothing is looked up.
//
// The parser fills it, check and resolve read it. Words keep their spelling: the field in which a
// word is used decides whether it is an address, a port or a protocol. Scalars whose form the
// grammar fixes (numbers, rates, times, spans) are values already. Nodes own their lists; all
// strings are in `strings`. Each diag_at points into a text that belongs to the diag.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/limits-policy.h"
#include "common/words.h"
#include "ctl/base/diag.h"
#include "ctl/base/vec.h"
#include "ctl/policy/arena.h"
#include "ctl/policy/index.h"
#include "ctl/policy/rule_fields.h"

// ---- lists --------------------------------------------------------------------------------------

enum ast_item_kind {
	AST_WORD,   // a word
	AST_DEFINE, // $NAME; word is NAME
	AST_SET,    // @NAME; word is NAME
	AST_HOST,   // host WORD
	AST_FILE,   // file STRING, in sets only
	AST_GEO,    // country WORD, asn WORD
	AST_URL,    // url STRING, in sets only
	AST_PAIR,   // WORD port SPAN, in sets of pairs only
};

// Kinds of words in the position of an address: weir-policy(5), ADDRESSES.
enum ast_word {
	AST_ANY,
	AST_SELF,
	AST_ADDRESS, // or a prefix
	AST_RANGE,
	AST_NAME,  // has a dot: a host
	AST_LABEL, // has none: a service
};
enum ast_word ast_word_of(const char *word);

struct ast_url { // what only AST_URL has
	uint64_t every_ms;
	const char *sha256, *ca; // NULL: absent
};

struct ast_item {
	struct diag_at at;
	const char *word;
	const struct ast_url *url;      // AST_URL
	uint32_t line;                  // of `at`, from 1
	uint32_t min;                   // AST_FILE, AST_URL: fewer good lines refuse the file
	uint16_t port_first, port_last; // AST_PAIR
	uint32_t value;                 // set by resolve: the number of its value, plus one
	uint8_t kind;                   // enum ast_item_kind
	uint8_t as_address;             // AST_WORD: enum ast_word
	uint8_t geo;                    // AST_GEO: enum geo_kind
	bool negated;                   // with "not"
	bool lax;                       // AST_FILE, AST_URL
	bool wide;                      // the same, and host names
};

// LIST of the grammar. "not a, b" is negated as a whole and its first item is not.
struct ast_list {
	bool given, negated;
	struct diag_at at; // from its first to its last token
	VEC(struct ast_item) items;
};

// ---- rules --------------------------------------------------------------------------------------

#define AST_SYMBOL(symbol, ...) AST_##symbol,

enum ast_field {
	RULE_FIELDS(AST_SYMBOL) AST_RULE_FIELDS,
	AST_CODE = AST_RULE_FIELDS, // the list after the list of AST_TYPE
	AST_FLAGS_MASK,             // the flags after the flags of AST_FLAGS; no items for "none"
	AST_FIELDS,
};

struct ast_span {
	bool given;
	uint32_t first, last;
	struct diag_at at;
};

struct ast_rate { // RATE: `count` packets or bits a period
	bool given, bits;
	uint64_t count;
	uint32_t period_ms; // 1000, 60000, 3600000
	struct diag_at at;
};

struct ast_limit { // "over" and "under"
	bool given, under;
	bool connections; // "N connections": the rate's count
	struct ast_rate rate;
	uint64_t burst; // 0: absent
	bool has_per, has_mask, has_max;
	uint8_t per; // enum policy_per
	uint8_t mask4, mask6;
	uint32_t max;
	struct diag_at at, mask_at, max_at, burst_at;
};

struct ast_log {
	bool given;
	struct ast_rate rate; // given or not
	uint32_t snap;        // 0: absent
	struct diag_at at;
};

struct ast_add {
	bool given, destination;
	const char *set;
	uint64_t for_ms; // 0: absent
	struct diag_at at, set_at;
};

struct ast_rule {
	struct diag_at at; // the action's word; the name's where there is one
	uint32_t line;
	const char *name;     // NULL: none
	const char *quick;    // "quick 3": a quick rule; NULL: of the policy
	const char *text;     // tokens after the name, joined by one blank; no blank before ","
	const char *identity; // filled by check: the name, else the text, "#2" for its second use
	bool broken;          // an error was found in it; only its name counts
	bool always;
	uint8_t action;                      // enum policy_action
	const char *redirect;                // interface
	struct diag_at field_at[AST_FIELDS]; // the field's keyword; file NULL: absent
	struct ast_list fields[AST_FIELDS];  // fields that are lists
	struct ast_span spans[AST_FIELDS];   // fields that are spans
	bool negated[AST_FIELDS];            // fields that are words: after "not"
	uint64_t probability;                // in 2^-32, 1 .. 2^32
	struct ast_limit limit;
	struct ast_log log;
	struct ast_add add;
};

// ---- services -----------------------------------------------------------------------------------

struct ast_backend {
	struct diag_at at;
	uint32_t line;
	const char *word; // an address, or NULL for "here"
	bool has_port, has_weight, backup;
	uint16_t port;
	uint32_t weight;
};

struct ast_check { // absent parts keep zero; check and resolve put the defaults in
	bool given;
	struct diag_at at;
	uint8_t kind;                              // enum check_kind
	const char *path, *host, *sni, *ca, *body; // http, https
	struct ast_span statuses[POLICY_STATUSES]; // the same
	const char *arguments[POLICY_ARGUMENTS];   // exec; the first is the program
	const char *name;                          // dns
	uint16_t type;                             // type of its question; 0: not given
	size_t n_statuses, n_arguments;
	bool has_port, via_path, insecure;
	uint16_t port;
	uint64_t every_ms, timeout_ms;
	uint32_t rise, fall, of;
	struct diag_at every_at, body_at, via_at;
};

enum ast_option { // each once, except backend
	AST_VIP,
	AST_SERVICE_PROTO,
	AST_SERVICE_PORT,
	AST_MODE,
	AST_IDLE,
	AST_LOST,
	AST_UDP,
	AST_HASH,
	AST_SOURCE,
	AST_RING,
	AST_PINS,
	AST_CONNECTIONS,
	AST_CHECK,
	AST_RAMP,
	AST_KEEP,
	AST_OPTIONS,
};

struct ast_service {
	struct diag_at at; // its name
	uint32_t line;
	const char *name;
	bool broken;                           // an error was found in it
	struct diag_at option_at[AST_OPTIONS]; // file NULL: absent
	struct ast_list vip, proto, port, source;
	bool any_port, udp_move, hash_source;
	uint8_t mode; // enum service_mode
	uint64_t idle_ms, lost_ms, ramp_ms, pins, connections;
	uint32_t ring;
	uint32_t keep; // parts of 10,000
	struct ast_check check;
	VEC(struct ast_backend) backends;
};

// ---- expect -------------------------------------------------------------------------------------

struct ast_number {
	bool given;
	uint32_t value;
	struct diag_at at;
};

struct ast_packet {
	struct diag_at at;
	const char *ethertype; // NULL: an IP packet
	const char *proto;     // NULL: absent
	struct diag_at ethertype_at, proto_at;
	struct ast_list from, to;
	struct ast_list flags, type; // type: one item
	struct ast_number sport, dport, code, vlan, length, ttl;
	bool mac_given;
	uint64_t mac;
	const char *on;
	struct diag_at on_at;
	bool fragment, over, established, unroutable;
};

struct ast_expect {
	struct diag_at at; // the word "expect"
	uint32_t line;
	bool broken;        // an error was found in it
	uint8_t verdict;    // enum expect_verdict
	const char *target; // interface or service
	struct diag_at target_at;
	bool answer; // a backend of the service sends the packet
	struct diag_at answer_at;
	uint8_t via;      // enum expect_via
	const char *rule; // VIA_RULE
	struct diag_at via_at;
	struct ast_packet packet;
};

// ---- the rest -----------------------------------------------------------------------------------

struct ast_define {
	struct diag_at at; // its name
	uint32_t line;
	const char *name;
	struct ast_list list;
};

// The elements of a set: addresses, or numbers.
enum ast_set_kind { AST_SET_ADDRESSES, AST_SET_PORTS, AST_SET_MACS, AST_SET_PAIRS, AST_SET_KINDS };

struct set_kind {
	const char *word;                     // after the name of the set; NULL: none
	const char *what;                     // for messages
	const char *use, *example, *negation; // for hints
};

extern const struct set_kind set_kinds[AST_SET_KINDS];

struct ast_set {
	struct diag_at at; // its name, with the "@" left out
	uint32_t line;
	const char *name;
	bool broken;  // an error was found in it
	uint8_t kind; // enum ast_set_kind
	bool dynamic, has_max, has_expire, has_mask, count;
	uint32_t max;
	uint64_t expire_ms;
	uint8_t mask4, mask6;
	struct ast_list elements;
};

// Has the set a list of addresses?
static inline bool ast_set_is_addresses(const struct ast_set *set)
{
	return !set->dynamic && set->kind == AST_SET_ADDRESSES;
}

struct ast_interface {
	struct diag_at at;
	uint32_t line;
	const char *name; // may end in '*'
	uint8_t mode;     // enum attach_mode
	bool has_mode, optional;
};

struct ast_default {
	struct diag_at at; // the word "default"
	uint32_t line;
	bool drop;
	struct ast_list on; // not given: for the rest
};

struct ast_fragments {
	struct diag_at at;
	uint32_t line;
	uint8_t treatment;     // enum policy_treatment
	struct ast_list proto; // not given: for the rest
};

struct ast_setting { // malformed, essentials: `on` is drop and pass; seed: text
	bool given, on;
	const char *text;
	struct diag_at at;
};

struct ast {
	struct arena strings;
	VEC(struct ast_interface) interfaces;
	VEC(struct ast_define) defines;
	VEC(struct ast_set) sets;
	VEC(struct ast_service) services;
	VEC(struct ast_default) defaults;
	VEC(struct ast_fragments) fragments;
	VEC(struct ast_rule) rules; // in the order of the text, including its include files
	size_t n_quick;             // of them quick rules, which are the last ones
	VEC(struct ast_expect) expects;
	struct ast_setting malformed;  // on: drop
	struct ast_setting essentials; // on: pass
	struct ast_setting seed;
	VEC(const struct diag_file *) files; // read, in order; [0] is the main file
	struct index define_index, set_index, service_index, rule_index; // by name, filled by check
	VEC(uint32_t)
	set_order; // numbers of sets, each after those that it names; filled by check
};

struct ast *ast_new(void);
void ast_cleanup(struct ast **ast);
#define CLEANUP_AST CLEANUP(ast_cleanup)

// The rule of that name, else the one without a name that has this text; INDEX_NONE: none.
uint32_t ast_find_rule(const struct ast *ast, const char *name);

// -i: these interfaces replace the interfaces of the text.
void ast_replace_interfaces(struct ast *ast, const char *const *names, size_t n);
