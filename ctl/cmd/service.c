// SPDX-License-Identifier: GPL-2.0-only
// weir service: shows services with backends, shares of the ring, pins and counters; updates next
// hops.
#include <errno.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/rules.h"
#include "ctl/cmd/service_show.h"
#include "ctl/cmd/service_why.h"
#include "ctl/control/active.h"
#include "ctl/control/changelog.h"
#include "ctl/control/lb_running.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/policy/words.h"

struct shown_service {
	struct context *ctx;
	const struct candidate *policy; // the active one, from its record; NULL: unreadable
	const struct pool *pool;
	const struct lb_service *service;
	const struct resolved_service *resolved; // of `policy`; NULL: not known
	struct service_health health;
	struct service_why why;
	struct changelog_authors authors;
	uint32_t owned[SERVICE_BACKENDS];
	uint32_t pins[SERVICE_BACKENDS][PIN_LEVEL + 1];
};

static void show_ring(const struct shown_service *s)
{
	struct out *o = s->ctx->out;
	struct lb_service_figures f;

	lb_service_figures(s->pool->state, s->service, s->pool->clock.jiffies, s->pool->clock.hz,
			   &f);
	out_set_u64(o, "slots", s->service->size);
	out_set_u64(o, "slots_stable", f.stable);
	out_set_u64(o, "slots_changing", f.changing);
	out_set_u64(o, "slots_pins_only", f.pins_only);
	out_set_u64(o, "share_error_ppm", f.share_error);
	service_set_fingerprint(o, "fingerprint", f.fingerprint);
	service_set_fingerprint(o, "configuration_fingerprint", f.configuration);
	out_line(o,
		 "  ring:        %u %s: stable %u, changing %u, pins only %u; largest share error "
		 "%llu.%02llu %%",
		 s->service->size, num_plural(s->service->size, "slot", "slots"), f.stable,
		 f.changing, f.pins_only, (unsigned long long)f.share_error / 10000,
		 (unsigned long long)f.share_error / 100 % 100);
	out_line(o, "  fingerprint: %016llx, of the configuration %016llx",
		 (unsigned long long)f.fingerprint, (unsigned long long)f.configuration);
}

static void show_idle(const struct shown_service *s)
{
	const struct lb_service *v = s->service;
	uint64_t hz = s->pool->clock.hz;
	CLEANUP_TEXT struct text t = {0};
	num_text time;

	if (v->idle_tcp)
		text_add(&t, num_format_duration_ms(v->idle_tcp * 1000ull / hz, time));
	if (v->idle_udp)
		text_addf(&t, "%s%s for udp%s", t.len ? ", " : "",
			  num_format_duration_ms(v->idle_udp * 1000ull / hz, time),
			  v->udp_move ? " (no pins)" : "");
	out_set_u64(s->ctx->out, "idle_ms", v->idle_tcp * 1000ull / hz);
	out_set_u64(s->ctx->out, "idle_udp_ms", v->idle_udp * 1000ull / hz);
	out_set_u64(s->ctx->out, "hold", v->hold);
	out_line(s->ctx->out, "  idle:        %s%s", text_get(&t),
		 v->hold > 1 ? "; slots stay changing longer, as pins are being evicted" : "");
}

static const char *const pin_keys[] = {"pins_half", "pins_found", "pins_talks", "pins_closed"};

// Text: the sum. JSON: the number of each kind.
static void cell_pins(struct out *o, const uint32_t *pins)
{
	uint64_t sum = 0;

	for (int level = 0; level <= PIN_CLOSED; level++)
		sum += pins[level];
	out_cell_u64(o, "pins", "PINS", sum);
	for (int level = 0; level <= PIN_CLOSED; level++)
		out_set_u64(o, pin_keys[level], pins[level]);
}

// Adds to the reason of a failure, if this host drops all answers.
static void add_dropper(struct shown_service *s, const struct lb_member *m, struct text *health)
{
	CLEANUP_TEXT struct text by = {0};

	if (!s->resolved || !service_is_silent(&s->health, s->service, m))
		return;
	service_why_add(&by, &s->why, s->resolved, m);
	if (!by.len)
		return;
	out_set_string(s->ctx->out, "dropped_by", text_get(&by));
	text_addf(health, "; this host drops the answers: %s", text_get(&by));
}

// Adds who has drained it, or changed its weight.
static void add_author(struct shown_service *s, const struct lb_member *m, struct text *state)
{
	CLEANUP_FREE char *backend = NULL;
	const char *by;
	addr_text name;

	if (m->override == BACKEND_UP && !m->weighed)
		return;
	backend = mem_printf("%s %s", s->service->name, pool_name(m, name));
	by = changelog_author(&s->authors, backend);
	out_set_string(s->ctx->out, "drained_by", by);
	if (by)
		text_addf(state, ", by %s", by);
}

static int show_backend(struct shown_service *s, const struct lb_member *m, bool kept,
			struct err *err)
{
	struct out *o = s->ctx->out;
	struct service_counter c;
	const struct backend *backend;
	int code = lb_maps_counter(s->pool->live, m->id, &c, err);
	CLEANUP_TEXT struct text state = {0};
	CLEANUP_TEXT struct text health = {0};
	addr_text name;

	if (code)
		return code;
	service_add_state(&state, m, kept, s->pool->clock.wall_ms / 1000);
	service_add_health(&health, &s->health, s->service, m, kept);
	out_row(o);
	out_cell(o, "backend", "BACKEND", pool_name(m, name));
	out_set_string(o, "state", text_get(&state));
	add_author(s, m, &state);
	out_cell(o, NULL, "STATE", text_get(&state));
	add_dropper(s, m, &health);
	if (s->service->checked || out_is_json(o))
		out_cell(o, "health", "HEALTH", text_get(&health));
	service_set_checks(o, &s->health, s->service, m);
	out_cell_u64(o, "weight", "WEIGHT", lb_member_weight(m));
	out_cell_u64(o, "slots", "SLOTS", s->owned[m->id]);
	cell_pins(o, s->pins[m->id]);
	out_cell_u64(o, "opened", "OPENED", c.event[SERVICE_OPENED]);
	out_cell_u64(o, "packets", "PACKETS", c.packets);
	out_cell_u64(o, "bytes", "BYTES", c.bytes);
	backend = lb_maps_backend(s->pool->live, m->id);
	service_cell_nexthop(o, backend, backend && egress_cannot_send(s->pool, backend),
			     &s->pool->clock);
	return 0;
}

static int show_each_backend(struct shown_service *s, struct err *err)
{
	const struct lb_service *v = s->service;
	CLEANUP_FREE bool *kept = service_kept(s->pool->state, v, NULL);

	for (uint32_t m = 0; m < v->n_members; m++) {
		int code = show_backend(s, &s->pool->state->members[v->first_member + m], kept[m],
					err);

		if (code)
			return code;
	}
	return 0;
}

static int show_backends(struct shown_service *s, struct err *err)
{
	int code;

	out_table(s->ctx->out, "backends");
	code = show_each_backend(s, err);
	out_table_end(s->ctx->out);
	return code;
}

static void show_pins(const struct shown_service *s)
{
	struct out *o = s->ctx->out;
	uint64_t sum[PIN_LEVEL + 1] = {0};

	for (size_t id = 0; id < SERVICE_BACKENDS; id++)
		for (int level = 0; level <= PIN_CLOSED; level++)
			sum[level] += s->pins[id][level];
	for (int level = 0; level <= PIN_CLOSED; level++)
		out_set_u64(o, pin_keys[level], sum[level]);
	out_set_u64(o, "pins_max", (uint64_t)s->service->buckets * SERVICE_PIN_WORDS);
	out_line(
		o,
		"  pins:        %llu half open, %llu found, %llu talking, %llu closed, of at most %llu",
		(unsigned long long)sum[PIN_HALF], (unsigned long long)sum[PIN_FOUND],
		(unsigned long long)sum[PIN_TALKS], (unsigned long long)sum[PIN_CLOSED],
		(unsigned long long)s->service->buckets * SERVICE_PIN_WORDS);
}

static int show_service(struct shown_service *s, struct err *err)
{
	struct out *o = s->ctx->out;
	struct service_counter c;
	size_t n = (size_t)(s->service - s->pool->state->services);
	int code = lb_maps_counter(s->pool->live, s->service->id, &c, err);

	if (code)
		return code;
	memset(s->owned, 0, sizeof(s->owned));
	memset(s->pins, 0, sizeof(s->pins));
	lb_service_owned(s->pool->state, s->service, s->owned);
	if ((code = pool_pins(s->pool, n, s->pins, err)))
		return code;
	out_object(o, NULL);
	out_set_string(o, "name", s->service->name);
	out_set_string(o, "mode", service_mode_name(s->service->mode));
	out_line(o, "%s%s%s: %s, hash %s", out_bold(o), s->service->name, out_plain(o),
		 service_mode_name(s->service->mode),
		 choice_word(&choice_hashes, s->service->hash));
	service_show_vips(o, s->policy, s->service->name);
	show_ring(s);
	show_idle(s);
	show_pins(s);
	code = show_backends(s, err);
	service_show_counters(o, &c);
	out_end(o);
	return code;
}

static void show_devices(struct context *ctx, const struct pool *pool)
{
	CLEANUP_EGRESSES struct egresses egresses = {0};

	egress_find(pool, &egresses);
	out_line(ctx->out, "%s", "");
	egress_table(ctx->out, &egresses);
}

// Shows the service with the index *only; NULL: all.
static int show_services(struct shown_service *s, const size_t *only, struct err *err)
{
	for (size_t n = 0; n < s->pool->state->n_services; n++) {
		int code;

		if (only && n != *only)
			continue;
		s->service = &s->pool->state->services[n];
		s->resolved = service_resolved(s->policy, s->service->name);
		if (!only && n)
			out_line(s->ctx->out, "%s", "");
		if ((code = show_service(s, err)))
			return code;
	}
	return 0;
}

// *ret_service: of the name; NULL: all services are opened.
static int open_shown(struct context *ctx, const char *name, struct pool *pool, size_t *ret_service,
		      struct err *err)
{
	int code;

	if (!name)
		return pool_open(ctx->instance, NULL, pool, err);
	if ((code = pool_open_few(ctx->instance, NULL, pool, err)) ||
	    (code = pool_find_service(pool, name, ret_service, err)))
		return code;
	return lb_maps_use(pool->live, *ret_service, err);
}

static int show(struct context *ctx, const char *name, struct err *err)
{
	CLEANUP_POOL struct pool opened = {.lock = -1};
	const struct pool *pool = &opened;
	CLEANUP_FREE struct shown_service *s = mem_new(struct shown_service);
	CLEANUP_CANDIDATE struct candidate *policy = NULL;
	size_t only = 0;
	int code = open_shown(ctx, name, &opened, &only, err);

	if (code)
		return code;
	s->ctx = ctx;
	s->pool = pool;
	s->why.instance = ctx->instance;
	s->authors.instance = ctx->instance;
	service_health_open(ctx->instance, &s->health);
	if (!active_rules(pool->instance, true, &policy, NULL))
		s->policy = policy;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_array(ctx->out, "services");
	code = show_services(s, name ? &only : NULL, err);
	service_health_close(&s->health);
	service_why_close(&s->why);
	changelog_authors_free(&s->authors);
	out_end(ctx->out);
	if (code)
		return code;
	show_devices(ctx, pool);
	return 0;
}

// Prints what the refresh found, and restarts the count of lost frames.
static void report_refresh(struct context *ctx, const struct pool *pool,
			   const struct lb_paths *paths)
{
	CLEANUP_FREE char **texts = mem_zalloc(paths->lost.n + paths->warnings.n, sizeof(*texts));
	size_t n = 0;
	CLEANUP_EGRESSES struct egresses egresses = {0};
	CLEANUP_EGRESS_FINDINGS struct egress_findings findings = {0};

	vec_each (&paths->lost, text)
		texts[n++] = *text;
	vec_each (&paths->warnings, text)
		texts[n++] = *text;
	egress_find(pool, &egresses);
	egress_check(&egresses, true, &findings);
	egress_forget(ctx->instance, &egresses);
	egress_report(ctx, texts, n, &findings);
}

// Waits for silent neighbours before the lock is taken, so that no other command waits for the
// lock.
static int ask_ahead(const struct context *ctx, struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	CLEANUP_LB_PATHS struct lb_paths unused = {0};
	int code = pool_open_few(ctx->instance, NULL, &pool, err);

	return code ? code : lb_running_refresh(pool.live, NEXTHOP_WAIT_MS, false, &unused, err);
}

// The refresh is done, but some backends cannot be reached.
static int refuse_lost(const struct lb_paths *paths, struct err *err)
{
	err_refused(err, "%zu %s but %s no next hop that answers", paths->lost.n,
		    num_plural(paths->lost.n, "backend gets new flows", "backends get new flows"),
		    num_plural(paths->lost.n, "has", "have"));
	err_hint(err, "weir drain or weir backend down takes a backend out of the service");
	return -EHOSTUNREACH;
}

static int refresh(struct context *ctx, struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	CLEANUP_LB_PATHS struct lb_paths paths = {0};
	int code = ask_ahead(ctx, err);

	if (code)
		return code;
	if ((code = pool_open(ctx->instance, ctx->line, &pool, err)))
		return code;
	if ((code = lb_running_refresh(pool.live, 0, true, &paths, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_u64(ctx->out, "changed", paths.changed);
	report_refresh(ctx, &pool, &paths);
	if (!ctx->quiet)
		out_line(ctx->out, "%zu next %s changed, instance %s", paths.changed,
			 num_plural(paths.changed, "hop", "hops"), ctx->instance);
	return paths.lost.n ? refuse_lost(&paths, err) : 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	bool wants_refresh = args_has(args, "refresh");
	int code = args_expect_words(args, 0, 1, "", err);

	if (code)
		return code;
	if (wants_refresh && args->words.n)
		return err_input(err, "--refresh is for all services: unexpected argument '%s'",
				 args->words.at[0]);
	if ((code = bpffs_ready(err)))
		return code;
	if (wants_refresh)
		return refresh(ctx, err);
	return show(ctx, args->words.n ? args->words.at[0] : NULL, err);
}

static const struct args_option options[] = {
	{.name = "refresh", .help = "query the kernel for the next hops again"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_service = {
	.name = "service",
	.usage = "[NAME] | --refresh",
	.summary = "show services: backends, shares of the ring, pins, counters",
	.options = options,
	.run = run,
};
