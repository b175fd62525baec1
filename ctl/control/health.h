// SPDX-License-Identifier: GPL-2.0-only
// Health of backends: what follows from the results of their checks and from dead links. Pure.
//
// A backend is up, failing or down. It fails with a failed check when `fall` of its last `of`
// checks failed, those before it recovered included, and gets no new flows from then on; after
// `lost` it is down, and its flows move. It is up again after `rise` good checks in a row, and its
// weight ramps. A backend that is fresh is up with its first good check, and fails with its first
// failed one. A dead link takes it down at once. table/lb_state decides about its service.
// Times are milliseconds of CLOCK_BOOTTIME, which agents that follow each other share.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"

struct health_rules {
	uint32_t rise, fall; // 0: nothing checks the backend, only its link counts
	uint32_t of;         // `fall` to POLICY_FALL_OF
	uint64_t every_ms, timeout_ms, lost_ms, ramp_ms;
};

struct health {
	uint8_t state; // enum backend_state: up, failing or down
	bool known;    // a check has ended
	bool cut;      // its link is dead
	bool fresh; // no check was good so far, and it got no flows before: its first check decides
	uint32_t good;      // checks in a row, since it is not up
	uint64_t history;   // a bit for each check, the last one is the lowest; 1: it failed
	uint64_t since_ms;  // time of the last change; 0: it never changed
	uint64_t failed_ms; // when it was up for the last time; 0: it never failed
	uint64_t ramp_ms;   // when its ramp began; 0: it does not ramp
};

// A check has ended. True: the state is another one.
bool health_result(struct health *h, const struct health_rules *r, bool good, uint64_t now_ms);
// The link to the backend is dead, or alive again. True: the state is another one.
bool health_link(struct health *h, const struct health_rules *r, bool dead, uint64_t now_ms);
// Changes that need only time: down after `lost`, the ramp. True: something has changed.
bool health_tick(struct health *h, const struct health_rules *r, uint64_t now_ms);
// When health_tick has something to do after now_ms; 0: never.
uint64_t health_due(const struct health *h, const struct health_rules *r, uint64_t now_ms);

// How long after the beginning of a check the next one begins, without jitter. While failures add
// up, so early that the last of `fall` ends, at the latest, `fall` × `every` after the backend
// died, where `timeout` allows that.
uint64_t health_pause(const struct health *h, const struct health_rules *r);

// The sixteenths that its weight lacks.
uint8_t health_missing(const struct health *h, const struct health_rules *r, uint64_t now_ms);
