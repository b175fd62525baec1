// SPDX-License-Identifier: GPL-2.0-only
// Reads counters of rules, per CPU, in few calls.
#include "ctl/datapath/rule_counts.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/identities.h"
#include "ctl/datapath/maps.h"

static int cannot_read(int code, struct err *err)
{
	return err_system(err, -code, "cannot read the rules' counters");
}

int rule_count(const struct instance *i, const char *identity, struct counter *ret, struct err *err)
{
	CLEANUP_FREE struct counter *values = NULL;
	uint32_t index;
	size_t cpus;
	int code = percpu_values(1, sizeof(*values), &values, &cpus, err);

	if (code)
		return code;
	code = identities_index(i, identity, &index);
	if (code == -ENOENT) {
		*ret = (struct counter){0};
		return 0;
	}
	if (code || (code = bpf_map_lookup_elem(i->rulecounters, &index, values)))
		return cannot_read(code, err);
	*ret = percpu_sum(values, cpus);
	return 0;
}

#define TOGETHER 256u // counters that one call reads

static bool is_within(uint32_t index, uint32_t first)
{
	return index >= first && index - first < TOGETHER && index < WEIR_RULE_COUNTERS;
}

// Those of the indexes from `first` on.
static int read_together(const struct instance *i, uint32_t first, const uint32_t *indexes,
			 size_t n, struct counter *values, size_t cpus, struct counter *ret)
{
	uint32_t left = WEIR_RULE_COUNTERS - first;
	bool read = false;

	for (size_t k = 0; k < n; k++) {
		int code = 0;

		if (!is_within(indexes[k], first))
			continue;
		if (!read)
			code = percpu_read(i->rulecounters, first,
					   left < TOGETHER ? left : TOGETHER, values);
		if (code)
			return code;
		read = true;
		ret[k] = percpu_sum(values + (indexes[k] - first) * cpus, cpus);
	}
	return 0;
}

int rule_counts_at(const struct instance *i, const uint32_t *indexes, size_t n, struct counter *ret,
		   struct err *err)
{
	CLEANUP_FREE struct counter *values = NULL;
	size_t cpus;
	int code = percpu_values(TOGETHER, sizeof(*values), &values, &cpus, err);

	if (code)
		return code;
	memset(ret, 0, n * sizeof(*ret));
	for (uint32_t first = 0; n && first < WEIR_RULE_COUNTERS; first += TOGETHER) {
		code = read_together(i, first, indexes, n, values, cpus, ret);
		if (code)
			return cannot_read(code, err);
	}
	return 0;
}
