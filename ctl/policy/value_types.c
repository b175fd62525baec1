// SPDX-License-Identifier: GPL-2.0-only
// Reads lists of ICMP types, which have other numbers in each family.
#include "ctl/policy/value_types.h"

#include <errno.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/policy/domain.h"

#define SHOWN_MAX 60

static void read_type(struct eval *e, const char *word)
{
	uint8_t type4, type6;
	unsigned knows;

	if (word[0] >= '0' && word[0] <= '9' && strspn(word, "0123456789-") == strlen(word)) {
		if (e->families != 1u << 4 && e->families != 1u << 6)
			eval_fail(e, "write proto icmp or proto icmp6",
				  "type number '%.*s' differs between ICMP and ICMPv6", SHOWN_MAX,
				  word);
		else
			eval_span(e, word, 255);
		e->known |= e->families;
		return;
	}
	knows = (names_icmp(word, 4, &type4) ? 0 : 1u << 4) |
		(names_icmp(word, 6, &type6) ? 0 : 1u << 6);
	if (!knows) {
		eval_unknown(e, word, names_nearest(NAMES_ICMP, word));
	} else if (!(knows & e->families)) {
		eval_fail(e, NULL, "'%s' is a type of %s only", word,
			  knows & 1u << 4 ? "icmp" : "icmp6");
	} else if (knows & 1u << e->family) {
		uint8_t type = e->family == 4 ? type4 : type6;

		eval_emit(e, type, type);
	}
	e->known |= knows & e->families;
}

const struct domain domain_type = {
	.item = "an ICMP type",
	.keywords = {"redirect"},
	.last = 255,
	.read = read_type,
};

// The families that all words together are known in; errors are queued.
static int known_families(struct value *v, const struct leaves *leaves, unsigned families,
			  bool given, unsigned *ret)
{
	struct eval e = {.v = v, .domain = &domain_type, .families = families, .family = 4};

	// Numbers need one family, which only the rule's protocols can name.
	if (!given)
		e.families = 1u << 4 | 1u << 6;
	eval_leaves(&e, leaves);
	vec_free(&e.readings);
	*ret = e.known;
	return e.code;
}

static void types_of(struct value *v, const struct leaves *leaves, unsigned families,
		     unsigned family, struct ranges *ret)
{
	struct eval e = {.v = v, .domain = &domain_type, .families = families, .family = family};
	CLEANUP(edges_free) struct edges edges = {0};

	vec_each (&leaves->all, leaf) {
		e.item = leaf->item;
		e.negated = leaf->negated;
		read_type(&e, leaf->item->word);
	}
	eval_collect(&e, leaves->negated, 0, 255, &edges);
	edges_ranges(&edges, ret);
	vec_free(&e.readings);
}

// The types of the expanded list, for the families in `of`.
static int types_of_leaves(struct value *v, const struct ast_list *list,
			   const struct leaves *leaves, unsigned families, unsigned of,
			   struct ranges *ret4, struct ranges *ret6)
{
	if (of & 1u << 4)
		types_of(v, leaves, families, 4, ret4);
	if (of & 1u << 6)
		types_of(v, leaves, families, 6, ret6);
	if (ret4->n || ret6->n)
		return 0;
	diag_error(v->diag, list->at, NULL, "this list matches nothing");
	return -EINVAL;
}

int value_types(struct value *v, const struct ast_list *list, bool given, unsigned families,
		struct ranges *ret4, struct ranges *ret6, unsigned *ret_families)
{
	CLEANUP(leaves_free) struct leaves leaves = {0};
	unsigned known = 0;
	int code = expand(v->expander, list, POLICY_SHORT_ITEMS, v->diag, &leaves);

	if (known_families(v, &leaves, families, given, &known) < 0)
		code = -EINVAL;
	if (code)
		return code;
	if (given && known != families && !leaves.negated) {
		diag_error(v->diag, list->at, NULL, "%s has none of these types",
			   known == 1u << 4 ? "icmp6" : "icmp");
		return -EINVAL;
	}
	*ret_families = given ? families : known;
	return types_of_leaves(v, list, &leaves, families, *ret_families, ret4, ret6);
}
