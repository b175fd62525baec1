// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of sets by value: random policies against an oracle that asks item by item.
#include "tests/unit/policy/world.h"

#include "ctl/base/text.h"
#include "ctl/policy/intervals.h"

#define SETS_MAX  6
#define ITEMS_MAX 9
#define LISTS_MAX 6
#define SPACE     64 // addresses tested: 10.0.0.0/26, 2001:db8::/122

enum kind { PREFIX, RANGE, SET };

struct item {
	enum kind kind;
	bool negated;
	uint8_t family;
	unsigned first, last; // last bits of the addresses; of a set: its number
	unsigned len;         // length of a prefix, within the last six bits: 0 .. 6
};

struct set {
	struct item items[ITEMS_MAX];
	size_t n;
	bool negated; // a list that begins with "not"
};

// ---- the oracle ---------------------------------------------------------------------------------

// The rank of an item for an address: 0 none, else 1 + 2 * length + not.
static unsigned rank_of(unsigned len, bool negated)
{
	return 1 + 2 * len + negated;
}

// The length of the prefix around the address after cutting the range: the largest aligned block.
static unsigned piece_len(const struct item *item, unsigned x)
{
	unsigned bits = 0;

	while (bits < 6) {
		unsigned mask = (2u << bits) - 1;

		if ((x & ~mask) < item->first || (x | mask) > item->last)
			break;
		bits++;
	}
	return 6 - bits;
}

static unsigned decide(const struct set *sets, const struct set *s, uint8_t family, unsigned x);

static unsigned speak(const struct set *sets, const struct item *item, uint8_t family, unsigned x)
{
	unsigned rank;

	if (item->kind == SET) {
		rank = decide(sets, &sets[item->first], family, x);
		return rank & 1 ? rank + item->negated : 0;
	}
	if (item->family != family || x < item->first || x > item->last)
		return 0;
	return rank_of(item->kind == PREFIX ? item->len : piece_len(item, x), item->negated);
}

static unsigned decide(const struct set *sets, const struct set *s, uint8_t family, unsigned x)
{
	unsigned best = 0;

	for (size_t i = 0; i < s->n; i++) {
		unsigned rank = speak(sets, &s->items[i], family, x);

		best = rank > best ? rank : best;
	}
	return best;
}

static bool any_address(const struct set *sets, const struct set *s)
{
	for (unsigned x = 0; x < SPACE; x++)
		if ((decide(sets, s, 4, x) | decide(sets, s, 6, x)) & 1)
			return true;
	return false;
}

static bool oracle(const struct set *sets, const struct set *s, uint8_t family, unsigned x)
{
	bool in = decide(sets, s, family, x) & 1;

	return s->negated && any_address(sets, s) ? !in : in;
}

// ---- random policies ----------------------------------------------------------------------------

static struct item random_item(uint64_t *seed, unsigned sets, bool exception)
{
	struct item item = {.negated = exception && unit_below(seed, 3) == 0,
			    .family = unit_below(seed, 4) ? 4 : 6};

	if (sets && unit_below(seed, 4) == 0) {
		item.kind = SET;
		item.first = unit_below(seed, sets);
	} else if (unit_below(seed, 3) == 0) {
		item.kind = RANGE;
		item.first = unit_below(seed, SPACE);
		item.last = item.first + unit_below(seed, SPACE - item.first);
	} else {
		item.kind = PREFIX;
		item.len = unit_below(seed, 7);
		item.first = unit_below(seed, SPACE) & ~((64u >> item.len) - 1);
		item.last = item.first | ((64u >> item.len) - 1);
	}
	return item;
}

static bool same_item(const struct item *a, const struct item *b)
{
	return a->kind == b->kind && a->first == b->first &&
	       (a->kind == SET ||
		(a->family == b->family && a->last == b->last && a->len == b->len));
}

// The same item twice would be an error when one has "not".
static void fill(struct set *s, uint64_t *seed, unsigned sets, size_t least, bool list)
{
	size_t n = least + unit_below(seed, ITEMS_MAX - (unsigned)least);

	s->negated = list && unit_below(seed, 3) == 0;
	for (s->n = 0; s->n < n; s->n++) {
		struct item item = random_item(seed, sets, !s->negated && !(list && !s->n));

		for (size_t i = 0; i < s->n; i++)
			if (same_item(&s->items[i], &item))
				item.negated = s->items[i].negated;
		s->items[s->n] = item;
	}
}

static void put_item(struct text *t, const struct item *item)
{
	const char *base = item->family == 4 ? "10.0.0." : "2001:db8::";

	text_add(t, item->negated ? "not " : "");
	if (item->kind == SET) {
		text_addf(t, "@s%u", item->first);
		return;
	}
	if (item->family == 4)
		text_addf(t, "%s%u", base, item->first);
	else
		text_addf(t, "%s%x", base, item->first);
	if (item->kind == PREFIX)
		text_addf(t, "/%u", item->len + (item->family == 4 ? 26 : 122));
	else if (item->family == 4)
		text_addf(t, "-%s%u", base, item->last);
	else
		text_addf(t, "-%s%x", base, item->last);
}

static void put_items(struct text *t, const struct set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		text_add(t, i ? ", " : "");
		put_item(t, &s->items[i]);
	}
}

struct policy {
	struct set sets[SETS_MAX], lists[LISTS_MAX];
	size_t n_sets, n_lists;
	struct text text;
};

static void make_policy(struct policy *p, uint64_t *seed)
{
	*p = (struct policy){.n_sets = 1 + unit_below(seed, SETS_MAX), .n_lists = LISTS_MAX};
	for (size_t i = 0; i < p->n_sets; i++)
		fill(&p->sets[i], seed, (unsigned)i, 0, false);
	for (size_t i = 0; i < p->n_lists; i++)
		fill(&p->lists[i], seed, (unsigned)p->n_sets, 1, true);
	// Sets are declared after their uses: the order does not matter.
	for (size_t i = 0; i < p->n_lists; i++) {
		text_addf(&p->text, "\"%zu\" count from %s", i, p->lists[i].negated ? "not " : "");
		put_items(&p->text, &p->lists[i]);
		text_add(&p->text, "\n");
	}
	for (size_t i = p->n_sets; i-- > 0;) {
		text_addf(&p->text, "set s%zu { ", i);
		put_items(&p->text, &p->sets[i]);
		text_add(&p->text, " }\n");
	}
}

// ---- the comparison -----------------------------------------------------------------------------

static struct addr address(uint8_t family, unsigned x)
{
	const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)x};

	return family == 6 ? addr_from_v6(v6) : addr_from_v4(0x0000000au | (uint32_t)x << 24);
}

static void compare(const struct policy *p, const struct set *want,
		    const struct resolved_addresses *got)
{
	for (unsigned x = 0; x < SPACE; x++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			struct addr a = address(family, x);
			bool in = got ? resolved_contains(got, &a, NULL) : true;

			if (in != oracle(p->sets, want, family, x))
				fail_msg("IPv%u %u: %d in %s of\n%s", family, x, in,
					 got && got->name ? got->name : "a list",
					 text_get(&p->text));
		}
}

static bool holds(const struct resolved_prefix4 *outer, const struct resolved_prefix4 *inner)
{
	return !outer->len ||
	       (outer->len <= inner->len && (outer->addr ^ inner->addr) >> (32 - outer->len) == 0);
}

// Sorted, host bits zero, and each prefix decides differently from the nearest one around it.
static void check_minimal(const struct resolved_addresses *s)
{
	for (size_t i = 0; i < s->n4; i++) {
		const struct resolved_prefix4 *p = &s->v4[i];
		bool around = false;

		if (i)
			assert_true(p->addr > p[-1].addr ||
				    (p->addr == p[-1].addr && p->len > p[-1].len));
		assert_true(p->len == 32 || !(p->addr & UINT32_MAX >> p->len));
		for (size_t j = 0; j < i; j++)
			if (holds(&s->v4[j], p))
				around = s->v4[j].in;
		assert_int_equal(p->in, !around);
	}
}

// The intervals of a set have exactly the addresses that it contains.
static void check_intervals(const struct resolved_addresses *s)
{
	struct intervals v = {0};
	bool in[SPACE] = {false};

	intervals_of(s, 4, &v);
	for (size_t i = 0; i < v.n; i++) {
		assert_true(v.at[i].first <= v.at[i].last);
		assert_true(!i || v.at[i].first > v.at[i - 1].last + 1);
		for (unsigned x = 0; x < SPACE; x++)
			if (v.at[i].first <= 0x0a000000u + x && 0x0a000000u + x <= v.at[i].last)
				in[x] = true;
	}
	for (unsigned x = 0; x < SPACE; x++) {
		struct addr a = address(4, x);

		assert_int_equal(in[x], resolved_contains(s, &a, NULL));
	}
	intervals_free(&v);
}

static const struct resolved_addresses *set_named(const struct resolved *r, size_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "s%zu", number);
	for (size_t i = 0; i < r->n_sets; i++)
		if (!strcmp(r->addresses[i].name, name))
			return &r->addresses[i];
	fail_msg("no set %s", name);
	return NULL;
}

static void test_random(void **state)
{
	uint64_t seed = 0x5e7b1e55;
	struct environment w = {0};

	for (unsigned round = 0; round < 4000; round++) {
		struct resolved *r;
		struct policy p;

		make_policy(&p, &seed);
		r = environment_load(&w, text_get(&p.text));
		if (!r)
			fail_msg("%s\n%s", w.messages, text_get(&p.text));
		for (size_t i = 0; i < p.n_sets; i++)
			compare(&p, &p.sets[i], set_named(r, i));
		for (size_t i = 0; i < p.n_lists; i++) {
			const struct resolved_address *a = &r->rules[i].from;

			compare(&p, &p.lists[i],
				a->kind == RESOLVED_ANY ? NULL : &r->addresses[a->index]);
		}
		for (size_t i = 0; i < r->n_addresses; i++) {
			check_minimal(&r->addresses[i]);
			check_intervals(&r->addresses[i]);
		}
		resolved_free(r);
		text_free(&p.text);
	}
	environment_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
