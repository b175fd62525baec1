// SPDX-License-Identifier: GPL-2.0-only
// Rate limits over hours and years: compares the datapath, compiled with a clock that the test
// sets, with GCRA in unbounded arithmetic. Each packet goes to the short or to the general program,
// by chance: both charge the same buckets, and a packet that the short one leaves to the general
// one is charged once.
//
// usage: limits [SEED]
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/num.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/probe.h"
#include "tests/datapath/frame.h"
#include "tests/reference/balancer/clock.h"

#define CLIENTS 24
#define STEPS   20000
#define BYTES   100 // length of a frame

typedef unsigned __int128 wide;

// The limit of the first rule. is_short: the short program decides all packets.
struct policy {
	const char *text;
	bool is_short;
};

static const struct policy policies[] = {
	{"drop over 1/h per source", true},
	{"drop over 1/h burst 3 per source", true},
	{"drop over 1/min burst 5 per source mask 24/64", true},
	{"drop over 100/s per source max 1k", true},
	{"drop over 7/s burst 2 per source mask 32/128", true},
	{"drop under 3/min per destination", true},
	{"drop over 8kbit/s burst 12112 per source", true},
	{"drop over 1/h burst 2", true},
	{"default drop\npass under 3/min per source", true},
	{"default drop\ndrop over 1/h burst 3 per source\npass proto udp", true},
	{"drop over 1/h burst 3 per source\npass log", false},
	{"drop over 1/min burst 3 per source\ndrop over 1M/s per destination", false},
	{"drop over 1/min burst 3 per source log", false},
	{"drop over 1/h burst 3 per source ttl 0-255", false},
};

// Jiffies after which a bucket with a time of 44 bits appears to be in the future.
#define WRAP (1ull << 24)

struct client {
	struct frame frame;
	wide tat; // theoretical arrival time, in rate time
};

struct bench {
	const struct policy *policy;
	struct candidate *candidate;
	struct policy_rule rule;
	uint64_t general; // packets that went to the general program
	int clock_fd;
	struct mapping clock;
	struct client clients[CLIENTS];
	uint64_t random;
};

_Noreturn static void die(const char *what, int code)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	fprintf(stderr, "limits: %s\n", err.text);
	exit(2);
}

// ---- loading ------------------------------------------------------------------------------------

static void load(struct bench *b)
{
	static const struct dns_options none;
	CLEANUP_FREE char *text = mem_printf("%s\n", b->policy->text);
	char path[] = "/tmp/weir-limits-XXXXXX";
	int fd = mkstemp(path), code;
	struct err err = {0};

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("cannot write the policy", errno);
	close(fd);
	b->candidate = candidate_new(&none, NULL);
	code = candidate_compile(b->candidate, path, NULL, 0);
	if (code)
		diag_print(b->candidate->diag, stderr, false);
	unlink(path);
	if (code || candidate_load(b->candidate, NULL, &err))
		die(code ? "invalid policy" : err.text, EINVAL);
	b->rule = b->candidate->image->rules[0];
}

static void open_clock(struct bench *b)
{
	struct err err = {0};

	b->clock_fd =
		clock_map(generation_program_of(b->candidate->generation, GENERATION_GENERAL));
	if (b->clock_fd < 0)
		die("the program has no clock to set", -b->clock_fd);
	if (mapping_open(&b->clock, b->clock_fd, sizeof(uint64_t), &err))
		die(err.text, EINVAL);
}

static void add_tag(struct frame *f)
{
	static const uint8_t tag[] = {0x81, 0, 0, 7};

	memmove(f->at + 16, f->at + 12, f->len - 12);
	memcpy(f->at + 12, tag, sizeof(tag));
	f->len += sizeof(tag);
}

// Client n has its own source and destination, IPv4 and IPv6 in turn, some with a tag. The
// addresses differ under every mask.
static void make_client(struct client *c, unsigned n)
{
	CLEANUP_FREE char *src = mem_printf(n % 2 ? "2001:db8:%x::1" : "10.1.%u.1", n);
	CLEANUP_FREE char *dst = mem_printf(n % 2 ? "2001:db8:ff:%x::1" : "10.2.%u.1", n);

	*c = (struct client){0};
	frame_udp(&c->frame, src, dst, 0);
	frame_udp(&c->frame, src, dst, BYTES - c->frame.len);
	if (n % 3 == 2)
		add_tag(&c->frame);
}

static void bench_open(struct bench *b, const struct policy *policy, uint64_t seed)
{
	*b = (struct bench){.policy = policy, .clock_fd = -1, .random = seed * 2 + 1};
	load(b);
	open_clock(b);
	for (unsigned n = 0; n < CLIENTS; n++)
		make_client(&b->clients[n], n);
	*(volatile uint64_t *)b->clock.at =
		0xffff0000; // the initial value of the kernel, below 2^32
}

static void bench_close(struct bench *b)
{
	mapping_close(&b->clock);
	fd_close(b->clock_fd);
	candidate_free(b->candidate);
}

static uint64_t random_below(struct bench *b, uint64_t n)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (b->random >> 11) % n;
}

// ---- packets ------------------------------------------------------------------------------------

static uint64_t now(const struct bench *b)
{
	return *(const volatile uint64_t *)b->clock.at;
}

// Has each packet taken the way that it should?
static bool ways_differ(const struct bench *b)
{
	uint32_t index = WEIR_TALLY_FIRST + TALLY_GENERAL;
	int map = map_of(generation_program_of(b->candidate->generation, GENERATION_GENERAL),
			 "counters");
	CLEANUP_FREE struct counter *cpu =
		mem_zalloc((size_t)libbpf_num_possible_cpus(), sizeof(*cpu));
	uint64_t general = 0;

	if (map < 0 || bpf_map_lookup_elem(map, &index, cpu))
		die("cannot read a counter", errno);
	fd_close(map);
	for (int n = 0; n < libbpf_num_possible_cpus(); n++)
		general += cpu[n].packets;
	if (general != b->general)
		printf("FAILED: %s: %llu packets have taken the general way, not %llu\n",
		       b->policy->text, (unsigned long long)general,
		       (unsigned long long)b->general);
	return general != b->general;
}

static void wait_jiffies(struct bench *b, uint64_t jiffies)
{
	*(volatile uint64_t *)b->clock.at = now(b) + jiffies;
}

// The first program of the policy, or only the general one.
static int choose_program(struct bench *b)
{
	bool general = random_below(b, 2);

	b->general += general || !b->policy->is_short;
	return general ? generation_program_of(b->candidate->generation, GENERATION_GENERAL)
		       : generation_program(b->candidate->generation);
}

// True if the client's next packet conforms to the limit in the datapath.
static bool accepted(struct bench *b, unsigned client)
{
	struct frame *f = &b->clients[client].frame;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->at, .data_size_in = (uint32_t)f->len);
	bool decided;

	if (bpf_prog_test_run_opts(choose_program(b), &opts))
		die("cannot run a packet", errno);
	decided = (opts.retval == XDP_PASS) == (b->rule.action == ACTION_PASS);
	return decided == !!(b->rule.flags & RULE_UNDER);
}

// The same in arithmetic without a bound on time, and with a bucket for every client.
static bool conforms(struct bench *b, unsigned client)
{
	wide *tat = &b->clients[b->rule.per == PER_RULE ? 0 : client].tat;
	wide at = (wide)now(b) << RATE_SHIFT,
	     units = b->rule.flags & RULE_BITS ? b->clients[client].frame.len * 8 : 1;
	wide next = (*tat > at ? *tat : at) + (units * b->rule.cost_mult >> b->rule.cost_shift);

	if (next - at > b->rule.tolerance)
		return false;
	*tat = next;
	return true;
}

// ---- tests --------------------------------------------------------------------------------------

// A full burst, one more packet, then silence: afterwards the client is in its initial state. The
// expected result does not depend on the arithmetic of the kernel.
static bool silence_is_idle(struct bench *b, unsigned client, uint64_t jiffies)
{
	unsigned burst = 0;

	while (accepted(b, client) && burst < 100000)
		burst++;
	wait_jiffies(b, jiffies);
	for (unsigned n = 0; n < burst; n++)
		if (!accepted(b, client))
			return false;
	wait_jiffies(b, b->rule.tolerance >> RATE_SHIFT);
	return burst;
}

static unsigned test_silences(const struct policy *policy)
{
	unsigned failed = 0, client = 0;
	uint64_t full;
	struct bench b;

	bench_open(&b, policy, 0);
	full = (b.rule.tolerance >> RATE_SHIFT) + 1; // time to be idle again
	for (uint64_t wraps = 0; wraps < 1ull << 16; wraps = wraps * 3 + 1) {
		for (unsigned part = 0; part <= 4; part++) {
			uint64_t jiffies = (wraps ? wraps * WRAP : full) + part * (full / 4);

			client = (client + 1) % CLIENTS;
			if (silence_is_idle(&b, client, jiffies))
				continue;
			if (!failed++)
				printf("FAILED: %s: not idle after %llu jiffies of silence\n",
				       policy->text, (unsigned long long)jiffies);
		}
	}
	failed += ways_differ(&b);
	bench_close(&b);
	return failed;
}

// Mostly 0; sometimes a short time, or a wrap plus or minus the time that the limit remembers.
static uint64_t random_silence(struct bench *b)
{
	uint64_t full = (b->rule.tolerance >> RATE_SHIFT) + 2;

	switch (random_below(b, 400)) {
	case 0:
		return random_below(b, 1ull << 28);
	case 1:
		return WRAP * (1 + random_below(b, 4)) + random_below(b, full);
	case 2:
		return WRAP - random_below(b, full);
	case 3:
	case 4:
		return random_below(b, full);
	case 5:
	case 6:
		return 1 + random_below(b, 3);
	default:
		return 0;
	}
}

static unsigned test_history(const struct policy *policy, uint64_t seed)
{
	unsigned failed = 0, passed = 0, client = 0;
	struct bench b;

	bench_open(&b, policy, seed);
	for (unsigned step = 0; step < STEPS && !failed; step++) {
		bool wanted;

		if (!random_below(&b, 30))
			client = (unsigned)random_below(&b, CLIENTS);
		wait_jiffies(&b, random_silence(&b));
		wanted = conforms(&b, client);
		passed += wanted;
		failed = accepted(&b, client) != wanted;
		if (failed)
			printf("FAILED: %s: seed %llu, step %u, client %u at jiffy %llu\n",
			       policy->text, (unsigned long long)seed, step, client,
			       (unsigned long long)now(&b));
	}
	failed += ways_differ(&b);
	bench_close(&b);
	return failed || !passed || passed == STEPS;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	size_t bad = 0;

	if (argc > 2 ||
	    (argc == 2 && num_parse_u64(argv[1], strlen(argv[1]), 0, UINT32_MAX, &seed))) {
		fputs("usage: limits [SEED]\n", stderr);
		return 2;
	}
	probe_quiet(true);
	for (size_t n = 0; n < ARRAY_SIZE(policies); n++) {
		bad += test_silences(&policies[n]) > 0;
		bad += test_history(&policies[n], seed + n) > 0;
	}
	printf("%zu passed, %zu failed\n", 2 * ARRAY_SIZE(policies) - bad, bad);
	return bad ? 1 : 0;
}
