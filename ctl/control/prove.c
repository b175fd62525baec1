// SPDX-License-Identifier: GPL-2.0-only
// Asks the test program of a policy about the packets of its expect lines.
#include "ctl/control/prove.h"

#include <string.h>

#include "ctl/base/progress.h"
#include "ctl/base/text.h"
#include "ctl/control/decision.h"
#include "ctl/policy/words.h"

static bool as_expected(const struct candidate *c, const struct resolved_expect *e,
			const struct test_result *r)
{
	enum decision_verdict wanted = decision_wanted(c, r);

	// A service's packet has passed the rules.
	if (wanted != (enum decision_verdict)e->verdict &&
	    !(wanted == DECISION_SERVICE && e->verdict == EXPECT_PASS))
		return false;
	if (e->verdict == EXPECT_SERVICE && r->service != (int32_t)e->service)
		return false;
	if (e->verdict == EXPECT_REDIRECT && strcmp(e->redirect, c->image->about[r->rule].redirect))
		return false;
	if (e->via == VIA_ANY)
		return true;
	return decision_via(r) == e->via && (e->via != VIA_RULE || r->rule == (int32_t)e->rule);
}

static void describe_wish(const struct candidate *c, const struct resolved_expect *e,
			  struct text *t)
{
	if (e->verdict == EXPECT_SERVICE)
		text_addf(t, "service %s", decision_service(c, e->service));
	else
		text_add(t, decision_word((enum decision_verdict)e->verdict));
	if (e->verdict == EXPECT_REDIRECT)
		text_addf(t, " %s", e->redirect);
	if (e->via == VIA_RULE)
		text_addf(t, " via \"%s\"", c->image->about[e->rule].identity);
	else if (e->via != VIA_ANY)
		text_addf(t, " via %s", choice_word(&choice_vias, e->via));
}

// "tcp from 192.0.2.1 to 198.51.100.1": which of the line's packets it was.
static void describe_packet(const struct resolved_packet *p, struct text *t)
{
	addr_text from, to;

	if (p->ip)
		text_addf(t, " for %s > %s", addr_format(&p->from, from), addr_format(&p->to, to));
}

// Does the packet of line number `line` get what it expects without quick rules?
static int ask_plain(struct candidate *c, size_t line, size_t p, bool *ret, char *got, size_t size,
		     struct err *err)
{
	const struct resolved_expect *e;
	struct test_result result;
	struct candidate *plain;
	int code = candidate_plain(c, &plain, err);

	if (code)
		return code;
	e = &plain->resolved->expects[line];
	if ((code = candidate_ask(plain, &e->packets[p], false, &result, err)))
		return code;
	*ret = as_expected(plain, e, &result);
	decision_describe(plain, &result, got, size);
	return 0;
}

static void note_broken(struct candidate *c, const struct resolved_expect *e,
			const struct quick_rule *by, const char *got, const char *wish)
{
	vec_push(&c->broken,
		 ((struct candidate_broken){
			 .expect = e,
			 .by = by,
			 .what = mem_printf("expect at %s: got %s, expected %s",
					    diag_place(c->diag, e->at, false), got, wish),
		 }));
}

static int prove_packet(struct candidate *c, size_t line, size_t p, bool *ret_failed,
			struct err *err)
{
	const struct resolved_expect *e = &c->resolved->expects[line];
	const struct quick_rule *by;
	CLEANUP_TEXT struct text wish = {0};
	struct test_result result;
	char got[512], got_plain[512];
	bool holds, plain;
	int code = candidate_ask(c, &e->packets[p], false, &result, err);

	if (code)
		return code;
	by = candidate_quick(c, &result);
	holds = as_expected(c, e, &result);
	if (holds && !by)
		return 0;
	decision_describe(c, &result, got, sizeof(got));
	describe_wish(c, e, &wish);
	if (e->n_packets > 1)
		describe_packet(&e->packets[p], &wish);
	if (by && (code = ask_plain(c, line, p, &plain, got_plain, sizeof(got_plain), err)))
		return code;
	if (by && plain) {
		if (!holds)
			note_broken(c, e, by, got, text_get(&wish));
		return 0;
	}
	if (by)
		memcpy(got, got_plain, sizeof(got));
	diag_error(c->diag, e->at, NULL, "expect: got %s, expected %s", got, text_get(&wish));
	*ret_failed = true;
	return 0;
}

// The first packet that fails is enough.
static int prove_one(struct candidate *c, size_t line, struct err *err)
{
	bool failed = false;

	if (c->resolved->expects[line].answer)
		return 0; // no rule meets it
	for (size_t p = 0; p < c->resolved->expects[line].n_packets && !failed; p++) {
		int code = prove_packet(c, line, p, &failed, err);

		if (code)
			return code;
	}
	return 0;
}

int prove_expects(struct candidate *c, struct err *err)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("testing the expect lines");
	size_t before = diag_errors(c->diag);
	int code;

	for (size_t e = 0; e < c->resolved->n_expects; e++)
		if ((code = prove_one(c, e, err)))
			return code;
	return diag_errors(c->diag) > before
		       ? err_input(err, "%zu expect %s failed", diag_errors(c->diag) - before,
				   diag_errors(c->diag) - before == 1 ? "line" : "lines")
		       : 0;
}
