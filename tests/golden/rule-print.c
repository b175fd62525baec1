// SPDX-License-Identifier: GPL-2.0-only
// Prints a resolved rule: fields by ctl/policy/rule_text, and action, log and add.
#include "tests/golden/rule-print.h"

#include <inttypes.h>

#include "common/limits.h"
#include "ctl/base/mem.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/rule_text.h"
#include "ctl/policy/words.h"

static const char *period(uint32_t ms)
{
	return ms == 1000 ? "s" : ms == 60000 ? "min" : "h";
}

static void add_log(struct text *t, const struct resolved_log *log)
{
	if (!log->given)
		return;
	text_add(t, " log");
	if (log->count != 1 || log->period_ms != 1000)
		text_addf(t, " %" PRIu64 "/%s", log->count, period(log->period_ms));
	if (log->snap != WEIR_SNAP_DEFAULT)
		text_addf(t, " snap %" PRIu32, log->snap);
}

static void add_time(struct text *t, uint64_t ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {{"w", 604800000}, {"d", 86400000}, {"h", 3600000},
		     {"m", 60000},     {"s", 1000},     {"ms", 1}};
	size_t i = 0;

	while (ms % units[i].ms)
		i++;
	text_addf(t, "%" PRIu64 "%s", ms / units[i].ms, units[i].unit);
}

static void add_add(struct text *t, const struct resolved *r, const struct resolved_add *add)
{
	if (!add->given)
		return;
	text_addf(t, " add %s @%s", add->destination ? "destination" : "source",
		  r->dynamics[add->dynamic].name);
	if (add->for_ms == r->dynamics[add->dynamic].expire_ms)
		return;
	text_add(t, " for ");
	add_time(t, add->for_ms);
}

// A port follows "from" or "to", also where there is no address.
static void add_port(struct text *t, const struct resolved *r, const struct resolved_rule *rule,
		     size_t field)
{
	size_t address = field == AST_SPORT ? AST_FROM : AST_TO;

	if (!field_given(rule, address))
		text_addf(t, " %s", fields[address].keyword);
	text_add(t, " port ");
	rule_text_field(t, r, rule, field);
}

void print_whole_rule(struct text *t, const struct resolved *r, const struct resolved_rule *rule)
{
	text_addf(t, "%s%s", rule->always ? "always " : "",
		  choice_word(&choice_actions, rule->action));
	if (rule->redirect)
		text_addf(t, " %s", rule->redirect);
	for (size_t field = 0; field < AST_RULE_FIELDS; field++) {
		if (!field_given(rule, field))
			continue;
		if (!fields[field].keyword && fields[field].form != FORM_PAIRS) {
			add_port(t, r, rule, field);
			continue;
		}
		text_addc(t, ' ');
		rule_text_field(t, r, rule, field);
	}
	add_log(t, &rule->log);
	add_add(t, r, &rule->add);
}
