// SPDX-License-Identifier: GPL-2.0-only
// One table. Where two words have a number, the first one is printed.
#include "ctl/import/words.h"

#include <stddef.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"

static const struct {
	enum import_kind kind;
	const char *word;
	uint32_t number;
	bool foreign; // weir-policy(5) has no such word
} words[] = {
	{KIND_PROTO, "tcp", 6, false},
	{KIND_PROTO, "udp", 17, false},
	{KIND_PROTO, "icmp", 1, false},
	{KIND_PROTO, "icmp6", 58, false},
	{KIND_PROTO, "ipv6-icmp", 58, true},
	{KIND_PROTO, "icmpv6", 58, true},
	{KIND_PROTO, "sctp", 132, false},
	{KIND_PROTO, "gre", 47, false},
	{KIND_PROTO, "esp", 50, false},
	{KIND_PROTO, "ah", 51, false},
	{KIND_PROTO, "igmp", 2, false},
	{KIND_PROTO, "ipip", 4, false},
	{KIND_PROTO, "ipencap", 4, true},
	{KIND_PROTO, "ip6", 41, false},
	{KIND_PROTO, "ipv6", 41, true},
	{KIND_PROTO, "ospf", 89, false},
	{KIND_PROTO, "pim", 103, false},
	{KIND_PROTO, "comp", 108, true},
	{KIND_PROTO, "vrrp", 112, false},
	{KIND_PROTO, "udplite", 136, false},
	{KIND_PROTO, "dccp", 33, false},
	{KIND_TYPE4, "echo-reply", 0, false},
	{KIND_TYPE4, "destination-unreachable", 3, false},
	{KIND_TYPE4, "source-quench", 4, false},
	{KIND_TYPE4, "redirect", 5, false},
	{KIND_TYPE4, "echo-request", 8, false},
	{KIND_TYPE4, "router-advertisement", 9, false},
	{KIND_TYPE4, "router-solicitation", 10, false},
	{KIND_TYPE4, "time-exceeded", 11, false},
	{KIND_TYPE4, "parameter-problem", 12, false},
	{KIND_TYPE4, "timestamp-request", 13, false},
	{KIND_TYPE4, "timestamp-reply", 14, false},
	{KIND_TYPE4, "info-request", 15, false},
	{KIND_TYPE4, "info-reply", 16, false},
	{KIND_TYPE4, "address-mask-request", 17, false},
	{KIND_TYPE4, "address-mask-reply", 18, false},
	{KIND_TYPE6, "destination-unreachable", 1, false},
	{KIND_TYPE6, "packet-too-big", 2, false},
	{KIND_TYPE6, "time-exceeded", 3, false},
	{KIND_TYPE6, "parameter-problem", 4, false},
	{KIND_TYPE6, "echo-request", 128, false},
	{KIND_TYPE6, "echo-reply", 129, false},
	{KIND_TYPE6, "mld-listener-query", 130, false},
	{KIND_TYPE6, "mld-listener-report", 131, false},
	{KIND_TYPE6, "mld-listener-done", 132, false},
	{KIND_TYPE6, "mld-listener-reduction", 132, false},
	{KIND_TYPE6, "nd-router-solicit", 133, false},
	{KIND_TYPE6, "nd-router-advert", 134, false},
	{KIND_TYPE6, "nd-neighbor-solicit", 135, false},
	{KIND_TYPE6, "nd-neighbor-advert", 136, false},
	{KIND_TYPE6, "nd-redirect", 137, false},
	{KIND_TYPE6, "router-renumbering", 138, false},
	{KIND_TYPE6, "ind-neighbor-solicit", 141, false},
	{KIND_TYPE6, "ind-neighbor-advert", 142, false},
	{KIND_TYPE6, "mld2-listener-report", 143, false},
	{KIND_CODE4, "net-unreachable", 0, true},
	{KIND_CODE4, "host-unreachable", 1, true},
	{KIND_CODE4, "prot-unreachable", 2, true},
	{KIND_CODE4, "port-unreachable", 3, true},
	{KIND_CODE4, "frag-needed", 4, true},
	{KIND_CODE4, "net-prohibited", 9, true},
	{KIND_CODE4, "host-prohibited", 10, true},
	{KIND_CODE4, "admin-prohibited", 13, true},
	{KIND_CODE6, "no-route", 0, true},
	{KIND_CODE6, "admin-prohibited", 1, true},
	{KIND_CODE6, "addr-unreachable", 3, true},
	{KIND_CODE6, "port-unreachable", 4, true},
	{KIND_CODE6, "policy-fail", 5, true},
	{KIND_CODE6, "reject-route", 6, true},
	{KIND_DSCP, "ef", 46, false},
	{KIND_DSCP, "df", 0, true},
	{KIND_DSCP, "be", 0, true},
	{KIND_DSCP, "lephb", 1, true},
	{KIND_DSCP, "va", 44, true},
	{KIND_FLAG, "fin", 1, false},
	{KIND_FLAG, "syn", 2, false},
	{KIND_FLAG, "rst", 4, false},
	{KIND_FLAG, "psh", 8, false},
	{KIND_FLAG, "ack", 16, false},
	{KIND_FLAG, "urg", 32, false},
	{KIND_FLAG, "ecn", 64, true},
	{KIND_FLAG, "ece", 64, false},
	{KIND_FLAG, "cwr", 128, false},
};

// cs1, af42
static bool read_class(const char *word, uint32_t *ret)
{
	size_t len = strlen(word);

	if (!strncmp(word, "cs", 2) && len == 3 && word[2] >= '0' && word[2] <= '7') {
		*ret = (uint32_t)(word[2] - '0') * 8;
		return true;
	}
	if (strncmp(word, "af", 2) || len != 4 || word[2] < '1' || word[2] > '4' || word[3] < '1' ||
	    word[3] > '3')
		return false;
	*ret = (uint32_t)(word[2] - '0') * 8 + (uint32_t)(word[3] - '0') * 2;
	return true;
}

bool import_word(enum import_kind kind, const char *word, uint32_t *ret)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].kind == kind && !strcmp(words[i].word, word)) {
			*ret = words[i].number;
			return true;
		}
	if (kind == KIND_DSCP && read_class(word, ret))
		return true;
	return !num_parse_hex32(word, len, ret) || !num_parse_u32(word, len, 0, UINT32_MAX, ret);
}

const char *import_word_of(enum import_kind kind, uint32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].kind == kind && words[i].number == number && !words[i].foreign)
			return words[i].word;
	return NULL;
}

bool import_is_harmless(const char *target)
{
	static const char *const harmless[] = {"LOG",         "NFLOG",     "ULOG",       "AUDIT",
					       "TRACE",       "MARK",      "CONNMARK",   "SECMARK",
					       "TCPMSS",      "CLASSIFY",  "TEE",        "CHECKSUM",
					       "TCPOPTSTRIP", "SET",       "RATEEST",    "LED",
					       "HMARK",       "IDLETIMER", "CONNSECMARK"};

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (!strcmp(harmless[i], target))
			return true;
	return false;
}
