// SPDX-License-Identifier: GPL-2.0-only
// The words for numbers in rulesets: protocols, ICMP types and codes, code points, TCP flags.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum import_kind {
	KIND_ADDRESS,
	KIND_PROTO,
	KIND_TYPE4,
	KIND_TYPE6,
	KIND_CODE4,
	KIND_CODE6,
	KIND_DSCP,
	KIND_FLAG, // a bit
	KIND_NUMBER,
	KIND_MAC,
};

// False: the word is not known.
bool import_word(enum import_kind kind, const char *word, uint32_t *ret);
// Does the next rule follow this target of iptables, with the packet as it was for all that Weir
// tests?
bool import_is_harmless(const char *target);
// The word of weir-policy(5) for a number; NULL: it has none.
const char *import_word_of(enum import_kind kind, uint32_t number);
