// SPDX-License-Identifier: GPL-2.0-only
// weir decap: on a backend, remove the tunnel headers of the balancer without a tunnel device.
#include <errno.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/command.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/decap.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

// No instance can have this name.
#define LOCK_NAME "+decap"
#define SHOWN     8 // prefixes in a line
#define FORWARDS  ", and forwards what is for others"

static const char *mode_word(enum iface_mode mode)
{
	return mode == IFACE_NATIVE ? "native" : "generic";
}

// What this host is, in order.
struct addresses {
	struct prefix *at;
	size_t n;
};

static void addresses_cleanup(struct addresses *a)
{
	free(a->at);
}

// Listing

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

// "from 10.1.0.1, 2001:db8::/64", "from anybody". The caller frees it.
static char *from_words(const struct prefix *from, size_t n)
{
	struct text t = {0};
	addr_text text;
	unsigned any = 0;

	for (size_t i = 0; i < n; i++)
		any += !from[i].len;
	if (any == 2)
		return mem_strdup("from anybody");
	if (n > SHOWN)
		return mem_printf("from %zu prefixes", n);
	for (size_t i = 0; i < n; i++)
		text_addf(&t, "%s %s", i ? "," : "from", prefix_format(&from[i], text));
	return text_take(&t);
}

static void show_changed(struct out *o, const char *word, const struct prefix *p, size_t n)
{
	addr_text text;

	for (size_t i = 0; i < n && i < SHOWN; i++)
		out_line(o, "  %s since: %s", word, prefix_format(&p[i], text));
	if (n > SHOWN)
		out_line(o, "  %s since: %zu more", word, n - SHOWN);
}

// Addresses of this host that came or went after the program was told.
static void show_addresses(struct context *ctx, const char *name, const struct decap_state *state,
			   const struct addresses *own)
{
	CLEANUP_DECAP_CHANGE struct decap_change since = decap_changed(state, own->at, own->n);

	out_set_u64(ctx->out, "addresses", state->n_here);
	set_prefixes(ctx->out, "addresses_new", since.added, since.n_added);
	set_prefixes(ctx->out, "addresses_gone", since.gone, since.n_gone);
	show_changed(ctx->out, "new", since.added, since.n_added);
	show_changed(ctx->out, "gone", since.gone, since.n_gone);
	if (since.n_added + since.n_gone)
		log_warning("'%s' does not know this host's addresses of now: weir decap %s", name,
			    name);
}

static void show(struct context *ctx, const char *name, const struct decap_state *state,
		 const struct addresses *own)
{
	CLEANUP_FREE char *from = from_words(state->from, state->n_from);
	struct out *o = ctx->out;

	out_object(o, NULL);
	out_set_string(o, "name", name);
	out_set_string(o, "mode", mode_word(state->mode));
	out_set_bool(o, "shared", state->shared);
	out_set_bool(o, "readable", state->readable);
	if (state->readable) {
		out_set_u64(o, "port", state->port);
		set_prefixes(o, "from", state->from, state->n_from);
		out_set_bool(o, "forward", state->forward);
		out_line(o, "%s, %s mode%s: GUE port %u, %s to %zu addresses%s", name,
			 mode_word(state->mode), state->shared ? ", shared" : "", state->port, from,
			 state->n_here, state->forward ? FORWARDS : "");
		show_addresses(ctx, name, state, own);
		show_counters(o, state, ctx->json);
	} else {
		out_line(o, "%s, %s mode: the program of another version of Weir", name,
			 mode_word(state->mode));
	}
	out_end(o);
}

static int list(struct context *ctx, struct err *err)
{
	CLEANUP(addresses_cleanup) struct addresses own = {0};
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0, shown = 0;
	int code = link_list(&links, &n, err);

	if (!code)
		code = route_own_prefixes(&own.at, &own.n, err);
	out_array(ctx->out, "interfaces");
	for (size_t l = 0; !code && l < n; l++) {
		CLEANUP_DECAP_STATE struct decap_state state = {0};

		if (!links[l].xdp_prog_id)
			continue;
		code = decap_query(links[l].index, &state, err);
		if (code || !state.there)
			continue;
		show(ctx, links[l].name, &state, &own);
		shown++;
	}
	out_end(ctx->out);
	if (!code && !shown)
		out_line(ctx->out, "no interface decapsulates");
	return code;
}

// Attaching

// Of --port, else `now`, where it decapsulates already, else the usual one.
static int read_port(const struct args *args, uint16_t now, uint32_t *ret, struct err *err)
{
	const char *text = args_value(args, "port");

	*ret = now ? now : DECAP_PORT;
	if (text && num_parse_u32(text, strlen(text), 1, 65535, ret))
		return err_input(err, "--port '%s' is not a port, 1 to 65535", text);
	return 0;
}

// What this host can be reached at; the VIPs on lo are among them.
static int own_addresses(struct addresses *ret, struct err *err)
{
	int code = route_own_prefixes(&ret->at, &ret->n, err);

	if (code || ret->n)
		return code;
	err_refused(err, "this host has no address at which a tunnel could end");
	return err_hint(err, "ip address add ADDRESS/LENGTH dev IFACE");
}

// --from

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
		return err_input(err, "--from: an address or a prefix is missing");
	code = prefix_parse(word, len, &p, NULL, err);
	if (!code)
		vec_push(&s->at, p);
	return code;
}

static int add_sources(struct sources *s, const char *list, struct err *err)
{
	int code = 0;

	for (bool more = true; !code && more;) {
		size_t len = strcspn(list, ",");

		code = add_source(s, list, len, err);
		more = list[len];
		list += len + more;
	}
	return code;
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

// Of --from, else those that are taken now.
static int read_sources(const struct args *args, const struct decap_state *now, struct sources *ret,
			struct err *err)
{
	int code = 0;

	vec_each (&args->given, given)
		if (!code && !strcmp(given->option->name, "from"))
			code = add_sources(ret, given->value, err);
	for (size_t i = 0; !args_has(args, "from") && i < now->n_from; i++)
		vec_push(&ret->at, now->from[i]);
	if (code)
		return code;
	if (!ret->at.n) {
		err_input(err, "--from is missing: it names the balancers whose tunnels are taken");
		return err_hint(
			err, "--from ADDRESS,…, the source of their outer packets; or --from any");
	}
	sort_once(ret);
	return 0;
}

// Where --from is said, all is said anew.
static bool read_forward(const struct args *args, const struct decap_state *now)
{
	return args_has(args, "forward") || (!args_has(args, "from") && now->forward);
}

static int find_link(const char *name, struct link *ret, struct err *err)
{
	int code = link_get(name, ret, err);

	if (code || ret->type == ARPHRD_ETHER)
		return code;
	err_refused(err,
		    "'%s' is not an Ethernet device: tunnels from outside do not come in there",
		    name);
	return -EOPNOTSUPP;
}

// port_was: 0 where it did not decapsulate.
static void report(struct context *ctx, const char *name, const struct decap_end *end,
		   uint16_t port_was, const struct decap_result *result)
{
	CLEANUP_FREE char *moved = mem_printf("; the port was %u", port_was);
	CLEANUP_FREE char *from = from_words(end->from, end->n_from);

	out_set_string(ctx->out, "name", name);
	out_set_string(ctx->out, "mode", mode_word(result->mode));
	out_set_bool(ctx->out, "shared", result->shared);
	out_set_bool(ctx->out, "changed", result->changed);
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
			 "%s decapsulates IPIP and GUE (port %u) %s to %zu addresses, %s "
			 "mode%s%s",
			 name, end->port, from, end->n_here, mode_word(result->mode),
			 end->forward ? FORWARDS : "",
			 result->changed                     ? ""
			 : port_was && port_was != end->port ? moved
							     : "; it did already");
}

static int attach(struct context *ctx, const struct args *args, const struct link *link,
		  struct err *err)
{
	CLEANUP(addresses_cleanup) struct addresses own = {0};
	CLEANUP(sources_cleanup) struct sources from = {0};
	const struct hook_target where = {
		.name = link->name, .driver = link->driver, .ifindex = link->index};
	CLEANUP_DECAP_STATE struct decap_state before = {0};
	struct decap_end end = {0};
	struct decap_result result;
	enum attach_mode mode;
	uint32_t port;
	int code = decap_query(link->index, &before, err);

	if (!code)
		code = read_port(args, before.port, &port, err);
	if (!code)
		code = attaching_mode(args_value(args, "mode"), &mode, err);
	if (!code)
		code = read_sources(args, &before, &from, err);
	if (!code)
		code = own_addresses(&own, err);
	if (code)
		return code;
	end = (struct decap_end){
		.port = (uint16_t)port,
		.forward = read_forward(args, &before),
		.here = own.at,
		.from = from.at.at,
		.n_here = own.n,
		.n_from = from.at.n,
	};
	code = decap_attach(&where, &end, mode, &result, err);
	if (!code)
		report(ctx, link->name, &end, before.port, &result);
	return code;
}

static int detach(struct context *ctx, const struct link *link, struct err *err)
{
	bool there;
	int code = decap_detach(link->index, &there, err);

	if (code)
		return code;
	out_set_string(ctx->out, "name", link->name);
	out_set_bool(ctx->out, "was_there", there);
	if (!there)
		log_notice("'%s' did not decapsulate", link->name);
	else if (!ctx->quiet)
		out_line(ctx->out, "%s decapsulates no more", link->name);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_FD int lock = -1;
	struct link link;
	int code = args_expect_words(args, 0, 1, "interface", err);

	if (!code && args_has(args, "off") && !args->words.n) {
		err_input(err, "off which interface?");
		return err_hint(err, "weir decap lists them");
	}
	if (!code)
		code = bpffs_ready(err);
	if (!code && !args->words.n)
		return list(ctx, err);
	if (!code)
		code = find_link(args->words.at[0], &link, err);
	if (!code)
		code = lock_take(LOCK_NAME, ctx->line, &lock, err);
	if (code)
		return code;
	return args_has(args, "off") ? detach(ctx, &link, err) : attach(ctx, args, &link, err);
}

static const struct args_option options[] = {
	{"from", 0, "PREFIX,…", "accept tunnels from these sources only (the balancers), or any",
	 true, false},
	{"forward", 0, NULL, "also accept inner packets for other hosts", false, false},
	{"port", 0, "N", "UDP port of GUE (6080)", false, false},
	{"mode", 0, "MODE", "auto (native, else generic), native or generic", false, false},
	{"off", 0, NULL, "remove the program from IFACE", false, false},
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
		"carry it, with counters.",
	.options = options,
	.run = run,
};
