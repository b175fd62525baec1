// SPDX-License-Identifier: GPL-2.0-only
// Prints rules, overlay entries and defaults as text and as JSON.
#include "ctl/cmd/explain_show.h"

#include "ctl/base/num.h"
#include "ctl/cmd/show.h"

static const char *color_of(const struct out *o, enum decision_verdict verdict)
{
	if (verdict == DECISION_NONE)
		return out_yellow(o);
	return decision_loses(verdict) ? out_red(o) : out_green(o);
}

void explain_show_decision(struct out *o, struct decision_line *line)
{
	CLEANUP_TEXT struct text done = {0};

	decision_add_done(&done, line->verdict, line->to);
	out_line(o, "%s%s%s %s %s%s%s: %s", out_bold(o), text_get(&line->what), out_plain(o),
		 line->plural ? "are" : "is", color_of(o, line->verdict), text_get(&done),
		 out_plain(o), text_get(&line->why));
	text_free(&line->what);
	text_free(&line->why);
}

void explain_show_record(struct text *t, const struct store *s, const struct reference *record)
{
	const struct owner *owner = &s->records.owners.at[record->owner];
	struct overlay_entry found;
	const struct overlay_entry *entry =
		store_entry(s, &record->prefix, record->kind, &found) ? &found : NULL;
	uint64_t now = s->clock.wall_ms / 1000;
	CLEANUP_TEXT struct text who = {0};
	uint64_t packets;
	addr_text prefix;
	num_text text;

	show_owner(&who, owner);
	text_addf(t, "overlay %s %s %s, by %s ", kind_verb(record->kind),
		  prefix_format(&record->prefix, prefix), kind_side(record->kind),
		  owner->by[0] ? owner->by : "?");
	show_time(t, owner->since_s, now);
	if (who.len)
		text_addf(t, ", %s", text_get(&who));
	if (record->until_s != RECORD_NEVER)
		text_addf(t, ", %s left",
			  num_format_duration_ms(show_left_s(&s->clock, record->until_s) * 1000,
						 text));
	packets = entry ? entry->hits.packets : 0;
	text_addf(t, ", %s %s", num_format_grouped(packets, text),
		  num_plural(packets, "packet", "packets"));
	if (entry && entry->seen)
		text_addf(t, ", last %s ago",
			  num_format_duration_ms(
				  clock_ms_since(&s->clock, entry->seen) / 1000 * 1000, text));
}

void explain_set_record(struct out *o, const struct store *s, const struct reference *record)
{
	const struct owner *owner = &s->records.owners.at[record->owner];
	addr_text prefix;

	out_set_string(o, "prefix", prefix_format(&record->prefix, prefix));
	out_set_string(o, "kind", kind_key(record->kind));
	out_set_string(o, "by", owner->by);
	out_set_string(o, "note", owner->note);
	out_set_string(o, "name", owner->name);
	out_set_time(o, "until", record->until_s);
}

static const struct image_rule *about(const struct explain *e, size_t rule)
{
	const struct image *image = e->c->image;

	return e->recorded && rule < image->n_rules ? &image->about[rule] : NULL;
}

void explain_show_rule(struct text *t, const struct explain *e, size_t rule)
{
	const struct image_rule *a = about(e, rule);

	if (a && !strcmp(a->identity, a->place)) // a quick rule without a name
		text_addf(t, "rule \"%s\"", a->identity);
	else if (a)
		text_addf(t, "rule \"%s\" %s", a->identity, a->place);
	else
		text_addf(t, "rule %zu", rule + 1);
}

void explain_set_rule(struct out *o, const struct explain *e, size_t rule)
{
	const struct image_rule *a = about(e, rule);

	out_set_u64(o, "rule_number", rule + 1);
	if (!a)
		return;
	out_set_string(o, "rule", a->identity);
	out_set_string(o, "at", a->place);
}

void explain_show_default(struct text *t, const struct explain *e, uint32_t iface, bool drop)
{
	const struct resolved *r = e->c->resolved;
	struct diag_at at = r->default_at;

	if (iface < WEIR_IFACES && e->classes[iface])
		iface = e->classes[iface] - 1u;
	if (iface < r->n_interfaces && r->interfaces[iface].default_at.file)
		at = r->interfaces[iface].default_at;
	text_addf(t, "default %s", drop ? "drop" : "pass");
	if (at.file)
		text_addf(t, ", %s", diag_place(e->c->diag, at, false));
}

void explain_warn(struct context *ctx, const struct explain *e)
{
	struct out *o = ctx->out;

	out_set_string(o, "revision", e->revision[0] ? e->revision : NULL);
	out_set_bool(o, "recorded", e->recorded);
	if (e->store)
		show_damage(&e->store->damaged);
	if (!e->recorded)
		out_line(
			o,
			"%sthe record of revision %s is missing%s: its rules are shown as numbers, "
			"without their sets",
			out_red(o), e->revision, out_plain(o));
	if (e->store && e->reach.over)
		out_line(
			o,
			"%sa trial has expired: all packets pass on the interfaces that it attached%s "
			"(weir status)",
			out_red(o), out_plain(o));
	if (e->store && e->store->instance->knobs->bypass > e->store->clock.jiffies)
		out_line(o, "%sa bypass is on: all packets pass%s (weir status)", out_red(o),
			 out_plain(o));
}
