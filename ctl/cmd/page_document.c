// SPDX-License-Identifier: GPL-2.0-only
// Asks one command after the other.
#include "ctl/cmd/page_document.h"

#include "ctl/base/mem.h"
#include "ctl/cmd/document.h"
#include "ctl/cmd/watch_last.h"

#define ENTRIES "30" // those that have caught most
#define CHANGES "12"
#define EVENTS  12

static void set_error(struct out *o, const char *key, const struct err *why)
{
	out_object(o, key);
	out_object(o, "error");
	out_set_string(o, "text", why->text);
	out_set_string(o, "hint", why->hint[0] ? why->hint : NULL);
	out_end(o);
	out_end(o);
}

// A policy without services is an answer too.
static void set_part(struct context *ctx, const char *key, struct document *d)
{
	struct err why = {0};
	int code = document_ask(ctx, d, &why);

	if (code && d->command == &cmd_service && why.kind == ERR_INPUT)
		out_set_string(ctx->out, key, NULL);
	else if (code)
		set_error(ctx->out, key, &why);
	else
		out_set_json(ctx->out, key, d->json);
	json_free(TAKE_PTR(d->json));
}

static void set_events(struct context *ctx)
{
	struct err why = {0};

	if (watch_last(ctx, "events", EVENTS, &why))
		set_error(ctx->out, "events", &why);
}

int page_document(struct context *ctx, struct err *err)
{
	struct {
		const char *key;
		struct document document;
	} parts[] = {
		{"stats", {.command = &cmd_stats}},
		{"services", {.command = &cmd_service}},
		{"quick", {.command = &cmd_rule, .options = {"list"}}},
		{"entries",
		 {.command = &cmd_list, .options = {"--sort=packets", "--top=" ENTRIES}}},
		{"history", {.command = &cmd_history}},
		{"changes", {.command = &cmd_changes, .options = {"--last=" CHANGES}}},
	};
	struct document status = {.command = &cmd_status};
	int code = document_ask(ctx, &status, err);

	if (code) {
		json_free(status.json);
		return code;
	}
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_json(ctx->out, "status", status.json);
	json_free(status.json);
	for (size_t n = 0; n < ARRAY_SIZE(parts); n++)
		set_part(ctx, parts[n].key, &parts[n].document);
	set_events(ctx);
	return 0;
}
