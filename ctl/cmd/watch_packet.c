// SPDX-License-Identifier: GPL-2.0-only
// Finds interface, rule and entry of a record.
#include "ctl/cmd/watch_packet.h"

#include <stdio.h>

#include "ctl/cmd/packet_text.h"
#include "ctl/datapath/counters.h"

void watch_packet_read(struct culprits *c, const struct event *from, struct watch_packet *ret)
{
	struct watch_event *e = &ret->event;

	*e = (struct watch_event){
		.monotonic_us = from->time_ns / 1000,
		.interface = ret->interface,
		.verdict = reason_outcome(from->reason),
		.reason = reason_name(from->reason),
		.packet = "",
		.length = from->length,
		.missed = from->missed,
		.logged = from->logged,
	};
	if (!if_indextoname(from->ifindex, ret->interface))
		snprintf(ret->interface, sizeof(ret->interface), "if%u", from->ifindex);
	packet_read(from->packet, from->captured, &ret->fields);
	e->ip = ret->fields.ip;
	e->from = ret->fields.from;
	e->to = ret->fields.to;
	if (from->rule != EVENT_NO_RULE)
		e->rule = culprits_rule(c, from->rule);
}

static const struct prefix *entry_of(struct culprits *c, const struct event *from,
				     const struct watch_event *e)
{
	bool to = from->reason == REASON_DROP_BLOCK_TO;

	if (!e->ip || (!to && from->reason != REASON_DROP_BLOCK_FROM))
		return NULL;
	return culprits_entry(c, to ? &e->to : &e->from,
			      to ? OVERLAY_BLOCK_TO : OVERLAY_BLOCK_FROM);
}

void watch_packet_complete(struct culprits *c, const struct event *from, struct watch_packet *p)
{
	const struct prefix *entry = entry_of(c, from, &p->event);

	packet_describe(from->packet, from->captured, p->packet, sizeof(p->packet));
	p->event.packet = p->packet;
	p->event.entry = entry ? prefix_format(entry, p->entry) : NULL;
}

void watch_packet_set(struct out *o, const struct watch_packet *p)
{
	const struct watch_event *e = &p->event;

	out_set_u64(o, "monotonic_us", e->monotonic_us);
	out_set_string(o, "interface", e->interface);
	out_set_string(o, "verdict", e->verdict);
	out_set_string(o, "reason", e->reason);
	out_set_string(o, "packet", e->packet);
	out_set_u64(o, "length", e->length);
	out_set_u64(o, "missed", e->missed);
	out_set_bool(o, "logged", e->logged);
	if (e->rule)
		out_set_string(o, "rule", e->rule);
	if (e->entry)
		out_set_string(o, "entry", e->entry);
	packet_set_fields(o, &p->fields);
}
