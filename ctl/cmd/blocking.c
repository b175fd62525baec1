// SPDX-License-Identifier: GPL-2.0-only
// Reads, resolves, checks and records one command block or allow.
#include "ctl/cmd/blocking.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/agent/process.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/block_url.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/control/records_group.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/route.h"

#define LIST_IN_LINE   8 // entries named in the result line
#define RESOLVE_MAX_MS 600000
#define SKIPPED_SHOWN  8 // ignored answers that get a warning each

void blocking_free(struct blocking *r)
{
	targets_free(&r->targets);
	block_url_free(r->url);
	free(r->note);
	guard_free(&r->guard);
}

// Returns the time in seconds, rounded up: an entry for one second lasts at least one.
static uint64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec + (now.tv_nsec > 0);
}

static int read_resolver_timeout(const struct args *args, unsigned *ret, struct err *err)
{
	const char *text = args_value_or(args, "resolver-timeout", PROCESS_TIMEOUT);
	uint64_t ms = 0;

	if (text && num_parse_time_ms(text, strlen(text), 1, RESOLVE_MAX_MS, &ms))
		return err_input(err, "'%s' is not a time of 1ms to 10m", text);
	*ret = (unsigned)ms;
	return 0;
}

int blocking_read(const struct context *ctx, const struct args *args, bool allow,
		  struct blocking *r, struct err *err)
{
	bool live = args_has(args, "live");
	int code = sets_check_options(args, err);

	if (code)
		return code;
	r->args = args;
	r->verb = allow ? "allow" : "block";
	r->force = args_has(args, "force");
	r->dry_run = args_has(args, "dry-run");
	r->intent = (struct intent){.allow = allow,
				    .now_s = wall_clock(),
				    .by = r->by,
				    .fleeting = live || args_has(args, "volatile")};
	show_author(ctx, r->by, sizeof(r->by));
	code = overlay_kinds(args, allow, kinds_of(allow, true, false), &r->intent.kinds, err);
	if (code)
		return code;
	if ((code = overlay_until(args, r->intent.now_s, &r->intent.until_s, err)))
		return code;
	if ((code = overlay_text(args, "origin", &r->intent.origin, err)))
		return code;
	if ((code = overlay_text(args, "sync", &r->intent.list, err)))
		return code;
	if ((code = overlay_group(args, allow, &r->intent.group, err)))
		return code;
	r->intent.note = r->note = overlay_note(args);
	if ((code = read_resolver_timeout(args, &r->resolver_timeout_ms, err)))
		return code;
	if ((code = block_url_read(ctx, r, err)))
		return code;
	if ((code = overlay_read_targets(args, args_has(args, "keep-going"), r->intent.list[0],
					 &r->targets, &r->bad, err)))
		return code;
	if (!r->targets.items.items.n && !r->intent.list[0])
		return err_input(
			err, "missing WHAT to %s: an address, a prefix, a host name, or -f FILE",
			r->verb);
	if (live && (r->intent.list[0] || args_has(args, "for")))
		return err_input(err, "--live cannot be combined with --for or --sync");
	return 0;
}

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
static int skip_answers(struct blocking *r, const struct guard *guard, struct err *err)
{
	struct skipped skipped = {0};
	int code = targets_skip(&r->targets, guard, args_has(r->args, "wide"), answer_skipped,
				&skipped, err);

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

int blocking_answered(struct blocking *r, const struct guard *guard, struct err *err)
{
	int code = targets_check_answers(&r->targets, err);

	if (code) {
		hint_interface(&r->targets, err);
		return code;
	}
	warn_missing(&r->targets);
	if (r->intent.allow && r->targets.names_n)
		log_warning("the owner of the name decides which addresses are allowed");
	return r->intent.allow ? 0 : skip_answers(r, guard, err);
}

struct dns_options blocking_resolver(const struct context *ctx, const struct blocking *r,
				     char path[BLOCKING_PATH])
{
	// The file that `ip netns exec` shows to commands in that namespace.
	snprintf(path, BLOCKING_PATH, "/etc/netns/%s/resolv.conf", ctx->netns ? ctx->netns : "");
	return (struct dns_options){
		.servers = args_value_or(r->args, "resolver", PROCESS_RESOLVER),
		.resolv_conf = ctx->netns && file_exists(path) ? path : NULL,
		.timeout_ms = r->resolver_timeout_ms,
		.search = true,
	};
}

int blocking_resolve(const struct context *ctx, struct blocking *r, const struct guard *guard,
		     struct err *err)
{
	struct targets *t = &r->targets;
	char path[BLOCKING_PATH];
	struct dns_options options = blocking_resolver(ctx, r, path);
	int code = targets_resolve(&t, 1, &options, err);

	return code ? code : blocking_answered(r, guard, err);
}

bool blocking_extends(const struct blocking *r)
{
	return r->targets.items.names || r->targets.items.geos || r->intent.group;
}

int blocking_guard(const struct context *ctx, const struct blocking *r, bool names, bool force,
		   struct guard *ret, struct err *err)
{
	char path[BLOCKING_PATH];
	struct dns_options dns = blocking_resolver(ctx, r, path);
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

static int check_prefix(const struct blocking *r, const struct guard *guard, const struct prefix *p,
			const char *what, struct err *err)
{
	const struct guarded *hit = guard_find(guard, p, GUARD_WARN);
	addr_text where;

	if (!hit)
		return 0;
	addr_format(&hit->addr, where);
	if (hit->level == GUARD_REFUSE && !r->force) {
		err_refused(err, "blocking %s would cut off %s, %s", what, where, hit->what);
		err_hint(err, "--force blocks it anyway");
		return -EPERM;
	}
	log_warning("%s contains %s, %s", what, where, hit->what);
	return 0;
}

static int check_ranges(const struct blocking *r, const struct guard *guard, const char *name,
			struct err *err)
{
	const struct geo_ranges *ranges = targets_ranges(&r->targets, name);
	int code = 0;

	if (!ranges)
		return 0;
	vec_each (&ranges->prefixes, prefix)
		if ((code = check_prefix(r, guard, prefix, name, err)))
			return code;
	return 0;
}

int blocking_check(const struct blocking *r, const struct guard *guard, struct err *err)
{
	vec_each (&r->targets.items.items, item) {
		addr_text what;
		int code = item->name ? check_ranges(r, guard, item->name, err)
				      : check_prefix(r, guard, &item->prefix,
						     prefix_format(&item->prefix, what), err);

		if (code)
			return code;
	}
	return 0;
}

void blocking_warn_no_forwarding(unsigned kinds)
{
	unsigned to = kinds_of(true, false, true) | kinds_of(false, false, true);

	if (kinds & to && !route_forwards(4) && !route_forwards(6))
		log_warning(
			"this host does not forward packets: entries for destinations affect only "
			"packets to this host");
}

int blocking_open(const struct context *ctx, const char *verb, bool dry_run, struct store **ret,
		  struct err *err)
{
	int code;

	if (!bpffs_exist(ctx->instance))
		return not_attached(ctx->instance, verb, err);
	if ((code = store_open(ctx->instance, ctx->line, ret, err)))
		return code;
	// Interfaces of an expired trial pass everything, so entries would have no effect there.
	if (!dry_run && (code = recover_trial((*ret)->instance, err)))
		return code;
	return need_attached((*ret)->instance, verb, err);
}

static size_t list_size(const struct store *b, const char *list)
{
	size_t n = 0;

	vec_each (&b->records.list, record)
		n += !strcmp(b->records.owners.at[record->owner].list, list);
	return n;
}

// A list that shrinks to less than half is more often a broken download than an intended change.
static int check_shrink(const struct blocking *r, size_t before, struct err *err)
{
	size_t after = r->listed;

	if (r->force || !r->change.removed || after * 2 > before)
		return 0;
	err_refused(err, "list '%s' would shrink from %zu to %zu %s", r->intent.list, before, after,
		    num_plural(after, "entry", "entries"));
	err_hint(err, "--force accepts it");
	return -EPERM;
}

int blocking_record(struct blocking *r, struct store *store, struct err *err)
{
	bool list = r->intent.list[0];
	int code = targets_load(&r->targets, &r->intent, store, err);
	size_t before;

	if (code)
		return code;
	before = list ? list_size(store, r->intent.list) : 0;
	targets_record(&r->targets, &r->intent, store, &r->change);
	if (!list)
		return 0;
	r->listed = list_size(store, r->intent.list);
	return check_shrink(r, before, err);
}

// " (1204 prefixes)" of a country
static void add_size(struct text *line, const struct geo_ranges *ranges)
{
	if (ranges)
		text_addf(line, " (%zu %s)", ranges->prefixes.n,
			  num_plural(ranges->prefixes.n, "prefix", "prefixes"));
}

static void name_targets(struct text *line, const struct targets *t, struct out *o)
{
	size_t shown = 0;

	out_array(o, "what");
	vec_each (&t->items.items, item) {
		addr_text text;
		const struct dns_answer *answer = item->name ? targets_answer(t, item->name) : NULL;
		const char *what = item->name ? item->name : prefix_format(&item->prefix, text);

		if (shown < LIST_IN_LINE) {
			text_addf(line, "%s%s", shown ? " " : "", what);
			if (item->name)
				add_size(line, targets_ranges(t, item->name));
			out_item_string(o, what);
		}
		for (size_t a = 0; answer && a < answer->n && shown < LIST_IN_LINE; a++)
			text_addf(line, "%s%s%s", a ? " " : " (",
				  addr_format(&answer->addrs[a], text),
				  a + 1 == answer->n ? ")" : "");
		shown++;
	}
	if (shown > LIST_IN_LINE)
		text_addf(line, " and %zu more", shown - LIST_IN_LINE);
	out_end(o);
}

static void set_counts(struct out *o, const struct blocking *r)
{
	const struct records_change *change = &r->change;

	out_set_u64(o, "changed", change->added + change->extended + change->removed);
	out_set_u64(o, "added", change->added);
	out_set_u64(o, "extended", change->extended);
	out_set_u64(o, "removed", change->removed);
	out_set_u64(o, "unchanged", change->unchanged);
	if (r->bad)
		out_set_u64(o, "bad", r->bad);
	out_set_bool(o, "dry_run", r->dry_run);
}

void blocking_warn_overruled(const struct blocking *r, const struct store *b)
{
	if (r->intent.allow)
		return;
	vec_each (&r->targets.items.items, item)
		for (uint8_t kind = OVERLAY_ALLOW_FROM; kind < OVERLAY_KINDS; kind += 2) {
			const struct reference *allow;
			const struct owner *h;
			addr_text text;
			size_t n = 0;

			if (item->name ||
			    !(allow = records_find(&b->records, &item->prefix, kind, &n)))
				continue;
			h = &b->records.owners.at[allow->owner];
			prefix_format(&item->prefix, text);
			log_warning("%s is also allowed, and allow beats block: weir unallow %s",
				    text, h->name[0] ? h->name : text);
		}
}

// Returns when the entry of the only target expires, since another reference may keep it longer.
// With both directions it is the earlier of the two times.
static uint64_t stays_until(const struct blocking *r, const struct store *b)
{
	const struct item *item = r->targets.items.items.at;
	uint64_t all = UINT64_MAX;

	if (r->targets.items.items.n != 1 || item->name)
		return r->intent.until_s;
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		uint64_t latest = r->intent.until_s;
		const struct reference *record;
		size_t n = 0;

		if (!(r->intent.kinds & 1u << kind))
			continue;
		record = records_find(&b->records, &item->prefix, kind, &n);
		for (size_t k = 0; record && k < n; k++)
			latest = record[k].until_s > latest ? record[k].until_s : latest;
		all = latest < all ? latest : all;
	}
	return all;
}

// Does any line of the list have a time or a direction?
static bool lines_differ(const struct blocking *r)
{
	vec_each (&r->targets.items.items, item)
		if (item->for_ms || item->to || item->both)
			return true;
	return false;
}

// "list drop (120 entries: 3 added, 1 removed)"
static void name_list(struct text *line, const struct blocking *r)
{
	text_addf(line, "list %s (%zu %s: %zu added, %zu removed)", r->intent.list, r->listed,
		  num_plural(r->listed, "entry", "entries"), r->change.added, r->change.removed);
}

static const char *direction(const struct blocking *r)
{
	bool from = r->intent.kinds & kinds_of(r->intent.allow, true, false);
	bool to = r->intent.kinds & kinds_of(r->intent.allow, false, true);

	return from && to ? "from and to" : to ? "to" : "from";
}

void blocking_add_change(struct text *line, const struct blocking *r)
{
	const struct records_change *change = &r->change;

	if (!change->added && !change->extended && !change->removed)
		text_add(line, "; no change");
	else if (change->removed && !r->intent.list[0])
		text_addf(line, "; %zu former %s removed", change->removed,
			  num_plural(change->removed, "address", "addresses"));
}

// Returns the group of the origin that the host is in now; NULL: none.
static const struct reference *group_of(const struct blocking *r, const struct store *b,
					const struct item *item)
{
	for (uint8_t kind = 0; !item->name && kind < OVERLAY_KINDS; kind++) {
		size_t n = 0;
		const struct reference *record = records_find(&b->records, &item->prefix, kind, &n);

		for (size_t k = 0; k < n; k++) {
			const char *origin = b->records.owners.at[record[k].owner].origin;
			const struct reference *group =
				records_group_of(&b->records, &b->records.list, &record[k]);

			if (group && !strcmp(origin, r->intent.origin))
				return group;
		}
	}
	return NULL;
}

// Collects the groups in the order of the records, without duplicates.
struct groups {
	const struct reference **at;
	size_t n, cap;
};

static int compare_groups(const void *a, const void *b)
{
	const struct reference *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void collect_groups(const struct blocking *r, const struct store *b, struct groups *ret)
{
	size_t kept = 0;

	vec_each (&r->targets.items.items, item) {
		const struct reference *group = group_of(r, b, item);

		if (group)
			vec_push(ret, group);
	}
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare_groups);
	vec_each (ret, group)
		if (!kept || ret->at[kept - 1] != *group)
			ret->at[kept++] = *group;
	ret->n = kept;
}

void blocking_add_groups(struct text *line, const struct blocking *r, const struct store *b,
			 struct out *o)
{
	CLEANUP_VEC struct groups groups = {0};
	addr_text text;
	size_t hosts;

	if (!r->intent.group)
		return;
	collect_groups(r, b, &groups);
	out_array(o, "groups");
	vec_each (&groups, group)
		out_item_string(o, prefix_format(&(*group)->prefix, text));
	out_end(o);
	if (!groups.n)
		return;
	hosts = records_group_size(&b->records, &b->records.list, groups.at[0]);
	text_addf(line, "; %zu %s of %s are blocked as one entry", hosts,
		  num_plural(hosts, "host", "hosts"), prefix_format(&groups.at[0]->prefix, text));
	if (groups.n > 1)
		text_addf(line, ", and so are those of %zu more %s", groups.n - 1,
			  num_plural(groups.n - 1, "prefix", "prefixes"));
}

void blocking_describe(struct text *line, const struct blocking *r, const struct store *b,
		       struct out *o)
{
	const char *kept;
	uint64_t until = stays_until(r, b);

	show_kept(b->instance->name, r->intent.fleeting, &kept);
	text_addf(line, "%s packets %s ",
		  r->dry_run ? (r->intent.allow ? "would allow" : "would block")
			     : (r->intent.allow ? "allowed" : "blocked"),
		  direction(r));
	if (r->intent.list[0])
		name_list(line, r);
	else
		name_targets(line, &r->targets, o);
	if (lines_differ(r)) {
		text_add(line, ", with the time and direction of each line,");
	} else if (until != RECORD_NEVER) {
		text_add(line, " ");
		show_until(line, until, r->intent.now_s);
	}
	set_counts(o, r);
	out_set_time(o, "until", until);
	out_set_string(o, "kept", kept);
}
