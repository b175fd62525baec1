// SPDX-License-Identifier: GPL-2.0-only
// Asks the test program about a packet as a backend answers a check.
#include "ctl/cmd/service_why.h"

#include <netinet/in.h>

#include "ctl/base/mem.h"
#include "ctl/cmd/explain_show.h"
#include "ctl/control/frame.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

#define TCP_SYN_ACK 0x12
#define OUR_PORT    49152 // the first of those that are free for clients

void service_why_close(struct service_why *w)
{
	explain_free(&w->explain);
}

static bool is_open(struct service_why *w)
{
	const struct explain_request request = {.instance = w->instance, .test = true};
	struct err err = {0};

	if (!w->asked)
		w->works = !explain_open(&w->explain, &request, &err) && w->explain.recorded;
	w->asked = true;
	return w->works;
}

static uint16_t port_of(const struct resolved_service *s, const struct lb_member *m)
{
	if (s->check.port)
		return s->check.port;
	return m->port ? m->port : s->ports.n ? s->ports.at[0].first : 0;
}

// False: the check has no packets that this host would recognize.
static bool make_answer(const struct resolved_service *s, const struct lb_member *m,
			const struct lookup *route, struct resolved_packet *ret)
{
	bool udp = s->check.kind == CHECK_DNS;

	*ret = (struct resolved_packet){
		.ip = true,
		.proto = udp ? IPPROTO_UDP : IPPROTO_TCP,
		.sport = port_of(s, m),
		.dport = OUR_PORT,
		.flags = udp ? 0 : TCP_SYN_ACK,
		.ttl = 64,
		.to = route->source,
	};
	lb_member_address(m, &ret->from);
	ret->ethertype = ret->from.family == 4 ? 0x0800 : 0x86dd;
	return s->check.kind != CHECK_EXEC && s->check.kind != CHECK_NONE && !s->check.via_path &&
	       ret->sport && route->source.family == ret->from.family;
}

static bool find_route(const struct lb_member *m, struct lookup *ret)
{
	struct addr to;

	lb_member_address(m, &to);
	return to.family && !lookup_route(&to, ret) && ret->kind == LOOKUP_UNICAST;
}

// Do packets that the interface receives meet rules and entries now?
static bool is_filtered(const struct explain *e, const char *name)
{
	const struct instance *i = e->store ? e->store->instance : NULL;
	uint32_t number = 0;

	return i && !instance_find_iface(i, name, &number, NULL) && number < WEIR_IFACES &&
	       number && reach_what(&e->reach, number) != REACH_NOTHING &&
	       i->knobs->bypass_until[number] <= e->store->clock.jiffies;
}

// Whether connection tracking has an entry for the next check is not known: a rule is at fault only
// if the answer is dropped with and without one. Entries do not ask for connections.
static bool is_dropped(struct explain *e, const struct explain_question *q,
		       struct explain_answer *ret)
{
	struct explain_question of_connection = *q;
	struct explain_answer other;
	struct err err = {0};

	if (explain_ask(e, q, ret, &err) || !reason_drops(ret->result.reason))
		return false;
	of_connection.established = true;
	return ret->overlay ||
	       (!explain_ask(e, &of_connection, &other, &err) && reason_drops(other.result.reason));
}

static void add_dropper(struct text *t, const struct explain *e, const struct explain_answer *a,
			uint32_t iface)
{
	if (a->result.rule >= 0)
		explain_show_rule(t, e, (size_t)a->result.rule);
	else if (a->overlay)
		explain_show_record(t, e->store, a->overlay);
	else if (a->result.reason == REASON_DROP_DEFAULT)
		explain_show_default(t, e, iface, true);
	else
		text_add(t, reason_name(a->result.reason));
}

void service_why_add(struct text *t, struct service_why *w, const struct resolved_service *s,
		     const struct lb_member *m)
{
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	struct explain_question q = {.frame = frame};
	struct resolved_packet packet;
	struct explain_answer answer;
	struct lookup route;
	struct link link;
	struct err err = {0};

	if (!find_route(m, &route) || !make_answer(s, m, &route, &packet) ||
	    link_get_by_index(route.ifindex, &link, &err) || !is_open(w) ||
	    !is_filtered(&w->explain, link.name))
		return;
	if (explain_iface(&w->explain, link.name, &q.iface, &err) ||
	    frame_build(&packet, frame, &q.length, &err))
		return;
	if (is_dropped(&w->explain, &q, &answer))
		add_dropper(t, &w->explain, &answer, q.iface);
}
