// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: the list files of a policy. The first byte selects lax and wide. The other parser of
// such files, for `block -f`, must give the same result for every list with addresses only.
#include "common/limits-policy.h"
#include "ctl/control/entries/items.h"
#include "ctl/policy/host.h"
#include "ctl/policy/list.h"
#include "tests/fuzz/fuzz.h"

static void check_families(const struct cidr_set *set)
{
	for (size_t i = 0; i < set->v4.n; i++)
		fuzz_check(set->v4.at[i].len <= 32 && !set->v4.at[i].lo && set->v4.at[i].line);
	for (size_t i = 0; i < set->v6.n; i++)
		fuzz_check(set->v6.at[i].len <= 128 && set->v6.at[i].line);
}

// The strings must be readable after the text was freed.
static void check_list(struct list *l)
{
	char buf[160];

	check_families(&l->set);
	vec_each (&l->names, name)
		fuzz_check(name->line && !host_problem(name->name, buf, sizeof(buf)));
	vec_each (&l->problems, problem)
		fuzz_check(problem->what[0] && (!problem->hint || problem->hint[0]));
	fuzz_check(l->names.n <= POLICY_FILE_NAMES && !l->problems.n == !l->bad);
	fuzz_check(!l->refused || l->bad);
	cidr_sort(&l->set);
	check_families(&l->set);
}

// The parsers differ intentionally in options after an address and in names.
static bool has_addresses_only(const struct items *b)
{
	for (size_t i = 0; i < b->items.n; i++) {
		const struct item *item = &b->items.at[i];

		if (item->name || item->note || item->for_ms || item->to || item->both)
			return false;
	}
	return true;
}

static void check_same(const struct list *l, const char *text, size_t size, bool wide)
{
	struct items b = {0};

	items_add_text(&b, text, size, wide);
	// Without wide, `block -f` also refuses 0.0.0.0 and ::.
	if (wide && !l->bad && !l->names.n)
		fuzz_check(!b.error_count && b.items.n >= l->set.v4.n + l->set.v6.n);
	if (!b.error_count && has_addresses_only(&b))
		fuzz_check(!l->bad && b.items.n == l->set.v4.n + l->set.v6.n &&
			   !l->mapped == !b.mapped);
	items_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct list_options options = {.file = 1};
	struct list l = {0};
	char *text;

	if (!size)
		return 0;
	options.lax = data[0] & 1;
	options.wide = data[0] & 2;
	text = fuzz_copy(data + 1, size - 1);
	list_read(&l, text, size - 1, &options);
	check_same(&l, text, size - 1, options.wide);
	free(text);
	check_list(&l);
	list_free(&l);
	return 0;
}
