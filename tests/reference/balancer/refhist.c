// SPDX-License-Identifier: GPL-2.0-only
// Makes up a random history of a service for refslots, the same for the same seed.
/*
 *   refhist --seed N --steps M [ --any-trials ] [ --raise-untidied ] [ --back-in-time ]
 *
 * M is in lines; a few more may come. By default no flow that speaks within each idle is moved by
 * the rules, so that `refslots --check` must find none. These options leave that ground:
 *
 *   --any-trials       a trial goes back also if slots were changing before it or changed in it
 *   --raise-untidied   the hold is raised without tidying up first
 *   --back-in-time     now and then time is up to 40 jiffies earlier for some lines
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"

void hist_print(struct hist *hist, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	hist->printed++;
}

uint64_t hist_idle_longest(const struct hist *hist)
{
	return hist->idle_tcp > hist->idle_udp ? hist->idle_tcp : hist->idle_udp;
}

#define DRAW(rng, array) (array)[rng_below((rng), sizeof(array) / sizeof((array)[0]))]

static uint64_t idle_draw(struct rng *rng, unsigned int hz)
{
	unsigned int what = rng_below(rng, 100);

	if (what < 15)
		return rng_between(rng, 2, 100);
	if (what < 60)
		return (uint64_t)hz * rng_between(rng, 1, 900);
	return rng_between(rng, hz, 20 * hz);
}

static uint64_t start_draw(struct hist *hist)
{
	struct rng *rng = &hist->rng;
	uint64_t little = rng_below(rng, 1U << hist->shift);

	switch (rng_below(rng, 5)) {
	case 0:
		return little;
	case 1: /* pin time comes round */
		return (UINT64_C(65536) << hist->shift) - little;
	case 2: /* since comes round */
		return (UINT64_C(1) << 40) * rng_between(rng, 1, 3) - little;
	case 3: /* 32 bits of jiffies do */
		return (UINT64_C(1) << 32) - little;
	default:
		return rng_next(rng) >> 20;
	}
}

static void service_draw(struct hist *hist)
{
	static const uint32_t sizes[] = {4093, 4093, 4093, 4093, 8191, 16381, 65537};
	static const unsigned int hzs[] = {100, 250, 300, 1000};
	static const uint32_t buckets[] = {1, 2, 7, 32, 64, 100, 256, 1024, 1024, 4096};
	struct rng *rng = &hist->rng;
	unsigned int protos = rng_below(rng, 6); /* 0: no TCP, 1: no UDP */
	char tcp[24] = "-", udp[24] = "-";
	uint32_t bucket_count;
	bool by_source, udp_move;
	uint64_t key[2];

	hist->hz = DRAW(rng, hzs);
	hist->size = DRAW(rng, sizes);
	hist->hold = rng_chance(rng, 70) ? 1 : rng_between(rng, 1, 16);
	while (1U << hist->shift < hist->hz)
		hist->shift++;
	if (protos != 0) {
		hist->idle_tcp = idle_draw(rng, hist->hz);
		snprintf(tcp, sizeof(tcp), "%" PRIu64, hist->idle_tcp);
	}
	if (protos != 1) {
		hist->idle_udp = idle_draw(rng, hist->hz);
		snprintf(udp, sizeof(udp), "%" PRIu64, hist->idle_udp);
	}
	bucket_count = DRAW(rng, buckets);
	by_source = rng_chance(rng, 25);
	udp_move = rng_chance(rng, 25);
	key[0] = rng_next(rng);
	key[1] = rng_next(rng);
	hist_print(hist, "service %u %s %s %u %u %s %s %u %016" PRIx64 "%016" PRIx64, hist->size,
		   tcp, udp, hist->hold, bucket_count, by_source ? "source" : "tuple",
		   udp_move ? "move" : "stay", hist->hz, key[0], key[1]);
	hist->now = start_draw(hist);
	hist_print(hist, "time %" PRIu64, hist->now);
}

/* What walks over all slots; seldomer for greater rings. */
static void heavy_event(struct hist *hist)
{
	unsigned int what = rng_below(&hist->rng, 100);

	if (rng_below(&hist->rng, 1 + hist->size / 16381))
		return;
	if (what < 50)
		hist_pool_event(hist);
	else if (what < 75)
		hist_tidy(hist);
	else if (what < 90)
		hist_trial_event(hist);
	else
		hist_hold_event(hist);
}

static void event(struct hist *hist)
{
	unsigned int what = rng_below(&hist->rng, 1000);

	if (what < 60)
		heavy_event(hist);
	else if (what < 64)
		hist_flood(hist);
	else if (what < 250)
		hist_time(hist);
	else
		hist_flow_event(hist);
}

static void history(struct hist *hist)
{
	service_draw(hist);
	hist_pool_begin(hist);
	hist_flows_begin(hist);
	while (hist->printed < hist->steps)
		event(hist);
	hist_print(hist, "tidy");
	hist_print(hist, "slots");
	hist_print(hist, "pins");
}

static void usage(void)
{
	fputs("usage: refhist --seed N --steps M [--any-trials] [--raise-untidied]"
	      " [--back-in-time]\n",
	      stderr);
	exit(2);
}

static uint64_t number_read(const char *text)
{
	uint64_t number = 0;

	if (!text || !*text || strlen(text) > 18)
		usage();
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			usage();
		number = number * 10 + (uint64_t)(*text - '0');
	}
	return number;
}

int main(int argc, char **argv)
{
	static struct hist hist;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed"))
			hist.rng.state = number_read(argv[++i]);
		else if (!strcmp(argv[i], "--steps"))
			hist.steps = number_read(argv[++i]);
		else if (!strcmp(argv[i], "--any-trials"))
			hist.any_trials = true;
		else if (!strcmp(argv[i], "--raise-untidied"))
			hist.raise_untidied = true;
		else if (!strcmp(argv[i], "--back-in-time"))
			hist.back_in_time = true;
		else
			usage();
	}
	if (!hist.steps)
		usage();
	history(&hist);
	return 0;
}
