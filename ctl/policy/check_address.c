// SPDX-License-Identifier: GPL-2.0-only
// Tells addresses, host names and services apart where an address is expected.
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/geo.h"
#include "ctl/base/geo_country.h"
#include "ctl/base/mem.h"
#include "ctl/policy/checker.h"
#include "ctl/policy/host.h"

#define SHOWN_MAX 60

struct place_check {
	struct checker *c;
	enum check_side side;
	const struct leaves *leaves;
	bool single; // the list has one item, perhaps after "not"
	bool alone;  // the one item of a list without "not"
	bool ok;
};

static void fail(struct place_check *p, const struct ast_item *item, const char *hint,
		 const char *what)
{
	const char *sign = item->kind == AST_SET ? "@" : "";

	diag_error(p->c->diag, item->at, hint, "'%s%.*s' %s", sign, SHOWN_MAX, item->word, what);
	p->ok = false;
}

static bool is_country(const char *word)
{
	return word[0] >= 'A' && word[0] <= 'Z' && geo_country_name(word);
}

// No name of a service has a colon.
static void refuse_colon(struct place_check *p, const struct ast_item *item, const char *colon)
{
	char hint[160];

	snprintf(hint, sizeof(hint),
		 strchr(colon + 1, ':') ? "an IPv6 address has hexadecimal digits and colons"
					: "a port follows the address: %.*s port %.*s",
		 (int)(colon - item->word), item->word, SHOWN_MAX, colon + 1);
	fail(p, item, hint, "is not an address");
}

static void check_service_word(struct place_check *p, const struct ast_item *item)
{
	bool as_number = geo_is_as_number(item->word, strlen(item->word));
	const char *near, *colon = strchr(item->word, ':');
	char hint[96];

	if (colon) {
		refuse_colon(p, item, colon);
		return;
	}
	if (index_find(&p->c->ast->service_index, item->word) == INDEX_NONE) {
		near = check_suggest(p->c, SPACE_SERVICES, "", item->word);
		snprintf(hint, sizeof(hint),
			 is_country(item->word) ? "a country: country %.*s"
			 : as_number            ? "an autonomous system: asn %.*s"
						: "a host name without a dot: host %.*s",
			 SHOWN_MAX, item->word + (as_number ? 2 : 0));
		diag_error(p->c->diag, item->at, hint,
			   "'%.*s' is neither an address nor a service of this policy%s", SHOWN_MAX,
			   item->word, near);
		p->ok = false;
	} else if (p->side == SIDE_FROM) {
		fail(p, item, "'to SERVICE' matches its addresses and ports",
		     "is a service; 'from' takes addresses");
	} else if (p->side != SIDE_TO) {
		fail(p, item, NULL, "is a service; only 'to' can name it");
	} else if (!p->alone) {
		fail(p, item, "write a rule for each",
		     "is a service; it must be the only item, without 'not'");
	}
}

static void check_host(struct place_check *p, const struct ast_item *item)
{
	char problem[160];

	if (host_problem(item->word, problem, sizeof(problem)))
		fail(p, item, NULL, problem);
}

static void check_geo(struct place_check *p, const struct ast_item *item)
{
	struct err err = {0};
	struct geo geo;

	if (!geo_parse(item->geo, item->word, strlen(item->word), &geo, &err))
		return;
	diag_error(p->c->diag, item->at, err.hint, "%s", err.text);
	p->ok = false;
}

static bool is_digest(const char *word)
{
	return strlen(word) == 64 && strspn(word, "0123456789abcdefABCDEF") == 64;
}

static void check_url(struct place_check *p, const struct ast_item *item)
{
	const char *host = strstr(item->word, "://");
	bool http = !strncmp(item->word, "http://", 7) || !strncmp(item->word, "https://", 8);

	if (!http)
		fail(p, item, "write https://HOST/PATH", "is not an http or https URL");
	else if (!host[3] || strchr("/:?#", host[3]) || strchr(item->word, ' '))
		fail(p, item, "write https://HOST/PATH", "is not a valid URL");
	if (item->url->sha256 && !is_digest(item->url->sha256))
		fail(p, &(struct ast_item){.at = item->at, .word = item->url->sha256},
		     "sha256sum FILE prints it", "is not a SHA-256 digest: 64 hexadecimal digits");
}

// Keywords that a definition may hold for other fields.
static bool is_other_value(const char *word)
{
	static const char *const words[] = {"http", "https", "tcp",     "udp",
					    "ipip", "none",  "redirect"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], word))
			return true;
	return false;
}

static void check_word(struct place_check *p, const struct ast_item *item)
{
	bool address = item->as_address == AST_ADDRESS || item->as_address == AST_RANGE;

	if (p->side == SIDE_SOURCE && !address)
		fail(p, item, NULL, "is not an address; 'source' takes addresses and prefixes");
	else if (item->as_address == AST_ANY && p->side == SIDE_VIP)
		fail(p, item, NULL, "cannot be the address of a service");
	else if (item->as_address == AST_NAME)
		check_host(p, item);
	else if (item->as_address == AST_LABEL && is_other_value(item->word))
		fail(p, item, NULL, "is not an address");
	else if (item->as_address == AST_LABEL)
		check_service_word(p, item);
}

static void check_pairs(struct place_check *p, const struct ast_item *item)
{
	if (p->side != SIDE_FROM && p->side != SIDE_TO)
		fail(p, item, "write from @NAME or to @NAME",
		     "is a set of pairs, not of IP addresses");
	else if (!p->single)
		fail(p, item, "write a rule for each", "has pairs; it must be the only item");
}

static void check_set(struct place_check *p, const struct ast_item *item)
{
	const struct set_kind *kind;
	char what[64];
	uint32_t number = index_find(&p->c->ast->set_index, item->word);

	if (number == INDEX_NONE)
		p->ok = false; // reported with all unknown names
	if (number == INDEX_NONE || ast_set_is_addresses(&p->c->ast->sets.at[number]))
		return;
	kind = &set_kinds[p->c->ast->sets.at[number].kind];
	if (kind == &set_kinds[AST_SET_PAIRS]) {
		check_pairs(p, item);
		return;
	}
	snprintf(what, sizeof(what), "is a set of %s, not of IP addresses", kind->what);
	if (kind->word)
		fail(p, item, kind->use, what);
	else if (p->side == SIDE_SET)
		fail(p, item, NULL, "is dynamic; no set can contain it");
	else if (p->side != SIDE_FROM && p->side != SIDE_TO)
		fail(p, item, NULL, "is dynamic; only rules can name it");
	else if (!p->alone)
		fail(p, item, "write a rule for each",
		     "is dynamic; it must be the only item, without 'not'");
}

static void check_leaf(struct place_check *p, const struct ast_item *item)
{
	switch (item->kind) {
	case AST_SET:
		if (p->side == SIDE_SOURCE)
			fail(p, item, NULL,
			     "is not an address; 'source' takes addresses and prefixes");
		else
			check_set(p, item);
		return;
	case AST_HOST:
		if (p->side == SIDE_SOURCE)
			fail(p, item, NULL,
			     "is not an address; 'source' takes addresses and prefixes");
		else
			check_host(p, item);
		return;
	case AST_URL:
		check_url(p, item);
		return;
	case AST_GEO:
		if (p->side == SIDE_SOURCE)
			fail(p, item, NULL,
			     "is not an address; 'source' takes addresses and prefixes");
		else if (p->side == SIDE_VIP)
			fail(p, item, NULL, "cannot be the address of a service");
		else
			check_geo(p, item);
		return;
	case AST_WORD:
		check_word(p, item);
		return;
	default:
		return;
	}
}

bool check_addresses(struct checker *c, const struct ast_list *list, enum check_side side)
{
	struct leaves leaves = {0};
	struct place_check p = {.c = c, .side = side, .leaves = &leaves, .ok = true};
	int code = side == SIDE_SET
			   ? expand_elements(&c->expander, list, c->diag, &leaves)
			   : expand(&c->expander, list, POLICY_LIST_ITEMS, c->diag, &leaves);

	p.single = leaves.all.n == 1 && !leaves.all.at[0].negated;
	p.alone = p.single && !leaves.negated;
	vec_each (&leaves.all, leaf)
		check_leaf(&p, leaf->item);
	leaves_free(&leaves);
	return code == 0 && p.ok;
}
