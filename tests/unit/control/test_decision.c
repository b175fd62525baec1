// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/decision.h: the verdict of each reason, and verdicts that a rule or a
// service changes.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/control/decision.h"
#include "ctl/datapath/counters.h"

#define NO_RULE -1

static struct resolved_rule rules[] = {
	{.action = ACTION_PASS},
	{.action = ACTION_REJECT},
	{.action = ACTION_REDIRECT, .redirect = "eth1"},
};
static struct resolved resolved = {.rules = rules, .n_rules = ARRAY_SIZE(rules)};
static const struct candidate policy = {.resolved = &resolved};

static struct test_result answer(enum weir_reason reason, int32_t rule, int32_t service)
{
	return (struct test_result){.reason = reason, .rule = rule, .service = service};
}

static const char *word(enum weir_reason reason, int32_t rule)
{
	struct test_result r = answer(reason, rule, -1);

	return decision_word(decision_of(&policy, &r));
}

static const char *wanted(enum weir_reason reason, int32_t rule, int32_t service)
{
	struct test_result r = answer(reason, rule, service);

	return decision_word(decision_wanted(&policy, &r));
}

static const char *expected_word(enum weir_reason reason)
{
	switch (reason) {
	case REASON_PASS_SERVICE:
	case REASON_PASS_ANSWER_NAT:
		return "service";
	case REASON_PASS_ECHO:
		return "answer";
	case REASON_PASS_REDIRECT:
		return "redirect";
	case REASON_PASS_REPLY:
	case REASON_PASS_TOO_BIG:
	case REASON_PASS_PATH_MTU:
	case REASON_PASS_TTL:
	case REASON_PASS_NAT_RESET:
		return "reject";
	default:
		return reason_drops(reason) ? "drop" : "pass";
	}
}

static void test_each_reason(void **state)
{
	for (enum weir_reason reason = 0; reason < WEIR_REASON_COUNT; reason++)
		assert_string_equal(word(reason, NO_RULE), expected_word(reason));
}

static void test_rules(void **state)
{
	struct test_result r = answer(REASON_DROP_REJECT, 1, -1);

	assert_string_equal(word(REASON_DROP_REJECT, 1), "reject"); // without an answer
	assert_string_equal(decision_word(decision_of(NULL, &r)), "drop");
	assert_string_equal(word(REASON_DROP_REDIRECT, 2), "drop"); // it has no interface
	assert_string_equal(wanted(REASON_DROP_REDIRECT, 2, -1), "redirect");
	assert_string_equal(wanted(REASON_DROP_REJECT, 1, -1), "reject");
	assert_string_equal(wanted(REASON_PASS_RULE, 0, -1), "pass");
	r.rule = ARRAY_SIZE(rules);
	assert_null(decision_rule(&policy, &r));
}

// No backend is not the policy's fault, but some packets no backend would ever get.
static void test_services(void **state)
{
	assert_string_equal(wanted(REASON_DROP_NO_BACKEND, NO_RULE, 0), "service");
	assert_string_equal(wanted(REASON_PASS_SERVICE, 0, 0), "service");
	assert_string_equal(wanted(REASON_DROP_SERVICE_FRAGMENT, NO_RULE, 0), "drop");
	assert_string_equal(wanted(REASON_PASS_TTL, NO_RULE, 0), "drop");
}

static void test_answer_of_a_backend(void **state)
{
	struct test_result r = answer(REASON_PASS_ANSWER_NAT, NO_RULE, 0);

	assert_int_equal(decision_of(NULL, &r), DECISION_BACK);
	r.reason = REASON_PASS_SERVICE;
	assert_int_equal(decision_of(NULL, &r), DECISION_SERVICE);
}

static void test_stages(void **state)
{
	struct test_result r = answer(REASON_PASS_SERVICE, NO_RULE, 0);

	r.passed = REASON_PASS_DEFAULT;
	assert_int_equal(decision_via(&r), VIA_DEFAULT);
	assert_int_equal(decision_stage(&r, r.reason), GROUP_SERVICE);
	r.rule = 0;
	assert_int_equal(decision_via(&r), VIA_RULE);
}

static const char *done(enum decision_verdict verdict, const char *to, struct text *t)
{
	text_free(t);
	decision_add_done(t, verdict, to);
	return text_get(t);
}

static void test_words(void **state)
{
	struct text t = {0};

	assert_string_equal(done(DECISION_REDIRECT, "eth1", &t), "redirected to eth1");
	assert_string_equal(done(DECISION_REDIRECT, NULL, &t), "redirected");
	assert_string_equal(done(DECISION_DROP, "eth1", &t), "dropped");
	assert_string_equal(done(DECISION_BACK, NULL, &t), "sent to its client");
	assert_null(decision_word(DECISION_NONE));
	assert_true(decision_loses(DECISION_REJECT) && !decision_loses(DECISION_ANSWER));
	text_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_reason), cmocka_unit_test(test_rules),
		cmocka_unit_test(test_services),    cmocka_unit_test(test_stages),
		cmocka_unit_test(test_words),       cmocka_unit_test(test_answer_of_a_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
