// SPDX-License-Identifier: GPL-2.0-only
// Tests the datapath in the kernel that runs, without an interface, a pin or a real packet.
//
//     run [-k WORD] [--general] [--as-here] [--brief] [CASES]
//                                the tests in C, then the cases in the file; -k: those with WORD in
//                                the name;
//                                --general: only by the general program; --as-here: the cases not
//                                once more with the instructions that order reads; --brief: a
//                                quarter of the repetitions, for an emulated machine
//     run --load                 loads every object and prints instructions verified and bytes
//
// CASES is a text file made by cases.py. Empty lines and lines that begin with '#' are ignored. A
// line is a word and its value; `case` begins a case and `expect` runs it:
//
//     case NAME
//     overlay ENTRY, ENTRY …       the entries of the overlay: "block-from 192.0.2.0/24"; default nothing
//     policy malformed-pass        `malformed pass`; default `malformed drop`
//     iface N                      number of the ingress interface, 0 … 63; default 1
//     linear N                     bytes in the first buffer; skipped where the kernel has no such test
//     frame HEX                    from the Ethernet header on
//     hit ENTRY                    the one overlay entry that counts the packet; default: no entry
//     expect VERDICT REASON BYTES  pass or drop; the one counter that changes, by 1 packet and BYTES
//     decap-…                      cases of another program: decap.c
//     balance-…                    cases of policies with services: balance.c
//
// Closes with the line "N passed, N failed"; status 0 when none failed, 1 when one did, 2 when the
// setup failed.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/decap.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/probe.h"
#include "tests/datapath/balance_rig.h"
#include "tests/datapath/cases.h"
#include "tests/datapath/rig.h"
#include "tests/datapath/suite.h"
#include "tests/ways.h"

#define CASES_ENTRIES 1024

static void print_program(const char *name, int fd)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size)) {
		printf("%-24s no information\n", name);
		return;
	}
	printf("%-24s %6u instructions verified, %6u bytes translated, %6u bytes jited\n", name,
	       info.verified_insns, info.xlated_prog_len, info.jited_prog_len);
}

// Those that a generation has, by the kind of its policy.
static void print_programs(const char *policy, const struct generation *g)
{
	static const char *const names[GENERATION_PROGRAMS] = {
		[GENERATION_SHORT] = "short",
		[GENERATION_GENERAL] = "general",
		[GENERATION_BALANCE] = "balance",
		[GENERATION_NAT_ANSWER] = "nat-answer",
		[GENERATION_NAT] = "nat",
		[GENERATION_NAT_ANY] = "nat-any",
		[GENERATION_NAT_ANSWER_ANY] = "nat-answer-any",
	};

	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++) {
		CLEANUP_FREE char *name = mem_printf("%s, %s", policy, names[p]);
		int fd = generation_program_of(g, p);

		if (fd >= 0)
			print_program(name, fd);
	}
}

static void load_decap(void)
{
	static const struct decap_end nowhere;
	CLEANUP_DECAP struct decap *d = NULL;
	struct err err = {0};

	if (decap_load(&nowhere, &d, &err))
		test_die(&err);
	print_program("decap", decap_program(d));
}

// Every mode of services.
static void load_services(struct rig *rig)
{
	static const char policy[] =
		"service a { vip 192.0.2.1; port 80; mode dr; check none; backend 10.0.0.1 }\n"
		"service b { vip 2001:db8::1; port 80; mode ipip; check none; backend 10.0.0.1 }\n"
		"service c { vip 192.0.2.2; port any; mode gue; check none; backend 10.0.0.1 }\n";
	struct balance_rig *b = balance_rig_new(rig, policy);

	print_programs("services", b->c->generation);
	balance_rig_free(b);
}

static void load_policies(void)
{
	CLEANUP_RIG struct rig *rig = rig_new(WEIR_OVERLAY_MAX);

	print_program("entry", rig->entry_prog);
	print_programs("empty policy", rig->policy);
	print_programs("malformed pass", rig_lenient(rig));
	print_program("clock", rig->instance->clock_prog);
	load_services(rig);
}

static int load_only(void)
{
	load_policies();
	printf("\nwith the instructions that order reads:\n");
	rig_reorders();
	load_policies();
	printf("\n");
	load_decap();
	return 0;
}

// A namespace that does not forward, whatever this machine does: packets in transit are treated
// differently.
static void enter_own_namespace(void)
{
	static const char *const switches[] = {"/proc/sys/net/ipv4/ip_forward",
					       "/proc/sys/net/ipv6/conf/all/forwarding"};
	struct err err = {0};

	if (unshare(CLONE_NEWNET)) {
		err_system(&err, errno, "cannot make a network namespace");
		test_die(&err);
	}
	for (size_t n = 0; n < ARRAY_SIZE(switches); n++) {
		CLEANUP_FD int fd = open(switches[n], O_WRONLY | O_CLOEXEC);

		if (fd >= 0 && write(fd, "0", 1) != 1)
			printf("cannot switch off %s\n", switches[n]);
	}
}

// Of all cases together.
static void check_ways(const struct rig *rig, const char *only, struct tally *tally)
{
	if (rig_sees_both_ways(rig) || only)
		return;
	printf("FAIL each way must see %d %% of them\n", WAYS_LEAST_PERCENT);
	tally->failed++;
}

// With the policies of all rigs as they are now: with the short program, or without.
static void run_once(const char *only, const char *cases, struct tally *tally)
{
	static const struct named_test *const tables[] = {
		overlay_tests, commit_tests,  lines_tests,     history_tests, entry_tests,
		event_tests,   log_tests,     sample_tests,    capture_tests, jumbo_tests,
		transit_tests, nat_any_tests, nat_peers_tests,
	};

	for (size_t n = 0; n < ARRAY_SIZE(tables); n++)
		suite_run(tables[n], only, tally);
	if (cases) {
		CLEANUP_RIG struct rig *rig = rig_new(CASES_ENTRIES);

		cases_run(rig, cases, only, tally);
		if (!rig_is_general_only())
			check_ways(rig, only, tally);
	}
}

// The same verdicts from the instructions that order reads, which other machines need. cases: NULL:
// only from changes of the overlay.
static void run_reordering(const char *only, const char *cases, struct tally *tally)
{
	CLEANUP_RIG struct rig *rig = NULL;

	rig_reorders();
	suite_run(overlay_tests, only, tally);
	suite_run(commit_tests, only, tally);
	rig = rig_new(CASES_ENTRIES);
	if (cases)
		cases_run(rig, cases, only, tally);
}

static int run_all(const char *only, const char *cases, bool as_here)
{
	struct tally tally = {0};

	enter_own_namespace();
	if (!rig_is_general_only()) {
		suite_run(program_tests, only, &tally);
		suite_run(field_tests, only, &tally);
		suite_run(nat_tests, only, &tally);
		suite_run(nat_maps_tests, only, &tally);
		suite_run(nat_policy_tests, only, &tally);
	}
	run_once(only, cases, &tally);
	run_reordering(only, as_here ? NULL : cases, &tally);
	if (tally.skipped)
		printf("%zu skipped: this kernel or machine cannot test them\n", tally.skipped);
	printf("%zu passed, %zu failed\n", tally.passed, tally.failed);
	return tally.failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"load", no_argument, NULL, 'l'},
		{"general", no_argument, NULL, 'g'},
		{"as-here", no_argument, NULL, 'h'},
		{"brief", no_argument, NULL, 'b'},
		{NULL, 0, NULL, 0},
	};
	const char *only = NULL;
	bool as_here = false;
	int option;

	probe_quiet(true);
	while ((option = getopt_long(argc, argv, "k:", options, NULL)) != -1) {
		if (option == 'l')
			return load_only();
		if (option == 'g') {
			rig_general_only();
		} else if (option == 'h') {
			as_here = true;
		} else if (option == 'b') {
			suite_brief();
		} else if (option == 'k') {
			only = optarg;
		} else {
			fprintf(stderr,
				"usage: run [-k WORD] [--general] [--as-here] [--brief] [CASES] | run --load\n");
			return 2;
		}
	}
	return run_all(only, optind < argc ? argv[optind] : NULL, as_here);
}
