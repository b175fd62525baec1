// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: a policy through parse, check and resolve. What stands behind a line "%%" is the content
// of the include "inc" and of the list file "list"; names resolve, every other file is refused.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char services_text[] = "ssh 22/tcp\nhttp 80/tcp www\ndomain 53/tcp\ndomain 53/udp\n"
				    "all 7/tcp\nall 7/udp\nall 7/sctp\nodd 1/tcp\nodd 2/udp\n";

struct input {
	const char *main, *other;
	size_t main_len, other_len;
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

// ---- the world ------------------------------------------------------------------------------------

static int give(const char *text, size_t len, char **ret_text, size_t *ret_len)
{
	*ret_text = mem_realloc(NULL, len + 1, 1);
	if (len)
		memcpy(*ret_text, text, len);
	(*ret_text)[len] = '\0';
	*ret_len = len;
	return 0;
}

static int read_file(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	const struct input *in = ctx;

	(void)max;
	if (!strcmp(path, "main"))
		return give(in->main, in->main_len, ret_text, ret_len);
	if (!strcmp(path, "services"))
		return give(services_text, strlen(services_text), ret_text, ret_len);
	if (!strcmp(path, "list") || !strcmp(path, "inc"))
		return give(in->other, in->other_len, ret_text, ret_len);
	return err_system(err, ENOENT, "cannot open '%s'", path);
}

static int list_files(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	(void)ctx;
	(void)pattern;
	(void)err;
	*ret = mem_zalloc(1, sizeof(**ret));
	(*ret)[0] = mem_strdup("inc");
	*ret_n = 1;
	return 0;
}

// Addresses that depend on the name only.
static int resolve(void *ctx, const char *const *names, size_t n, struct policy_answer *answers,
		   struct err *err)
{
	(void)ctx;
	(void)err;
	for (size_t i = 0; i < n; i++) {
		const char *name = names[i];
		uint8_t bytes[16] = {0x20, 1, (uint8_t)name[0]};

		answers[i].v4_missing = name[0] == '6';
		answers[i].stale = name[0] == 's';
		answers[i].error = name[0] == 'e' ? -ENOENT : 0;
		if (answers[i].error)
			continue;
		answers[i].addrs = mem_zalloc(3, sizeof(struct addr));
		answers[i].addrs[answers[i].n++] = addr_from_v6(bytes);
		if (!answers[i].v4_missing)
			answers[i].addrs[answers[i].n++] =
				addr_from_v4((uint32_t)strlen(name) << 24 | 7);
		if (name[0] == 'z')
			answers[i].addrs[answers[i].n++] = addr_from_v4(0);
	}
	return 0;
}

static int addresses(void *ctx, enum policy_addresses which, struct addr **ret, size_t *ret_n,
		     struct err *err)
{
	(void)ctx;
	(void)err;
	*ret = mem_zalloc(1, sizeof(**ret));
	**ret = addr_from_v4(0x0100000au + (unsigned)which);
	*ret_n = 1;
	return 0;
}

// ---- what must hold of every result -----------------------------------------------------------------

static void check_ranges(const struct resolved_ranges *r)
{
	check(!r->given || r->n);
	for (size_t i = 0; i < r->n; i++) {
		check(r->at[i].first <= r->at[i].last);
		check(!i || r->at[i].first > r->at[i - 1].last + 1u);
	}
}

static void check_set(const struct resolved_addresses *s)
{
	check(s->empty == (!s->n4 && !s->n6));
	for (size_t i = 0; i < s->n4; i++) {
		const struct resolved_prefix4 *p = &s->v4[i];

		check(p->len <= 32 && (p->len == 32 || !(p->addr & UINT32_MAX >> p->len)));
		check(!i || p[-1].addr < p->addr || (p[-1].addr == p->addr && p[-1].len < p->len));
	}
	for (size_t i = 0; i < s->n6; i++) {
		const struct resolved_prefix6 *p = &s->v6[i];

		check(p->len <= 128);
		check(!i || p[-1].hi < p->hi || (p[-1].hi == p->hi && p[-1].lo < p->lo) ||
		      (p[-1].hi == p->hi && p[-1].lo == p->lo && p[-1].len < p->len));
	}
}

static void check_address(const struct resolved *r, const struct resolved_address *a)
{
	check(a->kind != RESOLVED_SET || a->index < r->n_addresses);
	check(a->kind != RESOLVED_DYNAMIC || a->index < r->n_dynamics);
}

static void check_rule(const struct resolved *r, const struct resolved_rule *rule)
{
	check(rule->identity && rule->identity[0]);
	check_address(r, &rule->from);
	check_address(r, &rule->to);
	check_ranges(&rule->sport);
	check_ranges(&rule->dport);
	check_ranges(&rule->vlan);
	check_ranges(&rule->ethertype);
	check(!rule->icmp_given || rule->icmps);
	check(!rule->add.given || rule->add.dynamic < r->n_dynamics);
	check(!rule->limit.given ||
	      (rule->limit.count && rule->limit.period_ms && rule->limit.burst));
	check(!rule->on_given ||
	      (rule->on && r->n_interfaces && !(rule->on >> (r->n_interfaces - 1) >> 1)));
	check((!rule->sport.given && !rule->dport.given) || rule->proto.given);
	check(rule->place.file < r->n_files && rule->place.line);
}

static void check_result(const struct resolved *r)
{
	for (size_t i = 0; i < r->n_addresses; i++)
		check_set(&r->addresses[i]);
	for (size_t i = 0; i < r->n_rules; i++) {
		check_rule(r, &r->rules[i]);
		check(r->rules[i].always == (i < r->n_always));
	}
	for (size_t i = 0; i < r->n_services; i++)
		check(r->services[i].vip < r->n_addresses && r->services[i].n_backends);
	for (size_t i = 0; i < r->n_expects; i++) {
		check(r->expects[i].n_packets && r->expects[i].n_packets <= 64);
		check(r->expects[i].via != RESOLVED_VIA_RULE || r->expects[i].rule < r->n_rules);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct source_reader reader = {.read = read_file, .glob = list_files};
	const char *text = (const char *)data, *cut = size ? memmem(text, size, "\n%%\n", 4) : NULL;
	struct input in = {
		.main = text, .main_len = cut ? (size_t)(cut - text) : size, .other = ""};
	struct source_reader files = reader;
	struct policy_env env = {
		.ctx = &in,
		.files = &files,
		.services = "services",
		.resolve = resolve,
		.addresses = addresses,
		.names_may_fail = size & 1,
	};
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_RESOLVED struct resolved *resolved = NULL;
	CLEANUP_FREE char *printed = NULL;
	CLEANUP_FILE FILE *f = NULL;
	size_t printed_len;

	files.ctx = &in;
	if (cut) {
		in.other = cut + 4;
		in.other_len = size - (size_t)(cut + 4 - text);
	}
	resolved = policy_load("main", &env, NULL, 0, diag);
	check(!resolved == !!diag_errors(diag));
	if (resolved)
		check_result(resolved);
	f = open_memstream(&printed, &printed_len);
	diag_print(diag, f, false);
	return 0;
}
