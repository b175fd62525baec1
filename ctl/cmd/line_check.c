// SPDX-License-Identifier: GPL-2.0-only
// Resolves the names of lines, and refuses what must not be blocked, before any change.
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/agent/process.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/line.h"
#include "ctl/net/route.h"

#define SKIPPED_SHOWN 8 // ignored answers that get a warning each

struct skipped {
	size_t n;
};

static void answer_skipped(void *ctx, const char *name, const struct addr *a, const char *why)
{
	struct skipped *skipped = ctx;
	addr_text text;

	if (++skipped->n > SKIPPED_SHOWN)
		return;
	log_warning("'%s' has address %s, %s: ignored", name, addr_format(a, text), why);
}

// Warns about an address family that could not be looked up, since the operator may believe that
// both are blocked.
static void warn_missing(const struct targets *t)
{
	for (size_t n = 0; n < t->names_n; n++) {
		const struct dns_answer *answer = &t->answers[n];

		if (answer->v4_failed || answer->v6_failed)
			log_warning("'%s': the lookup of IPv%d addresses failed; only IPv%d is "
				    "matched",
				    t->names[n], answer->v4_failed ? 4 : 6,
				    answer->v4_failed ? 6 : 4);
	}
}

// A name may have thousands of addresses: the first few ignored ones are listed.
static int skip_answers(struct batch_line *line, const struct guard *guard, struct err *err)
{
	struct skipped skipped = {0};
	int code = targets_skip(&line->change.targets, guard, args_has(line->args, "wide"),
				answer_skipped, &skipped, err);

	if (skipped.n > SKIPPED_SHOWN)
		log_warning("%zu more %s ignored", skipped.n - SKIPPED_SHOWN,
			    num_plural(skipped.n - SKIPPED_SHOWN, "address is", "addresses are"));
	return code;
}

// "weir block eth0 192.0.2.1": the interface is an option.
static void hint_interface(const struct targets *t, struct err *err)
{
	for (size_t n = 0; n < t->names_n; n++)
		if (t->answers[n].error && if_nametoindex(t->names[n]))
			err_hint(err, "'%s' is an interface: write -i %s", t->names[n],
				 t->names[n]);
}

static int take_answers(struct batch_line *line, const struct guard *guard, struct err *err)
{
	struct entry_change *c = &line->change;
	int code = targets_check_answers(&c->targets, err);

	if (code) {
		hint_interface(&c->targets, err);
		return code;
	}
	warn_missing(&c->targets);
	if (c->intent.allow && c->targets.names_n)
		log_warning("the owner of the name decides which addresses are allowed");
	return c->intent.allow ? 0 : skip_answers(line, guard, err);
}

struct dns_options line_resolver(const struct context *ctx, const struct batch_line *line,
				 char path[LINE_PATH])
{
	// The file that `ip netns exec` shows to commands in that namespace.
	snprintf(path, LINE_PATH, "/etc/netns/%s/resolv.conf", ctx->netns ? ctx->netns : "");
	return (struct dns_options){
		.servers = args_value_or(line->args, "resolver", PROCESS_RESOLVER),
		.resolv_conf = ctx->netns && file_exists(path) ? path : NULL,
		.timeout_ms = line->resolver_timeout_ms,
		.search = true,
	};
}

// Collects the addresses that must not be cut off, with the peers of all logins if the commands
// have names or the like (`names`). If that fails, blocking is refused without force.
static int collect(const struct context *ctx, const struct batch_line *line, bool names, bool force,
		   struct guard *ret, struct err *err)
{
	char path[LINE_PATH];
	struct dns_options dns = line_resolver(ctx, line, path);
	struct err why = {0};
	int code = guard_collect(ctx->session_here ? &ctx->session : NULL, &dns, ret, &why);

	code = code || !names ? code : guard_add_logins(ret, GUARD_NAME, &why);
	ret->partial = code;
	if (!code)
		return 0;
	if (force) {
		log_warning("%s; blocked anyway", why.text);
		return 0;
	}
	*err = why;
	err_prefix(err, "cannot tell what must not be blocked");
	err_hint(err, "--force blocks without this check");
	return code;
}

// XDP sees nothing of the loopback device, but outgoing connections may use it.
static int check_loopback(const struct entry_change *c, const struct prefix *p, const char *what,
			  struct err *err)
{
	static const struct prefix loopbacks[] = {
		{.addr = {.family = 4, .bytes = {127}}, .len = 8},
		{.addr = {.family = 6, .bytes = {[15] = 1}}, .len = 128},
	};

	if (c->force || !(c->intent.kinds & kinds_out(false)))
		return 0;
	for (size_t n = 0; n < ARRAY_SIZE(loopbacks); n++) {
		if (!prefix_overlaps(&loopbacks[n], p))
			continue;
		err_refused(err, "blocking connections to %s would cut off this host from itself",
			    what);
		err_hint(err, "--force blocks them anyway");
		return -EPERM;
	}
	return 0;
}

static int check_prefix(const struct entry_change *c, const struct guard *guard,
			const struct prefix *p, const char *what, struct err *err)
{
	const struct guarded *hit = guard_find(guard, p, GUARD_WARN);
	addr_text where;
	int code = check_loopback(c, p, what, err);

	if (code || !hit)
		return code;
	addr_format(&hit->addr, where);
	if (hit->level == GUARD_REFUSE && !c->force) {
		err_refused(err, "blocking %s would cut off %s, %s", what, where, hit->what);
		err_hint(err, "--force blocks it anyway");
		return -EPERM;
	}
	log_warning("%s contains %s, %s", what, where, hit->what);
	return 0;
}

static int check_ranges(const struct entry_change *c, const struct guard *guard, const char *name,
			struct err *err)
{
	const struct geo_ranges *ranges = targets_ranges(&c->targets, name);
	int code = 0;

	if (!ranges)
		return 0;
	vec_each (&ranges->prefixes, prefix)
		if ((code = check_prefix(c, guard, prefix, name, err)))
			return code;
	return 0;
}

static int check_items(const struct entry_change *c, const struct guard *guard, struct err *err)
{
	vec_each (&c->targets.items.items, item) {
		addr_text what;
		int code = item->name ? check_ranges(c, guard, item->name, err)
				      : check_prefix(c, guard, &item->prefix,
						     prefix_format(&item->prefix, what), err);

		if (code)
			return code;
	}
	return 0;
}

static void warn_no_forwarding(unsigned kinds)
{
	unsigned to = kinds_of(true, false, true) | kinds_of(false, false, true);

	if (kinds & to && !route_forwards(4) && !route_forwards(6))
		log_warning(
			"this host does not forward packets: entries for destinations affect only "
			"packets to this host");
}

// A line that is to be checked further: it adds, and nothing is wrong with it so far.
static bool adds(const struct batch_line *line)
{
	return !line->change.failed && !line->change.removes;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_resolver(const struct batch_line *a, const struct batch_line *b)
{
	return a->resolver_timeout_ms == b->resolver_timeout_ms &&
	       same_text(args_value(a->args, "resolver"), args_value(b->args, "resolver"));
}

static bool has_names(const struct targets *t)
{
	return t->items.names || t->items.geos;
}

static bool asks(const struct batch_line *line)
{
	const struct targets *t = &line->change.targets;

	return adds(line) && has_names(t) && !t->names;
}

// Asks for the names of this line and of all later ones that ask the same servers, in parallel.
static void resolve_with(struct batch *b, size_t first)
{
	CLEANUP_VEC VEC(struct targets *) together = {0};
	struct batch_line *line = b->lines.at[first];
	char path[LINE_PATH];
	struct dns_options options = line_resolver(b->ctx, line, path);
	struct err err = {0};

	for (size_t l = first; l < b->lines.n; l++)
		if (asks(b->lines.at[l]) && same_resolver(line, b->lines.at[l]))
			vec_push(&together, &b->lines.at[l]->change.targets);
	if (targets_resolve(together.at, together.n, &options, &err))
		batch_fail(b, line, &err);
}

static bool is_initial_namespace(void)
{
	struct stat own, initial;

	return !stat("/proc/self/ns/net", &own) && !stat("/proc/1/ns/net", &initial) &&
	       own.st_dev == initial.st_dev && own.st_ino == initial.st_ino;
}

// The guard knows only the addresses of the namespace in which it was collected.
static int check_everywhere(const struct entry_change *c, struct err *err)
{
	if (c->force || !(c->intent.kinds >> OVERLAY_BLOCK_OUT_ALL) || is_initial_namespace())
		return 0;
	err_refused(err, "cannot tell from this network namespace what must not be blocked in all "
			 "of them");
	err_hint(err,
		 "run it in the machine's own namespace, or --force blocks without this check");
	return -EPERM;
}

static void check_line(struct batch *b, struct batch_line *line)
{
	struct targets *t = &line->change.targets;
	struct err err = {0};

	if (has_names(t) && !t->asked)
		return; // the first line that asked the same servers has failed
	if (check_everywhere(&line->change, &err) ||
	    (has_names(t) && take_answers(line, &b->guard, &err)) ||
	    (!line->change.intent.allow && check_items(&line->change, &b->guard, &err)))
		batch_fail(b, line, &err);
}

// Does the command block addresses that the user has not written, by host names or --group?
static bool extends(const struct entry_change *c)
{
	return has_names(&c->targets) || c->intent.group;
}

// One collection for all lines: it fails the first line that needs it.
static void collect_guard(struct batch *b)
{
	struct batch_line *first = NULL;
	bool forced = true, names = false;
	struct err err = {0};

	vec_each (&b->lines, line) {
		if (!adds(*line) || (*line)->change.intent.allow)
			continue;
		names |= extends(&(*line)->change);
		if (!first || (forced && !(*line)->change.force))
			first = *line;
		forced &= (*line)->change.force;
	}
	if (!first || !collect(b->ctx, first, names, forced, &b->guard, &err))
		return;
	b->unguarded = true;
	batch_fail(b, first, &err);
}

void batch_check(struct batch *b)
{
	unsigned kinds = 0;

	collect_guard(b);
	for (size_t l = 0; l < b->lines.n; l++)
		if (asks(b->lines.at[l]))
			resolve_with(b, l);
	vec_each (&b->lines, line) {
		if (!adds(*line))
			continue;
		check_line(b, *line);
		kinds |= (*line)->change.intent.kinds;
	}
	warn_no_forwarding(kinds);
}
