// SPDX-License-Identifier: GPL-2.0-only
// What the files of the generator of histories share; the format is told in refslots.c.
#ifndef REF_HIST_H
#define REF_HIST_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"

#define HIST_BACKENDS 1200 /* ids that are ever used */
#define HIST_MEMBERS  24   /* of the pool at once */
#define HIST_FLOWS    240
#define HIST_KEEN     24 /* the first of them speak within each idle */
#define HIST_CHANGES  256

struct hist_backend {
	char place[64]; /* address and port */
	unsigned int weight;
	unsigned int state; /* 0 up, 1 drain, 2 down */
	bool backup;
	bool member;
};

/* What a packet is. */
enum hist_packet { HIST_OTHER, HIST_OPENS, HIST_CLOSES };

struct hist_flow {
	char text[128]; /* protocol, addresses and ports */
	bool udp, tcp;
	bool closed;
	uint64_t spoke; /* jiffies */
	uint64_t due;   /* keen: speaks again then at the latest */
};

struct hist {
	struct rng rng;
	uint64_t steps;
	uint64_t printed; /* lines */

	/* Hard ones, off by default: they lead to moves (refhist.c). */
	bool any_trials;
	bool raise_untidied;
	bool back_in_time;

	uint32_t size;
	uint64_t idle_tcp; /* 0: neither TCP nor SCTP */
	uint64_t idle_udp; /* 0: no UDP */
	unsigned int hold;
	unsigned int hz;
	unsigned int shift; /* a unit of pin time is 2^shift jiffies */
	uint64_t now;

	struct hist_backend backends[HIST_BACKENDS + 1]; /* by id */
	struct hist_backend before[HIST_BACKENDS + 1];   /* by id, as of the last ring */
	unsigned int ids;
	unsigned int members;

	struct hist_flow flows[HIST_FLOWS];

	uint64_t changes[HIST_CHANGES]; /* ticks of rings that may still have changing slots */
	unsigned int changed;
	bool trial;
	bool trial_clean;   /* no slot was changing when it began, no ring since */
	uint64_t trial_end; /* jiffies, at the latest */
};

/* A line of the history. */
void hist_print(struct hist *hist, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t hist_idle_longest(const struct hist *hist);

/* hist_time.c: time, with keen flows that speak when due and trials that end when they must. */
void hist_time(struct hist *hist);
void hist_time_small(struct hist *hist);
/* Until all slots are pins only or stable. */
void hist_time_settle(struct hist *hist);
void hist_changes_prune(struct hist *hist);

/* hist_pool.c: pool, rings, trials, hold and tidying. */
void hist_pool_begin(struct hist *hist);
void hist_pool_event(struct hist *hist);
void hist_trial_event(struct hist *hist);
void hist_trial_end(struct hist *hist);
void hist_tidy(struct hist *hist);
void hist_hold_event(struct hist *hist);

/* hist_flows.c: packets. */
void hist_flows_begin(struct hist *hist);
void hist_flow_begin(struct hist *hist, struct hist_flow *flow);
void hist_flow_speak(struct hist *hist, struct hist_flow *flow, enum hist_packet what);
void hist_flow_event(struct hist *hist);
void hist_flood(struct hist *hist);

#endif
