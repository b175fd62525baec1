// SPDX-License-Identifier: GPL-2.0-only
// Looks for block entries of the addresses that a quick rule passes.
#include "ctl/control/quick_entries.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/control/entries/store.h"

#define PREFIXES_MAX 256 // a rule's first prefixes, which are looked for

struct passed_prefixes {
	struct prefix *at;
	size_t n, cap;
};

static struct prefix prefix4(const struct resolved_prefix4 *p)
{
	struct addr addr = addr_from_v4(htonl(p->addr));

	return prefix_of(&addr, p->len);
}

static struct prefix prefix6(const struct resolved_prefix6 *p)
{
	const uint64_t be[2] = {htobe64(p->hi), htobe64(p->lo)};
	struct addr addr = addr_from_v6((const uint8_t *)be);

	return prefix_of(&addr, p->len);
}

// What it names; nothing where it names all but something.
static void collect(const struct candidate *c, const struct resolved_address *a,
		    struct passed_prefixes *ret)
{
	const struct resolved_addresses *set = &c->resolved->addresses[a->index];

	ret->n = 0;
	if (a->kind != RESOLVED_SET)
		return;
	for (size_t n = 0; n < set->n4 && ret->n < PREFIXES_MAX; n++)
		if (set->v4[n].in && set->v4[n].len)
			vec_push(ret, prefix4(&set->v4[n]));
	for (size_t n = 0; n < set->n6 && ret->n < PREFIXES_MAX; n++)
		if (set->v6[n].in && set->v6[n].len)
			vec_push(ret, prefix6(&set->v6[n]));
}

struct search {
	uint8_t block, allow; // kinds
	uint64_t now_s;
	bool blocked, allowed;
	struct prefix by;
};

static void see(void *ctx, const struct reference *record)
{
	struct search *s = ctx;

	if (record->until_s <= s->now_s)
		return;
	s->allowed |= record->kind == s->allow;
	if (record->kind != s->block)
		return;
	s->blocked = true;
	s->by = record->prefix;
}

static void say(const struct prefix *what, const struct prefix *by, size_t others, bool to,
		const char *label, struct apply_result *ret)
{
	CLEANUP_FREE char *more =
		others ? mem_printf(" and %zu %s", others, num_plural(others, "other", "others"))
		       : mem_strdup("");
	addr_text text, entry;

	prefix_format(what, text);
	vec_push(&ret->notices,
		 mem_printf("%s: packets %s %s%s stay blocked: 'block %s' precedes quick rules "
			    "(weir allow %s%s passes them)",
			    label, to ? "to" : "from", text, more, prefix_format(by, entry),
			    to ? "--to " : "", text));
}

// An allow entry of the other direction is not looked for.
static int note(struct store *store, const struct passed_prefixes *prefixes, bool to,
		const char *label, struct apply_result *ret)
{
	struct search found = {.now_s = time_s(CLOCK_REALTIME)};
	const struct prefix *first = NULL;
	size_t n = 0;
	int code = prefixes->n ? store_load_covering(store, prefixes->at, prefixes->n, NULL) : 0;

	if (code)
		return code;
	vec_each (prefixes, prefix) {
		struct search s = {
			.block = to ? OVERLAY_BLOCK_TO : OVERLAY_BLOCK_FROM,
			.allow = to ? OVERLAY_ALLOW_TO : OVERLAY_ALLOW_FROM,
			.now_s = found.now_s,
		};

		records_covering(&store->records, prefix, see, &s);
		if (!s.blocked || s.allowed)
			continue;
		if (!n++) {
			first = prefix;
			found = s;
		}
	}
	if (n)
		say(first, &found.by, n - 1, to, label, ret);
	return 0;
}

void quick_note_entries(const struct candidate *c, const char *instance, struct apply_result *ret)
{
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_VEC struct passed_prefixes prefixes = {0};

	for (size_t n = 0; n < c->resolved->n_quick; n++) {
		const struct resolved_rule *rule = &c->resolved->rules[c->resolved->n_always + n];

		if (!c->quick.at[n].fresh || rule->action != ACTION_PASS)
			continue;
		if (!store && store_peek(instance, &store, NULL))
			return;
		collect(c, &rule->from, &prefixes);
		if (note(store, &prefixes, false, c->quick.at[n].label, ret))
			return;
		collect(c, &rule->to, &prefixes);
		if (note(store, &prefixes, true, c->quick.at[n].label, ret))
			return;
	}
}
