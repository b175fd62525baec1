// SPDX-License-Identifier: GPL-2.0-only
// weir list: block and allow entries with their owners, expiry and counters.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/control/store.h"
#include "ctl/datapath/bpffs.h"

// All references to one entry.
struct group {
	const struct record *first;
	size_t n;
	uint64_t until_s;
};

static bool next_group(const struct store *store, struct group *g)
{
	const struct record *end = store->records.list.at + store->records.list.n;
	const struct record *first = g->first ? g->first + g->n : store->records.list.at;

	if (!store->records.list.n || first == end)
		return false;
	*g = (struct group){.first = first};
	while (first + g->n < end && !prefix_compare(&first->prefix, &first[g->n].prefix) &&
	       first->kind == first[g->n].kind) {
		if (first[g->n].until_s > g->until_s)
			g->until_s = first[g->n].until_s;
		g->n++;
	}
	return true;
}

static void show_owners(struct context *ctx, const struct store *store, const struct group *g)
{
	CLEANUP_TEXT struct text who = {0};

	out_array(ctx->out, "holders");
	for (size_t r = 0; r < g->n; r++) {
		const struct owner *owner = &store->records.owners.at[g->first[r].owner];

		if (r)
			text_add(&who, "; ");
		show_owner(&who, owner);
		out_object(ctx->out, NULL);
		out_set_string(ctx->out, "name", owner->name);
		out_set_string(ctx->out, "list", owner->list);
		out_set_string(ctx->out, "origin", owner->origin);
		out_set_string(ctx->out, "note", owner->note);
		out_set_string(ctx->out, "by", owner->by);
		out_set_time(ctx->out, "since", owner->since_s);
		out_set_time(ctx->out, "until", g->first[r].until_s);
		out_set_bool(ctx->out, "volatile", owner->fleeting);
		out_end(ctx->out);
	}
	out_end(ctx->out);
	out_cell(ctx->out, NULL, "FOR", text_get(&who));
}

static uint64_t age_s(const struct store *store, const struct group *g)
{
	uint64_t oldest = UINT64_MAX, now = store->clock.wall_ms / 1000;

	for (size_t r = 0; r < g->n; r++) {
		uint64_t since = store->records.owners.at[g->first[r].owner].since_s;

		oldest = since < oldest ? since : oldest;
	}
	return now > oldest ? now - oldest : 0;
}

static uint64_t left_s(const struct store *store, uint64_t until_s)
{
	uint64_t now = (store->clock.wall_ms + 999) / 1000;

	return until_s > now ? until_s - now : 0;
}

static void show_left(struct context *ctx, const struct store *store, uint64_t until_s)
{
	num_text left;

	if (until_s == RECORD_NEVER)
		out_cell(ctx->out, NULL, "LEFT", "");
	else
		out_cell_as(ctx->out, "left_s", "LEFT",
			    num_format_duration_ms(left_s(store, until_s) * 1000, left),
			    left_s(store, until_s));
}

static void show_group(struct context *ctx, const struct store *store, const struct group *g)
{
	const struct overlay_entry *entry = store_entry(store, &g->first->prefix, g->first->kind);
	struct out *o = ctx->out;
	addr_text address;
	num_text age;

	out_row(o);
	out_cell(o, "address", "ADDRESS", prefix_format(&g->first->prefix, address));
	out_cell(o, "kind", "KIND", kind_key(g->first->kind));
	out_tint(o, strcmp(kind_verb(g->first->kind), "block") ? OUT_GREEN : OUT_RED);
	out_cell_u64(o, "packets", "PACKETS", entry ? entry->hits.packets : 0);
	out_cell_u64(o, "bytes", "BYTES", entry ? entry->hits.bytes : 0);
	out_cell_as(o, "age_s", "AGE", num_format_duration_ms(age_s(store, g) * 1000, age),
		    age_s(store, g));
	if (entry && entry->seen)
		out_set_u64(o, "last_seen_s", clock_ms_since(&store->clock, entry->seen) / 1000);
	show_left(ctx, store, g->until_s);
	show_owners(ctx, store, g);
}

// Replaces quotes and control characters, which a list cannot have in a note but older files may.
static void print_note(const char *note)
{
	CLEANUP_TEXT struct text shown = {0};

	text_add_shown(&shown, note, strlen(note));
	for (char *c = shown.at; *c; c++)
		if (*c == '"')
			*c = '\'';
		else if (*c == '\t')
			*c = ' ';
	printf(" note \"%s\"", shown.at);
}

// A line that `weir block -f -` or `weir allow -f -` reads.
static void print_plain(const struct store *store, const struct group *g)
{
	const struct owner *owner = &store->records.owners.at[g->first->owner];
	uint64_t left = left_s(store, g->until_s);
	addr_text address;

	printf("%s", prefix_format(&g->first->prefix, address));
	if (g->until_s != RECORD_NEVER)
		printf(" for %llus", (unsigned long long)(left ? left : 1));
	if (g->first->kind == OVERLAY_BLOCK_TO || g->first->kind == OVERLAY_ALLOW_TO)
		printf(" to");
	if (owner->note[0])
		print_note(owner->note);
	putchar('\n');
}

static bool selected(const struct args *args, uint8_t kind)
{
	bool allow = args_has(args, "allowed"), block = args_has(args, "blocked");
	bool is_allow = kind == OVERLAY_ALLOW_FROM || kind == OVERLAY_ALLOW_TO;

	if (args_has(args, "plain") && !allow)
		return !is_allow; // a plain line does not name the verb
	return (!allow && !block) || (is_allow ? allow : block);
}

static void show_all(struct context *ctx, const struct args *args, const struct store *store)
{
	bool plain = args_has(args, "plain") && !ctx->json;
	struct group g = {0};
	size_t n = 0;

	out_table(ctx->out, "entries");
	while (next_group(store, &g)) {
		if (!selected(args, g.first->kind))
			continue;
		n++;
		if (plain)
			print_plain(store, &g);
		else
			show_group(ctx, store, &g);
	}
	out_table_end(ctx->out);
	if (!n && !plain && !ctx->quiet)
		out_line(ctx->out, "no entries in instance %s", ctx->instance);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if (args_has(args, "set"))
		return sets_show(ctx, args_value(args, "set"), err);
	if ((code = store_read(ctx->instance, &store, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	show_all(ctx, args, store);
	return 0;
}

static const struct args_option options[] = {
	{.name = "plain",
	 .help = "one entry per line, as input for weir block -f - (or weir allow -f -)"},
	{.name = "set", .arg = "NAME", .help = "list the addresses in the dynamic set NAME"},
	{.name = "blocked", .help = "block entries only"},
	{.name = "allowed", .help = "allow entries only"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_list = {
	.name = "list",
	.usage = "[OPTIONS]",
	.summary = "list block and allow entries, with counters",
	.options = options,
	.run = run,
};
