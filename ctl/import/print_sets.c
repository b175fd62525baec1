// SPDX-License-Identifier: GPL-2.0-only
// A set has the name that it has in the ruleset, as far as weir-policy(5) allows.
#include "ctl/import/print_sets.h"

#include <ctype.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/addr.h"
#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/import/expiring.h"
#include "ctl/policy/keywords.h"

#define EXPIRING 1000 // comments for a set

void interval_print(const struct interval *v, uint8_t family, struct text *ret)
{
	unsigned bits = family == MATCH_V4 ? 32 : 128, host = 0;
	struct addr first = interval_addr(v->first, family == MATCH_V4 ? 4 : 6);
	struct addr last = interval_addr(v->last, family == MATCH_V4 ? 4 : 6);
	address_number differ = v->first ^ v->last;
	addr_text text;

	while (host < bits && differ >> host & 1)
		host++;
	text_add(ret, addr_format(&first, text));
	if (v->first == v->last)
		return;
	if ((host == bits || !(differ >> host)) &&
	    !(v->first & (host == 128 ? ~(address_number)0 : ((address_number)1 << host) - 1)))
		text_addf(ret, "/%u", bits - host);
	else
		text_addf(ret, "-%s", addr_format(&last, text));
}

void addresses_print(const struct values *v, uint8_t family, const char *between, struct text *ret)
{
	address_number max = match_max(MATCH_SRC, family);

	if (v->n > 1 && !v->at[0].first && v->at[v->n - 1].last == max) {
		text_add(ret, family == MATCH_V4 ? "0.0.0.0/0" : "::/0");
		for (size_t i = 0; i + 1 < v->n; i++) {
			struct interval gap = {v->at[i].last + 1, v->at[i + 1].first - 1};

			text_addf(ret, "%snot ", between);
			interval_print(&gap, family, ret);
		}
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		text_add(ret, i ? between : "");
		interval_print(&v->at[i], family, ret);
	}
}

void macs_print(const struct values *v, struct text *ret)
{
	for (size_t i = 0; i < v->n; i++) {
		mac_text mac;

		text_addf(ret, "%s%s", i ? ", " : "", mac_format((uint64_t)v->at[i].first, mac));
		if (v->at[i].last != v->at[i].first)
			text_addf(ret, "-%s", mac_format((uint64_t)v->at[i].last, mac));
	}
}

// ---- names --------------------------------------------------------------------------------------

static bool has_set(const struct policy_sets *sets, const char *name)
{
	vec_each (&sets->at, s)
		if (!strcmp(s->name, name))
			return true;
	return false;
}

static void name_set(struct policy_sets *sets, struct policy_set *s, const char *from)
{
	char base[POLICY_SET_NAME - 4];
	size_t n = 0;

	for (; from[n] && n + 1 < sizeof(base); n++)
		base[n] = isalnum((unsigned char)from[n]) || from[n] == '-' ? from[n] : '_';
	base[n] = '\0';
	snprintf(s->name, sizeof(s->name), "%s%s", isalpha((unsigned char)base[0]) ? "" : "s",
		 base);
	while (has_set(sets, s->name) || keyword_is(s->name))
		snprintf(s->name, sizeof(s->name), "%s%.18s-%u",
			 isalpha((unsigned char)base[0]) ? "" : "s", base, ++sets->numbered + 1);
}

static bool is_same(const struct policy_set *s, enum policy_set_kind kind, const struct values *v,
		    uint8_t family)
{
	if (s->kind != kind)
		return false;
	if (s->values->at == v->at)
		return true;
	return v->set && text_same(s->values->set, v->set) && s->family == family &&
	       s->values->n == v->n && !memcmp(s->values->at, v->at, v->n * sizeof(*v->at));
}

static const char *add_set(struct policy_sets *sets, struct policy_set *fresh, const char *from)
{
	name_set(sets, fresh, from ? from : "list");
	vec_push(&sets->at, *fresh);
	return vec_last(&sets->at)->name;
}

const char *policy_set_of(struct policy_sets *sets, enum policy_set_kind kind,
			  const struct values *v, uint8_t family)
{
	struct policy_set fresh = {.kind = kind, .values = v, .family = family};

	vec_each (&sets->at, s)
		if (is_same(s, kind, v, family))
			return s->name;
	return add_set(sets, &fresh, v->set);
}

const char *policy_set_pairs(struct policy_sets *sets, const struct pairs *pairs)
{
	struct policy_set fresh = {.kind = SET_PAIRS, .pairs = pairs};

	vec_each (&sets->at, s)
		if (s->kind == SET_PAIRS && (s->pairs == pairs || pairs_equal(s->pairs, pairs)))
			return s->name;
	return add_set(sets, &fresh, pairs->set);
}

// Not the name of a set that the active policy fills in another way: the kernel keeps its entries.
const char *policy_set_dynamic(struct policy_sets *sets, const struct json *set)
{
	struct policy_set fresh = {.kind = SET_DYNAMIC, .dynamic = set};
	CLEANUP_FREE char *from = NULL;

	vec_each (&sets->at, s)
		if (s->dynamic == set)
			return s->name;
	from = mem_printf("nft-%s", json_get_string(set, "name"));
	return add_set(sets, &fresh, from);
}

// ---- statements ---------------------------------------------------------------------------------

static void print_ports(const struct values *v, struct text *ret)
{
	for (size_t i = 0; i < v->n; i++) {
		text_addf(ret, "%s%u", i ? ", " : " ", (unsigned)v->at[i].first);
		if (v->at[i].last != v->at[i].first)
			text_addf(ret, "-%u", (unsigned)v->at[i].last);
	}
}

static void print_pairs(const struct pairs *p, struct text *ret)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct addr_port *pair = &p->at[i];
		struct addr addr = interval_addr(pair->addr, p->family);
		addr_text text;

		text_addf(ret, "%s%s port %u", i ? ",\n\t" : "\n\t", addr_format(&addr, text),
			  pair->first);
		if (pair->last != pair->first)
			text_addf(ret, "-%u", pair->last);
	}
}

static void print_listed(const struct policy_set *s, struct text *ret)
{
	text_addf(ret, "set %s ", s->name);
	if (s->kind == SET_PAIRS) {
		text_add(ret, "pairs {");
		print_pairs(s->pairs, ret);
		text_add(ret, "\n}\n");
		return;
	}
	if (s->kind == SET_ADDRESSES) {
		text_add(ret, "{\n\t");
		addresses_print(s->values, s->family, "\n\t", ret);
		text_add(ret, "\n}\n");
		return;
	}
	text_add(ret, s->kind == SET_PORTS ? "ports {" : "macs { ");
	if (s->kind == SET_PORTS)
		print_ports(s->values, ret);
	else
		macs_print(s->values, ret);
	text_add(ret, " }\n");
}

static void print_dynamic(const struct policy_set *s, uint64_t now_s, struct text *ret)
{
	uint64_t size = json_get_u64(s->dynamic, "size");
	uint64_t timeout = json_get_u64(s->dynamic, "timeout");
	struct expiring_counts n = {0};
	CLEANUP_TEXT struct text notes = {0};

	expiring_notes(s->dynamic, s->name, now_s, EXPIRING, &notes, &n);
	text_addf(ret,
		  "# '@%s' is empty, unless the active policy has it: then it keeps its entries. "
		  "Commands have\n"
		  "# to add elements to this set and to the set of nft, and to remove them from "
		  "both.\n",
		  s->name);
	if (n.noted || n.skipped || n.left)
		text_addf(ret,
			  "# its elements that expire (times: if the ruleset was listed at the "
			  "import):\n%s",
			  text_get(&notes));
	if (n.skipped)
		text_addf(ret, "# left to nft: %zu that are no addresses\n", n.skipped);
	if (n.left)
		text_addf(ret, "# and %zu more\n", n.left);
	text_addf(ret, "set %s dynamic", s->name);
	if (size && size <= POLICY_RATE_MAX)
		text_addf(ret, " max %ju", (uintmax_t)size);
	if (timeout && timeout <= POLICY_TIME_MS / 1000)
		text_addf(ret, " expire %jus", (uintmax_t)timeout);
	text_addc(ret, '\n');
}

void policy_sets_print(const struct policy_sets *sets, uint64_t now_s, struct text *ret)
{
	vec_each (&sets->at, s) {
		if (s->kind == SET_DYNAMIC)
			print_dynamic(s, now_s, ret);
		else
			print_listed(s, ret);
	}
}
