// SPDX-License-Identifier: GPL-2.0-only
// A line of weir status for each feed.
#include "ctl/cmd/status_feeds.h"

#include "ctl/base/num.h"
#include "ctl/base/text.h"

static void add_list(const char *list, struct text *to)
{
	if (list)
		text_addf(to, ", list '%s'", list);
}

static void add_entries(const struct json *feed, struct text *to)
{
	uint64_t entries = json_get_u64(feed, "entries");
	num_text n;

	text_addf(to, ", %s %s", num_format_grouped(entries, n),
		  num_plural(entries, "entry", "entries"));
}

// An answer that the text has not changed counts as well.
static void add_age(const struct json *feed, uint64_t now_s, struct text *to)
{
	uint64_t good_s = json_get_u64(feed, "good_s");
	num_text age;

	if (!good_s)
		text_add(to, ", not fetched yet");
	else
		text_addf(
			to, ", fetched %s ago",
			num_format_duration_ms(now_s > good_s ? (now_s - good_s) * 1000 : 0, age));
}

static void add_next(const struct json *feed, uint64_t now_s, struct text *to)
{
	uint64_t failures = json_get_u64(feed, "failures"), next_s = json_get_u64(feed, "next_s");
	num_text next;

	if (failures)
		text_addf(to, ", FAILING (%llu in a row)", (unsigned long long)failures);
	if (next_s > now_s)
		text_addf(to, ", next in %s",
			  num_format_duration_ms((next_s - now_s) * 1000, next));
	else
		text_add(to, ", next now");
}

// "feed      https://example.net/drop.txt, list 'drop', 1,204 entries, fetched 12m ago, next in 48m".
static void show_feed(struct context *ctx, const struct json *feed, uint64_t now_s)
{
	CLEANUP_TEXT struct text line = {0};
	const char *url = json_get_string(feed, "public_url");

	if (!url)
		return;
	text_add(&line, url);
	add_list(json_get_string(feed, "list"), &line);
	add_entries(feed, &line);
	add_age(feed, now_s, &line);
	add_next(feed, now_s, &line);
	out_line(ctx->out, "feed      %s", text_get(&line));
}

void status_feeds_show(struct context *ctx, const struct presence *agent, uint64_t now_s)
{
	const struct json *feeds = json_get(presence_part(agent, "feeds"), "feeds");

	for (size_t n = 0; n < json_length(feeds); n++)
		show_feed(ctx, json_at(feeds, n), now_s);
}
