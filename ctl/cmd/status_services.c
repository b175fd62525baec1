// SPDX-License-Identifier: GPL-2.0-only
// The balancer's part of weir status: a line for each service, what is set by hand, what is wrong.
#include "ctl/cmd/status_services.h"

#include <stdio.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/arms_show.h"
#include "ctl/cmd/service_show.h"
#include "ctl/control/hands.h"

struct view {
	struct context *ctx;
	const struct fleet *fleet;
	const struct balancer_service *service;
	struct hands hands; // on disk
};

static const struct balancer_member *member(const struct view *v, uint32_t m)
{
	return &v->fleet->state->members[v->service->first_member + m];
}

static uint32_t count_state(const struct view *v, enum backend_state state)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < v->service->n_members; m++)
		n += service_state(member(v, m)) == state;
	return n;
}

static void show_line(const struct view *v)
{
	const struct fleet *f = v->fleet;
	struct out *o = v->ctx->out;
	struct balancer_figures figures;

	balancer_figures(f->state, v->service, f->clock.jiffies, f->clock.hz, &figures);
	out_set_string(o, "name", v->service->name);
	out_set_string(o, "mode", service_mode_name(v->service->mode));
	out_set_u64(o, "up", count_state(v, BACKEND_UP));
	out_set_u64(o, "drained", count_state(v, BACKEND_DRAIN));
	out_set_u64(o, "down", count_state(v, BACKEND_DOWN));
	out_set_u64(o, "slots_changing", figures.changing);
	out_set_u64(o, "slots_pins_only", figures.pins_only);
	service_set_fingerprint(o, figures.fingerprint);
	out_line(o, "service   %s: %s, %u up, %u drained, %u down; %s, fingerprint %016llx",
		 v->service->name, service_mode_name(v->service->mode), count_state(v, BACKEND_UP),
		 count_state(v, BACKEND_DRAIN), count_state(v, BACKEND_DOWN),
		 figures.changing    ? "changing"
		 : figures.pins_only ? "closing"
				     : "stable",
		 (unsigned long long)figures.fingerprint);
}

static void show_hands(const struct view *v)
{
	struct out *o = v->ctx->out;

	out_array(o, "by_hand");
	for (uint32_t m = 0; m < v->service->n_members; m++) {
		const struct balancer_member *b = member(v, m);
		struct text state = {0};
		addr_text name;
		bool fleeting;

		if (b->hand == BACKEND_UP && !b->weighed)
			continue;
		fleeting = !hands_have(&v->hands, v->service->name, b);
		service_add_state(&state, b, v->fleet->clock.wall_ms / 1000);
		out_object(o, NULL);
		out_set_string(o, "backend", fleet_name(b, name));
		out_set_string(o, "state", text_get(&state));
		out_set_u64(o, "weight", balancer_weight(b));
		out_set_bool(o, "volatile", fleeting);
		out_end(o);
		out_line(o, "          %s: %s, weight %u%s; weir undrain %s %s takes it back",
			 fleet_name(b, name), text_get(&state), balancer_weight(b),
			 fleeting ? ", gone with the next boot" : "", v->service->name,
			 fleet_name(b, name));
		text_free(&state);
	}
	out_end(o);
}

int status_services_open(struct context *ctx, struct fleet *ret, struct err *err)
{
	struct err why = {0};
	int code = fleet_open(ctx->instance, NULL, ret, &why);

	if (!code || why.kind == ERR_INPUT)
		return 0; // or there are none
	*err = why;
	return code;
}

void status_services_show(struct context *ctx, const struct fleet *f)
{
	struct view v = {.ctx = ctx, .fleet = f};

	if (f->live)
		hands_read(ctx->instance, &v.hands,
			   NULL); // damaged: the next change says so
	out_array(ctx->out, "services");
	for (size_t n = 0; f->live && n < f->state->n_services; n++) {
		v.service = &f->state->services[n];
		out_object(ctx->out, NULL);
		show_line(&v);
		show_hands(&v);
		out_end(ctx->out);
	}
	out_end(ctx->out);
	vec_free(&v.hands);
}

// ---- alarms -------------------------------------------------------------------------------------

static bool counts(const struct balancer_member *m)
{
	return balancer_state(m) == BACKEND_UP && balancer_weight(m);
}

static void alarm_backend(const struct view *v, const struct balancer_member *m,
			  status_alarm *alarm, void *status)
{
	const struct backend *row = balancing_row(v->fleet->live, m->id);
	addr_text name;

	if (m->gone || !row || row->here)
		return;
	if (!row->ifindex && !counts(m)) // else alarm_ways knows why
		alarm(status,
		      "service '%s': no next hop is known for %s: weir service --refresh says why",
		      v->service->name, fleet_name(m, name));
	else if (arms_cannot_send(v->fleet, row))
		alarm(status,
		      "service '%s': the device to %s loses frames: weir service --refresh "
		      "says why",
		      v->service->name, fleet_name(m, name));
}

static void alarm_pins(const struct view *v, status_alarm *alarm, void *status)
{
	struct service_counter c;
	num_text n;

	if (balancing_counter(v->fleet->live, v->service->row, &c, NULL))
		return;
	if (v->service->hold > 1)
		alarm(status,
		      "service '%s': a flood pushes pins out; transitions are held open "
		      "%u times as long",
		      v->service->name, v->service->hold);
	if (c.event[SERVICE_UNPINNED])
		alarm(status,
		      "service '%s': %s flows found no place for a pin: write more than "
		      "'pins %llu'",
		      v->service->name, num_format_grouped(c.event[SERVICE_UNPINNED], n),
		      (unsigned long long)v->service->buckets * SERVICE_PIN_WORDS);
}

static void alarm_arms(const struct fleet *f, status_alarm *alarm, void *status)
{
	CLEANUP_ARMS struct arms arms = {0};
	CLEANUP_ARMS_FINDINGS struct arms_findings findings = {0};
	num_text n;

	arms_find(f, &arms);
	arms_check(&arms, false, &findings);
	vec_each (&findings, one)
		if (one->problem)
			alarm(status, "%s (%s)", one->text, one->mend);
	vec_each (&arms, arm)
		if (arm->lost.frames)
			alarm(status,
			      "'%s' lost %s frames that XDP sent, " ARMS_SINCE
			      " (%s): weir doctor says why",
			      arm->link.name, num_format_grouped(arm->lost.frames, n),
			      arm->lost.counter);
}

// As weir doctor asks, who waits for those that are silent.
static void alarm_ways(const struct fleet *f, status_alarm *alarm, void *status)
{
	CLEANUP_WAYS struct balance_ways ways = {0};
	struct err err = {0};

	if (balance_refresh(f->live, NEXTHOP_WAIT_MS, false, &ways, &err))
		alarm(status, "%s", err.text);
	vec_each (&ways.lost, text)
		alarm(status, "%s", *text);
	if (ways.changed)
		alarm(status,
		      "the next hops of %zu backends are not what they were: weir service "
		      "--refresh",
		      ways.changed);
}

void status_services_alarms(struct context *ctx, const struct fleet *f, status_alarm *alarm,
			    void *status)
{
	struct view v = {.ctx = ctx, .fleet = f};

	for (size_t n = 0; f->live && n < f->state->n_services; n++) {
		uint32_t up = 0;

		v.service = &f->state->services[n];
		for (uint32_t m = 0; m < v.service->n_members; m++) {
			up += counts(member(&v, m));
			alarm_backend(&v, member(&v, m), alarm, status);
		}
		if (!up)
			alarm(status,
			      "service '%s' has no backend left for new flows: its last "
			      "ring stays in force",
			      v.service->name);
		alarm_pins(&v, alarm, status);
	}
	if (!f->live)
		return;
	alarm_ways(f, alarm, status);
	alarm_arms(f, alarm, status);
}
