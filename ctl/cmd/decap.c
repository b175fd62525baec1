// SPDX-License-Identifier: GPL-2.0-only
// weir decap: on a backend, take the balancer's tunnel header off packets without a tunnel device.
#include <errno.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/command.h"
#include "ctl/datapath/decap.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/pins.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

// No instance can have this name.
#define LOCK_NAME "+decap"

static const char *mode_word(enum iface_mode mode)
{
	return mode == IFACE_NATIVE ? "native" : "generic";
}

// Listing

static void show_counters(struct out *o, const struct decap_state *state, bool json)
{
	out_table(o, "counters");
	for (enum decap_row row = 0; row < DECAP_ROW_COUNT; row++) {
		if (!state->rows[row].packets && !json)
			continue;
		out_row(o);
		out_cell(o, "verdict", "VERDICT", decap_row_effect(row));
		out_cell(o, "reason", "REASON", decap_row_name(row));
		out_cell_u64(o, "packets", "PACKETS", state->rows[row].packets);
		out_cell_u64(o, "bytes", "BYTES", state->rows[row].bytes);
		out_cell(o, NULL, "MEANING", decap_row_text(row));
	}
	out_table_end(o);
}

static void show(struct context *ctx, const char *name, const struct decap_state *state)
{
	struct out *o = ctx->out;

	out_object(o, NULL);
	out_set_string(o, "name", name);
	out_set_string(o, "mode", mode_word(state->mode));
	out_set_bool(o, "shared", state->shared);
	out_set_bool(o, "readable", state->readable);
	if (state->readable) {
		out_set_u64(o, "port", state->port);
		out_set_u64(o, "addresses", state->addresses);
		out_line(o, "%s, %s mode%s: GUE port %u, to %zu addresses", name,
			 mode_word(state->mode), state->shared ? ", shared" : "", state->port,
			 state->addresses);
		show_counters(o, state, ctx->json);
	} else {
		out_line(o, "%s, %s mode: the program of another version of Weir", name,
			 mode_word(state->mode));
	}
	out_end(o);
}

static int list(struct context *ctx, struct err *err)
{
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0, shown = 0;
	int code = link_list(&links, &n, err);

	out_array(ctx->out, "interfaces");
	for (size_t l = 0; !code && l < n; l++) {
		struct decap_state state;

		if (!links[l].xdp_prog_id)
			continue;
		code = decap_query(links[l].index, &state, err);
		if (code || !state.there)
			continue;
		show(ctx, links[l].name, &state);
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

struct addresses {
	VEC(struct addr) at;
};

static void addresses_cleanup(struct addresses *a)
{
	vec_free(&a->at);
}

// What this host can be reached at; the VIPs on lo are among them.
static int own_addresses(struct addresses *ret, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	for (size_t i = 0; !code && i < n; i++)
		if (!addr_is_loopback(&own[i].addr))
			vec_push(&ret->at, own[i].addr);
	if (code || ret->at.n)
		return code;
	err_refused(err, "this host has no address at which a tunnel could end");
	return err_hint(err, "ip address add ADDRESS/LENGTH dev IFACE");
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

	out_set_string(ctx->out, "name", name);
	out_set_string(ctx->out, "mode", mode_word(result->mode));
	out_set_bool(ctx->out, "shared", result->shared);
	out_set_bool(ctx->out, "changed", result->changed);
	out_set_u64(ctx->out, "port", end->port);
	out_set_u64(ctx->out, "addresses", end->n);
	if (result->notice[0]) {
		out_set_string(ctx->out, "notice", result->notice);
		log_notice("%s", result->notice);
	}
	if (!ctx->quiet)
		out_line(ctx->out,
			 "%s decapsulates IPIP and GUE (port %u) to %zu addresses, %s "
			 "mode%s",
			 name, end->port, end->n, mode_word(result->mode),
			 result->changed                     ? ""
			 : port_was && port_was != end->port ? moved
							     : "; it did already");
}

static int attach(struct context *ctx, const struct args *args, const struct link *link,
		  struct err *err)
{
	CLEANUP(addresses_cleanup) struct addresses own = {0};
	const struct decap_link where = {
		.name = link->name, .driver = link->driver, .ifindex = link->index};
	struct decap_end end = {0};
	struct decap_state before = {0};
	struct decap_result result;
	enum attach_mode mode;
	uint32_t port;
	int code = decap_query(link->index, &before, err);

	if (!code)
		code = read_port(args, before.port, &port, err);
	if (!code)
		code = attaching_mode(args_value(args, "mode"), &mode, err);
	if (!code)
		code = own_addresses(&own, err);
	if (code)
		return code;
	end = (struct decap_end){.port = (uint16_t)port, .addrs = own.at.at, .n = own.at.n};
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
	int code = args_expect_words(args, 0, 1, "the interface", err);

	if (!code && args_has(args, "off") && !args->words.n) {
		err_input(err, "off which interface?");
		return err_hint(err, "weir decap lists them");
	}
	if (!code)
		code = pins_ready(err);
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
	{"port", 0, "N", "UDP port of GUE (6080)", false, false},
	{"mode", 0, "MODE", "auto (native, else generic), native, or generic", false, false},
	{"off", 0, NULL, "take it off again", false, false},
	{0},
};

const struct command cmd_decap = {
	.name = "decap",
	.usage = "[IFACE] [OPTIONS]",
	.summary = "on a backend: unwrap what a balancer sends by IPIP or GUE",
	.text = "Strips the outer header of 4in4, 6in4, 4in6, 6in6 and GUE that ends at an address of\n"
		"this host, so that no tunnel device is needed; everything else passes untouched.\n"
		"Addresses are those of now: give the command again after they have changed. It\n"
		"needs no instance and stays until --off. Without IFACE it lists where it is, with\n"
		"counters.",
	.options = options,
	.run = run,
};
