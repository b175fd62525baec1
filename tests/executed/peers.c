// SPDX-License-Identifier: GPL-2.0-only
// Takes the place of the bench's peers, of which nothing is counted: none is loaded. The floors are
// real.
#include "tests/bench/subject.h"

static void absent(const char *name, struct subject *ret)
{
	*ret = (struct subject){.name = name};
}

void subject_empty(struct subject *ret)
{
	absent("empty", ret);
}

void subject_hash(const struct set *s, struct subject *ret)
{
	absent("kernel-hash", ret);
}

void subject_lpm(const struct set *s, struct subject *ret)
{
	absent("kernel-lpm", ret);
}

void subject_lru(uint32_t entries, struct subject *ret)
{
	absent("kernel-lru", ret);
}

void subject_linear(const struct bench_rule *rules, size_t n, struct subject *ret)
{
	absent("linear", ret);
}

void subject_xdp_filter(const char *what, const struct set *const *sets, size_t n,
			struct subject *ret)
{
	absent("xdp-filter", ret);
}
