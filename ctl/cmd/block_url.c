// SPDX-License-Identifier: GPL-2.0-only
// Fetches the list of a command with its text and its source.
#include "ctl/cmd/block_url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/control/feed_lists.h"
#include "ctl/control/feeds.h"

struct block_url {
	struct feed_list list;
	struct feed copy;           // the last good text
	struct fetch_result result; // the present fetch
};

void block_url_free(struct block_url *u)
{
	if (!u)
		return;
	feed_list_free(&u->list);
	feed_free(&u->copy);
	fetch_result_free(&u->result);
	free(u);
}

static int check_options(const struct args *args, struct err *err)
{
	static const char *const others[] = {"file", "set", "live", "volatile", "keep-going"};

	if (!args_has(args, "url")) {
		if (args_has(args, "every") || args_has(args, "ca"))
			return err_input(err, "--every and --ca need --url");
		return 0;
	}
	if (!args_has(args, "sync")) {
		err_input(err, "--url needs a list: --sync NAME");
		return err_hint(err, "weir unblock --sync NAME removes the list again");
	}
	if (args->words.n)
		return err_input(err, "--url cannot be combined with '%s'", args->words.at[0]);
	for (size_t o = 0; o < ARRAY_SIZE(others); o++)
		if (args_has(args, others[o]))
			return err_input(err, "--url cannot be combined with --%s", others[o]);
	return 0;
}

static int read_every(const struct args *args, uint64_t *ret, struct err *err)
{
	const char *text = args_value(args, "every");

	*ret = FEED_EVERY_MS;
	if (text &&
	    num_parse_time_ms(text, strlen(text), FEED_EVERY_MIN_MS, FEED_EVERY_MAX_MS, ret))
		return err_input(err, "--every '%s' is not a time of 1s to 30d", text);
	return 0;
}

static char *absolute(const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;

	return real || !path ? real : mem_strdup(path);
}

static int describe(const struct batch_line *line, struct feed_list *ret, struct err *err)
{
	const struct intent *intent = &line->change.intent;
	const struct args *args = line->args;
	const char *time = args_value(args, "for");

	*ret = (struct feed_list){
		.list = mem_strdup(intent->list),
		.origin = mem_strdup(intent->origin),
		.note = mem_strdup(intent->note),
		.url = mem_strdup(args_value(args, "url")),
		.ca = absolute(args_value(args, "ca")),
		.allow = intent->allow,
		.to = args_has(args, "to"),
		.both = args_has(args, "both"),
		.wide = args_has(args, "wide"),
		.mask = args_has(args, "mask"),
	};
	if (time)
		num_parse_time_ms(time, strlen(time), 1, ITEMS_FOR_MAX_MS, &ret->for_ms);
	return read_every(args, &ret->every_ms, err);
}

// With --force the text is fetched again even if it has not changed.
static int fetch(const struct context *ctx, const struct batch_line *line, struct block_url *u,
		 struct err *err)
{
	struct policy_url url = {.url = u->list.url, .ca = u->list.ca};
	char path[LINE_PATH];
	struct dns_options dns = line_resolver(ctx, line, path);
	struct fetch_request request = feed_request(&url, &u->copy, &dns);
	int code;

	if (line->change.force)
		request.etag = request.modified = NULL;
	if ((code = fetch_all(&request, 1, &u->result, err)))
		return code;
	if (u->result.code)
		*err = u->result.err;
	return u->result.code;
}

static void add_items(struct batch_line *line, const char *text, size_t len)
{
	struct items *items = &line->change.targets.items;
	size_t e = items->errors.n;

	items->mask = line->url->list.mask;
	items_add_text(items, text, len, args_has(line->args, "wide"));
	for (; e < items->errors.n; e++)
		items->errors.at[e].file = line->url->list.url;
}

int block_url_read(const struct context *ctx, struct batch_line *line, struct err *err)
{
	CLEANUP_FREE char *key = NULL;
	struct block_url *u;
	int code = check_options(line->args, err);

	if (code || !args_has(line->args, "url"))
		return code;
	line->url = u = mem_new(struct block_url);
	if ((code = describe(line, &u->list, err)))
		return code;
	key = feed_list_key(&u->list);
	feed_load(ctx->instance, key, &u->copy, NULL);
	if ((code = fetch(ctx, line, u, err)))
		return code;
	if (u->result.same)
		add_items(line, u->copy.text, u->copy.len);
	else
		add_items(line, u->result.text, u->result.len);
	return 0;
}

static int keep(const struct context *ctx, const struct batch_line *line, struct err *err)
{
	CLEANUP_FREE char *key = NULL;
	CLEANUP_FEED struct feed feed = {0};
	int code = feed_list_save(ctx->instance, &line->url->list, err);

	if (code || line->url->result.same)
		return code;
	key = feed_list_key(&line->url->list);
	feed = feed_of(key, &line->url->result, line->change.targets.items.items.n);
	return feed_save(ctx->instance, &feed, err);
}

void block_url_keep(const struct context *ctx, const struct batch_line *line)
{
	struct err why = {0};

	if (line->url && keep(ctx, line, &why))
		log_warning("%s; the list does not follow the feed", why.text);
}
