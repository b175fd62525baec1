// SPDX-License-Identifier: GPL-2.0-only
// The fixed words of the language and their values.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTO_ICMP = 1, PROTO_TCP = 6, PROTO_UDP = 17, PROTO_ICMP6 = 58, PROTO_SCTP = 132 };

// An upper-layer protocol by name or number 0..255. 0, -EINVAL or -ERANGE.
int names_proto(const char *word, uint8_t *ret);
// "tcp", or NULL for a number without a name.
const char *names_of_proto(uint8_t proto);

// The ICMP type that the name means in the family 4 or 6; -ENOENT where the family does not know
// it.
int names_icmp(const char *word, uint8_t family, uint8_t *ret);
// Its first name in the family, or NULL.
const char *names_of_icmp(uint8_t type, uint8_t family);
bool names_is_neighbour_discovery(uint8_t icmp6_type); // 133-136

enum {
	FLAG_FIN = 1,
	FLAG_SYN = 2,
	FLAG_RST = 4,
	FLAG_PSH = 8,
	FLAG_ACK = 16,
	FLAG_URG = 32,
	FLAG_ECE = 64,
	FLAG_CWR = 128,
};
int names_flag(const char *word, uint8_t *ret); // 0 or -ENOENT
const char *names_of_flag(uint8_t flag);        // one FLAG_*

// The one or two numbers of an ethertype's name ("any" has none); 0 or -ENOENT.
int names_ethertype(const char *word, uint16_t ret[2], size_t *ret_n);

// Words that belong together.
enum names_table {
	NAMES_PROTOS,
	NAMES_ICMP,
	NAMES_FLAGS,
	NAMES_ETHERTYPES,
	NAMES_TABLES,
};
bool names_has(enum names_table table, const char *word);
// The word of the table that is nearest to this one, or NULL.
const char *names_nearest(enum names_table table, const char *word);

// The replacement for a word of another packet filter, as a statement or in a rule: "write pass".
// NULL: not such a word.
const char *names_foreign(const char *word, bool in_rule);
