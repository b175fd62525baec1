// SPDX-License-Identifier: GPL-2.0-only
// Addresses that drop and reject rules exclude from the answers for a name, and their record.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/control/environment.h"

#define NOW 1000000

struct world {
	struct environment_name name;
	struct guard guard;
};

static struct addr addr_of(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(text, strlen(text), &a, NULL), 0);
	return a;
}

static void log_in(struct world *w, const char *peer)
{
	w->guard.n = 0;
	if (peer)
		vec_push(&w->guard, ((struct guarded){.addr = addr_of(peer), .level = GUARD_NAME}));
}

static size_t read_addrs(const char *words, struct addr *ret)
{
	char copy[256], *rest = NULL;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		ret[n++] = addr_of(word);
	return n;
}

// Gives these addresses as an answer, sorted as all answers are.
static size_t answer(struct world *w, const char *words)
{
	struct addr addrs[8];
	struct dns_answer from = {.addrs = addrs, .n = read_addrs(words, addrs), .ttl_s = 60};
	struct environment_followed followed;

	environment_follow(&w->name, &from, NOW, &followed);
	return environment_protect(&w->name, &w->guard);
}

static void left_out(const struct world *w, const char *wanted)
{
	char text[256] = "";
	addr_text addr;

	vec_each (&w->name.left_out, a)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			 text[0] ? " " : "", addr_format(a, addr));
	assert_string_equal(text, wanted);
}

static void end(struct world *w)
{
	environment_free_name(&w->name);
	guard_free(&w->guard);
}

static void test_decisions(void **state)
{
	struct world w = {0};
	struct addr peer = addr_of("203.0.113.9");

	log_in(&w, "203.0.113.9");
	assert_int_equal(answer(&w, "192.168.7.7 203.0.113.1 203.0.113.9"), 2);
	left_out(&w, "192.168.7.7 203.0.113.9");
	assert_true(environment_leaves_out(&w.name, &peer));
	assert_int_equal(environment_protect(&w.name, &w.guard), 0);
	log_in(&w, "203.0.113.1");
	assert_int_equal(environment_protect(&w.name, &w.guard), 2);
	left_out(&w, "192.168.7.7 203.0.113.1");
	log_in(&w, NULL);
	assert_int_equal(environment_protect(&w.name, &w.guard), 1);
	left_out(&w, "192.168.7.7");
	end(&w);
}

// An address in its grace time is dropped only if it was before.
static void test_leaving(void **state)
{
	struct world w = {0};

	log_in(&w, "203.0.113.9");
	answer(&w, "203.0.113.1 203.0.113.9");
	log_in(&w, NULL);
	answer(&w, "203.0.113.2");
	left_out(&w, "203.0.113.9");
	log_in(&w, "203.0.113.1");
	assert_int_equal(environment_protect(&w.name, &w.guard), 1);
	left_out(&w, "203.0.113.1 203.0.113.9");
	end(&w);
}

static bool refuses(enum policy_use use, const char *words, const struct guard *g)
{
	struct addr addrs[8];
	struct dns_answer from = {.addrs = addrs, .n = read_addrs(words, addrs)};

	return environment_refuses(use, &from, g);
}

static void test_refusals(void **state)
{
	struct world w = {0};

	log_in(&w, "203.0.113.9");
	assert_true(refuses(POLICY_DROPPED, "192.168.7.7 203.0.113.9", &w.guard));
	assert_false(refuses(POLICY_DROPPED, "192.168.7.7 203.0.113.8", &w.guard));
	assert_false(refuses(POLICY_EXPECTED, "192.168.7.7", &w.guard));
	assert_false(refuses(POLICY_WHOLE, "203.0.113.9", &w.guard));
	assert_true(refuses(POLICY_WHOLE, "0.0.0.0 127.0.0.1", NULL));
	end(&w);
}

static void test_same_name(void **state)
{
	struct world w = {.name.name = mem_strdup("a.example")};
	struct environment_name other;

	answer(&w, "192.168.7.7 203.0.113.9");
	other = environment_copy_name(&w.name);
	assert_true(environment_same_name(&w.name, &other));
	log_in(&w, "203.0.113.9");
	environment_protect(&other, &w.guard);
	assert_true(environment_same_answer(&w.name, &other));
	assert_false(environment_same_name(&w.name, &other));
	environment_protect(&w.name, &w.guard);
	assert_true(environment_same_name(&w.name, &other));
	other.use = POLICY_DROPPED;
	assert_false(environment_same_name(&w.name, &other));
	other.use = POLICY_WHOLE;
	other.refused_s = NOW;
	assert_false(environment_same_name(&w.name, &other));
	environment_free_name(&other);
	end(&w);
}

static void ask(struct environment *w, enum policy_use use, struct policy_answer *ret)
{
	struct policy_question question = {"a.example", use};
	struct err err = {0};

	*ret = (struct policy_answer){0};
	assert_int_equal(w->env.resolve(w, &question, 1, ret, &err), 0);
}

static void answer_free(struct policy_answer *a)
{
	free(a->addrs);
	free(a->left_out);
}

// The record decides, and later logins do not; the record decides nothing about a use that it does
// not know.
static void test_record(void **state)
{
	char folder[] = "/tmp/weir-test-XXXXXX";
	CLEANUP_FREE char *path = NULL, *command = NULL;
	CLEANUP_ENVIRONMENT struct environment w, read;
	struct world made = {0};
	struct json *meta = NULL;
	struct policy_answer a;
	struct err err = {0};

	assert_non_null(mkdtemp(folder));
	path = mem_printf("%s/record", folder);
	environment_replay(&w);
	environment_replay(&read);
	log_in(&made, "203.0.113.9");
	answer(&made, "203.0.113.1 203.0.113.9");
	made.name.name = mem_strdup("a.example");
	made.name.use = POLICY_EXPECTED;
	made.name.refused_s = NOW;
	vec_push(&w.names, made.name);
	assert_int_equal(environment_save(&w, path, json_object(), &err), 0);
	assert_int_equal(environment_load(&read, path, &meta, &err), 0);
	json_free(meta);
	assert_true(environment_same_name(&w.names.at[0], &read.names.at[0]));
	assert_int_equal(read.names.at[0].refused_s, NOW);
	ask(&read, POLICY_EXPECTED, &a);
	assert_int_equal(a.n_left_out, 1);
	assert_string_equal(a.left_out[0].why, "");
	assert_false(read.guard_collected);
	answer_free(&a);
	ask(&read, POLICY_DROPPED, &a);
	assert_true(read.guard_collected);
	assert_int_equal(a.n_left_out, 0);
	assert_int_equal(read.names.at[0].use, POLICY_DROPPED);
	answer_free(&a);
	guard_free(&made.guard);
	command = mem_printf("rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions), cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_refusals),  cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
