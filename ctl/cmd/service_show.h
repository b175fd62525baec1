// SPDX-License-Identifier: GPL-2.0-only
// Services as text and as JSON: addresses, protocols and ports, backends, devices.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/out.h"
#include "ctl/control/candidate.h"
#include "ctl/control/egress.h"
#include "ctl/control/health_file.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/pool.h"

// Lost frames are counted since then.
#define EGRESS_SINCE "since the last weir apply or weir service --refresh"

// Finds problems of the devices of the running services, and restarts the count of lost frames.
// Without services there are no findings.
void egress_look(const char *instance, struct egress_findings *ret);

// Prints to standard error and into the arrays "warnings" and "notices". Warnings: the n of the
// command and the problems of the devices. Notices: other findings.
void egress_report(struct context *ctx, char *const *warnings, size_t n,
		   const struct egress_findings *list);

// One line for each device, under "devices".
void egress_table(struct out *o, const struct egresses *a);

// The service of a policy; NULL: c is NULL or has none of that name.
const struct resolved_service *service_resolved(const struct candidate *c, const char *name);
// Sets "vips", "protocols" and "ports" and prints a line. c is from active_rules(). If it is NULL or
// has no service of that name, the keys are null.
void service_show_vips(struct out *o, const struct candidate *c, const char *service);

const char *service_mode_name(uint8_t mode); // enum service_mode

// The state for new flows: a backend with weight 0 is drained, one that is kept (lb_service_keep)
// is up.
enum backend_state service_state(const struct lb_member *m, bool kept);

// Adds "up", "drain, override until 04:12", "drain, override, expired 04:12" (no command has ended
// it yet), "up, weight override" or "drain, not in the policy".
void service_add_state(struct text *t, const struct lb_member *m, bool kept, uint64_t wall_s);

// The agent's state of the backends.
struct service_health {
	bool agent; // it runs
	struct health_records records;
	uint64_t now_ms;
};
void service_health_open(const char *instance, struct service_health *ret);
void service_health_close(struct service_health *h);
#define CLEANUP_SERVICE_HEALTH CLEANUP(service_health_close)
// Adds "ok", "failing for 12s, kept: connection refused", "ok, ramp 4/16", "not checked"; nothing
// without a check.
void service_add_health(struct text *t, const struct service_health *h, const struct lb_service *s,
			const struct lb_member *m, bool kept);
// Do its checks fail, its link works, and no answer to the last one has arrived?
bool service_is_silent(const struct service_health *h, const struct lb_service *s,
		       const struct lb_member *m);
// JSON: the number of checks and of failed checks, since the agent started; the last check; how
// long the state has been the same, and how often it changed. Without an agent or a check nothing.
void service_set_checks(struct out *o, const struct service_health *h, const struct lb_service *s,
			const struct lb_member *m);
// lb_service_keep, as an array to be freed. ret_flows may be NULL.
bool *service_kept(const struct lb_state *b, const struct lb_service *s, enum lb_flows *ret_flows);
// Adds why backends are kept: "because of 'keep 50%'", "because no backend passes its checks".
void service_add_why_kept(struct text *t, const struct lb_service *s, enum lb_flows flows);

void service_set_fingerprint(struct out *o, const char *key, uint64_t fingerprint);

// Prints the next hop and the path MTU as a cell. loses: the device cannot send the frames.
void service_cell_nexthop(struct out *o, const struct backend *backend, bool loses,
			  const struct clock *now);

// Prints a line for each backend that runs, under "backends". Without services it prints nothing.
int service_show_stats(struct out *o, const char *instance, struct err *err);

// Prints packets sent, with `answers` also those that were answers, packets dropped by reason, and
// events. The text leaves out those with count 0.
void service_show_counters(struct out *o, const struct service_counter *c, bool answers);

// Do the connections of a service have places (nat and fullnat)? Then it has no pins, and its slots
// have no phases.
bool service_has_places(const struct lb_service *s);
// The same, or it has living connections that began in another mode.
bool service_shows_connections(const struct nat_reading *nat, const struct lb_state *b,
			       const struct lb_service *s);
// Cells of a backend in these modes, or with connections that began in one.
void service_cell_answers(struct out *o, const struct service_counter *c);
void service_cell_connections(struct out *o, const struct nat_reading *nat, uint16_t id);
