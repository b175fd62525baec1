// SPDX-License-Identifier: GPL-2.0-only
// Prints services: addresses, protocols and ports, backends, devices.
#include "ctl/cmd/service_show.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/presence.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/cmd/show.h"
#include "ctl/control/pool.h"
#include "ctl/datapath/counters.h"
#include "ctl/net/probe.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"
#include "ctl/policy/words.h"

void egress_look(const char *instance, struct egress_findings *ret)
{
	CLEANUP_POOL struct pool f = {.lock = -1};
	CLEANUP_EGRESSES struct egresses egresses = {0};

	if (pool_open_few(instance, NULL, &f, NULL))
		return;
	egress_find(&f, &egresses);
	egress_check(&egresses, false, ret);
	egress_forget(instance, &egresses);
}

static void print_findings(struct context *ctx, const struct egress_findings *list, bool problems)
{
	vec_each (list, one) {
		CLEANUP_FREE char *text = mem_printf("%s (%s)", one->text, one->mend);

		if (one->problem != problems)
			continue;
		out_item_string(ctx->out, text);
		if (problems)
			log_warning("%s", text);
		else
			log_notice("%s", text);
	}
}

// Returns the text of a warning after its service, "service 'web': …"; the whole text of any other
// warning.
static const char *without_service(const char *warning)
{
	const char *colon = strncmp(warning, "service '", 9) ? NULL : strstr(warning, "': ");

	return colon ? colon + 3 : warning;
}

// A warning that hundreds of services share is one line.
static void log_once(char *const *warnings, size_t n, size_t at)
{
	const char *text = without_service(warnings[at]);
	size_t others = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(without_service(warnings[i]), text))
			continue;
		if (i < at)
			return;
		others += i > at;
	}
	if (others && text != warnings[at])
		log_warning("%.*s and %zu %s: %s", (int)(text - warnings[at] - 2), warnings[at],
			    others, num_plural(others, "other", "others"), text);
	else
		log_warning("%s", warnings[at]);
}

void egress_report(struct context *ctx, char *const *warnings, size_t n,
		   const struct egress_findings *list)
{
	out_array(ctx->out, "warnings");
	for (size_t i = 0; i < n; i++) {
		out_item_string(ctx->out, warnings[i]);
		log_once(warnings, n, i);
	}
	print_findings(ctx, list, true);
	out_end(ctx->out);
	out_array(ctx->out, "notices");
	print_findings(ctx, list, false);
	out_end(ctx->out);
}

void egress_table(struct out *o, const struct egresses *a)
{
	out_table(o, "devices");
	vec_each (a, egress) {
		out_row(o);
		out_cell(o, "device", "DEVICE", egress->link.name);
		out_cell(o, "carries", "CARRIES",
			 egress->in && egress->out ? "in, out"
			 : egress->in              ? "in"
						   : "out");
		out_cell(o, "mode", "MODE",
			 !egress->in      ? ""
			 : egress->native ? "native"
					  : "generic");
		if (egress->lost.known)
			out_cell_u64(o, "lost", "LOST", egress->lost.frames);
		else
			out_cell(o, "lost", "LOST", "");
		out_cell(o, "lost_counter", "COUNTER",
			 egress->lost.frames ? egress->lost.counter : "");
	}
	out_table_end(o);
}

#define SHOWN 8 // items of a list in the text

// A list: SHOWN items in the text, all in JSON.
struct vip_list {
	struct out *o;
	struct text *line;
	size_t n;
};

static void begin(struct vip_list *l, const char *key)
{
	out_array(l->o, key);
	l->n = 0;
}

static void add(struct vip_list *l, const char *word)
{
	out_item_string(l->o, word);
	if (l->n++ < SHOWN)
		text_addf(l->line, "%s%s", l->n > 1 ? ", " : "", word);
}

static void end(struct vip_list *l)
{
	if (l->n > SHOWN)
		text_addf(l->line, " and %zu more", l->n - SHOWN);
	out_end(l->o);
}

static void add_prefix(struct vip_list *l, const struct addr *a, uint8_t len, bool in)
{
	struct prefix p = {.addr = *a, .len = len};
	char word[sizeof(addr_text) + 8];
	addr_text text;

	snprintf(word, sizeof(word), "%s%s", in ? "" : "not ", prefix_format(&p, text));
	add(l, word);
}

static void add_vips(struct vip_list *l, const struct resolved_addresses *vips)
{
	begin(l, "vips");
	for (size_t n = 0; n < vips->n4; n++) {
		struct addr a = interval_addr(vips->v4[n].addr, 4);

		add_prefix(l, &a, vips->v4[n].len, vips->v4[n].in);
	}
	for (size_t n = 0; n < vips->n6; n++) {
		struct addr a =
			interval_addr((address_number)vips->v6[n].hi << 64 | vips->v6[n].lo, 6);

		add_prefix(l, &a, vips->v6[n].len, vips->v6[n].in);
	}
	end(l);
}

static void add_protocols(struct vip_list *l, const struct resolved_bits *p)
{
	begin(l, "protocols");
	for (unsigned proto = 0; proto < 256; proto++) {
		char number[8];

		snprintf(number, sizeof(number), "%u", proto);
		if (p->bits[proto / 64] >> proto % 64 & 1)
			add(l, names_of_proto((uint8_t)proto) ? names_of_proto((uint8_t)proto)
							      : number);
	}
	end(l);
}

static void add_ports(struct vip_list *l, const struct resolved_service *s)
{
	begin(l, "ports");
	if (s->any_port)
		add(l, "any");
	for (size_t n = 0; n < s->ports.n && !s->any_port; n++) {
		const struct range16 *r = &s->ports.at[n];
		char word[16];

		if (r->first == r->last)
			snprintf(word, sizeof(word), "%u", r->first);
		else
			snprintf(word, sizeof(word), "%u-%u", r->first, r->last);
		add(l, word);
	}
	end(l);
}

const struct resolved_service *service_resolved(const struct candidate *c, const char *name)
{
	for (size_t n = 0; c && n < c->resolved->n_services; n++)
		if (!strcmp(c->resolved->services[n].name, name))
			return &c->resolved->services[n];
	return NULL;
}

void service_show_vips(struct out *o, const struct candidate *c, const char *service)
{
	const struct resolved_service *s = service_resolved(c, service);
	CLEANUP_TEXT struct text line = {0};
	struct vip_list l = {.o = o, .line = &line};

	if (!s) {
		out_set_string(o, "vips", NULL);
		out_set_string(o, "protocols", NULL);
		out_set_string(o, "ports", NULL);
		return;
	}
	add_vips(&l, &c->resolved->addresses[s->vip]);
	text_add(&line, "; ");
	add_protocols(&l, &s->proto);
	text_add(&line, " port ");
	add_ports(&l, s);
	out_line(o, "  vip:         %s", text_get(&line));
}

const char *service_mode_name(uint8_t mode)
{
	return choice_word(&choice_modes, mode);
}

enum backend_state service_state(const struct lb_member *m, bool kept)
{
	enum backend_state state = kept ? BACKEND_UP : lb_member_state(m);

	return state == BACKEND_UP && !lb_member_weight(m) ? BACKEND_DRAIN : state;
}

// Drained by command and failing: the command wins.
static const char *state_name(const struct lb_member *m, bool kept)
{
	static const char *const states[] = {
		[BACKEND_UP] = "up",
		[BACKEND_DRAIN] = "drain",
		[BACKEND_DOWN] = "down",
		[BACKEND_FAILING] = "failing",
	};

	if (lb_member_waits(m))
		return "waiting";
	return states[m->override == BACKEND_DRAIN ? BACKEND_DRAIN : service_state(m, kept)];
}

// ---- health -------------------------------------------------------------------------------------

void service_health_open(const char *instance, struct service_health *ret)
{
	CLEANUP_PRESENCE struct presence agent = {0};

	*ret = (struct service_health){.now_ms = health_now_ms()};
	presence_read(instance, &agent);
	ret->agent = agent.runs && !agent.late_ms;
	health_file_read(instance, &ret->records, NULL); // damaged: the agent reports it
}

void service_health_close(struct service_health *h)
{
	vec_free(&h->records);
}

static const struct health_record *record_of(const struct service_health *h,
					     const struct lb_service *s, const struct lb_member *m)
{
	struct addr addr;

	lb_member_address(m, &addr);
	return h->agent ? health_file_find(&h->records, 0, s->name, &addr, m->port) : NULL;
}

bool *service_kept(const struct lb_state *b, const struct lb_service *s, enum lb_flows *ret_flows)
{
	bool *kept = mem_zalloc(s->n_members, sizeof(*kept));
	enum lb_flows flows = lb_service_keep(b, s, kept);

	if (ret_flows)
		*ret_flows = flows;
	return kept;
}

void service_add_why_kept(struct text *t, const struct lb_service *s, enum lb_flows flows)
{
	if (flows == LB_FLOWS_OPEN)
		text_add(t, "because no backend passes its checks");
	else
		text_addf(t, "because of 'keep %.4g%%'", s->keep / 100.0);
}

static void add_failure(struct text *t, const struct health_record *r, bool kept, uint64_t now_ms)
{
	num_text time;

	text_addf(t, "%s for %s", r->health.state == BACKEND_DOWN ? "down" : "failing",
		  num_format_duration_ms((now_ms - r->health.since_ms) / 1000 * 1000, time));
	if (kept)
		text_add(t, ", kept");
	if (r->why[0])
		text_addf(t, ": %s", r->why);
}

void service_add_health(struct text *t, const struct service_health *h, const struct lb_service *s,
			const struct lb_member *m, bool kept)
{
	const struct health_record *r = record_of(h, s, m);

	if (!s->checked && !(r && r->health.cut))
		return;
	if (!h->agent)
		text_add(t, kept ? "not checked, kept" : "not checked");
	else if (!r || lb_member_waits(m) || (!r->health.known && r->health.state == BACKEND_UP))
		text_add(t, "not checked yet");
	else if (r->health.state != BACKEND_UP)
		add_failure(t, r, kept, h->now_ms);
	else
		text_add(t, "ok");
	if (lb_member_ramp(m) < LB_RAMP)
		text_addf(t, ", ramp %u/%u", lb_member_ramp(m), LB_RAMP);
}

bool service_is_silent(const struct service_health *h, const struct lb_service *s,
		       const struct lb_member *m)
{
	const struct health_record *r = s->checked ? record_of(h, s, m) : NULL;

	return r && r->health.state != BACKEND_UP && !r->health.cut &&
	       !strncmp(r->why, PROBE_NO_ANSWER, strlen(PROBE_NO_ANSWER));
}

void service_set_checks(struct out *o, const struct service_health *h, const struct lb_service *s,
			const struct lb_member *m)
{
	const struct health_record *r = s->checked ? record_of(h, s, m) : NULL;

	if (!r)
		return;
	out_set_u64(o, "checks", r->counts.checks);
	out_set_u64(o, "checks_failed", r->counts.failed);
	if (!r->counts.last_ms)
		return;
	out_set_bool(o, "check_good", r->counts.good);
	out_set_u64(o, "check_us", r->counts.took_us);
	out_set_u64(o, "check_age_s", (h->now_ms - r->counts.last_ms) / 1000);
	out_set_u64(o, "changes_24h", health_changes(&r->counts, h->now_ms));
	if (r->health.since_ms)
		out_set_u64(o, "health_s", (h->now_ms - r->health.since_ms) / 1000);
}

void service_add_state(struct text *t, const struct lb_member *m, bool kept, uint64_t wall_s)
{
	text_add(t, state_name(m, kept));
	if (m->gone)
		text_add(t, ", not in the policy");
	if (m->override == BACKEND_DOWN || (!m->gone && (m->override != BACKEND_UP || m->weighed)))
		text_add(t, m->override != BACKEND_UP ? ", override" : ", weight override");
	if (m->override != BACKEND_UP && m->health != BACKEND_UP)
		text_add(t, ", checks fail");
	if (m->until_s) {
		text_add(t, m->until_s > wall_s ? " until " : ", expired ");
		show_time(t, m->until_s, wall_s);
	}
	if (m->backup)
		text_add(t, ", backup");
}

void service_set_fingerprint(struct out *o, const char *key, uint64_t fingerprint)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)fingerprint);
	out_set_string(o, key, text);
}

// Adds the path MTU that a router reported, until it expires; in JSON beside the next hop.
static void add_path(struct out *o, struct text *t, const struct backend *backend,
		     const struct clock *now)
{
	uint32_t path = __atomic_load_n(&backend->path, __ATOMIC_RELAXED),
		 shift = pin_shift(now->hz);
	uint32_t time = pin_time(now->jiffies, shift);
	uint64_t age_s = ((uint64_t)path_age(path, time) << shift) / now->hz;
	num_text text;

	if (!path_lives(path, time, pin_ticks((uint64_t)SERVICE_PATH_S * now->hz, shift)))
		return;
	text_addf(t, ", path mtu %u for %s", path_mtu(path),
		  num_format_duration_ms(age_s * 1000, text));
	out_set_u64(o, "path_mtu", path_mtu(path));
	out_set_u64(o, "path_mtu_age_s", age_s);
}

void service_cell_nexthop(struct out *o, const struct backend *backend, bool loses,
			  const struct clock *now)
{
	char name[IF_NAMESIZE] = "";
	CLEANUP_TEXT struct text t = {0};

	if (!backend || backend->here)
		text_add(&t, backend ? "this host" : "");
	else if (!backend->ifindex || !if_indextoname(backend->ifindex, name))
		text_add(&t, "unknown (weir service --refresh)");
	else
		text_addf(&t, "%s %02x:%02x:%02x:%02x:%02x:%02x mtu %u", name, backend->mac[0],
			  backend->mac[1], backend->mac[2], backend->mac[3], backend->mac[4],
			  backend->mac[5], backend->mtu);
	if (backend && backend->vlan)
		text_addf(&t, " vlan %u", backend->vlan);
	if (backend && backend->ifindex)
		add_path(o, &t, backend, now);
	if (loses)
		text_add(&t, " LOSES FRAMES");
	out_cell(o, "next_hop", "NEXT HOP", text_get(&t));
}

static void show_drops(struct out *o, const struct service_counter *c)
{
	out_table(o, "drops");
	for (uint32_t d = 0; d < SERVICE_DROPS; d++) {
		enum weir_reason reason = REASON_DROP_NO_BACKEND + d;

		if (!c->dropped[d] && !out_is_json(o))
			continue;
		out_row(o);
		out_cell(o, "reason", "DROPPED", reason_name(reason));
		out_cell_u64(o, "packets", "PACKETS", c->dropped[d]);
		out_cell(o, NULL, "MEANING", reason_text(reason));
	}
	out_table_end(o);
}

static void show_traffic(struct out *o, const char *what, uint64_t packets, uint64_t bytes)
{
	num_text packets_text, bytes_text;

	out_line(o, "  %-12s %s %s, %s %s", what, num_format_grouped(packets, packets_text),
		 num_plural(packets, "packet", "packets"), num_format_grouped(bytes, bytes_text),
		 num_plural(bytes, "byte", "bytes"));
}

void service_show_counters(struct out *o, const struct service_counter *c, bool answers)
{
	static const struct {
		const char *name, *text;
	} events[] = {
#define X(symbol, name, text) {name, text},
		SERVICE_EVENTS(X)
#undef X
	};

	out_set_u64(o, "packets", c->packets);
	out_set_u64(o, "bytes", c->bytes);
	show_traffic(o, "sent:", c->packets, c->bytes);
	if (answers) {
		out_set_u64(o, "back_packets", c->back_packets);
		out_set_u64(o, "back_bytes", c->back_bytes);
		show_traffic(o, "answers:", c->back_packets, c->back_bytes);
	}
	show_drops(o, c);
	out_table(o, "events");
	for (int e = 0; e < SERVICE_EVENT_COUNT; e++) {
		if (!c->event[e] && !out_is_json(o))
			continue;
		out_row(o);
		out_cell(o, "event", "EVENT", events[e].name);
		out_cell_u64(o, "times", "TIMES", c->event[e]);
		out_cell(o, NULL, "MEANING", events[e].text);
	}
	out_table_end(o);
}

// The result of a backend's checks; "" before the end of the first one, and without an agent.
static const char *health_of(const struct service_health *h, const struct lb_service *s,
			     const struct lb_member *m)
{
	static const char *const states[] = {
		[BACKEND_UP] = "up",
		[BACKEND_DRAIN] = "",
		[BACKEND_DOWN] = "down",
		[BACKEND_FAILING] = "failing",
	};
	const struct health_record *r =
		s->checked && !lb_member_waits(m) ? record_of(h, s, m) : NULL;

	return r && (r->health.known || r->health.state != BACKEND_UP) ? states[r->health.state]
								       : "";
}

bool service_has_places(const struct lb_service *s)
{
	return service_mode_does((enum service_mode)s->mode) & MODE_NAT;
}

bool service_shows_connections(const struct nat_reading *nat, const struct lb_state *b,
			       const struct lb_service *s)
{
	return service_has_places(s) || nat_of_service(nat, b, s).living;
}

void service_cell_answers(struct out *o, const struct service_counter *c)
{
	out_cell_u64(o, "back_packets", "ANSWERS", c->back_packets);
	out_set_u64(o, "back_bytes", c->back_bytes);
}

void service_cell_connections(struct out *o, const struct nat_reading *nat, uint16_t id)
{
	const struct nat_of_backend *of = &nat->census.of_backend[id];

	out_cell_u64(o, "connections", "CONNECTIONS", of->living);
	out_set_u64(o, "connections_opening", of->opening);
}

// ---- weir stats ---------------------------------------------------------------------------------

struct stats_view {
	struct out *o;
	struct pool pool;
	struct service_health health;
	struct nat_reading nat;
};

static int show_member(const struct stats_view *v, const struct lb_service *s,
		       const struct lb_member *m, struct err *err)
{
	struct out *o = v->o;
	struct service_counter c;
	addr_text name;
	int code = lb_maps_counter(v->pool.live, m->id, &c, err);

	if (code)
		return code;
	out_row(o);
	out_cell(o, "service", "SERVICE", s->name);
	out_cell(o, "backend", "BACKEND", pool_name(m, name));
	out_cell(o, "health", NULL, health_of(&v->health, s, m));
	out_cell_u64(o, "opened", "OPENED", c.event[SERVICE_OPENED]);
	out_cell_u64(o, "packets", "PACKETS", c.packets);
	out_cell_u64(o, "bytes", "BYTES", c.bytes);
	if (service_shows_connections(&v->nat, v->pool.state, s)) {
		service_cell_answers(o, &c);
		service_cell_connections(o, &v->nat, m->id);
	}
	return 0;
}

static int show_members(const struct stats_view *v, struct err *err)
{
	const struct lb_state *b = v->pool.state;

	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];

		for (uint32_t m = 0; m < s->n_members; m++) {
			int code = show_member(v, s, &b->members[s->first_member + m], err);

			if (code)
				return code;
		}
	}
	return 0;
}

static void stats_close(struct stats_view **v)
{
	pool_close(&(*v)->pool);
	service_health_close(&(*v)->health);
	nat_reading_free(&(*v)->nat);
	free(*v);
}

int service_show_stats(struct out *o, const char *instance, struct err *err)
{
	CLEANUP(stats_close) struct stats_view *v = mem_new(struct stats_view);
	struct err why = {0};
	int code;

	v->o = o;
	v->pool.lock = -1;
	code = pool_open_few(instance, NULL, &v->pool, &why);
	if (code && why.kind == ERR_INPUT)
		return 0; // no services
	if (code) {
		*err = why;
		return code;
	}
	if ((code = nat_read(v->pool.instance, &v->nat, err)))
		return code;
	out_line(o, "%s", "");
	service_health_open(instance, &v->health);
	out_table(o, "backends");
	code = show_members(v, err);
	out_table_end(o);
	return code;
}
