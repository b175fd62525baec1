// SPDX-License-Identifier: GPL-2.0-only
// From a ruleset of nft to a policy with its head.
#include "ctl/import/import.h"

#include "ctl/base/num.h"
#include "ctl/import/steps.h"

static void print_head(const struct import_options *options, const struct import_counts *counts,
		       const struct expects_counts *expects, struct text *ret)
{
	text_add(ret, "# from ");
	for (const char *c = options->source; *c; c++)
		text_addc(ret, *c < ' ' || *c > '~' ? '?' : *c);
	text_addf(ret, ", hook %s, by weir import\n", options->forward ? "forward" : "input");
	text_addf(ret, "# %zu translated, %zu passing more than the original, %zu left to nft\n",
		  counts->translated, counts->widened, counts->omitted);
	text_addf(ret, "# rules below without an expect line: %zu of %zu\n",
		  expects->rules - expects->shown, expects->rules);
	text_add(ret, "# The ruleset has to remain active: it decides what Weir passes.\n");
}

// Where the host decides, not the ruleset.
static void print_warnings(const struct import_options *options, struct text *ret)
{
	if (!options->forward)
		return;
	text_add(ret, "# Addresses of this host: apply again when one changes, import again when a "
		      "prefix does.\n"
		      "# Not known: routes of type local, and macvlan or ipvlan devices in other "
		      "network namespaces.\n"
		      "# Packets for these meet the rules here, but not in nft.\n");
}

// Does a packet that connection tracking does not know meet a drop?
static bool needs_tracking(const struct import_rules *rules, enum step_action last)
{
	bool asks = false, drops = last == STEP_DROP;

	vec_each (rules, s) {
		asks |= s->match.established || s->match.untracked;
		drops |= s->action == STEP_DROP || s->action == STEP_REJECT;
	}
	return asks && drops;
}

static void print_tracking(const struct import_rules *rules, enum step_action last,
			   struct text *ret)
{
	if (needs_tracking(rules, last))
		text_add(ret, "# Without it (systemctl stop nftables, the boot before it) the "
			      "kernel may track no\n"
			      "# connections: then packets of established connections are "
			      "dropped too.\n");
}

static int print_policy(const struct ruleset *ruleset, const struct import_options *options,
			struct arena *arena, struct import_rules *rules, struct text *ret,
			struct import_counts *counts, struct err *err)
{
	CLEANUP_TEXT struct text lines = {0};
	struct import_counts seen = {0};
	struct expects_counts expects;
	enum step_action last;
	int code = translate(ruleset, options, arena, rules, &seen, err);

	if (code)
		return code;
	last = steps_finish(rules, arena);
	expects = expects_print(rules, options, last, &lines);
	print_head(options, &seen, &expects, ret);
	print_tracking(rules, last, ret);
	print_warnings(options, ret);
	policy_print(rules, options, last, ret);
	text_add(ret, text_get(&lines));
	counts->translated += seen.translated;
	counts->widened += seen.widened;
	counts->omitted += seen.omitted;
	counts->lacking += seen.lacking;
	return 0;
}

static struct import_facts both_facts(const struct import_facts *a, const struct import_facts *b)
{
	return (struct import_facts){.untracks = a->untracks || b->untracks,
				     .helpers = a->helpers || b->helpers,
				     .zones = a->zones || b->zones,
				     .masquerades = a->masquerades || b->masquerades,
				     .ttl = a->ttl || b->ttl,
				     .dscp = a->dscp || b->dscp,
				     .macs = a->macs || b->macs,
				     .diverts = a->diverts || b->diverts};
}

int import_nft(const char *json, size_t len, const struct import_options *options, struct text *ret,
	       struct import_counts *counts, struct err *err)
{
	CLEANUP_RULESET struct ruleset ruleset = {0};
	struct import_options with = *options;
	struct import_rules rules = {0};
	struct arena arena = {0};
	int code = ruleset_read(json, len, &ruleset, err);

	if (code)
		return code;
	with.facts = both_facts(&options->facts, &ruleset.facts);
	code = print_policy(&ruleset, &with, &arena, &rules, ret, counts, err);
	vec_free(&rules);
	arena_free(&arena);
	return code;
}
