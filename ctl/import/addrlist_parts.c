// SPDX-License-Identifier: GPL-2.0-only
// Sorts a list and prints each prefix once.
#include "ctl/import/addrlist_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/num.h"
#include "ctl/import/expiring.h"

int addrlist_add(struct addrlist *l, const char *text, size_t len, unsigned line, struct err *err)
{
	struct prefix cut[254];
	size_t n = 1;
	bool mapped = false;
	int code = memchr(text, '-', len) ? range_parse(text, len, cut, &n, err)
					  : prefix_parse(text, len, &cut[0], &mapped, err);

	if (code) {
		err_prefix(err, "line %u", line);
		return code;
	}
	for (size_t i = 0; i < n; i++) {
		const struct addr *a = &cut[i].addr;

		if (addr_is_loopback(a) || (addr_is_unspecified(a) && cut[i].len))
			return err_input(err,
					 "line %u: '%.*s' is loopback or unspecified: hosts files "
					 "are not lists of addresses",
					 line, (int)(len < 60 ? len : 60), text);
		vec_push(&l->at, cut[i]);
	}
	return 0;
}

void addrlist_note_expiring(struct addrlist *l, const char *set, const char *entry,
			    uint64_t seconds)
{
	l->counts.expiring++;
	expiring_note(set, entry, l->now_s, seconds, &l->notes);
}

static int compare(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

static void print_head(const struct addrlist *l, const struct addrlist_options *options,
		       struct text *ret)
{
	const struct addrlist_counts *n = &l->counts;

	text_add(ret, "# from ");
	text_add_shown(ret, options->source, strcspn(options->source, "\n"));
	text_addf(ret, ", by weir import: %zu %s, %zu %s, %zu without an address\n", n->entries,
		  num_plural(n->entries, "entry", "entries"), n->duplicates,
		  num_plural(n->duplicates, "duplicate", "duplicates"), n->skipped);
	if (n->expiring)
		text_addf(ret, "# %zu %s, for a dynamic set:\n%s", n->expiring,
			  num_plural(n->expiring, "entry expires", "entries expire"),
			  text_get(&l->notes));
}

int addrlist_print(struct addrlist *l, const struct addrlist_options *options, struct text *ret,
		   struct addrlist_counts *counts, struct err *err)
{
	size_t kept = 0;
	addr_text text;

	if (!l->at.n && !l->counts.expiring)
		return err_input(err, "there is no address");
	if (l->at.n)
		qsort(l->at.at, l->at.n, sizeof(*l->at.at), compare);
	for (size_t i = 0; i < l->at.n; i++)
		if (!kept || compare(&l->at.at[kept - 1], &l->at.at[i]))
			l->at.at[kept++] = l->at.at[i];
	l->counts.entries = kept;
	l->counts.duplicates = l->at.n - kept;
	print_head(l, options, ret);
	for (size_t i = 0; i < kept; i++)
		text_addf(ret, "%s\n", prefix_format(&l->at.at[i], text));
	*counts = l->counts;
	return 0;
}

void addrlist_free(struct addrlist *l)
{
	vec_free(&l->at);
	text_free(&l->notes);
}
