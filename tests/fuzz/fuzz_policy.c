// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: parses, checks and resolves a policy. The text after a line "%%" is the content of
// the include "inc" and of the list file "list". Names resolve, every other file is refused.
#include <stdio.h>

#include "ctl/base/mem.h"
#include "tests/fuzz/environment.h"
#include "tests/fuzz/fuzz.h"

static void check_ranges(const struct resolved_ranges *r)
{
	fuzz_check(!r->given || r->n);
	for (size_t i = 0; i < r->n; i++) {
		fuzz_check(r->at[i].first <= r->at[i].last);
		fuzz_check(!i || r->at[i].first > r->at[i - 1].last + 1u);
	}
}

static void check_set(const struct resolved_addresses *s)
{
	fuzz_check(s->empty == (!s->n4 && !s->n6));
	for (size_t i = 0; i < s->n4; i++) {
		const struct resolved_prefix4 *p = &s->v4[i];

		fuzz_check(p->len <= 32 && (p->len == 32 || !(p->addr & UINT32_MAX >> p->len)));
		fuzz_check(!i || p[-1].addr < p->addr ||
			   (p[-1].addr == p->addr && p[-1].len < p->len));
	}
	for (size_t i = 0; i < s->n6; i++) {
		const struct resolved_prefix6 *p = &s->v6[i];

		fuzz_check(p->len <= 128);
		fuzz_check(!i || p[-1].hi < p->hi || (p[-1].hi == p->hi && p[-1].lo < p->lo) ||
			   (p[-1].hi == p->hi && p[-1].lo == p->lo && p[-1].len < p->len));
	}
}

static void check_address(const struct resolved *r, const struct resolved_address *a)
{
	fuzz_check(a->kind != RESOLVED_SET || a->index < r->n_addresses);
	fuzz_check(a->kind != RESOLVED_DYNAMIC || a->index < r->n_dynamics);
}

static void check_rule(const struct resolved *r, const struct resolved_rule *rule)
{
	fuzz_check(rule->identity && rule->identity[0]);
	check_address(r, &rule->from);
	check_address(r, &rule->to);
	check_ranges(&rule->sport);
	check_ranges(&rule->dport);
	check_ranges(&rule->vlan);
	check_ranges(&rule->ethertype);
	fuzz_check(!rule->icmp.given || rule->icmp.n);
	fuzz_check(!rule->add.given || rule->add.dynamic < r->n_dynamics);
	fuzz_check(!rule->limit.given ||
		   (rule->limit.count && rule->limit.period_ms && rule->limit.burst));
	fuzz_check(!rule->on.given || (rule->on.bits[0] && r->n_interfaces &&
				       !(rule->on.bits[0] >> (r->n_interfaces - 1) >> 1)));
	fuzz_check((!rule->sport.given && !rule->dport.given) || rule->proto.given);
	fuzz_check(rule->place.file < r->n_files && rule->place.line);
}

static void check_result(const struct resolved *r)
{
	for (size_t i = 0; i < r->n_addresses; i++)
		check_set(&r->addresses[i]);
	for (size_t i = 0; i < r->n_rules; i++) {
		check_rule(r, &r->rules[i]);
		fuzz_check(r->rules[i].always == (i < r->n_always));
	}
	for (size_t i = 0; i < r->n_services; i++)
		fuzz_check(r->services[i].vip < r->n_addresses && r->services[i].n_backends);
	for (size_t i = 0; i < r->n_expects; i++) {
		fuzz_check(r->expects[i].n_packets && r->expects[i].n_packets <= 64);
		fuzz_check(r->expects[i].via != VIA_RULE || r->expects[i].rule < r->n_rules);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *cut = size ? memmem(text, size, "\n%%\n", 4) : NULL;
	size_t len = cut ? (size_t)(cut - text) : size;
	struct fuzz_environment environment;
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_RESOLVED struct resolved *resolved = NULL;
	CLEANUP_FREE char *printed = NULL;
	CLEANUP_FILE FILE *f = NULL;
	size_t printed_len;

	fuzz_environment_init(&environment, text, len, cut ? cut + 4 : "",
			      cut ? size - len - 4 : 0);
	environment.env.names_may_fail = size & 1;
	resolved = policy_load("main", &environment.env, NULL, 0, diag);
	fuzz_check(!resolved == !!diag_errors(diag));
	if (resolved)
		check_result(resolved);
	f = open_memstream(&printed, &printed_len);
	diag_print(diag, f, false);
	return 0;
}
