// SPDX-License-Identifier: GPL-2.0-only
// Sums the per-CPU counters of the datapath.
#include "ctl/datapath/counters.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/maps.h"

static const struct {
	const char *name, *text;
	enum weir_verdict verdict;
	enum weir_group group;
} reasons[] = {
#define X(symbol, name, verdict, group, text) \
	[REASON_##symbol] = {name, text, VERDICT_##verdict, GROUP_##group},
	WEIR_REASONS(X)
#undef X
};

static const struct {
	const char *word;
	enum expect_via via;
} groups[] = {
#define X(symbol, word, via, serves) [GROUP_##symbol] = {word, via},
	WEIR_GROUPS(X)
#undef X
};

static const struct {
	const char *name, *text;
} tallies[] = {
#define X(symbol, name, text) [TALLY_##symbol] = {name, text},
	WEIR_TALLIES(X)
#undef X
};

// The datapath distinguishes passes from drops by their order.
#define X(symbol, name, verdict, group, text)                       \
	_Static_assert((REASON_##symbol >= REASON_DROP_FIRST) ==    \
			       (VERDICT_##verdict == VERDICT_DROP), \
		       name);
WEIR_REASONS(X)
#undef X

const char *reason_name(enum weir_reason reason)
{
	return reason < WEIR_REASON_COUNT ? reasons[reason].name : "?";
}

const char *reason_text(enum weir_reason reason)
{
	return reason < WEIR_REASON_COUNT ? reasons[reason].text : "?";
}

bool reason_drops(enum weir_reason reason)
{
	return reason >= REASON_DROP_FIRST;
}

enum weir_verdict reason_verdict(enum weir_reason reason)
{
	return reasons[reason].verdict;
}

const char *reason_outcome(enum weir_reason reason)
{
	return reason_drops(reason) ? "drop" : "pass";
}

enum weir_group reason_group(enum weir_reason reason)
{
	return reasons[reason].group;
}

const char *group_word(enum weir_group group)
{
	return groups[group].word;
}

enum expect_via group_via(enum weir_group group)
{
	return groups[group].via;
}

const char *tally_name(enum weir_tally tally)
{
	return tallies[tally].name;
}

const char *tally_text(enum weir_tally tally)
{
	return tallies[tally].text;
}

// The values of all CPUs: of the counters of one interface, or of the tallies.
struct percpu_counters {
	struct counter *at;
	size_t cpus;
};

#define COUNTERS_MAX ((uint32_t)WEIR_REASON_COUNT)
_Static_assert((uint32_t)WEIR_TALLY_COUNT <= COUNTERS_MAX, "the tallies have room");

static struct counter sum_of(const struct percpu_counters *all, uint32_t n)
{
	return percpu_sum(all->at + n * all->cpus, all->cpus);
}

static int read_iface(const struct instance *i, uint32_t number, const struct percpu_counters *all,
		      struct counters *ret)
{
	int code = percpu_read(i->counters, number * WEIR_REASON_COUNT, WEIR_REASON_COUNT, all->at);

	if (code)
		return code;
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++)
		ret->at[number][r] = sum_of(all, r);
	return 0;
}

static int read_tallies(const struct instance *i, const struct percpu_counters *all,
			struct counters *ret)
{
	int code = percpu_read(i->counters, WEIR_TALLY_FIRST, WEIR_TALLY_COUNT, all->at);

	if (code)
		return code;
	for (uint32_t t = 0; t < WEIR_TALLY_COUNT; t++)
		ret->tally[t] = sum_of(all, t).packets;
	return 0;
}

static int read_all(const struct instance *i, uint64_t numbers, const struct percpu_counters *all,
		    struct counters *ret)
{
	for (uint32_t number = 0; number < WEIR_IFACES; number++) {
		int code = numbers >> number & 1 ? read_iface(i, number, all, ret) : 0;

		if (code)
			return code;
	}
	return read_tallies(i, all, ret);
}

int counters_read_of(const struct instance *i, uint64_t numbers, struct counters *ret,
		     struct err *err)
{
	CLEANUP_FREE struct counter *values = NULL;
	struct percpu_counters all = {0};
	int code = percpu_values(COUNTERS_MAX, sizeof(*values), &values, &all.cpus, err);

	if (code)
		return code;
	all.at = values;
	if ((code = read_all(i, numbers, &all, ret)))
		return err_system(err, -code, "cannot read the counters of instance '%s'", i->name);
	return 0;
}

int counters_read(const struct instance *i, struct counters *ret, struct err *err)
{
	CLEANUP_FREE struct counters *sums = mem_new(struct counters);
	int code = counters_read_of(i, UINT64_MAX, sums, err);

	if (code)
		return code;
	*ret = *sums;
	return 0;
}

int counters_clear(const struct instance *i, uint32_t number, struct err *err)
{
	CLEANUP_FREE struct counter *zeros = NULL;
	size_t cpus;
	int code = percpu_values(1, sizeof(*zeros), &zeros, &cpus, err);

	if (code)
		return code;
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++) {
		uint32_t index = number * WEIR_REASON_COUNT + r;

		if (bpf_map_update_elem(i->counters, &index, zeros, BPF_ANY))
			return err_system(err, errno, "cannot clear the counters of interface %u",
					  number);
	}
	return 0;
}

struct counter counters_reason(const struct counters *c, enum weir_reason reason)
{
	struct counter sum = {0};

	for (uint32_t number = 0; number < WEIR_IFACES; number++) {
		sum.packets += c->at[number][reason].packets;
		sum.bytes += c->at[number][reason].bytes;
	}
	return sum;
}

struct counter counters_iface(const struct counters *c, uint32_t number, bool drops_only)
{
	struct counter sum = {0};

	for (uint32_t r = drops_only ? REASON_DROP_FIRST : 0; r < WEIR_REASON_COUNT; r++) {
		sum.packets += c->at[number][r].packets;
		sum.bytes += c->at[number][r].bytes;
	}
	return sum;
}
