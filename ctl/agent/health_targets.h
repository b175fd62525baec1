// SPDX-License-Identifier: GPL-2.0-only
// Derives the targets of checks from the active policy: services, their backends, and a probe for
// each.
#pragma once

#include "ctl/agent/path.h"
#include "ctl/agent/task.h"
#include "ctl/control/candidate.h"
#include "ctl/control/health_file.h"
#include "ctl/control/pool.h"
#include "ctl/net/probe.h"

// A check of a backend has one, via path one for each address of the service that is asked.
struct health_probe {
	struct health_target *target;
	struct probe *probe;
	struct path_way *way; // way of its packets; NULL: as this host sends
	struct addr vip;      // via path: where they go
};

struct health_target { // a backend of a service
	void *ctx;     // state of its probes and timer
	struct health_service *service;
	struct health_backend *backend;
	struct health_probe *probes;
	size_t n_probes;           // 0: `check none`
	size_t awaited;            // probes of the check that runs
	struct check_times *times; // of the service
	struct agent_task check;   // the next one
	uint64_t began_ms;         // of the last check
	uint64_t next_ms;          // of the next one
	uint64_t wait_ms; // when one that is fresh has waited long enough for its first check
	uint32_t ifindex; // state of its next hop in the kernel
	char why[HEALTH_WHY];
	struct health_counts counts;
	uint8_t told, told_ring; // enum backend_state: its health and `ring` as the log has them
};

struct health_targets {
	struct candidate *policy; // whose strings the probes use
	struct health_service *services;
	size_t n_services;
	struct health_target *at;
	size_t n;
	struct path *path;          // owner of the ways; NULL: no check has one
	struct health_asked *asked; // by service: what probes point to
	uint64_t sources;           // as health_targets_sources
};

// Resolves the active policy of the instance. Without one, *ret is empty. `done` gets the probe
// (struct health_probe). 0 or -errno with err set.
int health_targets_load(struct agent *a, const struct pool *pool, struct probes *probes,
			probe_done *done, struct health_targets *ret, struct err *err);
void health_targets_free(struct health_targets *t);
#define CLEANUP_HEALTH_TARGETS CLEANUP(health_targets_free)
// A digest of what this host's addresses and routes decide of checks. Another one: they are to be
// loaded again. 0 or -errno with err set.
int health_targets_sources(const struct health_targets *t, uint64_t *ret, struct err *err);

// The same backend of a service of that name, probably the one with the index `guess`; NULL: it is
// not there.
struct health_target *health_targets_find(const struct health_targets *t, size_t guess,
					  const char *service, const struct addr *addr,
					  uint16_t port);

// Continues what was known of the backend: by the previous targets, by the file of the previous
// agent, and by the kernel, which counts where it differs from the file. NULL: not known. Times as
// in control/health.h.
#define HEALTH_WAIT_MORE_MS 50 // jiffies are not exact
void health_continue(struct health_target *t, const struct health_target *was,
		     const struct health_record *record, const struct lb_member *member,
		     const struct clock *clock, uint64_t now_ms);
// No check of a new backend has ended.
bool health_is_waiting(const struct health_target *t);
