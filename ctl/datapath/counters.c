// SPDX-License-Identifier: GPL-2.0-only
// Sums per-CPU rows; names reasons.
#include "ctl/datapath/counters.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/percpu.h"

static const struct {
	const char *name, *text;
} reasons[] = {
#define X(symbol, name, verdict, text) [REASON_##symbol] = {name, text},
	WEIR_REASONS(X)
#undef X
};

static const struct {
	const char *name, *text;
} tallies[] = {
#define X(symbol, name, text) [TALLY_##symbol] = {name, text},
	WEIR_TALLIES(X)
#undef X
};

// The datapath tells passes from drops by their order.
#define VERDICT_PASS 0
#define VERDICT_DROP 1
#define X(symbol, name, verdict, text) \
	_Static_assert((REASON_##symbol >= REASON_DROP_FIRST) == VERDICT_##verdict, name);
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

const char *tally_name(enum weir_tally tally)
{
	return tallies[tally].name;
}

const char *tally_text(enum weir_tally tally)
{
	return tallies[tally].text;
}

static int read_row(int fd, uint32_t row, struct counter *cpus, size_t n, struct counter *ret)
{
	if (bpf_map_lookup_elem(fd, &row, cpus))
		return -errno;
	for (size_t cpu = 0; cpu < n; cpu++) {
		ret->packets += cpus[cpu].packets;
		ret->bytes += cpus[cpu].bytes;
	}
	return 0;
}

static int read_iface(const struct instance *i, uint32_t number, struct counter *cpus, size_t n,
		      struct counters *ret)
{
	int code = 0;

	for (uint32_t r = 0; !code && r < WEIR_REASON_COUNT; r++)
		code = read_row(i->counters, number * WEIR_REASON_COUNT + r, cpus, n,
				&ret->at[number][r]);
	return code;
}

static int read_tallies(const struct instance *i, struct counter *cpus, size_t n,
			struct counters *ret)
{
	int code = 0;

	for (uint32_t t = 0; !code && t < WEIR_TALLY_COUNT; t++) {
		struct counter sum = {0};

		code = read_row(i->counters, WEIR_TALLY_ROWS + t, cpus, n, &sum);
		ret->tally[t] = sum.packets;
	}
	return code;
}

int counters_read(const struct instance *i, struct counters *ret, struct err *err)
{
	CLEANUP_FREE struct counters *sums = mem_new(struct counters);
	CLEANUP_FREE struct counter *row = NULL;
	size_t cpus;
	int code = percpu_row(sizeof(*row), &row, &cpus, err);

	if (code)
		return code;
	for (uint32_t number = 0; !code && number < WEIR_IFACES; number++)
		code = read_iface(i, number, row, cpus, sums);
	if (!code)
		code = read_tallies(i, row, cpus, sums);
	if (code)
		return err_system(err, -code, "cannot read the counters of instance '%s'", i->name);
	*ret = *sums;
	return 0;
}

int counters_clear(const struct instance *i, uint32_t number, struct err *err)
{
	CLEANUP_FREE struct counter *zeros = NULL;
	size_t cpus;
	int code = percpu_row(sizeof(*zeros), &zeros, &cpus, err);

	for (uint32_t r = 0; !code && r < WEIR_REASON_COUNT; r++) {
		uint32_t row = number * WEIR_REASON_COUNT + r;

		if (bpf_map_update_elem(i->counters, &row, zeros, BPF_ANY))
			code = err_system(err, errno, "cannot clear the counters of interface %u",
					  number);
	}
	return code;
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
