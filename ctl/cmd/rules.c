// SPDX-License-Identifier: GPL-2.0-only
// Prints the rules of the active policy with their counters, and quick rules.
#include "ctl/cmd/rules.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/control/active.h"
#include "ctl/control/tracking.h"
#include "ctl/control/unroutable.h"
#include "ctl/datapath/rule_counts.h"
#include "ctl/net/conntrack.h"
#include "ctl/policy/words.h"

static int show_rule(struct context *ctx, const struct instance *i, const struct image_rule *about,
		     uint8_t action, struct err *err)
{
	struct counter counter;
	int code = rule_count(i, about->identity, &counter, err);

	if (code)
		return code;
	out_row(ctx->out);
	out_cell(ctx->out, "place", "PLACE", about->place);
	out_cell_u64(ctx->out, "packets", "PACKETS", counter.packets);
	out_cell_u64(ctx->out, "bytes", "BYTES", counter.bytes);
	out_cell(ctx->out, "action", "ACTION", choice_word(&choice_actions, action));
	out_cell(ctx->out, "rule", "RULE", about->identity);
	return 0;
}

static int show_each(struct context *ctx, const struct instance *i, const struct candidate *c,
		     struct err *err)
{
	for (size_t r = 0; r < c->image->n_rules; r++) {
		int code =
			show_rule(ctx, i, &c->image->about[r], c->resolved->rules[r].action, err);

		if (code)
			return code;
	}
	return 0;
}

int rules_show(struct context *ctx, const struct instance *i, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	struct err why = {0};
	int code = active_rules(i, false, &c, &why);

	if (code == -ENOENT && !why.kind)
		return 0;
	if (code) {
		*err = why;
		return code;
	}
	if (c->image->n_rules)
		out_line(ctx->out, "%s", "");
	out_table(ctx->out, "rules");
	code = show_each(ctx, i, c, err);
	out_table_end(ctx->out);
	return code;
}

// ---- quick rules, for status --------------------------------------------------------------------

#define OVERDUE_S 10
#define QUICK     "quick rules" // the object of alarms

void rules_quick_show(struct out *o, const char *instance, const struct generation_about *about)
{
	CLEANUP_QUICK struct quick_rules q = {0};

	quick_read_version(instance, about->quick, &q, NULL);
	out_set_u64(o, "quick_rules", q.n);
	if (q.n)
		out_line(o, "          %zu quick %s in front (weir rule list)", q.n,
			 num_plural(q.n, "rule", "rules"));
}

static void alarm_overdue(const struct quick_rule *rule, uint64_t now_s, alarm_adder *add,
			  void *ctx)
{
	CLEANUP_FREE char *id = mem_printf("%llu", (unsigned long long)rule->id);
	num_text late;

	add(ctx, "rule", id,
	    "%s should have ended %s ago (" MEND(
		    "weir rule delete %llu") "; weir run ends rules in time)",
	    rule->label, num_format_duration_ms((now_s - rule->until_s) * 1000, late),
	    (unsigned long long)rule->id);
}

static void alarm_tracking(const struct generation_about *about, alarm_adder *add, void *ctx)
{
	if (tracking_fails_now(about->tracking))
		add(ctx, "policy", NULL,
		    "connection tracking is off: 'established' matches no packet, and 'not "
		    "established' every packet of TCP and UDP (%s)",
		    CONNTRACK_START);
}

static void alarm_unroutable(const struct generation_about *about, alarm_adder *add, void *ctx)
{
	uint32_t off = unroutable_off(about->unroutable);

	if (off)
		add(ctx, "policy", NULL,
		    "the loopback device does not forward: 'unroutable' matches no packet%s (%s)",
		    unroutable_packets(off), unroutable_mend(off));
}

void rules_alarms(const char *instance, const struct generation_about *about, bool trial,
		  alarm_adder *add, void *ctx)
{
	CLEANUP_QUICK struct quick_rules q = {0};
	uint64_t now_s = time_s(CLOCK_REALTIME);
	struct err why = {0};

	alarm_tracking(about, add, ctx);
	alarm_unroutable(about, add, ctx);
	if (!about->quick && !quick_read(instance, &q, NULL) && q.n) {
		add(ctx, QUICK, NULL,
		    "%zu quick %s saved but not active (" MEND("weir rule list") ")", q.n,
		    num_plural(q.n, "rule is", "rules are"));
		return;
	}
	if (quick_read_version(instance, about->quick, &q, &why))
		add(ctx, QUICK, NULL, why.hint[0] ? "%s (" MEND("%s") ")" : "%s", why.text,
		    why.hint);
	vec_each (&q, rule)
		if (!trial && rule->until_s && rule->until_s + OVERDUE_S <= now_s)
			alarm_overdue(rule, now_s, add, ctx);
}
