// SPDX-License-Identifier: GPL-2.0-only
// The share follows the busiest of the last polls: the ring must not be full when a flood begins.
#include "ctl/control/sampling.h"

#include <stdlib.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/samples.h"

#define POLLS       10
#define ALL_PACKETS 4294967296.0

struct sampling {
	const struct instance *instance;
	struct samples *samples;
	struct sampled_window window;
	uint64_t start_ns;           // since when packets are sampled; 0: not yet
	uint64_t polled_ns, packets; // time and counted packets at the last poll
	double rates[POLLS];
	size_t polls;
	uint32_t share;
	uint64_t lost, lost_before;
};

static void keep(void *ctx, const struct sampled *sample)
{
	struct sampling *s = ctx;

	sampled_add(&s->window, sample);
}

int sampling_open(const struct instance *i, struct sampling **ret, struct err *err)
{
	struct sampling *s = mem_new(struct sampling);
	int code;

	s->instance = i;
	if ((code = samples_open(i, keep, s, &s->samples, err))) {
		free(s);
		return code;
	}
	*ret = s;
	return 0;
}

void sampling_close(struct sampling *s)
{
	if (!s)
		return;
	samples_close(s->samples);
	sampled_free(&s->window);
	free(s);
}

void sampling_place(struct sampling *s, sampled_place *place, void *ctx)
{
	s->window.place = place;
	s->window.place_ctx = ctx;
}

static uint64_t packets_of(const struct counters *c)
{
	uint64_t sum = 0;

	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++)
		sum += counters_reason(c, r).packets;
	return sum;
}

static double busiest(const struct sampling *s)
{
	double most = 0;

	for (size_t n = 0; n < POLLS; n++)
		most = s->rates[n] > most ? s->rates[n] : most;
	return most;
}

int sampling_poll(struct sampling *s, struct err *err)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	uint64_t at_ns, packets;
	int code = samples_take(s->samples, err);

	if (code < 0 || (code = counters_read(s->instance, now, err)))
		return code;
	at_ns = time_ns(CLOCK_MONOTONIC);
	packets = packets_of(now);
	s->lost = now->tally[TALLY_SAMPLES_LOST];
	if (s->polled_ns && at_ns > s->polled_ns)
		s->rates[s->polls++ % POLLS] =
			(double)(packets - s->packets) * 1e9 / (double)(at_ns - s->polled_ns);
	s->polled_ns = at_ns;
	s->packets = packets;
	if (!s->polls)
		return 0;
	if (!s->start_ns) {
		s->start_ns = at_ns;
		s->lost_before = s->lost;
	}
	s->share = sampled_share(busiest(s));
	sampled_forget(&s->window, at_ns);
	return samples_want(s->samples, s->share, err);
}

void sampling_read(const struct sampling *s, const bool by[SAMPLED_BY_COUNT],
		   struct sampled_reading *ret)
{
	uint64_t span_ns = s->start_ns ? s->polled_ns - s->start_ns : 0;

	span_ns = span_ns < SAMPLED_WINDOW_NS ? span_ns : SAMPLED_WINDOW_NS;
	*ret = (struct sampled_reading){
		.span_us = span_ns / 1000,
		.samples = sampled_n(&s->window),
		.sampled = s->share / ALL_PACKETS,
		.lost = s->lost - s->lost_before,
	};
	for (enum sampled_by key = 0; key < SAMPLED_BY_COUNT; key++) {
		ret->known[key] = by[key];
		if (by[key])
			sampled_rows(&s->window, key, &ret->lists[key]);
	}
}
