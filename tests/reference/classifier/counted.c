// SPDX-License-Identifier: GPL-2.0-only
// Packets and bytes by rule and by reason, read from the maps of the program.
#include "tests/reference/classifier/counted.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/counters.h"
#include "tests/reference/balancer/clock.h"

#define FRAME_BYTES 16384
#define NO_CLASS    256 // no interface is known yet

struct counted {
	const struct generation *generation;
	uint32_t ifindex;
	uint32_t class; // counters of the interface of the frames: number 0, as it is in no table
	int rules, reasons;
	int cpus;
	size_t n_rules;
	uint64_t *by_rule; // packets that should be there
	uint64_t by_reason[WEIR_REASON_COUNT];
	uint64_t general;
	bool has_short;
};

_Noreturn static void die(const char *what)
{
	perror(what);
	exit(2);
}

void counted_number(struct candidate *c)
{
	for (size_t r = 0; r < c->image->n_rules; r++)
		c->image->rules[r].counter = (uint32_t)r;
}

bool counted_suits(const struct candidate *c)
{
	if (c->image->config.conditions)
		return false;
	for (size_t r = 0; r < c->image->n_rules; r++)
		if (c->image->rules[r].action != ACTION_PASS &&
		    c->image->rules[r].action != ACTION_DROP)
			return false;
	return true;
}

struct counted *counted_new(const struct candidate *c, const struct generation *g)
{
	struct counted *ret = mem_new(struct counted);

	*ret = (struct counted){
		.generation = g,
		.ifindex = if_nametoindex("lo"),
		.class = NO_CLASS,
		.rules = map_of(generation_program_of(g, GENERATION_GENERAL), "rulecounters"),
		.reasons = map_of(generation_program_of(g, GENERATION_GENERAL), "counters"),
		.cpus = libbpf_num_possible_cpus(),
		.n_rules = c->image->n_rules,
		.by_rule = mem_zalloc(c->image->n_rules + 1, sizeof(*ret->by_rule)),
		.has_short = generation_program_of(g, GENERATION_SHORT) >= 0,
	};
	if (ret->reasons < 0 || (ret->n_rules && ret->rules < 0) || ret->cpus < 1)
		die("cannot find the counters of a program");
	return ret;
}

void counted_free(struct counted *c)
{
	if (!c)
		return;
	fd_close(c->rules);
	fd_close(c->reasons);
	free(c->by_rule);
	free(c);
}

static void enter(struct counted *c, uint32_t class)
{
	struct err err = {0};

	if (class == c->class)
		return;
	if (generation_set_iface(c->generation, 0, (uint8_t) class, &err))
		die(err.text);
	c->class = class;
}

const char *counted_send(struct counted *c, const uint8_t *frame, size_t length,
			 const struct policy_test *ask, const struct test_result *tested)
{
	static uint8_t out[FRAME_BYTES];
	struct xdp_md ctx = {.data_end = (uint32_t)length, .ingress_ifindex = c->ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (uint32_t)length,
		    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx));

	enter(c, ask->iface);
	if (bpf_prog_test_run_opts(generation_program(c->generation), &opts))
		return strerror(errno);
	if (tested->rule >= 0)
		c->by_rule[tested->rule]++;
	c->by_reason[tested->reason]++;
	c->general += tested->general;
	if (opts.retval != tested->verdict)
		return "program and test program have different verdicts";
	return opts.data_size_out == length && !memcmp(out, frame, length)
		       ? NULL
		       : "the program has changed the packet";
}

static struct counter read_counter(const struct counted *c, int map, uint32_t index)
{
	CLEANUP_FREE struct counter *cpu = mem_zalloc((size_t)c->cpus, sizeof(*cpu));
	struct counter sum = {0};

	if (bpf_map_lookup_elem(map, &index, cpu))
		die("cannot read a counter");
	for (int i = 0; i < c->cpus; i++) {
		sum.packets += cpu[i].packets;
		sum.bytes += cpu[i].bytes;
	}
	return sum;
}

static bool differs(const char *name, const char *what, size_t number, uint64_t is, uint64_t should)
{
	if (is == should)
		return false;
	printf("%s: %s %zu has counted %llu packets, not %llu\n", name, what, number,
	       (unsigned long long)is, (unsigned long long)should);
	return true;
}

size_t counted_check(const struct counted *c, const char *name)
{
	size_t bad = 0;

	for (uint32_t r = 0; r < c->n_rules; r++)
		bad += differs(name, "rule", r + 1, read_counter(c, c->rules, r).packets,
			       c->by_rule[r]);
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++)
		bad += differs(name, reason_name(r), r, read_counter(c, c->reasons, r).packets,
			       c->by_reason[r]);
	if (c->has_short)
		bad += differs(
			name, "the general way", 0,
			read_counter(c, c->reasons, WEIR_TALLY_FIRST + TALLY_GENERAL).packets,
			c->general);
	return bad;
}

bool counted_equal(const struct counted *c, const struct counted *other)
{
	for (uint32_t r = 0; r < c->n_rules; r++)
		if (read_counter(c, c->rules, r).bytes !=
		    read_counter(other, other->rules, r).bytes)
			return false;
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++)
		if (read_counter(c, c->reasons, r).bytes !=
		    read_counter(other, other->reasons, r).bytes)
			return false;
	return true;
}
