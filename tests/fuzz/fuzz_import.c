// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: rulesets of other firewalls. The first byte selects options. Every policy that is
// printed is valid, and nothing is printed for input that is refused.
#include <stdio.h>

#include "ctl/import/addrlist.h"
#include "ctl/import/import.h"
#include "ctl/import/iptables.h"
#include "ctl/import/keepalived.h"
#include "tests/fuzz/environment.h"
#include "tests/fuzz/fuzz.h"

static void check_policy(const struct text *policy)
{
	struct fuzz_environment environment;
	CLEANUP_DIAG struct diag *diag = diag_new();
	CLEANUP_RESOLVED struct resolved *resolved = NULL;

	fuzz_environment_init(&environment, policy->at, policy->len, "", 0);
	resolved = policy_load("main", &environment.env, NULL, 0, diag);
	if (!resolved) {
		fprintf(stderr, "%s\n", policy->at);
		diag_print(diag, stderr, false);
	}
	fuzz_check(resolved);
}

static void read_nft(const char *json, size_t len, uint8_t choice)
{
	static const char *const interfaces[] = {"eth0", "eth1"};
	static const struct import_device devices[] = {{"eth0", 1}, {"br0", 3}, {"lan", 0}};
	const struct import_options options = {
		.source = "fuzz",
		.interfaces = interfaces,
		.n_interfaces = choice & 3 ? (choice & 3) - 1u : 0,
		.devices = devices,
		.n_devices = choice & 4 ? 3 : 0,
		.facts = {.diverts = choice & 16, .ttl = choice & 32, .dscp = choice & 64},
		.forward = choice & 8};
	CLEANUP_TEXT struct text policy = {0};
	struct import_counts counts = {0};
	struct err err = {0};

	if (!import_nft(json, len, &options, &policy, &counts, &err))
		check_policy(&policy);
	else
		fuzz_check(err.text[0] && !policy.len && !counts.translated);
}

static void read_iptables(const char *save, size_t len)
{
	CLEANUP_IPTABLES struct iptables_save kept = {0};
	CLEANUP_TEXT struct text nft = {0};
	struct err err = {0};

	if (iptables_prepare(save, len, &kept, &err))
		fuzz_check(err.text[0]);
	else
		iptables_complete(kept.text.at, kept.text.len, &nft, &kept.marks);
}

static void read_keepalived(const char *text, size_t len)
{
	CLEANUP_TEXT struct text policy = {0};
	struct import_counts n = {0};
	struct err err = {0};

	if (import_keepalived(text, len, "fuzz", &policy, &n, &err))
		fuzz_check(err.text[0] && !policy.len);
}

static void read_list(const char *text, size_t len, uint8_t choice)
{
	const struct addrlist_options options = {
		.source = "fuzz", .set = choice & 1 ? "s" : NULL, .column = choice >> 1 & 3};
	CLEANUP_TEXT struct text plain = {0}, again = {0}, ipset = {0}, nft = {0};
	const struct addrlist_options whole = {.source = "fuzz"};
	struct addrlist_counts n = {0}, m = {0};
	struct err err = {0};

	// A list is a list: read again, it has the same entries.
	if (!import_plain(text, len, &options, &plain, &n, &err)) {
		fuzz_check(!import_plain(plain.at, plain.len, &whole, &again, &m, &err));
		fuzz_check(m.entries == n.entries && !m.skipped && !m.duplicates);
	}
	fuzz_check(!import_ipset(text, len, &options, &ipset, &n, &err) || !ipset.len);
	if (options.set)
		fuzz_check(!import_set(text, len, &options, &nft, &n, &err) || !nft.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_FREE char *text = size ? mem_strndup((const char *)data + 1, size - 1) : NULL;

	if (!text)
		return 0;
	read_nft(text, strlen(text), data[0]);
	read_iptables(text, strlen(text));
	read_list(text, strlen(text), data[0]);
	read_keepalived(text, strlen(text));
	return 0;
}
