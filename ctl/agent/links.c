// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that follows the network: next hops of backends, MAC addresses, devices
// that come back. When it is looked at, and what follows, its plan decides (links_plan.h).
//
// A look asks the kernel as commands do, without the lock, and takes the lock only to write what
// differs. Lost messages lead to a look too.
#include <errno.h>
#include <event2/event.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/health.h"
#include "ctl/agent/links_plan.h"
#include "ctl/agent/record.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/bringup.h"
#include "ctl/control/devices.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/macs.h"
#include "ctl/control/pool.h"
#include "ctl/control/reattach.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/loop.h"
#include "ctl/net/monitor.h"

#define COMMAND_MS 100

struct links_part {
	struct agent *agent;
	struct monitor *monitor;
	struct event *readable;
	struct agent_task look, command;
	struct links_plan plan;
	size_t changed, overruns;
};

static void follow_plan(struct links_part *l)
{
	const struct plan_now now = plan_now();
	uint64_t due = l->plan.due_ms;

	plan_log(&l->plan.messages);
	if (due)
		agent_task_in(&l->look, due > now.ms ? due - now.ms : 0);
}

static void need_look(struct links_part *l)
{
	const struct plan_now now = plan_now();

	links_plan_need(&l->plan, &now);
	follow_plan(l);
}

// ---- events -------------------------------------------------------------------------------------

static void on_event(const struct monitor_event *e, void *links)
{
	const struct plan_now now = plan_now();
	struct links_part *l = links;
	struct links_news news = links_plan_event(&l->plan, e, &now);

	if (news.link)
		agent_health_link(l->agent, e->link.index, news.dead);
	if (news.suspect)
		agent_health_suspect(l->agent, &e->neigh.addr);
	if (news.addresses)
		agent_health_addresses(l->agent);
	follow_plan(l);
}

static void read_events(struct links_part *l)
{
	int code = monitor_read(l->monitor, on_event, l);

	if (!code)
		return;
	l->overruns++;
	agent_health_addresses(l->agent);
	log_info("changes of the network were lost (%s): everything is looked at", err_why(code));
	need_look(l);
}

static void on_readable(evutil_socket_t fd, short what, void *links)
{
	read_events(links);
}

// ---- a look -------------------------------------------------------------------------------------

static bool is_new(void *links, uint32_t ifindex)
{
	const struct links_part *l = links;

	return links_plan_is_new(&l->plan, ifindex);
}

// The findings of a look.
struct links_found {
	struct reattach_list devices;
	bool stale; // MAC addresses, members of bonds, devices of routes, MTUs
	size_t hops;
};

static void found_free(struct links_found *f)
{
	vec_free(&f->devices);
}

// Asks for the paths of all backends; with wait 0, so answers of neighbours come as events.
static int look_at_paths(struct links_part *l, struct links_found *ret, struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	CLEANUP_LB_PATHS struct lb_paths paths = {0};
	struct err why = {0};
	int code = pool_open_few(l->agent->instance, NULL, &pool, &why);

	if (code && why.kind != ERR_INPUT) {
		*err = why;
		return code;
	}
	code = code ? 0
		    : lb_running_refresh(pool.live, 0, false, &paths, err); // no services: nothing
	if (code)
		return code;
	links_plan_hops(&l->plan, paths.hops.at, paths.hops.n);
	links_plan_lost(&l->plan, paths.lost.at, paths.lost.n);
	ret->hops = paths.changed;
	return 0;
}

static int look_at_devices(struct links_part *l, const struct instance *i, struct links_found *ret,
			   struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = devices_read(i, &devices, err);

	if (code)
		return code;
	if (devices.unlisted.kind) {
		*err = devices.unlisted;
		return -err->code;
	}
	links_plan_devices(&l->plan, devices.links, devices.n_links);
	ret->stale = macs_stale(i, &devices) || macs_stale_routes(i, &devices) ||
		     devices_stale(i, &devices);
	return reattach_find(i, devices.links, devices.n_links, is_new, l, &ret->devices, err);
}

static int look_at_instance(struct links_part *l, struct links_found *ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_FD int lock = -1;
	struct commit_state state;
	int code = lock_share(l->agent->instance, &lock, err);

	if (code)
		return code;
	if ((code = instance_open(l->agent->instance, &i, err)))
		return code;
	if ((code = commit_read(i, &state, err)))
		return code;
	links_plan_instance(&l->plan, state.in_force, i->progs_id);
	return look_at_devices(l, i, ret, err);
}

// ---- changes ------------------------------------------------------------------------------------

static void record_attached(struct agent *a, const struct reattach_device *d)
{
	CLEANUP_FREE char *what = mem_printf("attach %s", d->name);

	record_change(a, &(struct record_change){.part = "links",
						 .verb = "attach",
						 .what = what,
						 .why = d->returned ? "the device has returned"
								    : "the policy names it"});
}

// All are tried; the first failure is reported.
static int attach_devices(struct links_part *l, const struct reattach_list *list, struct err *err)
{
	int first = 0;

	vec_each (list, d) {
		struct attach_result result = {0};
		struct err why = {0};
		int code = reattach(l->agent->instance, l->agent->command, d, &result, &why);

		if (code && code != -ENODEV && !first) { // else it does not exist any more
			first = code;
			*err = why;
		}
		if (code)
			continue;
		log_notice("attached to %s%s, %s mode%s%s", d->name,
			   d->returned ? " again" : ", which the policy names",
			   hook_mode_name(result.mode), result.notice[0] ? ": " : "",
			   result.notice);
		record_attached(l->agent, d);
		l->changed++;
		links_plan_attached(&l->plan, d->name);
	}
	return first;
}

// Opening for a change refreshes devices, MAC addresses and members too.
static int write_paths(struct links_part *l, struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	CLEANUP_LB_PATHS struct lb_paths paths = {0};
	int code = pool_open_paths(l->agent->instance, l->agent->command, &pool, err);

	if (code)
		return code;
	if ((code = lb_running_refresh(pool.live, 0, true, &paths, err)))
		return code;
	if (paths.changed)
		links_plan_moved(&l->plan, paths.moved.at, paths.moved.n, paths.changed);
	l->changed += paths.changed;
	return 0;
}

static int write_macs(struct links_part *l, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code = bringup_open_running(l->agent->instance, l->agent->command, &b, err);

	if (code)
		return code;
	l->changed++;
	return 0;
}

static int change(struct links_part *l, const struct links_found *found, struct err *err)
{
	const struct plan_now now = plan_now();
	struct err why = {0};
	int attached = attach_devices(l, &found->devices, err);
	enum links_write next = links_plan_write(&l->plan, found->devices.n, !attached, found->hops,
						 found->stale, &now);
	int code = 0;

	if (next == LINKS_PATHS)
		code = write_paths(l, &why);
	else if (next == LINKS_MACS)
		code = write_macs(l, &why);
	if (attached || !code)
		return attached;
	*err = why;
	return code;
}

static int do_look(void *links, struct err *err)
{
	struct links_part *l = links;
	CLEANUP(found_free) struct links_found found = {0};
	uint64_t began = agent_now_ms();
	size_t changed = l->changed;
	struct plan_now now;
	int code;

	if (!l->plan.looked) // a device that was added since the start is new, also if it is listed
		read_events(l);
	links_plan_begin(&l->plan);
	if (!bpffs_exist(l->agent->instance))
		return 0;
	if ((code = look_at_instance(l, &found, err)))
		return code;
	if ((code = look_at_paths(l, &found, err)))
		return code;
	code = change(l, &found, err);
	now = plan_now();
	links_plan_end(&l->plan, began, &now);
	follow_plan(l);
	if (l->changed != changed)
		agent_changed(l->agent);
	return code;
}

// A command has changed something.
static int do_command(void *links, struct err *err)
{
	const struct plan_now now = plan_now();
	struct links_part *l = links;
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_FD int lock = -1;
	struct commit_state state;
	int code;

	if (!bpffs_exist(l->agent->instance))
		return 0;
	if ((code = lock_share(l->agent->instance, &lock, err)))
		return code;
	if ((code = instance_open(l->agent->instance, &i, err)))
		return code;
	if ((code = commit_read(i, &state, err)))
		return code;
	links_plan_command(&l->plan, state.in_force, i->progs_id, &now);
	follow_plan(l);
	return 0;
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct links_part *l = mem_new(struct links_part);
	int code;

	l->agent = a;
	a->links = l;
	if ((code = monitor_open(&l->monitor, err)))
		return code;
	l->readable =
		loop_event(a->loop, monitor_fd(l->monitor), EV_READ | EV_PERSIST, on_readable, l);
	if (!l->readable || event_add(l->readable, NULL))
		return err_system(err, ENOMEM, "cannot register an event");
	agent_task_init(&l->look, a, "links and next hops", do_look, l);
	agent_task_init(&l->command, a, "links after a command", do_command, l);
	agent_after_command(a, &l->command, COMMAND_MS);
	agent_task_in(&l->look, 0);
	return 0;
}

static void stop(struct agent *a)
{
	struct links_part *l = a->links;

	if (!l)
		return;
	loop_event_free(l->readable);
	monitor_close(l->monitor);
	agent_task_free(&l->look);
	agent_task_free(&l->command);
	links_plan_free(&l->plan);
	free(l);
	a->links = NULL;
}

static int reload(struct agent *a, struct err *err)
{
	need_look(a->links);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct links_part *l = a->links;

	json_set(fields, "changes", json_u64(l->changed));
	json_set(fields, "overruns", json_u64(l->overruns));
	agent_task_report(&l->look, problems);
	agent_task_report(&l->command, problems);
}

const struct agent_part agent_links = {
	.name = "links",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
