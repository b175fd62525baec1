// SPDX-License-Identifier: GPL-2.0-only
// Prints services and backends.
#include "ctl/cmd/service_show.h"

#include <net/if.h>
#include <stdio.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/counters.h"
#include "ctl/policy/words.h"

const char *service_mode_name(uint8_t mode)
{
	return choice_word(&choice_modes, mode);
}

enum backend_state service_state(const struct lb_member *m)
{
	enum backend_state state = lb_member_state(m);

	return state == BACKEND_UP && !lb_member_weight(m) ? BACKEND_DRAIN : state;
}

void service_add_state(struct text *t, const struct lb_member *m, uint64_t wall_s)
{
	static const char *const states[] = {"up", "drain", "down"};

	text_add(t, states[service_state(m)]);
	if (m->gone)
		text_add(t, ", not in the policy");
	if (m->override == BACKEND_DOWN || (!m->gone && (m->override != BACKEND_UP || m->weighed)))
		text_add(t, m->override != BACKEND_UP ? ", override" : ", weight override");
	if (m->until_s) {
		text_add(t, m->until_s > wall_s ? " until " : ", over since ");
		show_time(t, m->until_s, wall_s);
	}
	if (m->backup)
		text_add(t, ", backup");
}

void service_set_fingerprint(struct out *o, uint64_t fingerprint)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)fingerprint);
	out_set_string(o, "fingerprint", text);
}

// What a router has said and still holds; in JSON beside the next hop.
static void add_path(struct out *o, struct text *t, const struct backend *row,
		     const struct clock *now)
{
	uint32_t path = __atomic_load_n(&row->path, __ATOMIC_RELAXED), shift = pin_shift(now->hz);
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

void service_cell_hop(struct out *o, const struct backend *row, bool loses, const struct clock *now)
{
	char name[IF_NAMESIZE] = "";
	struct text t = {0};

	if (!row || row->here)
		text_add(&t, row ? "this host" : "");
	else if (!row->ifindex || !if_indextoname(row->ifindex, name))
		text_add(&t, "none: weir service --refresh");
	else
		text_addf(&t, "%s %02x:%02x:%02x:%02x:%02x:%02x mtu %u", name, row->mac[0],
			  row->mac[1], row->mac[2], row->mac[3], row->mac[4], row->mac[5],
			  row->mtu);
	if (row && row->vlan)
		text_addf(&t, " vlan %u", row->vlan);
	if (row && row->ifindex)
		add_path(o, &t, row, now);
	if (loses)
		text_add(&t, " LOSES FRAMES");
	out_cell(o, "next_hop", "NEXT HOP", text_get(&t));
	text_free(&t);
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

void service_show_counters(struct out *o, const struct service_counter *c)
{
	static const struct {
		const char *name, *text;
	} events[] = {
#define X(symbol, name, text) {name, text},
		SERVICE_EVENTS(X)
#undef X
	};
	num_text packets, bytes;

	out_set_u64(o, "packets", c->packets);
	out_set_u64(o, "bytes", c->bytes);
	out_line(o, "  sent:        %s %s, %s bytes", num_format_grouped(c->packets, packets),
		 c->packets == 1 ? "packet" : "packets", num_format_grouped(c->bytes, bytes));
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

static int stats_row(struct out *o, const struct pool *f, const struct lb_service *s,
		     const struct lb_member *m, struct err *err)
{
	struct service_counter c;
	addr_text name;
	int code = lb_maps_counter(f->live, m->id, &c, err);

	if (code)
		return code;
	out_row(o);
	out_cell(o, "service", "SERVICE", s->name);
	out_cell(o, "backend", "BACKEND", pool_name(m, name));
	out_cell_u64(o, "opened", "OPENED", c.event[SERVICE_OPENED]);
	out_cell_u64(o, "packets", "PACKETS", c.packets);
	out_cell_u64(o, "bytes", "BYTES", c.bytes);
	return 0;
}

static int stats_of_backends(struct out *o, const struct pool *p, struct err *err)
{
	for (size_t n = 0; n < p->state->n_services; n++) {
		const struct lb_service *s = &p->state->services[n];

		for (uint32_t m = 0; m < s->n_members; m++) {
			const struct lb_member *member = &p->state->members[s->first_member + m];
			int code = stats_row(o, p, s, member, err);

			if (code)
				return code;
		}
	}
	return 0;
}

int service_show_stats(struct out *o, const char *instance, struct err *err)
{
	CLEANUP_POOL struct pool f = {.lock = -1};
	struct err why = {0};
	int code = pool_open(instance, NULL, &f, &why);

	if (code && why.kind != ERR_INPUT)
		*err = why;
	if (code)
		return why.kind == ERR_INPUT ? 0 : code;
	out_line(o, "%s", "");
	out_table(o, "backends");
	code = stats_of_backends(o, &f, err);
	out_table_end(o);
	return code;
}
