// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that checks backends and puts what follows into the rings.
//
// Each backend has a timer and a probe, via path one for each VIP. Changes by their results are
// applied a little later as one rewrite, and then saved in the file of control/health_file.h, from
// which the next agent continues. Where the kernel's state of a backend differs from that file, the
// kernel's counts.
#include "ctl/agent/health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/hash.h"
#include "ctl/agent/agent.h"
#include "ctl/agent/check_times.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/health_targets.h"
#include "ctl/agent/health_tell.h"
#include "ctl/agent/plan.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/trace.h"
#include "ctl/control/pool.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/link.h"

#define ROUND_MS     10 // changes within this time are one rewrite
#define ROUND_MAX_MS 40 // the same where rewrites take long
#define SAVE_AT_ONCE \
	256 // backends; the file of more is written when several rewrites have been made
#define SAVE_MS     200
#define COUNTS_MS   60000 // between files of more, of which only counts differ
#define UNKNOWN_MS  60000 // from the last check that could not be made until all is well
#define LOOK_MS     20    // after a command
#define LOOK_MAX_MS 5000
#define SUSPECT_MS  50   // a suspected neighbour, and a new backend, is checked within this time
#define TIMES_MS    5000 // between reports that tell of nothing but more checks
#define SOURCES_MS  200  // changes of addresses and routes within this time are handled together
#define SOURCES_SHARE \
	50 // reading them takes at most a fiftieth of the time: a router learns many routes

struct agent_health {
	struct agent *agent;
	struct probes *probes;
	struct health_targets targets;
	struct agent_task look, apply, tick, save, tell, sources;
	struct all_check_times times;
	struct health_without without; // services
	uint32_t generation;           // generation of the targets; 0: none has been read
	uint64_t digest;               // sum of the overrides by commands
	uint64_t random;
	uint64_t took_ms;    // by the last rewrite
	uint64_t sources_ms; // taken by the last look at the sources
	uint64_t unknown_ms; // when a check could not be made; 0: never
	char unknown[HEALTH_WHY];
};

// ---- checks -------------------------------------------------------------------------------------

static void check_in(struct health_target *t, uint64_t ms)
{
	t->next_ms = health_now_ms() + ms;
	agent_task_move(&t->check, ms);
}

static int check(void *target, struct err *err)
{
	struct health_target *t = target;

	if (t->awaited)
		return 0;
	t->began_ms = health_now_ms();
	t->awaited = t->n_probes;
	for (size_t n = 0; n < t->n_probes; n++)
		probe_start(t->probes[n].probe);
	return 0;
}

// Up to a tenth earlier, so that checks do not fall into step.
static void plan_check(struct agent_health *h, struct health_target *t)
{
	uint64_t pause = health_pause(&t->backend->health, &t->service->rules);
	uint64_t passed = health_now_ms() - t->began_ms;

	pause -= plan_random_below(&h->random, pause / 10 + 1);
	check_in(t, passed < pause ? pause - passed : 0);
}

// The rewrite is active within 100 ms.
static void plan_round(struct agent_health *h)
{
	uint64_t most = h->took_ms < ROUND_MAX_MS ? h->took_ms : ROUND_MAX_MS;

	agent_task_in(&h->apply, most > ROUND_MS ? most : ROUND_MS);
}

// A shortage on this host may affect all checks: it is logged when it begins.
static void tell_unknown(struct agent_health *h, const char *why)
{
	uint64_t now = health_now_ms();

	bool tell = !h->unknown_ms;

	h->unknown_ms = now;
	snprintf(h->unknown, sizeof(h->unknown), "%s", why);
	if (!tell)
		return;
	log_warning("checks cannot be made, and change no state: %s", why);
	agent_changed(h->agent);
}

// The reason of a failure; via path, with several addresses, also the address.
static void set_why(struct health_target *t, const struct health_probe *p, const char *why)
{
	addr_text vip;
	CLEANUP_FREE char *end =
		p->way ? mem_printf(t->n_probes > 1 ? ", via path to %s" : ", via path",
				    addr_format(&p->vip, vip))
		       : mem_strdup("");

	snprintf(t->why, sizeof(t->why), "%.*s%s", (int)(sizeof(t->why) - 1 - strlen(end)), why,
		 end);
}

static void count(struct agent_health *h, struct health_target *t, const struct probe_result *r)
{
	t->counts.checks++;
	t->counts.failed += !r->good;
	t->counts.last_ms = health_now_ms();
	t->counts.took_us = r->took_us;
	t->counts.good = r->good;
	agent_task_in(&h->save, h->targets.n <= SAVE_AT_ONCE ? TIMES_MS : COUNTS_MS);
}

static void trace_check(const struct health_target *t, const struct probe_result *r)
{
	addr_text backend;

	addr_format(&t->backend->addr, backend);
	trace(health, t->service->name, backend, t->backend->port, r->good, r->took_us);
}

static void end_check(struct agent_health *h, struct health_target *t, const struct health_probe *p,
		      const struct probe_result *r)
{
	struct health *health = &t->backend->health;
	bool first = !health->known;

	check_times_add(t->times, r);
	agent_task_in(&h->tell, TIMES_MS);
	if (r->unknown) {
		tell_unknown(h, r->why);
		plan_check(h, t);
		return;
	}
	count(h, t, r);
	trace_check(t, r);
	if (!r->good && !health->cut) // a dead link is the reason then
		set_why(t, p, r->why);
	if (health_result(health, &t->service->rules, r->good, health_now_ms())) {
		health_changed(&t->counts, health_now_ms());
		plan_round(h);
	} else if (first) {
		agent_task_in(&h->save, SAVE_MS); // "not checked yet" is over
	}
	plan_check(h, t);
}

// A check is good when each of its probes is, and ends with the first that is not.
static void on_result(void *probe, const struct probe_result *r)
{
	const struct health_probe *p = probe;
	struct health_target *t = p->target;

	path_way_ended(p->way);
	t->awaited--;
	if (r->good && t->awaited)
		return;
	for (size_t n = 0; t->awaited && n < t->n_probes; n++) {
		probe_stop(t->probes[n].probe);
		path_way_ended(t->probes[n].way);
	}
	t->awaited = 0;
	end_check(t->ctx, t, p, r);
}

static int tell(void *part, struct err *err)
{
	const struct agent_health *h = part;

	agent_changed(h->agent);
	return 0;
}

// ---- time ---------------------------------------------------------------------------------------

static void plan_tick(struct agent_health *h)
{
	uint64_t now = health_now_ms(), next = 0;

	for (size_t i = 0; i < h->targets.n; i++) {
		const struct health_target *t = &h->targets.at[i];
		uint64_t due = health_due(&t->backend->health, &t->service->rules, now);

		if (health_is_waiting(t))
			due = t->wait_ms;
		if (due && (!next || due < next))
			next = due;
	}
	if (next)
		agent_task_in(&h->tick, next > now ? next - now : 0);
}

// True: the next rewrite ends its wait, or the one after that.
static bool end_wait(struct health_target *t, uint64_t now)
{
	if (!health_is_waiting(t) || t->wait_ms > now)
		return false;
	t->wait_ms = now + HEALTH_WAIT_MORE_MS;
	return true;
}

// Ends `lost` and waits for a first check, and raises weights.
static int tick(void *part, struct err *err)
{
	struct agent_health *h = part;
	uint64_t now = health_now_ms();

	for (size_t i = 0; i < h->targets.n; i++) {
		struct health_target *t = &h->targets.at[i];

		if (health_tick(&t->backend->health, &t->service->rules, now) || end_wait(t, now))
			agent_task_in(&h->apply, 0);
	}
	plan_tick(h);
	return 0;
}

// ---- into the rings -----------------------------------------------------------------------------

static int save(void *part, struct err *err)
{
	const struct agent_health *h = part;
	CLEANUP_VEC struct health_records records = {0};

	for (size_t i = 0; i < h->targets.n; i++) {
		const struct health_target *t = &h->targets.at[i];
		struct health_record *r = vec_add(&records);

		*r = (struct health_record){.addr = t->backend->addr,
					    .port = t->backend->port,
					    .health = t->backend->health,
					    .counts = t->counts};
		snprintf(r->service, sizeof(r->service), "%s", t->service->name);
		memcpy(r->why, t->why, sizeof(r->why));
	}
	return health_file_write(h->agent->instance, &records, err);
}

static int apply(void *part, struct err *err)
{
	struct agent_health *h = part;
	uint64_t began = health_now_ms();
	struct health_change change;
	int code = health_apply(h->agent->instance, h->agent->command, h->targets.services,
				h->targets.n_services, health_now_ms(), &change, err);

	if (code)
		return code;
	health_tell(h->agent, &h->targets, &h->without);
	if (change.members)
		nat_backends_changed(h->agent);
	if (change.generation != h->generation)
		agent_task_in(&h->look, 0);
	h->took_ms = health_now_ms() - began;
	plan_tick(h);
	agent_changed(h->agent);
	if (h->targets.n <= SAVE_AT_ONCE)
		return save(h, err);
	agent_task_in(&h->save, SAVE_MS);
	return 0;
}

// ---- targets of checks --------------------------------------------------------------------------

// The properties of a member that commands and policies set; not its health.
static uint64_t digest_of(const struct lb_state *b)
{
	static const struct hash_key key;
	struct hash_state s;

	hash_begin(&s, &key);
	for (size_t i = 0; i < b->n_members; i++) {
		const struct lb_member *m = &b->members[i];

		hash_add(&s, (uint64_t)m->id << 32 |
				     (uint32_t)(m->override << 8 | m->gone << 1 | m->weighed));
		hash_add(&s, (uint64_t)m->weight << 32 | m->override_weight);
	}
	return hash_done(&s, b->n_members);
}

// NULL: the kernel has no such member.
static const struct lb_member *member_of(const struct pool *pool, const struct health_target *t)
{
	const struct health_backend *b = t->backend;
	const struct lb_service *s = lb_state_find(pool->state, t->service->name);

	return s ? lb_state_find_member(pool->state, s, b->addr.family ? &b->addr : NULL, b->port)
		 : NULL;
}

static void plan_first(struct agent_health *h, struct health_target *t,
		       const struct health_target *was)
{
	uint64_t now = health_now_ms(), every = t->service->rules.every_ms;
	uint64_t left = was && was->next_ms > now ? was->next_ms - now : 0;

	agent_task_init(&t->check, h->agent, "check of a backend", check, t);
	if (health_is_waiting(t))
		check_in(t, plan_random_below(&h->random, SUSPECT_MS));
	else if (was && was->n_probes)
		check_in(t, left < every ? left
					 : every); // the policy before may have had another `every`
	else
		check_in(t, plan_random_below(&h->random, every));
}

// Continues what the targets before, or the agent before, knew of a backend; n: its place, where it
// is likely to be.
static void take_over(struct agent_health *h, size_t n, const struct health_targets *old,
		      const struct health_records *records, const struct pool *pool)
{
	struct health_target *t = &h->targets.at[n];
	const struct health_backend *b = t->backend;
	const struct health_target *was =
		health_targets_find(old, n, t->service->name, &b->addr, b->port);
	const struct health_record *record =
		health_file_find(records, n, t->service->name, &b->addr, b->port);

	t->ctx = h;
	t->times = check_times_of(&h->times, t->service->name);
	health_continue(t, was, record, member_of(pool, t), &pool->clock, health_now_ms());
	if (t->n_probes)
		plan_first(h, t, was);
	health_note_told(t);
	if (was) {
		t->told = was->told;
		t->told_ring = was->told_ring;
	}
}

// Targets of removed services are forgotten.
static void keep_times(struct agent_health *h)
{
	CLEANUP_FREE const char **names = mem_zalloc(h->targets.n_services, sizeof(*names));

	for (size_t i = 0; i < h->targets.n_services; i++)
		names[i] = h->targets.services[i].name;
	check_times_keep(&h->times, names, h->targets.n_services);
}

static int load(struct agent_health *h, const struct pool *pool, struct err *err)
{
	CLEANUP_HEALTH_TARGETS struct health_targets old = {0}, fresh = {0};
	CLEANUP_VEC struct health_records records = {0};
	struct err why = {0};
	int code = health_targets_load(h->agent, pool, h->probes, on_result, &fresh, err);

	if (code)
		return code;
	// Without the file the kernel still knows which backends are up.
	if (!h->generation && health_file_read(h->agent->instance, &records, &why))
		log_warning("%s", why.text);
	old = h->targets;
	h->targets = fresh;
	fresh = (struct health_targets){0};
	health_see_rings(pool->state, h->targets.services, h->targets.n_services);
	for (size_t i = 0; i < h->targets.n; i++)
		take_over(h, i, &old, &records, pool);
	keep_times(h);
	h->generation = pool->generation;
	return 0;
}

static void set_link(struct agent_health *h, struct health_target *t, bool dead)
{
	if (dead && !t->backend->health.cut)
		snprintf(t->why, sizeof(t->why), "its link is dead");
	if (!health_link(&t->backend->health, &t->service->rules, dead, health_now_ms()))
		return;
	health_changed(&t->counts, health_now_ms());
	plan_round(h);
}

static bool is_dead(uint32_t ifindex)
{
	struct link link;
	struct err err = {0};

	return link_get_by_index(ifindex, &link, &err) ? true : !link.up || !link.running;
}

// The devices of the next hops, and whether they have carrier. Few devices serve all backends.
static void find_devices(struct agent_health *h, const struct pool *pool)
{
	uint32_t asked = 0;
	bool dead = false;

	for (size_t i = 0; i < h->targets.n; i++) {
		struct health_target *t = &h->targets.at[i];
		const struct lb_member *m = member_of(pool, t);
		const struct backend *in_kernel = m ? lb_maps_backend(pool->live, m->id) : NULL;

		t->ifindex = in_kernel ? in_kernel->ifindex : 0;
		if (t->ifindex != asked)
			dead = t->ifindex && is_dead(t->ifindex);
		asked = t->ifindex;
		set_link(h, t, dead);
	}
}

static int open_shared(const struct agent_health *h, struct pool *ret, bool *ret_any,
		       struct err *err)
{
	CLEANUP_FD int lock = -1;
	struct err why = {0};
	int code;

	*ret_any = false;
	if (!bpffs_exist(h->agent->instance))
		return 0;
	if ((code = lock_share(h->agent->instance, &lock, err)))
		return code;
	code = pool_open_few(h->agent->instance, NULL, ret, &why);
	*ret_any = code == 0;
	if (code && why.kind != ERR_INPUT) { // else the policy has no services
		*err = why;
		return code;
	}
	return 0;
}

static void forget_unknown(struct agent_health *h)
{
	if (!h->unknown_ms || health_now_ms() - h->unknown_ms < UNKNOWN_MS)
		return;
	h->unknown_ms = 0;
	agent_changed(h->agent);
}

static int look(void *part, struct err *err)
{
	struct agent_health *h = part;
	CLEANUP_POOL struct pool pool = {.lock = -1};
	bool any, other;
	uint64_t digest;
	int code = open_shared(h, &pool, &any, err);

	if (code)
		return code;
	agent_task_in(&h->look, LOOK_MAX_MS);
	forget_unknown(h);
	if (!any) {
		health_targets_free(&h->targets);
		keep_times(h);
		h->generation = 0;
		return 0;
	}
	other = pool.generation != h->generation;
	if (other && (code = load(h, &pool, err)))
		return code;
	find_devices(h, &pool);
	digest = digest_of(pool.state);
	if (digest != h->digest || other)
		agent_task_in(&h->apply, 0);
	h->digest = digest;
	return 0;
}

// Probes have the source that they were loaded with.
static int look_at_sources(void *part, struct err *err)
{
	struct agent_health *h = part;
	uint64_t now = 0, began = health_now_ms();
	int code;

	if (!h->generation || !h->targets.policy)
		return 0;
	if ((code = health_targets_sources(&h->targets, &now, err)))
		return code;
	h->sources_ms = health_now_ms() - began;
	if (now == h->targets.sources)
		return 0;
	log_notice("checks of services come from other addresses of this host");
	h->generation = 0;
	agent_task_in(&h->look, 0);
	return 0;
}

// ---- what others tell ---------------------------------------------------------------------------

void agent_health_suspect(struct agent *a, const struct addr *neighbour)
{
	struct agent_health *h = a->health;

	for (size_t i = 0; h && i < h->targets.n; i++) {
		struct health_target *t = &h->targets.at[i];

		if (t->n_probes && !t->awaited && !addr_compare(&t->backend->addr, neighbour))
			check_in(t, plan_random_below(&h->random, SUSPECT_MS));
	}
}

void agent_health_link(struct agent *a, uint32_t ifindex, bool dead)
{
	struct agent_health *h = a->health;

	for (size_t i = 0; h && i < h->targets.n; i++) {
		struct health_target *t = &h->targets.at[i];

		if (ifindex && t->ifindex == ifindex)
			set_link(h, t, dead);
	}
}

void agent_health_addresses(struct agent *a)
{
	if (a->health)
		agent_task_in(&a->health->sources,
			      SOURCES_MS + a->health->sources_ms * SOURCES_SHARE);
}

// ---- the part -----------------------------------------------------------------------------------

// Each check that waits has a descriptor.
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int start(struct agent *a, struct err *err)
{
	struct agent_health *h = mem_new(struct agent_health);
	int code;

	*h = (struct agent_health){.agent = a};
	a->health = h;
	if ((code = plan_random(&h->random, err)))
		return code;
	if ((code = probes_new(a->loop, &h->probes, err)))
		return code;
	agent_task_init(&h->look, a, "services to check", look, h);
	agent_task_init(&h->apply, a, "health of backends", apply, h);
	agent_task_init(&h->tick, a, "times of health", tick, h);
	agent_task_init(&h->save, a, "file of health", save, h);
	agent_task_init(&h->tell, a, "times of checks", tell, h);
	agent_task_init(&h->sources, a, "sources of checks", look_at_sources, h);
	raise_limit();
	agent_after_command(a, &h->look, LOOK_MS);
	agent_task_in(&h->look, 0);
	return 0;
}

static void stop(struct agent *a)
{
	struct agent_health *h = a->health;
	struct err err = {0};

	if (!h)
		return;
	if (h->generation && save(h, &err))
		log_warning("%s", err.text);
	health_targets_free(&h->targets);
	probes_free(h->probes);
	agent_task_free(&h->look);
	agent_task_free(&h->apply);
	agent_task_free(&h->tick);
	agent_task_free(&h->save);
	agent_task_free(&h->tell);
	agent_task_free(&h->sources);
	check_times_free(&h->times);
	health_without_free(&h->without);
	free(h);
	a->health = NULL;
}

static int reload(struct agent *a, struct err *err)
{
	a->health->generation = 0; // certificates and patterns are read again
	agent_task_in(&a->health->look, 0);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct agent_health *h = a->health;
	uint64_t checked = 0, bad = 0;

	for (size_t i = 0; i < h->targets.n; i++) {
		checked += h->targets.at[i].n_probes != 0;
		bad += h->targets.at[i].backend->health.state != BACKEND_UP;
	}
	json_set(fields, "checked", json_u64(checked));
	json_set(fields, "not_healthy", json_u64(bad));
	json_set(fields, "checks", check_times_json(&h->times));
	agent_task_report(&h->look, problems);
	agent_task_report(&h->apply, problems);
	agent_task_report(&h->save, problems);
	agent_task_report(&h->sources, problems);
	if (h->unknown_ms) {
		CLEANUP_FREE char *text = mem_printf("checks cannot be made: %s", h->unknown);

		json_append(problems, json_string(text));
	}
}

const struct agent_part agent_health_part = {
	.name = "health",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
