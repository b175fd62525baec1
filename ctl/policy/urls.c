// SPDX-License-Identifier: GPL-2.0-only
// Collects the feeds of a policy.
#include "ctl/policy/urls.h"

#include <string.h>

#include "ctl/base/text.h"

static const struct ast_item *find(const struct policy_urls *urls, const struct ast_item *item)
{
	vec_each (urls, url)
		if (!strcmp(url->item->word, item->word))
			return url->item;
	return NULL;
}

// One URL has one text, so its conditions are given once.
static void add(struct policy_urls *urls, const struct ast_item *item, struct diag *diag)
{
	const struct ast_item *other = find(urls, item);

	if (!other)
		vec_push(urls, ((struct policy_urls_one){.item = item,
							 .url = {.url = item->word,
								 .sha256 = item->url->sha256,
								 .ca = item->url->ca,
								 .every_ms = item->url->every_ms,
								 .min = item->min,
								 .lax = item->lax,
								 .wide = item->wide}}));
	else if (diag && (!text_same(other->url->sha256, item->url->sha256) ||
			  !text_same(other->url->ca, item->url->ca)))
		diag_error(diag, item->at, NULL, "'%.60s' has another sha256 or ca (%s)",
			   item->word, diag_place(diag, other->at, false));
}

void policy_urls(const struct ast *ast, struct diag *diag, struct policy_urls *ret)
{
	vec_each (&ast->sets, set)
		vec_each (&set->elements.items, item)
			if (item->kind == AST_URL)
				add(ret, item, diag);
}
