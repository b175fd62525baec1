// SPDX-License-Identifier: GPL-2.0-only
// The devices, next hops and times of looks.
#include "ctl/agent/links_plan.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"

#define JOIN_MS 50    // changes within this time are one look
#define SHARE   10    // looks take at most a tenth of the time
#define ASK_MS  15000 // so often it is asked whether neighbours are there
#define NAMED   8     // backends in one message

void links_plan_free(struct links_plan *p)
{
	vec_free(&p->devices);
	vec_free(&p->hops);
	troubles_free(&p->lost);
	plan_messages_free(&p->messages);
}

// ---- when ---------------------------------------------------------------------------------------

static void look_within(struct links_plan *p, uint64_t ms, const struct plan_now *now)
{
	if (!p->due_ms || now->ms + ms < p->due_ms)
		p->due_ms = now->ms + ms;
}

void links_plan_need(struct links_plan *p, const struct plan_now *now)
{
	uint64_t pause = p->took_ms * SHARE;

	look_within(p, pause > JOIN_MS ? pause : JOIN_MS, now);
}

// Only another policy or another instance matters here.
void links_plan_command(struct links_plan *p, uint32_t generation, uint32_t instance,
			const struct plan_now *now)
{
	if (generation != p->generation || instance != p->instance)
		links_plan_need(p, now);
}

void links_plan_begin(struct links_plan *p)
{
	p->due_ms = 0;
}

void links_plan_instance(struct links_plan *p, uint32_t generation, uint32_t instance)
{
	p->generation = generation;
	p->instance = instance;
}

void links_plan_end(struct links_plan *p, uint64_t began_ms, const struct plan_now *now)
{
	p->took_ms = now->ms - began_ms;
	p->looked = true;
	if (p->hops.n)
		look_within(p, ASK_MS, now);
}

// ---- events -------------------------------------------------------------------------------------

static struct links_device *find_device(const struct links_plan *p, uint32_t ifindex)
{
	vec_each (&p->devices, d)
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

static bool note_link(struct links_plan *p, const struct link *link)
{
	struct links_device *d = find_device(p, link->index);
	bool changed = !d || differ(&d->link, link);

	if (d)
		d->link = *link;
	else
		vec_push(&p->devices, ((struct links_device){*link, true}));
	return changed;
}

static bool note_link_gone(struct links_plan *p, uint32_t ifindex)
{
	struct links_device *d = find_device(p, ifindex);

	if (d)
		*d = p->devices.at[--p->devices.n];
	return d;
}

static int compare_hops(const void *a, const void *b)
{
	return addr_compare(&((const struct links_hop *)a)->addr,
			    &((const struct links_hop *)b)->addr);
}

static struct links_hop *find_hop(const struct links_plan *p, const struct addr *addr)
{
	const struct links_hop key = {.addr = *addr};

	return p->hops.n ? bsearch(&key, p->hops.at, p->hops.n, sizeof(key), compare_hops) : NULL;
}

// The kernel reports each transition between reachable and stale.
static bool note_neighbour(struct links_plan *p, const struct neigh *n)
{
	struct links_hop *h = find_hop(p, &n->addr);
	struct links_hop now = {.addr = n->addr, .ifindex = n->ifindex, .told = true};
	bool same;

	if (!h || n->state == NEIGH_ASKED)
		return false;
	now.known = n->state == NEIGH_KNOWN;
	if (now.known)
		memcpy(now.mac, n->mac, sizeof(now.mac));
	same = h->told && h->known == now.known && h->ifindex == now.ifindex &&
	       !memcmp(h->mac, now.mac, sizeof(h->mac));
	*h = now;
	return !same;
}

static bool is_suspect(const struct links_plan *p, const struct neigh *n)
{
	return find_hop(p, &n->addr) && n->state != NEIGH_ASKED && n->state != NEIGH_KNOWN;
}

// Is one of the hops in it? They are sorted, and the first that is not before the prefix is the
// only one to ask.
static bool concerns_hops(const struct links_plan *p, const struct prefix *to)
{
	size_t from = 0, end = p->hops.n;

	while (from < end) {
		size_t middle = (from + end) / 2;

		if (addr_compare(&p->hops.at[middle].addr, &to->addr) < 0)
			from = middle + 1;
		else
			end = middle;
	}
	if (from < p->hops.n) {
		struct prefix host = prefix_of(&p->hops.at[from].addr,
					       (uint8_t)addr_bits(&p->hops.at[from].addr));

		return host.addr.family == to->addr.family && prefix_contains(to, &host);
	}
	return false;
}

// True: the next look may find something else.
static bool note(struct links_plan *p, const struct monitor_event *e, struct links_news *news)
{
	switch (e->kind) {
	case MONITOR_LINK:
		news->dead = !e->link.up || !e->link.running;
		return news->link = note_link(p, &e->link);
	case MONITOR_LINK_GONE:
		news->link = news->dead = true;
		return note_link_gone(p, e->link.index);
	case MONITOR_NEIGH:
		news->suspect = is_suspect(p, &e->neigh);
		return note_neighbour(p, &e->neigh);
	case MONITOR_ROUTE:
		news->addresses = true;
		return concerns_hops(p, &e->prefix);
	case MONITOR_ADDRESS:
		news->addresses = true;
		return true;
	}
	return true;
}

struct links_news links_plan_event(struct links_plan *p, const struct monitor_event *e,
				   const struct plan_now *now)
{
	struct links_news news = {0};

	if (note(p, e, &news))
		links_plan_need(p, now);
	return news;
}

// ---- a look -------------------------------------------------------------------------------------

void links_plan_devices(struct links_plan *p, const struct link *links, size_t n)
{
	VEC(struct links_device) now = {0};

	for (size_t i = 0; i < n; i++) {
		const struct links_device *d = find_device(p, links[i].index);

		vec_push(&now, ((struct links_device){links[i], d ? d->is_new : p->looked}));
	}
	vec_free(&p->devices);
	p->devices.at = now.at;
	p->devices.n = now.n;
	p->devices.cap = now.cap;
}

bool links_plan_is_new(const struct links_plan *p, uint32_t ifindex)
{
	const struct links_device *d = find_device(p, ifindex);

	return d && d->is_new;
}

void links_plan_attached(struct links_plan *p, const char *name)
{
	vec_each (&p->devices, d)
		if (!strcmp(d->link.name, name))
			d->is_new = false;
}

void links_plan_hops(struct links_plan *p, const struct addr *addrs, size_t n)
{
	VEC(struct links_hop) now = {0};
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct links_hop *old = find_hop(p, &addrs[i]);

		vec_push(&now, old ? *old : (struct links_hop){.addr = addrs[i]});
	}
	if (now.n)
		qsort(now.at, now.n, sizeof(*now.at), compare_hops);
	for (size_t i = 0; i < now.n; i++)
		if (!kept || compare_hops(&now.at[kept - 1], &now.at[i]) != 0)
			now.at[kept++] = now.at[i];
	vec_free(&p->hops);
	p->hops.at = now.at;
	p->hops.n = kept;
	p->hops.cap = now.cap;
}

static void say_found(void *plan, const char *text, const char *same)
{
	struct links_plan *p = plan;

	plan_say(&p->messages, log_notice, "no longer: %s", text);
}

void links_plan_lost(struct links_plan *p, char *const *sentences, size_t n)
{
	troubles_begin(&p->lost);
	for (size_t i = 0; i < n; i++)
		if (troubles_note(&p->lost, sentences[i], sentences[i]))
			plan_say(&p->messages, log_warning, "%s", sentences[i]);
	troubles_end(&p->lost, say_found, p);
}

// ---- changes ------------------------------------------------------------------------------------

// Paths may use devices that were just attached. Attaching writes MAC addresses, too.
enum links_write links_plan_write(struct links_plan *p, size_t devices, bool attached, size_t hops,
				  bool stale, const struct plan_now *now)
{
	if (devices && attached)
		links_plan_need(p, now);
	if (hops)
		return LINKS_PATHS;
	return stale && !(devices && attached) ? LINKS_MACS : LINKS_NOTHING;
}

void links_plan_moved(struct links_plan *p, const struct addr *addrs, size_t n, size_t changed)
{
	CLEANUP_TEXT struct text names = {0};
	addr_text name;

	for (size_t i = 0; i < n && i < NAMED; i++)
		text_addf(&names, " %s", addr_format(&addrs[i], name));
	plan_say(&p->messages, log_notice, "%zu next %s changed:%s%s", changed,
		 num_plural(changed, "hop has", "hops have"), text_get(&names),
		 n > NAMED ? " and others" : "");
}
