// SPDX-License-Identifier: GPL-2.0-only
// weir explain ADDRESS: what happens to packets from and to it, and which entries, sets and rules
// contain it.
#include <stdlib.h>
#include <string.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/num.h"
#include "ctl/cmd/explain_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/decision.h"
#include "ctl/datapath/device.h"

// The first entry or rule that decides every packet from, or to, the address.
struct address_side {
	bool to;
	const struct reference *overlay; // NULL: the overlay does not decide
	size_t rule;                     // n_rules: no rule decides
	size_t reached;                  // rules before this one are tried
	size_t before;                   // number of rules that decide only some packets
};

struct address_view {
	struct context *ctx;
	struct explain *e;
	struct prefix target;
	struct address_side from, to;
	const struct reference *out;   // decides about connections to the address; NULL: none
	bool allowed, blocked, always; // an overlay entry or an always rule contains the address
	bool *shown;                   // by set: printed with a rule
};

static bool is_to(uint8_t kind)
{
	return kind == OVERLAY_BLOCK_TO || kind == OVERLAY_ALLOW_TO;
}

// ---- the verdict --------------------------------------------------------------------------------

// Allow beats block.
static const struct reference *overlay_of(const struct address_view *v, bool to)
{
	const struct reference *allow =
		explain_overlay(v->e, &v->target, to ? OVERLAY_ALLOW_TO : OVERLAY_ALLOW_FROM);

	return allow ? allow
		     : explain_overlay(v->e, &v->target,
				       to ? OVERLAY_BLOCK_TO : OVERLAY_BLOCK_FROM);
}

static struct address_side decide(const struct address_view *v, bool to)
{
	const struct resolved *r = v->e->c->resolved;
	struct address_side s = {.to = to};
	size_t later = 0;

	s.rule = explain_decider(r, 0, r->n_always, &v->target, to, &s.before);
	s.reached = s.rule;
	if (s.rule < r->n_always)
		return s;
	s.rule = r->n_rules;
	if ((s.overlay = overlay_of(v, to)))
		return s;
	s.rule = explain_decider(r, r->n_always, r->n_rules, &v->target, to, &later);
	s.reached = s.rule;
	s.before += later;
	return s;
}

// False for an interface that the policy does not name.
static bool has_default(const struct address_view *v, size_t iface)
{
	return !v->e->named || v->e->classes[iface];
}

// True if all interfaces have the same default.
static bool default_is_one(const struct address_view *v)
{
	const struct resolved *r = v->e->c->resolved;

	for (size_t i = 1; v->e->named && i < r->n_interfaces; i++)
		if (has_default(v, i) && r->interfaces[v->e->classes[i] - 1].default_drop !=
						 r->interfaces[0].default_drop)
			return false;
	return true;
}

static bool default_drops(const struct address_view *v)
{
	const struct resolved *r = v->e->c->resolved;

	return v->e->named ? r->interfaces[0].default_drop : r->default_drop;
}

static enum decision_verdict verdict_of(const struct address_view *v, const struct address_side *s)
{
	static const enum decision_verdict verdicts[] = {
		[ACTION_PASS] = DECISION_PASS,         [ACTION_DROP] = DECISION_DROP,
		[ACTION_REJECT] = DECISION_REJECT,     [ACTION_COUNT] = DECISION_PASS,
		[ACTION_REDIRECT] = DECISION_REDIRECT,
	};
	const struct resolved *r = v->e->c->resolved;

	if (s->overlay)
		return overlay_is_allow(s->overlay->kind) ? DECISION_PASS : DECISION_DROP;
	if (!v->e->recorded)
		return DECISION_NONE;
	if (s->rule < r->n_rules)
		return verdicts[r->rules[s->rule].action];
	return default_drops(v) ? DECISION_DROP : DECISION_PASS;
}

static void add_rule(const struct address_view *v, const struct address_side *s, struct text *t)
{
	const struct resolved *r = v->e->c->resolved;
	struct explain_entry entry;

	explain_show_rule(t, v->e, s->rule);
	explain_scope(r, &r->rules[s->rule], &v->target, s->to, &entry);
	if (!entry.list)
		return;
	text_add(t, ", ");
	explain_add_entry(t, r, &entry);
}

static void add_why(const struct address_view *v, const struct address_side *s, struct text *t)
{
	const struct resolved *r = v->e->c->resolved;

	if (s->overlay)
		explain_show_record(t, v->e->store, s->overlay);
	else if (!v->e->recorded)
		text_add(t, "no overlay entry contains it, and the rules are not known");
	else if (s->rule < r->n_rules)
		add_rule(v, s, t);
	else if (!default_is_one(v))
		text_add(t, "default of the first interface (others differ)");
	else
		explain_show_default(t, v->e, 0, default_drops(v));
	if (s->before)
		text_addf(t, ", unless %s%zu earlier %s decides (weir explain PACKET)",
			  s->before > 1 ? "one of " : "", s->before,
			  num_plural(s->before, "rule", "rules"));
}

static void show_side(const struct address_view *v, const struct address_side *s)
{
	struct decision_line line = {.verdict = verdict_of(v, s)};
	struct out *o = v->ctx->out;
	addr_text target;

	out_set_string(o, s->to ? "to" : "from", decision_word(line.verdict));
	out_set_u64(o, s->to ? "to_before" : "from_before", s->before);
	text_addf(&line.what, "%s %s", s->to ? "to" : "from", prefix_format(&v->target, target));
	add_why(v, s, &line.why);
	explain_show_decision(o, &line);
}

// Connections to the address, if any entry is about them: allow beats block, and the kinds are
// looked up in their order.
static void show_out(struct address_view *v)
{
	struct decision_line line = {.plural = true};
	struct out *o = v->ctx->out;
	addr_text target;

	for (uint8_t kind = OVERLAY_PACKET_KINDS; !v->out && kind < OVERLAY_KINDS; kind++)
		v->out = explain_overlay(v->e, &v->target, kind);
	if (!v->out) {
		out_set_string(o, "out", NULL);
		return;
	}
	line.verdict = overlay_is_allow(v->out->kind) ? DECISION_PERMIT : DECISION_REFUSE;
	out_set_string(o, "out", decision_word(line.verdict));
	text_addf(&line.what, "outgoing connections to %s", prefix_format(&v->target, target));
	explain_show_record(&line.why, v->e->store, v->out);
	explain_show_decision(o, &line);
}

// Lists the interfaces of the instance to which the policy applies, or to which only entries apply.
// Where our program is not on the device, neither does.
static size_t add_where(const struct address_view *v, const char *key, enum reach_what what,
			struct text *t)
{
	const struct instance *i = v->e->store->instance;
	struct device device;
	size_t found = 0;

	out_array(v->ctx->out, key);
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		if (device_read(i, n, &device, NULL) ||
		    (device.state != DEVICE_HELD && device.state != DEVICE_MOVED) ||
		    reach_what(&v->e->reach, n) != what)
			continue;
		out_item_string(v->ctx->out, device.iface.name);
		text_addf(t, "%s%s", found++ ? " " : "", device.iface.name);
	}
	out_end(v->ctx->out);
	return found;
}

// The policy decides only on the interfaces to which it applies.
static void show_where(const struct address_view *v)
{
	CLEANUP_TEXT struct text here = {0}, elsewhere = {0};

	if (!v->e->store || v->e->reach.empty)
		return;
	add_where(v, "holds_on", REACH_POLICY, &here);
	if (add_where(v, "only_entries_on", REACH_ENTRIES, &elsewhere))
		out_line(v->ctx->out, "  policy:   applies to %s; only entries apply to %s",
			 here.len ? text_get(&here) : "no interface that is attached",
			 text_get(&elsewhere));
}

// ---- other entries, sets and rules --------------------------------------------------------------

static void show_record(void *ctx, const struct reference *record)
{
	struct address_view *v = ctx;
	struct out *o = v->ctx->out;
	const struct address_side *side = is_to(record->kind) ? &v->to : &v->from;
	bool out = overlay_is_out(record->kind), decides = record == (out ? v->out : side->overlay);
	CLEANUP_TEXT struct text line = {0};

	v->allowed |= !out && overlay_is_allow(record->kind);
	v->blocked |= !out && !overlay_is_allow(record->kind);
	out_object(o, NULL);
	explain_set_record(o, v->e->store, record);
	out_set_bool(o, "decides", decides);
	out_end(o);
	if (!decides) {
		explain_show_record(&line, v->e->store, record);
		out_line(o, "  also in:  %s (not reached)", text_get(&line));
	}
}

static void set_entry(const struct address_view *v, const struct explain_entry *entry)
{
	struct out *o = v->ctx->out;
	CLEANUP_TEXT struct text place = {0};
	addr_text prefix;

	explain_add_place(&place, v->e->c->resolved, entry->place);
	out_set_string(o, "set", entry->list->name);
	out_set_string(o, "entry", prefix_format(&entry->prefix, prefix));
	out_set_string(o, "entry_at", text_get(&place));
}

static void show_rule(const struct address_view *v, size_t rule, const struct address_side *s,
		      const struct explain_entry *entry)
{
	struct out *o = v->ctx->out;
	bool reached = rule < s->reached, decides = rule == s->rule;
	CLEANUP_TEXT struct text line = {0};

	out_object(o, NULL);
	explain_set_rule(o, v->e, rule);
	out_set_string(o, "side", s->to ? "to" : "from");
	set_entry(v, entry);
	out_set_bool(o, "reached", reached || decides);
	out_set_bool(o, "decides", decides);
	out_end(o);
	if (decides)
		return;
	explain_add_entry(&line, v->e->c->resolved, entry);
	text_add(&line, " -> ");
	explain_show_rule(&line, v->e, rule);
	out_line(o, "  also in:  %s (%s%s)", text_get(&line), s->to ? "to; " : "",
		 reached ? "for some packets" : "not reached");
}

static void see_rule(struct address_view *v, size_t rule, const struct address_side *s)
{
	const struct resolved *r = v->e->c->resolved;
	const struct resolved_rule *at = &r->rules[rule];
	struct explain_entry entry;

	if (explain_scope(r, at, &v->target, s->to, &entry) == EXPLAIN_NONE || !entry.list)
		return;
	v->always |= at->always;
	v->shown[s->to ? at->to.index : at->from.index] = true;
	show_rule(v, rule, s, &entry);
}

static void show_rules(struct address_view *v)
{
	out_array(v->ctx->out, "rules");
	for (size_t rule = 0; rule < v->e->c->resolved->n_rules; rule++) {
		see_rule(v, rule, &v->from);
		see_rule(v, rule, &v->to);
	}
	out_end(v->ctx->out);
}

// All sets that contain the address; those already printed with a rule only in JSON.
static void show_sets(struct address_view *v)
{
	const struct resolved *r = v->e->c->resolved;
	struct out *o = v->ctx->out;

	out_array(o, "sets");
	for (size_t s = 0; s < r->n_sets; s++) {
		struct explain_entry entry;
		CLEANUP_TEXT struct text line = {0};

		if (!explain_holds(&r->addresses[s], &v->target, &entry))
			continue;
		out_object(o, NULL);
		set_entry(v, &entry);
		out_end(o);
		explain_add_entry(&line, r, &entry);
		if (!v->shown[s])
			out_line(o, "  also in:  %s", text_get(&line));
	}
	out_end(o);
}

// Services with this address. Several can share an address list, so `at` is the line of the
// service.
static void show_services(struct address_view *v)
{
	const struct resolved *r = v->e->c->resolved;
	struct out *o = v->ctx->out;

	out_array(o, "services");
	for (size_t s = 0; s < r->n_services; s++) {
		struct explain_entry entry;
		CLEANUP_TEXT struct text at = {0};
		addr_text prefix;

		if (!explain_holds(&r->addresses[r->services[s].vip], &v->target, &entry))
			continue;
		explain_add_place(&at, r, r->services[s].place);
		out_object(o, NULL);
		out_set_string(o, "service", r->services[s].name);
		out_set_string(o, "at", text_get(&at));
		set_entry(v, &entry);
		out_end(o);
		out_line(o, "  service:  %s %s, %s", r->services[s].name, text_get(&at),
			 prefix_format(&entry.prefix, prefix));
	}
	out_end(o);
}

static void show_absent(const struct address_view *v)
{
	CLEANUP_TEXT struct text line = {0};

	if (!v->always && v->e->recorded)
		text_add(&line, ", always rules");
	if (!v->allowed && v->e->store)
		text_add(&line, ", overlay allow");
	if (!v->blocked && v->e->store)
		text_add(&line, ", overlay block");
	if (line.len)
		out_line(v->ctx->out, "  not in:   %s", text_get(&line) + 2);
}

static void show(struct address_view *v)
{
	struct out *o = v->ctx->out;

	v->from = decide(v, false);
	v->to = decide(v, true);
	v->shown = mem_zalloc(v->e->c->resolved->n_addresses, sizeof(*v->shown));
	show_side(v, &v->from);
	show_side(v, &v->to);
	show_out(v);
	show_where(v);
	out_array(o, "entries");
	if (v->e->store)
		records_covering(&v->e->store->records, &v->target, show_record, v);
	out_end(o);
	show_rules(v);
	show_sets(v);
	show_services(v);
	show_absent(v);
	explain_warn(v->ctx, v->e);
	free(v->shown);
}

static int parse_target(const char *word, struct prefix *ret, struct err *err)
{
	if (addr_looks_like(word, strlen(word)))
		return prefix_parse(word, strlen(word), ret, NULL, err);
	err_input(err, "'%s' is not an address", word);
	return err_hint(err,
			"weir list shows the addresses of a blocked name; a packet has several "
			"words: tcp from A to B port 22");
}

int explain_address(struct context *ctx, const struct explain_request *request, const char *word,
		    struct err *err)
{
	CLEANUP_EXPLAIN struct explain e = {0};
	struct address_view v = {.ctx = ctx, .e = &e};
	int code = parse_target(word, &v.target, err);

	if (code)
		return code;
	if ((code = explain_open(&e, request, err)))
		return code;
	if (e.store && (code = store_load_covering(e.store, &v.target, 1, err)))
		return code;
	out_set_string(ctx->out, "address", word);
	show(&v);
	return e.store ? show_open(e.store->instance, 0, ctx->out, err) : 0;
}
