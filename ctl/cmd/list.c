// SPDX-License-Identifier: GPL-2.0-only
// weir list: block and allow entries with their owners, expiry and counters.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/best.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/list_choice.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/control/entries/items.h"
#include "ctl/control/entries/listing.h"
#include "ctl/datapath/bpffs.h"

struct listing {
	struct context *ctx;
	struct store *store;
	struct entries entries;
	struct list_choice choice;
	bool plain, wide;
	size_t n;       // entries shown
	size_t omitted; // that a list would refuse
	addr_text first_omitted;
};

static void listing_free(struct listing *l)
{
	entries_free(&l->entries);
	store_free(l->store);
	choice_free(&l->choice);
}

// One that has neither name, list, origin nor note has only an author, which matters beside others.
static void add_owner(const struct owner *owner, bool others, struct text *to)
{
	size_t begin = to->len;

	if (begin)
		text_add(to, "; ");
	show_owner(to, owner);
	if (to->len == begin + (begin ? strlen("; ") : 0) && others)
		text_addf(to, "by %s", owner->by);
}

static void show_host(void *out, const struct addr *host)
{
	addr_text text;

	out_item_string(out, addr_format(host, text));
}

// The hosts of a group: their addresses for JSON, their number for people.
static void show_hosts(struct listing *l, struct text *who, const struct entry_reference *reference)
{
	size_t n;

	if (!reference->owner->group)
		return;
	out_array(l->ctx->out, "hosts");
	n = entries_hosts(&l->entries, reference, show_host, l->ctx->out);
	out_end(l->ctx->out);
	text_addf(who, ", %zu %s", n, num_plural(n, "host", "hosts"));
}

static void show_owners(struct listing *l, const struct entry *entry)
{
	struct out *o = l->ctx->out;
	CLEANUP_TEXT struct text who = {0};

	out_array(o, "holders");
	vec_each (&entry->references, reference) {
		const struct owner *owner = reference->owner;

		add_owner(owner, entry->references.n > 1, &who);
		out_object(o, NULL);
		out_set_string(o, "name", owner->name);
		out_set_string(o, "list", owner->list);
		out_set_string(o, "origin", owner->origin);
		out_set_string(o, "note", owner->note);
		out_set_string(o, "by", owner->by);
		out_set_time(o, "since", owner->since_s);
		out_set_time(o, "until", reference->until_s);
		out_set_bool(o, "volatile", owner->fleeting);
		if (!prefix_is_host(&entry->kernel.prefix))
			show_hosts(l, &who, reference);
		out_end(o);
	}
	out_end(o);
	out_cell(o, NULL, "FOR", text_get(&who));
}

static uint64_t age_s(const struct store *store, const struct entry *entry)
{
	uint64_t now = store->clock.wall_ms / 1000;

	return now > entry->since_s ? now - entry->since_s : 0;
}

static void show_left(struct listing *l, const struct entry *entry)
{
	uint64_t left = show_left_s(&l->store->clock, entry->until_s);
	num_text text;

	if (entry->until_s == RECORD_NEVER)
		out_cell(l->ctx->out, NULL, "LEFT", "");
	else
		out_cell_as(l->ctx->out, "left_s", "LEFT",
			    num_format_duration_ms(left * 1000, text), left);
}

static void show_row(struct listing *l, const struct entry *entry)
{
	struct out *o = l->ctx->out;
	addr_text address;
	num_text age;

	out_row(o);
	out_cell(o, "address", "ADDRESS", prefix_format(&entry->kernel.prefix, address));
	out_cell(o, "kind", "KIND", kind_key(entry->kernel.kind));
	out_tint(o, strcmp(kind_verb(entry->kernel.kind), "block") ? OUT_GREEN : OUT_RED);
	out_cell_u64(o, "packets", "PACKETS", entry->kernel.hits.packets);
	out_cell_u64(o, "bytes", "BYTES", entry->kernel.hits.bytes);
	out_cell_as(o, "age_s", "AGE", num_format_duration_ms(age_s(l->store, entry) * 1000, age),
		    age_s(l->store, entry));
	if (entry->kernel.seen)
		out_set_u64(o, "last_seen_s",
			    clock_ms_since(&l->store->clock, entry->kernel.seen) / 1000);
	show_left(l, entry);
	show_owners(l, entry);
}

// Older files may have notes that a list cannot have.
static void print_note(const char *note)
{
	CLEANUP_TEXT struct text shown = {0};

	items_add_note(&shown, note);
	printf(" note \"%s\"", text_get(&shown));
}

// A line that `weir block -f -` or `weir allow -f -` reads.
static void print_plain(const struct listing *l, const struct entry *entry)
{
	const struct owner *owner = entry->references.at[0].owner;
	uint64_t left = show_left_s(&l->store->clock, entry->until_s);
	addr_text address;

	printf("%s", prefix_format(&entry->kernel.prefix, address));
	if (entry->until_s != RECORD_NEVER)
		printf(" for %llus", (unsigned long long)(left ? left : 1));
	if (!strcmp(kind_side(entry->kernel.kind), "to"))
		printf(" to");
	if (owner->note[0])
		print_note(owner->note);
	putchar('\n');
}

static int show(struct listing *l, const struct entry *entry, struct err *err)
{
	int code;

	l->n++;
	if (l->plain && !l->wide && items_wide_problem(&entry->kernel.prefix)) {
		if (!l->omitted++)
			prefix_format(&entry->kernel.prefix, l->first_omitted);
		return 0;
	}
	if (l->plain) {
		print_plain(l, entry);
		return 0;
	}
	if ((code = entries_count(&l->entries, err)))
		return code;
	show_row(l, entry);
	return 0;
}

// Does the reader still read the output?
static bool is_read(const struct listing *l)
{
	return !out_failed(l->ctx->out) && !ferror(stdout);
}

static int show_by_address(struct listing *l, struct err *err)
{
	const struct entry *entry;
	int code;

	while (is_read(l) && (entry = entries_next(&l->entries)))
		if (choice_takes(&l->choice, entry) && (code = show(l, entry, err)))
			return code;
	return 0;
}

static int rank_all(struct listing *l, struct best *best, struct err *err)
{
	const struct entry *entry;
	int code;

	while ((entry = entries_next(&l->entries))) {
		if (!choice_takes(&l->choice, entry))
			continue;
		if (choice_counts(&l->choice) && (code = entries_count(&l->entries, err)))
			return code;
		best_offer(best, choice_rank(&l->choice, entry), entry->at);
	}
	best_sort(best);
	return 0;
}

// The counters of the entries that are shown next.
static int count_ahead(struct listing *l, const struct best *best, size_t from, struct err *err)
{
	CLEANUP_VEC VEC(size_t) at = {0};

	if (l->plain)
		return 0;

	for (size_t i = from; i < best->kept.n && i - from < ENTRIES_AHEAD; i++)
		vec_push(&at, best->kept.at[i].at);
	return entries_count_at(&l->entries, at.at, at.n, err);
}

static int show_in_order(struct listing *l, struct err *err)
{
	CLEANUP(best_free) struct best best = {.max = l->choice.top};
	int code = rank_all(l, &best, err);

	if (code)
		return code;
	for (size_t i = 0; i < best.kept.n && is_read(l); i++) {
		if (i % ENTRIES_AHEAD == 0 && (code = count_ahead(l, &best, i, err)))
			return code;
		code = show(l, entries_at(&l->entries, best.kept.at[i].at), err);
		if (code)
			return code;
	}
	return 0;
}

static int show_all(struct listing *l, struct err *err)
{
	struct context *ctx = l->ctx;
	int code;

	out_long_table(ctx->out, "entries");
	code = l->choice.order ? show_in_order(l, err) : show_by_address(l, err);
	out_table_end(ctx->out);
	if (code)
		return code;
	if (is_read(l) && (code = choice_missed(&l->choice, ctx->instance, err)))
		return code;
	if (l->omitted)
		log_notice("%zu %s left out, which %s --wide to be read back: %s%s "
			   "(weir list --plain --wide | weir block -f - --wide)",
			   l->omitted, num_plural(l->omitted, "entry is", "entries are"),
			   num_plural(l->omitted, "needs", "need"), l->first_omitted,
			   l->omitted > 1 ? ", …" : "");
	if (!l->n && !l->plain && !ctx->quiet)
		out_line(ctx->out, "no %sentries in instance %s",
			 l->choice.origin || l->choice.list ? "such " : "", ctx->instance);
	return 0;
}

static int list_entries(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(listing_free) struct listing l = {.ctx = ctx};
	int code = choice_read(args, &l.choice, err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = store_read(ctx->instance, &l.store, err)))
		return code;
	show_damage(&l.store->damaged);
	l.entries = entries_of(l.store);
	l.entries.wanted = choice_wants;
	l.entries.wanted_ctx = &l.choice;
	l.plain = args_has(args, "plain") && !ctx->json;
	l.wide = args_has(args, "wide");
	out_set_string(ctx->out, "instance", ctx->instance);
	return show_all(&l, err);
}

// The addresses of a dynamic set are no entries.
static int list_set(struct context *ctx, const struct args *args, struct err *err)
{
	static const char *const others[] = {"origin", "list", "blocked", "allowed",
					     "out",    "sort", "top",     "plain"};
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	for (size_t o = 0; o < ARRAY_SIZE(others); o++)
		if (args_has(args, others[o]))
			return err_input(err, "--set cannot be combined with --%s", others[o]);
	if ((code = bpffs_ready(err)))
		return code;
	return sets_show(ctx, args_value(args, "set"), err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	return args_has(args, "set") ? list_set(ctx, args, err) : list_entries(ctx, args, err);
}

static const struct args_option options[] = {
	{.name = "plain",
	 .help = "one entry per line, as input for weir block -f - (or weir allow -f -)"},
	{.name = "set", .arg = "NAME", .help = "list the addresses in the dynamic set NAME"},
	OPTION_CHOICE,
	{.name = "wide", .help = "do not fit tables to the terminal; with --plain all entries"},
	{0},
};

static const struct args_foreign foreign[] = {
	{"sync", 0, "--list NAME shows the entries of a list"},
	{"sort-by", 0, "--sort KEY: packets, bytes, age or left"},
	{0},
};

const struct command cmd_list = {
	.name = "list",
	.usage = "[WHAT…] [OPTIONS]",
	.summary = "list block and allow entries, with counters",
	.text = "WHAT is an address, a prefix, a range A-B, a host name, country DE or asn 64500. An\n"
		"address or prefix lists the entries that contain it and those inside of it; a name\n"
		"those that it was blocked by.\n"
		"\n"
		"  weir list 203.0.113.7\n"
		"  weir list --origin fail2ban --top 10\n"
		"  weir list --sort left --blocked",
	.options = options,
	.foreign = foreign,
	.run = run,
};
