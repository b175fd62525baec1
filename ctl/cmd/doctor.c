// SPDX-License-Identifier: GPL-2.0-only
// weir doctor: report the problems of this machine, each with the command that fixes it.
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/agent_problems.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/out.h"
#include "ctl/cmd/service_show.h"
#include "ctl/control/fitness.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/nat_sources.h"
#include "ctl/control/pool.h"
#include "ctl/control/state.h"
#include "ctl/control/tags.h"
#include "ctl/control/unseen.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/decap.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/outgoing.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/sharing.h"
#include "ctl/net/driver.h"
#include "ctl/net/ethtool.h"
#include "ctl/net/link.h"
#include "ctl/net/native.h"
#include "ctl/net/route.h"

static const char *const channels[] = {
	[CHANNELS_ANY] = "any",
	[CHANNELS_HALF] = "half at most",
	[CHANNELS_COMBINED] = "combined",
	[CHANNELS_RESERVED] = "one more per CPU",
};
static const char *const driver_tags[] = {
	[TAGS_KEPT] = "kept",
	[TAGS_REMOVED] = "removed (rxvlan)",
	[TAGS_OF_PEER] = "removed (txvlan of the peer)",
};
static const char *const redirects[] = {
	[REDIRECT_ALWAYS] = "sent",
	[REDIRECT_PEER] = "sent if the peer has GRO or a program",
	[REDIRECT_PROGRAM] = "sent while it has a program",
	[REDIRECT_CPUS] = "sent while it has a program, by CPUs with a channel",
};
static const char *const runs[] = {
	[RUNS_ALWAYS] = "always",
	[RUNS_UNTIL_DOWN] = "until it goes down",
	[RUNS_HEADROOM] = "with headroom of the backend",
};

static void set_name(struct out *o, const struct driver *d)
{
	CLEANUP_TEXT struct text t = {0};

	text_add(&t, d->name);
	if (d->known_as[0])
		text_addf(&t, " (%s)", d->known_as);
	out_cell(o, "driver", "DRIVER", text_get(&t));
}

static void set_mtu(struct out *o, const struct driver *d)
{
	CLEANUP_TEXT struct text t = {0};

	if (d->mtu)
		text_addf(&t, "%u", d->mtu);
	if (d->mtu && d->buffers[0])
		text_addf(&t, ", any from %s", d->buffers);
	out_cell(o, "mtu", "MTU", d->mtu ? text_get(&t) : "any");
}

static void set_clashes(struct out *o, const struct driver *d)
{
	static const struct {
		enum driver_clash bit;
		const char *word;
	} words[] = {{CLASH_LRO, "LRO"},
		     {CLASH_HW_GRO, "HW-GRO"},
		     {CLASH_HDS, "HDS"},
		     {CLASH_SRIOV, "SR-IOV"}};
	CLEANUP_TEXT struct text t = {0};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (d->clashes & words[i].bit)
			text_addf(&t, "%s%s", t.len ? ", " : "", words[i].word);
	out_cell(o, "refuses_with", "REFUSES WITH", t.len ? text_get(&t) : "-");
}

// Prints the table of net/driver.h: a row or a JSON object for each driver. docs/kernels.md has the
// same cells.
static void show_drivers(struct out *o)
{
	size_t n;
	const struct driver *list = driver_list(&n);

	out_table(o, "drivers");
	for (const struct driver *d = list; d < list + n; d++) {
		out_row(o);
		set_name(o, d);
		out_cell(o, "since", "SINCE", d->since);
		out_cell(o, "tested", "TESTED", d->tested ? "yes" : "no");
		set_mtu(o, d);
		out_cell(o, "above", "ABOVE",
			 !d->mtu                     ? "-"
			 : d->excess == DRIVER_LOSES ? "loses packets"
						     : "refuses");
		out_cell(o, "channels", "CHANNELS", channels[d->channels]);
		set_clashes(o, d);
		out_cell(o, "tags", "TAGS", driver_tags[d->tags]);
		out_cell(o, "redirected", "REDIRECTED TO IT", redirects[d->redirect]);
		out_cell(o, "runs", "RUNS", runs[d->runs]);
		out_cell(o, "resets", "ATTACH RESETS", d->resets ? "yes" : "no");
	}
	out_table_end(o);
}

#define SAMPLE_MS 250

enum doctor_level { FINE, NOTE, PROBLEM };

struct doctor {
	struct context *ctx;
	size_t problems;
	struct instance *instance; // NULL: not attached
	bool serves;               // its policy has services
};

// Prints one finding: the object, the level, the command that fixes it ("": no command), and a
// sentence.
__attribute__((format(printf, 5, 6))) static void find(struct doctor *d, enum doctor_level level,
						       const char *about, const char *mend,
						       const char *fmt, ...)
{
	static const char *const words[] = {"ok", "note", "problem"};
	struct out *o = d->ctx->out;
	CLEANUP_TEXT struct text t = {0};
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(&t, fmt, ap);
	va_end(ap);
	d->problems += level == PROBLEM;
	out_object(o, NULL);
	out_set_string(o, "about", about);
	out_set_string(o, "level", words[level]);
	out_set_string(o, "text", text_get(&t));
	out_set_string(o, "mend", mend[0] ? mend : NULL);
	out_end(o);
	out_line(o, "%s%-8s%s %-10s %s%s%s", level == PROBLEM ? out_red(o) : "", words[level],
		 level == PROBLEM ? out_plain(o) : "", about, text_get(&t), mend[0] ? ": " : "",
		 mend);
}

static void check_kernel(struct doctor *d)
{
	struct err err = {0};
	struct utsname uts;

	uname(&uts);
	if (probe_kernel(&err))
		find(d, PROBLEM, "kernel", "", "%s%s%s", err.text, err.hint[0] ? " " : "",
		     err.hint);
	else
		find(d, FINE, "kernel", "", "%s runs XDP with multi-buffer packets", uts.release);
}

static void check_jit(struct doctor *d)
{
	if (probe_kernel(NULL))
		return; // check_kernel has reported it
	if (probe_jit())
		find(d, FINE, "jit", "", "BPF programs are compiled");
	else
		find(d, PROBLEM, "jit", "sysctl -w net.core.bpf_jit_enable=1",
		     "BPF programs are interpreted, many times slower");
}

static void check_bpffs(struct doctor *d)
{
	struct err err = {0};

	if (probe_kernel(NULL))
		return; // check_kernel has reported it
	if (bpffs_ready(&err))
		find(d, PROBLEM, "bpffs", err.hint, "%s", err.text);
	else
		find(d, FINE, "bpffs", "", "mounted at %s", BPFFS_MOUNT);
}

static void check_iface(struct doctor *d, const struct device *device)
{
	CLEANUP_FREE char *mend = mem_printf("weir attach %s", device->iface.name);

	if (device_is_open(device))
		find(d, PROBLEM, device->iface.name, mend,
		     "Weir is not attached: all packets pass");
}

// To the kernel, the program is attached.
static void check_unseen(struct doctor *d, const struct devices *devices)
{
	const struct timespec pause = {.tv_nsec = SAMPLE_MS * 1000000};
	struct unseen_watch w;

	unseen_choose(d->instance, devices, &w);
	if (!w.ifaces)
		return;
	unseen_look(d->instance, &w);
	nanosleep(&pause, NULL);
	unseen_look(d->instance, &w);
	unseen_wait(d->instance, &w);
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		CLEANUP_UNSEEN struct unseen_finding f = {0};
		const char *name = devices->at[n].iface.name;

		if (!unseen_is_certain(&w.at[n]))
			continue;
		f = unseen_finding(name);
		find(d, PROBLEM, name, f.mend, "%s", f.text);
	}
}

static void check_devices(struct doctor *d)
{
	CLEANUP_DEVICES struct devices devices = {0};
	const struct err *err = &devices.unknown;

	devices_read(d->instance, &devices, &devices.unknown);
	if (err->kind)
		find(d, PROBLEM, "instance", err->hint, "%s", err->text);
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		check_iface(d, &devices.at[n]);
	check_unseen(d, &devices);
}

static void check_instance(struct doctor *d)
{
	struct err err = {0};

	if (probe_kernel(NULL))
		return;
	if (!bpffs_exist(d->ctx->instance)) {
		find(d, NOTE, "instance", "weir attach IFACE",
		     "'%s' is not attached to any interface", d->ctx->instance);
		return;
	}
	if (instance_open(d->ctx->instance, &d->instance, &err)) {
		find(d, PROBLEM, "instance", err.hint, "%s", err.text);
		return;
	}
	check_devices(d);
}

// Devices that carry the traffic of services: reports those that may lose frames, and those that
// have.
static void check_egress(struct doctor *d, const struct pool *p)
{
	CLEANUP_EGRESSES struct egresses egresses = {0};
	CLEANUP_EGRESS_FINDINGS struct egress_findings findings = {0};
	size_t known = 0;
	num_text n;

	egress_find(p, &egresses);
	egress_check(&egresses, true, &findings);
	vec_each (&findings, one) {
		find(d, one->problem ? PROBLEM : NOTE, one->about, one->mend, "%s", one->text);
		known++;
	}
	vec_each (&egresses, egress) {
		CLEANUP_FREE char *statistics = mem_printf("ethtool -S %s", egress->link.name);

		if (egress->lost.frames)
			find(d, PROBLEM, egress->link.name,
			     known ? "see above, then run weir service --refresh" : statistics,
			     "lost %s frames that XDP sent, " EGRESS_SINCE " (%s)",
			     num_format_grouped(egress->lost.frames, n), egress->lost.counter);
	}
}

// Compares the next hops of backends with the kernel's current ones.
static void check_services(struct doctor *d)
{
	CLEANUP_POOL struct pool p = {.lock = -1};
	CLEANUP_LB_PATHS struct lb_paths paths = {0};
	struct err err = {0};

	if (!d->instance || pool_open_few(d->ctx->instance, NULL, &p, NULL))
		return;
	d->serves = true;
	if (lb_running_refresh(p.live, NEXTHOP_WAIT_MS, false, &paths, &err))
		find(d, PROBLEM, "services", err.hint, "%s", err.text);
	vec_each (&paths.lost, text)
		find(d, PROBLEM, "services", "", "%s", *text);
	vec_each (&paths.warnings, text)
		find(d, PROBLEM, "services", "", "%s", *text);
	if (paths.changed)
		find(d, PROBLEM, "services", "weir service --refresh",
		     "%zu next %s of backends changed", paths.changed,
		     num_plural(paths.changed, "hop", "hops"));
	else if (!paths.lost.n && !paths.warnings.n)
		find(d, FINE, "services", "", "the next hops of all backends are known");
	check_egress(d, &p);
}

static void check_source(struct doctor *d, const struct nat_block_reading *block,
			 const struct prefix *own, size_t n)
{
	struct prefix host = prefix_of(&block->source, (uint8_t)addr_bits(&block->source));
	bool here = false;
	num_text living;
	addr_text source;

	addr_format(&block->source, source);
	for (size_t i = 0; i < n; i++)
		here |= prefix_contains(&own[i], &host);
	if (!block->newest && !block->living)
		return;
	if (!here) {
		CLEANUP_FREE char *mend = mem_printf("ip address add %s/%u dev IFACE", source,
						     addr_bits(&block->source));

		find(d, PROBLEM, "services", mend,
		     "the source %s of fullnat is not an address of this host: answers of backends "
		     "arrive only if a router sends them here",
		     source);
	} else if (!block->newest) {
		find(d, NOTE, "services", "",
		     "the former source %s has %s %s: the address must remain until the last one has ended",
		     source, num_format_grouped(block->living, living),
		     num_plural(block->living, "connection", "connections"));
	}
}

// This host and a client may get the same port.
static void check_clashes(struct doctor *d, const struct nat_reading *nat)
{
	CLEANUP(sentences_free) struct sentences clashes = {0};
	CLEANUP_POOL struct pool p = {.lock = -1};

	if (!nat->blocks.n || pool_open_few(d->ctx->instance, NULL, &p, NULL))
		return;
	nat_sources_clashes(nat, p.state, &clashes);
	vec_each (&clashes, text)
		find(d, NOTE, "services", "", "%s", *text);
}

static void check_sources(struct doctor *d)
{
	CLEANUP_FREE struct nat_reading *nat = mem_new(struct nat_reading);
	CLEANUP_FREE struct prefix *own = NULL;
	struct err err = {0};
	size_t n = 0;

	if (!d->instance)
		return;
	if (nat_read(d->instance, nat, &err) || route_own_prefixes(&own, &n, &err)) {
		find(d, PROBLEM, "services", err.hint, "%s", err.text);
		return;
	}
	vec_each (&nat->blocks, block)
		if (block->source.family)
			check_source(d, block, own, n);
	check_clashes(d, nat);
	nat_reading_free(nat);
}

// The alarms of weir status, with their commands in a separate field.
static void check_agent(struct doctor *d)
{
	CLEANUP_POOL struct pool p = {.lock = -1};
	CLEANUP_PRESENCE struct presence agent = {0};
	CLEANUP_AGENT_PROBLEMS struct agent_problems problems = {0};
	struct status_names names;

	if (!d->instance)
		return;
	pool_open_few(d->ctx->instance, NULL, &p, NULL);
	presence_read(d->ctx->instance, &agent);
	status_names_read(d->ctx->instance, &agent, &names);
	agent_problems_find(d->ctx->instance, &agent, &names, &p, &problems);
	vec_each (&problems, one)
		find(d, PROBLEM, "agent", one->mend, "%s", one->text);
	if (!problems.n)
		find(d, FINE, "agent", "", agent.runs ? "runs" : "none runs, and none is missed");
}

static void check_outgoing(struct doctor *d)
{
	struct outgoing_links links;

	if (!d->instance || !outgoing_wanted(d->instance))
		return;
	links = outgoing_links(d->instance);
	if (links.attached < OUTGOING_HOOKS)
		find(d, PROBLEM, "outgoing", "repeat a weir block --out",
		     "%zu of %d programs are attached: outgoing connections are not blocked",
		     links.attached, OUTGOING_HOOKS);
	else if (links.narrow)
		find(d, PROBLEM, "outgoing", "repeat a weir block --out",
		     "outgoing connections are blocked only for processes of a container");
	else if (links.part)
		find(d, FINE, "outgoing", "",
		     "all programs for outgoing connections are attached, for processes of this "
		     "container");
	else
		find(d, FINE, "outgoing", "", "all programs for outgoing connections are attached");
}

static void check_state(struct doctor *d)
{
	char text[256];

	if (!state_folder_works(d->ctx->instance, text, sizeof(text)))
		find(d, PROBLEM, "disk", "", "%s", text);
}

// An instance keeps the result of the probe that its programs were loaded for.
static void check_sharing(struct doctor *d)
{
	struct meta fresh = {0};
	struct err why = {0};

	if (probe_kernel(NULL))
		return;
	if (!d->instance)
		sharing_probe(&fresh);
	if (sharing_check(d->instance ? &d->instance->meta : &fresh, &why))
		find(d, NOTE, "sharing", "", "no interface with other XDP programs: %s", why.text);
	else
		find(d, FINE, "sharing", "",
		     "interfaces with other XDP programs, under libxdp's dispatcher");
}

static void check_big_tcp(struct doctor *d, const struct link *link)
{
	CLEANUP_FREE char *mend = mem_printf(
		"ip link set dev %s gro_max_size 65536 gro_ipv4_max_size 65536", link->name);

	if (link_big_tcp(link))
		find(d, NOTE, link->name, mend,
		     "BIG TCP: packets of up to %u bytes (gro_max_size %u, gro_ipv4_max_size %u); "
		     "generic XDP must copy each whole packet",
		     link_big_tcp(link), link->gro_max, link->gro_max4);
}

// Each queue uses one CPU.
static void check_queues(struct doctor *d, const struct link *link, const struct ethtool *e)
{
	CLEANUP_FREE char *mend = NULL;
	size_t cpus = 1;

	percpu_count(&cpus, NULL);
	if (e->combined_max < 2 || e->combined >= 2 || cpus < 2)
		return;
	mend = mem_printf("ethtool -L %s combined %zu", link->name,
			  e->combined_max < cpus ? (size_t)e->combined_max : cpus);
	find(d, NOTE, link->name, mend, "has only one queue: one CPU processes all packets");
}

// Findings that an attach does not report, or would report. In use, a driver that loses packets is
// a problem.
static void check_native(struct doctor *d, const struct link *link)
{
	CLEANUP_ADVICES struct advices advices = {0};
	const struct driver *driver = driver_find(link->driver);
	bool in_use = native_carries(link);

	if (!in_use && driver && driver->resets)
		find(d, NOTE, link->name, "",
		     "attaching in native mode resets the link: driver '%s' receives nothing for up "
		     "to some seconds",
		     link->driver);
	fitness_look(link, &advices);
	vec_each (&advices, one) {
		bool serious = one->kind == ADVICE_LOSES || one->kind == ADVICE_IDLE ||
			       one->kind == ADVICE_FORGETS;

		if (one->kind == ADVICE_FORGETS && !in_use)
			continue;
		find(d, serious && in_use ? PROBLEM : NOTE, link->name, one->mend,
		     "driver '%s': %s%s", link->driver,
		     one->kind != ADVICE_REFUSES ? ""
		     : driver                    ? "refuses native mode: "
						 : "may refuse native mode: ",
		     one->text);
	}
}

// Generic mode gets packets that the stack has merged.
static void check_offloads(struct doctor *d, const struct link *link, const struct ethtool *e,
			   bool generic)
{
	CLEANUP_FREE char *gro = mem_printf("ethtool -K %s gro off", link->name);
	CLEANUP_FREE char *lro = mem_printf("ethtool -K %s lro off", link->name);

	if (generic && e->gro == ETHTOOL_ON)
		find(d, NOTE, link->name, gro,
		     "GRO may merge packets before generic XDP sees them");
	if (e->lro == ETHTOOL_ON && native_carries(link))
		find(d, PROBLEM, link->name, lro, "the driver merges packets (LRO)");
}

// Without tags, rules with 'vlan' do not match; a VLAN device above needs them in what XDP sends
// too.
static void check_tags(struct doctor *d, const struct link *link)
{
	CLEANUP_FREE struct link *links = NULL;
	CLEANUP_FREE char *mend = NULL;
	const struct link *vlan = NULL;
	struct tags tags;
	size_t n = 0;

	tags_read(link, &tags);
	if (!link_list(&links, &n, NULL))
		vlan = tags_vlan_above(links, n, link);
	mend = mem_printf("ethtool -K %s %s off", tags.device, tags.feature);
	if (tags.removed && vlan)
		find(d, native_carries(link) && d->serves ? PROBLEM : NOTE, link->name, mend,
		     "the driver removes VLAN tags before XDP sees the packet: in native mode, "
		     "answers of 'reject' and packets of services leave without the tag of '%s'",
		     vlan->name);
	else if (!strcmp(link->kind, "veth"))
		find(d, NOTE, link->name, "ethtool -K PEER txvlan off",
		     "a veth hides VLAN tags unless its peer has VLAN offload turned off");
	else if (tags.removed)
		find(d, NOTE, link->name, mend,
		     "the driver removes VLAN tags before XDP sees the packet");
}

static void check_programs(struct doctor *d, const struct link *link, bool *ret_generic)
{
	struct attached_list there;
	bool ours = false;

	*ret_generic = true;
	if (attach_query(link->index, d->instance ? d->instance->progs_id : 0, &there, NULL))
		return;
	for (size_t n = 0; n < there.n; n++) {
		ours |= there.at[n].ours;
		if (!there.at[n].ours)
			find(d, NOTE, link->name, "", "carries another XDP program: '%s' (id %u)%s",
			     there.at[n].name, there.at[n].prog_id,
			     there.shared ? ", shared through libxdp" : "");
	}
	*ret_generic = there.link_prog_id && there.mode == IFACE_GENERIC;
	if (ours)
		find(d, *ret_generic ? NOTE : FINE, link->name, "",
		     "Weir is attached in %s mode, %s%s", *ret_generic ? "generic" : "native",
		     there.shared ? "shared" : "alone", *ret_generic ? ", which is slower" : "");
}

// The program knows the addresses of this host as of the last `weir decap`.
static void check_decap(struct doctor *d, const struct link *link)
{
	CLEANUP_DECAP_STATE struct decap_state state = {0};
	CLEANUP_FREE struct prefix *own = NULL;
	CLEANUP_DECAP_CHANGE struct decap_change since = {0};
	CLEANUP_FREE char *mend = mem_printf("weir decap %s", link->name);
	addr_text text;
	size_t n;

	if (!link->xdp_prog_id || decap_query(link->index, &state, NULL) || !state.readable ||
	    route_own_prefixes(&own, &n, NULL))
		return;
	since = decap_changed(&state, own, n);
	if (since.n_added)
		find(d, PROBLEM, link->name, mend,
		     "does not decapsulate for addresses added since weir decap ran: %s%s",
		     prefix_format(&since.added[0], text), since.n_added > 1 ? ", …" : "");
	else if (since.n_gone)
		find(d, NOTE, link->name, mend,
		     "still decapsulates for addresses that were removed: %s%s",
		     prefix_format(&since.gone[0], text), since.n_gone > 1 ? ", …" : "");
}

// Devices that do not see all traffic, or none.
static void check_kind(struct doctor *d, const struct link *link)
{
	if (link->type != ARPHRD_ETHER)
		find(d, PROBLEM, link->name, "", "is not an Ethernet device: Weir cannot attach");
	else if (!strcmp(link->kind, "bridge"))
		find(d, NOTE, link->name, "attach to its ports instead",
		     "XDP on a bridge sees only packets for this host, not forwarded ones");
	if (!link->up) {
		CLEANUP_FREE char *mend = mem_printf("ip link set %s up", link->name);

		find(d, NOTE, link->name, mend, "is down");
	}
}

static void check_link(struct doctor *d, const struct link *link)
{
	struct ethtool e = {0};
	bool generic, asked = !ethtool_get(link->name, &e, NULL);

	find(d, FINE, link->name, "", "driver %s, mtu %u, %u receive queues",
	     link->driver[0] ? link->driver : "unknown", link->mtu,
	     e.combined ? e.combined : link->rx_queues);
	check_kind(d, link);
	check_programs(d, link, &generic);
	check_decap(d, link);
	check_native(d, link);
	if (generic)
		check_big_tcp(d, link);
	if (!asked)
		return;
	check_offloads(d, link, &e, generic);
	check_tags(d, link);
	check_queues(d, link, &e);
}

// All Ethernet devices that are up.
static int check_ethernet(struct doctor *d, struct err *err)
{
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0;
	int code = link_list(&links, &n, err);

	if (code)
		return code;
	for (size_t l = 0; l < n; l++)
		if (links[l].type == ARPHRD_ETHER && links[l].up)
			check_link(d, &links[l]);
	return 0;
}

static int check_links(struct doctor *d, const struct args *args, struct err *err)
{
	vec_each (&args->words, name) {
		struct link link;
		int code = link_get(*name, &link, err);

		if (code)
			return code;
		check_link(d, &link);
	}
	return args->words.n ? 0 : check_ethernet(d, err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	struct doctor d = {.ctx = ctx};
	int code;

	if (args_has(args, "drivers")) {
		if ((code = args_expect_words(args, 0, 0, "", err)))
			return code;
		show_drivers(ctx->out);
		return 0;
	}
	out_array(ctx->out, "findings");
	check_kernel(&d);
	check_jit(&d);
	check_bpffs(&d);
	check_instance(&d);
	check_services(&d);
	check_sources(&d);
	check_agent(&d);
	check_outgoing(&d);
	check_state(&d);
	check_sharing(&d);
	code = check_links(&d, args, err);
	out_end(ctx->out);
	instance_free(d.instance);
	if (code || !d.problems)
		return code;
	code = err_refused(err, "%zu %s", d.problems,
			   num_plural(d.problems, "problem", "problems"));
	err->kind = ERR_SYSTEM;
	return code;
}

static const struct args_option options[] = {
	{.name = "drivers", .help = "show what is known of drivers in native mode"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "[IFACE…] [OPTIONS]",
	.summary = "find problems of this machine and the commands that fix them",
	.text = "tcpdump does not show packets that XDP drops: use weir watch.",
	.options = options,
	.run = run,
};
