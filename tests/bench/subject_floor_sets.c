// SPDX-License-Identifier: GPL-2.0-only
// Fills the tables of the floors of the filter, the overlay and the limits.
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/floor.bpf.h"
#include "tests/bench/floor.h"
#include "tests/bench/floor_entries.skel.h"
#include "tests/bench/floor_filter.skel.h"
#include "tests/bench/floor_sets.skel.h"
#include "tests/bench/subject.h"

#define FEW 50000 // prefixes, for which there are nodes

// The differences between the three objects: how each is loaded, filled and freed.
struct form {
	const char *name, *program;
	uint32_t shift;
	void *(*load)(const struct form *f, const struct set *s, int *ret_program);
	void (*destroy)(void *skel);
};

struct floors {
	void *loads[SUBJECT_LOADS];
	void (*destroy)(void *skel);
};

static void release(void *own)
{
	struct floors *f = own;

	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		f->destroy(f->loads[i]);
	free(f);
}

static void load_form(const struct form *form, const struct set *s, struct subject *ret)
{
	struct floors *f = mem_new(struct floors);

	f->destroy = form->destroy;
	*ret = (struct subject){
		.name = form->name, .loads = SUBJECT_LOADS, .own = f, .release = release};
	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		f->loads[i] = form->load(form, s, &ret->programs[i]);
}

#define LOAD(kind, form)                                                          \
	({                                                                        \
		struct floor_##kind##_bpf *loaded = floor_##kind##_bpf__open();   \
		int failed;                                                       \
                                                                                  \
		if (!loaded)                                                      \
			bench_fail(errno, "cannot open a floor");                 \
		floor_choose(loaded->obj, (form)->program);                       \
		*(uint32_t *)&loaded->rodata->shift = (form)->shift;              \
		if ((failed = floor_##kind##_bpf__load(loaded)))                  \
			bench_fail(-failed, "cannot load '%s'", (form)->program); \
		loaded;                                                           \
	})

// ---- IPv4 ---------------------------------------------------------------------------------------

// More than twice as many cells as hosts.
static uint32_t cells_log2(size_t hosts, uint32_t most)
{
	uint32_t log2 = 1;

	while ((1ull << log2) < 2 * hosts)
		log2++;
	if (log2 > most)
		bench_fail(E2BIG, "no floor for %zu hosts", hosts);
	return log2;
}

static void put_hosts(const struct set *s, uint32_t shift, uint32_t *cells)
{
	for (size_t i = 0; i < s->n; i++) {
		uint32_t key, at;

		memcpy(&key, s->at[i].addr.bytes, sizeof(key));
		at = (uint32_t)(key * FLOOR_MULTIPLIER >> shift);
		while (cells[at % FLOOR_CELLS])
			at++;
		cells[at % FLOOR_CELLS] = key;
	}
}

// Puts a range in front of the nodes of its /16.
static void put_range(uint32_t first, uint32_t last, uint16_t *direct, struct floor_node *nodes,
		      uint32_t *n)
{
	uint16_t *root = &direct[first >> 16];

	if (*n == FLOOR_NODES)
		bench_fail(E2BIG, "no floor for more than %u prefixes", FLOOR_NODES);
	nodes[*n] = (struct floor_node){
		.low = (uint16_t)first, .span = (uint16_t)(last - first), .next = *root};
	*root = (uint16_t)(*n)++;
}

static void put_prefixes(const struct set *s, uint16_t *direct, struct floor_node *nodes)
{
	uint32_t n = FLOOR_FIRST;

	for (size_t i = 0; i < s->outer_n; i++) {
		uint32_t first, bits = 32u - s->outer[i]->len;

		memcpy(&first, s->outer[i]->addr.bytes, sizeof(first));
		first = ntohl(first);
		if (bits > 16)
			bench_fail(EINVAL, "no floor for prefixes wider than /16");
		put_range(first, first + (uint32_t)((1ull << bits) - 1), direct, nodes, &n);
	}
}

static void destroy_filter(void *skel)
{
	floor_filter_bpf__destroy(skel);
}

static void *load_filter(const struct form *f, const struct set *s, int *ret_program)
{
	struct floor_filter_bpf *skel = LOAD(filter, f);

	if (f->shift)
		put_hosts(s, f->shift, skel->bss->cells);
	else
		put_prefixes(s, skel->bss->direct, skel->bss->nodes);
	*ret_program = floor_program(skel->obj, f->program);
	return skel;
}

static bool is_bit(uint64_t word, uint32_t bit)
{
	return word >> bit & 1;
}

// The leaf of a /24 that is mixed from now on: the leaves of a cell follow each other in the order
// of the addresses, as the prefixes do.
static struct floor_leaf *leaf_of(uint32_t address, struct floor_sets_bpf *skel, uint32_t *n)
{
	uint32_t cell = address >> FLOOR_BITS_SHIFT, bit = address >> 8 & 63;
	struct floor_bits *bits = &skel->bss->bits[cell];

	if (is_bit(bits->mixed, bit))
		return &skel->bss->leaves[*n - 1];
	if (*n == FLOOR_LEAVES)
		bench_fail(E2BIG, "no floor for more than %u mixed networks", FLOOR_LEAVES);
	if (!bits->mixed)
		skel->bss->first[cell] = *n;
	bits->mixed |= 1ull << bit;
	return &skel->bss->leaves[(*n)++];
}

static void put_many(const struct set *s, struct floor_sets_bpf *skel)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->outer_n; i++) {
		uint32_t from, bits = 32u - s->outer[i]->len, step = bits < 8 ? 1 : 256;
		struct floor_leaf *leaf;

		memcpy(&from, s->outer[i]->addr.bytes, sizeof(from));
		from = ntohl(from);
		leaf = bits < 8 ? leaf_of(from, skel, &n) : NULL;
		for (uint32_t at = from; at - from < 1u << bits; at += step)
			if (leaf)
				leaf->in[at >> 6 & 3] |= 1ull << (at & 63);
			else
				skel->bss->bits[at >> FLOOR_BITS_SHIFT].all |= 1ull
									       << (at >> 8 & 63);
	}
}

// ---- IPv6 ---------------------------------------------------------------------------------------

static void put_hosts6(const struct set *s, uint32_t shift, struct floor_host6 *hosts)
{
	for (size_t i = 0; i < s->n; i++) {
		struct floor_host6 host;
		uint32_t at;

		memcpy(&host, s->at[i].addr.bytes, sizeof(host));
		at = floor_host6_hash(host, shift);
		while (hosts[at % FLOOR_CELLS6].high)
			at++;
		hosts[at % FLOOR_CELLS6] = host;
	}
}

static void put_prefixes6(const struct set *s, uint32_t *heads, struct floor_node6 *nodes)
{
	for (size_t i = 0; i < s->outer_n; i++) {
		uint32_t bits = 64u - s->outer[i]->len, *head, node = (uint32_t)i + 1;
		uint64_t high;

		if (node == FLOOR_NODES6 || bits > 32)
			bench_fail(E2BIG, "no floor for such a set of IPv6 prefixes");
		memcpy(&high, s->outer[i]->addr.bytes, sizeof(high));
		high = be64toh(high);
		head = &heads[floor_head_hash(high)];
		nodes[node] = (struct floor_node6){
			.low = high, .span = (uint32_t)((1ull << bits) - 1), .next = *head};
		*head = node;
	}
}

static void destroy_sets(void *skel)
{
	floor_sets_bpf__destroy(skel);
}

static void *load_sets(const struct form *f, const struct set *s, int *ret_program)
{
	struct floor_sets_bpf *skel = LOAD(sets, f);

	if (s->family == 4)
		put_many(s, skel);
	else if (f->shift)
		put_hosts6(s, f->shift, skel->bss->hosts);
	else
		put_prefixes6(s, skel->bss->heads, skel->bss->nodes);
	*ret_program = floor_program(skel->obj, f->program);
	return skel;
}

static const char *program_for(const struct set *s, bool hosts, bool few)
{
	if (s->family == 6)
		return hosts ? "floor_hosts6" : "floor_prefixes6";
	if (hosts)
		return "floor_hosts";
	return few ? "floor_prefixes" : "floor_many";
}

void subject_floor_filter(const struct set *s, struct subject *ret)
{
	bool v4 = s->family == 4, hosts = s->at[0].len == (v4 ? 32 : 128);
	bool few = v4 && (hosts || s->outer_n <= FEW);
	struct form f = {
		.name = "floor-filter",
		.program = program_for(s, hosts, few),
		.load = few ? load_filter : load_sets,
		.destroy = few ? destroy_filter : destroy_sets,
	};

	if (hosts)
		f.shift = 64 - cells_log2(s->n, v4 ? FLOOR_CELLS_LOG2 : FLOOR_CELLS6_LOG2);
	load_form(&f, s, ret);
}

void subject_floor_padded(const struct set *s, struct subject *ret)
{
	load_form(&(struct form){.name = "floor-padded",
				 .program = "floor_padded",
				 .shift = 64 - cells_log2(s->n, FLOOR_CELLS_LOG2),
				 .load = load_filter,
				 .destroy = destroy_filter},
		  s, ret);
}

// ---- a line for each source ---------------------------------------------------------------------

static void destroy_entries(void *skel)
{
	floor_entries_bpf__destroy(skel);
}

static void *load_entries(const struct form *f, const struct set *s, int *ret_program)
{
	struct floor_entries_bpf *skel = LOAD(entries, f);

	if (s)
		put_hosts(s, f->shift, skel->bss->cells);
	*ret_program = floor_program(skel->obj, f->program);
	return skel;
}

void subject_floor_overlay(const struct set *s, struct subject *ret)
{
	load_form(&(struct form){.name = "floor-overlay",
				 .program = "floor_overlay",
				 .shift = 64 - cells_log2(s->n, FLOOR_CELLS_LOG2),
				 .load = load_entries,
				 .destroy = destroy_entries},
		  s, ret);
}

void subject_floor_limit(struct subject *ret)
{
	load_form(&(struct form){.name = "floor-limit",
				 .program = "floor_limit",
				 .load = load_entries,
				 .destroy = destroy_entries},
		  NULL, ret);
}
