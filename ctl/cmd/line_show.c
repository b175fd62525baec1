// SPDX-License-Identifier: GPL-2.0-only
// Describes what a line has changed, and what still applies to its targets.
#include <errno.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/line.h"
#include "ctl/cmd/show.h"

#define LIST_IN_LINE 8 // entries named in the result line

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

static void set_counts(struct out *o, const struct batch_line *line)
{
	const struct records_change *done = &line->change.done;

	out_set_u64(o, "changed", done->added + done->extended + done->removed);
	out_set_u64(o, "removed", done->removed);
	out_set_bool(o, "dry_run", line->dry_run);
	if (line->change.removes)
		return;
	out_set_u64(o, "added", done->added);
	out_set_u64(o, "extended", done->extended);
	out_set_u64(o, "unchanged", done->unchanged);
	if (done->replaced)
		out_set_u64(o, "replaced", done->replaced);
	if (done->beside)
		out_set_u64(o, "beside", done->beside);
	if (line->bad)
		out_set_u64(o, "bad", line->bad);
}

// A block of outgoing connections has two halves, and an allow entry beats one of them.
static void warn_half(const struct change_overruled *one, const char *prefix)
{
	log_warning("%s %s are also allowed, and allow beats block: weir unallow %s%s",
		    one->calls ? "outgoing connections to" : "packets from", prefix,
		    one->calls ? "--out " : "", one->name[0] ? one->name : prefix);
}

void line_warn_overruled(const struct batch_line *line)
{
	bool calls = line->change.intent.kinds & kinds_out(false);
	addr_text text;

	vec_each (&line->change.overruled, one) {
		prefix_format(&one->prefix, text);
		if (calls)
			warn_half(one, text);
		else
			log_warning("%s is also allowed, and allow beats block: weir unallow %s",
				    text, one->name[0] ? one->name : text);
	}
}

static bool adds_out(const struct batch_line *line)
{
	const struct entry_change *c = &line->change;

	return !line->dry_run && !c->failed && !c->removes && c->intent.kinds & kinds_out(false);
}

bool batch_warn_limits(const struct batch *b)
{
	bool any = b->changed.instance && !b->dry_run, calls = false, whole = true, answers = false;

	vec_each (&b->lines, line) {
		if (!any || !adds_out(*line))
			continue;
		calls = true;
		whole &= (*line)->change.whole;
		answers |= (*line)->change.intent.kinds & kinds_of(false, true, false);
	}
	if (!calls)
		return false;
	if (!b->ctx->quiet)
		log_notice("not blocked: raw sockets (also of ping), forwarded packets, and "
			   "connections that are open already%s. Refused as well: TCP and UDP of "
			   "the kernel, such as of NFS (--errno refused ends its attempts)",
			   answers ? ", except by their answers" : "");
	if (!whole)
		log_warning("only processes of this container are covered: the root of cgroup 2 is "
			    "not visible here");
	return true;
}

// Does any line of the list have a time or a direction?
static bool lines_differ(const struct entry_change *c)
{
	vec_each (&c->targets.items.items, item)
		if (item->for_ms || item->to || item->both)
			return true;
	return false;
}

// "list drop (120 entries: 3 added, 1 removed)"
static void name_list(struct text *line, const struct entry_change *c)
{
	text_addf(line, "list %s (%zu %s: %zu added, %zu removed)", c->intent.list, c->listed,
		  num_plural(c->listed, "entry", "entries"), c->done.added, c->done.removed);
}

static const char *subject(const struct entry_change *c)
{
	bool from = c->intent.kinds & kinds_of(c->intent.allow, true, false);
	bool to = c->intent.kinds & kinds_of(c->intent.allow, false, true);

	if (c->intent.kinds & kinds_out(c->intent.allow))
		return from ? "outgoing connections to and packets from"
			    : "outgoing connections to";
	return from && to ? "packets from and to" : to ? "packets to" : "packets from";
}

// Do its entries concern packets, and not only calls?
static bool is_of_packets(const struct entry_change *c)
{
	return c->intent.kinds & kinds_of(c->intent.allow, true, true);
}

static void add_change(struct text *line, const struct entry_change *c)
{
	const struct records_change *change = &c->done;

	if (!change->added && !change->extended && !change->removed && !change->replaced)
		text_add(line, "; no change");
	else if (change->removed && !c->intent.list[0])
		text_addf(line, "; %zu former %s removed", change->removed,
			  num_plural(change->removed, "address", "addresses"));
	if (change->replaced)
		text_addf(line, "; %zu %s with another error or for fewer namespaces replaced",
			  change->replaced, num_plural(change->replaced, "entry", "entries"));
	if (change->beside)
		text_addf(line,
			  "; %zu former %s saved, wider or longer, and %s: weir unblock --out "
			  "removes all",
			  change->beside, num_plural(change->beside, "entry is", "entries are"),
			  num_plural(change->beside, "remains", "remain"));
}

static void add_groups(struct text *line, const struct entry_change *c, struct out *o)
{
	addr_text text;

	if (!c->intent.group)
		return;
	out_array(o, "groups");
	vec_each (&c->groups, group)
		out_item_string(o, prefix_format(group, text));
	out_end(o);
	if (!c->groups.n)
		return;
	text_addf(line, "; %zu %s of %s are blocked as one entry", c->hosts,
		  num_plural(c->hosts, "host", "hosts"), prefix_format(c->groups.at, text));
	if (c->groups.n > 1)
		text_addf(line, ", and so are those of %zu more %s", c->groups.n - 1,
			  num_plural(c->groups.n - 1, "prefix", "prefixes"));
}

static void describe_addition(struct text *text, const struct batch_line *line,
			      const char *instance, struct out *o)
{
	const struct entry_change *c = &line->change;
	const char *kept;

	show_kept(instance, c->intent.fleeting, &kept);
	text_addf(text, "%s %s ",
		  line->dry_run ? (c->intent.allow ? "would allow" : "would block")
				: (c->intent.allow ? "allowed" : "blocked"),
		  subject(c));
	if (c->intent.list[0])
		name_list(text, c);
	else
		name_targets(text, &c->targets, o);
	if (lines_differ(c)) {
		text_add(text, ", with the time and direction of each line,");
	} else if (c->until_s != RECORD_NEVER) {
		text_add(text, " ");
		show_until(text, c->until_s, c->intent.now_s);
	}
	out_set_time(o, "until", c->until_s);
	out_set_string(o, "kept", kept);
}

// The removed items, in the words of the command line.
static void add_what(struct text *t, const struct entry_change *c)
{
	const struct item *item = c->targets.items.items.at;
	addr_text text;

	if (c->targets.items.items.n == 1)
		text_add(t, item->name ? item->name : prefix_format(&item->prefix, text));
	else
		text_addf(t, "%zu %s", c->done.removed,
			  num_plural(c->done.removed, "entry", "entries"));
	if (c->intent.list[0])
		text_addf(t, " of list %s", c->intent.list);
	if (c->intent.origin[0])
		text_addf(t, " of origin %s", c->intent.origin);
}

static void describe_nothing(struct text *text, const struct intent *intent)
{
	text_add(text, "nothing to remove for ");
	if (intent->list[0])
		text_addf(text, "list %s", intent->list);
	if (intent->origin[0])
		text_addf(text, "%sorigin %s", intent->list[0] ? " of " : "", intent->origin);
}

static void describe_removal(struct text *text, const struct batch_line *line)
{
	const struct entry_change *c = &line->change;

	if (!c->done.removed && (c->scope == SCOPE_LIST || c->scope == SCOPE_ORIGIN)) {
		describe_nothing(text, &c->intent);
		return;
	}
	if (!c->done.removed && c->targets.items.items.n == 1)
		text_add(text, "nothing to remove for ");
	else if (line->dry_run)
		text_add(text, c->intent.allow ? "would unallow " : "would unblock ");
	else
		text_add(text, c->intent.allow ? "unallowed " : "unblocked ");
	add_what(text, c);
}

void line_describe(struct text *text, const struct batch_line *line, const char *instance,
		   const struct instance *i, struct out *o, struct err *ret_open)
{
	set_counts(o, line);
	if (line->change.removes) {
		describe_removal(text, line);
		return;
	}
	describe_addition(text, line, instance, o);
	if (i && is_of_packets(&line->change)) {
		text_add(text, " on ");
		show_interfaces(text, i, o, ret_open);
	}
	add_change(text, &line->change);
	add_groups(text, &line->change, o);
}

// The command that allows the target.
static void add_way(struct text *way, const struct entry_change *c, const struct change_left *l,
		    const char *target)
{
	bool allow = c->intent.allow;
	addr_text wide;

	text_addf(way, "weir %s", allow ? "unallow" : "unblock");
	if (l->owner.origin[0])
		text_addf(way, " --origin %s", l->owner.origin);
	if (l->owner.list[0])
		text_addf(way, " --sync %s", l->owner.list);
	text_addf(way, " %s removes it",
		  l->owner.name[0] ? l->owner.name : prefix_format(&l->by.prefix, wide));
	if (!allow)
		text_addf(way, "; weir allow %s allows it", target);
}

// X stays blocked by something else: by what and by whom.
static void add_stays(struct text *t, const struct entry_change *c, const struct change_left *l,
		      const char *target)
{
	CLEANUP_TEXT struct text who = {0};
	addr_text wide;

	show_owner(&who, &l->owner);
	text_addf(t, "%s stays %s: %s %s, by %s%s%s", target,
		  c->intent.allow ? "allowed" : "blocked", kind_text(l->by.kind),
		  prefix_format(&l->by.prefix, wide), l->owner.by[0] ? l->owner.by : "?",
		  who.len ? ", " : "", text_get(&who));
}

static int say_stays(const struct entry_change *c, const struct change_left *l, struct err *err)
{
	CLEANUP_TEXT struct text stays = {0}, way = {0};
	size_t more = c->left.n - 1;
	addr_text target;

	add_stays(&stays, c, l, prefix_format(&l->meant, target));
	if (more)
		text_addf(&stays, "; so %s %zu more", more == 1 ? "does" : "do", more);
	add_way(&way, c, l, target);
	if (!l->failure) {
		log_warning("%s (%s)", text_get(&stays), text_get(&way));
		return 0;
	}
	err_refused(err, "%s", text_get(&stays));
	err_hint(err, "%s", text_get(&way));
	return -EPERM;
}

static void set_stays(struct out *o, const struct change_left *l)
{
	addr_text text;

	out_row(o);
	out_cell(o, "address", NULL, prefix_format(&l->meant, text));
	out_cell(o, "kind", NULL, kind_key(l->by.kind));
	out_cell(o, "prefix", NULL, prefix_format(&l->by.prefix, text));
	out_cell(o, "by", NULL, l->owner.by);
	out_cell(o, "origin", NULL, l->owner.origin);
	out_cell(o, "list", NULL, l->owner.list);
	out_cell(o, "name", NULL, l->owner.name);
	out_cell(o, "note", NULL, l->owner.note);
}

int line_report_left(const struct batch_line *line, struct out *o, struct err *err)
{
	const struct change_left *worst = NULL;

	out_table(o, "stays");
	vec_each (&line->change.left, l) {
		set_stays(o, l);
		if (!worst || (l->failure && !worst->failure))
			worst = l;
	}
	out_table_end(o);
	return worst ? say_stays(&line->change, worst, err) : 0;
}
