// SPDX-License-Identifier: GPL-2.0-only
// Generates sets of random addresses.
#include "tests/bench/sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static struct addr random_addr(uint8_t family, uint64_t *state)
{
	// The first 16 bits of prefixes that registries assign.
	static const uint16_t heads[] = {0x2001, 0x2003, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404,
					 0x2405, 0x2406, 0x2407, 0x2600, 0x2601, 0x2602, 0x2603,
					 0x2604, 0x2605, 0x2606, 0x2607, 0x2800, 0x2801, 0x2803,
					 0x2804, 0x2a00, 0x2a01, 0x2a02, 0x2a03, 0x2a04, 0x2a05,
					 0x2a06, 0x2a07, 0x2c0e, 0x2c0f};
	struct addr a = {.family = family};
	uint64_t words[2] = {random_next(state), random_next(state)};

	memcpy(a.bytes, words, family == 4 ? 4 : 16);
	if (family == 4) {
		// 1 … 126 and 128 … 223: the unicast addresses that a list may contain.
		a.bytes[0] = (uint8_t)(1 + words[1] % 222);
		a.bytes[0] = (uint8_t)(a.bytes[0] + (a.bytes[0] >= 127));
		return a;
	}
	a.bytes[0] = (uint8_t)(heads[a.bytes[0] % ARRAY_SIZE(heads)] >> 8);
	a.bytes[1] = (uint8_t)heads[a.bytes[1] % ARRAY_SIZE(heads)];
	return a;
}

static uint8_t random_len(uint8_t family, uint64_t *state)
{
	static const uint8_t lens4[] = {20, 22, 22, 23, 24, 24, 24, 24,
					24, 24, 25, 26, 27, 28, 30, 31};
	static const uint8_t lens6[] = {32, 36, 40, 44, 48, 48, 48, 48,
					48, 56, 56, 60, 64, 64, 64, 64};
	uint64_t r = random_next(state) % 16;

	return family == 4 ? lens4[r] : lens6[r];
}

static int compare(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

static size_t sort_unique(struct prefix *at, size_t n)
{
	size_t kept = 0;

	qsort(at, n, sizeof(*at), compare);
	for (size_t i = 0; i < n; i++)
		if (!kept || prefix_compare(&at[kept - 1], &at[i]))
			at[kept++] = at[i];
	return kept;
}

static void find_outer(struct set *s)
{
	s->outer = mem_zalloc(s->n, sizeof(const struct prefix *));
	for (size_t i = 0; i < s->n; i++)
		if (!s->outer_n || !prefix_contains(s->outer[s->outer_n - 1], &s->at[i]))
			s->outer[s->outer_n++] = &s->at[i];
}

static void make(uint8_t family, size_t n, bool hosts, uint64_t seed, struct set *ret)
{
	struct set s = {.family = family, .at = mem_zalloc(n, sizeof(*s.at))};

	while (s.n < n) {
		for (; s.n < n; s.n++) {
			struct addr a = random_addr(family, &seed);

			s.at[s.n] = prefix_of(
				&a, (uint8_t)(hosts ? addr_bits(&a) : random_len(family, &seed)));
		}
		s.n = sort_unique(s.at, n);
	}
	find_outer(&s);
	*ret = s;
}

void set_hosts(uint8_t family, size_t n, uint64_t seed, struct set *ret)
{
	make(family, n, true, seed, ret);
}

void set_prefixes(uint8_t family, size_t n, uint64_t seed, struct set *ret)
{
	make(family, n, false, seed, ret);
}

void set_free(struct set *s)
{
	free(s->at);
	free(s->outer);
	*s = (struct set){0};
}

void set_write(const struct set *s, const char *path)
{
	FILE *f = fopen(path, "we");
	addr_text text;

	if (!f)
		bench_fail(errno, "cannot write '%s'", path);
	for (size_t i = 0; i < s->n; i++)
		fprintf(f, "%s\n", prefix_format(&s->at[i], text));
	if (fclose(f))
		bench_fail(errno, "cannot write '%s'", path);
}

static bool contains(const struct set *s, const struct addr *a)
{
	struct prefix host = {.addr = *a, .len = (uint8_t)addr_bits(a)};
	size_t low = 0, high = s->outer_n;

	// The last range that does not begin after the address.
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (addr_compare(&s->outer[middle]->addr, a) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && prefix_contains(s->outer[low - 1], &host);
}

static struct addr draw_present(const struct set *s, uint64_t *state)
{
	const struct prefix *p = &s->at[random_next(state) % s->n];
	struct addr a = random_addr(s->family, state);

	for (unsigned bit = 0; bit < p->len; bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		a.bytes[bit / 8] =
			(uint8_t)((a.bytes[bit / 8] & ~mask) | (p->addr.bytes[bit / 8] & mask));
	}
	return a;
}

static struct addr draw_absent(const struct set *const *sets, size_t n, uint64_t *state)
{
	for (;;) {
		struct addr a = random_addr(sets[0]->family, state);
		size_t i = 0;

		while (i < n && !contains(sets[i], &a))
			i++;
		if (i == n)
			return a;
	}
}

void set_draw(const struct set *const *sets, size_t sets_n, enum kind kind, size_t n, uint64_t seed,
	      struct addr *ret)
{
	for (size_t i = 0; i < n; i++) {
		bool present = kind == KIND_PRESENT || (kind == KIND_MIX && random_next(&seed) % 2);

		ret[i] = present ? draw_present(sets[random_next(&seed) % sets_n], &seed)
				 : draw_absent(sets, sets_n, &seed);
	}
}
