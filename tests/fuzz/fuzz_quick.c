// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: quick rules. An input that begins with '{' has the rows of their file, else it has
// the words of `rule add`. The rules are then resolved in front of a policy.
#include <stdio.h>

#include "ctl/base/mem.h"
#include "ctl/control/quick_list.h"
#include "tests/fuzz/environment.h"
#include "tests/fuzz/fuzz.h"

static const char policy[] = "interface eth0\n"
			     "set ban dynamic\n"
			     "set near { 10.0.0.0/8, 2001:db8::/32 }\n"
			     "define web = 80, 443\n"
			     "\"a\" drop proto tcp to any port 77\n"
			     "\"b\" always pass from @near\n";

// A row that was read is written as a row with the same meaning.
static void check_again(const struct quick_rule *rule)
{
	CLEANUP(json_writer_free) struct json_writer first = {0}, second = {0};
	CLEANUP_QUICK struct quick_rules again = {0};
	CLEANUP_JSON struct json *row = NULL;

	json_write_object(&first, NULL);
	json_write_u64(&first, "id", rule->id);
	quick_write_rule(&first, rule);
	json_write_end(&first);
	row = json_parse(first.text.at, first.text.len, NULL, 0);
	fuzz_check(row && !quick_read_row(row, &again));
	json_write_object(&second, NULL);
	json_write_u64(&second, "id", again.at[0].id);
	quick_write_rule(&second, &again.at[0]);
	json_write_end(&second);
	fuzz_check(first.text.len == second.text.len &&
		   !memcmp(first.text.at, second.text.at, first.text.len));
}

static void read_rows(char *text, struct quick_rules *ret)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		CLEANUP_JSON struct json *row = json_parse(line, strlen(line), NULL, 0);

		if (!row || json_kind(row) != JSON_IS_OBJECT || quick_read_row(row, ret))
			break;
		check_again(vec_last(ret));
	}
}

static void read_words(const char *text, struct quick_rules *ret)
{
	struct quick_rule rule = {0};
	const struct quick_place place = {.before = strlen(text) & 1 ? 7 : 0};
	struct err err = {0};

	if (quick_read_words(text, NULL, &rule, &err)) {
		fuzz_check(err.text[0]);
	} else {
		fuzz_check(rule.text[0] && !strpbrk(rule.text, "\n\r;#{}\\"));
		fuzz_check(!rule.name || (rule.name[0] && !strchr(rule.name, '"')));
		rule.by = mem_strdup("fuzz");
		rule.note = mem_strdup("");
		ret->next = 1;
		if (!quick_insert(ret, &rule, &place, &err))
			check_again(&ret->at[0]);
	}
	quick_free_rule(&rule);
}

// The rules follow those with `always`, in their order.
static void check_result(const struct resolved *r, const struct quick_rules *q)
{
	fuzz_check(r->n_quick == q->n && r->n_always == 1 && r->n_rules == q->n + 2);
	for (size_t n = 0; n < q->n; n++) {
		const struct resolved_rule *rule = &r->rules[r->n_always + n];

		fuzz_check(rule->quick && !rule->always && rule->identity[0]);
	}
}

static void resolve(const struct quick_rules *q)
{
	CLEANUP_FREE struct policy_quick *texts = quick_texts(q);
	struct fuzz_environment environment;
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_RESOLVED struct resolved *resolved = NULL;
	CLEANUP_FREE char *printed = NULL;
	CLEANUP_FILE FILE *f = NULL;
	size_t len;

	fuzz_environment_init(&environment, policy, strlen(policy), "", 0);
	environment.env.quick = texts;
	environment.env.n_quick = q->n;
	resolved = policy_load("main", &environment.env, NULL, 0, diag);
	fuzz_check(!resolved == !!diag_errors(diag));
	if (resolved)
		check_result(resolved, q);
	f = open_memstream(&printed, &len);
	diag_print(diag, f, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_QUICK struct quick_rules q = {0};
	CLEANUP_FREE char *text = mem_zalloc(size + 1, 1);

	if (size)
		memcpy(text, data, size);
	if (*text == '{')
		read_rows(text, &q);
	else
		read_words(text, &q);
	resolve(&q);
	return 0;
}
