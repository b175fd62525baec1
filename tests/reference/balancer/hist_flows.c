// SPDX-License-Identifier: GPL-2.0-only
// Packets of a history: flows that begin, speak and fall silent, and floods.
#include "hist.h"

#include <stdio.h>

static const char *proto_choose(struct hist *hist, struct hist_flow *flow)
{
	flow->udp = hist->idle_udp && (!hist->idle_tcp || rng_chance(&hist->rng, 35));
	flow->tcp = !flow->udp && rng_chance(&hist->rng, 75);
	return flow->udp ? "udp" : flow->tcp ? "tcp" : "sctp";
}

static void flow_draw(struct hist *hist, struct hist_flow *flow)
{
	const char *proto = proto_choose(hist, flow);
	struct rng *rng = &hist->rng;
	unsigned int host =
		rng_below(rng, rng_chance(rng, 30) ? 16 : 65535); /* not 2001:db8:ffff:: */
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

static const char *packet_word(const struct hist_flow *flow, enum hist_packet what)
{
	if (what == HIST_OPENS && !flow->udp)
		return "opens";
	return what == HIST_CLOSES && flow->tcp ? "closes" : "other";
}

void hist_flow_speak(struct hist *hist, struct hist_flow *flow, enum hist_packet what)
{
	uint64_t idle = flow->udp ? hist->idle_udp : hist->idle_tcp;

	hist_print(hist, "packet %s %s", flow->text, packet_word(flow, what));
	if (what != HIST_OTHER)
		flow->closed = what == HIST_CLOSES && flow->tcp;
	flow->spoke = hist->now;
	flow->due = hist->now + idle;
	if (rng_chance(&hist->rng, 40))
		flow->due = hist->now + 1 + (rng_next(&hist->rng) >> 32) * (idle - 1) / UINT32_MAX;
}

void hist_flow_begin(struct hist *hist, struct hist_flow *flow)
{
	flow_draw(hist, flow);
	flow->closed = false;
	hist_flow_speak(hist, flow, rng_chance(&hist->rng, 85) ? HIST_OPENS : HIST_OTHER);
}

/* The last packets of a connection, and sooner or later its client's port again. */
static void flow_close(struct hist *hist, struct hist_flow *flow)
{
	struct rng *rng = &hist->rng;

	hist_flow_speak(hist, flow, HIST_CLOSES);
	if (rng_chance(rng, 40))
		hist_flow_speak(hist, flow, rng_chance(rng, 80) ? HIST_OTHER : HIST_CLOSES);
	if (rng_chance(rng, 60))
		hist_flow_speak(hist, flow, HIST_OPENS);
	if (rng_chance(rng, 50))
		hist_flow_speak(hist, flow, HIST_OTHER);
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
	else if (rng_chance(rng, 12))
		flow_close(hist, flow);
	else
		hist_flow_speak(hist, flow,
				rng_chance(rng, flow->closed ? 50 : 4) ? HIST_OPENS : HIST_OTHER);
}

/* Packets of flows nobody hears of again, of one kind. */
void hist_flood(struct hist *hist)
{
	unsigned int packets = rng_between(&hist->rng, 10, 300);
	enum hist_packet what = rng_below(&hist->rng, 3);
	struct hist_flow flow = {0};

	while (packets--) {
		flow_draw(hist, &flow);
		hist_flow_speak(hist, &flow, what);
		if (what != HIST_OPENS && rng_chance(&hist->rng, 5))
			hist_flow_speak(hist, &flow, HIST_OTHER);
		if (rng_chance(&hist->rng, 5))
			hist_time_small(hist);
	}
}
