// SPDX-License-Identifier: GPL-2.0-only
// The balancer's part of weir status: services, overrides, alarms.
#include "ctl/cmd/status_services.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/nat_show.h"
#include "ctl/cmd/service_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/looks.h"
#include "ctl/control/overrides.h"

#define SERVICE "service" // the objects of alarms
#define BACKEND "backend"
#define IFACE   "interface"

#define LATE_S 2 // after the end of a wait, before it is an alarm
#define FULL   9 // tenths of the places of a mode and family that are an alarm

struct services_view {
	struct context *ctx;
	const struct pool *pool;
	const struct lb_service *service;
	bool *kept; // its members
	enum lb_flows flows;
	struct overrides overrides; // on disk
	struct service_health health;
	struct looks looks;
	const struct nat_reading *nat;
};

static const struct lb_member *member(const struct services_view *v, uint32_t m)
{
	return &v->pool->state->members[v->service->first_member + m];
}

static void view_service(struct services_view *v, size_t n)
{
	free(v->kept);
	v->service = &v->pool->state->services[n];
	v->kept = service_kept(v->pool->state, v->service, &v->flows);
}

static uint32_t count_state(const struct services_view *v, enum backend_state state)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < v->service->n_members; m++)
		n += !lb_member_waits(member(v, m)) &&
		     service_state(member(v, m), v->kept[m]) == state;
	return n;
}

static uint32_t count_waiting(const struct services_view *v)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < v->service->n_members; m++)
		n += lb_member_waits(member(v, m));
	return n;
}

static uint32_t count_kept(const struct services_view *v)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < v->service->n_members; m++)
		n += v->kept[m];
	return n;
}

// "changing"; in nat and fullnat "1,204 connections, 12 opening".
static const char *show_flows(const struct services_view *v, const struct lb_service_figures *f,
			      nat_sum_text buf)
{
	struct nat_sum sum = nat_of_service(v->nat, v->pool->state, v->service);
	struct out *o = v->ctx->out;

	if (service_shows_connections(v->nat, v->pool->state, v->service))
		nat_set_sum(o, sum);
	if (service_has_places(v->service))
		return nat_format_sum(sum, buf);
	out_set_u64(o, "slots_changing", f->changing);
	out_set_u64(o, "slots_pins_only", f->pins_only);
	return f->changing ? "changing" : f->pins_only ? "closing" : "stable";
}

static void show_checks(const struct services_view *v, struct text *checks)
{
	struct out *o = v->ctx->out;

	out_set_u64(o, "failing", count_state(v, BACKEND_FAILING));
	out_set_u64(o, "waiting", count_waiting(v));
	out_set_u64(o, "kept", count_kept(v));
	if (v->service->checked)
		out_set_bool(o, "checked", v->health.agent);
	if (count_state(v, BACKEND_FAILING))
		text_addf(checks, ", %u failing", count_state(v, BACKEND_FAILING));
	if (count_waiting(v))
		text_addf(checks, ", %u not checked yet", count_waiting(v));
	if (v->service->checked && !v->health.agent)
		text_add(checks, ", not checked");
}

static void show_line(const struct services_view *v)
{
	const struct pool *f = v->pool;
	struct out *o = v->ctx->out;
	struct lb_service_figures figures;
	CLEANUP_TEXT struct text checks = {0};
	nat_sum_text buf;
	const char *flows;

	lb_service_figures(f->state, v->service, f->clock.jiffies, f->clock.hz, &figures);
	out_set_string(o, "name", v->service->name);
	out_set_string(o, "mode", service_mode_name(v->service->mode));
	out_set_u64(o, "up", count_state(v, BACKEND_UP));
	out_set_u64(o, "drained", count_state(v, BACKEND_DRAIN));
	out_set_u64(o, "down", count_state(v, BACKEND_DOWN));
	flows = show_flows(v, &figures, buf);
	show_checks(v, &checks);
	service_set_fingerprint(o, "fingerprint", figures.fingerprint);
	service_set_fingerprint(o, "configuration_fingerprint", figures.configuration);
	out_line(o, "service   %s: %s, %u up, %u drained, %u down%s; %s, fingerprint %016llx",
		 v->service->name, service_mode_name(v->service->mode), count_state(v, BACKEND_UP),
		 count_state(v, BACKEND_DRAIN), count_state(v, BACKEND_DOWN), text_get(&checks),
		 flows, (unsigned long long)figures.fingerprint);
}

static void show_overrides(const struct services_view *v)
{
	struct out *o = v->ctx->out;

	out_array(o, "by_hand");
	for (uint32_t m = 0; m < v->service->n_members; m++) {
		const struct lb_member *b = member(v, m);
		CLEANUP_TEXT struct text state = {0};
		addr_text name;
		bool fleeting;

		if (b->override == BACKEND_UP && !b->weighed)
			continue;
		fleeting = !overrides_have(&v->overrides, v->service->name, b);
		service_add_state(&state, b, v->kept[m], v->pool->clock.wall_ms / 1000);
		out_object(o, NULL);
		out_set_string(o, "backend", pool_name(b, name));
		out_set_string(o, "state", text_get(&state));
		out_set_u64(o, "weight", lb_member_weight(b));
		out_set_bool(o, "volatile", fleeting);
		out_end(o);
		out_line(o,
			 "          %s: %s, weight %u%s (weir undrain %s %s removes the override)",
			 pool_name(b, name), text_get(&state), lb_member_weight(b),
			 fleeting ? ", not saved" : "", v->service->name, pool_name(b, name));
	}
	out_end(o);
}

int status_services_open(struct context *ctx, const struct instance *i, struct pool *ret,
			 struct nat_reading *ret_nat, struct err *err)
{
	struct err why = {0};
	int code = pool_open(ctx->instance, NULL, ret, &why);

	if (code && why.kind != ERR_INPUT) { // else the policy has no services
		*err = why;
		return code;
	}
	return nat_read(i, ret_nat, err);
}

void status_services_show(struct context *ctx, const struct pool *f, const struct nat_reading *nat)
{
	struct services_view v = {.ctx = ctx, .pool = f, .nat = nat};

	if (f->live)
		overrides_read(ctx->instance, &v.overrides,
			       NULL); // a damaged file is reported by the next change
	service_health_open(ctx->instance, &v.health);
	out_array(ctx->out, "services");
	for (size_t n = 0; f->live && n < f->state->n_services; n++) {
		view_service(&v, n);
		out_object(ctx->out, NULL);
		show_line(&v);
		show_overrides(&v);
		out_end(ctx->out);
	}
	out_end(ctx->out);
	nat_show(ctx->out, nat, false);
	nat_show_former(ctx->out, nat);
	free(v.kept);
	vec_free(&v.overrides);
	service_health_close(&v.health);
}

// ---- alarms -------------------------------------------------------------------------------------

static bool counts(const struct services_view *v, const struct lb_member *m)
{
	bool kept = v->kept[m - member(v, 0)];

	return service_state(m, kept) == BACKEND_UP;
}

// "web/10.0.0.11".
static char *about_backend(const struct services_view *v, const struct lb_member *m)
{
	addr_text name;

	return mem_printf("%s/%s", v->service->name, pool_name(m, name));
}

static void alarm_backend(const struct services_view *v, const struct lb_member *m,
			  alarm_adder *alarm, void *status)
{
	const struct backend *backend = lb_maps_backend(v->pool->live, m->id);
	CLEANUP_FREE char *about = about_backend(v, m);
	addr_text name;

	if (m->gone || !backend || backend->here)
		return;
	if (!backend->ifindex && !counts(v, m)) // else alarm_paths has the reason
		alarm(status, BACKEND, about,
		      "service '%s': the next hop of %s is unknown (" MEND(
			      "weir service --refresh") " shows the reason)",
		      v->service->name, pool_name(m, name));
	else if (egress_cannot_send(v->pool, backend))
		alarm(status, BACKEND, about,
		      "service '%s': the device to %s loses frames (" MEND(
			      "weir service --refresh") " shows "
							"the reason)",
		      v->service->name, pool_name(m, name));
}

// Checks are better, but every command evaluates these counters.
static void alarm_silent(struct services_view *v, const struct lb_member *m, alarm_adder *alarm,
			 void *status)
{
	uint64_t now_ms = v->pool->clock.wall_ms;
	struct service_counter c;
	const struct look *look;
	CLEANUP_FREE char *about = about_backend(v, m);
	CLEANUP_TEXT struct text since = {0};
	num_text opened, n;
	addr_text name;

	if (m->gone || lb_maps_counter(v->pool->live, m->id, &c, NULL))
		return;
	look = looks_at(&v->looks, v->service, m,
			&(struct look_count){c.packets, c.event[SERVICE_OPENED]}, counts(v, m),
			now_ms);
	if (!look->silent || (v->health.agent && v->service->checked))
		return;
	if (look->since_ms) {
		text_add(&since, " since ");
		show_time(&since, look->since_ms / 1000, now_ms / 1000);
	}
	alarm(status, BACKEND, about,
	      "service '%s': %s of %s packets for %s%s opened connections, as if it did not answer",
	      v->service->name, num_format_grouped(look->judged.opened, opened),
	      num_format_grouped(look->judged.packets, n), pool_name(m, name), text_get(&since));
}

// Those that a command has taken out are expected to fail.
static void alarm_health(const struct services_view *v, alarm_adder *alarm, void *status)
{
	uint32_t failing = 0, all = 0;

	for (uint32_t n = 0; n < v->service->n_members; n++) {
		const struct lb_member *m = member(v, n);

		if (m->gone || m->override != BACKEND_UP)
			continue;
		all++;
		failing += m->health != BACKEND_UP;
	}
	if (failing)
		alarm(status, SERVICE, v->service->name,
		      "service '%s': checks fail for %u of %u %s (" MEND(
			      "weir service %s") " shows the reason)",
		      v->service->name, failing, all, num_plural(all, "backend", "backends"),
		      v->service->name);
	if (v->service->checked && !v->health.agent)
		alarm(status, SERVICE, v->service->name,
		      "service '%s': its backends are not checked (" MEND(
			      "weir run") " checks them)",
		      v->service->name);
}

// "service 'web': 2 backends get new flows although their checks fail, because no backend passes
// its checks"
static void alarm_flows(const struct services_view *v, alarm_adder *alarm, void *status)
{
	uint32_t kept = count_kept(v);
	CLEANUP_TEXT struct text why = {0};

	if (v->flows == LB_FLOWS_LAST)
		alarm(status, SERVICE, v->service->name,
		      "service '%s': no backend accepts new flows; the current ring stays in use",
		      v->service->name);
	if (!kept)
		return;
	service_add_why_kept(&why, v->service, v->flows);
	alarm(status, SERVICE, v->service->name,
	      "service '%s': %u %s new flows although %s checks fail, %s", v->service->name, kept,
	      num_plural(kept, "backend gets", "backends get"), num_plural(kept, "its", "their"),
	      text_get(&why));
}

// Only the agent, or the next change, ends the wait for a first check.
static void alarm_waiting(const struct services_view *v, alarm_adder *alarm, void *status)
{
	const struct clock *now = &v->pool->clock;
	uint32_t late = 0;

	for (uint32_t m = 0; m < v->service->n_members; m++)
		late += lb_member_waits(member(v, m)) &&
			member(v, m)->waits + (uint64_t)LATE_S * now->hz < now->jiffies;
	if (late)
		alarm(status, SERVICE, v->service->name,
		      "service '%s': %u %s no new flows before a first check, which the agent does "
		      "not make",
		      v->service->name, late, num_plural(late, "backend gets", "backends get"));
}

static void alarm_pins(const struct services_view *v, alarm_adder *alarm, void *status)
{
	struct service_counter c;
	num_text n;

	if (lb_maps_counter(v->pool->live, v->service->id, &c, NULL))
		return;
	if (v->service->hold > 1)
		alarm(status, SERVICE, v->service->name,
		      "service '%s': a flood evicts pins; slots stay changing longer (hold %u)",
		      v->service->name, v->service->hold);
	if (c.event[SERVICE_UNPINNED])
		alarm(status, SERVICE, v->service->name,
		      "service '%s': %s %s found no room for a pin (write more than 'pins %llu')",
		      v->service->name, num_format_grouped(c.event[SERVICE_UNPINNED], n),
		      num_plural(c.event[SERVICE_UNPINNED], "flow", "flows"),
		      (unsigned long long)v->service->buckets * SERVICE_PIN_WORDS);
}

static void alarm_places(const struct nat_reading *nat, uint8_t mode, uint8_t family,
			 alarm_adder *alarm, void *status)
{
	struct nat_use_of_places used = nat_used(nat, mode == SERVICE_FULLNAT, family);
	size_t room = used.blocks * NAT_BLOCK_ROOM;
	num_text living, most;

	if (used.living * 10 >= room * FULL && room)
		alarm(status, "services", service_mode_name(mode),
		      "mode %s, IPv%u: %s connections, and room for about %s (write %s)",
		      service_mode_name(mode), family, num_format_grouped(used.living, living),
		      num_format_grouped(room, most),
		      mode == SERVICE_FULLNAT ? "more addresses after 'source'"
					      : "a greater number after 'connections'");
}

static void alarm_egress(const struct pool *f, alarm_adder *alarm, void *status)
{
	CLEANUP_EGRESSES struct egresses egresses = {0};
	CLEANUP_EGRESS_FINDINGS struct egress_findings findings = {0};
	num_text n;

	egress_find(f, &egresses);
	egress_check(&egresses, false, &findings);
	vec_each (&findings, one)
		if (one->problem)
			alarm(status, IFACE, one->about, "%s (" MEND("%s") ")", one->text,
			      one->mend);
	vec_each (&egresses, egress)
		if (egress->lost.frames)
			alarm(status, IFACE, egress->link.name,
			      "'%s' lost %s %s that XDP sent, " EGRESS_SINCE
			      " (%s; weir doctor shows the reason)",
			      egress->link.name, num_format_grouped(egress->lost.frames, n),
			      num_plural(egress->lost.frames, "frame", "frames"),
			      egress->lost.counter);
}

// Asks the neighbours as weir doctor does, and waits for silent ones.
static void alarm_paths(const struct pool *f, alarm_adder *alarm, void *status)
{
	CLEANUP_LB_PATHS struct lb_paths paths = {0};
	struct err err = {0};

	if (lb_running_refresh(f->live, NEXTHOP_WAIT_MS, false, &paths, &err))
		alarm(status, "services", NULL, "%s", err.text);
	vec_each (&paths.lost, text)
		alarm(status, "services", NULL, "%s", *text);
	if (paths.changed)
		alarm(status, "services", NULL,
		      "the next %s of %zu %s changed (" MEND("weir service --refresh") ")",
		      num_plural(paths.changed, "hop", "hops"), paths.changed,
		      num_plural(paths.changed, "backend has", "backends have"));
}

void status_services_alarms(struct context *ctx, const struct pool *f,
			    const struct nat_reading *nat, alarm_adder *alarm, void *status)
{
	struct services_view v = {.ctx = ctx, .pool = f};

	if (!f->live)
		return;
	service_health_open(ctx->instance, &v.health);
	looks_open(ctx->instance, f->instance->progs_id, &v.looks);
	for (size_t n = 0; n < f->state->n_services; n++) {
		view_service(&v, n);
		for (uint32_t m = 0; m < v.service->n_members; m++) {
			alarm_backend(&v, member(&v, m), alarm, status);
			alarm_silent(&v, member(&v, m), alarm, status);
		}
		alarm_flows(&v, alarm, status);
		alarm_waiting(&v, alarm, status);
		alarm_health(&v, alarm, status);
		if (!service_has_places(v.service))
			alarm_pins(&v, alarm, status);
	}
	for (uint8_t mode = SERVICE_NAT; mode <= SERVICE_FULLNAT; mode++) {
		alarm_places(nat, mode, 4, alarm, status);
		alarm_places(nat, mode, 6, alarm, status);
	}
	looks_save(&v.looks);
	looks_free(&v.looks);
	free(v.kept);
	service_health_close(&v.health);
	alarm_paths(f, alarm, status);
	alarm_egress(f, alarm, status);
}
