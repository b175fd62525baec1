// SPDX-License-Identifier: GPL-2.0-only
// Makes up one valid rule: what kind it is, how narrow, and in which order its parts stand.
#include <stdlib.h>
#include <string.h>

#include "gen.h"

#define PARTS_MAX 24

/* A rule in the making: its parts as texts, to be shuffled. */
struct sketch {
	struct gen *gen;
	struct gen_rule *rule;
	const char *parts[PARTS_MAX];
	unsigned int count;
	const char *bare_port; /* must stand before from and to */
	bool plain_ethertype;
};

static void add_part(struct sketch *sketch, const char *text)
{
	if (sketch->count < PARTS_MAX)
		sketch->parts[sketch->count++] = text;
}

static void add_named(struct sketch *sketch, const char *keyword, const struct gen_numbers *numbers)
{
	add_part(sketch, pool_printf(&sketch->gen->pool, "%s %s", keyword, numbers->text));
}

static bool chance(struct sketch *sketch, unsigned int percent)
{
	return rng_chance(&sketch->gen->rng, percent);
}

/* from or to, with ports behind it if there are any. */
static void add_direction(struct sketch *sketch, const char *keyword, const struct gen_addrs *addrs,
			  const struct gen_numbers *ports)
{
	struct gen_text text = {.pool = &sketch->gen->pool};

	if (!addrs->given && !ports->given)
		return;
	text_put(&text, "%s", keyword);
	if (addrs->given)
		text_put(&text, " %s", addrs->text);
	if (ports->given)
		text_put(&text, " port %s", ports->text);
	add_part(sketch, text_done(&text));
}

static bool is_narrow(const struct gen_addrs *addrs)
{
	if (!addrs->given || addrs->negated || addrs->dynamic)
		return addrs->dynamic;
	for (size_t i = 0; i < addrs->items.len; i++) {
		const struct gen_item *item = &addrs->items.v[i];

		if (item->set < 0 && item->lo.value == 0 && !item->negative)
			return false;
	}
	return true;
}

/* A few broad rules are enough: else they hide all that follow. */
static bool may_be_broad(struct sketch *sketch)
{
	unsigned int rules = sketch->gen->options.rules;

	if (rules <= 6)
		return chance(sketch, 50);
	return rng_below(&sketch->gen->rng, rules) < 2;
}

static void pick_from(struct sketch *sketch)
{
	gen_addrs(sketch->gen, sketch->rule->families, &sketch->rule->from);
	sketch->rule->families &= sketch->rule->from.families;
}

static void pick_to(struct sketch *sketch)
{
	gen_addrs(sketch->gen, sketch->rule->families, &sketch->rule->to);
	sketch->rule->families &= sketch->rule->to.families;
}

static void pick_addrs(struct sketch *sketch)
{
	struct gen_rule *rule = sketch->rule;

	if (chance(sketch, 55))
		pick_from(sketch);
	if (rule->families && chance(sketch, rule->from.given ? 35 : 60))
		pick_to(sketch);
	if (may_be_broad(sketch))
		return;
	for (int tries = 0; tries < 20 && !is_narrow(&rule->from) && !is_narrow(&rule->to);
	     tries++) {
		memset(&rule->from, 0, sizeof(rule->from));
		rule->families = rule->to.given ? rule->to.families : 3;
		if (rule->types[0].given || rule->types[1].given)
			rule->families &=
				(rule->types[0].given ? 1U : 0U) | (rule->types[1].given ? 2U : 0U);
		pick_from(sketch);
	}
}

/* Destination ports follow `to` or stand alone, source ports follow `from`. */
static void pick_ports(struct sketch *sketch, unsigned int protos)
{
	struct gen_rule *rule = sketch->rule;

	if (chance(sketch, 80))
		gen_ports(sketch->gen, protos, &rule->dport);
	if (!rule->dport.given || chance(sketch, 20))
		gen_ports(sketch->gen, protos, &rule->sport);
}

static void add_ends(struct sketch *sketch)
{
	struct gen_rule *rule = sketch->rule;
	struct gen_numbers none = {0};
	bool bare = rule->dport.given && chance(sketch, rule->to.given ? 15 : 40);

	if (bare)
		sketch->bare_port = pool_printf(&sketch->gen->pool, "port %s", rule->dport.text);
	add_direction(sketch, "from", &rule->from, &rule->sport);
	add_direction(sketch, "to", &rule->to, bare ? &none : &rule->dport);
	if (rule->sport.given && !rule->to.given && !rule->dport.given && chance(sketch, 50))
		add_part(sketch, "to any");
}

static void make_ports(struct sketch *sketch)
{
	unsigned int protos = 0;

	if (chance(sketch, 65)) {
		gen_port_protos(sketch->gen, &sketch->rule->proto, &protos);
		add_named(sketch, "proto", &sketch->rule->proto);
	}
	pick_ports(sketch, protos);
	pick_addrs(sketch);
}

static void make_flags(struct sketch *sketch)
{
	const char *text;
	unsigned int protos = 0;

	gen_flags(sketch->gen, sketch->rule, &text);
	add_part(sketch, text);
	if (chance(sketch, 50)) {
		add_part(sketch, "proto tcp");
		protos = 1;
	}
	if (chance(sketch, 50))
		pick_ports(sketch, protos);
	pick_addrs(sketch);
}

static void make_types(struct sketch *sketch)
{
	const char *text;

	if (!sketch->gen->options.with[GEN_TYPE]) {
		make_ports(sketch);
		return;
	}
	gen_types(sketch->gen, sketch->rule, &text);
	add_part(sketch, text);
	pick_addrs(sketch);
}

static void make_protos(struct sketch *sketch)
{
	gen_protos(sketch->gen, &sketch->rule->proto);
	add_named(sketch, "proto", &sketch->rule->proto);
	pick_addrs(sketch);
}

static void make_fragment(struct sketch *sketch)
{
	sketch->rule->fragment = true;
	add_part(sketch, "fragment");
	if (chance(sketch, 40))
		make_protos(sketch);
	else
		pick_addrs(sketch);
}

static void make_ethertype(struct sketch *sketch)
{
	if (!sketch->gen->options.with[GEN_ETHERTYPE]) {
		make_protos(sketch);
		return;
	}
	gen_ethertypes(sketch->gen, &sketch->rule->ethertype);
	add_named(sketch, "ethertype", &sketch->rule->ethertype);
	sketch->plain_ethertype = true;
}

static void make_kind(struct sketch *sketch)
{
	static const struct {
		unsigned int below;
		void (*make)(struct sketch *sketch);
	} kinds[] = {
		{38, make_ports},    {48, make_flags},     {60, make_types},  {70, make_protos},
		{75, make_fragment}, {80, make_ethertype}, {100, pick_addrs},
	};
	unsigned int roll = rng_below(&sketch->gen->rng, 100);

	/* With many rules the few ethertypes and bare types would soon all be taken. */
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (roll >= kinds[i].below)
			continue;
		if (kinds[i].make == make_ethertype && !may_be_broad(sketch) && chance(sketch, 70))
			pick_addrs(sketch);
		else
			kinds[i].make(sketch);
		return;
	}
}

static void add_rate(struct sketch *sketch, const char *keyword)
{
	static const char *const rates[] = {"1000000/s", "900k/s",   "50M/min",
					    "900M/h",    "10gbit/s", "900000mbit/s"};
	static const char *const extras[] = {"",
					     " burst 900k",
					     " per source",
					     " per rule",
					     " per destination mask 24/56",
					     " max 4096 per source",
					     " burst 1M per source mask 32/64 max 65536"};
	const char *rate = rates[rng_below(&sketch->gen->rng, 6)];
	/* Frames without an address cannot be counted by address. */
	const char *extra = extras[rng_below(&sketch->gen->rng, sketch->plain_ethertype ? 2 : 7)];

	add_part(sketch, pool_printf(&sketch->gen->pool, "%s %s%s", keyword, rate, extra));
}

static void add_chances(struct sketch *sketch)
{
	struct gen_rule *rule = sketch->rule;

	if (gen_may(sketch->gen, GEN_OVER, 5)) {
		rule->over = true;
		add_rate(sketch, "over");
	} else if (!sketch->plain_ethertype && gen_may(sketch->gen, GEN_OVER, 3)) {
		rule->under = true;
		add_rate(sketch, "under");
	}
	if (!rule->under && gen_may(sketch->gen, GEN_PROBABILITY, 4)) {
		rule->probability = true;
		add_part(sketch, chance(sketch, 50) ? "probability 33%" : "probability 0.5%");
	}
}

static void add_length(struct sketch *sketch)
{
	static const uint32_t ip[] = {20, 28, 40, 48, 60, 61, 64, 80, 100, 255, 256, 576, 1280};
	static const uint32_t frame[] = {60, 61, 64, 80, 100, 255, 256, 576, 1280};
	struct gen_rule *rule = sketch->rule;

	if (sketch->plain_ethertype)
		gen_span(sketch->gen, frame, 9, 65535, &rule->length);
	else
		gen_span(sketch->gen, ip, 13, 65535, &rule->length);
	add_named(sketch, "length", &rule->length);
}

/* Where it is no contradiction. */
static bool may_be_established(const struct gen_rule *rule)
{
	if (rule->types[0].given || rule->types[1].given || rule->fragment || rule->proto.negated)
		return false;
	for (size_t i = 0; i < rule->proto.ranges.len; i++) {
		if (rule->proto.ranges.v[i].lo == 6 || rule->proto.ranges.v[i].lo == 17)
			return true;
	}
	return !rule->proto.given;
}

static void add_ip_conditions(struct sketch *sketch)
{
	static const uint32_t ttls[] = {0, 1, 5, 63, 64, 65, 128, 254, 255};
	struct gen_rule *rule = sketch->rule;

	if (may_be_established(rule) && gen_may(sketch->gen, GEN_ESTABLISHED, 5)) {
		rule->established = true;
		add_part(sketch, "established");
	}
	if (chance(sketch, 5)) {
		gen_span(sketch->gen, ttls, 9, 255, &rule->ttl);
		add_named(sketch, "ttl", &rule->ttl);
	}
	if (chance(sketch, 5)) {
		gen_dscps(sketch->gen, &rule->dscp);
		add_named(sketch, "dscp", &rule->dscp);
	}
}

static void add_conditions(struct sketch *sketch)
{
	struct gen_rule *rule = sketch->rule;

	if (chance(sketch, 10)) {
		gen_on(sketch->gen, &rule->on);
		add_named(sketch, "on", &rule->on);
	}
	if (gen_may(sketch->gen, GEN_VLAN, 10)) {
		gen_vlans(sketch->gen, &rule->vlan);
		add_named(sketch, "vlan", &rule->vlan);
	}
	if (chance(sketch, 6))
		add_length(sketch);
	if (!sketch->plain_ethertype)
		add_ip_conditions(sketch);
	add_chances(sketch);
}

static void add_modifiers(struct sketch *sketch)
{
	static const char *const logs[] = {"log", "log 10/s", "log 5/min snap 64", "log snap 96"};
	struct gen *gen = sketch->gen;
	const char *end;
	const struct gen_set *last = gen->sets.len ? &gen->sets.v[gen->sets.len - 1] : NULL;

	if (gen_may(gen, GEN_LOG, 3))
		add_part(sketch, logs[rng_below(&gen->rng, 4)]);
	if (sketch->plain_ethertype || !last || !last->dynamic || !gen_may(gen, GEN_ADD, 3))
		return;
	end = chance(sketch, 60) ? "source" : "destination";
	add_part(sketch, pool_printf(&gen->pool, "add %s @%s%s", end, last->name,
				     chance(sketch, 50) ? " for 10m" : ""));
}

static void shuffle(struct sketch *sketch)
{
	for (unsigned int i = sketch->count; i > 1; i--) {
		unsigned int j = rng_below(&sketch->gen->rng, i);
		const char *part = sketch->parts[i - 1];

		sketch->parts[i - 1] = sketch->parts[j];
		sketch->parts[j] = part;
	}
}

/* Somewhere before from and to. */
static void insert_bare_port(struct sketch *sketch)
{
	unsigned int at = 0;

	if (!sketch->bare_port)
		return;
	while (at < sketch->count && strncmp(sketch->parts[at], "from ", 5) != 0 &&
	       strncmp(sketch->parts[at], "to ", 3) != 0)
		at++;
	at = rng_below(&sketch->gen->rng, at + 1);
	for (unsigned int i = sketch->count; i > at; i--)
		sketch->parts[i] = sketch->parts[i - 1];
	sketch->parts[at] = sketch->bare_port;
	sketch->count++;
}

/* How many bits a list of addresses fixes, as far as that can be said. */
static int addr_bits_fixed(const struct gen_addrs *addrs)
{
	double weight = addrs->weight;
	int bits = 0;

	if (!addrs->given)
		return 0;
	if (addrs->dynamic)
		return 24;
	while (weight < 1 && bits < 24) {
		weight *= 2;
		bits++;
	}
	return bits;
}

static bool takes_all_ip(const struct gen_numbers *ethertype)
{
	bool takes = ethertype->negated;

	for (size_t i = 0; i < ethertype->ranges.len; i++)
		takes |= ethertype->ranges.v[i].lo == 0x0800 || ethertype->ranges.v[i].hi >= 0x86dd;
	return takes;
}

static int bits_fixed(const struct gen_rule *rule)
{
	const struct gen_numbers *numbers[] = {&rule->sport,  &rule->dport,    &rule->types[0],
					       &rule->vlan,   &rule->dscp,     &rule->ttl,
					       &rule->length, &rule->ethertype};
	int bits = addr_bits_fixed(&rule->from) + addr_bits_fixed(&rule->to);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		bits += numbers[i]->given && !numbers[i]->negated ? 3 : 0;
	bits += rule->flags_given || rule->fragment || rule->over ? 3 : 0;
	return rule->ethertype.given && takes_all_ip(&rule->ethertype) ? 0 : bits;
}

static const char *pick_action(struct sketch *sketch)
{
	struct gen *gen = sketch->gen;
	unsigned int roll = rng_below(&gen->rng, 100);

	if (roll < 7)
		return "count";
	if (roll < 14 && gen->options.with[GEN_REDIRECT])
		return pool_printf(
			&gen->pool, "redirect %s",
			gen->ifaces.v[rng_below(&gen->rng, (unsigned int)gen->ifaces.len)]);
	if (roll < 28 && !sketch->plain_ethertype && gen->options.with[GEN_REJECT])
		return "reject";
	return roll < 62 ? "drop" : "pass";
}

/* `always` rules come before all others: with many rules only a few, and narrow ones. */
static bool may_be_always(struct sketch *sketch)
{
	struct gen *gen = sketch->gen;

	if (gen->options.rules <= 30)
		return gen_may(gen, GEN_ALWAYS, 10);
	return gen->options.with[GEN_ALWAYS] && bits_fixed(sketch->rule) > 16 &&
	       rng_below(&gen->rng, gen->options.rules) < 12;
}

static const char *rule_text(struct sketch *sketch)
{
	struct gen_text text = {.pool = &sketch->gen->pool};

	if (chance(sketch, 40))
		text_put(&text, "\"r%zu%s\" ", sketch->gen->rules.len + 1,
			 chance(sketch, 10) ? " with, {marks}; # 'and' blanks" : "");
	if (may_be_always(sketch))
		text_put(&text, "always ");
	text_put(&text, "%s", pick_action(sketch));
	for (unsigned int i = 0; i < sketch->count; i++)
		text_put(&text, "%s%s", gen_may(sketch->gen, GEN_LAYOUT, 3) ? " \\\n\t" : " ",
			 sketch->parts[i]);
	return text_done(&text);
}

static void make_rule(struct gen *gen, struct gen_rule *rule)
{
	struct sketch sketch = {.gen = gen, .rule = rule};

	do {
		memset(rule, 0, sizeof(*rule));
		rule->families = 3;
		sketch.count = 0;
		sketch.plain_ethertype = false;
		make_kind(&sketch);
	} while (rule->families == 0);
	add_ends(&sketch);
	add_conditions(&sketch);
	add_modifiers(&sketch);
	shuffle(&sketch);
	insert_bare_port(&sketch);
	rule->text = rule_text(&sketch);
	rule->place =
		((int)rng_below(&gen->rng, 10) - bits_fixed(rule)) * 65536 + (int)gen->rules.len;
}

static int compare_places(const void *a, const void *b)
{
	const struct gen_rule *one = a, *other = b;

	return (one->place > other->place) - (one->place < other->place);
}

void gen_rules(struct gen *gen)
{
	for (unsigned int i = 0; i < gen->options.rules; i++) {
		struct gen_rule rule;

		make_rule(gen, &rule);
		*vec_add(&gen->pool, &gen->rules) = rule;
	}
	if (gen->options.rules > 30) /* else most of them would never be met */
		qsort(gen->rules.v, gen->rules.len, sizeof(*gen->rules.v), compare_places);
}
