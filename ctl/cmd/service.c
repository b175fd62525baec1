// SPDX-License-Identifier: GPL-2.0-only
// weir service: shows services with backends, shares of the ring, pins, connections and counters;
// updates next hops, frees what has expired.
#include <errno.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/nat_show.h"
#include "ctl/cmd/rules.h"
#include "ctl/cmd/service_show.h"
#include "ctl/cmd/service_why.h"
#include "ctl/control/active.h"
#include "ctl/control/changelog.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/nat_tidy.h"
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
	struct nat_reading nat;
};

static bool shows_connections(const struct shown_service *s)
{
	return service_shows_connections(&s->nat, s->pool->state, s->service);
}

static void show_phases(const struct shown_service *s, const struct lb_service_figures *f)
{
	struct out *o = s->ctx->out;

	out_set_u64(o, "slots_stable", f->stable);
	out_set_u64(o, "slots_changing", f->changing);
	out_set_u64(o, "slots_pins_only", f->pins_only);
	out_line(o,
		 "  ring:        %u %s: stable %u, changing %u, pins only %u; largest share error "
		 "%llu.%02llu %%",
		 s->service->size, num_plural(s->service->size, "slot", "slots"), f->stable,
		 f->changing, f->pins_only, (unsigned long long)f->share_error / 10000,
		 (unsigned long long)f->share_error / 100 % 100);
}

static void show_ring(const struct shown_service *s)
{
	struct out *o = s->ctx->out;
	struct lb_service_figures f;

	lb_service_figures(s->pool->state, s->service, s->pool->clock.jiffies, s->pool->clock.hz,
			   &f);
	out_set_u64(o, "slots", s->service->size);
	out_set_u64(o, "share_error_ppm", f.share_error);
	service_set_fingerprint(o, "fingerprint", f.fingerprint);
	service_set_fingerprint(o, "configuration_fingerprint", f.configuration);
	if (service_has_places(s->service))
		out_line(o, "  ring:        %u %s; largest share error %llu.%02llu %%",
			 s->service->size, num_plural(s->service->size, "slot", "slots"),
			 (unsigned long long)f.share_error / 10000,
			 (unsigned long long)f.share_error / 100 % 100);
	else
		show_phases(s, &f);
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
			  v->udp_move && !service_has_places(s->service) ? " (no pins)" : "");
	out_set_u64(s->ctx->out, "idle_ms", v->idle_tcp * 1000ull / hz);
	out_set_u64(s->ctx->out, "idle_udp_ms", v->idle_udp * 1000ull / hz);
	if (!service_has_places(s->service))
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
	if (!service_has_places(s->service))
		cell_pins(o, s->pins[m->id]);
	if (shows_connections(s))
		service_cell_connections(o, &s->nat, m->id);
	out_cell_u64(o, "opened", "OPENED", c.event[SERVICE_OPENED]);
	out_cell_u64(o, "packets", "PACKETS", c.packets);
	out_cell_u64(o, "bytes", "BYTES", c.bytes);
	if (shows_connections(s))
		service_cell_answers(o, &c);
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

static void show_connections(const struct shown_service *s)
{
	struct nat_sum sum = nat_of_service(&s->nat, s->pool->state, s->service);
	nat_sum_text text;

	nat_set_sum(s->ctx->out, sum);
	out_line(s->ctx->out, "  nat:         %s", nat_format_sum(sum, text));
}

static int show_flows(struct shown_service *s, struct err *err)
{
	size_t n = (size_t)(s->service - s->pool->state->services);
	int code = service_has_places(s->service) ? 0 : pool_pins(s->pool, n, s->pins, err);

	if (code)
		return code;
	if (!service_has_places(s->service))
		show_pins(s);
	if (shows_connections(s))
		show_connections(s);
	return 0;
}

static int show_service(struct shown_service *s, struct err *err)
{
	struct out *o = s->ctx->out;
	struct service_counter c;
	int code = lb_maps_counter(s->pool->live, s->service->id, &c, err);

	if (code)
		return code;
	memset(s->owned, 0, sizeof(s->owned));
	memset(s->pins, 0, sizeof(s->pins));
	lb_service_owned(s->pool->state, s->service, s->owned);
	out_object(o, NULL);
	out_set_string(o, "name", s->service->name);
	out_set_string(o, "mode", service_mode_name(s->service->mode));
	out_line(o, "%s%s%s: %s, hash %s", out_bold(o), s->service->name, out_plain(o),
		 service_mode_name(s->service->mode),
		 choice_word(&choice_hashes, s->service->hash));
	service_show_vips(o, s->policy, s->service->name);
	show_ring(s);
	show_idle(s);
	code = show_flows(s, err);
	code = code ? code : show_backends(s, err);
	service_show_counters(o, &c, shows_connections(s));
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

static void shown_close(struct shown_service *s)
{
	service_health_close(&s->health);
	service_why_close(&s->why);
	changelog_authors_free(&s->authors);
	nat_reading_free(&s->nat);
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
	if ((code = nat_read(opened.instance, &s->nat, err)))
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
	out_end(ctx->out);
	if (code == 0) {
		nat_show(ctx->out, &s->nat, true);
		show_devices(ctx, pool);
	}
	shown_close(s);
	return code;
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

// ---- --tidy -------------------------------------------------------------------------------------

static void report_tidied(struct context *ctx, const struct nat_tidied *t, size_t expired,
			  size_t blocks)
{
	struct out *o = ctx->out;
	struct nat_sum left = {t->census.living, t->census.opening};
	num_text freed, removed;
	nat_sum_text sum;

	out_set_string(o, "instance", ctx->instance);
	out_set_u64(o, "expired", expired);
	out_set_u64(o, "blocks_removed", blocks);
	nat_set_sum(o, left);
	if (!ctx->quiet)
		out_line(o, "%s expired %s freed, %s %s removed; now %s, instance %s",
			 num_format_grouped(expired, freed),
			 num_plural(expired, "connection", "connections"),
			 num_format_grouped(blocks, removed), num_plural(blocks, "block", "blocks"),
			 nat_format_sum(left, sum), ctx->instance);
}

// Opening the pool for a change tidies up its rings. A policy without services may have had some.
static int tidy_rings(struct context *ctx, struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	struct err why = {0};
	int code = pool_open(ctx->instance, ctx->line, &pool, &why);

	if (code && why.kind != ERR_INPUT) {
		*err = why;
		return code;
	}
	return 0;
}

// Two walks: only the second one knows which peers both have found unused.
static int tidy(struct context *ctx, struct err *err)
{
	CLEANUP_FREE struct nat_unused *unused = mem_new(struct nat_unused);
	CLEANUP_FREE struct nat_tidied *tidied = mem_new(struct nat_tidied);
	size_t expired = 0, blocks = 0;
	int code = tidy_rings(ctx, err);

	for (int n = 0; n < 2; n++) {
		if (code)
			return code;
		code = nat_tidy_now(ctx->instance, ctx->line, unused, tidied, err);
		expired += tidied->census.expired;
		blocks += tidied->removed;
	}
	if (code)
		return code;
	report_tidied(ctx, tidied, expired, blocks);
	return 0;
}

static int check_words(const struct args *args, struct err *err)
{
	bool refreshes = args_has(args, "refresh"), tidies = args_has(args, "tidy");
	int code = args_expect_words(args, 0, 1, "", err);

	if (code)
		return code;
	if (refreshes && tidies)
		return err_input(err, "--refresh cannot be combined with --tidy");
	if ((refreshes || tidies) && args->words.n)
		return err_input(err, "%s is for all services: unexpected argument '%s'",
				 refreshes ? "--refresh" : "--tidy", args->words.at[0]);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	int code = check_words(args, err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if (args_has(args, "refresh"))
		return refresh(ctx, err);
	if (args_has(args, "tidy"))
		return tidy(ctx, err);
	return show(ctx, args->words.n ? args->words.at[0] : NULL, err);
}

static const struct args_option options[] = {
	{.name = "refresh", .help = "query the kernel for the next hops again"},
	{.name = "tidy", .help = "free what has expired, as the agent does"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_service = {
	.name = "service",
	.usage = "[NAME] | --refresh | --tidy",
	.summary = "show services: backends, shares of the ring, pins, connections, counters",
	.options = options,
	.run = run,
};
