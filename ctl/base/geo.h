// SPDX-License-Identifier: GPL-2.0-only
// Names of address ranges that a database has: "country DE", "asn 64500".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

enum geo_kind { GEO_NONE, GEO_COUNTRY, GEO_ASN };

struct geo {
	enum geo_kind kind;
	char country[3]; // "DE"
	uint32_t asn;
};

typedef char geo_text[24];

// GEO_COUNTRY for "country", GEO_ASN for "asn", GEO_NONE for another word.
enum geo_kind geo_keyword(const char *word, size_t len);
// The word after the keyword: a country code in either case, or the number of an autonomous system.
// 0, or -EINVAL with err set.
int geo_parse(enum geo_kind kind, const char *word, size_t len, struct geo *ret, struct err *err);
// Is the word the number of an autonomous system as people write it, "AS13335"?
bool geo_is_as_number(const char *word, size_t len);
// "country DE"
const char *geo_format(const struct geo *geo, geo_text ret);
// Is this a name that geo_format has made? No host name is: they have no blank.
bool geo_is_name(const char *name);
bool geo_parse_name(const char *name, struct geo *ret);
bool geo_equal(const struct geo *a, const struct geo *b);
