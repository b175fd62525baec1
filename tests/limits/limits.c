// SPDX-License-Identifier: GPL-2.0-only
// Rate limits over hours and years: compares the datapath, compiled with a clock that the test sets, with GCRA in
// unbounded arithmetic.
//
// usage: limits [SEED]
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/num.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/mapping.h"
#include "ctl/datapath/probe.h"
#include "tests/datapath/frame.h"
#include "tests/reference/balancer/clock.h"

#define CLIENTS 24
#define STEPS   20000
#define BYTES   100 // length of a frame

typedef unsigned __int128 wide;

static const char *const limits[] = {
	"over 1/h per source",
	"over 1/h burst 3 per source",
	"over 1/min burst 5 per source mask 24/64",
	"over 100/s per source max 1k",
	"over 7/s burst 2 per source mask 32/128",
	"under 3/min per destination",
	"over 8kbit/s burst 12112 per source",
	"over 1/h burst 2",
};

// Jiffies after which a bucket with a time of 44 bits appears to be in the future.
#define WRAP (1ull << 24)

struct client {
	struct frame frame;
	wide tat; // theoretical arrival time, in rate time
};

struct bench {
	struct candidate *candidate;
	struct policy_rule rule;
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

static void load(struct bench *b, const char *limit)
{
	static const struct dns_options none;
	CLEANUP_FREE char *text = mem_printf("drop %s\n", limit);
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

// Client n has its own source and destination, IPv4 and IPv6 in turn. The addresses differ under
// every mask.
static void make_client(struct client *c, unsigned n)
{
	CLEANUP_FREE char *src = mem_printf(n % 2 ? "2001:db8:%x::1" : "10.1.%u.1", n);
	CLEANUP_FREE char *dst = mem_printf(n % 2 ? "2001:db8:ff:%x::1" : "10.2.%u.1", n);

	*c = (struct client){0};
	frame_udp(&c->frame, src, dst, 0);
	frame_udp(&c->frame, src, dst, BYTES - c->frame.len);
}

static void bench_open(struct bench *b, const char *limit, uint64_t seed)
{
	*b = (struct bench){.clock_fd = -1, .random = seed * 2 + 1};
	load(b, limit);
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

// ---- packets ------------------------------------------------------------------------------------

static uint64_t now(const struct bench *b)
{
	return *(const volatile uint64_t *)b->clock.at;
}

static void wait_jiffies(struct bench *b, uint64_t jiffies)
{
	*(volatile uint64_t *)b->clock.at = now(b) + jiffies;
}

// True if the client's next packet conforms to the limit in the datapath.
static bool accepted(struct bench *b, unsigned client)
{
	struct frame *f = &b->clients[client].frame;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->at, .data_size_in = (uint32_t)f->len);

	if (bpf_prog_test_run_opts(generation_program(b->candidate->generation), &opts))
		die("cannot run a packet", errno);
	return (opts.retval == XDP_PASS) == !(b->rule.flags & RULE_UNDER);
}

// The same in arithmetic without a bound on time, and with a bucket for every client.
static bool conforms(struct bench *b, unsigned client)
{
	wide *tat = &b->clients[b->rule.per == PER_RULE ? 0 : client].tat;
	wide at = (wide)now(b) << RATE_SHIFT, units = b->rule.flags & RULE_BITS ? BYTES * 8 : 1;
	wide next = (*tat > at ? *tat : at) + (units * b->rule.cost_mult >> b->rule.cost_shift);

	if (next - at > b->rule.tolerance)
		return false;
	*tat = next;
	return true;
}

// ---- tests --------------------------------------------------------------------------------------

// A full burst, one more packet, then silence: afterwards the client is in its initial state. The expected
// result does not depend on the arithmetic of the kernel.
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

static unsigned test_silences(const char *limit)
{
	unsigned failed = 0, client = 0;
	uint64_t full;
	struct bench b;

	bench_open(&b, limit, 0);
	full = (b.rule.tolerance >> RATE_SHIFT) + 1; // time to be idle again
	for (uint64_t wraps = 0; wraps < 1ull << 16; wraps = wraps * 3 + 1) {
		for (unsigned part = 0; part <= 4; part++) {
			uint64_t jiffies = (wraps ? wraps * WRAP : full) + part * (full / 4);

			client = (client + 1) % CLIENTS;
			if (silence_is_idle(&b, client, jiffies))
				continue;
			if (!failed++)
				printf("FAILED: %s: not idle after %llu jiffies of silence\n",
				       limit, (unsigned long long)jiffies);
		}
	}
	bench_close(&b);
	return failed;
}

static uint64_t random_below(struct bench *b, uint64_t n)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (b->random >> 11) % n;
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

static unsigned test_history(const char *limit, uint64_t seed)
{
	unsigned failed = 0, passed = 0, client = 0;
	struct bench b;

	bench_open(&b, limit, seed);
	for (unsigned step = 0; step < STEPS && !failed; step++) {
		bool wanted;

		if (!random_below(&b, 30))
			client = (unsigned)random_below(&b, CLIENTS);
		wait_jiffies(&b, random_silence(&b));
		wanted = conforms(&b, client);
		passed += wanted;
		failed = accepted(&b, client) != wanted;
		if (failed)
			printf("FAILED: %s: seed %llu, step %u, client %u at jiffy %llu\n", limit,
			       (unsigned long long)seed, step, client, (unsigned long long)now(&b));
	}
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
	for (size_t n = 0; n < ARRAY_SIZE(limits); n++) {
		bad += test_silences(limits[n]) > 0;
		bad += test_history(limits[n], seed + n) > 0;
	}
	printf("%zu passed, %zu failed\n", 2 * ARRAY_SIZE(limits) - bad, bad);
	return bad ? 1 : 0;
}
