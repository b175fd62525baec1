// SPDX-License-Identifier: GPL-2.0-only
// Prints the service that a packet is for, and its slot, as text and as JSON.
#include "ctl/cmd/explain_service.h"

#include "common/service.h"
#include "ctl/cmd/explain_show.h"
#include "ctl/control/pool.h"
#include "ctl/datapath/counters.h"

static const struct image_service *image_of(const struct explain *e, const struct test_result *r)
{
	const struct image *image = e->c->image;

	return e->recorded && (size_t)r->service < image->n_services ? &image->services[r->service]
								     : NULL;
}

static const struct lb_service *service_of(const struct explain *e, const struct test_result *r)
{
	return e->lb && (size_t)r->service < e->lb->n_services ? &e->lb->services[r->service]
							       : NULL;
}

static const char *name_of(const struct explain *e, const struct lb_service *s, uint32_t id,
			   addr_text buf)
{
	for (uint32_t m = 0; s && id != BACKEND_NONE && m < s->n_members; m++)
		if (e->lb->members[s->first_member + m].id == id)
			return pool_name(&e->lb->members[s->first_member + m], buf);
	return id == BACKEND_NONE ? "no backend" : "a removed backend";
}

void explain_add_service(struct text *t, const struct explain *e, const struct test_result *r)
{
	const struct lb_service *s = service_of(e, r);
	const struct image_service *a = image_of(e, r);
	bool back = r->reason == REASON_PASS_ANSWER_NAT;
	addr_text name;

	text_addf(t, "%sservice %s%s%s", back ? "answer of " : "",
		  a   ? a->name
		  : s ? s->name
		      : "?",
		  a ? " " : "", a ? a->place : "");
	if (r->backend != BACKEND_NONE)
		text_addf(t, ", %s %s", back ? "from" : "to", name_of(e, s, r->backend, name));
	if (r->reason != REASON_PASS_SERVICE && !back)
		text_addf(t, ": %s (%s)", reason_name(r->reason), reason_text(r->reason));
}

static const char *phase_name(const struct lb_service *s, const struct explain *e, uint64_t slot)
{
	uint64_t now = e->store ? e->store->clock.jiffies : 0;
	struct ring_rules rules = lb_service_rules(s, now, clock_hz());

	switch (slot_phase(slot, now, rules.hold_ticks)) {
	case SLOT_STABLE:
		return "stable";
	case SLOT_CHANGING:
		return "changing";
	default:
		return "pins only";
	}
}

static void show_slot(struct out *o, const struct explain *e, const struct lb_service *s,
		      const struct test_result *r)
{
	uint32_t owner = slot_owner(r->slot_word), former = slot_former(r->slot_word);
	const char *phase = phase_name(s, e, r->slot_word);
	addr_text a, b;

	out_set_u64(o, "slot", r->slot);
	out_set_string(o, "phase", phase);
	out_set_string(o, "owner", name_of(e, s, owner, a));
	out_set_string(o, "former", former ? name_of(e, s, former, b) : NULL);
	out_set_bool(o, "pinned", r->pinned);
	out_line(o, "  slot:        %u of %u, %s, owner %s%s%s%s", r->slot, s->size, phase,
		 name_of(e, s, owner, a), former ? ", former owner " : "",
		 former ? name_of(e, s, former, b) : "", r->pinned ? "; the flow is pinned" : "");
}

// Its connection decides, so the slot matters only to a packet that begins one.
static void show_connection(struct out *o, const struct lb_service *s, const struct test_result *r)
{
	out_set_bool(o, "connection", r->pinned);
	out_line(o, "  connection:  %s%s", r->pinned ? "known" : "begins with this packet",
		 r->pinned || s->mode != SERVICE_FULLNAT
			 ? ""
			 : ", whose source changes too when it is sent");
}

static void show_choice(struct out *o, const struct explain *e, const struct lb_service *s,
			const struct test_result *r)
{
	if (service_mode_does((enum service_mode)s->mode) & MODE_NAT ||
	    r->reason == REASON_PASS_ANSWER_NAT)
		show_connection(o, s, r);
	else
		show_slot(o, e, s, r);
}

void explain_show_service(struct out *o, const struct explain *e, const struct test_result *r)
{
	const struct lb_service *s = service_of(e, r);
	const struct image_service *a = image_of(e, r);
	CLEANUP_TEXT struct text passed = {0};
	addr_text name;

	out_object(o, "service");
	out_set_string(o, "name", a ? a->name : s ? s->name : NULL);
	out_set_string(o, "at", a ? a->place : NULL);
	out_set_string(o, "backend",
		       r->backend != BACKEND_NONE ? name_of(e, s, r->backend, name) : NULL);
	if (s && r->backend != BACKEND_NONE)
		show_choice(o, e, s, r);
	if (r->reason == REASON_PASS_ANSWER_NAT) { // answers come before the rules
		out_end(o);
		return;
	}
	if (r->rule >= 0)
		explain_show_rule(&passed, e, (size_t)r->rule);
	else
		text_add(&passed, reason_name(r->passed));
	out_set_string(o, "passed_by", text_get(&passed));
	out_end(o);
	out_line(o, "  passed by:   %s", text_get(&passed));
}
