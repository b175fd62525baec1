// SPDX-License-Identifier: GPL-2.0-only
// Decides about a packet: one rule after the other, in the order of weir-policy(5).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "names.h"
#include "policy.h"

struct question {
	struct ref_policy *policy;
	const struct ref_packet *packet;
	const char *iface;
	struct frame frame;
	bool nd;
};

/* A field that the packet has: the list or its negation. */
static bool field_matches(const struct field *field, uint64_t value)
{
	return !field->given || numbers_hold(&field->numbers, value) != field->numbers.negated;
}

static bool span_matches(const struct span *span, uint32_t value)
{
	return !span->given || (value >= span->lo && value <= span->hi);
}

static bool dynamic_holds(const struct set *set, struct addr addr)
{
	for (size_t i = 0; i < set->entries.len; i++) {
		if (prefix_holds(&set->entries.v[i], addr))
			return true;
	}
	return false;
}

static bool pair_matches(const struct question *q, const struct direction *direction,
			 struct addr addr, bool source)
{
	uint16_t port = source ? q->frame.sport : q->frame.dport;

	if (!q->frame.has_ports)
		return false;
	for (size_t i = 0; i < direction->pairs.len; i++) {
		const struct pair *pair = &direction->pairs.v[i];

		if (pair->addr.family == addr.family && pair->addr.value == addr.value &&
		    port >= pair->lo && port <= pair->hi)
			return !direction->no_pair;
	}
	return direction->no_pair;
}

static bool direction_matches(const struct question *q, const struct direction *direction,
			      bool source)
{
	struct addr addr = source ? q->frame.src : q->frame.dst;
	struct decision decision;

	if (!direction->given)
		return true;
	if (direction->of_pairs)
		return pair_matches(q, direction, addr, source);
	if (direction->dynamic)
		return dynamic_holds(direction->dynamic, addr);
	if (direction->list->never)
		return false;
	decision = addresses_decide(direction->list, addr, q->policy->packet, !source);
	return decision.in != direction->list->negated;
}

static bool ports_match(const struct question *q, const struct ports *ports, uint16_t port)
{
	const struct numbers *numbers;

	if (!ports->given)
		return true;
	if (!q->frame.has_ports)
		return false;
	if (q->frame.proto == PROTO_TCP)
		numbers = &ports->numbers[PORTS_TCP];
	else if (q->frame.proto == PROTO_UDP)
		numbers = &ports->numbers[PORTS_UDP];
	else
		numbers = &ports->numbers[PORTS_SCTP];
	return numbers_hold(numbers, port) != numbers->negated;
}

static bool flags_match(const struct question *q, const struct rule *rule)
{
	if (!rule->flags_given)
		return true;
	return q->frame.has_flags && (q->frame.flags & rule->flags_mask) == rule->flags_set;
}

static bool type_matches(const struct question *q, const struct rule *rule)
{
	int family = q->frame.family == 6;
	const struct numbers *numbers = &rule->type.numbers[family];

	if (!rule->type.given)
		return !q->nd; /* matched by rules with `type` only */
	if (!q->frame.has_type || !rule->type.known[family])
		return false;
	return numbers_hold(numbers, q->frame.type) != numbers->negated &&
	       field_matches(&rule->code, q->frame.code);
}

/* Reading 9: without a tag there is no field, which `none` matches. */
static bool vlan_matches(const struct question *q, const struct rule *rule)
{
	if (rule->vlan.given && rule->vlan.numbers.negated && q->frame.vlan == 0)
		return false;
	return field_matches(&rule->vlan, q->frame.vlan);
}

static bool on_matches(const struct question *q, const struct rule *rule)
{
	bool held = false;

	if (!rule->on.given)
		return true;
	for (size_t i = 0; i < rule->on.items.len; i++) {
		if (strcmp(rule->on.items.v[i].name, q->iface) != 0)
			continue;
		if (rule->on.items.v[i].negative)
			return rule->on.negated;
		held = true;
	}
	return held != rule->on.negated;
}

/* Connection tracking is asked only about these. */
static bool is_trackable(const struct question *q)
{
	return q->frame.has_ports && q->frame.proto != PROTO_SCTP;
}

static bool tracking_matches(const struct question *q, const struct rule *rule)
{
	if (rule->established || rule->untracked)
		return is_trackable(q) && q->packet->established == rule->established;
	return true;
}

static bool conditions_match(const struct question *q, const struct rule *rule)
{
	return (!rule->over || q->packet->over) && (!rule->under || !q->packet->over) &&
	       (!rule->probability || q->packet->over) &&
	       (!rule->unroutable || q->packet->unroutable) && tracking_matches(q, rule);
}

static bool ip_fields_match(const struct question *q, const struct rule *rule)
{
	const struct frame *frame = &q->frame;

	return frame->family != 0 && field_matches(&rule->proto, frame->proto) &&
	       flags_match(q, rule) && (!rule->fragment || frame->fragment == FRAGMENT_LATER) &&
	       span_matches(&rule->length, frame->ip_len) && span_matches(&rule->ttl, frame->ttl) &&
	       field_matches(&rule->dscp, frame->dscp) && direction_matches(q, &rule->to, false) &&
	       direction_matches(q, &rule->from, true) &&
	       ports_match(q, &rule->dport, frame->dport) &&
	       ports_match(q, &rule->sport, frame->sport);
}

static bool link_fields_match(const struct question *q, const struct rule *rule)
{
	return field_matches(&rule->ethertype, q->frame.ethertype) &&
	       span_matches(&rule->length, q->frame.frame_len);
}

/* The longest lists of numbers, ports and MAC addresses, are read last. */
static bool rule_matches(const struct question *q, const struct rule *rule)
{
	if (!vlan_matches(q, rule) || !on_matches(q, rule) || !type_matches(q, rule) ||
	    !conditions_match(q, rule))
		return false;
	if (rule->ethertype.given ? !link_fields_match(q, rule) : !ip_fields_match(q, rule))
		return false;
	return field_matches(&rule->mac, q->frame.mac);
}

static struct prefix entry_of(const struct set *set, struct addr addr)
{
	struct prefix entry = {.addr = addr, .len = set->mask_len[addr.family == 6]};

	entry.addr.value &= addr_mask(entry.len);
	return entry;
}

static void run_adds(const struct question *q, const struct rule *rule)
{
	for (size_t i = 0; i < rule->adds.len; i++) {
		const struct add *add = &rule->adds.v[i];
		struct prefix entry =
			entry_of(add->set, add->destination ? q->frame.dst : q->frame.src);
		struct ref_add *added = vec_add(&q->policy->pool, &q->policy->added);
		char text[46];

		addr_format(entry.addr, text, sizeof(text));
		added->rule = rule->number;
		added->set = add->set->name;
		snprintf(added->prefix, sizeof(added->prefix), "%s/%u", text, entry.len);
	}
}

static void decide_by_rule(const struct rule *rule, struct ref_result *result)
{
	static const enum ref_verdict verdicts[] = {
		[ACTION_PASS] = REF_PASS,
		[ACTION_DROP] = REF_DROP,
		[ACTION_REJECT] = REF_REJECT,
		[ACTION_REDIRECT] = REF_REDIRECT,
	};

	result->verdict = verdicts[rule->action];
	result->via = REF_BY_RULE;
	result->redirect = rule->redirect;
	result->rule = rule->number;
	result->rule_name = rule->name;
}

/* The first match among the `always` rules or among the others. */
static bool decide_rules(const struct question *q, bool always, struct ref_result *result)
{
	struct ref_policy *policy = q->policy;

	for (size_t i = 0; i < policy->rules.len; i++) {
		const struct rule *rule = policy->rules.v[i];

		if (rule->always != always || !rule_matches(q, rule))
			continue;
		run_adds(q, rule);
		if (rule->action == ACTION_COUNT) {
			*vec_add(&policy->pool, &policy->counted) = rule->number;
			continue;
		}
		decide_by_rule(rule, result);
		return true;
	}
	return false;
}

static bool decide_malformed(const struct question *q, struct ref_result *result)
{
	if (!q->frame.malformed)
		return false;
	result->verdict = q->policy->malformed_pass ? REF_PASS : REF_DROP;
	result->via = REF_BY_MALFORMED;
	result->word = q->frame.malformed;
	return true;
}

/* Reading 28: a later fragment of IPv6 has no protocol of its own and may be of any. */
static bool fragments_speak(const struct question *q)
{
	const struct field *protos = &q->policy->fragments_proto;

	if (q->frame.family != 6)
		return field_matches(protos, q->frame.proto);
	for (uint32_t proto = 0; proto < 256; proto++) {
		if (field_matches(protos, proto))
			return true;
	}
	return false;
}

/* Reading 3: later fragments only. */
static bool decide_fragments(const struct question *q, struct ref_result *result)
{
	const struct ref_policy *policy = q->policy;

	if (policy->fragments == FRAGMENTS_FILTER || q->frame.family == 0 ||
	    q->frame.fragment != FRAGMENT_LATER || !fragments_speak(q))
		return false;
	result->verdict = policy->fragments == FRAGMENTS_DROP ? REF_DROP : REF_PASS;
	result->via = REF_BY_FRAGMENTS;
	return true;
}

static const char *essential4(const struct frame *frame)
{
	if (frame->has_type && (frame->type == 3 || frame->type == 11 || frame->type == 12))
		return "icmp-error";
	if (frame->has_ports && frame->proto == PROTO_UDP && frame->sport == 67 &&
	    frame->dport == 68)
		return "dhcp";
	return NULL;
}

static const char *essential6(const struct frame *frame)
{
	if (frame->has_type && frame->type >= 1 && frame->type <= 4)
		return "icmp-error";
	if (frame->has_type && ((frame->type >= 130 && frame->type <= 132) || frame->type == 143))
		return "mld";
	if (frame->has_ports && frame->proto == PROTO_UDP && frame->sport == 547 &&
	    frame->dport == 546 && frame->src.value >> 118 == 0xfe80 >> 6)
		return "dhcp";
	return NULL;
}

/* weir-policy(5), ESSENTIALS; reading 14 */
static const char *essential(const struct question *q)
{
	if (q->nd)
		return "nd";
	if (q->policy->essentials_filter || q->frame.routed)
		return NULL;
	if (q->frame.family == 4)
		return essential4(&q->frame);
	if (q->frame.family == 6)
		return essential6(&q->frame);
	return q->frame.ethertype == ETHERTYPE_ARP_REQUEST ? "arp" : NULL;
}

/* reading 28 */
static bool holds(const struct question *q)
{
	const struct ref_policy *policy = q->policy;

	for (size_t i = 0; i < policy->ifaces.len; i++) {
		if (!strcmp(policy->ifaces.v[i], q->iface))
			return true;
	}
	return !policy->ifaces.len;
}

static void pass_by_default(struct ref_result *result)
{
	result->verdict = REF_PASS;
	result->via = REF_BY_DEFAULT;
}

static bool default_drops(const struct question *q)
{
	const struct ref_policy *policy = q->policy;

	for (size_t i = 0; i < policy->defaults.len; i++) {
		if (!strcmp(policy->defaults.v[i].iface, q->iface))
			return policy->defaults.v[i].drop;
	}
	return policy->default_drop;
}

static void decide_default(const struct question *q, struct ref_result *result)
{
	bool drop = default_drops(q);

	result->word = drop ? essential(q) : NULL;
	result->verdict = drop && !result->word ? REF_DROP : REF_PASS;
	result->via = result->word ? REF_BY_ESSENTIALS : REF_BY_DEFAULT;
}

void ref_match(struct ref_policy *policy, const struct ref_packet *packet,
	       struct ref_result *ret_result)
{
	struct question q = {.policy = policy, .packet = packet};

	q.iface = packet->iface ? packet->iface : ref_policy_iface(policy);
	policy->packet++;
	policy->counted.len = 0;
	policy->added.len = 0;
	memset(ret_result, 0, sizeof(*ret_result));
	frame_parse(packet->bytes, packet->len, &q.frame);
	q.nd = !q.frame.malformed && frame_is_nd(&q.frame);
	if (decide_malformed(&q, ret_result))
		;
	else if (!holds(&q))
		pass_by_default(ret_result);
	else if (!decide_rules(&q, true, ret_result) && !decide_fragments(&q, ret_result) &&
		 !decide_rules(&q, false, ret_result))
		decide_default(&q, ret_result);
	ret_result->counted = policy->counted.v;
	ret_result->counted_len = policy->counted.len;
	ret_result->added = policy->added.v;
	ret_result->added_len = policy->added.len;
}

int ref_dynamic_add(struct ref_policy *policy, const char *set, const char *address)
{
	struct set *found = policy_set(policy, set);
	struct addr addr;

	if (!found || !found->dynamic || !addr_parse(address, &addr))
		return -1;
	*vec_add(&policy->pool, &found->entries) = entry_of(found, addr);
	return 0;
}
