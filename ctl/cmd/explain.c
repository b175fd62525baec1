// SPDX-License-Identifier: GPL-2.0-only
// weir explain ADDRESS: what happens to packets from and to it, and which entries know it.
#include <errno.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/show.h"
#include "ctl/control/book.h"
#include "ctl/datapath/pins.h"

struct explain {
	struct context *ctx;
	const struct book *book;
	struct prefix target;
	const struct record *decides[2]; // for packets from it, to it
	size_t known;
};

static bool is_to(uint8_t kind)
{
	return kind == OVERLAY_BLOCK_TO || kind == OVERLAY_ALLOW_TO;
}

static bool is_allow(uint8_t kind)
{
	return kind == OVERLAY_ALLOW_FROM || kind == OVERLAY_ALLOW_TO;
}

// Allow beats block; among equals the datapath asks for hosts first, then for the longest prefix.
static void see(void *ctx, const struct record *record)
{
	struct explain *e = ctx;
	const struct record **decides = &e->decides[is_to(record->kind)];

	e->known++;
	if (!*decides || is_allow(record->kind) >= is_allow((*decides)->kind))
		*decides = record;
}

static void describe(struct explain *e, struct text *t, const struct record *record)
{
	const struct holder *h = &e->book->records.holders.at[record->holder];
	const struct overlay_row *row = book_row(e->book, &record->prefix, record->kind);
	uint64_t now = e->book->clock.wall_ms / 1000;
	struct text who = {0};
	addr_text prefix;
	num_text text;

	show_holder(&who, h);
	text_addf(t, "overlay %s %s %s, by %s ", kind_verb(record->kind),
		  prefix_format(&record->prefix, prefix), kind_side(record->kind),
		  h->by[0] ? h->by : "?");
	show_time(t, h->since_s, now);
	if (who.len)
		text_addf(t, ", %s", text_get(&who));
	if (record->until_s != RECORD_NEVER)
		text_addf(
			t, ", %s left",
			num_format_duration_ms(
				record->until_s > now ? (record->until_s - now) * 1000 : 0, text));
	text_addf(t, ", %s packets", num_format_grouped(row ? row->hits.packets : 0, text));
	if (row && row->seen)
		text_addf(t, ", last %s ago",
			  num_format_duration_ms(
				  clock_ms_since(&e->book->clock, row->seen) / 1000 * 1000, text));
	text_free(&who);
}

static void show_record(void *ctx, const struct record *record)
{
	struct explain *e = ctx;
	struct out *o = e->ctx->out;
	struct text line = {0};
	addr_text prefix;
	bool decides = record == e->decides[is_to(record->kind)];

	out_object(o, NULL);
	out_set_string(o, "prefix", prefix_format(&record->prefix, prefix));
	out_set_string(o, "kind", kind_key(record->kind));
	out_set_bool(o, "decides", decides);
	out_set_string(o, "by", e->book->records.holders.at[record->holder].by);
	out_set_string(o, "note", e->book->records.holders.at[record->holder].note);
	out_set_string(o, "name", e->book->records.holders.at[record->holder].name);
	out_set_time(o, "until", record->until_s);
	out_end(o);
	if (!decides) {
		describe(e, &line, record);
		out_line(o, "  also in:  %s (not reached)", text_get(&line));
	}
	text_free(&line);
}

static void show_side(struct explain *e, bool to)
{
	const struct record *record = e->decides[to];
	struct out *o = e->ctx->out;
	const char *verdict = !record ? "passed" : is_allow(record->kind) ? "passed" : "dropped";
	struct text line = {0};
	addr_text target;

	out_set_string(o, to ? "to" : "from", record && !is_allow(record->kind) ? "drop" : "pass");
	if (record)
		describe(e, &line, record);
	else
		text_add(&line, "default, no overlay entry knows it");
	out_line(o, "%s%s %s is %s%s: %s", out_bold(o), to ? "to" : "from",
		 prefix_format(&e->target, target), verdict, out_plain(o), text_get(&line));
	text_free(&line);
}

static void warn_bypass(const struct explain *e)
{
	if (e->book->instance->knobs->bypass > e->book->clock.jiffies)
		out_line(e->ctx->out, "%sbut a bypass is on: everything passes%s (weir status)",
			 out_red(e->ctx->out), out_plain(e->ctx->out));
}

static int parse_target(const char *word, struct prefix *ret, struct err *err)
{
	if (addr_looks_like(word, strlen(word)))
		return prefix_parse(word, strlen(word), ret, NULL, err);
	err_input(err, "'%s' is not an address", word);
	return err_hint(err, "weir list shows which addresses a name holds");
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_BOOK struct book *book = NULL;
	struct explain e = {.ctx = ctx};
	int code = args_expect_words(args, 1, 1, "the address", err);

	if (!code)
		code = parse_target(args->words.at[0], &e.target, err);
	if (!code)
		code = pins_ready(err);
	if (!code)
		code = book_read(ctx->instance, &book, err);
	if (code)
		return code;
	e.book = book;
	records_covering(&book->records, &e.target, see, &e);
	out_set_string(ctx->out, "address", args->words.at[0]);
	show_side(&e, false);
	show_side(&e, true);
	out_array(ctx->out, "entries");
	records_covering(&book->records, &e.target, show_record, &e);
	out_end(ctx->out);
	warn_bypass(&e);
	return 0;
}

const struct command cmd_explain = {
	.name = "explain",
	.usage = "ADDRESS",
	.summary = "say what happens to an address, and because of what",
	.text = "Names every overlay entry that knows the address or a prefix around it.",
	.run = run,
};
