// SPDX-License-Identifier: GPL-2.0-only
// Turns resolved rules into struct policy_rule.
#include "ctl/table/rules.h"

#include <errno.h>
#include <string.h>

#include "common/limits-policy.h"
#include "common/limits.h"
#include "ctl/base/num.h"
#include "ctl/table/edges.h"
#include "ctl/table/rates.h"
#include "ctl/table/rules_connections.h"

#define IP_LENGTH_MAX 65535

struct rules_builder {
	const struct resolved *in;
	const struct compile_options *options;
	struct diag *diag;
	struct image *out;
	const char *devices[WEIR_REDIRECTS];
	uint32_t n_devices;
};

// ---- conditions ---------------------------------------------------------------------------------

static void fill_spans(const struct resolved_rule *from, struct policy_rule *to)
{
	if (from->length.given) {
		to->flags |= RULE_LENGTH | (from->ethertype.given ? RULE_FRAME : 0);
		to->length_first = from->length.first;
		// A packet merged by the kernel (BIG TCP) is longer than its length field, and is
		// included.
		to->length_last =
			from->length.last < IP_LENGTH_MAX ? from->length.last : UINT32_MAX;
	}
	if (from->ttl.given) {
		to->flags |= RULE_TTL;
		to->ttl_first = (uint8_t)from->ttl.first;
		to->ttl_last = (uint8_t)from->ttl.last;
	}
	if (from->dscp.given) {
		to->flags |= RULE_DSCP;
		to->dscp = from->dscp.bits[0];
	}
}

static void fill_macs(const struct rules_builder *b, const struct resolved_rule *from,
		      struct policy_rule *to)
{
	const struct resolved_macs *macs = &from->mac;

	if (!macs->given)
		return;
	to->flags |= RULE_MAC;
	to->mac_first = edges_first(b->in, macs->index);
	to->mac_n = (uint32_t)b->in->macs[macs->index].n;
}

static void fill_pairs(const struct rules_builder *b, const struct resolved_rule *from,
		       struct policy_rule *to)
{
	const struct resolved_pairs *ends[] = {&from->from_pairs, &from->to_pairs};

	for (int i = 0; i < 2; i++) {
		if (!ends[i]->given)
			continue;
		to->flags |= i ? RULE_TO_PAIRS : RULE_FROM_PAIRS;
		edges_pairs(b->in, ends[i], &to->pairs_first[i], &to->pairs_n[i]);
	}
}

static void fill_conditions(const struct resolved_rule *from, struct policy_rule *to)
{
	fill_spans(from, to);
	if (from->established.given)
		to->flags |= from->established.negated ? RULE_UNTRACKED : RULE_ESTABLISHED;
	if (from->unroutable)
		to->flags |= RULE_UNROUTABLE;
	// 100 % is no condition, and does not fit into 32 bits.
	if (from->probability.given && from->probability.share <= UINT32_MAX) {
		to->flags |= RULE_PROBABILITY;
		to->probability = (uint32_t)from->probability.share;
	}
	if (from->from.kind == RESOLVED_DYNAMIC) {
		to->flags |= RULE_FROM_SET;
		to->from_set = (uint8_t)from->from.index;
	}
	if (from->to.kind == RESOLVED_DYNAMIC) {
		to->flags |= RULE_TO_SET;
		to->to_set = (uint8_t)from->to.index;
	}
}

// ---- limits -------------------------------------------------------------------------------------

static int limit_refuse(struct rules_builder *b, const struct resolved_rule *from, uint64_t max)
{
	CLEANUP_FREE char *hint = mem_printf("write burst %llu or less", (unsigned long long)max);

	diag_error(b->diag, from->at, hint,
		   "a burst of %llu%s takes too long to refill at this rate",
		   (unsigned long long)from->limit.burst, from->limit.bits ? " bits" : "");
	return -EINVAL;
}

// A frame that costs more than the burst never conforms, however slow the others are.
static void warn_small_burst(const struct rules_builder *b, const struct resolved_rule *from,
			     const struct policy_rule *to)
{
	if (rate_largest_frame(to) < RATE_USUAL_FRAME)
		diag_warning(b->diag, from->at, "write burst 12112 or more",
			     "frames above %u bytes always exceed this rate: its burst is smaller",
			     (unsigned)rate_largest_frame(to));
}

// Where the limit keeps its state.
static int fill_meter(struct rules_builder *b, const struct resolved_rule *from,
		      struct policy_rule *to)
{
	struct image *i = b->out;

	if (to->per == PER_RULE) {
		to->meter = i->n_meters++;
		return 0;
	}
	to->meter = i->n_tables++;
	to->meter_lines = rate_lines(from->limit.max);
	if (to->meter_lines > UINT32_MAX - i->n_bucket_lines) {
		diag_error(
			b->diag, from->at, "write a smaller 'max'",
			"the limits per source and destination of all rules take too much memory");
		return -EINVAL;
	}
	i->n_bucket_lines += to->meter_lines;
	return 0;
}

static int fill_limit(struct rules_builder *b, const struct resolved_rule *from,
		      struct policy_rule *to)
{
	const struct resolved_limit *limit = &from->limit;
	uint64_t max;

	if (!limit->given)
		return 0;
	if (limit->connections)
		return rules_connections_add(from, to, b->out, b->diag);
	to->flags |= RULE_LIMIT | (limit->under ? RULE_UNDER : 0) | (limit->bits ? RULE_BITS : 0);
	to->per = limit->per;
	to->mask4 = limit->mask4;
	to->mask6 = limit->mask6;
	if (rate_compile(limit, b->options->hz, to, &max))
		return limit_refuse(b, from, max);
	if (limit->bits)
		warn_small_burst(b, from, to);
	return fill_meter(b, from, to);
}

// ---- modifiers and action -----------------------------------------------------------------------

static void fill_modifiers(struct rules_builder *b, const struct resolved_rule *from,
			   struct policy_rule *to)
{
	if (from->log.given) {
		to->flags |= RULE_LOG;
		to->log = b->out->n_logs++;
		to->log_interval =
			rate_interval(from->log.count, from->log.period_ms, b->options->hz);
		to->log_snap =
			(uint16_t)(from->log.snap < WEIR_SNAP_MAX ? from->log.snap : WEIR_SNAP_MAX);
	}
	if (from->add.given) {
		to->flags |= RULE_ADD | (from->add.destination ? RULE_ADD_DEST : 0);
		to->add_set = (uint8_t)from->add.dynamic;
		to->add_ticks = rate_ticks(from->add.for_ms, b->options->hz);
	}
}

// Rows of the device map: one for each device.
static int fill_redirect(struct rules_builder *b, const struct resolved_rule *from,
			 struct policy_rule *to)
{
	if (from->action != ACTION_REDIRECT)
		return 0;
	for (to->redirect = 0; to->redirect < b->n_devices; to->redirect++)
		if (!strcmp(b->devices[to->redirect], from->redirect))
			return 0;
	if (b->n_devices == WEIR_REDIRECTS) {
		diag_error(b->diag, from->at, NULL, "rules redirect to more than %d interfaces",
			   WEIR_REDIRECTS);
		return -EINVAL;
	}
	b->devices[b->n_devices++] = from->redirect;
	return 0;
}

char *rules_place(const struct resolved *r, struct place place)
{
	const char *file = place.file < r->n_files ? r->files[place.file].name : "policy";

	return mem_printf("%s:%u", file, place.line);
}

static void fill_about(const struct resolved *r, const struct resolved_rule *from,
		       struct image_rule *to)
{
	to->identity = mem_strdup(from->identity);
	to->at = from->at;
	to->place = from->quick ? mem_strdup(r->files[from->place.file].name)
				: rules_place(r, from->place);
	to->redirect = from->redirect ? mem_strdup(from->redirect) : NULL;
}

// Features that the program needs for all rules.
static void note_features(const struct policy_rule *rule, struct image *i)
{
	struct policy_config *config = &i->config;

	config->conditions |= rule->action == ACTION_COUNT ||
			      rule->flags & (RULE_CONDITIONS | RULE_LOG | RULE_ADD);
	config->flags |= rule->flags;
	config->rejects |= rule->action == ACTION_REJECT;
	config->redirects |= rule->action == ACTION_REDIRECT;
	i->port_limits |= rule->flags & RULE_LIMIT && rule->per == PER_SOURCE_PORT;
}

static int fill_rule(struct rules_builder *b, const struct resolved_rule *from,
		     struct policy_rule *to)
{
	to->action = from->action;
	if (from->impossible)
		return 0; // never tried: no meter, no table
	fill_conditions(from, to);
	fill_macs(b, from, to);
	fill_pairs(b, from, to);
	fill_modifiers(b, from, to);
	if (fill_limit(b, from, to) || fill_redirect(b, from, to))
		return -EINVAL;
	note_features(to, b->out);
	return 0;
}

void rules_name(const struct resolved *r, struct image *i)
{
	i->n_rules = r->n_rules;
	i->about = mem_zalloc(r->n_rules, sizeof(*i->about));
	for (size_t n = 0; n < r->n_rules; n++)
		fill_about(r, &r->rules[n], &i->about[n]);
}

int rules_build(const struct resolved *r, const struct compile_options *options, struct diag *d,
		struct image *i)
{
	struct rules_builder b = {.in = r, .options = options, .diag = d, .out = i};
	int code = 0;

	rules_name(r, i);
	i->rules = mem_zalloc(r->n_rules, sizeof(*i->rules));
	i->config.rules = (uint32_t)r->n_rules;
	i->config.always = (uint32_t)r->n_always;
	for (size_t n = 0; n < r->n_rules; n++)
		if (fill_rule(&b, &r->rules[n], &i->rules[n]))
			code = -EINVAL;
	return code;
}
