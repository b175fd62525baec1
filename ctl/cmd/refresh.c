// SPDX-License-Identifier: GPL-2.0-only
// weir refresh: resolves the host names of entries and of the policy again.
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/geo.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/answered.h"
#include "ctl/control/entries/targets.h"
#include "ctl/control/need_attached.h"
#include "ctl/control/refresh.h"
#include "ctl/datapath/bpffs.h"

#define NAMES_MAX (16u << 20) // bytes of a file of names

struct asked_names {
	char **at;
	size_t n, cap;
};

static void names_free(struct asked_names *names)
{
	vec_each (names, name)
		free(*name);
	vec_free(names);
}

static int read_file(const char *path, struct asked_names *ret, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	char *rest = NULL;
	size_t len;
	int code = file_read_stream(path, NAMES_MAX, &text, &len, err);

	if (code)
		return code;
	for (char *word = strtok_r(text, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest))
		vec_push(ret, target_name(word));
	return 0;
}

// "country" and the word after it.
static int read_place(enum geo_kind kind, const char *code, struct asked_names *ret,
		      struct err *err)
{
	struct geo geo;
	geo_text name;

	if (geo_parse(kind, code, strlen(code), &geo, err))
		return -EINVAL;
	vec_push(ret, mem_strdup(geo_format(&geo, name)));
	return 0;
}

static int read_words(const struct args *args, struct asked_names *ret, struct err *err)
{
	for (size_t n = 0; n < args->words.n; n++) {
		const char *word = args->words.at[n];
		enum geo_kind kind = geo_keyword(word, strlen(word));

		if (kind == GEO_NONE || n + 1 == args->words.n)
			vec_push(ret, target_name(word));
		else if (read_place(kind, args->words.at[++n], ret, err))
			return -EINVAL;
	}
	return 0;
}

static int read_names(const struct args *args, struct asked_names *ret, struct err *err)
{
	const char *path = args_value(args, "file");
	int code = read_words(args, ret, err);

	if (code)
		return code;
	return path ? read_file(path, ret, err) : 0;
}

static void report_place(struct context *ctx, const struct refresh_name *one)
{
	struct out *o = ctx->out;

	out_row(o);
	out_cell(o, "name", "NAME", one->name);
	out_cell(o, "in", "IN", !one->policy ? "entries" : !one->entries ? "policy" : "both");
	if (one->empty)
		out_set_bool(o, "empty", true);
}

static const char *kept_where(const struct refresh_name *one)
{
	return one->kept == REFRESH_ENTRIES  ? "entries"
	       : one->kept == REFRESH_POLICY ? "policy"
					     : "both";
}

static void report_asked(struct context *ctx, const struct refresh_name *one)
{
	struct out *o = ctx->out;
	num_text ends;

	report_place(ctx, one);
	out_cell_u64(o, "addresses", "ADDRESSES", one->addresses);
	out_cell_u64(o, "added", "ADDED", one->added);
	out_cell_u64(o, "leaving", "LEAVING", one->leaving);
	out_cell_u64(o, "released", "RELEASED", one->released);
	if (!one->hosts && !one->place && !one->error)
		out_cell_u64(o, "ttl_s", "TTL", one->ttl_s);
	if (one->ends_s != UINT64_MAX)
		out_cell_as(o, "ends_s", "ENDS", num_format_duration_ms(one->ends_s * 1000, ends),
			    one->ends_s);
	out_cell(o, "error", "ERROR", one->why);
	if (one->error)
		out_set_string(o, "errno", err_name(-one->error));
	if (one->kept)
		out_set_string(o, "kept", kept_where(one));
}

// Prints the last answers, without querying a name server.
static void report_listed(struct context *ctx, const struct refresh_name *one)
{
	uint64_t now_s = (uint64_t)time(NULL);
	uint64_t age_s = now_s > one->since_s ? now_s - one->since_s : 0;
	struct out *o = ctx->out;
	num_text age;

	report_place(ctx, one);
	if (one->ttl_s)
		out_cell_u64(o, "ttl_s", "TTL", one->ttl_s);
	if (one->since_s)
		out_cell_as(o, "age_s", "AGE", num_format_duration_ms(age_s * 1000, age), age_s);
}

static const char *text_of(const struct err *why)
{
	return why->text[0] ? why->text : NULL;
}

static void report_refusals(struct context *ctx, const struct refresh *r,
			    const struct refresh_refused *refused)
{
	out_set_bool(ctx->out, "trial", r->trial);
	out_set_bool(ctx->out, "switched", r->switched);
	out_set_string(ctx->out, "refused", text_of(&refused->policy));
	out_set_string(ctx->out, "entries_refused", text_of(&refused->entries));
	if (ctx->quiet)
		return;
	if (r->trial)
		out_line(ctx->out, "the names of the policy stay as they are during a trial");
	if (r->switched)
		out_line(ctx->out, "the policy has the new addresses, instance %s", ctx->instance);
}

static void report(struct context *ctx, const struct refresh *r, bool listed,
		   const struct refresh_refused *refused)
{
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_u64(ctx->out, "changed", r->changed);
	out_table(ctx->out, "names");
	vec_each (r, one)
		(listed ? report_listed : report_asked)(ctx, one);
	out_table_end(ctx->out);
	if (!r->n && !r->trial && !ctx->quiet && !text_of(&refused->policy))
		out_line(ctx->out, "no entry and no policy of instance %s has a name",
			 ctx->instance);
	report_refusals(ctx, r, refused);
}

static int check_known(const struct asked_names *names, const struct refresh *r, struct err *err)
{
	vec_each (names, name)
		if (!refresh_find(r, *name))
			return err_input(err, "no entry and no policy has the name '%s'", *name);
	return 0;
}

static int failures(const struct refresh *r, const struct refresh_refused *refused, struct err *err)
{
	size_t failed = 0;

	if (text_of(&refused->entries) && text_of(&refused->policy))
		log_warning("%s", refused->policy.text);
	if (text_of(&refused->entries) || text_of(&refused->policy)) {
		*err = text_of(&refused->entries) ? refused->entries : refused->policy;
		return err->code ? -err->code : -EINVAL;
	}
	for (size_t n = 0; n < r->n; n++)
		failed += r->at[n].error && !r->at[n].empty;
	if (!failed)
		return 0;
	err_stated(err, EIO, "%zu of %zu %s the previous addresses: their answers cannot be used",
		   failed, r->n, failed == 1 ? "names keeps" : "names keep");
	return -EIO;
}

static int ask(struct context *ctx, const struct args *args, unsigned where, struct refresh *r,
	       struct refresh_refused *refused, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	struct apply_options options = {
		.instance = ctx->instance,
		.command = ctx->line,
		.session = ctx->session_here ? &ctx->session : NULL,
	};
	struct policy_dns dns;
	struct err note = {0};
	int code = policy_dns(ctx, args, &dns, err);

	if (code)
		return code;
	options.dns = dns.options;
	if (refresh_run(c, &options, where, r, refused, &note))
		log_warning("%s: weir status shows older answers", note.text);
	policy_show_findings(ctx, c);
	return 0;
}

static unsigned where_of(const struct args *args)
{
	unsigned where = (args_has(args, "entries") ? REFRESH_ENTRIES : 0) |
			 (args_has(args, "policy") ? REFRESH_POLICY : 0) |
			 (args_has(args, "places") ? REFRESH_PLACES : 0);

	return where ? where : REFRESH_ALL;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(names_free) struct asked_names names = {0};
	CLEANUP_REFRESH struct refresh r = {0};
	struct refresh_refused refused = {0};
	unsigned where = where_of(args);
	int code = bpffs_ready(err);

	if (code)
		return code;
	if ((code = read_names(args, &names, err)))
		return code;
	if (!bpffs_exist(ctx->instance))
		return not_attached(ctx->instance, "refresh names", err);
	if ((code = refresh_list(ctx->instance, where, (const char *const *)names.at, names.n, &r,
				 &refused.policy, err)))
		return code;
	if (!args_has(args, "file") && !text_of(&refused.policy) &&
	    (code = check_known(&names, &r, err)))
		return code;
	if (args_has(args, "list"))
		answered_read(ctx->instance, &r);
	else if ((code = ask(ctx, args, where, &r, &refused, err)))
		return code;
	report(ctx, &r, args_has(args, "list"), &refused);
	return failures(&r, &refused, err);
}

static const struct args_option options[] = {
	{.name = "file",
	 .letter = 'f',
	 .arg = "FILE",
	 .help = "read names from FILE, - for standard input"},
	{.name = "list",
	 .help = "print the names with the age of their answers, and ask no name server"},
	{.name = "entries", .help = "only the host names of entries"},
	{.name = "policy", .help = "only the host names of the active policy"},
	{.name = "places", .help = "only the countries and autonomous systems of entries"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	{0},
};

const struct command cmd_refresh = {
	.name = "refresh",
	.usage = "[NAME…] [OPTIONS]",
	.summary = "resolve the host names of entries and of the policy again",
	.text = "New addresses are added. Addresses that a name has no more stay for a grace time, twice\n"
		"the TTL or at least a minute. A name without an answer keeps its addresses. The active\n"
		"policy keeps its text and its revision: the file on disk is not read. Countries and\n"
		"autonomous systems of entries get the prefixes of the present databases. The agent\n"
		"(weir run) does this for each name when its TTL ends, and when a database changes.",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run,
};
