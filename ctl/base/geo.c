// SPDX-License-Identifier: GPL-2.0-only
// Parses and formats the names of countries and autonomous systems.
#include "ctl/base/geo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/geo_country.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define SHOWN_MAX 60

static const char *const keywords[] = {[GEO_COUNTRY] = "country", [GEO_ASN] = "asn"};

enum geo_kind geo_keyword(const char *word, size_t len)
{
	for (enum geo_kind kind = GEO_COUNTRY; kind <= GEO_ASN; kind++)
		if (strlen(keywords[kind]) == len && !memcmp(keywords[kind], word, len))
			return kind;
	return GEO_NONE;
}

static int refuse_country(const char *word, struct err *err)
{
	const char *near = geo_country_nearest(word);

	err_input(err, "unknown country code '%.*s'", SHOWN_MAX, word);
	if (near)
		return err_hint(err, "did you mean %s, %s?", near, geo_country_name(near));
	return err_hint(err, "write the two letters of ISO 3166-1: country DE");
}

static int parse_country(const char *word, struct geo *ret, struct err *err)
{
	if (!geo_country_name(word))
		return refuse_country(word, err);
	*ret = (struct geo){.kind = GEO_COUNTRY};
	for (size_t i = 0; i < 2; i++)
		ret->country[i] = (char)(word[i] & ~0x20);
	return 0;
}

bool geo_is_as_number(const char *word, size_t len)
{
	uint32_t asn;

	return len > 2 && !strncasecmp(word, "as", 2) &&
	       !num_parse_u32(word + 2, len - 2, 1, UINT32_MAX, &asn);
}

static int parse_asn(const char *word, struct geo *ret, struct err *err)
{
	uint32_t asn;

	if (!num_parse_u32(word, strlen(word), 1, UINT32_MAX, &asn)) {
		*ret = (struct geo){.kind = GEO_ASN, .asn = asn};
		return 0;
	}
	err_input(err, "'%.*s' is not the number of an autonomous system", SHOWN_MAX, word);
	if (geo_is_as_number(word, strlen(word)))
		return err_hint(err, "write asn %s", word + 2);
	return err_hint(err, "write a number from 1 to 4294967295: asn 64500");
}

int geo_parse(enum geo_kind kind, const char *word, size_t len, struct geo *ret, struct err *err)
{
	CLEANUP_FREE char *copy = mem_strndup(word, len);

	return kind == GEO_COUNTRY ? parse_country(copy, ret, err) : parse_asn(copy, ret, err);
}

const char *geo_format(const struct geo *geo, geo_text ret)
{
	if (geo->kind == GEO_COUNTRY)
		snprintf(ret, sizeof(geo_text), "country %s", geo->country);
	else
		snprintf(ret, sizeof(geo_text), "asn %" PRIu32, geo->asn);
	return ret;
}

bool geo_is_name(const char *name)
{
	return strchr(name, ' ');
}

bool geo_parse_name(const char *name, struct geo *ret)
{
	const char *blank = strchr(name, ' ');
	enum geo_kind kind = blank ? geo_keyword(name, (size_t)(blank - name)) : GEO_NONE;

	return kind && !geo_parse(kind, blank + 1, strlen(blank + 1), ret, NULL);
}

bool geo_equal(const struct geo *a, const struct geo *b)
{
	return a->kind == b->kind &&
	       (a->kind == GEO_COUNTRY ? !strcmp(a->country, b->country) : a->asn == b->asn);
}
