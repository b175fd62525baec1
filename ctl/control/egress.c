// SPDX-License-Identifier: GPL-2.0-only
// Finds the devices that carry the traffic of services, and what loses frames there.
#include "ctl/control/egress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/control/fitness.h"
#include "ctl/control/pool.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/native.h"
#include "ctl/net/nexthop.h"

// ---- which there are ----------------------------------------------------------------------------

static struct egress *find(struct egresses *a, uint32_t ifindex)
{
	struct egress fresh = {0};

	vec_each (a, egress)
		if (egress->link.index == ifindex)
			return egress;
	if (link_get_by_index(ifindex, &fresh.link, NULL))
		return NULL;
	vec_push(a, fresh);
	return vec_last(a);
}

static void add_interfaces(const struct instance *i, struct egresses *ret)
{
	struct iface iface;
	struct egress *egress;

	for (uint32_t n = 0; instance_next_iface(i, &n, &iface);) {
		if (iface.state != IFACE_ATTACHED || !(egress = find(ret, iface.ifindex)))
			continue;
		egress->in = true;
		egress->native = iface.mode == IFACE_NATIVE;
	}
}

static void add_egress(const struct backend *backend, bool tunnel, struct egresses *ret)
{
	struct egress *egress;

	if (!backend || backend->here || !backend->ifindex ||
	    !(egress = find(ret, backend->ifindex)))
		return;
	egress->out = true;
	egress->tunnels |= tunnel;
}

static void add_egresses(const struct pool *f, struct egresses *ret)
{
	for (size_t n = 0; n < f->state->n_services; n++) {
		const struct lb_service *s = &f->state->services[n];

		for (uint32_t m = 0; m < s->n_members; m++)
			add_egress(
				lb_maps_backend(f->live, f->state->members[s->first_member + m].id),
				service_mode_does(s->mode) & MODE_TUNNEL, ret);
	}
}

// Is there one that XDP sends from, but for `except`?
static bool any_native(const struct egresses *a, const struct egress *except)
{
	vec_each (a, egress)
		if (egress->native && egress != except)
			return true;
	return false;
}

// ---- what they have lost ------------------------------------------------------------------------

#define BASE_MAX 65536u // bytes of the file of what was lost before: {"7": 120}

typedef char key_text[16];

static const char *key_of(const struct egress *egress, key_text buf)
{
	snprintf(buf, sizeof(key_text), "%u", egress->link.index);
	return buf;
}

static struct json *read_base(const char *instance)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/lost", WEIR_RUN_FOLDER, instance);
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (!file_exists(path) || file_read(path, BASE_MAX, &text, &len, NULL))
		return NULL;
	return json_parse(text, len, NULL, 0);
}

// A device whose count is smaller than it was is another one.
static void subtract(struct egress *egress, const struct json *base)
{
	key_text key;
	uint64_t before = base ? json_get_u64(base, key_of(egress, key)) : 0;

	egress->known = base && json_get(base, key);
	if (before <= egress->lost.frames)
		egress->lost.frames -= before;
}

void egress_find(const struct pool *f, struct egresses *ret)
{
	CLEANUP_JSON struct json *base = read_base(f->instance->name);

	add_interfaces(f->instance, ret);
	add_egresses(f, ret);
	// In generic mode the stack sends, and has counters of its own.
	if (!any_native(ret, NULL))
		return;
	vec_each (ret, egress) {
		ethtool_lost(egress->link.name, &egress->lost);
		subtract(egress, base);
	}
}

void egress_forget(const char *instance, const struct egresses *a)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/lost", WEIR_RUN_FOLDER, instance);
	CLEANUP_JSON struct json *base = json_object();
	CLEANUP_TEXT struct text text = {0};
	struct ethtool_lost lost;
	key_text key;

	vec_each (a, egress)
		if (!ethtool_lost(egress->link.name, &lost))
			json_set(base, key_of(egress, key), json_u64(lost.frames));
	json_print(base, false, &text);
	file_replace(path, text.at, text.len, 0600, NULL);
}

void egress_free(struct egresses *a)
{
	vec_free(a);
}

// ---- problems -----------------------------------------------------------------------------------

static void add(struct egress_findings *list, const struct egress *egress, bool problem, char *text,
		char *mend)
{
	struct egress_finding fresh = {.problem = problem, .text = text, .mend = mend};

	memcpy(fresh.about, egress->link.name, sizeof(fresh.about));
	vec_push(list, fresh);
}

static bool is_veth(const struct egress *egress)
{
	return !strcmp(egress->link.kind, "veth");
}

// The settings with which the device sends redirected frames.
static char *mend_redirect(const struct egress *egress)
{
	const char *kind = egress->link.kind;

	if (is_veth(egress))
		return mem_strdup("at its peer: ethtool -K PEER gro on");
	if (native_sends_with_program(egress->link.driver) && !native_carries(&egress->link))
		return mem_printf(
			"driver '%s' needs an XDP program on the device: weir attach %s --mode native",
			egress->link.driver, egress->link.name);
	return mem_printf(
		"driver%s%s does not support it: choose another device, or the one that the clients are reached by",
		kind[0] ? " " : "", kind);
}

// Frames that another device received and redirected to this one.
static void check_redirect(const struct egress *egress, enum nexthop_xmit xmit,
			   struct egress_findings *ret)
{
	if (xmit != NEXTHOP_XMIT_NO)
		return;
	add(ret, egress, true,
	    mem_printf("'%s' does not transmit XDP frames: redirected packets are lost",
		       egress->link.name),
	    mend_redirect(egress));
}

// The other end of a veth, where it is in this network namespace.
static bool peer_of(const struct egress *egress, struct link *ret)
{
	return !egress->link.lower_elsewhere && egress->link.lower &&
	       !link_get_by_index(egress->link.lower, ret, NULL);
}

// Some drivers send only what CPUs with a channel of their own redirect.
static void check_cpus(const struct egress *egress, struct egress_findings *ret)
{
	CLEANUP_ADVICES struct advices advices = {0};
	const struct advice *drops;

	fitness_look(&egress->link, &advices);
	if ((drops = fitness_find(&advices, ADVICE_DROPS)))
		add(ret, egress, true, mem_printf("'%s': %s", egress->link.name, drops->text),
		    mem_strdup(drops->mend));
}

// Frames sent back on the interface of arrival. A veth queues such frames at its other end, and
// processes the queue only with a program there; GRO is not enough. From outside only one case is
// visible: if not even redirected frames arrive, the other end has no program.
static void check_back(const struct egress *egress, enum nexthop_xmit xmit, bool again,
		       struct egress_findings *ret)
{
	const char *name = egress->link.name;
	struct link peer = {.name = "PEER"};
	bool seen, problem;

	if (!is_veth(egress))
		return;
	seen = peer_of(egress, &peer);
	if (seen && native_carries(&peer))
		return;
	problem = seen || xmit == NEXTHOP_XMIT_NO;
	if (!problem && !again && egress->known)
		return;
	add(ret, egress, problem,
	    problem ? mem_printf(
			      "packets sent out of '%s' are lost: the peer of this veth has no XDP program in native mode",
			      name)
		    : mem_printf(
			      "packets sent out of '%s' arrive only if the peer of this veth has an XDP program in native mode, which cannot be seen from here",
			      name),
	    mem_printf("any program will do there, also Weir's: weir -n peer attach %s "
		       "--mode native",
		       peer.name));
}

// A router beyond this device answers a tunnel packet that is too big, and no interface of ours
// receives it.
static void check_notices(const struct egress *egress, bool again, struct egress_findings *ret)
{
	const char *name = egress->link.name;

	if (!egress->tunnels || egress->in || (egress->known && !again))
		return;
	add(ret, egress, false,
	    mem_printf(
		    "path MTU errors of routers beyond '%s' are not seen: it is not an interface of this instance",
		    name),
	    mem_printf("with routers on the path, add '%s' to the policy's 'interface'", name));
}

void egress_check(const struct egresses *a, bool again, struct egress_findings *ret)
{
	vec_each (a, egress) {
		enum nexthop_xmit xmit = NEXTHOP_XMIT_UNKNOWN;

		if (!egress->out)
			continue;
		xmit = nexthop_xmit(egress->link.index);
		if (egress->native)
			check_back(egress, xmit, again, ret);
		if (any_native(a, egress)) {
			check_redirect(egress, xmit, ret);
			check_cpus(egress, ret);
		}
		check_notices(egress, again, ret);
	}
}

void egress_findings_free(struct egress_findings *list)
{
	vec_each (list, one) {
		free(one->text);
		free(one->mend);
	}
	vec_free(list);
}

bool egress_cannot_send(const struct pool *f, const struct backend *backend)
{
	struct iface in;

	for (uint32_t n = 0; backend->no_xmit && instance_next_iface(f->instance, &n, &in);)
		if (in.state == IFACE_ATTACHED && in.mode == IFACE_NATIVE &&
		    in.ifindex != backend->ifindex)
			return true;
	return false;
}
