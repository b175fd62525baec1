// SPDX-License-Identifier: GPL-2.0-only
// Changes and lists dynamic sets from the command line.
#include "ctl/cmd/sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/sets.h"

struct opened_set {
	struct instance *instance;
	struct generation_about *about;
	const struct generation_about_set *set;
	struct clock clock;
};

static void close_set(struct opened_set *o)
{
	instance_free(o->instance);
	free(o->about);
}

static int open_set(struct context *ctx, const char *name, struct opened_set *o, struct err *err)
{
	struct commit_state state;
	int code = instance_open(ctx->instance, &o->instance, err);

	o->about = mem_new(struct generation_about);
	if (code)
		return code;
	if ((code = commit_read(o->instance, &state, err)))
		return code;
	if ((code = generation_read_about(o->instance, state.in_force, o->about, err)))
		return code;
	if ((code = sets_find(o->about, name, &o->set, err)))
		return code;
	return instance_clock(o->instance, &o->clock, err);
}

struct addrs {
	struct addr *at;
	size_t n, cap;
	VEC(uint64_t) until; // of each, in jiffies
};

static void addrs_free(struct addrs *a)
{
	vec_free(a);
	vec_free(&a->until);
}

static uint64_t until_of(const struct opened_set *o, const struct intent *intent, uint64_t for_ms)
{
	if (for_ms)
		return clock_after_ms(&o->clock, for_ms);
	if (intent->until_s != RECORD_NEVER)
		return clock_to_jiffies(&o->clock, intent->until_s);
	return o->set->expire_ms ? clock_after_ms(&o->clock, o->set->expire_ms) : UINT64_MAX;
}

// Options of a list line that an address of a set cannot have.
static int check_line(const struct item *item, struct err *err)
{
	const char *what = item->note ? "note" : item->to || item->both ? "direction" : NULL;

	return what ? err_input(err, "line %u: an address of a set has no %s", item->line, what)
		    : 0;
}

static void add_addr(struct addrs *ret, const struct addr *addr, uint64_t until)
{
	vec_push(ret, *addr);
	vec_push(&ret->until, until);
}

// A set has addresses of one mask; a shorter prefix cannot be added.
static int collect_item(const struct targets *t, const struct item *item,
			const struct generation_about_set *set, uint64_t until, struct addrs *ret,
			struct err *err)
{
	const struct dns_answer *answer = item->name ? targets_answer(t, item->name) : NULL;
	uint8_t mask = item->prefix.addr.family == 4 ? set->mask4 : set->mask6;
	addr_text text;

	if (item->name && geo_is_name(item->name))
		return err_input(err, "'%s' has prefixes wider than the entries of the set",
				 item->name);
	for (size_t a = 0; answer && a < answer->n; a++)
		add_addr(ret, &answer->addrs[a], until);
	if (item->name)
		return 0;
	if (item->prefix.len < mask) {
		err_input(err, "'%s' is wider than the entries of the set",
			  prefix_format(&item->prefix, text));
		return err_hint(err, "its entries are /%u (IPv4) and /%u (IPv6)", set->mask4,
				set->mask6);
	}
	add_addr(ret, &item->prefix.addr, until);
	return 0;
}

static int collect(const struct targets *t, const struct opened_set *o, const struct intent *intent,
		   bool remove, struct addrs *ret, struct err *err)
{
	vec_each (&t->items.items, item) {
		int code = remove ? 0 : check_line(item, err);

		if (code)
			return code;
		code = collect_item(t, item, o->set, until_of(o, intent, item->for_ms), ret, err);
		if (code)
			return code;
	}
	return 0;
}

int sets_check_options(const struct args *args, struct err *err)
{
	// A set has addresses and times, but no owners, no directions and no file.
	static const char *const allowed[] = {
		"set", "for", "file", "wide", "force", "resolver", "resolver-timeout"};

	if (!args_has(args, "set"))
		return 0;
	vec_each (&args->given, given) {
		const char *name = given->option->name;
		size_t f = 0;

		if (!args_knows(args, name))
			continue;
		while (f < ARRAY_SIZE(allowed) && strcmp(allowed[f], name))
			f++;
		if (f == ARRAY_SIZE(allowed))
			return err_input(err, "--set excludes --%s", name);
	}
	return 0;
}

// Neighbours with the same end are one call.
static int add(const struct opened_set *o, const struct addrs *addrs, struct err *err)
{
	for (size_t n = 0, next; n < addrs->n; n = next) {
		uint64_t until = addrs->until.at[n];
		int code;

		for (next = n + 1; next < addrs->n && addrs->until.at[next] == until;)
			next++;
		code = sets_add(o->instance, o->set, addrs->at + n, next - n, until, err);
		if (code)
			return code;
	}
	return 0;
}

static int change(struct opened_set *o, const struct addrs *addrs, bool remove, size_t *ret_changed,
		  struct err *err)
{
	*ret_changed = addrs->n;
	return remove ? sets_remove(o->instance, o->set, addrs->at, addrs->n, ret_changed, err)
		      : add(o, addrs, err);
}

int sets_change(struct context *ctx, const char *name, const struct targets *t,
		const struct intent *intent, bool remove, struct err *err)
{
	CLEANUP(close_set) struct opened_set o = {0};
	CLEANUP_FD int lock = -1;
	CLEANUP(addrs_free) struct addrs addrs = {0};
	size_t changed;
	int code = open_set(ctx, name, &o, err);

	if (code)
		return code;
	if ((code = collect(t, &o, intent, remove, &addrs, err)))
		return code;
	if ((code = lock_take(ctx->instance, ctx->line, &lock, err)))
		return code;
	if ((code = change(&o, &addrs, remove, &changed, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_string(ctx->out, "set", name);
	out_set_u64(ctx->out, "changed", changed);
	if (!ctx->quiet)
		out_line(ctx->out, "%zu %s %s set @%s, instance %s", changed,
			 num_plural(changed, "address", "addresses"),
			 remove ? "removed from" : "added to", name, ctx->instance);
	return 0;
}

static void show_address(struct context *ctx, const struct opened_set *o,
			 const struct set_address *address)
{
	uint64_t left_ms = clock_ms_until(&o->clock, address->until);
	addr_text text;
	num_text left;

	if (address->until <= o->clock.jiffies)
		return;
	out_row(ctx->out);
	out_cell(ctx->out, "address", "ADDRESS", prefix_format(&address->prefix, text));
	if (address->until == UINT64_MAX)
		out_cell(ctx->out, NULL, "LEFT", "");
	else
		out_cell_as(ctx->out, "left_s", "LEFT", num_format_duration_ms(left_ms, left),
			    left_ms / 1000);
	if (o->set->count)
		out_cell_u64(ctx->out, "packets", "PACKETS", address->packets);
}

int sets_show(struct context *ctx, const char *name, struct err *err)
{
	CLEANUP(close_set) struct opened_set o = {0};
	CLEANUP_VEC struct set_addresses addresses = {0};
	int code = open_set(ctx, name, &o, err);

	if (code)
		return code;
	if ((code = sets_read(o.instance, o.set, &addresses, err)))
		return code;
	out_set_string(ctx->out, "set", name);
	out_table(ctx->out, "addresses");
	vec_each (&addresses, address)
		show_address(ctx, &o, address);
	out_table_end(ctx->out);
	return 0;
}
