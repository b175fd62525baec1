// SPDX-License-Identifier: GPL-2.0-only
// Reads the answer of a test program with the rules of its policy.
#include "ctl/control/decision.h"

#include <stdio.h>

#include "ctl/datapath/counters.h"

static const struct {
	const char *word, *done;
	bool loses;
} verdicts[] = {
	[DECISION_PASS] = {"pass", "passed"},
	[DECISION_DROP] = {"drop", "dropped", .loses = true},
	[DECISION_REJECT] = {"reject", "rejected", .loses = true},
	[DECISION_REDIRECT] = {"redirect", "redirected"},
	[DECISION_SERVICE] = {"service", "sent to a backend"},
	[DECISION_BACK] = {"service", "sent to its client"},
	[DECISION_ANSWER] = {"answer", "answered"},
	[DECISION_PERMIT] = {"pass", "permitted"},
	[DECISION_REFUSE] = {"refuse", "refused", .loses = true},
	[DECISION_NONE] = {NULL, "not decided"},
};

const char *decision_word(enum decision_verdict verdict)
{
	return verdicts[verdict].word;
}

void decision_add_done(struct text *t, enum decision_verdict verdict, const char *to)
{
	text_add(t, verdicts[verdict].done);
	if (verdict == DECISION_REDIRECT && to)
		text_addf(t, " to %s", to);
}

bool decision_loses(enum decision_verdict verdict)
{
	return verdicts[verdict].loses;
}

// ---- the answer of a test program ---------------------------------------------------------------

const struct resolved_rule *decision_rule(const struct candidate *c, const struct test_result *r)
{
	return c && r->rule >= 0 && (size_t)r->rule < c->resolved->n_rules
		       ? &c->resolved->rules[r->rule]
		       : NULL;
}

enum decision_verdict decision_of(const struct candidate *c, const struct test_result *r)
{
	static const enum decision_verdict of[] = {
		[VERDICT_PASS] = DECISION_PASS,         [VERDICT_DROP] = DECISION_DROP,
		[VERDICT_TX] = DECISION_REJECT, // with an answer that is an error
		[VERDICT_REDIRECT] = DECISION_REDIRECT, [VERDICT_SENT] = DECISION_SERVICE,
	};
	const struct resolved_rule *rule = decision_rule(c, r);

	if (r->reason == REASON_PASS_ECHO)
		return DECISION_ANSWER;
	if (r->reason == REASON_PASS_ANSWER_NAT)
		return DECISION_BACK;
	if (rule && rule->action == ACTION_REJECT)
		return DECISION_REJECT;
	return of[reason_verdict(r->reason)];
}

// A service's packet that no backend would ever get; whether there is a way to one is not for the
// policy.
static bool is_packets_fault(uint32_t reason)
{
	return reason == REASON_DROP_SERVICE_FRAGMENT || reason == REASON_DROP_TTL ||
	       reason == REASON_PASS_TTL;
}

enum decision_verdict decision_wanted(const struct candidate *c, const struct test_result *r)
{
	const struct resolved_rule *rule = decision_rule(c, r);

	if (r->service >= 0)
		return is_packets_fault(r->reason) ? DECISION_DROP : DECISION_SERVICE;
	if (rule && rule->action == ACTION_REJECT)
		return DECISION_REJECT;
	if (rule && rule->action == ACTION_REDIRECT)
		return DECISION_REDIRECT;
	return reason_drops(r->reason) ? DECISION_DROP : DECISION_PASS;
}

enum weir_group decision_stage(const struct test_result *r, uint32_t reason)
{
	return r->rule >= 0 ? GROUP_RULE : reason_group(reason);
}

enum expect_via decision_via(const struct test_result *r)
{
	return group_via(decision_stage(r, r->service >= 0 ? r->passed : r->reason));
}

// ---- in words -----------------------------------------------------------------------------------

const char *decision_service(const struct candidate *c, size_t service)
{
	return service < c->image->n_services ? c->image->services[service].name : "?";
}

static void add_via(const struct candidate *c, const struct test_result *r, struct text *t)
{
	const struct image_rule *about = r->rule >= 0 ? &c->image->about[r->rule] : NULL;

	if (about && !strcmp(about->identity, about->place)) // a quick rule without a name
		text_addf(t, " (rule \"%s\")", about->identity);
	else if (about)
		text_addf(t, " (rule \"%s\", %s)", about->identity, about->place);
	else if (decision_via(r) == VIA_DEFAULT && c->resolved->default_at.file)
		text_addf(t, " (default, %s)", diag_place(c->diag, c->resolved->default_at, false));
	else if (decision_via(r) == VIA_DEFAULT)
		text_add(t, " (default)");
	else
		text_addf(t, " (%s)", reason_name(r->reason));
}

void decision_describe(const struct candidate *c, const struct test_result *r, char *buf,
		       size_t size)
{
	enum decision_verdict wanted = decision_wanted(c, r);
	CLEANUP_TEXT struct text t = {0};

	if (r->service >= 0)
		text_addf(&t, "service %s", decision_service(c, (size_t)r->service));
	else
		text_add(&t, decision_word(wanted));
	if (wanted == DECISION_REDIRECT)
		text_addf(&t, " %s", c->image->about[r->rule].redirect);
	add_via(c, r, &t);
	snprintf(buf, size, "%s", text_get(&t));
}
