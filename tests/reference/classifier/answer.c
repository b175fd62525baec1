// SPDX-License-Identifier: GPL-2.0-only
// The datapath's answer about a packet in the words of the reference.
#include "tests/reference/classifier/answer.h"

#include <string.h>

#include "ctl/datapath/counters.h"
#include "ctl/datapath/test_program.h"

static const char *essential_word(uint32_t reason)
{
	switch (reason) {
	case REASON_PASS_ND:
		return "nd";
	case REASON_PASS_ARP:
		return "arp";
	case REASON_PASS_ICMP_ERROR:
		return "icmp-error";
	case REASON_PASS_MLD:
		return "mld";
	case REASON_PASS_DHCP:
		return "dhcp";
	default:
		return NULL;
	}
}

static void add_rule(const struct candidate *c, const struct test_result *r, struct text *t)
{
	static const char *const verdicts[] = {"pass", "drop", "reject", "count", "redirect"};
	const struct resolved_rule *rule = &c->resolved->rules[r->rule];

	text_add(t, verdicts[c->image->rules[r->rule].action]);
	if (c->image->rules[r->rule].action == ACTION_REDIRECT)
		text_addf(t, ":%s", c->image->about[r->rule].redirect);
	text_addf(t, " rule:%u", rule->text_index + 1);
	if (rule->named)
		text_addf(t, ":\"%s\"", rule->identity);
}

void answer_write(const struct candidate *c, const struct test_result *r, struct text *t)
{
	t->len = 0;
	if (r->rule >= 0 && (size_t)r->rule < c->image->n_rules) {
		add_rule(c, r, t);
		return;
	}
	if (r->rule >= 0) {
		text_addf(t, "rule %d, which does not exist", r->rule);
		return;
	}
	text_add(t, reason_drops(r->reason) ? "drop" : "pass");
	if (reason_group(r->reason) == GROUP_MALFORMED)
		text_add(t, " malformed");
	else if (reason_group(r->reason) == GROUP_FRAGMENTS)
		text_add(t, " fragments");
	else if (essential_word(r->reason))
		text_addf(t, " essentials:%s", essential_word(r->reason));
	else if (r->reason == REASON_PASS_DEFAULT || r->reason == REASON_PASS_NOT_IP ||
		 r->reason == REASON_DROP_DEFAULT)
		text_add(t, " default");
	else
		text_addf(t, " %s", reason_name(r->reason));
}

bool answer_agrees(const char *wanted, const char *got)
{
	const char *mark = strstr(wanted, " malformed");

	if (mark)
		return strstr(got, " malformed") && !strncmp(wanted, got, (size_t)(mark - wanted));
	if (!strcmp(wanted, "pass default") && !strcmp(got, "pass essentials:nd"))
		return true;
	return !strcmp(wanted, got);
}
