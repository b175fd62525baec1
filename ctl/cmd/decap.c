// SPDX-License-Identifier: GPL-2.0-only
// weir decap: on a backend, remove the tunnel headers of the balancer without a tunnel device.
#include <errno.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/command.h"
#include "ctl/control/fitness.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/decap.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

// '+' is invalid in the name of an instance.
#define LOCK_NAME "+decap"
#define SHOWN     8 // prefixes that are listed
#define FORWARDS  "; packets for other hosts are forwarded"

// The addresses of this host, sorted.
struct addresses {
	struct prefix *at;
	size_t n;
};

static void addresses_cleanup(struct addresses *a)
{
	free(a->at);
}

// ---- listing ------------------------------------------------------------------------------------

static void show_counters(struct out *o, const struct decap_state *state, bool json)
{
	out_table(o, "counters");
	for (enum decap_reason r = 0; r < DECAP_REASON_COUNT; r++) {
		if (!state->counters[r].packets && !json)
			continue;
		out_row(o);
		out_cell(o, "verdict", "VERDICT", decap_reason_effect(r));
		out_cell(o, "reason", "REASON", decap_reason_name(r));
		out_cell_u64(o, "packets", "PACKETS", state->counters[r].packets);
		out_cell_u64(o, "bytes", "BYTES", state->counters[r].bytes);
		out_cell(o, NULL, "MEANING", decap_reason_text(r));
	}
	out_table_end(o);
}

static void set_prefixes(struct out *o, const char *key, const struct prefix *p, size_t n)
{
	addr_text text;

	out_array(o, key);
	for (size_t i = 0; i < n; i++)
		out_item_string(o, prefix_format(&p[i], text));
	out_end(o);
}

// "from 10.1.0.1, 2001:db8::/64", "from any source". The caller frees it.
static char *from_words(const struct prefix *from, size_t n)
{
	CLEANUP_TEXT struct text t = {0};
	addr_text text;
	unsigned any = 0;

	for (size_t i = 0; i < n; i++)
		any += !from[i].len;
	if (any == 2)
		return mem_strdup("from any source");
	if (n > SHOWN)
		return mem_printf("from %zu %s", n, num_plural(n, "prefix", "prefixes"));
	for (size_t i = 0; i < n; i++)
		text_addf(&t, "%s %s", i ? "," : "from", prefix_format(&from[i], text));
	return text_take(&t);
}

static void show_changed(struct out *o, const char *word, const struct prefix *p, size_t n)
{
	addr_text text;

	for (size_t i = 0; i < n && i < SHOWN; i++)
		out_line(o, "  %s: %s", word, prefix_format(&p[i], text));
	if (n > SHOWN)
		out_line(o, "  %s: %zu more", word, n - SHOWN);
}

// Addresses of this host that were added or removed since the last `weir decap` on the interface.
static void show_addresses(struct context *ctx, const char *name, const struct decap_state *state,
			   const struct addresses *own)
{
	CLEANUP_DECAP_CHANGE struct decap_change since = decap_changed(state, own->at, own->n);

	out_set_u64(ctx->out, "addresses", state->n_here);
	set_prefixes(ctx->out, "addresses_new", since.added, since.n_added);
	set_prefixes(ctx->out, "addresses_gone", since.gone, since.n_gone);
	show_changed(ctx->out, "new address", since.added, since.n_added);
	show_changed(ctx->out, "removed address", since.gone, since.n_gone);
	if (since.n_added + since.n_gone)
		log_warning("the addresses of this host have changed: weir decap %s updates '%s'",
			    name, name);
}

static void show(struct context *ctx, const char *name, const struct decap_state *state,
		 const struct addresses *own)
{
	CLEANUP_FREE char *from = from_words(state->from, state->n_from);
	struct out *o = ctx->out;

	out_object(o, NULL);
	out_set_string(o, "name", name);
	out_set_string(o, "mode", hook_mode_name(state->mode));
	out_set_bool(o, "shared", state->shared);
	out_set_bool(o, "readable", state->readable);
	if (state->readable) {
		out_set_u64(o, "port", state->port);
		set_prefixes(o, "from", state->from, state->n_from);
		out_set_bool(o, "forward", state->forward);
		out_line(o, "%s, %s mode%s: GUE port %u, %s to %zu %s%s", name,
			 hook_mode_name(state->mode), state->shared ? ", shared" : "", state->port,
			 from, state->n_here, num_plural(state->n_here, "address", "addresses"),
			 state->forward ? FORWARDS : "");
		show_addresses(ctx, name, state, own);
		show_counters(o, state, ctx->json);
	} else {
		out_line(o, "%s, %s mode: attached by another version of Weir", name,
			 hook_mode_name(state->mode));
	}
	out_end(o);
}

static int show_links(struct context *ctx, const struct link *links, size_t n,
		      const struct addresses *own, size_t *ret_shown, struct err *err)
{
	for (size_t l = 0; l < n; l++) {
		CLEANUP_DECAP_STATE struct decap_state state = {0};
		int code;

		if (!links[l].xdp_prog_id)
			continue;
		if ((code = decap_query(links[l].index, &state, err)))
			return code;
		if (!state.there)
			continue;
		show(ctx, links[l].name, &state, own);
		++*ret_shown;
	}
	return 0;
}

static int list(struct context *ctx, struct err *err)
{
	CLEANUP(addresses_cleanup) struct addresses own = {0};
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0, shown = 0;
	int code = link_list(&links, &n, err);

	if (code)
		return code;
	if ((code = route_own_prefixes(&own.at, &own.n, err)))
		return code;
	out_array(ctx->out, "interfaces");
	code = show_links(ctx, links, n, &own, &shown, err);
	out_end(ctx->out);
	if (code)
		return code;
	if (!shown)
		out_line(ctx->out, "no interface decapsulates");
	return 0;
}

// ---- attaching ----------------------------------------------------------------------------------

// --port, else the port in use (0: not attached), else the default.
static int read_port(const struct args *args, uint16_t in_use, uint32_t *ret, struct err *err)
{
	const char *text = args_value(args, "port");

	*ret = in_use ? in_use : DECAP_PORT;
	if (text && num_parse_u32(text, strlen(text), 1, 65535, ret))
		return err_input(err, "--port '%s' is not a port from 1 to 65535", text);
	return 0;
}

// The addresses of this host, including the VIPs on lo.
static int own_addresses(struct addresses *ret, struct err *err)
{
	int code = route_own_prefixes(&ret->at, &ret->n, err);

	if (code || ret->n)
		return code;
	err_refused(err, "this host has no address for tunnels to end at");
	return err_hint(err, "ip address add ADDRESS/LENGTH dev IFACE");
}

struct sources {
	VEC(struct prefix) at;
};

static void sources_cleanup(struct sources *s)
{
	vec_free(&s->at);
}

static int compare_prefixes(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

static int add_source(struct sources *s, const char *word, size_t len, struct err *err)
{
	struct prefix p;
	int code;

	if (len == 3 && !memcmp(word, "any", 3)) {
		vec_push(&s->at, ((struct prefix){.addr.family = 4}));
		vec_push(&s->at, ((struct prefix){.addr.family = 6}));
		return 0;
	}
	if (!len)
		return err_input(err, "--from: missing address or prefix");
	if ((code = prefix_parse(word, len, &p, NULL, err)))
		return code;
	vec_push(&s->at, p);
	return 0;
}

static int add_sources(struct sources *s, const char *list, struct err *err)
{
	for (bool more = true; more;) {
		size_t len = strcspn(list, ",");
		int code = add_source(s, list, len, err);

		if (code)
			return code;
		more = list[len];
		list += len + more;
	}
	return 0;
}

static void sort_once(struct sources *s)
{
	size_t kept = 0;

	qsort(s->at.at, s->at.n, sizeof(*s->at.at), compare_prefixes);
	for (size_t i = 0; i < s->at.n; i++)
		if (!kept || prefix_compare(&s->at.at[kept - 1], &s->at.at[i]))
			s->at.at[kept++] = s->at.at[i];
	s->at.n = kept;
}

// --from, else the sources in use.
static int read_sources(const struct args *args, const struct decap_state *in_use,
			struct sources *ret, struct err *err)
{
	vec_each (&args->given, given) {
		int code = 0;

		if (!strcmp(given->option->name, "from"))
			code = add_sources(ret, given->value, err);
		if (code)
			return code;
	}
	for (size_t i = 0; !args_has(args, "from") && i < in_use->n_from; i++)
		vec_push(&ret->at, in_use->from[i]);
	if (!ret->at.n) {
		err_input(err, "missing --from, the balancers that tunnels are accepted from");
		return err_hint(err, "--from ADDRESS,… with the source addresses of the tunnels, "
				     "or --from any");
	}
	sort_once(ret);
	return 0;
}

// --from without --forward turns forwarding off.
static bool read_forward(const struct args *args, const struct decap_state *in_use)
{
	return args_has(args, "forward") || (!args_has(args, "from") && in_use->forward);
}

static int find_link(const char *name, struct link *ret, struct err *err)
{
	int code = link_get(name, ret, err);

	if (code || ret->type == ARPHRD_ETHER)
		return code;
	err_refused(err, "'%s' is not an Ethernet device: tunnels do not arrive there", name);
	return -EOPNOTSUPP;
}

static bool same_prefixes(const struct prefix *a, size_t n_a, const struct prefix *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (prefix_compare(&a[i], &b[i]))
			return false;
	return true;
}

// "; was already attached", and what was other than now. The caller frees it.
static char *was_words(const struct decap_state *was, const struct decap_end *now)
{
	CLEANUP_FREE char *from = from_words(was->from, was->n_from);
	CLEANUP_TEXT struct text t = {0};

	if (was->port != now->port)
		text_addf(&t, ", port %u", was->port);
	if (!same_prefixes(was->from, was->n_from, now->from, now->n_from))
		text_addf(&t, ", %s", from);
	if (was->forward != now->forward)
		text_add(&t, was->forward ? ", forwarding" : ", not forwarding");
	if (!same_prefixes(was->here, was->n_here, now->here, now->n_here))
		text_addf(&t, ", to %zu %s%s", was->n_here,
			  num_plural(was->n_here, "address", "addresses"),
			  was->n_here == now->n_here ? ", others" : "");
	return t.len ? mem_printf("; was%s", text_get(&t) + 1)
		     : mem_strdup("; was already attached");
}

// was: before the command.
static void report(struct context *ctx, const char *name, const struct decap_end *end,
		   const struct decap_state *was, const struct decap_result *result)
{
	CLEANUP_FREE char *from = from_words(end->from, end->n_from);
	CLEANUP_FREE char *before = result->attached ? mem_strdup("") : was_words(was, end);
	bool same = !strcmp(before, "; was already attached");

	out_set_string(ctx->out, "name", name);
	out_set_string(ctx->out, "mode", hook_mode_name(result->mode));
	out_set_bool(ctx->out, "shared", result->shared);
	out_set_bool(ctx->out, "changed", !same);
	out_set_u64(ctx->out, "port", end->port);
	set_prefixes(ctx->out, "from", end->from, end->n_from);
	out_set_bool(ctx->out, "forward", end->forward);
	out_set_u64(ctx->out, "addresses", end->n_here);
	if (result->notice[0]) {
		out_set_string(ctx->out, "notice", result->notice);
		log_notice("%s", result->notice);
	}
	if (!ctx->quiet)
		out_line(ctx->out,
			 "%s decapsulates IPIP and GUE (port %u) %s to %zu %s, %s mode%s%s", name,
			 end->port, from, end->n_here,
			 num_plural(end->n_here, "address", "addresses"),
			 hook_mode_name(result->mode), end->forward ? FORWARDS : "", before);
}

static int attach(struct context *ctx, const struct args *args, const struct link *link,
		  struct err *err)
{
	CLEANUP(addresses_cleanup) struct addresses own = {0};
	CLEANUP(sources_cleanup) struct sources from = {0};
	CLEANUP_ADVICES struct advices advices = {0};
	fitness_text reason;
	struct hook_target where = {
		.name = link->name, .driver = link->driver, .ifindex = link->index};
	CLEANUP_DECAP_STATE struct decap_state before = {0};
	struct decap_end end = {0};
	struct decap_result result;
	enum attach_mode mode;
	struct err unfit = {0};
	uint32_t port;
	int code = decap_query(link->index, &before, err);

	if (code)
		return code;
	if ((code = read_port(args, before.port, &port, err)))
		return code;
	if ((code = attaching_mode(args_value(args, "mode"), &mode, err)))
		return code;
	if ((code = read_sources(args, &before, &from, err)))
		return code;
	if ((code = own_addresses(&own, err)))
		return code;
	end = (struct decap_end){
		.port = (uint16_t)port,
		.forward = read_forward(args, &before),
		.here = own.at,
		.from = from.at.at,
		.n_here = own.n,
		.n_from = from.at.n,
	};
	fitness_look(link, &advices);
	where.reason = fitness_refusal(&advices, reason);
	if ((code = decap_attach(&where, &end, mode,
				 fitness_native(&advices, link, mode, &unfit) ? NULL : &unfit,
				 &result, err)))
		return code;
	if (result.attached)
		fitness_warn(&advices, link, result.mode, result.notice, sizeof(result.notice));
	report(ctx, link->name, &end, &before, &result);
	return 0;
}

static int attach_named(struct context *ctx, const struct args *args, const char *name,
			struct err *err)
{
	struct link link;
	int code = find_link(name, &link, err);

	return code ? code : attach(ctx, args, &link, err);
}

// ---- detaching ----------------------------------------------------------------------------------

static int detach(struct context *ctx, const struct link *link, bool *ret_was_there,
		  struct err *err)
{
	int code = decap_detach(link->index, ret_was_there, err);

	if (code)
		return code;
	if (*ret_was_there && !ctx->quiet)
		out_line(ctx->out, "%s no longer decapsulates", link->name);
	return 0;
}

static int detach_named(struct context *ctx, const char *name, struct err *err)
{
	struct link link;
	bool was_there;
	int code = find_link(name, &link, err);

	if (code)
		return code;
	if ((code = detach(ctx, &link, &was_there, err)))
		return code;
	out_set_string(ctx->out, "name", link.name);
	out_set_bool(ctx->out, "was_there", was_there);
	if (!was_there)
		log_notice("'%s' has no decapsulating program", link.name);
	return 0;
}

// One that fails does not keep the others: the first failure is returned at the end.
static int detach_links(struct context *ctx, const struct link *links, size_t n, size_t *ret_n,
			struct err *err)
{
	int failed = 0;

	for (size_t l = 0; l < n; l++) {
		struct err why = {0};
		bool was_there = false;
		int code = links[l].xdp_prog_id ? detach(ctx, &links[l], &was_there, &why) : 0;

		if (code && !failed) {
			failed = code;
			*err = why;
		}
		if (code || !was_there)
			continue;
		out_item_string(ctx->out, links[l].name);
		++*ret_n;
	}
	return failed;
}

static int detach_all(struct context *ctx, struct err *err)
{
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0, detached = 0;
	int code = link_list(&links, &n, err);

	if (code)
		return code;
	out_array(ctx->out, "detached");
	code = detach_links(ctx, links, n, &detached, err);
	out_end(ctx->out);
	if (code)
		return code;
	if (!detached && !ctx->quiet)
		out_line(ctx->out, "no interface decapsulates");
	return 0;
}

// Options of an interface that is to decapsulate; a list or --off does not ignore them.
static int check_options(const struct args *args, const char *name, struct err *err)
{
	static const char *const of_attach[] = {"from", "forward", "port", "mode"};

	if (name && !args_has(args, "off"))
		return 0;
	for (size_t o = 0; o < ARRAY_SIZE(of_attach); o++) {
		if (!args_has(args, of_attach[o]))
			continue;
		if (name)
			return err_input(err, "--off cannot be combined with --%s", of_attach[o]);
		err_input(err, "--%s without an interface", of_attach[o]);
		return err_hint(err, "weir decap IFACE --%s …", of_attach[o]);
	}
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	const char *name = args->words.n ? args->words.at[0] : NULL;
	CLEANUP_FD int lock = -1;
	int code = args_expect_words(args, 0, 1, "interface", err);

	if (code)
		return code;
	if ((code = check_options(args, name, err)))
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if (!name && !args_has(args, "off"))
		return list(ctx, err);
	if ((code = lock_take(LOCK_NAME, ctx->line, &lock, err)))
		return code;
	if (!args_has(args, "off"))
		return attach_named(ctx, args, name, err);
	return name ? detach_named(ctx, name, err) : detach_all(ctx, err);
}

static const struct args_option options[] = {
	{.name = "from",
	 .arg = "PREFIX,…",
	 .help = "accept tunnels from these sources only (the balancers), or any",
	 .repeated = true},
	{.name = "forward", .help = "also accept inner packets for other hosts"},
	{.name = "port", .arg = "N", .help = "UDP port of GUE (6080)"},
	{.name = "mode", .arg = "MODE", .help = "auto (native, else generic), native or generic"},
	{.name = "off", .help = "remove the program from IFACE (default: from all)"},
	{0},
};

const struct command cmd_decap = {
	.name = "decap",
	.usage = "[IFACE] [OPTIONS]",
	.summary = "on a backend: decapsulate IPIP and GUE from a balancer",
	.text = "Removes the outer header of 4in4, 6in4, 4in6, 6in6 and GUE packets, so that the host\n"
		"needs no tunnel device. The outer packet must be for an address of this host and come\n"
		"from a source in --from; the inner packet must be for this host. Other packets pass\n"
		"unchanged. The program knows the addresses of this host as of the last command: repeat\n"
		"the command when they change; --from, --forward and --port are kept. The program needs\n"
		"no instance and stays until --off. Without IFACE the command lists the interfaces that\n"
		"have it, with counters; --off then removes it from all.",
	.options = options,
	.run = run,
};
