// SPDX-License-Identifier: GPL-2.0-only
// Reads the options and targets of block, allow, unblock and unallow.
#include <string.h>
#include <time.h>

#include "ctl/agent/process.h"
#include "ctl/base/num.h"
#include "ctl/cmd/block_url.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/net/dns.h"

#define RESOLVE_MAX_MS 600000

// Returns the time in seconds, rounded up: an entry for one second lasts at least one.
static uint64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec + (now.tv_nsec > 0);
}

// The name servers are asked for what must not be blocked, too: a wrong list is no failure of that.
static int check_resolver(const struct args *args, struct err *err)
{
	struct dns_options options = {.servers = args_value(args, "resolver")};
	CLEANUP_FREE struct addr *servers = NULL;
	size_t n;

	return options.servers ? dns_servers(&options, &servers, &n, err) : 0;
}

static int read_resolver(const struct args *args, unsigned *ret, struct err *err)
{
	const char *text = args_value_or(args, "resolver-timeout", PROCESS_TIMEOUT);
	uint64_t ms = 0;
	int code = check_resolver(args, err);

	if (code)
		return code;
	if (text && num_parse_time_ms(text, strlen(text), 1, RESOLVE_MAX_MS, &ms))
		return err_input(err, "'%s' is not a time of 1ms to 10m", text);
	*ret = (unsigned)ms;
	return 0;
}

// A call has one direction.
static int refuse_directions(const struct entry_change *c, struct err *err)
{
	if (!(c->intent.kinds & kinds_out(c->intent.allow)))
		return 0;
	vec_each (&c->targets.items.items, item)
		if (item->to || item->both)
			return err_input(err, "line %u: '%s' cannot be combined with --out",
					 item->line, item->both ? "both" : "to");
	return 0;
}

static int read_addition(const struct context *ctx, struct batch_line *line, struct err *err)
{
	struct intent *intent = &line->change.intent;
	const struct args *args = line->args;
	bool live = args_has(args, "live"), list = intent->list[0];
	int code;

	line->change.force = args_has(args, "force");
	intent->fleeting |= live;
	if ((code = overlay_until(args, intent->now_s, &intent->until_s, err)))
		return code;
	if ((code = overlay_group(args, intent->allow, &intent->group, err)))
		return code;
	intent->note = line->note = overlay_note(args);
	if ((code = read_resolver(args, &line->resolver_timeout_ms, err)))
		return code;
	if ((code = block_url_read(ctx, line, err)))
		return code;
	if ((code = overlay_read_targets(args, args_has(args, "keep-going"), list,
					 &line->change.targets, &line->bad, err)))
		return code;
	if ((code = refuse_directions(&line->change, err)))
		return code;
	if (!line->change.targets.items.items.n &&
	    !(list && (args_has(args, "file") || args_has(args, "url"))))
		return err_input(
			err, "missing WHAT to %s: an address, a prefix, a host name, or -f FILE",
			line->change.verb);
	if (live && (list || args_has(args, "for")))
		return err_input(err, "--live cannot be combined with --for or --sync");
	return 0;
}

// All entries of a list or an origin are selected by --all, or by --sync or --origin without a
// target.
static int read_scope(const struct args *args, struct entry_change *c, struct err *err)
{
	bool all = args_has(args, "all"), named = c->targets.items.items.n;

	if (all && (named || c->intent.list[0] || args_has(args, "set")))
		return err_input(
			err, "--all can be combined with --origin, --to, --out and --dry-run only");
	if (named)
		c->scope = SCOPE_TARGETS;
	else if (c->intent.list[0])
		c->scope = SCOPE_LIST;
	else if (c->intent.origin[0])
		c->scope = SCOPE_ORIGIN;
	else if (all)
		c->scope = SCOPE_EVERYBODY;
	else
		return err_input(err,
				 "missing WHAT to %s: an address, a prefix, a host name, -f FILE, "
				 "--origin NAME, --sync NAME, or --all",
				 c->verb);
	return 0;
}

// A host could have this name, but the user means --all.
static int refuse_all(const struct entry_change *c, struct err *err)
{
	vec_each (&c->targets.items.items, item) {
		if (!item->name || item->line || strcmp(item->name, "all"))
			continue;
		err_input(err, "'all' is not an address");
		return err_hint(err, "weir %s --all removes all entries", c->verb);
	}
	return 0;
}

static int read_removal(struct batch_line *line, struct err *err)
{
	struct entry_change *c = &line->change;
	int code = overlay_read_targets(line->args, false, false, &c->targets, &line->bad, err);

	if (code)
		return code;
	if ((code = refuse_all(c, err)))
		return code;
	return read_scope(line->args, c, err);
}

int line_read(const struct context *ctx, const struct args *args, const struct line_verb *verb,
	      struct batch_line *line, struct err *err)
{
	bool allow = verb->allow, removes = verb->removes;
	struct entry_change *c = &line->change;
	int code = sets_check_options(args, err);

	if (code)
		return code;
	line->args = args;
	line->verb = verb;
	show_author(ctx, line->by, sizeof(line->by));
	line->dry_run = args_has(args, "dry-run");
	c->verb = verb->command->name;
	c->removes = removes;
	c->intent = (struct intent){.allow = allow,
				    .now_s = wall_clock(),
				    .note = "",
				    .by = line->by,
				    .fleeting = args_has(args, "volatile")};
	if ((code = overlay_kinds(args, allow, removes, &c->intent.kinds, err)))
		return code;
	if ((code = overlay_text(args, "origin", &c->intent.origin, err)))
		return code;
	if ((code = overlay_text(args, "sync", &c->intent.list, err)))
		return code;
	return removes ? read_removal(line, err) : read_addition(ctx, line, err);
}
