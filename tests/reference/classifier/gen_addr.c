// SPDX-License-Identifier: GPL-2.0-only
// Makes up addresses, prefixes, ranges, sets and lists of them, close enough to meet each other.
#include <stdio.h>
#include <string.h>

#include "gen.h"

/* Fingerprints of the items of one list: no item may stand in it twice. */
struct seen {
	uint64_t *slots;
	size_t mask;
};

struct maker {
	struct gen *gen;
	struct gen_addrs *addrs;
	struct gen_text text;
	struct seen seen;
	const char *separator;
	unsigned int families; /* to take items from */
	unsigned int spread;   /* percent of items anywhere in a site, not near others */
	unsigned int min_len[2];
	unsigned int max_len[2];
};

static void site_set(struct gen *gen, unsigned int at, const char *text, unsigned int len)
{
	struct addr addr = {0};

	addr_parse(text, &addr);
	gen->sites[at] = (struct prefix){.addr = addr, .len = len};
}

static u128 random128(struct rng *rng)
{
	u128 high = rng_next(rng);

	return high << 64 | rng_next(rng);
}

static void site_random(struct gen *gen, unsigned int at, unsigned int family, unsigned int lo,
			unsigned int hi)
{
	unsigned int len = rng_between(&gen->rng, lo, hi);
	u128 value = random128(&gen->rng);

	if (family == 4)
		value = (u128)rng_between(&gen->rng, 11, 120) << 120 | (value >> 8 & addr_mask(32));
	else
		value = (u128)0x2 << 124 | value >> 4;
	gen->sites[at] = (struct prefix){
		.addr = {.value = value & addr_mask(len), .family = family}, .len = len};
}

void gen_sites(struct gen *gen)
{
	site_set(gen, 0, "10.0.0.0", 8);
	site_set(gen, 1, "192.0.2.0", 24);
	site_set(gen, 2, "198.51.100.0", 24);
	site_set(gen, 3, "172.16.0.0", 12);
	site_random(gen, 4, 4, 8, 12);
	site_random(gen, 5, 4, 12, 20);
	site_random(gen, 6, 4, 16, 24);
	site_set(gen, 7, "2001:db8::", 32);
	site_set(gen, 8, "fd00::", 16);
	site_set(gen, 9, "fe80::", 64);
	site_random(gen, 10, 6, 20, 32);
	site_random(gen, 11, 6, 32, 56);
}

static const struct prefix *site(struct gen *gen, unsigned int family)
{
	return &gen->sites[family == 4 ? rng_below(&gen->rng, 7) : rng_between(&gen->rng, 7, 11)];
}

struct addr gen_site_addr(struct gen *gen, unsigned int family)
{
	const struct prefix *from = site(gen, family);
	struct addr addr = from->addr;

	addr.value |= random128(&gen->rng) & ~addr_mask(from->len) & addr_mask(addr_bits(family));
	return addr;
}

static void seen_init(struct pool *pool, struct seen *seen, size_t items)
{
	size_t slots = 64;

	while (slots < items * 4)
		slots *= 2;
	seen->slots = pool_alloc(pool, slots * sizeof(*seen->slots));
	seen->mask = slots - 1;
}

/* Whether it is new; the table never fills up because lists end before that. */
static bool seen_add(struct seen *seen, u128 value, unsigned int tag)
{
	uint64_t print = ((uint64_t)(value >> 64) ^ tag) * 0x9e3779b97f4a7c15U;
	size_t slot;

	print = (print ^ print >> 31 ^ (uint64_t)value) * 0xbf58476d1ce4e5b9U;
	print ^= print >> 29;
	print |= print == 0;
	for (slot = print & seen->mask; seen->slots[slot]; slot = (slot + 1) & seen->mask) {
		if (seen->slots[slot] == print)
			return false;
	}
	seen->slots[slot] = print;
	return true;
}

static unsigned int random_len(struct gen *gen, unsigned int family, unsigned int lo,
			       unsigned int hi)
{
	static const unsigned int usual[2][8] = {
		{32, 32, 32, 24, 24, 28, 16, 30},
		{128, 128, 64, 64, 48, 56, 96, 127},
	};
	unsigned int len = usual[family == 6][rng_below(&gen->rng, 8)];

	if (rng_chance(&gen->rng, 30))
		len = rng_between(&gen->rng, lo, hi);
	if (len < lo)
		return lo;
	return len > hi ? hi : len;
}

/* A prefix inside a site, one of the few in its first part or any. */
static struct prefix site_prefix(struct maker *maker, unsigned int family)
{
	struct gen *gen = maker->gen;
	const struct prefix *from = site(gen, family);
	unsigned int lo = maker->min_len[family == 6], hi = maker->max_len[family == 6];
	struct prefix prefix = {.addr = from->addr};

	if (lo < from->len)
		lo = from->len < hi ? from->len : hi;
	prefix.len = random_len(gen, family, lo, hi);
	if (rng_chance(&gen->rng, maker->spread))
		prefix.addr.value |= random128(&gen->rng) & ~addr_mask(from->len);
	else if (prefix.len > from->len)
		prefix.addr.value |= (u128)rng_below(&gen->rng, 48) << (128 - prefix.len) &
				     ~addr_mask(from->len);
	prefix.addr.value &= addr_mask(prefix.len);
	return prefix;
}

/* A part, the neighbour or the surroundings of an item already there. */
static struct prefix near_prefix(struct maker *maker, const struct gen_item *item)
{
	struct rng *rng = &maker->gen->rng;
	unsigned int bits = addr_bits(item->lo.family), len = bits;
	unsigned int lo = maker->min_len[bits > 32], hi = maker->max_len[bits > 32];
	struct prefix prefix = {.addr = item->lo};
	u128 span = (item->lo.value ^ item->hi.value) >> (128 - bits);

	while (span) {
		span >>= 1;
		len--;
	}
	if (rng_chance(rng, 60))
		len += rng_between(rng, 1, 8);
	else if (rng_chance(rng, 50))
		prefix.addr.value ^= len ? (u128)1 << (128 - len) : 0;
	else
		len -= len > 4 ? rng_between(rng, 1, 4) : 0;
	len = len < lo ? lo : len;
	prefix.len = len > hi ? hi : len;
	if (rng_chance(rng, 50))
		prefix.addr.value |= random128(rng) & (item->lo.value ^ item->hi.value);
	prefix.addr.value &= addr_mask(prefix.len);
	return prefix;
}

static unsigned int pick_family(struct maker *maker)
{
	if (maker->families == 3)
		return rng_chance(&maker->gen->rng, 55) ? 4 : 6;
	return maker->families == 1 ? 4 : 6;
}

/* Full-length groups now and then, to see that both are read alike. */
static void format_addr(struct maker *maker, struct addr addr, char *buf, size_t size)
{
	uint8_t b[16];

	addr_format(addr, buf, size);
	if (addr.family == 6 && rng_chance(&maker->gen->rng, 5)) {
		addr_to_bytes(addr, b);
		snprintf(buf, size, "%x:%x:%x:%x:%x:%x:%x:%x", b[0] << 8 | b[1], b[2] << 8 | b[3],
			 b[4] << 8 | b[5], b[6] << 8 | b[7], b[8] << 8 | b[9], b[10] << 8 | b[11],
			 b[12] << 8 | b[13], b[14] << 8 | b[15]);
	}
}

static void put_word(struct maker *maker, bool negative, const char *word)
{
	if (maker->text.bytes.len)
		text_put(&maker->text, "%s", maker->separator);
	text_put(&maker->text, "%s%s", negative ? "not " : "", word);
}

/* The sites leave about 24 bits of IPv4 and 96 of IPv6 to choose from, but not evenly. */
static double item_weight(struct addr lo, struct addr hi)
{
	u128 span = (hi.value - lo.value) >> (128 - addr_bits(lo.family));
	int bits = 0;
	double weight = 1;

	while (span) {
		span >>= 1;
		bits++;
	}
	for (bits = lo.family == 4 ? 24 - bits : (96 - bits) / 4; bits > 0; bits--)
		weight /= 2;
	return weight;
}

static void note_item(struct maker *maker, struct addr lo, struct addr hi, bool negative)
{
	*vec_add(&maker->gen->pool, &maker->addrs->items) =
		(struct gen_item){.lo = lo, .hi = hi, .negative = negative, .set = -1};
	if (negative)
		return;
	maker->addrs->families |= lo.family == 4 ? 1 : 2;
	maker->addrs->weight += item_weight(lo, hi);
}

static bool put_prefix(struct maker *maker, struct prefix prefix, bool negative)
{
	struct addr hi = prefix.addr;
	char text[64], word[80];

	if (!seen_add(&maker->seen, prefix.addr.value, prefix.addr.family << 8 | prefix.len))
		return false;
	hi.value |= ~addr_mask(prefix.len) & addr_mask(addr_bits(hi.family));
	format_addr(maker, prefix.addr, text, sizeof(text));
	if (prefix.len == 32 && prefix.addr.family == 4 && rng_chance(&maker->gen->rng, 1))
		snprintf(word, sizeof(word), "::ffff:%s", text);
	else if (prefix.len == addr_bits(prefix.addr.family) && rng_chance(&maker->gen->rng, 90))
		snprintf(word, sizeof(word), "%s", text);
	else
		snprintf(word, sizeof(word), "%s/%u", text, prefix.len);
	put_word(maker, negative, word);
	note_item(maker, prefix.addr, hi, negative);
	return true;
}

/* A range that is no prefix. */
static bool put_range(struct maker *maker, unsigned int family, bool negative)
{
	struct rng *rng = &maker->gen->rng;
	unsigned int shift = 128 - addr_bits(family);
	struct addr lo = site_prefix(maker, family).addr, hi = lo;
	struct prefix cut[PREFIXES_MAX];
	char low[64], high[64], word[140];

	lo.value |= (u128)rng_below(rng, 200) << shift;
	hi.value = lo.value + ((u128)rng_between(rng, 1, rng_chance(rng, 70) ? 20 : 5000) << shift);
	if (hi.value < lo.value || prefixes_of_range(lo, hi, cut) < 2 ||
	    !seen_add(&maker->seen, lo.value ^ hi.value << 1, 1000 + family))
		return false;
	format_addr(maker, lo, low, sizeof(low));
	format_addr(maker, hi, high, sizeof(high));
	snprintf(word, sizeof(word), "%s-%s", low, high);
	put_word(maker, negative, word);
	note_item(maker, lo, hi, negative);
	return true;
}

static const struct gen_item *pick_item(struct gen *gen, const struct gen_addrs *addrs)
{
	return &addrs->items.v[rng_below(&gen->rng, (unsigned int)addrs->items.len)];
}

static bool put_any_item(struct maker *maker, bool exceptions, unsigned int range_percent)
{
	struct rng *rng = &maker->gen->rng;
	const struct gen_addrs *addrs = maker->addrs;
	bool near = addrs->items.len && rng_chance(rng, exceptions ? 60 : 30);
	bool negative = exceptions && addrs->items.len && rng_chance(rng, 35);
	const struct gen_item *item = near ? pick_item(maker->gen, addrs) : NULL;

	if (rng_chance(rng, range_percent))
		return put_range(maker, pick_family(maker), negative);
	if (item && item->set < 0)
		return put_prefix(maker, near_prefix(maker, item), negative);
	return put_prefix(maker, site_prefix(maker, pick_family(maker)), negative);
}

/* The first or last address of an item of a set in this list, if there is one. */
static bool joined_addr(struct maker *maker, struct addr *ret_addr)
{
	struct gen *gen = maker->gen;
	const struct gen_addrs *addrs = maker->addrs;

	for (int tries = 0; addrs->items.len && tries < 8; tries++) {
		const struct gen_item *item = pick_item(gen, addrs);

		if (item->set >= 0)
			item = pick_item(gen, &gen->sets.v[item->set].addrs);
		if (item->set >= 0)
			continue;
		*ret_addr = rng_chance(&gen->rng, 50) ? item->lo : item->hi;
		return true;
	}
	return false;
}

/* Full-length exceptions read the same however sets are joined. */
static void put_host_exceptions(struct maker *maker, unsigned int count)
{
	while (count--) {
		struct prefix host = site_prefix(maker, pick_family(maker));

		if (rng_chance(&maker->gen->rng, 70))
			joined_addr(maker, &host.addr);
		host.len = addr_bits(host.addr.family);
		put_prefix(maker, host, true);
	}
}

/* An exception that is exactly one of the prefixes a range is cut into: `not` wins the tie. */
static void put_tie(struct maker *maker)
{
	const struct gen_addrs *addrs = maker->addrs;
	struct prefix cut[PREFIXES_MAX];

	for (size_t i = 0; i < addrs->items.len; i++) {
		const struct gen_item item = addrs->items.v[i];
		int count = item.set < 0 ? prefixes_of_range(item.lo, item.hi, cut) : 0;

		if (count > 1 && !item.negative && rng_chance(&maker->gen->rng, 40))
			put_prefix(maker, cut[rng_below(&maker->gen->rng, (unsigned int)count)],
				   true);
	}
}

static void put_items(struct maker *maker, unsigned int count, bool exceptions,
		      unsigned int range_percent)
{
	unsigned int tries = 4 * count + 20;

	while (count && tries--)
		count -= put_any_item(maker, exceptions, range_percent);
	if (exceptions)
		put_tie(maker);
}

static bool put_set(struct maker *maker, int set, bool negative)
{
	struct gen_set *from = &maker->gen->sets.v[set];
	char word[80];

	if (!seen_add(&maker->seen, (u128)set, 5000))
		return false;
	snprintf(word, sizeof(word), "@%s", from->name);
	put_word(maker, negative, word);
	*vec_add(&maker->gen->pool, &maker->addrs->items) =
		(struct gen_item){.negative = negative, .set = set};
	if (negative)
		return true;
	maker->addrs->families |= from->addrs.families;
	maker->addrs->weight += from->addrs.weight;
	return true;
}

static struct maker maker_of(struct gen *gen, struct gen_addrs *addrs, unsigned int families,
			     size_t items)
{
	struct maker maker = {
		.gen = gen,
		.addrs = addrs,
		.text.pool = &gen->pool,
		.separator = gen_may(gen, GEN_LAYOUT, 6) ? ",\n\t" : ", ",
		.families = families,
		.spread = gen->options.rules > 500 ? 90 : 50,
		.min_len = {9, 17},
		.max_len = {32, 128},
	};

	seen_init(&gen->pool, &maker.seen, items + 32);
	addrs->given = true;
	return maker;
}

/* A set fit for `{families} & mask`, dynamic ones never; -1 if there is none. */
static int find_set(struct gen *gen, unsigned int families, bool hosts, unsigned int below)
{
	for (int tries = 0; tries < 20; tries++) {
		unsigned int at = rng_below(&gen->rng, below);
		const struct gen_set *set = at < gen->sets.len ? &gen->sets.v[at] : NULL;

		if (set && !set->dynamic && (set->addrs.families & families) && set->hosts == hosts)
			return (int)at;
	}
	return -1;
}

/* With other sets: unions with host exceptions, or short prefixes without a set of hosts. */
static void make_joined(struct maker *maker, unsigned int items, unsigned int below)
{
	struct gen *gen = maker->gen;
	bool hard = gen_may(gen, GEN_HARD_JOINS, 60);
	int hosts = find_set(gen, 3, true, below);

	if (!hard && hosts >= 0 && rng_chance(&gen->rng, 40)) {
		maker->max_len[0] = 24;
		maker->max_len[1] = 64;
		put_items(maker, items, false, 0);
		put_set(maker, hosts, true);
		return;
	}
	put_items(maker, items, hard, hard ? 10 : 0);
	for (unsigned int i = rng_between(&gen->rng, 1, 3); i > 0; i--) {
		int set = find_set(gen, maker->families, false, below);

		if (set >= 0)
			put_set(maker, set,
				hard && maker->text.bytes.len && rng_chance(&gen->rng, 30));
	}
	if (!hard && rng_chance(&gen->rng, 50))
		put_host_exceptions(maker, rng_between(&gen->rng, 1, 4));
}

static const char *const separators[] = {", ", ",", ",\n\t", "\n\t", "\n\n\t# a comment\n\t"};

static const char *random_separator(struct gen *gen)
{
	return separators[gen->options.with[GEN_LAYOUT] ? rng_below(&gen->rng, 5) : 0];
}

/* `set` text with a file: the elements go there, one a line. */
static void set_to_file(struct gen *gen, struct gen_set *set, struct maker *maker)
{
	const char *slash = strrchr(gen->options.policy, '/');
	const char *base = slash ? slash + 1 : gen->options.policy;

	set->file = pool_printf(&gen->pool, "%s.%s.txt", gen->options.policy, set->name);
	text_put(&maker->text, "\n");
	set->file_text = text_done(&maker->text);
	set->addrs.text = pool_printf(&gen->pool, "file \"%s.%s.txt\"%s", base, set->name,
				      rng_chance(&gen->rng, 30) ? " min 1" : "");
}

static void make_hosts(struct maker *maker)
{
	maker->min_len[0] = 29;
	maker->min_len[1] = 120;
	put_items(maker, rng_between(&maker->gen->rng, 1, 12), false, 0);
}

static void make_set(struct gen *gen, struct gen_set *set, unsigned int at, unsigned int size)
{
	unsigned int families = rng_chance(&gen->rng, 70) ? 3 : rng_between(&gen->rng, 1, 2);
	struct maker maker = maker_of(gen, &set->addrs, families, size);
	bool file = size >= 4 && gen_may(gen, GEN_FILE, size > 1000 ? 60 : 25);

	if (size > 500) {
		maker.spread = 95;
		maker.min_len[0] = rng_chance(&gen->rng, 30) ? 18 : 26;
		maker.min_len[1] = rng_chance(&gen->rng, 30) ? 40 : 56;
	}
	maker.separator = file ? "\n" : random_separator(gen);
	if (set->hosts)
		make_hosts(&maker);
	else if (at > 0 && !file && size < 200 && rng_chance(&gen->rng, 40))
		make_joined(&maker, size > 10 ? 10 : size, at);
	else
		put_items(&maker, size, !file && rng_chance(&gen->rng, 60), 8);
	if (!maker.text.bytes.len || !set->addrs.families)
		put_prefix(&maker, site_prefix(&maker, 4), false);
	if (file && !set->hosts)
		set_to_file(gen, set, &maker);
	else
		set->addrs.text = text_done(&maker.text);
}

static unsigned int set_size(struct gen *gen, unsigned int at)
{
	unsigned int size = gen->options.set_size;

	if (at == 2)
		return size;
	for (unsigned int halvings = rng_below(&gen->rng, 18); halvings && size > 1; halvings--)
		size /= 2;
	return size > 0 ? rng_between(&gen->rng, 1, size) : 1;
}

void gen_sets(struct gen *gen)
{
	unsigned int count = 2 + gen->options.rules / 12;

	count = count > 40 ? 40 : count;
	count = rng_between(&gen->rng, gen->options.set_size > 0 ? 3 : 2, count > 3 ? count : 3);
	for (unsigned int i = 0; i < count; i++) {
		struct gen_set set = {.name = pool_printf(&gen->pool, "s%u", i)};

		set.hosts = i < 2;
		make_set(gen, &set, i, set_size(gen, i));
		*vec_add(&gen->pool, &gen->sets) = set;
	}
	for (unsigned int i = gen_may(gen, GEN_DYNAMIC, 50) ? rng_between(&gen->rng, 1, 3) : 0; i;
	     i--) {
		struct gen_set set = {.name = pool_printf(&gen->pool, "dyn-%u", i),
				      .dynamic = true};

		set.addrs.families = 3;
		*vec_add(&gen->pool, &gen->sets) = set;
	}
}

static void negate(struct gen *gen, struct gen_addrs *addrs)
{
	addrs->negated = true;
	addrs->families = 3;
	addrs->weight = 1;
	addrs->text = pool_printf(&gen->pool, "not %s", addrs->text);
}

static void make_define(struct gen *gen, struct gen_define *define)
{
	struct maker maker = maker_of(gen, &define->addrs, 3, 16);
	bool exceptions = rng_chance(&gen->rng, 30);

	put_items(&maker, rng_between(&gen->rng, 1, 8), exceptions, 8);
	define->addrs.text = text_done(&maker.text);
	define->alone = exceptions;
	if (!exceptions && rng_chance(&gen->rng, 15)) {
		negate(gen, &define->addrs);
		define->alone = true;
	}
}

void gen_addr_defines(struct gen *gen)
{
	unsigned int count = gen->options.with[GEN_DEFINE] ? rng_below(&gen->rng, 6) : 0;

	for (unsigned int i = 0; i < count; i++) {
		struct gen_define define = {.name = pool_printf(&gen->pool, "net%u", i),
					    .kind = GEN_DEFINE_ADDRS};

		make_define(gen, &define);
		*vec_add(&gen->pool, &gen->defines) = define;
	}
}

static const struct gen_define *find_define(struct gen *gen, unsigned int families, bool alone)
{
	for (int tries = 0; tries < 8; tries++) {
		unsigned int at = rng_below(&gen->rng, (unsigned int)gen->defines.len);
		const struct gen_define *define = gen->defines.len ? &gen->defines.v[at] : NULL;

		if (define && define->kind == GEN_DEFINE_ADDRS && (alone || !define->alone) &&
		    (define->addrs.families & families))
			return define;
	}
	return NULL;
}

static bool make_from_define(struct gen *gen, unsigned int families, struct gen_addrs *addrs)
{
	const struct gen_define *define = find_define(gen, families, true);

	if (!define)
		return false;
	*addrs = define->addrs;
	addrs->text = pool_printf(&gen->pool, "$%s", define->name);
	if (!define->alone && rng_chance(&gen->rng, 10))
		negate(gen, addrs);
	return true;
}

/* A define in the middle of a list of one's own. */
static void put_define(struct maker *maker)
{
	const struct gen_define *define = find_define(maker->gen, maker->families, false);
	char word[80];

	if (!define)
		return;
	snprintf(word, sizeof(word), "$%s", define->name);
	put_word(maker, false, word);
	for (size_t i = 0; i < define->addrs.items.len; i++) {
		const struct gen_item *item = &define->addrs.items.v[i];

		note_item(maker, item->lo, item->hi, false);
	}
}

static bool make_from_set(struct gen *gen, unsigned int families, struct gen_addrs *addrs)
{
	bool dynamic = gen->options.rules > 8 && gen_may(gen, GEN_DYNAMIC, 6);
	struct maker maker = maker_of(gen, addrs, families, 16);
	int set = find_set(gen, families, rng_chance(&gen->rng, 10), (unsigned int)gen->sets.len);
	bool exceptions;

	if (dynamic && gen->sets.v[gen->sets.len - 1].dynamic) {
		addrs->text = pool_printf(&gen->pool, "@%s", gen->sets.v[gen->sets.len - 1].name);
		addrs->dynamic = true;
		addrs->families = 3;
		return true;
	}
	if (set < 0)
		return false;
	put_set(&maker, set, false);
	if (rng_chance(&gen->rng, 20))
		put_items(&maker, rng_between(&gen->rng, 1, 3), false, 0);
	exceptions = rng_chance(&gen->rng, 10);
	if (exceptions)
		put_host_exceptions(&maker, 2);
	addrs->text = text_done(&maker.text);
	if (!exceptions && rng_chance(&gen->rng, 8))
		negate(gen, addrs);
	return true;
}

/* `any`, alone or with exceptions. */
static void make_any(struct gen *gen, struct gen_addrs *addrs)
{
	struct maker maker = maker_of(gen, addrs, 3, 16);
	struct addr lo = {.family = 4}, hi = {.value = addr_mask(32), .family = 4};

	put_word(&maker, false, "any");
	note_item(&maker, lo, hi, false);
	lo.family = hi.family = 6;
	hi.value = ~(u128)0;
	note_item(&maker, lo, hi, false);
	if (rng_chance(&gen->rng, 40))
		put_host_exceptions(&maker, rng_between(&gen->rng, 1, 3));
	addrs->text = text_done(&maker.text);
}

static void make_list(struct gen *gen, unsigned int families, struct gen_addrs *addrs)
{
	unsigned int count = rng_chance(&gen->rng, 55) ? 1 : rng_between(&gen->rng, 2, 7);
	struct maker maker = maker_of(gen, addrs, families, 16);
	bool exceptions = count > 1 && rng_chance(&gen->rng, 35);

	put_items(&maker, count, exceptions, 10);
	if (!exceptions && rng_chance(&gen->rng, 8))
		put_define(&maker);
	addrs->text = text_done(&maker.text);
	if (!exceptions && rng_chance(&gen->rng, 5))
		negate(gen, addrs);
}

void gen_addrs(struct gen *gen, unsigned int families, struct gen_addrs *ret_addrs)
{
	unsigned int roll = rng_below(&gen->rng, 100);
	bool done = false;

	memset(ret_addrs, 0, sizeof(*ret_addrs));
	if (roll < 3) {
		make_any(gen, ret_addrs);
		return;
	}
	if (roll < 35)
		done = make_from_set(gen, families, ret_addrs);
	else if (roll < 45)
		done = make_from_define(gen, families, ret_addrs);
	if (done)
		return;
	memset(ret_addrs, 0, sizeof(*ret_addrs));
	make_list(gen, families, ret_addrs);
}
