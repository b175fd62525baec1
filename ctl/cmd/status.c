// SPDX-License-Identifier: GPL-2.0-only
// weir status: shows policy, interfaces, services and alarms; exit status 2 with any alarm.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/agent_problems.h"
#include "ctl/cmd/alerts.h"
#include "ctl/cmd/changing.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/rules.h"
#include "ctl/cmd/show.h"
#include "ctl/cmd/status_agent.h"
#include "ctl/cmd/status_all.h"
#include "ctl/cmd/status_connections.h"
#include "ctl/cmd/status_feeds.h"
#include "ctl/cmd/status_limits.h"
#include "ctl/cmd/status_macs.h"
#include "ctl/cmd/status_names.h"
#include "ctl/cmd/status_services.h"
#include "ctl/control/detach_stale.h"
#include "ctl/control/rates.h"
#include "ctl/control/revisions.h"
#include "ctl/control/state.h"
#include "ctl/control/unseen.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/outgoing.h"
#include "ctl/datapath/overlay.h"
#include "ctl/datapath/reach.h"
#include "ctl/datapath/sets.h"
#include "ctl/datapath/sharing.h"
#include "ctl/net/link.h"

#define SAMPLE_MS 250

#define IFACE  "interface" // the objects of alarms
#define POLICY "policy"

struct status {
	struct context *ctx;
	struct instance *instance;
	struct clock clock;
	struct counters *before, *after;
	uint64_t span_ns; // between the samples; 0: there is one
	struct alerts alerts;
	bool trial;                     // one runs
	struct generation_about *about; // of the active policy
	struct reach reach;             // of the active policy
	struct devices devices;
	size_t set_used[POLICY_SETS_MAX];
	struct pool pool; // of its services
	struct nat_reading *nat;
	struct presence agent;
	struct unseen_watch unseen;
	struct status_names names;
	struct connections_state connections;
};

__attribute__((format(printf, 4, 5))) static void alarm_add(void *status, const char *kind,
							    const char *name, const char *fmt, ...)
{
	struct status *s = status;
	va_list ap;

	va_start(ap, fmt);
	alerts_add(&s->alerts, kind, name, NULL, fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 5, 6))) static void alarm_add_same(struct status *s, const char *kind,
								 const char *name, const char *same,
								 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	alerts_add(&s->alerts, kind, name, same, fmt, ap);
	va_end(ap);
}

// Without rates.
static int sample_once(struct status *s, struct err *err)
{
	unseen_look_kept(s->instance, &s->devices, &s->unseen);
	return counters_read(s->instance, s->after, err);
}

static int sample(struct status *s, struct err *err)
{
	const struct timespec pause = {.tv_nsec = SAMPLE_MS * 1000000};
	uint64_t began_ns;
	int code;

	unseen_choose(s->instance, &s->devices, &s->unseen);
	unseen_look(s->instance, &s->unseen);
	began_ns = time_ns(CLOCK_MONOTONIC);
	if ((code = counters_read(s->instance, s->before, err)))
		return code;
	nanosleep(&pause, NULL);
	s->span_ns = time_ns(CLOCK_MONOTONIC) - began_ns;
	if ((code = counters_read(s->instance, s->after, err)))
		return code;
	unseen_look(s->instance, &s->unseen);
	unseen_wait(s->instance, &s->unseen);
	return 0;
}

static double rate(const struct status *s, uint32_t number, bool drops)
{
	struct counter a = counters_iface(s->before, number, drops);
	struct counter b = counters_iface(s->after, number, drops);

	return rates_of(rates_moved(&a, &b).packets, s->span_ns);
}

static void add_others(const struct iface *iface, uint32_t progs_id, struct text *t)
{
	struct attached_list there;
	size_t n = 0;

	if (!attach_query(iface->ifindex, progs_id, &there, NULL))
		for (size_t a = 0; a < there.n; a++)
			if (!there.at[a].ours)
				text_addf(t, "%s%s", n++ ? " " : "", there.at[a].name);
	if (!n)
		text_add(t, "none");
}

static void add_place(struct text *t, const struct device *d)
{
	const char *mode = hook_mode_name(d->iface.mode);

	switch (d->state) {
	case DEVICE_HELD:
		text_addf(t, "%s, %s", mode, d->iface.shared ? "shared" : "alone");
		break;
	case DEVICE_MOVED:
		text_addf(t, "%s, moved to ", mode);
		show_moved(t, d);
		break;
	case DEVICE_GONE:
		text_add(t, "does not exist");
		break;
	default:
		text_add(t, "OPEN: Weir is not attached");
	}
}

static bool is_here(const struct device *d)
{
	return d->state == DEVICE_HELD || d->state == DEVICE_OPEN;
}

// Without our program on the device, nothing applies there.
static enum reach_what what_applies(const struct status *s, uint32_t number)
{
	enum device_state state = s->devices.at[number].state;

	return state == DEVICE_HELD || state == DEVICE_MOVED ? reach_what(&s->reach, number)
							     : REACH_NOTHING;
}

// How much longer the interface is bypassed.
static uint64_t bypass_ms(const struct status *s, uint32_t number)
{
	uint64_t until = s->instance->knobs->bypass_until[number];

	return until > s->clock.jiffies ? clock_ms_until(&s->clock, until) : 0;
}

static void set_iface(struct status *s, uint32_t number, const struct device *d, uint32_t mtu)
{
	const struct iface *iface = &d->iface;
	struct out *o = s->ctx->out;
	struct err why = {0};

	if (!iface->shared)
		sharing_check(&s->instance->meta, &why);
	out_set_string(o, "name", iface->name);
	out_set_string(o, "state", device_state_name(d->state));
	out_set_string(o, "netns", d->netns[0] ? d->netns : NULL);
	out_set_string(o, "mode", hook_mode_name(iface->mode));
	out_set_bool(o, "attached", d->state == DEVICE_HELD || d->state == DEVICE_MOVED);
	out_set_bool(o, "shared", iface->shared);
	out_set_bool(o, "linked", iface->linked);
	out_set_bool(o, "policy", what_applies(s, number) == REACH_POLICY);
	out_set_string(o, "alone_because", why.text[0] ? why.text : NULL);
	out_set_u64(o, "mtu", mtu);
	out_set_u64(o, "bypass_ms", bypass_ms(s, number));
	if (s->ctx->at_once)
		return;
	out_set_u64(o, "in_pps", (uint64_t)rate(s, number, false));
	out_set_u64(o, "dropped_pps", (uint64_t)rate(s, number, true));
}

static void show_iface(struct status *s, uint32_t number, const struct device *d)
{
	struct out *o = s->ctx->out;
	struct link link = {0};
	CLEANUP_TEXT struct text line = {0};
	num_text in, dropped;

	if (is_here(d))
		link_get_by_index(d->iface.ifindex, &link, NULL);
	out_object(o, NULL);
	set_iface(s, number, d, link.mtu);
	out_end(o);
	add_place(&line, d);
	if (is_here(d)) {
		text_addf(&line, ", mtu %u, other XDP: ", link.mtu);
		add_others(&d->iface, s->instance->progs_id, &line);
	}
	out_line(o, "%-9s %s      %spps in, %spps dropped", d->iface.name, text_get(&line),
		 num_format_short(rate(s, number, false), in),
		 num_format_short(rate(s, number, true), dropped));
}

static int read_devices(struct status *s, struct err *err)
{
	int code = devices_read(s->instance, &s->devices, err);

	if (code || !s->devices.unknown.kind)
		return code;
	*err = s->devices.unknown;
	return -err->code;
}

static void show_ifaces(struct status *s)
{
	out_array(s->ctx->out, "interfaces");
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (s->devices.at[n].state != DEVICE_FREE)
			show_iface(s, n, &s->devices.at[n]);
	out_end(s->ctx->out);
}

// True if a policy attached the device and does not require it.
static bool may_be_absent(const struct status *s, const struct device *d)
{
	uint8_t class = generation_class(s->about, d->iface.name);

	return d->iface.generation && class && s->about->optional >> (class - 1) & 1;
}

static void alarm_device(struct status *s, const struct device *d)
{
	const char *name = d->iface.name;

	if (d->state == DEVICE_GONE) {
		if (!may_be_absent(s, d))
			alarm_add(s, IFACE, name,
				  "'%s' no longer exists (" MEND("weir detach %s") " removes it)",
				  name, name);
	} else if (d->iface.state != IFACE_ATTACHED) {
		alarm_add(s, IFACE, name,
			  "'%s' is only partly %s, as a command was interrupted (" MEND(
				  "weir %s %s") ")",
			  name, d->iface.state == IFACE_ATTACHING ? "attached" : "detached",
			  d->iface.state == IFACE_ATTACHING ? "attach" : "detach", name);
	} else if (d->state == DEVICE_OPEN) {
		alarm_add(
			s, IFACE, name,
			"'%s' does not run Weir: every packet passes (" MEND("weir attach %s") ")",
			name, name);
	} else if (d->state == DEVICE_ANOTHER) {
		alarm_add(s, IFACE, name,
			  "'%s' is not the device that Weir was attached to, which had the same "
			  "name: every packet passes (" MEND("weir attach %s") ")",
			  name, name);
	}
}

// True if no device has this name of the policy now: the policy cannot be applied again unchanged.
static bool is_missed(const struct status *s, uint8_t class)
{
	struct link link;

	return class && class <= s->about->n_ifaces && !(s->about->optional >> (class - 1) & 1) &&
	       link_get(s->about->ifaces[class - 1], &link, NULL) == -ENODEV;
}

// To the kernel, the program is attached.
static void alarm_unseen(struct status *s, uint32_t number, const struct device *d)
{
	CLEANUP_UNSEEN struct unseen_finding f = {0};

	if (!unseen_is_certain(&s->unseen.at[number]))
		return;
	f = unseen_finding(d->iface.name);
	alarm_add(s, IFACE, d->iface.name, "'%s' %s (" MEND("%s") ")", d->iface.name, f.text,
		  f.mend);
}

// A policy treats an interface by the name that it had when the policy was applied.
static void alarm_class(struct status *s, uint32_t number, const struct device *d)
{
	uint8_t class = s->reach.classes.class[number];
	CLEANUP_TEXT struct text t = {0};

	if (s->reach.empty || !s->reach.named || d->state != DEVICE_HELD ||
	    reach_is_by_name(&s->reach, s->about, number, d->iface.name))
		return;
	text_addf(&t,
		  "'%s' had another name when the policy was applied, which still treats it as ",
		  d->iface.name);
	if (class && class <= s->about->n_ifaces)
		text_addf(&t, "'%s' ", s->about->ifaces[class - 1]);
	else
		text_add(&t, "an unnamed interface ");
	if (is_missed(s, class))
		alarm_add(s, IFACE, d->iface.name,
			  "%s(change the name to '%s' in %s and run weir apply, or restore the old "
			  "name)",
			  text_get(&t), d->iface.name, s->about->path);
	else
		alarm_add(s, IFACE, d->iface.name,
			  "%s(" MEND("weir apply %s") " or weir attach %s uses the new name)",
			  text_get(&t), s->about->path, d->iface.name);
}

// A device that moves to a network namespace where its index is in use gets another index. The
// datapath does not know that index, so rules that name the interface do not match there.
static void alarm_index(struct status *s, uint32_t number, const struct device *d)
{
	const struct knobs *knobs = s->instance->knobs;
	uint32_t known = iface_table_find(knobs, d->iface.ifindex);

	if ((d->state != DEVICE_HELD && d->state != DEVICE_MOVED) || known == number ||
	    (!known && knobs->iface_rest == number))
		return;
	if (known)
		alarm_add(s, IFACE, d->iface.name,
			  "'%s' has the index that '%s' has in another network namespace: its "
			  "packets are treated and counted as those of '%s' (" MEND(
				  "weir detach %s") ")",
			  d->iface.name, s->devices.at[known].iface.name,
			  s->devices.at[known].iface.name, d->iface.name);
	else
		alarm_add(
			s, IFACE, d->iface.name,
			"'%s' got another index when it was moved: rules that name it do not match there "
			"until the next command that changes something (for example weir apply)",
			d->iface.name);
}

static void alarm_iface(struct status *s, uint32_t number)
{
	const struct device *d = &s->devices.at[number];
	uint64_t bypassed_ms = bypass_ms(s, number);
	num_text left;

	alarm_device(s, d);
	alarm_unseen(s, number, d);
	alarm_class(s, number, d);
	alarm_index(s, number, d);
	if (s->reach.over & iface_bit(number))
		alarm_add(s, IFACE, d->iface.name,
			  "'%s' was attached by a trial that has expired: every packet passes "
			  "(" MEND("weir attach %s") ")",
			  d->iface.name, d->iface.name);
	if (bypassed_ms)
		alarm_add(s, IFACE, d->iface.name,
			  "'%s' is BYPASSED for %s more: every packet passes", d->iface.name,
			  num_format_duration_ms((bypassed_ms + 999) / 1000 * 1000, left));
}

static void fill_sets(struct status *s)
{
	for (uint32_t n = 0; n < s->about->n_sets; n++)
		sets_fill(s->instance, &s->about->sets[n], s->clock.jiffies, &s->set_used[n], NULL);
}

static void alarm_set(struct status *s, const struct generation_about_set *set, size_t used)
{
	if (used >= set->max)
		alarm_add(s, "set", set->name,
			  "set @%s is full: new addresses evict old ones (write a 'max' greater "
			  "than %u)",
			  set->name, set->max);
}

// The active policy works without its record, but the next detach or boot ends it.
static void alarm_record(struct status *s)
{
	const char *instance = s->ctx->instance, *id = s->about->revision;
	int (*check)(const char *instance, const char *id, struct err *err) =
		s->ctx->at_once ? revisions_check_changed : revisions_check;
	struct err why = {0};

	if (!id[0])
		return;
	if (!revisions_has(instance, id))
		alarm_add(
			s, POLICY, NULL,
			"the record of revision %s is missing: the next attach cannot restore the "
			"policy (" MEND("weir apply %s") ")",
			id, s->about->path);
	else if (check(instance, id, &why))
		alarm_add(s, POLICY, NULL,
			  "the record of revision %s cannot be read: %s: the next attach cannot "
			  "restore the policy (" MEND("weir apply %s") ")",
			  id, why.text, s->about->path);
}

static void alarm_agent(struct status *s)
{
	CLEANUP_AGENT_PROBLEMS struct agent_problems problems = {0};

	agent_problems_find(s->ctx->instance, &s->agent, &s->names, &s->pool, &problems);
	vec_each (&problems, one)
		alarm_add_same(s, one->list ? "list" : "agent", one->list, one->same,
			       one->mend[0] ? "%s (" MEND("%s") ")" : "%s", one->text, one->mend);
}

static void alarm_state(struct status *s)
{
	char text[256];

	if (!state_folder_works(s->ctx->instance, text, sizeof(text)))
		alarm_add(s, "state folder", NULL, "%s (--volatile changes only the kernel)", text);
}

static void alarm_outgoing(struct status *s)
{
	struct outgoing_links links;

	if (!outgoing_wanted(s->instance))
		return;
	links = outgoing_links(s->instance);
	if (links.attached < OUTGOING_HOOKS)
		alarm_add(s, "outgoing", NULL,
			  "outgoing connections are not blocked: %zu of %d programs are attached "
			  "to cgroup 2 (repeat a weir block --out)",
			  links.attached, OUTGOING_HOOKS);
	else if (links.narrow)
		alarm_add(s, "outgoing", NULL,
			  "outgoing connections are blocked only for processes of a container "
			  "(repeat a weir block --out)");
}

static void show_alarms(struct status *s)
{
	struct counter empty = counters_reason(s->after, REASON_PASS_NO_POLICY);
	struct counter internal = counters_reason(s->after, REASON_DROP_INTERNAL);
	struct counter lost = counters_reason(s->after, REASON_DROP_PROGRAM);
	num_text n;

	if (!instance_has_ifaces(s->instance))
		alarm_add(s, "instance", NULL, "no interface is attached (weir attach IFACE)");
	alarm_record(s);
	rules_alarms(s->ctx->instance, s->about, s->trial, alarm_add, s);
	alarm_state(s);
	alarm_outgoing(s);
	status_names_alarms(s->ctx, s->about->revision, alarm_add, s);
	status_macs_alarms(s->instance, &s->devices, s->about, &s->reach, alarm_add, s);
	for (uint32_t number = 1; number < WEIR_IFACES; number++)
		if (s->devices.at[number].state != DEVICE_FREE)
			alarm_iface(s, number);
	for (uint32_t set = 0; set < s->about->n_sets; set++)
		alarm_set(s, &s->about->sets[set], s->set_used[set]);
	status_connections_alarms(&s->connections, alarm_add, s);
	status_services_alarms(s->ctx, &s->pool, s->nat, alarm_add, s);
	alarm_agent(s);
	if (empty.packets)
		alarm_add(s, POLICY, NULL, "%s %s passed because no program was active",
			  num_format_grouped(empty.packets, n),
			  num_plural(empty.packets, "packet", "packets"));
	if (internal.packets)
		alarm_add(s, POLICY, NULL,
			  "%s %s dropped by a look-up that cannot fail (please report this)",
			  num_format_grouped(internal.packets, n),
			  num_plural(internal.packets, "packet was", "packets were"));
	if (lost.packets)
		alarm_add(s, POLICY, NULL,
			  "%s %s dropped because a program of the policy was missing (please "
			  "report this)",
			  num_format_grouped(lost.packets, n),
			  num_plural(lost.packets, "packet was", "packets were"));
	alerts_date(&s->alerts, s->ctx->instance, s->clock.wall_ms / 1000);
	alerts_show(&s->alerts, s->ctx->instance, s->ctx->out);
}

// Adds "of eth1 " for a trial that attached interfaces and did not change the policy.
static void add_tried(const struct status *s, const struct commit_state *state, struct text *t)
{
	CLEANUP_VEC struct ifnames names = {0};

	detach_list_brought(s->instance, &names);
	out_array(s->ctx->out, "trial_brought");
	vec_each (&names, name)
		out_item_string(s->ctx->out, *name);
	out_end(s->ctx->out);
	if (commit_tries_interfaces(state)) {
		text_add(t, "of ");
		ifnames_text(&names, t);
		text_add(t, names.n ? " " : "no attached interface ");
	}
}

static void show_trial(struct status *s, const struct commit_state *state)
{
	bool interfaces = commit_tries_interfaces(state);
	struct out *o = s->ctx->out;
	CLEANUP_TEXT struct text tried = {0};
	num_text left;

	out_set_u64(o, "trial_ms_left",
		    state->deadline && !state->expired ? clock_ms_until(&s->clock, state->deadline)
						       : 0);
	add_tried(s, state, &tried);
	if (state->expired)
		out_line(o, "trial     %shas expired%s", text_get(&tried),
			 interfaces ? "" : ": the previous policy is active");
	else if (state->deadline)
		out_line(o, "trial     %sends in %s: 'weir confirm' keeps %s", text_get(&tried),
			 num_format_duration_ms(clock_ms_until(&s->clock, state->deadline), left),
			 interfaces ? "it attached" : "the policy");
}

static void add_where(const struct status *s, const char *before, enum reach_what what,
		      struct text *t)
{
	bool first = true;

	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		if (s->devices.at[n].state == DEVICE_FREE ||
		    s->devices.at[n].state == DEVICE_GONE || what_applies(s, n) != what)
			continue;
		text_addf(t, "%s %s", first ? before : "", s->devices.at[n].iface.name);
		first = false;
	}
}

// "policy    applies to eth0; only entries apply to eth1; nothing applies to eth2".
static void show_reach(struct status *s)
{
	CLEANUP_TEXT struct text here = {0}, elsewhere = {0};

	if (s->reach.empty)
		return;
	add_where(s, "", REACH_POLICY, &here);
	add_where(s, "; only entries apply to", REACH_ENTRIES, &elsewhere);
	add_where(s, "; nothing applies to", REACH_NOTHING, &elsewhere);
	out_line(s->ctx->out, "policy    applies to%s%s",
		 !s->reach.named && !elsewhere.len ? " all interfaces"
		 : here.len                        ? text_get(&here)
						   : " no attached interface",
		 text_get(&elsewhere));
}

// Prints "revision 7f3a, edge.weir, applied 12:03 by root", and a trial.
static int show_policy(struct status *s, struct err *err)
{
	struct generation_about *about = s->about;
	struct out *o = s->ctx->out;
	struct commit_state state;
	CLEANUP_TEXT struct text line = {0};
	int code = commit_read(s->instance, &state, err);

	if (code)
		return code;
	generation_read_about(s->instance, state.in_force, about, NULL);
	text_addf(&line, "%s%-9s%s ", out_bold(o), s->ctx->instance, out_plain(o));
	out_set_string(o, "revision", about->revision[0] ? about->revision : NULL);
	if (about->revision[0]) {
		out_set_string(o, "path", about->path);
		out_set_string(o, "by", about->by);
		out_set_time(o, "at", about->at_s);
		text_addf(&line, "revision %s, %s, applied ", about->revision, about->path);
		show_time(&line, about->at_s, s->clock.wall_ms / 1000);
		text_addf(&line, " by %s", about->by);
	} else {
		text_add(&line, "no policy: every packet passes unless an entry blocks it");
	}
	out_line(o, "%s", text_get(&line));
	out_set_bool(o, "short_refused", about->short_refused);
	if (about->short_refused)
		out_line(
			o,
			"          the kernel refuses the short program of this policy: every packet takes the general one");
	rules_quick_show(o, s->ctx->instance, about);
	s->trial = state.deadline;
	show_trial(s, &state);
	if (reach_in_force(s->instance, &s->reach, NULL))
		s->reach.empty = true; // show_alarms has an alarm for this
	show_reach(s);
	return 0;
}

static void status_close(struct status *s)
{
	pool_close(&s->pool);
	nat_reading_free(s->nat);
	presence_free(&s->agent);
	devices_free(&s->devices);
	alerts_free(&s->alerts);
}

static int show_instance(struct context *ctx, const struct args *args, size_t *ret_alarms,
			 struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_FREE struct counters *before = mem_new(struct counters);
	CLEANUP_FREE struct counters *after = mem_new(struct counters);
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FREE struct nat_reading *nat = mem_new(struct nat_reading);
	struct status s = {.ctx = ctx,
			   .before = before,
			   .after = after,
			   .about = about,
			   .nat = nat,
			   .pool = {.lock = -1}};
	int code = instance_open(ctx->instance, &i, err);

	if (code)
		return code;
	s.instance = i;
	if ((code = instance_clock(i, &s.clock, err)))
		return code;
	if ((code = read_devices(&s, err)))
		return code;
	if ((code = ctx->at_once ? sample_once(&s, err) : sample(&s, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	if ((code = show_policy(&s, err)))
		return code;
	if ((code = status_services_open(ctx, i, &s.pool, nat, err)))
		return code;
	presence_read(ctx->instance, &s.agent);
	status_agent_show(ctx, &s.agent, s.clock.wall_ms / 1000);
	status_names_read(ctx->instance, &s.agent, &s.names);
	status_names_show(ctx, &s.names, s.clock.wall_ms / 1000);
	status_feeds_show(ctx, &s.agent, s.clock.wall_ms / 1000);
	changing_show_lost(ctx);
	show_ifaces(&s);
	status_services_show(ctx, &s.pool, nat);
	fill_sets(&s);
	s.connections = status_connections_read(i);
	if (args_has(args, "limits"))
		status_limits_show(s.ctx, s.instance, s.about, s.set_used, &s.connections, nat);
	show_alarms(&s);
	*ret_alarms = s.alerts.n;
	status_close(&s);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	int code = args_expect_words(args, 0, 0, "", err);
	size_t alarms = 0;

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if (args_has(args, "all"))
		code = status_all(ctx, args, show_instance, &alarms, err);
	else
		code = show_instance(ctx, args, &alarms, err);
	if (code || !alarms)
		return code;
	code = err_refused(err, "%zu %s", alarms, num_plural(alarms, "alarm", "alarms"));
	err->kind = ERR_SYSTEM;
	return code;
}

static const struct args_option options[] = {
	{.name = "all", .help = "show all instances, also those of other network namespaces"},
	{.name = "limits", .help = "show how full the tables are"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_status = {
	.name = "status",
	.usage = "[OPTIONS]",
	.summary = "show policy, interfaces and alarms (exit status 2: alarms)",
	.options = options,
	.run = run,
};
