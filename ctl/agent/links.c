// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that follows the network: next hops of backends, MAC addresses, devices
// that come back.
//
// An event of the kernel that may matter causes a scan a little later, so that a burst is one scan.
// The look asks the kernel as commands do, without the lock, and takes the lock only to write what
// differs. Lost messages cause a scan too.
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/health.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
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

#define JOIN_MS 50 // changes within this time are one look
#define SHARE   10 // looks take at most a tenth of the time
// packets that XDP sends keep no neighbour alive: it is asked so often whether it is there
#define ASK_MS     15000
#define NAMED      8 // backends in one message
#define COMMAND_MS 100

// A device, as far as it matters; new: since the agent has started, and not attached since.
struct links_device {
	struct link link;
	bool is_new;
};

// A backend or its gateway, and what the last message about it was.
struct links_hop {
	struct addr addr;
	uint32_t ifindex;
	uint8_t mac[6];
	bool known, told;
};

struct links_part {
	struct agent *agent;
	struct monitor *monitor;
	struct event *readable;
	struct agent_task look, command;
	VEC(struct links_device) devices;
	VEC(struct links_hop) hops; // sorted by address
	struct troubles lost;       // sentences of the last look
	uint64_t took_ms;           // by the last look
	uint32_t generation;        // at the last look
	uint32_t instance;          // the id of its programs' map then
	bool looked;
	size_t changed, overruns;
};

// ---- events -------------------------------------------------------------------------------------

static void need_look(struct links_part *l)
{
	uint64_t pause = l->took_ms * SHARE;

	agent_task_in(&l->look, pause > JOIN_MS ? pause : JOIN_MS);
}

static struct links_device *find_device(const struct links_part *l, uint32_t ifindex)
{
	vec_each (&l->devices, d)
		if (d->link.index == ifindex)
			return d;
	return NULL;
}

// Counters of the device and its program are not among it.
static bool differ(const struct link *a, const struct link *b)
{
	return strcmp(a->name, b->name) != 0 || a->mtu != b->mtu || a->master != b->master ||
	       a->lower != b->lower || a->vlan != b->vlan || a->up != b->up ||
	       a->running != b->running || memcmp(a->mac, b->mac, sizeof(a->mac)) != 0;
}

static bool note_link(struct links_part *l, const struct link *link)
{
	struct links_device *d = find_device(l, link->index);
	bool changed = !d || differ(&d->link, link);

	if (d)
		d->link = *link;
	else
		vec_push(&l->devices, ((struct links_device){*link, true}));
	if (changed)
		agent_health_link(l->agent, link->index, !link->up || !link->running);
	return changed;
}

static bool note_link_gone(struct links_part *l, uint32_t ifindex)
{
	struct links_device *d = find_device(l, ifindex);

	if (d)
		*d = l->devices.at[--l->devices.n];
	agent_health_link(l->agent, ifindex, true);
	return d;
}

static int compare_hops(const void *a, const void *b)
{
	return addr_compare(&((const struct links_hop *)a)->addr,
			    &((const struct links_hop *)b)->addr);
}

static struct links_hop *find_hop(const struct links_part *l, const struct addr *addr)
{
	const struct links_hop key = {.addr = *addr};

	return l->hops.n ? bsearch(&key, l->hops.at, l->hops.n, sizeof(key), compare_hops) : NULL;
}

// The kernel reports each transition between reachable and stale.
static bool note_neighbour(struct links_part *l, const struct neigh *n)
{
	struct links_hop *h = find_hop(l, &n->addr);
	struct links_hop now = {.addr = n->addr, .ifindex = n->ifindex, .told = true};
	bool same;

	if (!h || n->state == NEIGH_ASKED)
		return false;
	if (n->state != NEIGH_KNOWN)
		agent_health_suspect(l->agent, &n->addr);
	now.known = n->state == NEIGH_KNOWN;
	if (now.known)
		memcpy(now.mac, n->mac, sizeof(now.mac));
	same = h->told && h->known == now.known && h->ifindex == now.ifindex &&
	       !memcmp(h->mac, now.mac, sizeof(h->mac));
	*h = now;
	return !same;
}

// Is one of the hops in it? They are sorted, and the first that is not before the prefix is the
// only one to ask.
static bool concerns_hops(const struct links_part *l, const struct prefix *p)
{
	size_t from = 0, to = l->hops.n;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (addr_compare(&l->hops.at[middle].addr, &p->addr) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	if (from < l->hops.n) {
		struct prefix host = prefix_of(&l->hops.at[from].addr,
					       (uint8_t)addr_bits(&l->hops.at[from].addr));

		return host.addr.family == p->addr.family && prefix_contains(p, &host);
	}
	return false;
}

static bool note(struct links_part *l, const struct monitor_event *e)
{
	switch (e->kind) {
	case MONITOR_LINK:
		return note_link(l, &e->link);
	case MONITOR_LINK_GONE:
		return note_link_gone(l, e->link.index);
	case MONITOR_NEIGH:
		return note_neighbour(l, &e->neigh);
	case MONITOR_ROUTE:
		agent_health_addresses(l->agent);
		return concerns_hops(l, &e->prefix);
	case MONITOR_ADDRESS:
		agent_health_addresses(l->agent);
		return true;
	}
	return true;
}

static void on_event(const struct monitor_event *e, void *links)
{
	if (note(links, e))
		need_look(links);
}

static void on_readable(evutil_socket_t fd, short what, void *links)
{
	struct links_part *l = links;
	int code = monitor_read(l->monitor, on_event, l);

	if (!code)
		return;
	l->overruns++;
	agent_health_addresses(l->agent);
	log_info("changes of the network were lost (%s): everything is looked at", err_why(code));
	need_look(l);
}

// ---- a scan -------------------------------------------------------------------------------------

// Devices whose messages were lost become known, and others are forgotten.
static void compare_devices(struct links_part *l, const struct link *links, size_t n)
{
	VEC(struct links_device) now = {0};

	for (size_t i = 0; i < n; i++) {
		const struct links_device *d = find_device(l, links[i].index);

		vec_push(&now, ((struct links_device){links[i], d ? d->is_new : l->looked}));
	}
	vec_free(&l->devices);
	l->devices.at = now.at;
	l->devices.n = now.n;
	l->devices.cap = now.cap;
}

static bool is_new(void *links, uint32_t ifindex)
{
	const struct links_device *d = find_device(links, ifindex);

	return d && d->is_new;
}

static void take_hops(struct links_part *l, const struct lb_paths *paths)
{
	VEC(struct links_hop) now = {0};
	size_t kept = 0;

	vec_each (&paths->hops, addr) {
		const struct links_hop *old = find_hop(l, addr);

		vec_push(&now, old ? *old : (struct links_hop){.addr = *addr});
	}
	if (now.n)
		qsort(now.at, now.n, sizeof(*now.at), compare_hops);
	for (size_t i = 0; i < now.n; i++)
		if (!kept || compare_hops(&now.at[kept - 1], &now.at[i]) != 0)
			now.at[kept++] = now.at[i];
	vec_free(&l->hops);
	l->hops.at = now.at;
	l->hops.n = kept;
	l->hops.cap = now.cap;
}

static void tell_found(void *links, const char *text, const char *same)
{
	log_notice("no longer: %s", text);
}

// Neighbours that have become unreachable since the last scan, or reachable again.
static void tell_lost(struct links_part *l, const struct lb_paths *paths)
{
	troubles_begin(&l->lost);
	vec_each (&paths->lost, text)
		if (troubles_note(&l->lost, *text, *text))
			log_warning("%s", *text);
	troubles_end(&l->lost, tell_found, NULL);
}

// The result of a scan.
struct links_found {
	struct reattach_list devices;
	bool stale; // MAC addresses, members of bonds
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
	take_hops(l, &paths);
	tell_lost(l, &paths);
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
	compare_devices(l, devices.links, devices.n_links);
	ret->stale = macs_stale(i, &devices);
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
	l->generation = state.in_force;
	l->instance = i->progs_id;
	return look_at_devices(l, i, ret, err);
}

// ---- changes ------------------------------------------------------------------------------------

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
			   result.mode == IFACE_NATIVE ? "native" : "generic",
			   result.notice[0] ? ": " : "", result.notice);
		l->changed++;
		vec_each (&l->devices, known)
			if (!strcmp(known->link.name, d->name))
				known->is_new = false;
	}
	return first;
}

static void tell_moved(const struct lb_paths *paths)
{
	CLEANUP_TEXT struct text names = {0};
	addr_text name;

	for (size_t n = 0; n < paths->moved.n && n < NAMED; n++)
		text_addf(&names, " %s", addr_format(&paths->moved.at[n], name));
	log_notice("%zu next %s changed:%s%s", paths->changed,
		   num_plural(paths->changed, "hop has", "hops have"), text_get(&names),
		   paths->moved.n > NAMED ? " and others" : "");
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
		tell_moved(&paths);
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
	struct err why = {0};
	int attached = attach_devices(l, &found->devices, err);
	int code = 0;

	if (found->devices.n && !attached) // the paths may use them
		need_look(l);
	if (found->hops)
		code = write_paths(l, &why);
	else if (found->stale && (attached || !found->devices.n))
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
	int code;

	if (!bpffs_exist(l->agent->instance))
		return 0;
	if ((code = look_at_instance(l, &found, err)))
		return code;
	if ((code = look_at_paths(l, &found, err)))
		return code;
	l->looked = true;
	code = change(l, &found, err);
	l->took_ms = agent_now_ms() - began;
	if (l->hops.n)
		agent_task_in(&l->look, ASK_MS);
	if (l->changed != changed)
		agent_changed(l->agent);
	return code;
}

// A command has changed something. Only another policy or another instance matters here.
static int do_command(void *links, struct err *err)
{
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
	if (state.in_force != l->generation || i->progs_id != l->instance)
		need_look(l);
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
	vec_free(&l->devices);
	vec_free(&l->hops);
	troubles_free(&l->lost);
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
