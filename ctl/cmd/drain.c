// SPDX-License-Identifier: GPL-2.0-only
// weir drain, undrain, weight, backend: set overrides of backends, which survive apply and reboot.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/service_show.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/nat_tidy.h"
#include "ctl/control/pool.h"
#include "ctl/datapath/bpffs.h"

#define QUIET_MS     10000 // --wait returns after this time without a packet
#define QUIET_MAX_MS (24ull * 3600 * 1000)
#define POLL_MS      500
#define NAMES_MAX    3 // number of backends in a message
#define FOR_MAX      (366ull * 24 * 3600 * 1000)

// The change that a command makes in each of its backends.
struct setting {
	uint8_t state;
	bool weighed, clear;
	uint32_t weight;
	uint64_t until_s;
};

// The result of a command.
struct done {
	size_t changed;      // backends
	size_t slots;        // whose owner changed
	size_t ended;        // connections of nat and fullnat with backends that are down
	bool moves;          // a backend has a service in another mode, whose flows can move
	bool revived;        // a backend had the override 'down' and no longer has it
	enum lb_flows flows; // name of the most affected service
};

// Does it end the new flows to a backend?
static bool takes_out(const struct setting *s)
{
	return s->weighed ? !s->weight : s->state != BACKEND_UP;
}

static bool set(struct lb_member *m, const struct setting *s)
{
	struct lb_member before = *m;

	if (s->weighed) {
		m->weighed = 1;
		m->override_weight = s->weight;
	} else {
		m->override = s->state;
		m->until_s = s->until_s;
	}
	if (s->clear) {
		m->weighed = 0;
		m->override_weight = 0;
	}
	return memcmp(&before, m, sizeof(before)) != 0;
}

static void report_flows(struct out *o, const struct setting *s, const struct done *done)
{
	num_text slots;

	if (done->slots)
		out_line(o, "%s %s; %s", num_format_grouped(done->slots, slots),
			 num_plural(done->slots, "slot changes its owner",
				    "slots change their owner"),
			 s->state == BACKEND_DOWN && !s->weighed && done->moves
				 ? "flows of the backend that is down move, their connections break"
			 : s->state == BACKEND_DOWN && !s->weighed
				 ? "the connections of the backend that is down end"
				 : "active flows keep their backend");
	if (done->ended)
		out_line(o, "%s %s of nat and fullnat ended",
			 num_format_grouped(done->ended, slots),
			 num_plural(done->ended, "connection", "connections"));
	if (done->revived)
		out_line(o, "the backend was set down: its old flows return to it");
}

static bool is_kept(const struct pool *p, const struct pool_target *t, enum lb_flows *ret_flows)
{
	const struct lb_service *s = &p->state->services[t->service];
	CLEANUP_FREE bool *kept = service_kept(p->state, s, ret_flows);

	return kept[t->member - s->first_member];
}

// No command can change this: the backend is up by command, but not by its checks.
static void report_sick(const struct context *ctx, const struct pool *p,
			const struct pool_targets *targets)
{
	CLEANUP_SERVICE_HEALTH struct service_health health = {0};

	service_health_open(ctx->instance, &health);
	vec_each (targets, t) {
		const struct lb_service *s = &p->state->services[t->service];
		const struct lb_member *m = &p->state->members[t->member];
		CLEANUP_TEXT struct text text = {0};
		CLEANUP_TEXT struct text why = {0};
		enum lb_flows flows;
		bool kept = is_kept(p, t, &flows);
		addr_text name;

		if (m->health == BACKEND_UP)
			continue;
		service_add_health(&text, &health, s, m, kept);
		text_add(&why, kept ? "it gets new flows all the same, "
				    : "it gets no new flows before they succeed");
		if (kept)
			service_add_why_kept(&why, s, flows);
		out_line(ctx->out, "%sthe checks of %s fail (%s): %s%s", out_red(ctx->out),
			 pool_name(m, name), text_get(&text), text_get(&why), out_plain(ctx->out));
	}
}

static void report(struct context *ctx, const struct args *args, const struct pool *p,
		   const struct pool_targets *targets, const struct setting *s,
		   const struct done *done)
{
	struct out *o = ctx->out;

	out_set_string(o, "instance", ctx->instance);
	out_set_u64(o, "changed", done->changed);
	out_set_u64(o, "slots_changed", done->slots);
	out_set_u64(o, "connections_ended", done->ended);
	out_set_bool(o, "last_ring_kept", done->flows == LB_FLOWS_LAST);
	out_set_bool(o, "fail_open", done->flows == LB_FLOWS_OPEN);
	out_set_bool(o, "dry_run", args_has(args, "dry-run"));
	out_array(o, "backends");
	vec_each (targets, t) {
		const struct lb_member *m = &p->state->members[t->member];
		CLEANUP_TEXT struct text state = {0};
		addr_text name;

		service_add_state(&state, m, is_kept(p, t, NULL), p->clock.wall_ms / 1000);
		out_object(o, NULL);
		out_set_string(o, "service", p->state->services[t->service].name);
		out_set_string(o, "backend", pool_name(m, name));
		out_set_string(o, "state", text_get(&state));
		out_set_u64(o, "weight", lb_member_weight(m));
		out_set_bool(o, "checks_fail", m->health != BACKEND_UP);
		out_end(o);
		if (!ctx->quiet)
			out_line(o, "%s of %s%s: %s, weight %u%s", pool_name(m, name),
				 p->state->services[t->service].name,
				 args_has(args, "dry-run") ? " would be" : "", text_get(&state),
				 lb_member_weight(m), done->changed ? "" : " (unchanged)");
	}
	out_end(o);
	if (!ctx->quiet && !args_has(args, "dry-run"))
		report_flows(o, s, done);
	if (s->state == BACKEND_UP)
		report_sick(ctx, p, targets);
	if (done->flows == LB_FLOWS_LAST && !takes_out(s))
		out_line(o, "%sno backend accepts new flows; the current ring stays in use%s",
			 out_red(o), out_plain(o));
}

// ---- the last backend ---------------------------------------------------------------------------

static uint32_t slots_of(const struct lb_state *b, const struct lb_service *s, uint16_t id)
{
	CLEANUP_FREE uint32_t *owned = mem_zalloc(SERVICE_BACKENDS, sizeof(*owned));

	lb_service_owned(b, s, owned);
	return owned[id];
}

static int refuse_last(const struct pool *p, const struct pool_target *t, struct err *err)
{
	const struct lb_service *s = &p->state->services[t->service];
	const struct lb_member *m = &p->state->members[t->member];
	addr_text name;
	CLEANUP_FREE char *one = mem_printf("%s still gets", pool_name(m, name));

	err_refused(err,
		    "no backend of service '%s' accepts new flows: the current ring stays in use, "
		    "and %s new flows",
		    s->name, slots_of(p->state, s, m->id) ? one : "the backends in it still get");
	return err_hint(err, "undrain another backend of the service, or add one");
}

static int warn_open(const struct pool *p, const struct pool_target *t, struct err *err)
{
	const struct lb_service *s = &p->state->services[t->service];
	CLEANUP_FREE bool *kept = service_kept(p->state, s, NULL);
	CLEANUP_TEXT struct text names = {0};
	addr_text name;
	size_t n = 0;

	for (uint32_t m = 0; m < s->n_members; m++)
		if (kept[m] && n++ < NAMES_MAX)
			text_addf(&names, "%s%s", n > 1 ? ", " : "",
				  pool_name(&p->state->members[s->first_member + m], name));
	err_refused(err,
		    "no backend of service '%s' that passes its checks is left: %s%s %s new flows "
		    "although %s checks fail",
		    s->name, text_get(&names), n > NAMES_MAX ? ", …" : "",
		    num_plural(n, "gets", "get"), num_plural(n, "its", "their"));
	return err_hint(err, "weir undrain %s %s puts it back", s->name,
			pool_name(&p->state->members[t->member], name));
}

// The change is done, but perhaps it means more than the operator knows: it took out the last
// backend.
static int judge(const struct pool *p, const struct pool_targets *targets, const struct setting *s,
		 const struct done *done, struct err *err)
{
	enum lb_flows flows;

	if (!takes_out(s))
		return 0;
	vec_each (targets, t) {
		is_kept(p, t, &flows);
		if (flows != done->flows)
			continue;
		if (flows == LB_FLOWS_LAST)
			return refuse_last(p, t, err);
		if (flows == LB_FLOWS_OPEN)
			return warn_open(p, t, err);
	}
	return 0;
}

static enum lb_flows find_flows(const struct pool *p, const struct pool_targets *targets)
{
	enum lb_flows worst = LB_FLOWS_UP, flows;

	vec_each (targets, t) {
		is_kept(p, t, &flows);
		worst = flows > worst ? flows : worst;
	}
	return worst;
}

// For the record of weir changes, where weir service finds who has drained a backend.
static void note_about(struct context *ctx, const struct pool *p,
		       const struct pool_targets *targets)
{
	struct text about = {0};
	addr_text name;

	vec_each (targets, t)
		text_addf(&about, "%s %s; ", p->state->services[t->service].name,
			  pool_name(&p->state->members[t->member], name));
	free(ctx->about);
	ctx->about = text_take(&about);
}

// Their connections of nat and fullnat end at once; the next ones go to other backends. If no
// backend is left, the last ones go on to serve.
static int end_connections(const struct pool *p, const struct pool_targets *targets,
			   const struct setting *s, size_t *ret, struct err *err)
{
	CLEANUP_FREE struct lb_ids *ids = mem_new(struct lb_ids);
	enum lb_flows flows;

	if (s->weighed || s->state != BACKEND_DOWN)
		return 0;
	vec_each (targets, t) {
		is_kept(p, t, &flows);
		if (flows != LB_FLOWS_LAST)
			lb_ids_add(ids, p->state->members[t->member].id);
	}
	return nat_drop(p->instance, ids, ret, err);
}

// *ret is set also where it is done and refused, because of done.flows.
static int change_pool(struct context *ctx, const struct args *args, const char *service,
		       const char *backend, const struct setting *s, struct done *ret,
		       struct err *err)
{
	CLEANUP_POOL struct pool p = {.lock = -1};
	CLEANUP_VEC struct pool_targets targets = {0};
	struct done done = {0};
	int code;

	if (service && args_has(args, "all"))
		return err_input(err, "--all cannot be combined with service '%s'", service);
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = pool_open_few(ctx->instance, ctx->line, &p, err)))
		return code;
	if ((code = pool_find(&p, service, args_has(args, "all"), backend, &targets, err)) ||
	    (code = pool_take(&p, &targets, err)))
		return code;
	vec_each (&targets, t) {
		struct lb_member *m = &p.state->members[t->member];

		bool moves = !service_has_places(&p.state->services[t->service]);

		done.moves |= moves;
		done.revived |= moves && m->override == BACKEND_DOWN && s->state != BACKEND_DOWN &&
				!s->weighed;
		done.changed += set(m, s);
	}
	// Even if nothing changes: the command that set the override may have been killed before it
	// was done, or may have had --volatile.
	if (!args_has(args, "dry-run") &&
	    ((code = pool_commit(&p, &targets, args_has(args, "volatile"), &done.slots, err)) ||
	     (code = end_connections(&p, &targets, s, &done.ended, err))))
		return code;
	if (!args_has(args, "dry-run"))
		note_about(ctx, &p, &targets);
	done.flows = find_flows(&p, &targets);
	report(ctx, args, &p, &targets, s, &done);
	*ret = done;
	return judge(&p, &targets, s, &done, err);
}

// ---- drain and undrain --------------------------------------------------------------------------

static int read_for(const struct args *args, uint64_t *ret_until_s, uint64_t *ret_ms,
		    struct err *err)
{
	const char *text = args_value(args, "for");

	*ret_until_s = 0;
	*ret_ms = 0;
	if (!text)
		return 0;
	if (num_parse_time_ms(text, strlen(text), 1000, FOR_MAX, ret_ms))
		return err_input(err, "--for '%s' is not a time of 1s to 366d", text);
	*ret_until_s = (uint64_t)time(NULL) + *ret_ms / 1000;
	return 0;
}

// The targets of a wait, at one moment.
struct waited {
	uint64_t packets;   // so far, without nat and fullnat
	size_t connections; // in nat and fullnat, without those that both sides have closed
	bool counted;       // one has a service of these modes
	bool quiet_needed;  // one has another service
	bool over;          // no target is drained any more
};

static int see_target(const struct pool *p, const struct pool_target *t, size_t connections,
		      struct waited *w, struct err *err)
{
	const struct lb_service *s = &p->state->services[t->service];
	const struct lb_member *m = &p->state->members[t->member];
	struct service_counter c;
	int code = lb_maps_counter(p->live, m->id, &c, err);

	if (code)
		return code;
	w->over &= lb_member_state(m) == BACKEND_UP ||
		   (m->until_s && m->until_s <= p->clock.wall_ms / 1000);
	if (service_has_places(s)) {
		w->counted = true;
		w->connections += connections;
		return 0;
	}
	w->quiet_needed = true;
	w->packets += c.packets;
	return 0;
}

static int see_targets(struct context *ctx, const struct args *args, const char *service,
		       const char *backend, struct waited *ret, struct err *err)
{
	CLEANUP_POOL struct pool p = {.lock = -1};
	CLEANUP_VEC struct pool_targets targets = {0};
	CLEANUP_FREE struct nat_reading *nat = mem_new(struct nat_reading);
	int code = pool_open_few(ctx->instance, NULL, &p, err);

	if (code)
		return code;
	if ((code = pool_find(&p, service, args_has(args, "all"), backend, &targets, err)) ||
	    (code = nat_read(p.instance, nat, err)))
		return code;
	nat_reading_free(nat); // only the counts are used
	*ret = (struct waited){.over = true};
	vec_each (&targets, t) {
		const struct nat_of_backend *of =
			&nat->census.of_backend[p.state->members[t->member].id];

		if ((code = see_target(&p, t, of->living - of->closed, ret, err)))
			return code;
	}
	return 0;
}

static void pause_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

// Taking part of the pool for a change removes overrides that have expired.
static int end_expired(struct context *ctx, struct err *err)
{
	static const struct pool_targets none;
	CLEANUP_POOL struct pool p = {.lock = -1};
	int code = pool_open_few(ctx->instance, ctx->line, &p, err);

	return code ? code : pool_take(&p, &none, err);
}

static int report_quiet(struct context *ctx, const struct waited *w, const char *backend,
			uint64_t wait_ms, struct err *err)
{
	num_text time;

	out_set_bool(ctx->out, "quiet", !w->over);
	if (w->over)
		return err_refused(err,
				   "'%s' is no longer drained: the drain expired or was removed",
				   backend);
	if (ctx->quiet)
		return 0;
	if (w->quiet_needed)
		out_line(ctx->out, "no packet for %s%s", num_format_duration_ms(wait_ms, time),
			 w->counted ? ", and no connection" : "");
	else
		out_line(ctx->out, "no connection is left");
	return 0;
}

// Waits until no packet has come for wait_ms, and in nat and fullnat until no connection lives, or
// until the drain has expired or was removed.
static int wait_quiet(struct context *ctx, const struct args *args, const char *service,
		      const char *backend, uint64_t wait_ms, struct err *err)
{
	uint64_t before = UINT64_MAX, quiet_ms = 0;
	struct waited now;
	int code;

	for (;;) {
		if ((code = see_targets(ctx, args, service, backend, &now, err)))
			return code;
		quiet_ms = now.packets == before ? quiet_ms + POLL_MS : 0;
		if (now.over || (!now.connections && (!now.quiet_needed || quiet_ms >= wait_ms)))
			break;
		before = now.packets;
		pause_ms(POLL_MS);
	}
	if (now.over && (code = end_expired(ctx, err)))
		return code;
	return report_quiet(ctx, &now, backend, wait_ms, err);
}

static int wait_after(struct context *ctx, const struct args *args, const char *service,
		      const char *backend, uint64_t wait_ms, struct err *err)
{
	if (!ctx->quiet)
		out_line(
			ctx->out,
			"waiting until it gets no more packets; interrupting ends the wait, not the "
			"drain");
	out_flush(ctx->out);
	out_set_u64(ctx->out, "wait_ms", wait_ms);
	return wait_quiet(ctx, args, service, backend, wait_ms, err);
}

static int read_wait(const struct args *args, uint64_t *ret_ms, struct err *err)
{
	const char *text = args_value(args, "wait");

	*ret_ms = QUIET_MS;
	if (text && num_parse_time_ms(text, strlen(text), 1000, QUIET_MAX_MS, ret_ms))
		return err_input(err, "--wait '%s' is not a time of 1s to 24h", text);
	return 0;
}

static int run_drain(struct context *ctx, const struct args *args, struct err *err)
{
	struct setting s = {.state = BACKEND_DRAIN};
	const char *service, *backend;
	uint64_t ms, wait_ms = 0;
	struct done done = {0};
	struct err why = {0};
	int code = args_expect_words(args, 1, 2, "BACKEND", err);

	if (code)
		return code;
	if ((code = read_for(args, &s.until_s, &ms, err)))
		return code;
	if ((code = read_wait(args, &wait_ms, err)))
		return code;
	service = args->words.n > 1 ? args->words.at[0] : NULL;
	backend = args->words.at[args->words.n - 1];
	code = change_pool(ctx, args, service, backend, &s, &done, err);
	if ((code && done.flows != LB_FLOWS_OPEN) || !args_has(args, "wait") ||
	    args_has(args, "dry-run"))
		return code;
	if (wait_after(ctx, args, service, backend, wait_ms, &why)) {
		*err = why;
		return -EPERM;
	}
	return code;
}

static int run_undrain(struct context *ctx, const struct args *args, struct err *err)
{
	const struct setting s = {.state = BACKEND_UP, .clear = true};
	struct done done;
	int code = args_expect_words(args, 1, 2, "BACKEND", err);

	return code ? code
		    : change_pool(ctx, args, args->words.n > 1 ? args->words.at[0] : NULL,
				  args->words.at[args->words.n - 1], &s, &done, err);
}

// ---- weight and backend -------------------------------------------------------------------------

static int run_weight(struct context *ctx, const struct args *args, struct err *err)
{
	struct setting s = {.weighed = true};
	size_t last = args->words.n - 1;
	struct done done;
	const char *text;
	int code = args_expect_words(args, 2, 3, "BACKEND or weight", err);

	if (code)
		return code;
	text = args->words.at[last];
	if (args->words.n == 2 && strpbrk(text, ".:"))
		return err_input(err, "missing weight of '%s', 0 to %d", text, POLICY_WEIGHT_MAX);
	if (num_parse_u32(text, strlen(text), 0, POLICY_WEIGHT_MAX, &s.weight))
		return err_input(err, "'%s' is not a weight of 0 to %d", text, POLICY_WEIGHT_MAX);
	return change_pool(ctx, args, last > 1 ? args->words.at[0] : NULL, args->words.at[last - 1],
			   &s, &done, err);
}

static int refuse_word(const char *word, struct err *err)
{
	static const char *const others[] = {"drain", "undrain", "weight"};

	err_input(err, "'%s' is neither 'down' nor 'up'", word);
	for (size_t n = 0; n < ARRAY_SIZE(others); n++)
		if (!strcmp(word, others[n]))
			err_hint(err, "did you mean: weir %s?", word);
	return -EINVAL;
}

static int run_backend(struct context *ctx, const struct args *args, struct err *err)
{
	struct setting s = {.state = BACKEND_DOWN};
	struct done done;
	int code = args_expect_words(args, 2, 3, "'down' or 'up', or BACKEND", err);

	if (code)
		return code;
	if (!strcmp(args->words.at[0], "up"))
		s.state = BACKEND_UP;
	else if (strcmp(args->words.at[0], "down"))
		return refuse_word(args->words.at[0], err);
	return change_pool(ctx, args, args->words.n > 2 ? args->words.at[1] : NULL,
			   args->words.at[args->words.n - 1], &s, &done, err);
}

// ---- tables -------------------------------------------------------------------------------------

// clang-format off
#define COMMON_OPTIONS \
	{.name = "all", .help = "in every service that has this backend"}, \
	{.name = "volatile", .help = "do not save: gone after detach or reboot"}, \
	{.name = "dry-run", .help = "print what would be done, change nothing"}
// clang-format on

static const struct args_option drain_options[] = {
	{.name = "wait",
	 .arg = "TIME",
	 .help = "return when it got no packet for TIME (10s), or has no connection of nat",
	 .optional = true},
	{.name = "for",
	 .arg = "TIME",
	 .help = "end after TIME, by the agent or the next change of the pool"},
	COMMON_OPTIONS,
	{0},
};

static const struct args_option options[] = {COMMON_OPTIONS, {0}};

const struct command cmd_drain = {
	.name = "drain",
	.usage = "[SERVICE|--all] BACKEND [OPTIONS]",
	.summary = "send no new flows to a backend; existing flows stay",
	.options = drain_options,
	.changes = CHANGES_INSTANCE,
	.run = run_drain,
};

const struct command cmd_undrain = {
	.name = "undrain",
	.usage = "[SERVICE|--all] BACKEND [OPTIONS]",
	.summary = "remove the overrides of drain, weight and backend down",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run_undrain,
};

const struct command cmd_weight = {
	.name = "weight",
	.usage = "[SERVICE|--all] BACKEND N [OPTIONS]",
	.summary = "override the weight of a backend; 0 drains it",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run_weight,
};

const struct command cmd_backend = {
	.name = "backend",
	.usage = "down|up [SERVICE|--all] BACKEND [OPTIONS]",
	.summary =
		"declare a backend down (its flows move; in nat and fullnat they end), or up again",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run_backend,
};
