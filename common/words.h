/* SPDX-License-Identifier: GPL-2.0-only */
/* The closed choices of the language: one line for each word, with the number that the parser, the
 * tables and the datapath know it by.
 *
 * X(symbol, word). A word of NULL is not written: it is the choice if no other word is present. */
#pragma once

/* Actions of a rule for a packet that it matches. */
#define WORDS_OF_ACTIONS(X)                                   \
	X(ACTION_PASS, "pass")                                \
	X(ACTION_DROP, "drop")                                \
	X(ACTION_REJECT, "reject")                            \
	X(ACTION_COUNT, "count") /* the next rule is tried */ \
	X(ACTION_REDIRECT, "redirect")

/* Keys of a rate. */
#define WORDS_OF_PERS(X)                                        \
	X(PER_RULE, "rule")                                     \
	X(PER_SOURCE, "source")                                 \
	X(PER_SOURCE_PORT, "source and port") /* three words */ \
	X(PER_DESTINATION, "destination")

/* Of later fragments. */
#define WORDS_OF_TREATMENTS(X)    \
	X(TREAT_FILTER, "filter") \
	X(TREAT_DROP, "drop")     \
	X(TREAT_PASS, "pass")

/* How a service reaches its backends, X(symbol, word, what the mode does). */
#define MODE_TUNNEL (1u << 0) /* puts the packet into an IP packet */
#define MODE_UDP    (1u << 1) /* and into a UDP datagram */
#define MODE_PORT   (1u << 2) /* can change the port */
#define MODE_SOURCE (1u << 3) /* has a source address of its own */
#define MODE_NAT    (1u << 4) /* translates addresses, and has a place for each connection */

#define WORDS_OF_TUNNELS(X)                                \
	X(SERVICE_IPIP, "ipip", MODE_TUNNEL | MODE_SOURCE) \
	X(SERVICE_GUE, "gue", MODE_TUNNEL | MODE_UDP | MODE_SOURCE)

#define WORDS_OF_MODES(X)                           \
	X(SERVICE_DR, "dr", 0)                      \
	WORDS_OF_TUNNELS(X)                         \
	X(SERVICE_NAT, "nat", MODE_NAT | MODE_PORT) \
	X(SERVICE_FULLNAT, "fullnat", MODE_NAT | MODE_PORT | MODE_SOURCE)

/* The part of a packet that selects the slot. */
#define WORDS_OF_HASHES(X)             \
	X(SERVICE_HASH_TUPLE, "tuple") \
	X(SERVICE_HASH_SOURCE, "source")

/* Treatment of UDP flows whose slot changes. */
#define WORDS_OF_UDP(X)     \
	X(UDP_STAY, "stay") \
	X(UDP_MOVE, "move")

/* How backends are checked. */
#define WORDS_OF_CHECKS(X)      \
	X(CHECK_NONE, "none")   \
	X(CHECK_TCP, "tcp")     \
	X(CHECK_HTTP, "http")   \
	X(CHECK_HTTPS, "https") \
	X(CHECK_DNS, "dns")     \
	X(CHECK_EXEC, "exec")

/* How a program is attached to an interface. */
#define WORDS_OF_ATTACH(X)         \
	X(ATTACH_AUTO, "auto")     \
	X(ATTACH_NATIVE, "native") \
	X(ATTACH_GENERIC, "generic")

/* Verdicts of an expect line. */
#define WORDS_OF_EXPECTS(X)            \
	X(EXPECT_PASS, "pass")         \
	X(EXPECT_DROP, "drop")         \
	X(EXPECT_REJECT, "reject")     \
	X(EXPECT_REDIRECT, "redirect") \
	X(EXPECT_SERVICE, NULL) /* a service's name */

/* Deciders that an expect line can name. */
#define WORDS_OF_VIAS(X)                      \
	X(VIA_ANY, NULL)                      \
	X(VIA_RULE, NULL) /* a rule's name */ \
	X(VIA_DEFAULT, "default")             \
	X(VIA_ESSENTIALS, "essentials")       \
	X(VIA_FRAGMENTS, "fragments")         \
	X(VIA_MALFORMED, "malformed")

#define WORDS_SYMBOL(symbol, ...)          symbol,
#define WORDS_WORD(symbol, word, ...)      [symbol] = word,
#define WORDS_WORD_ONLY(symbol, word, ...) word,

enum policy_action { WORDS_OF_ACTIONS(WORDS_SYMBOL) };
enum policy_per { WORDS_OF_PERS(WORDS_SYMBOL) };
enum policy_treatment { WORDS_OF_TREATMENTS(WORDS_SYMBOL) };
enum service_mode { WORDS_OF_MODES(WORDS_SYMBOL) };
enum service_hash { WORDS_OF_HASHES(WORDS_SYMBOL) };
enum service_udp { WORDS_OF_UDP(WORDS_SYMBOL) };
enum check_kind { WORDS_OF_CHECKS(WORDS_SYMBOL) };
enum attach_mode { WORDS_OF_ATTACH(WORDS_SYMBOL) };
enum expect_verdict { WORDS_OF_EXPECTS(WORDS_SYMBOL) };
enum expect_via { WORDS_OF_VIAS(WORDS_SYMBOL) };

#define WORDS_DOES(symbol, word, does) \
	case symbol:                   \
		return does;

/* MODE_*: what the mode does. */
static inline __attribute__((always_inline)) unsigned int service_mode_does(enum service_mode mode)
{
	switch (mode) {
		WORDS_OF_MODES(WORDS_DOES)
	}
	return 0;
}
