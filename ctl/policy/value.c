// SPDX-License-Identifier: GPL-2.0-only
// Reads lists of words as numbers: protocols and other small numbers as bits, TCP flags.
#include "ctl/policy/value.h"

#include <errno.h>
#include <string.h>

#include "ctl/policy/domain.h"

// ---- bits ---------------------------------------------------------------------------------------

int value_bits(struct value *v, const struct domain *domain, const struct ast_list *list,
	       uint64_t ret[4])
{
	CLEANUP(ranges_free) struct ranges ranges = {0};
	int code = value_ranges(v, domain, list, &ranges);

	if (code)
		return code;
	for (size_t i = 0; i < ranges.n; i++)
		for (unsigned n = ranges.at[i].first; n <= ranges.at[i].last; n++)
			bits_set(ret, n);
	return 0;
}

// "not" selects among the interfaces of the policy.
int value_ranges(struct value *v, const struct domain *domain, const struct ast_list *list,
		 struct ranges *ret)
{
	CLEANUP(edges_free) struct edges edges = {0};
	uint64_t last = domain->last;
	int code;

	if (domain == &domain_on)
		last = v->r->n_interfaces ? v->r->n_interfaces - 1 : 0;
	code = eval_list(v, domain, list, last, &edges);
	if (code)
		return code;
	edges_ranges(&edges, ret);
	return 0;
}

// ---- flags --------------------------------------------------------------------------------------

static int read_flags(struct value *v, const struct ast_list *list, uint8_t *ret)
{
	struct eval e = {.v = v, .domain = &domain_flag};

	vec_each (&list->items, item) {
		uint8_t flag;

		e.item = item;
		if (!names_flag(item->word, &flag))
			*ret |= flag;
		else if (strcmp(item->word, "none") != 0)
			eval_unknown(&e, item->word, names_nearest(NAMES_FLAGS, item->word));
		else if (list->items.n > 1)
			eval_fail(&e, NULL, "'none' excludes other flags");
	}
	return e.code;
}

static bool is_none(const struct ast_list *list)
{
	return list->items.n && !strcmp(list->items.at[0].word, "none");
}

int value_flags(struct value *v, const struct ast_list *set, const struct ast_list *mask,
		uint8_t *ret_set, uint8_t *ret_mask)
{
	uint8_t bits = 0, among = 0;

	if (read_flags(v, set, &bits) < 0 || (mask->given && read_flags(v, mask, &among) < 0))
		return -EINVAL;
	if (mask->given && is_none(mask)) {
		diag_error(v->diag, set->at, NULL, "the mask of flags is empty");
		return -EINVAL;
	}
	if (!mask->given)
		among = is_none(set)
				? FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_PSH | FLAG_ACK | FLAG_URG
				: (uint8_t)(bits | FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK);
	if (bits & ~among) {
		diag_error(v->diag, set->at, "the mask must contain every flag to test",
			   "a flag before '/' is missing after it");
		return -EINVAL;
	}
	*ret_set = bits;
	*ret_mask = among;
	return 0;
}
