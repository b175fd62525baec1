// SPDX-License-Identifier: GPL-2.0-only
// Packets of a history: flows that begin, speak and fall silent, and floods.
#include "hist.h"

#include <stdio.h>

static const char *proto_choose(struct hist *hist, bool *ret_udp)
{
	*ret_udp = hist->idle_udp && (!hist->idle_tcp || rng_chance(&hist->rng, 35));
	if (*ret_udp)
		return "udp";
	return rng_chance(&hist->rng, 75) ? "tcp" : "sctp";
}

static void flow_draw(struct hist *hist, struct hist_flow *flow)
{
	const char *proto = proto_choose(hist, &flow->udp);
	struct rng *rng = &hist->rng;
	unsigned int host = rng_below(rng, rng_chance(rng, 30) ? 16 : 65536);
	unsigned int port = rng_below(rng, 65536);
	unsigned int vip = rng_between(rng, 1, 3);
	unsigned int to = rng_chance(rng, 80) ? 443 : rng_below(rng, 65536);
	unsigned int low = rng_below(rng, 65536);

	if (rng_chance(rng, 60))
		snprintf(flow->text, sizeof(flow->text), "%s 198.51.%u.%u %u 192.0.2.%u %u", proto,
			 host >> 8, host & 255, port, vip, to);
	else
		snprintf(flow->text, sizeof(flow->text),
			 "%s 2001:db8:%x::%x %u 2001:db8:ffff::%u %u", proto, host, low, port, vip,
			 to);
}

void hist_flow_speak(struct hist *hist, struct hist_flow *flow, bool opens)
{
	uint64_t idle = flow->udp ? hist->idle_udp : hist->idle_tcp;

	hist_print(hist, "packet %s %s", flow->text, opens && !flow->udp ? "opens" : "other");
	flow->spoke = hist->now;
	flow->due = hist->now + idle;
	if (rng_chance(&hist->rng, 40))
		flow->due = hist->now + 1 + (rng_next(&hist->rng) >> 32) * (idle - 1) / UINT32_MAX;
}

void hist_flow_begin(struct hist *hist, struct hist_flow *flow)
{
	flow_draw(hist, flow);
	hist_flow_speak(hist, flow, rng_chance(&hist->rng, 85));
}

void hist_flows_begin(struct hist *hist)
{
	for (unsigned int i = 0; i < HIST_FLOWS; i++)
		hist_flow_begin(hist, &hist->flows[i]);
}

void hist_flow_event(struct hist *hist)
{
	struct rng *rng = &hist->rng;
	struct hist_flow *flow = &hist->flows[rng_below(rng, HIST_FLOWS)];

	if (rng_chance(rng, 25))
		flow = &hist->flows[rng_below(rng, HIST_KEEN)];
	if (rng_chance(rng, flow < hist->flows + HIST_KEEN ? 4 : 12))
		hist_flow_begin(hist, flow);
	else
		hist_flow_speak(hist, flow, rng_chance(rng, 4));
}

/* Packets of flows nobody hears of again, of one kind. */
void hist_flood(struct hist *hist)
{
	unsigned int packets = rng_between(&hist->rng, 10, 300);
	bool opens = rng_chance(&hist->rng, 50);
	struct hist_flow flow = {0};

	while (packets--) {
		flow_draw(hist, &flow);
		hist_flow_speak(hist, &flow, opens);
		if (!opens && rng_chance(&hist->rng, 5))
			hist_flow_speak(hist, &flow, false);
		if (rng_chance(&hist->rng, 5))
			hist_time_small(hist);
	}
}
